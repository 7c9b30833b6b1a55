# SPDX-License-Identifier: Apache-2.0
# expects: launch-bound
# needs: gpu
"""An activation of ten small operations after every layer: hundreds of kernels per step."""

import torch
from shared import FIXED, Batches, dense, train
from torch import nn
from torch.utils.data import DataLoader


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        y = self.layer(x)
        return x + 0.5 * y * (1 + torch.tanh(0.797885 * (y + 0.044715 * y * y * y)))


if __name__ == "__main__":
    model = nn.Sequential(*[Block(128) for _ in range(16)], dense(128, 128)).cuda()
    loader = DataLoader(Batches((256, 128)), None, shuffle=True)
    train(loader, torch.compile(model) if FIXED else model)
