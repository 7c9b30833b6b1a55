# SPDX-License-Identifier: Apache-2.0
"""Runs peers as processes of their own, pinned, in turn, and gathers what they say."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import envs

HERE = Path(__file__).resolve().parent
PATIENCE = 900  # seconds that a process may take


@dataclass
class Row:
    """A line of the table: some of the epochs that a process reports."""

    name: str
    first: int  # the first and the last epoch that count, from 1
    last: int
    note: str = ""
    rates: list[list[float]] = field(default_factory=list)  # images/s, of every round, of every epoch
    cpu_s: list[list[float]] = field(default_factory=list)  # CPU time of an image, likewise


@dataclass
class Peer:
    env: str
    program: str
    mode: str
    rows: list[Row]
    prepared: bool = False
    versions: str = ""
    skipped: str = ""
    start_s: list[float] = field(default_factory=list)
    pss: int = 0
    prepare_s: float = 0
    pixels: dict = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return max(row.last for row in self.rows)

    @property
    def key(self) -> str:
        return f"{self.program}-{self.mode}".replace("=", "-").replace(",", "-")


@dataclass
class Place:
    """Where and on what is measured."""

    root: Path  # environments
    work: Path  # packs, shards and the like, of these photos
    photos: Path
    cpus: list[int]
    again: bool = False


def end_group(group: int) -> None:
    """Ends what a peer has left behind: workers, and those that tidy up after them, before the next one is measured."""
    for sign, seconds in ((0, 1.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 1.0)):
        until = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, sign)
            while time.monotonic() < until:
                os.killpg(group, 0)
                time.sleep(0.05)
            continue
        return


def run(command: list, cpus: list[int], patience: float = PATIENCE) -> str:
    """What a program prints, pinned to some CPUs with all of its children. Raises envs.Missing with the reason."""
    words = ["taskset", "-c", ",".join(map(str, cpus)), *map(str, command)]
    started = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=HERE
    )
    try:
        out, err = started.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        raise envs.Missing(f"took more than {patience:.0f} s") from None
    finally:
        end_group(started.pid)
    if started.returncode:
        raise envs.Missing(envs.last_line(err))
    return out


def command_of(peer: Peer, place: Place, folder: Path, threads: int, *more: object) -> list:
    python = envs.python_of(peer.env, place.root, place.again)
    work = place.work / peer.key
    work.mkdir(parents=True, exist_ok=True)
    return [python, HERE / f"peer_{peer.program}.py", folder, threads, "--mode", peer.mode, "--work", work, *more]


def prepare(peer: Peer, place: Place) -> None:
    """What a peer wants made beforehand, once for these photos."""
    stamp = place.work / peer.key / "ready"
    if peer.prepared and not stamp.exists():
        begun = time.monotonic()
        run(command_of(peer, place, place.photos, len(place.cpus), "--prepare"), place.cpus)
        stamp.write_text(str(time.monotonic() - begun))
    peer.prepare_s = float(stamp.read_text()) if peer.prepared else 0


def answers(command: list, cpus: list[int]) -> list[dict]:
    """The documents that a peer prints."""
    said = [json.loads(line) for line in run(command, cpus).splitlines()]
    for reason in (s["skipped"] for s in said if "skipped" in s):
        raise envs.Missing(reason)
    return said


def measure(peer: Peer, place: Place, memory: bool) -> None:
    """One process, whose epochs are added to the rows."""
    command = command_of(peer, place, place.photos, len(place.cpus), "--epochs", peer.epochs)
    command += ["--since", time.monotonic(), *(["--memory"] if memory else [])]
    epochs = {}
    for said in answers(command, place.cpus):
        if "epoch" in said:
            epochs[said["epoch"]] = (said["images"] / said["seconds"], said["cpu_s"] / said["images"])
        if "start_s" in said:
            peer.start_s.append(said["start_s"])
        peer.versions = said.get("versions", peer.versions)
        peer.pss = max(peer.pss, said.get("pss", 0))
    for row in peer.rows:
        counted = [epochs[e] for e in range(row.first, row.last + 1)]
        row.rates.append([rate for rate, _ in counted])
        row.cpu_s.append([cpu for _, cpu in counted])


def attempt(peer: Peer, what: str, do) -> None:
    """Does something with a peer, unless it has failed; a failure is noted, and all others go on."""
    if peer.skipped:
        return
    print(f"  {what}: {peer.rows[-1].name}", file=sys.stderr)
    try:
        do()
    except envs.Missing as reason:
        peer.skipped = str(reason)
        print(f"    skipped: {reason}", file=sys.stderr)


def rounds(peers: list[Peer], place: Place, n: int) -> None:
    """All peers, again and again, in an order that turns round, so that no one has the quiet hours."""
    for peer in peers:
        attempt(peer, "preparing", lambda peer=peer: prepare(peer, place))
    for i in range(n):
        for peer in peers if i % 2 == 0 else reversed(peers):
            attempt(peer, f"round {i + 1} of {n}", lambda peer=peer, i=i: measure(peer, place, memory=i == 0))


def figures(row: Row, base: Row | None) -> dict:
    """Median, lowest and highest of all epochs; the ratio is the median of the rounds' own."""
    every = [rate for rates in row.rates for rate in rates]
    if not every:
        return {}
    found = {"images_per_s": statistics.median(every), "low": min(every), "high": max(every)}
    found["cpu_s"] = statistics.median(cpu for cpus in row.cpu_s for cpu in cpus)
    if base and base.rates:
        pairs = zip(row.rates, base.rates, strict=False)
        found["ratio"] = statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)
    return found


def as_dicts(peers: list[Peer], base: Row | None) -> list[dict]:
    """For the result file."""
    return [
        {
            "name": row.name,
            "note": row.note,
            "stoker": peer.program == "stoker",
            "versions": peer.versions,
            "skipped": "" if row.rates else peer.skipped,
            "prepare_s": peer.prepare_s,
            "start_s": statistics.median(peer.start_s) if peer.start_s else None,
            "pss": peer.pss or None,
            "pixels": peer.pixels,
            **figures(row, base),
        }
        for peer in peers
        for row in peer.rows
    ]
