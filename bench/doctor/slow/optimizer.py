# SPDX-License-Identifier: Apache-2.0
# expects: optimizer
"""An optimizer that updates a thousand small tensors one by one."""

import torch
from shared import dense, train
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = dense(1024, 256, 2)
        self.more = nn.ParameterList([nn.Parameter(torch.zeros(64)) for _ in range(1500)])

    def forward(self, x):
        return self.body(x) + sum(one.sum() for one in self.more)


if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    model = Wide()
    train(DataLoader(data, 64, shuffle=True), model, torch.optim.Adam(model.parameters(), 1e-3, foreach=False))
