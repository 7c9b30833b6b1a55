# SPDX-License-Identifier: Apache-2.0
"""Datasets and transforms in Python: stoker.DataLoader beside torch's, with the same workers, in turn.

    python_rows.py PHOTOS [--workers 2] [--rounds 3] [--only tokens,small]

Every measurement is a process of its own and one epoch, without the first batch, which pays for the start. A ratio is
the median of the rounds' own.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from package import torchs
from PIL import Image
from torch.utils import data

BATCH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Files(data.Dataset[Any]):
    """A dataset as people write it."""

    def __init__(self, photos: str, transform: Any) -> None:
        self.paths, self.transform = sorted(Path(photos).rglob("*.*")), transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        with Image.open(self.paths[i]) as image:
            return self.transform(image.convert("RGB")), i % 10


class Small(data.Dataset[Any]):
    """32-pixel images in memory."""

    images = np.random.default_rng(0).integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Any:
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1).float().div_(255)
        return (image.flip(2) if random.random() < 0.5 else image).sub_(0.5).div_(0.25), i % 10


class Tokens(data.Dataset[Any]):
    """Pure Python."""

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, i: int) -> Any:
        words = [(i * 31 + k * k) % 30_000 for k in range(128)]
        return torch.tensor(words), torch.ones(128, dtype=torch.int64)


def transforms_of(name: str) -> Any:
    _, t, _ = torchs()
    crop, flip, last = t.RandomResizedCrop(224), t.RandomHorizontalFlip(), [t.ToTensor(), t.Normalize(MEAN, STD)]
    chains = {
        "erasing": [crop, flip, *last, t.RandomErasing()],
        "randaugment": [crop, flip, t.RandAugment(), *last],
        "jitter": [crop, flip, t.ColorJitter(0.4, 0.4, 0.4, 0.1), *last],
        "rotation": [t.RandomRotation(15), crop, flip, *last],
        "own": [crop, flip, *last],
        "own-jitter": [crop, flip, t.ColorJitter(0.4, 0.4, 0.4, 0.1), *last],
    }
    return t.Compose(chains[name])


CASES = ("erasing", "randaugment", "jitter", "rotation", "own", "own-jitter", "small", "tokens")


def dataset_of(name: str, photos: str) -> Any:
    if name in ("small", "tokens"):
        return Small() if name == "small" else Tokens()
    if name.startswith("own"):
        return Files(photos, transforms_of(name))
    return torchs()[0].ImageFolder(photos, transforms_of(name))


def measure(kind: str, name: str, photos: str, workers: int) -> None:
    import stoker

    cls = stoker.DataLoader if kind == "stoker" else data.DataLoader
    loader: Any = cls(dataset_of(name, photos), BATCH, shuffle=True, num_workers=workers)
    batches = iter(loader)
    next(batches)
    began, samples = time.perf_counter(), 0
    for batch in batches:
        samples += len(batch[0])
    print(json.dumps(samples / (time.perf_counter() - began)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.measure:
        return measure(*a.measure, a.photos, a.workers)
    print(f"{'samples/s':<14}{'torch':>10}{'Stoker':>10}{'ratio':>8}")
    for name in a.only.split(","):
        rates: dict[str, list[float]] = {"torch": [], "stoker": []}
        for _ in range(a.rounds):
            for kind, found in rates.items():
                command = [sys.executable, __file__, a.photos, "--workers", str(a.workers), "--measure", kind, name]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.append(float(done.stdout.splitlines()[-1]))
        ratio = statistics.median(b / t for t, b in zip(rates["torch"], rates["stoker"], strict=True))
        torch_rate, ours = (statistics.median(rates[kind]) for kind in ("torch", "stoker"))
        print(f"{name:<14}{torch_rate:>10.0f}{ours:>10.0f}{ratio:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
