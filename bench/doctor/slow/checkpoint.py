# SPDX-License-Identifier: Apache-2.0
# expects: checkpoint
"""The whole model is saved after every 20 steps."""

import torch
from shared import FIXED, dense, meter, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    meter.period = 20
    data = TensorDataset(torch.rand(1280, 1024), torch.arange(1280) % 8)
    model = dense(1024, 1024, 4)
    ballast = torch.rand(40_000_000)

    def save(epoch):
        if not FIXED:
            torch.save({"model": model.state_dict(), "ema": ballast}, "checkpoint.pt")

    train(DataLoader(data, 64, shuffle=True), model, each_epoch=save)
