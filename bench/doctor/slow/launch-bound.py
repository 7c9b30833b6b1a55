# SPDX-License-Identifier: Apache-2.0
# expects: launch-bound
# needs: gpu
"""Hundreds of small kernels per step."""

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(65536, 128), torch.arange(65536) % 8)
    model = dense(128, 128, 120)
    train(DataLoader(data, 256, shuffle=True, num_workers=8), torch.compile(model) if FIXED else model)
