# SPDX-License-Identifier: Apache-2.0
"""An iterable dataset."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(4096):
            yield torch.full((1024,), i / 4096), i * 7919 % 8


if __name__ == "__main__":
    train(DataLoader(Stream(), 128), dense(1024, 1024, 8))
