# SPDX-License-Identifier: Apache-2.0
# expects: padded-eval
# needs: ranks
"""Two ranks evaluate an odd number of samples."""

import torch
from shared import dense, train
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    distributed.init_process_group("gloo")
    data = TensorDataset(torch.rand(1280, 1024), torch.arange(1280) % 8)
    odd = TensorDataset(torch.rand(101, 1024), torch.arange(101) % 8)
    check = DataLoader(odd, 64, sampler=DistributedSampler(odd, shuffle=False))
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(dense(1024, 1024, 4))

    def evaluate(epoch):
        sampler.set_epoch(epoch + 1)
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum() for x, y in check)
        model.train()
        return right

    train(DataLoader(data, 64, sampler=sampler), model, each_epoch=evaluate)
