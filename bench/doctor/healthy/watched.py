# SPDX-License-Identifier: Apache-2.0
"""Batches of a generator, marked by stoker.watch."""

import stoker
import torch
from shared import dense, train


def batches():
    for i in range(50):
        yield torch.rand(128, 1024, generator=torch.Generator().manual_seed(i)), torch.arange(128) % 8


class Epochs:
    def __iter__(self):
        return batches()


if __name__ == "__main__":
    train(stoker.watch(Epochs()), dense(1024, 1024, 8))
