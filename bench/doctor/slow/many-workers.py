# SPDX-License-Identifier: Apache-2.0
# expects: many-workers
"""Twelve workers that wait for one lock, without sleeping."""

import multiprocessing
import time

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, Dataset


class Locked(Dataset):
    """Samples of a reader that only one process may use at a time; a waiting process tries again and again."""

    def __init__(self):
        self.lock = multiprocessing.Lock()

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        while not self.lock.acquire(block=False):
            pass
        try:
            x = torch.rand(1024, generator=torch.Generator().manual_seed(i))
            end = time.thread_time() + 0.001
            while time.thread_time() < end:
                x = x.sort().values
        finally:
            self.lock.release()
        return x, i % 8


if __name__ == "__main__":
    workers = 2 if FIXED else 12
    train(DataLoader(Locked(), 16, shuffle=True, num_workers=workers, persistent_workers=True), dense(1024))
