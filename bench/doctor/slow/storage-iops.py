# SPDX-License-Identifier: Apache-2.0
# expects: storage-iops
"""Many small reads in random order, never from memory."""

import os
import random

import torch
from shared import FIXED, RAW, Kept, dense, train
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    """256 blocks of 4 KB per sample."""

    def __init__(self):
        self.file = os.open(RAW, os.O_RDONLY)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)  # also what is kept in larger pieces than 1 MB
        self.blocks = os.fstat(self.file).st_size // 4096

    def __len__(self):
        return self.blocks // 1024

    def __getitem__(self, i):
        places = random.Random(i)
        data = b""
        for _ in range(256):
            place = 4096 * places.randrange(self.blocks)
            data = os.pread(self.file, 4096, place)
            os.posix_fadvise(self.file, place, 4096 * 256, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(bytearray(data[:1024]), dtype=torch.uint8).float(), i % 8


if __name__ == "__main__":
    data = Kept(Blocks()) if FIXED else Blocks()
    train(DataLoader(data, 16, shuffle=True, num_workers=1, persistent_workers=True), dense(1024))
