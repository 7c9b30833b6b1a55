# SPDX-License-Identifier: Apache-2.0
# expects: epoch-fixed
"""A sampler for ranks whose epoch is never set."""

import torch
from shared import dense, train
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    data = TensorDataset(torch.rand(640, 1024), torch.arange(640) % 8)
    train(DataLoader(data, 64, sampler=DistributedSampler(data, 1, 0)), dense(1024, 1024, 8))
