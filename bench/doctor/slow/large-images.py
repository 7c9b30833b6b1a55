# SPDX-License-Identifier: Apache-2.0
# expects: large-images
"""Photos of 12 megapixels for images of 224 x 224."""

from shared import FIXED, LARGE, SHRUNK, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])

if __name__ == "__main__":
    data = datasets.ImageFolder(SHRUNK if FIXED else LARGE, ops)
    loader = DataLoader(data, 4, shuffle=True, num_workers=2, persistent_workers=True)
    train(loader, network())
