# SPDX-License-Identifier: Apache-2.0
"""The package beside the command, on the same job, alternating; and what small things cost.

package.py STOKER PHOTOS [ROUNDS]     STOKER: the command; run with the Python that has the package
"""

import json
import statistics
import subprocess
import sys
import time

import stoker

OPS = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize"
EPOCHS = 3


def command(program: str, photos: str) -> float:
    """Images a second of the best epoch."""
    arguments = [program, "bench", photos, "--epochs", str(EPOCHS), "--json"]
    result = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    return max(e["images_per_s"] for e in result["epochs"])


def package(photos: str) -> float:
    with stoker.Loader(photos, OPS, batch_size=64, shuffle=True, drop_last=True) as loader:
        rates = []
        for _ in range(EPOCHS):
            began, images = time.perf_counter(), 0
            for _, labels in loader:
                images += len(labels)
            rates.append(images / (time.perf_counter() - began))
    return max(rates)


def first_batch(photos: str) -> float:
    began = time.perf_counter()
    loader = stoker.Loader(photos, OPS, batch_size=64, shuffle=True)
    next(iter(loader))
    seconds = time.perf_counter() - began
    loader.close()
    return seconds


def state_seconds(photos: str) -> float:
    with stoker.Loader(photos, OPS, batch_size=64) as loader:
        next(iter(loader))
        time.sleep(0.5)  # until it has read ahead
        began = time.perf_counter()
        for _ in range(10000):
            loader.state_dict()
        return (time.perf_counter() - began) / 10000


def main() -> None:
    program, photos = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    pairs = [(command(program, photos), package(photos)) for _ in range(rounds)]
    ratio = statistics.median(p / c for c, p in pairs)
    print(f"package over command   {ratio:.3f}   (images/s: {[(round(c), round(p)) for c, p in pairs]})")
    print(f"to the first batch     {statistics.median(first_batch(photos) for _ in range(rounds)):.3f} s")
    print(f"state_dict()           {1e6 * state_seconds(photos):.1f} µs")


if __name__ == "__main__":
    main()
