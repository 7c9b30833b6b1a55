# SPDX-License-Identifier: Apache-2.0
"""Gradients are accumulated over four batches."""

import torch
from shared import dense, meter
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    model = dense(1024, 1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for i, (x, y) in enumerate(DataLoader(data, 64, shuffle=True)):
            torch.nn.functional.cross_entropy(model(x), y).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
            meter.count(len(y))
