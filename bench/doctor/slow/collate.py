# SPDX-License-Identifier: Apache-2.0
# expects: collate
"""A collate function that copies numbers one by one."""

import torch
from shared import FIXED, dense, train
from torch.utils.data import DataLoader, TensorDataset, default_collate


def join(samples):
    x = torch.tensor([[float(value) for value in sample.tolist()] for sample, _ in samples])
    return x, torch.tensor([int(label) for _, label in samples])


if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 2048), torch.arange(4096) % 8)
    collate = default_collate if FIXED else join
    train(DataLoader(data, 64, shuffle=True, num_workers=2, persistent_workers=True, collate_fn=collate), dense(2048))
