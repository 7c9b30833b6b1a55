# SPDX-License-Identifier: Apache-2.0
"""Stoker's DataLoader on an ImageFolder."""

from shared import PHOTOS, network, train
from stoker import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()])

if __name__ == "__main__":
    train(DataLoader(datasets.ImageFolder(PHOTOS, ops), 32, shuffle=True, num_workers=2), network(64, 6))
