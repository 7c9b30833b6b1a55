# SPDX-License-Identifier: Apache-2.0
# needs: ranks
"""Two ranks with a sampler, and batches that are large enough to hide the exchange of gradients."""

import torch
from shared import dense, train
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    distributed.init_process_group("gloo")
    data = TensorDataset(torch.rand(16384, 1024), torch.arange(16384) % 8)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 1024, sampler=sampler)
    model = DistributedDataParallel(dense(1024, 1024, 2))
    train(loader, model, each_epoch=lambda epoch: sampler.set_epoch(epoch + 1))
