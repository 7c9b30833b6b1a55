# SPDX-License-Identifier: Apache-2.0
"""h5py in a torch DataLoader: encoded photos as bytes of any length, each worker with a file of its own."""

import argparse
from pathlib import Path

import h5py
import numpy as np
import protocol
import torch
import torch_parts


def prepare(o: argparse.Namespace) -> None:
    samples = protocol.list_samples(o.folder)
    with h5py.File(f"{o.work}/photos.h5", "w") as file:
        images = file.create_dataset("image", len(samples), dtype=h5py.vlen_dtype(np.uint8))
        for i, (path, _) in enumerate(samples):
            images[i] = np.frombuffer(Path(path).read_bytes(), np.uint8)
        file["label"] = np.array([label for _, label in samples])


class Photos(torch.utils.data.Dataset):
    def __init__(self, path: str) -> None:
        self.path = path
        self.file: h5py.File | None = None
        self.transform = torch_parts.from_pil({}, 0.5)
        with h5py.File(path) as file:
            self.n = len(file["label"])

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        if self.file is None:
            self.file = h5py.File(self.path)
        return self.transform(torch_parts.decode_bytes(self.file["image"][i].tobytes())), int(self.file["label"][i])


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    photos = Photos(f"{o.work}/photos.h5")
    return protocol.epochs_of(torch_parts.lengths(torch_parts.endless(photos, o.threads)), len(photos))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    raise protocol.Skip("its pixels are those of torch")


if __name__ == "__main__":
    protocol.main(["h5py", "torch", "torchvision", "pillow"], open_loader, pixels, prepare)
