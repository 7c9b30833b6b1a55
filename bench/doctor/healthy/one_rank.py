# SPDX-License-Identifier: Apache-2.0
"""A sampler for ranks whose epoch is set."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    data = TensorDataset(torch.rand(1280, 1024), torch.arange(1280) % 8)
    sampler = DistributedSampler(data, 1, 0)
    loader = DataLoader(data, 128, sampler=sampler)
    train(loader, dense(1024, 1024, 8), each_epoch=lambda epoch: sampler.set_epoch(epoch + 1))
