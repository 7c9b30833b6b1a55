# SPDX-License-Identifier: Apache-2.0
# expects: storage-iops
"""Many small reads in random order, never from memory."""

import os
import random

import torch
from shared import FIXED, RAW, dense, train
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    """256 blocks of 4 KB per sample; the fixed one reads them in one piece."""

    def __init__(self):
        self.file = os.open(RAW, os.O_RDONLY)
        self.blocks = os.fstat(self.file).st_size // 4096

    def __len__(self):
        return self.blocks // 256

    def __getitem__(self, i):
        places = random.Random(i)
        data = b""
        for _ in range(1 if FIXED else 256):
            place = 4096 * (256 * i if FIXED else places.randrange(self.blocks))
            data = os.pread(self.file, 4096 * (256 if FIXED else 1), place)
            os.posix_fadvise(self.file, place, 4096 * 256, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(bytearray(data[:1024]), dtype=torch.uint8).float(), i % 8


if __name__ == "__main__":
    train(DataLoader(Blocks(), 16, shuffle=True, num_workers=1, persistent_workers=True), dense(1024))
