# SPDX-License-Identifier: Apache-2.0
"""Rows of two lengths, in batches of one length each."""

import random

import torch
from shared import meter
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Text(Dataset):
    def __len__(self):
        return 2048

    def __getitem__(self, i):
        length = 64 if i % 2 else 128
        return torch.randint(0, 500, (length,), generator=torch.Generator().manual_seed(i)), i // 2 % 8


class Buckets:
    def __len__(self):
        return 64

    def __iter__(self):
        batches = [list(range(start + k, start + 64 + k, 2)) for start in range(0, 2048, 64) for k in (0, 1)]
        random.shuffle(batches)
        return iter(batches)


if __name__ == "__main__":
    model = nn.Sequential(nn.Embedding(500, 512), nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in DataLoader(Text(), batch_sampler=Buckets()):
            loss = nn.functional.cross_entropy(model(x).mean(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.count(len(y))
