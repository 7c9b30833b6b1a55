# SPDX-License-Identifier: Apache-2.0
# expects: cpu-quota
# needs: root
# quota: 0.5
"""More work than the container's quota allows."""

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, Dataset


class Sorted(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return torch.rand(20_000, generator=torch.Generator().manual_seed(i)).sort()[0][:1024], i % 8


if __name__ == "__main__":
    workers = 1 if FIXED else 8
    train(DataLoader(Sorted(), 32, shuffle=True, num_workers=workers, persistent_workers=True), dense(1024, 512, 3))
