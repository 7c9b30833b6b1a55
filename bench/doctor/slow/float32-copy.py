# SPDX-License-Identifier: Apache-2.0
# expects: float32-copy
# needs: gpu
"""Images as float32 from pinned memory, where uint8 is enough."""

import torch
from shared import FIXED, dense, step
from torch.utils.data import DataLoader, Dataset

KIND = torch.uint8 if FIXED else torch.float32


class Images(Dataset):
    data = [torch.randint(0, 255, (256, 3, 224, 224), dtype=torch.uint8).to(KIND).pin_memory() for _ in range(8)]

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return self.data[i % 8], torch.arange(256) % 8


def first(samples):
    return samples[0]


if __name__ == "__main__":
    model = dense(3 * 224 * 224, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Images(), 1, collate_fn=first, shuffle=True)
    while True:
        for x, y in loader:
            x = x.to("cuda", non_blocking=True).float().flatten(1) / 255
            step(model, optimizer, x, y)
