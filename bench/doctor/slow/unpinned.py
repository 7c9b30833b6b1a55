# SPDX-License-Identifier: Apache-2.0
# expects: unpinned
# needs: gpu
"""Large batches from memory that is not pinned."""

import torch
from shared import FIXED, dense, step
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    data = torch.randint(0, 255, (4096, 3 * 224 * 224), dtype=torch.uint8)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return self.data[64 * (i % 64) : 64 * (i % 64) + 64], torch.arange(64) % 8


def first(samples):
    return samples[0]


if __name__ == "__main__":
    loader = DataLoader(Rows(), 1, collate_fn=first, shuffle=True, pin_memory=FIXED)
    model = dense(1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in loader:
            x = x.to("cuda", non_blocking=FIXED)
            step(model, optimizer, x[:, :1024].float() / 255, y)
