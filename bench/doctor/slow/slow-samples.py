# SPDX-License-Identifier: Apache-2.0
# expects: slow-samples
"""One photo in fifty is far larger than the others."""

import os

from shared import FIXED, MIXED, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])


def is_small(path):
    return not FIXED or os.path.getsize(path) < 300_000


if __name__ == "__main__":
    data = datasets.ImageFolder(MIXED, ops, is_valid_file=is_small)
    train(DataLoader(data, 16, shuffle=True, num_workers=2, persistent_workers=True), network())
