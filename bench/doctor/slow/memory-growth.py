# SPDX-License-Identifier: Apache-2.0
# expects: memory-growth
"""Batches that are kept for ever."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

kept = []

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    train(DataLoader(data, 64, shuffle=True), dense(1024, 512, 3), each_step=lambda x, loss: kept.append(x.clone()))
