# SPDX-License-Identifier: Apache-2.0
"""Measures the promised figures and says whether they hold.

    figures.py build photos/ [--rounds 5] [--only speed,scaling,index,memory,listing]

    speed     the whole path at 1 thread against the naive Pillow loop, both pinned to one core
    scaling   n threads against n pinned copies of 1 thread that run at once
    index     memory of the index: the same photos listed once and 200 times
    memory    peak memory of `stoker bench --memory 256M` beyond the process's own start-up size
    listing   the index of 200,000 files against torchvision's way of listing (bench/index_listing.py)

The sides alternate, and every figure is the median of the rounds.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MIB = 1 << 20
rows: list[tuple[str, str, str, str]] = []


def note(what: str, goal: str, measured: str, holds: bool) -> None:
    rows.append((what, goal, measured, "holds" if holds else "DOES NOT HOLD"))
    print(f"  {what}: {measured} (goal: {goal})", file=sys.stderr)


def pinned(command: list, cpus: set[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, sorted(cpus))), *map(str, command)]


def rate(result: dict) -> float:
    """Median images/s of the epochs after the first, which pays for the start."""
    epochs = result["epochs"][1:] or result["epochs"]
    return statistics.median(e["images_per_s"] for e in epochs)


def compare(ours: list[float], theirs: list[float]) -> tuple[float, str]:
    """The median ratio of the rounds, whose sides ran one right after the other, and the medians in words."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return ratio, f"({statistics.median(ours):.0f} to {statistics.median(theirs):.0f} images/s)"


def run_all(commands: list[list[str]]) -> list[dict]:
    """Runs programs at once; every one prints JSON."""
    running = [subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for c in commands]
    answers = [p.communicate()[0] for p in running]
    for p, c in zip(running, commands, strict=True):
        if p.returncode:
            sys.exit(f"figures.py: {' '.join(c)} ended with {p.returncode}")
    return [json.loads(a) for a in answers]


def peak_rss(command: list) -> tuple[int, bytes]:
    """Largest resident size of a program, in bytes, and what it printed."""
    with tempfile.TemporaryFile() as out:
        words, stdout = [str(c) for c in command], [(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=stdout)
        _, status, usage = os.wait4(pid, 0)
        if status:
            sys.exit(f"figures.py: {' '.join(map(str, command))} failed")
        out.seek(0)
        return usage.ru_maxrss * 1024, out.read()


def bench(stoker: Path, photos: Path, threads: int, epochs: int = 4) -> list:
    return [stoker, "bench", photos, "--threads", threads, "--epochs", epochs, "--json"]


def speed(stoker: Path, photos: Path, rounds: int) -> None:
    if not importlib.util.find_spec("PIL"):
        print("  not measured: the naive loop, for want of Pillow (tools/setup.sh python)", file=sys.stderr)
        return
    cpu = {min(os.sched_getaffinity(0))}
    ours, naive = [], []
    for _ in range(rounds):
        ours.append(rate(run_all([pinned(bench(stoker, photos, 1, 3), cpu)])[0]))
        loop = [sys.executable, HERE / "naive.py", photos, "--epochs", 2, "--json"]
        naive.append(rate(run_all([pinned(loop, cpu)])[0]))
    times, words = compare(ours, naive)
    note("whole path, 1 thread, to naive.py", ">= 2.5 x", f"{times:.2f} x {words}", times >= 2.5)


def scaling(stoker: Path, photos: Path, rounds: int) -> None:
    cpus = os.sched_getaffinity(0)
    n = len(cpus)
    together, copies = [], []
    for _ in range(rounds):
        together.append(rate(run_all([pinned(bench(stoker, photos, n, 6), cpus)])[0]))
        copies.append(sum(map(rate, run_all([pinned(bench(stoker, photos, 1, 4), {c}) for c in sorted(cpus)]))))
    share, words = compare(together, copies)
    note(f"{n} threads to {n} copies of 1", ">= 0.97", f"{share:.3f} {words}", share >= 0.97)


def photo_paths(photos: Path) -> list[str]:
    return sorted(str(p) for p in photos.resolve().rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))


def write_list(file: Path, paths: list[str], times: int) -> None:
    with file.open("w") as out:
        for _ in range(times):
            out.writelines(path + "\n" for path in paths)


def index_bytes(stoker: Path, photos: Path) -> None:
    paths = photo_paths(photos)[:1000]
    with tempfile.TemporaryDirectory() as folder:
        sizes = {}
        for times in (1, 200):
            file = Path(folder) / f"{times}.txt"
            write_list(file, paths, times)
            # One sample is loaded, so that what differs is the index.
            command = [stoker, "bench", file, "--take", 64, "--batch-size", 64, "--epochs", 1, "--threads", 1, "--json"]
            os.environ["STOKER_CACHE_DIR"] = folder
            peak_rss(command)  # makes the index, with the scratch that this takes
            sizes[times] = statistics.median(peak_rss(command)[0] for _ in range(5))
            del os.environ["STOKER_CACHE_DIR"]
    each = (sizes[200] - sizes[1]) / (199 * len(paths))
    what = f"index, {len(paths)} and {200 * len(paths)} samples"
    note(what, "< 64 bytes a sample", f"{each:.1f} bytes a sample", each < 64)


def memory(stoker: Path, photos: Path, rounds: int) -> None:
    n = len(os.sched_getaffinity(0))
    start = statistics.median(peak_rss([stoker, "info"])[0] for _ in range(rounds))
    command = bench(stoker, photos, n, 3) + ["--memory", "256M", "--batch-size"]
    peak = max(peak_rss(command + [size])[0] for size in (64, 128) for _ in range(rounds)) - start
    limit = 256 * MIB
    note("--memory 256M, peak beyond start-up", "<= 282 MiB", f"{peak / MIB:.0f} MiB", peak <= 1.1 * limit)


def listing(build: Path) -> None:
    command = [sys.executable, HERE / "index_listing.py", build / "bench-index", "--json"]
    result = run_all([[str(word) for word in command]])[0]
    ratio, again = result["ratio"], result["second"]
    measured = f"{ratio:.1f} x ({result['first']:.3f} to {result['listing']:.3f} s)"
    note(f"index of {result['samples']} files, to {result['peer']}", ">= 5 x", measured, ratio >= 5)
    note("the same, opened again", "< 0.2 s", f"{again:.3f} s", again < 0.2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="speed,scaling,index,memory,listing")
    o = parser.parse_args()
    stoker, only = (o.build / "stoker").resolve(), o.only.split(",")
    print("measuring; this takes some minutes, and wants a machine with nothing else to do", file=sys.stderr)
    if "speed" in only:
        speed(stoker, o.photos, o.rounds)
    if "scaling" in only:
        scaling(stoker, o.photos, o.rounds)
    if "index" in only:
        index_bytes(stoker, o.photos)
    if "memory" in only:
        memory(stoker, o.photos, 3)
    if "listing" in only:
        listing(o.build)
    print(f"{'figure':<50} {'goal':<20} measured")
    for what, goal, measured, verdict in rows:
        print(f"{what:<50} {goal:<20} {measured:<36} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
