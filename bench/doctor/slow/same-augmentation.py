# SPDX-License-Identifier: Apache-2.0
# expects: same-augmentation
"""Workers whose random numbers all begin with the same state."""

import numpy as np
import torch
from shared import dense, train
from torch.utils.data import DataLoader, Dataset


def seeded(worker):
    np.random.seed(0)


class Noisy(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        return torch.full((1024,), i / 4096) + torch.from_numpy(np.random.rand(1024)).float(), i % 8


if __name__ == "__main__":
    loader = DataLoader(Noisy(), 64, shuffle=True, num_workers=2, persistent_workers=True, worker_init_fn=seeded)
    train(loader, dense(1024, 1024, 8))
