# SPDX-License-Identifier: Apache-2.0
"""What every peer program shares: its arguments, the clock, the memory, and the lines it prints.

    peer_NAME.py FOLDER THREADS [--mode M] [--epochs N] [--work DIR] [--since T] [--memory]
    peer_NAME.py FOLDER THREADS --prepare           makes what the peer wants beforehand (files, shards)
    peer_NAME.py FOLDER THREADS --pixels OUT.npy    the same crop of every photo of the folder, as batches hold it

A peer hands over a function that opens its loader and returns an endless stream of batch sizes or one iterable an
epoch, and a function for --pixels. On stdout there is one JSON document a line:

    {"versions": "torch 2.13.0, ..."}
    {"epoch": 1, "images": 960, "seconds": 1.66, "cpu_s": 3.1}     the first one begins before the loader is opened
    {"start_s": 4.2}                                from the start of the process to the end of epoch 1
    {"pss": 487000000}                              largest of an epoch of its own, beyond the imports, all processes
    {"skipped": "why"}                              instead of all that

It needs nothing but NumPy, as it runs in the environment of every peer.
"""

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

SIZE = 224
BATCH = 64
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
MEAN_LEVELS = [255 * m for m in MEAN]
STD_LEVELS = [255 * s for s in STD]
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")

# The normalised value of every level of every channel: three look-ups are the quickest way with a library of tables.
LEVELS = ((np.arange(256, dtype=np.float32)[None] / 255 - np.array(MEAN)[:, None]) / np.array(STD)[:, None]).astype(
    np.float32
)

Epochs = Callable[[], Iterable[int]]  # called once an epoch, gives the number of images of every batch


class Skip(Exception):
    """The peer cannot do this here; the text says why."""


def list_samples(folder: str) -> list[tuple[str, int]]:
    """Paths and labels; the folders in a folder are its classes."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [
        (os.path.join(root, name), label)
        for label, c in enumerate(classes)
        for root, _, names in sorted(os.walk(os.path.join(folder, c), followlinks=True))
        for name in sorted(names)
        if name.lower().endswith(SUFFIXES)
    ]


def draw_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width, height, as torchvision's RandomResizedCrop draws them."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


def square(width: int, height: int) -> tuple[int, int, int, int]:
    """The crop of --pixels: the largest square, in the middle, as RandomResizedCrop with scale and ratio (1, 1)."""
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def endless(samples: list) -> Iterator:
    """The samples in a new order every time, for ever."""
    while True:
        yield from random.sample(samples, len(samples))


def epochs_of(stream: Iterator[int], samples: int) -> Epochs:
    """Cuts a stream without end into epochs of whole batches, so that no peer pays for a gap it can avoid."""

    def epoch() -> Iterator[int]:
        for _ in range(max(1, samples // BATCH)):
            yield next(stream)

    return epoch


# ---------------------------------------------------------------- what it takes: memory, and time of CPUs


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [pid]
    for p in found:  # grows as it is walked
        found += children.get(p, [])
    return found


def cpu_seconds(pid: int) -> float:
    """Of a process and all below it that still live, as workers do."""
    ticks = 0
    for p in descendants(pid):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path("/proc", str(p), "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def pss(pid: int) -> int:
    """Proportional set size of a process and all below it, in bytes."""
    total = 0
    for p in descendants(pid):
        try:
            lines = Path("/proc", str(p), "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


# ---------------------------------------------------------------- the program


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("threads", type=int)
    parser.add_argument("--mode", default="", help="which of the peer's ways, where it has several")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--work", default="", help="a folder for what --prepare makes")
    parser.add_argument("--since", type=float, default=0, help="when the process was started, by CLOCK_MONOTONIC")
    parser.add_argument("--memory", action="store_true", help="an epoch more, which measures the memory")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--pixels", default="", help="write the crops of all photos there, float32 NCHW")
    return parser.parse_args()


def measure(o: argparse.Namespace, open_loader: Callable[[argparse.Namespace], Epochs]) -> None:
    imports = pss(os.getpid()) if o.memory else 0
    begun, spent = time.monotonic(), cpu_seconds(os.getpid())
    epoch = open_loader(o)
    for number in range(1, o.epochs + 1):
        images = sum(epoch())
        now, cpu = time.monotonic(), cpu_seconds(os.getpid())
        say(epoch=number, images=images, seconds=now - begun, cpu_s=cpu - spent)
        if number == 1 and o.since:
            say(start_s=now - o.since)
        begun, spent = now, cpu
    if o.memory:
        say(pss=max(pss(os.getpid()) for i, _ in enumerate(epoch()) if i % 4 == 0) - imports)


def main(
    packages: Iterable[str],
    open_loader: Callable[[argparse.Namespace], Epochs],
    pixels: Callable[[argparse.Namespace, list[str]], np.ndarray],
    prepare: Callable[[argparse.Namespace], None] | None = None,
) -> None:
    o = arguments()
    random.seed(0)
    try:
        if o.prepare:
            if prepare:
                prepare(o)
        elif o.pixels:
            np.save(o.pixels, np.asarray(pixels(o, [path for path, _ in list_samples(o.folder)]), np.float32))
        else:
            say(versions=", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages))
            measure(o, open_loader)
    except Skip as reason:
        say(skipped=str(reason))
    sys.stdout.flush()
    # Loaders that never end have threads and processes that need not be asked to.
    os._exit(0)
