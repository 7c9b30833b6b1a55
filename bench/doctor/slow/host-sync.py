# SPDX-License-Identifier: Apache-2.0
# expects: host-sync
# needs: gpu
"""Logs the norm of every gradient and of every weight: each is read from the GPU before the next one is launched.

Layers are so large that Python runs ahead of the GPU, and compute in bf16: only the reads can be gained.
"""

import torch
from shared import FIXED, Batches, dense, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    model = dense(64, 4096, 16).bfloat16()
    norms = []

    def log(x, loss):
        for p in model.parameters():
            for values in (p.grad, p.detach()):
                norm = values.norm()
                norms.append(norm if FIXED else norm.item())
        norms.clear()

    loader = DataLoader(Batches((2048, 64), torch.bfloat16), None, shuffle=True)
    train(loader, model, torch.optim.SGD(model.parameters(), lr=0.001), each_step=log)
