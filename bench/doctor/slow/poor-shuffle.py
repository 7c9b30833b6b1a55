# SPDX-License-Identifier: Apache-2.0
# expects: poor-shuffle
"""Samples in the order of their classes."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) // 64)
    train(DataLoader(data, 64), dense(1024, 1024, 8))
