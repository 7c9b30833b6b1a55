# SPDX-License-Identifier: Apache-2.0
# expects: rank-duplicates
# needs: ranks
"""Two ranks that both read everything, in the same order."""

import torch
from shared import dense, train
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    distributed.init_process_group("gloo")
    data = TensorDataset(torch.rand(4096, 1024), torch.arange(4096) % 8)
    train(DataLoader(data, 64, shuffle=True), DistributedDataParallel(dense(1024, 1024, 4)))
