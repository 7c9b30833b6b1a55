# SPDX-License-Identifier: Apache-2.0
"""bf16 mixed precision."""

import torch
from shared import DEVICE, dense, meter
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    model = dense(1024, 1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in DataLoader(data, 128, shuffle=True):
            with torch.autocast(DEVICE, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.count(len(y))
