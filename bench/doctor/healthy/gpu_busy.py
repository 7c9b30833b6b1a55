# SPDX-License-Identifier: Apache-2.0
# needs: gpu
"""Large layers in bf16, workers, pinned memory, and copies that do not block."""

import torch
from shared import Batches, dense, step
from torch.utils.data import DataLoader

if __name__ == "__main__":
    loader = DataLoader(
        Batches((4096, 256)), None, shuffle=True, num_workers=2, persistent_workers=True, pin_memory=True
    )
    model = torch.nn.Sequential(dense(256, 8192, 6)).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    while True:
        for x, y in loader:
            x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
            step(model, optimizer, x.bfloat16(), y)
