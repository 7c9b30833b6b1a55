# SPDX-License-Identifier: Apache-2.0
"""The usual torchvision script, with a model that is the limit."""

from shared import PHOTOS, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor()])

if __name__ == "__main__":
    loader = DataLoader(datasets.ImageFolder(PHOTOS, ops), 32, shuffle=True, num_workers=1, persistent_workers=True)
    train(loader, network(160, 8))
