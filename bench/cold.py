# SPDX-License-Identifier: Apache-2.0
"""Reading only, from cold storage, compared with fio: the same device, sizes and depth, in turn.

    python3 bench/cold.py BUILD [--folder PHOTOS] [--rounds N] [--scratch DIR]     without photos: made ones

Single files: the photos, copied until there are 8,000, read once in a shuffled order; fio reads as many files of
their mean size in whole blocks, once with all of them opened beforehand, which it does not count, and once as a
loader has to, opening and closing as it goes. Ranges: records of that size at random places of one large file. Shards:
the same photos in tar archives of a thousand each, compared with the same ranges.
All past the page cache and at most 32 at a time, except for what is named otherwise: pread has one file a thread under
way, auto reads through the page cache, and "own depth" is what the loader does when it is left alone.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

FILES, SHARD, DEPTH, BLOCK = 8000, 1000, 32, 4096


def fio(scratch: Path, name: str, *options: str) -> float:
    """Bytes a second."""
    command = ["fio", f"--name={name}", f"--directory={scratch / 'fio'}", "--output-format=json", "--direct=1"]
    command += ["--ioengine=io_uring", "--fixedbufs=1", f"--iodepth={DEPTH}", "--fallocate=none", *options]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(out[out.index("{") :])["jobs"][0]["read"]["bw_bytes"])


def cold(build: Path, *arguments: str) -> tuple[float, float]:
    """Bytes a second, and µs of CPU time a file."""
    out = subprocess.run([str(build / "bench-cold"), *arguments], check=True, capture_output=True, text=True).stdout
    _, rate, cpu = map(float, out.split())
    return rate, cpu


def find_photos(build: Path) -> Path:
    data = Path(os.environ.get("STOKER_TEST_DATA", "")) / "photos"
    made = build / "bench-photos"
    if not data.is_dir() and not made.is_dir():
        command = [str(build / "stoker"), "synth", str(made), "--samples", "1000", "--classes", "10", "--seed", "1"]
        subprocess.run(command, check=True)
    return data if data.is_dir() else made


def copy_photos(photos: Path, to: Path) -> int:
    """Makes FILES of them; their mean size."""
    found = sorted(p for p in photos.rglob("*") if p.is_file())
    if not to.exists():
        for i in range(FILES):
            target = to / f"{i % 10}" / f"{i}{found[i % len(found)].suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found[i % len(found)], target)
        os.sync()
    return sum(p.stat().st_size for p in found) // len(found)


def make_shards(photos: Path, to: Path) -> None:
    if to.exists():
        return
    to.mkdir()
    found = sorted(p for p in photos.rglob("*") if p.is_file())
    for i in range(0, len(found), SHARD):
        with tarfile.open(to / f"{i // SHARD:03}.tar", "w") as tar:
            for path in found[i : i + SHARD]:
                tar.add(path, arcname=str(path.relative_to(photos)))
    os.sync()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scratch", type=Path)
    o = parser.parse_args()
    if not shutil.which("fio"):
        print("fio is not installed (apt-get install fio); there is nothing to compare with")
        return 0
    scratch = (o.scratch or o.build / "bench-cold-files").resolve()
    (scratch / "fio").mkdir(parents=True, exist_ok=True)
    mean = copy_photos(o.folder or find_photos(o.build), scratch / "photos")
    make_shards(scratch / "photos", scratch / "shards")
    block = -(-mean // BLOCK) * BLOCK
    many = [f"--nrfiles={FILES}", f"--filesize={block}", f"--size={FILES * block}", f"--bs={block}"]
    large = scratch / "fio" / "large"
    one = ["--filename=large", "--size=2G", f"--bs={block}"]
    fio(scratch, "many", *many, "--rw=write", "--openfiles=64", "--end_fsync=1")
    fio(scratch, "large", *one, "--rw=write", "--end_fsync=1")
    photos, shards = str(scratch / "photos"), str(scratch / "shards" / "*.tar")
    read_many = [*many, "--rw=randread", "--file_service_type=random:1"]
    sides = {
        "fio, single files, opened before": lambda: (fio(scratch, "many", *read_many, f"--openfiles={FILES}"), 0.0),
        "fio, single files": lambda: (fio(scratch, "many", *read_many, f"--openfiles={2 * DEPTH}"), 0.0),
        "uring, single files": lambda: cold(o.build, "files", photos, "uring", str(DEPTH)),
        "uring, single files, own depth": lambda: cold(o.build, "files", photos, "uring"),
        "auto, single files": lambda: cold(o.build, "files", photos, "auto"),
        "pread, single files": lambda: cold(o.build, "files", photos, "pread"),
        "fio, ranges": lambda: (fio(scratch, "large", *one, "--rw=randread", "--io_size=4G"), 0.0),
        "uring, ranges": lambda: cold(o.build, "ranges", str(large), str(mean), str(DEPTH)),
        "uring, shards": lambda: cold(o.build, "files", shards, "uring", str(DEPTH)),
        "uring, shards, own depth": lambda: cold(o.build, "files", shards, "uring"),
        "auto, shards": lambda: cold(o.build, "files", shards, "auto"),
        "pread, shards": lambda: cold(o.build, "files", shards, "pread"),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    cpus: dict[str, list[float]] = {name: [] for name in sides}
    for i in range(o.rounds):
        for name, run in sides.items():
            rate, cpu = run()
            rates[name].append(rate)
            cpus[name].append(cpu)
        print(f"round {i + 1} of {o.rounds}", end="\r", file=sys.stderr)
    print(f"{FILES} files of {mean} bytes on average, at most {DEPTH} at a time; medians of {o.rounds} rounds\n")
    for name in sides:
        peer = "fio, single files" if "single files" in name else "fio, ranges"
        ratio = statistics.median(a / b for a, b in zip(rates[name], rates[peer], strict=True))
        cpu = statistics.median(cpus[name])
        words = f"{cpu:6.1f} µs of CPU a file" if cpu else ""
        print(f"{name:34} {statistics.median(rates[name]) / 1e9:6.2f} GB/s {ratio:6.2f} x fio  {words}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
