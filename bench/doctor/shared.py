# SPDX-License-Identifier: Apache-2.0
"""What the scripts of bench/doctor share: data, a small network, and a loop that prints its own speed.

Each script provokes one verdict, or none, and says so in its first lines:

# expects: the id of the verdict or alarm      # options: for the doctor
# needs: gpu, ranks, root                       # change: the what-if that proves it, if it may not be another one

`--fixed` makes the change by hand where the doctor's change is not a patch. `--seconds N` ends the training after N
seconds and prints samples/s; without it training goes on until the doctor ends it.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch
from torch import nn

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
PHOTOS, LARGE, MIXED, TURNED = (str(DATA / name) for name in ("photos", "large", "mixed", "turned"))
RAW = str(DATA / "raw.bin")

_parser = argparse.ArgumentParser()
_parser.add_argument("--fixed", action="store_true")
_parser.add_argument("--seconds", type=float, default=1e9)
given = _parser.parse_args()
FIXED = given.fixed
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WARM = 4  # steps that are not counted


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


class Meter:
    """Counts samples, and ends the script when its time is over."""

    def __init__(self) -> None:
        self.steps = self.samples = 0
        self.start = time.perf_counter()

    def count(self, samples: int) -> None:
        self.steps += 1
        if self.steps == WARM:
            self.start = time.perf_counter()
        elif self.steps > WARM:
            self.samples += samples
            seconds = time.perf_counter() - self.start
            if seconds > given.seconds:
                print(f"samples/s {self.samples / seconds:.3f}", flush=True)
                os._exit(0)  # workers and loaders are not waited for


meter = Meter()


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
    sys.exit("this is no script: see run.py")
