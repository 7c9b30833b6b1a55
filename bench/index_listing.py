#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to list a folder of classes: torchvision's ImageFolder and Stoker's index, side by side.

Makes a tree of small files in a temporary folder, lists it in turns, and prints medians and ratios:

    bench/index_listing.py build/bench-index [--files 200000] [--classes 200] [--rounds 7] [--json]

Stoker is timed by the given program (bench/index_open.c): the first open, which reads the folders; the look at
every file's size, which is done when the fingerprint is asked for and which ImageFolder does not do; and the second
open, which finds the index cached.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def imagefolder(root: str) -> int:
    """What torchvision.datasets.ImageFolder does to find its samples, written out."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    class_to_idx = {name: i for i, name in enumerate(classes)}

    def is_valid_file(path: str) -> bool:
        return path.lower().endswith(SUFFIXES)

    samples = []
    available = set()
    for name in sorted(class_to_idx.keys()):
        folder = os.path.join(root, name)
        if not os.path.isdir(folder):
            continue
        for where, _, files in sorted(os.walk(folder, followlinks=True)):
            for file in sorted(files):
                path = os.path.join(where, file)
                if is_valid_file(path):
                    samples.append((path, class_to_idx[name]))
                    if name not in available:
                        available.add(name)
    return len(samples)


def torchvision_listing():
    """The real one where it is installed, else the algorithm above."""
    try:
        from torchvision.datasets.folder import IMG_EXTENSIONS, find_classes, make_dataset
    except Exception:  # not installed, or does not load
        return "ImageFolder's algorithm", imagefolder

    def real(root: str) -> int:
        _, class_to_idx = find_classes(root)
        return len(make_dataset(root, class_to_idx, IMG_EXTENSIONS))

    return "torchvision", real


def make_tree(root: str, n_files: int, n_classes: int) -> None:
    for c in range(n_classes):
        folder = os.path.join(root, f"n{c:08d}_class{c:03d}")
        os.mkdir(folder)
        for i in range(c, n_files, n_classes):
            fd = os.open(os.path.join(folder, f"n{c:08d}_{i * 7919 % 1000003}.JPEG"), os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"x" * (1 + i % 50))
            os.close(fd)


def measure(arguments: argparse.Namespace, root: str, cache: str) -> dict:
    name, listing = torchvision_listing()
    times: dict[str, list[float]] = {"listing": [], "first": [], "measure": [], "second": []}
    count = 0
    for i in range(arguments.rounds):
        began = time.perf_counter()
        count = listing(root)
        times["listing"].append(time.perf_counter() - began)
        command = [arguments.program, root, os.path.join(cache, str(i)), str(arguments.threads)]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        if ours["samples"] != count or not ours["second"]["cached"]:
            sys.exit(f"not the same work: {count} samples against {ours}")
        times["first"].append(ours["first"]["open_s"])
        times["measure"].append(ours["first"]["measure_s"])
        times["second"].append(ours["second"]["open_s"])
    result = {key: statistics.median(values) for key, values in times.items()}
    result.update(samples=count, peer=name, index_bytes=ours["first"]["index_bytes"])
    result["ratio"] = result["listing"] / result["first"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="bench-index, built from bench/index_open.c")
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as temp:
        root, cache = os.path.join(temp, "tree"), os.path.join(temp, "cache")
        os.mkdir(root)
        make_tree(root, arguments.files, arguments.classes)
        result = measure(arguments, root, cache)
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{result['samples']} files in {arguments.classes} classes, {arguments.threads} threads, medians")
    print(f"  {result['peer']:<28}{result['listing']:8.3f} s")
    print(f"  {'stoker, first open':<28}{result['first']:8.3f} s   {result['ratio']:.1f} x")
    print(f"  {'  and all sizes, on demand':<28}{result['measure']:8.3f} s")
    print(f"  {'stoker, second open':<28}{result['second']:8.3f} s")
    print(f"  index: {result['index_bytes'] / result['samples']:.1f} bytes a sample")


if __name__ == "__main__":
    main()
