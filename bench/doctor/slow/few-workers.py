# SPDX-License-Identifier: Apache-2.0
# expects: few-workers
"""Work in the dataset itself, without workers."""

import zlib

import torch
from shared import dense, train
from torch.utils.data import DataLoader, Dataset


class Packed(Dataset):
    rows = [zlib.compress(torch.randint(0, 9, (120_000,), dtype=torch.uint8).numpy().tobytes(), 1) for _ in range(64)]

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        data = bytearray(zlib.decompress(self.rows[i % 64]))
        return torch.frombuffer(data, dtype=torch.uint8)[:1024].float(), i % 8


if __name__ == "__main__":
    train(DataLoader(Packed(), 32, shuffle=True, num_workers=0), dense(1024))
