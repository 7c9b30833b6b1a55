# SPDX-License-Identifier: Apache-2.0
"""A loader alone, into the memory of a GPU: images per second for every device_work, with and without cache="dct".

    gpu_alone.py PHOTOS [--copies 20] [--seconds 1.5] [--size 224]

The photos are linked several times, so that an epoch has enough batches. Epochs after the first are counted, in which
checkpoints are known. Per image: the time of kernels and copies, and the bytes that cross the bus. "there" is the share
of images that the GPU finished, "codes" the share whose Huffman codes it decoded.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import stoker
import torch

BATCH = 512
CASES = (("none", None), ("idct", None), ("decode", None), ("auto", None), ("none", "dct"), ("idct", "dct"))


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def link(photos: Path, to: Path, copies: int) -> None:
    for file in sorted(photos.rglob("*.*")):
        folder = to / file.parent.name
        folder.mkdir(exist_ok=True)
        for n in range(copies):
            os.symlink(file.resolve(), folder / f"{file.stem}-{n}{file.suffix}")


def measure(photos: Path, work: str, cache: str | None, size: int, seconds: float) -> str:
    began = time.perf_counter()
    ops = f"RandomResizedCrop({size}) | RandomHorizontalFlip | Normalize"
    loader = stoker.Loader(
        photos, ops, batch_size=BATCH, shuffle=True, drop_last=True, dtype="bfloat16", layout="channels_last",
        device="cuda", device_work=work, cache=cache, cache_dir="off", output="torch",
    )  # fmt: skip
    first, images, rates, start, cpu = 0.0, 0, [], 0.0, 0.0
    while len(rates) < 3 or time.perf_counter() - start < seconds:
        at, before = time.perf_counter(), images
        for _ in loader:
            images += BATCH
            first = first or time.perf_counter() - began
        torch.cuda.synchronize()
        rates.append((images - before) / (time.perf_counter() - at))
        if len(rates) == 1:
            start, cpu, images = time.perf_counter(), cpu_seconds(), 0
    spent = time.perf_counter() - start
    cores, s = (cpu_seconds() - cpu) / spent, loader.stats()
    count = max(1, s.batches * BATCH)
    loader.close()
    return (
        f"{work:<7}{cache or '-':<5}{rates[0]:>10,.0f}{images / spent:>10,.0f}{cores:>7.1f}"
        f"{1e6 * s.kernel_s / count:>11.2f}{1e6 * s.copy_s / count:>11.2f}{s.copied_bytes / count / 1e3:>8.0f}"
        f"{100 * s.device_samples / count:>7.0f}%{100 * s.device_decoded / count:>7.0f}%"
        f"{s.device_bytes / 2**20:>8.0f}{first:>8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    print(f"{'work':<7}{'cache':<5}{'epoch 1':>10}{'later':>10}{'cores':>7}{'kernels us':>11}{'copies us':>11}"
          f"{'kB':>8}{'there':>8}{'codes':>8}{'MiB':>8}{'first s':>8}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        link(args.photos, Path(folder), args.copies)
        for work, cache in CASES:
            print(measure(Path(folder), work, cache, args.size, args.seconds), flush=True)


if __name__ == "__main__":
    main()
