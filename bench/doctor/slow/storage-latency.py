# SPDX-License-Identifier: Apache-2.0
# expects: storage-latency
# needs: root, fuse
# before: { PYTHON late.py "$STOKER_DOCTOR_DATA/photos" "$STOKER_DOCTOR_DATA/late" & } && sleep 3
"""The usual torchvision script, on a file system that takes long for every read."""

from shared import FIXED, LATE, PHOTOS, network, train
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()])

if __name__ == "__main__":
    data = datasets.ImageFolder(PHOTOS if FIXED else LATE, ops)
    train(DataLoader(data, 16, shuffle=True, num_workers=2, persistent_workers=True), network())
