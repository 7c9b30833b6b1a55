# SPDX-License-Identifier: Apache-2.0
"""A batch sampler."""

import torch
from shared import dense, train
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    sampler = BatchSampler(RandomSampler(data), 128, drop_last=True)
    train(DataLoader(data, batch_sampler=sampler), dense(1024, 1024, 8))
