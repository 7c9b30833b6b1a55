# SPDX-License-Identifier: Apache-2.0
# expects: slow-samples
"""One file in fifty is far larger than the others."""

import os
import zlib
from pathlib import Path

import torch
from shared import FIXED, ROWS, dense, train
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self):
        every = sorted(map(str, Path(ROWS).iterdir()))
        self.files = [path for path in every if not FIXED or os.path.getsize(path) < 100_000]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        data = bytearray(zlib.decompress(Path(self.files[i]).read_bytes()))
        return torch.frombuffer(data, dtype=torch.uint8)[:1024].float(), i % 8


if __name__ == "__main__":
    train(DataLoader(Files(), 16, shuffle=True, num_workers=2, persistent_workers=True), dense(1024))
