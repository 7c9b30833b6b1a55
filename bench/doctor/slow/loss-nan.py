# SPDX-License-Identifier: Apache-2.0
# expects: loss-nan
"""A learning rate that is far too high."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(1e3 * torch.rand(4096, 1024), torch.arange(4096) % 8)
    model = dense(1024, 1024, 8)
    train(DataLoader(data, 64, shuffle=True), model, torch.optim.SGD(model.parameters(), lr=1e6))
