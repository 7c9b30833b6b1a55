# SPDX-License-Identifier: Apache-2.0
"""A short evaluation after every epoch."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(8192, 1024), torch.arange(8192) % 8)
    check = DataLoader(TensorDataset(torch.rand(128, 1024), torch.arange(128) % 8), 64)
    model = dense(1024, 1024, 8)

    def evaluate(epoch):
        with torch.no_grad():
            return sum((model(x).argmax(1) == y).sum() for x, y in check)

    train(DataLoader(data, 128, shuffle=True), model, each_epoch=evaluate)
