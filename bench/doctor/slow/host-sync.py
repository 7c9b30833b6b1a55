# SPDX-License-Identifier: Apache-2.0
# expects: host-sync
# needs: gpu
"""Values are read from the GPU after every layer."""

import torch
from shared import FIXED, dense, train
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(40)])
        self.last = dense(1024)

    def forward(self, x):
        for part in self.parts:
            x = part(x).relu()
            if not FIXED and x.mean().item() > 1e9:
                raise ValueError("diverged")
        return self.last(x)


if __name__ == "__main__":
    data = TensorDataset(torch.rand(65536, 1024), torch.arange(65536) % 8)
    train(DataLoader(data, 1024, shuffle=True, num_workers=8), Watched().cuda())
