# SPDX-License-Identifier: Apache-2.0
"""A small checkpoint after every epoch."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(8192, 1024), torch.arange(8192) % 8)
    model = dense(1024, 1024, 8)

    def save(epoch):
        torch.save(model[-1].state_dict(), "small.pt")

    train(DataLoader(data, 128, shuffle=True), model, each_epoch=save)
