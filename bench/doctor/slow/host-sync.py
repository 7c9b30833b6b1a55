# SPDX-License-Identifier: Apache-2.0
# expects: host-sync
# needs: gpu
"""Logs the norm of every gradient: a hundred values are read from the GPU in every step."""

from shared import FIXED, Batches, dense, train
from torch.utils.data import DataLoader

if __name__ == "__main__":
    model = dense(256, 256, 48)
    norms = []

    def log(x, loss):
        for p in model.parameters():
            norm = p.grad.norm()
            norms.append(norm if FIXED else norm.item())
        norms.clear()

    train(DataLoader(Batches((256, 256)), None, shuffle=True), model, each_step=log)
