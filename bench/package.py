# SPDX-License-Identifier: Apache-2.0
"""The package beside the command, on the same job, alternating; and what small things cost.

package.py STOKER PHOTOS [ROUNDS]     STOKER: the command; run with the Python that has the package
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
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


def interrupt_seconds() -> float:
    """From Ctrl-C to its exception, while a batch is being waited for."""

    class Slow:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int, rng: object) -> float:
            go.wait()
            return 0.0

    go, sent = threading.Event(), [0.0]

    def interrupt() -> None:
        time.sleep(0.2)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    with stoker.Loader(Slow(), output="numpy") as loader:
        threading.Thread(target=interrupt).start()
        try:
            next(iter(loader))
        except KeyboardInterrupt:
            seconds = time.perf_counter() - sent[0]
        go.set()
    return seconds


def import_seconds() -> float:
    """Beyond NumPy's own import, in a fresh interpreter."""
    code = "import time, numpy; t = time.perf_counter(); import stoker; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    program, photos = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    pairs = [(command(program, photos), package(photos)) for _ in range(rounds)]
    ratio = statistics.median(p / c for c, p in pairs)
    print(f"package over command   {ratio:.3f}   (images/s: {[(round(c), round(p)) for c, p in pairs]})")
    print(f"to the first batch     {statistics.median(first_batch(photos) for _ in range(rounds)):.3f} s")
    print(f"state_dict()           {1e6 * state_seconds(photos):.1f} µs")
    print(f"Ctrl-C ends a wait in  {1e3 * statistics.median(interrupt_seconds() for _ in range(rounds)):.0f} ms")
    print(f"import, beyond NumPy   {1e3 * statistics.median(import_seconds() for _ in range(rounds)):.0f} ms")


if __name__ == "__main__":
    main()
