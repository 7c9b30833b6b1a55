# SPDX-License-Identifier: Apache-2.0
"""One core: Stoker compared with a prototype of its techniques (e2e.c), which reads from memory and is not exact."""

import re
import shutil
import statistics
import subprocess
from pathlib import Path

import envs
import measure

# What the prototype prints, by the heading of a part; the line is the same in all.
PARTS = {
    "untouched files": "-- no checkpoints",
    "later epochs": "-- checkpoints every 8 MCUs",
    'cache="dct"': "-- DCT-pack",
}
REBUILT = "all, float32 NCHW, tables rebuilt per image"
PLAIN = "all, float32 NCHW "


def build(folder: Path, program: Path) -> None:
    """The prototype calls the inverse transform within libjpeg-turbo, so it wants the static library."""
    if not (folder / "e2e.c").exists():
        raise envs.Missing("no prototype (STOKER_PROTO names the folder of e2e.c)")
    archive = subprocess.run(["cc", "-print-file-name=libjpeg.a"], capture_output=True, text=True).stdout.strip()
    command = ["cc", "-O3", "-march=native", "-w", folder / "e2e.c", "-o", program, archive, "-lm"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise envs.Missing(f"the prototype does not build: {envs.last_line(done.stderr)}")


def flat(photos: Path, folder: Path) -> None:
    """Links to all photos in one folder, as the prototype wants them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for i, path in enumerate(sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))):
        (folder / f"{i:07}.jpg").symlink_to(path.resolve())


def parse(text: str) -> dict[str, float]:
    """Images a second of every part, with tables rebuilt for every image where that line exists."""
    found = {}
    for name, heading in PARTS.items():
        part = text.partition(heading)[2].partition("\n--")[0]
        lines = [line for line in part.splitlines() if REBUILT in line] or [
            line for line in part.splitlines() if PLAIN in line
        ]
        rate = re.search(r"([0-9.]+) img/s", lines[0]) if lines else None
        if rate:
            found[name] = float(rate[1])
    return found


def in_cpu_time(row: measure.Row, skipped: str, theirs: list[float]) -> dict:
    """The prototype counts the time of its CPU; so the same is taken of Stoker."""
    ours = [1 / statistics.median(cpus) for cpus in row.cpu_s]
    found = {"name": row.name, "skipped": "" if ours else skipped, "prototype": statistics.median(theirs)}
    if ours:
        found["images_per_s"] = statistics.median(ours)
        found["ratio"] = statistics.median(a / b for a, b in zip(ours, theirs, strict=False))
    return found


def compare(place: measure.Place, prototype: Path, rounds: int) -> list[dict]:
    program, folder = place.work / "e2e", place.work / "flat"
    build(prototype, program)
    flat(place.photos, folder)
    alone = measure.Place(place.root, place.work, place.photos, place.cpus[:1], place.again)
    plain = [measure.Row("untouched files", 1, 1), measure.Row("later epochs", 3, 8)]
    peers = [
        measure.Peer("stoker", "stoker", "plain", plain),
        measure.Peer("stoker", "stoker", "cache=dct", [measure.Row('cache="dct"', 3, 8)]),
    ]
    theirs: list[dict[str, float]] = []
    for _ in range(rounds):
        theirs.append(parse(measure.run([program, folder, 2], alone.cpus)))
        for peer in peers:
            measure.attempt(peer, "one core", lambda peer=peer: measure.measure(peer, alone, memory=False))
    return [in_cpu_time(row, peer.skipped, [t[row.name] for t in theirs]) for peer in peers for row in peer.rows]
