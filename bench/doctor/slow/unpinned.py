# SPDX-License-Identifier: Apache-2.0
# expects: unpinned
# needs: gpu
"""Large batches from memory that is not pinned. The network already computes in bf16, so only copies can gain."""

import torch
from shared import FIXED, Batches, dense, step
from torch.utils.data import DataLoader

if __name__ == "__main__":
    data = Batches((4096, 8192), torch.uint8, 1)
    data.x.share_memory_()  # workers pass it on without a copy
    loader = DataLoader(data, None, num_workers=2, persistent_workers=True, pin_memory=FIXED)
    model = dense(4096, 4096, 8).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    while True:
        for x, y in loader:
            x, y = x.to("cuda", non_blocking=FIXED), y.to("cuda", non_blocking=FIXED)
            step(model, optimizer, x[:, ::2].bfloat16() / 255, y)
