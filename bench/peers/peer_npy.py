# SPDX-License-Identifier: Apache-2.0
"""np.load(mmap_mode="r") in a torch DataLoader: rows of 3 x 224 x 224 uint8 as float32."""

import argparse

import numpy as np
import protocol
import torch
import torch_parts

ROWS = 1024


def prepare(o: argparse.Namespace) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (ROWS, 3, protocol.SIZE, protocol.SIZE), np.uint8)
    np.save(f"{o.work}/rows.npy", rows)


class Rows(torch.utils.data.Dataset):
    def __init__(self, path: str) -> None:
        self.rows = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.from_numpy(self.rows[i].astype(np.float32))


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    batches = torch_parts.endless(Rows(f"{o.work}/rows.npy"), o.threads)
    return protocol.epochs_of((len(rows) for rows in batches), ROWS)


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    raise protocol.Skip("it reads no photos")


if __name__ == "__main__":
    protocol.main(["torch", "numpy"], open_loader, pixels, prepare)
