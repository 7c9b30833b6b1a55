# SPDX-License-Identifier: Apache-2.0
# expects: large-images
"""Photos of 12 megapixels for images of 224 x 224."""

from shared import LARGE, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])

if __name__ == "__main__":
    loader = DataLoader(datasets.ImageFolder(LARGE, ops), 4, shuffle=True, num_workers=2, persistent_workers=True)
    train(loader, network())
