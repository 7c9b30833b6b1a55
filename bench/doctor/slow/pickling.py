# SPDX-License-Identifier: Apache-2.0
# expects: pickling
"""Batches that contain many small Python objects."""

import torch
from shared import FIXED, dense, step
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    things = [{"box": (i, i + 1, i + 2, i + 3), "name": f"thing {i}", "score": i / 3000} for i in range(3000)]

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return torch.full((1024,), i / 4096), i % 8, () if FIXED else self.things


def join(samples):
    x, y, things = zip(*samples, strict=True)
    return torch.stack(x), torch.tensor(y), things


if __name__ == "__main__":
    loader = DataLoader(Boxes(), 32, shuffle=True, num_workers=2, persistent_workers=True, collate_fn=join)
    model = dense(1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y, _things in loader:
            step(model, optimizer, x, y)
