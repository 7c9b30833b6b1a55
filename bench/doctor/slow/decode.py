# SPDX-License-Identifier: Apache-2.0
# expects: decode
"""The usual torchvision script: an ImageFolder with two workers, and a small network."""

from shared import PHOTOS, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])

if __name__ == "__main__":
    loader = DataLoader(datasets.ImageFolder(PHOTOS, ops), 32, shuffle=True, num_workers=2, persistent_workers=True)
    train(loader, network())
