# SPDX-License-Identifier: Apache-2.0
# expects: communication
# needs: ranks
"""Two ranks that exchange the gradients of a large and cheap layer."""

import torch
from shared import FIXED, step
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    distributed.init_process_group("gloo")
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    sampler = torch.utils.data.DistributedSampler(data)
    model = DistributedDataParallel(nn.Linear(1024, 8192))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, 8, sampler=sampler):
            model.require_backward_grad_sync = not FIXED
            step(model, optimizer, x, y)
        epoch += 1
