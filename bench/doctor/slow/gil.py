# SPDX-License-Identifier: Apache-2.0
# expects: gil
"""Pure Python in every step of the training process."""

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, TensorDataset


def log_histogram(x, loss):
    counts = {}
    for value in x.flatten()[:60_000].tolist():
        counts[round(value, 2)] = counts.get(round(value, 2), 0) + 1
    return counts


if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    train(DataLoader(data, 64, shuffle=True), dense(1024, 512, 3), each_step=None if FIXED else log_histogram)
