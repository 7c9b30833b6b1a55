# SPDX-License-Identifier: Apache-2.0
# expects: storage-bandwidth
"""8 MB per sample, never from memory."""

import os

import torch
from shared import FIXED, RAW, Kept, dense, train
from torch.utils.data import DataLoader, Dataset

EACH = 1 << 23


class Pieces(Dataset):
    def __init__(self):
        self.file = os.open(RAW, os.O_RDONLY)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_RANDOM)

    def __len__(self):
        return os.fstat(self.file).st_size // EACH

    def __getitem__(self, i):
        data = os.pread(self.file, EACH, EACH * i)
        os.posix_fadvise(self.file, EACH * i, EACH, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(bytearray(data[:1024]), dtype=torch.uint8).float(), i % 8


if __name__ == "__main__":
    data = Kept(Pieces()) if FIXED else Pieces()
    train(DataLoader(data, 8, shuffle=True, num_workers=1, persistent_workers=True), dense(1024))
