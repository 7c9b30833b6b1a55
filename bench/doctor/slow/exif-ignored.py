# SPDX-License-Identifier: Apache-2.0
# expects: exif-ignored
"""Photos that are rotated by EXIF, which ImageFolder ignores."""

from shared import TURNED, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])

if __name__ == "__main__":
    train(DataLoader(datasets.ImageFolder(TURNED, ops), 32, shuffle=True, num_workers=2), network(64, 6))
