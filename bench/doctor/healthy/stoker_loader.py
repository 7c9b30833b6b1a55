# SPDX-License-Identifier: Apache-2.0
"""Stoker's Loader."""

import stoker
from shared import PHOTOS, network, train

if __name__ == "__main__":
    ops = "RandomResizedCrop(64) | RandomHorizontalFlip | Normalize"
    train(stoker.Loader(PHOTOS, ops, batch_size=32, shuffle=True, drop_last=True), network(64, 6))
