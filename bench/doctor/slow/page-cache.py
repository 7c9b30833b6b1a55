# SPDX-License-Identifier: Apache-2.0
# expects: page-cache
# needs: root
# memory: 1200
# cold: blobs
"""1.2 GB of files, in a container with as much memory for them and the script together."""

from pathlib import Path

import torch
from shared import BLOBS, FIXED, Kept, dense, train
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self):
        self.paths = sorted(map(str, Path(BLOBS).iterdir()))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        data = Path(self.paths[i]).read_bytes()
        return torch.frombuffer(bytearray(data[:1024]), dtype=torch.uint8).float(), i % 8


if __name__ == "__main__":
    data = Kept(Blobs()) if FIXED else Blobs()
    train(DataLoader(data, 8, shuffle=True, num_workers=1, persistent_workers=True), dense(1024))
