# SPDX-License-Identifier: Apache-2.0
"""Rows in memory, and a model that takes longer than they do."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    train(DataLoader(data, 128, shuffle=True), dense(1024, 1024, 8))
