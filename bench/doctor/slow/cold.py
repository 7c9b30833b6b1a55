# SPDX-License-Identifier: Apache-2.0
# expects: cold
# needs: root
# storage: bps 4000000
# cold: photos
"""The first epoch from slow storage; later ones find the photos in memory."""

from pathlib import Path

from shared import FIXED, PHOTOS, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])

if __name__ == "__main__":
    if FIXED:
        for path in Path(PHOTOS).rglob("*.jpg"):
            path.read_bytes()
    loader = DataLoader(datasets.ImageFolder(PHOTOS, ops), 8, shuffle=True, num_workers=2, persistent_workers=True)
    train(loader, network())
