# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/doctor share: data, a small network, and a loop that prints its own speed.

Each script provokes one verdict, or none, and says so in its first lines:

# expects: the id of the verdict or alarm      # options: for the doctor
# needs: gpu, ranks, root, fuse                 # change: the what-if that proves it, if it may not be another one
# quota: CPUs of its container                  # storage: its limit, such as `bps 4000000` or `iops 100`
# memory: MiB of its container
# cold: a folder of data that is not in the page cache at the start

meter.py has their arguments.
"""

import os
import sys
from pathlib import Path

import torch
from meter import FIXED, meter  # noqa: F401
from torch import nn
from torch.utils.data import Dataset

torch.set_num_threads(1)
torch.manual_seed(0)
try:
    import torchvision  # noqa: F401
except ImportError:
    pass
except (RuntimeError, AttributeError):  # its compiled ops are for another build of torch; their names are enough here
    for _name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
        del sys.modules[_name]
    _library = torch.library.Library("torchvision", "DEF")
    for _op in ("nms", "qnms"):
        _library.define(f"{_op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

DATA = Path(os.environ.get("STOKER_DOCTOR_DATA", "build/doctor"))  # made by run.py
PHOTOS, LARGE, SHRUNK, TURNED, ROWS = (str(DATA / name) for name in ("photos", "large", "shrunk", "turned", "rows"))
RAW, BLOBS, LATE = str(DATA / "raw.bin"), str(DATA / "blobs"), str(DATA / "late")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Kept(Dataset):
    """The samples of a dataset, which are made once and kept in memory."""

    def __init__(self, dataset: Dataset) -> None:
        self.samples = [dataset[i] for i in range(len(dataset))]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int):
        return self.samples[i]


class Batches(Dataset):
    """A few batches that are made beforehand, so that loading them takes no time. For DataLoader(data, None)."""

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype = torch.float32, count: int = 16) -> None:
        whole = (count, *shape)
        self.x = torch.randint(0, 255, whole, dtype=dtype) if dtype == torch.uint8 else torch.rand(whole, dtype=dtype)
        self.y = torch.randint(0, 8, whole[:2])

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int):
        return self.x[i % len(self.x)], self.y[i % len(self.y)]


def network(width: int = 8, depth: int = 2, classes: int = 256) -> nn.Module:
    """For images of any size."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 7, 4, 3), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Conv2d(width, width, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)).to(DEVICE)


def dense(size: int, width: int = 64, depth: int = 1) -> nn.Module:
    """For rows of numbers."""
    layers: list[nn.Module] = [nn.Linear(size, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 256)).to(DEVICE)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x.to(DEVICE), y.to(DEVICE)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.count(len(y))
    return loss.detach()


def train(loader, model: nn.Module, optimizer: torch.optim.Optimizer | None = None, each_step=None, each_epoch=None):
    """Trains for a million epochs, or for the seconds that were asked for."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1_000_000):
        for x, y in loader:
            loss = step(model, optimizer, x, y)
            if each_step:
                each_step(x, loss)
        if each_epoch:
            each_epoch(epoch)


if __name__ == "__main__":
    sys.exit("shared.py is a module; run run.py")
