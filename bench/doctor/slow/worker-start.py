# SPDX-License-Identifier: Apache-2.0
# expects: worker-start
"""Short epochs, and workers that start again for each of them."""

import torch
from shared import dense, meter, train
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, i):
        return torch.rand(1024, generator=torch.Generator().manual_seed(i)), i % 8


if __name__ == "__main__":
    meter.period = 20
    train(DataLoader(Rows(), 32, shuffle=True, num_workers=2, multiprocessing_context="spawn"), dense(1024, 512, 3))
