# SPDX-License-Identifier: Apache-2.0
# expects: many-workers
"""Sixteen workers that prepare batches of which the model takes few."""

import torch
from shared import network, train
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        image = torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(i))
        for _ in range(12):
            image = image.flatten().sort()[0].view(3, 96, 96)
        return image, i % 8


if __name__ == "__main__":
    loader = DataLoader(Noise(), 32, shuffle=True, num_workers=16, persistent_workers=True)
    train(loader, network(32, 3))
