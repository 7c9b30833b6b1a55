# SPDX-License-Identifier: Apache-2.0
"""Workers that stay between epochs, and keep up with the model."""

import torch
from shared import network, train
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(i)), i % 8


if __name__ == "__main__":
    train(DataLoader(Noise(), 32, shuffle=True, num_workers=1, persistent_workers=True), network(64, 6))
