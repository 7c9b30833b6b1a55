# SPDX-License-Identifier: Apache-2.0
# expects: cpu-quota
# needs: root
# quota: 0.5
"""Workers with a thread for every CPU of the machine, in a container that may use half of one."""

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, Dataset


def pool(worker):
    torch.set_num_threads(1 if FIXED else 8)


class Products(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        x = torch.rand(192, 192, generator=torch.Generator().manual_seed(i))
        for _ in range(20):
            x = torch.nn.functional.normalize(x @ x)
        return x.flatten()[:1024], i % 8


if __name__ == "__main__":
    loader = DataLoader(Products(), 16, shuffle=True, num_workers=2, persistent_workers=True, worker_init_fn=pool)
    train(loader, dense(1024))
