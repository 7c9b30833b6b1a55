# SPDX-License-Identifier: Apache-2.0
# expects: transform
"""A transform in Python that takes most of the loader's time."""

from shared import FIXED, PHOTOS, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def vignette(image):
    """Darkens the corners, pixel by pixel."""
    width, height = image.size
    pixels = image.load()
    for y in range(height):
        for x in range(width):
            far = abs(2 * x - width) / width * abs(2 * y - height) / height
            pixels[x, y] = tuple(int(value * (1 - far)) for value in pixels[x, y])
    return image


before = [transforms.RandomResizedCrop(224)]
after = [transforms.ToTensor()]
ops = transforms.Compose([*before, *([] if FIXED else [vignette]), *after])

if __name__ == "__main__":
    loader = DataLoader(datasets.ImageFolder(PHOTOS, ops), 32, shuffle=True, num_workers=2, persistent_workers=True)
    train(loader, network())
