# SPDX-License-Identifier: Apache-2.0
"""Fixed numbers of threads compared with the number that the loader finds by itself (threads=None), in turn.

    python3 bench/threads.py BUILD PHOTOS [--rounds N] [--epochs N]

For callers of several kinds: one who takes batches as fast as they come; one who computes on these CPUs, half as
long as a batch takes; one who waits for another device, twice as long; one who does so in bursts. The last two never
wait where the loader keeps up, so that only its CPU time differs. The ratio is that of None to each setting, the
median of the rounds, whose sides ran one right after the other. At least 0.95 of the best is wanted. None is one of the
settings, left to the loader: how far it is from that one says how much of all this is noise.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

BATCH = 64
CALLERS = {  # name: how, and its step in times of a batch
    "takes batches as they come": ("at-once", 0.0),
    "computes on these CPUs": ("spin", 0.5),
    "waits for another device": ("sleep", 2.0),
    "does so in bursts": ("burst", 2.0),
}


def settings(cpus: int) -> list[int]:
    """0: left to the loader."""
    return [0, *sorted({1, max(1, cpus // 2), cpus, cpus + max(1, cpus // 4), cpus + max(1, cpus // 2), 2 * cpus})]


class Bench:
    def __init__(self, build: Path, photos: Path, epochs: int) -> None:
        self.command = [str(build / "bench-threads"), str(photos)]
        self.epochs = epochs

    def run(self, threads: int, how: str, step_us: float) -> tuple[float, float]:
        """Images a second, and µs of CPU time an image."""
        command = [*self.command, str(threads), str(self.epochs), how, f"{step_us:.0f}"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rate, cpu = map(float, out.split())
        return rate, cpu


def table(bench: Bench, name: str, cpus: int, rounds: int, batch_us: float) -> float:
    """Prints it; the ratio of None to the best of the others."""
    how, times = CALLERS[name]
    found: dict[int, list[tuple[float, float]]] = {t: [] for t in settings(cpus)}
    for i in range(rounds):
        turn = settings(cpus)
        for t in turn[i % len(turn) :] + turn[: i % len(turn)]:  # nobody is always first
            found[t].append(bench.run(t, how, times * batch_us))
    print(f"\na caller who {name}\n{'threads':>8} {'images/s':>9} {'CPU µs':>7}  None to it, and its quartiles")
    worst = 1.0
    for t, results in found.items():
        rate, cpu = (statistics.median(r[k] for r in results) for k in (0, 1))
        ratios = sorted(a[0] / b[0] for a, b in zip(found[0], results, strict=True))
        low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
        worst = min(worst, ratio)
        words = f"{ratio:.2f}  ({low:.2f}, {high:.2f})" if t else ""
        print(f"{t or 'None':>8} {rate:9.0f} {cpu:7.0f}  {words}")
    return worst


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=4)
    o = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    bench = Bench(o.build, o.photos, o.epochs)
    batch_us = BATCH * 1e6 / bench.run(cpus, "at-once", 0)[0]
    print(f"{cpus} CPUs, {o.rounds} rounds of {o.epochs} epochs, the first of each not counted")
    worst = {name: table(bench, name, cpus, o.rounds, batch_us) for name in CALLERS}
    print()
    for name, ratio in worst.items():
        print(f"{ratio:.2f} of the best (wanted: 0.95) for a caller who {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
