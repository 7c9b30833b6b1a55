# SPDX-License-Identifier: Apache-2.0
# expects: ranks
# needs: ranks
"""Two ranks, one of which has a slow loader."""

import os

import torch
from shared import FIXED, dense, train
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Sorted(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        slow = os.environ["RANK"] == "1" and not FIXED
        return torch.rand(40_000 if slow else 1024).sort()[0][:1024], i % 8


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    data = Sorted()
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(dense(1024, 256, 2))
    loader = DataLoader(data, 32, sampler=sampler)
    train(loader, model, each_epoch=lambda epoch: sampler.set_epoch(epoch + 1))
