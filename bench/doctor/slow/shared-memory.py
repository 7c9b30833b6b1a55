# SPDX-License-Identifier: Apache-2.0
# expects: shared-memory
# needs: root
# before: mount -t tmpfs -o size=2m tmpfs /dev/shm
"""Batches that are larger than /dev/shm, which containers make small."""

import torch
from shared import FIXED, network, train
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return torch.full((3, 128, 128), i / 4096), i % 8


if __name__ == "__main__":
    train(DataLoader(Images(), 32, shuffle=True, num_workers=0 if FIXED else 2), network())
