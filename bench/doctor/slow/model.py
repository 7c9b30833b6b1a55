# SPDX-License-Identifier: Apache-2.0
# expects: model
# options: --try amp-bf16
"""A model that keeps the device busy, in float32."""

import torch
from shared import DEVICE, FIXED, dense, train
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    size, depth = (4096, 32) if DEVICE == "cuda" else (1024, 8)
    data = TensorDataset(torch.rand(4096, size), torch.arange(4096) % 8)
    model = dense(size, size, depth)
    if FIXED:
        torch.set_float32_matmul_precision("high")
        plain = model.forward
        model.forward = lambda x: torch.autocast(DEVICE, torch.bfloat16)(plain)(x)
    train(DataLoader(data, 256, shuffle=True, drop_last=True), model)
