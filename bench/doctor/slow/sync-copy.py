# SPDX-License-Identifier: Apache-2.0
# expects: sync-copy
# needs: gpu
"""Large batches in pinned memory whose copies block: Python launches nothing meanwhile.

Python takes as long for a step as the GPU takes for a copy and its kernels, so that the two can overlap.
"""

import torch
from shared import FIXED, Batches, dense, step
from torch.utils.data import DataLoader

if __name__ == "__main__":
    data = Batches((1024, 200_000), torch.uint8, 1)
    data.x = data.x.pin_memory()
    data.y = data.y.pin_memory()
    loader = DataLoader(data, None, shuffle=True)
    model = dense(1024, 256, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for x, y in loader:
            x, y = x.to("cuda", non_blocking=FIXED), y.to("cuda", non_blocking=FIXED)
            step(model, optimizer, x[:, :1024].float() / 255, y)
