# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with torchvision's transforms: a worker a core, kept for all epochs, and no gap between epochs.

--mode pil   transforms on PIL images (with Pillow or Pillow-SIMD, whichever the environment has)
--mode v2    transforms.v2 on uint8 tensors
"""

import argparse
from collections.abc import Iterator

import numpy as np
import protocol
import torch
import torch_parts
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Photos(Dataset):
    def __init__(self, folder: str, read, transform) -> None:
        self.samples, self.read, self.transform = protocol.list_samples(folder), read, transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int):
        path, label = self.samples[i]
        return self.transform(self.read(path)), label


class Forever:
    """The batch sampler over and over, as timm's MultiEpochsDataLoader has it: workers never wait between epochs."""

    def __init__(self, sampler: BatchSampler) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            yield from self.sampler


def parts(mode: str, crop: dict, flip: float):
    if mode == "v2":
        return torch_parts.best_reader(), torch_parts.from_tensor(crop, flip)
    return torch_parts.read_pil, torch_parts.from_pil(crop, flip)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    photos = Photos(o.folder, *parts(o.mode, {}, 0.5))
    order = Forever(BatchSampler(RandomSampler(photos), protocol.BATCH, drop_last=True))
    loader = DataLoader(photos, batch_sampler=order, num_workers=o.threads, prefetch_factor=4)
    return protocol.epochs_of(torch_parts.lengths(iter(loader)), len(photos))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    read, transform = parts(o.mode, torch_parts.FIXED, 0)
    return torch.stack([transform(read(path)) for path in paths]).numpy()


def pillow() -> str:
    import importlib.metadata

    names = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    return "pillow-simd" if "pillow-simd" in names else "pillow"


if __name__ == "__main__":
    protocol.main(["torch", "torchvision", pillow()], open_loader, pixels)
