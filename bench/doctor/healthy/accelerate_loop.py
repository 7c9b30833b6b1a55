# SPDX-License-Identifier: Apache-2.0
"""Accelerate."""

import accelerate
import torch
from shared import dense, meter
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    model = dense(1024, 1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    accelerator = accelerate.Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, 128, shuffle=True))
    while True:
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            meter.count(len(y))
