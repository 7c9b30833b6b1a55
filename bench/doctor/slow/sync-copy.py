# SPDX-License-Identifier: Apache-2.0
# expects: sync-copy
# needs: gpu
"""Batches in pinned memory whose copies block: Python launches nothing meanwhile."""

import torch
from shared import FIXED, Batches, dense, step
from torch.utils.data import DataLoader

if __name__ == "__main__":
    data = Batches((1024, 100_000), torch.uint8, 2)
    data.x = data.x.pin_memory()
    data.y = data.y.pin_memory()
    loader = DataLoader(data, None, shuffle=True)
    model = dense(1024, 256, 50)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in loader:
            x, y = x.to("cuda", non_blocking=FIXED), y.to("cuda", non_blocking=FIXED)
            step(model, optimizer, x[:, :1024].float() / 255, y)
