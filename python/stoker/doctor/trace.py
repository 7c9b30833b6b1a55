# SPDX-License-Identifier: Apache-2.0
"""A measurement as a Chrome trace, for Perfetto and chrome://tracing: a process per run, a row per part of a step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from .facts import PARTS, Measurement, Run, finite, items, number, section
from .remedies import label

Event = dict[str, Any]
ROWS = {"wait": "waiting for data", "copy": "copy to the device", "compute": "compute", "host": "Python and the rest"}
STEPS, STALLS = 0, 9  # rows above and below the parts


def points(thing: Any) -> list[tuple[float, float]]:
    """Pairs of numbers, such as [[seconds, bytes], ...]; everything else is left out."""
    rows = thing if isinstance(thing, list) else []
    return [
        (float(row[0]), float(row[1]))
        for row in rows
        if isinstance(row, list | tuple) and len(row) == 2 and all(isinstance(x, int | float) for x in row)
    ]


def _named(pid: int, name: str, tid: int | None = None) -> Iterator[Event]:
    what = "process" if tid is None else "thread"
    yield {"ph": "M", "name": f"{what}_name", "pid": pid, "tid": tid or 0, "args": {"name": name}}
    yield {"ph": "M", "name": f"{what}_sort_index", "pid": pid, "tid": tid or 0, "args": {"sort_index": tid or pid}}


def _slice(pid: int, tid: int, name: str, start_s: float, ms: float, **args: Any) -> Event:
    """A complete event; the format counts in microseconds."""
    return {
        "ph": "X",
        "cat": "doctor",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": round(1e6 * start_s, 3),
        "dur": round(1e3 * ms, 3),
        "args": args,
    }


def _counter(pid: int, name: str, start_s: float, **values: float) -> Event:
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": round(1e6 * start_s, 3), "args": values}


def _steps(pid: int, run: Run) -> Iterator[Event]:
    for index, step in enumerate(items(run, "timeline")):
        start, whole = number(step, "t"), sum(number(step, part) for part in PARTS)
        yield _slice(pid, STEPS, f"step {index}", start, whole)
        at = start
        for row, part in enumerate(PARTS, 1):
            if ms := number(step, part):
                yield _slice(pid, row, ROWS[part], at, ms, step=index)
            at += number(step, part) / 1e3


def _run(pid: int, run: Run) -> Iterator[Event]:
    yield from _named(pid, label(str(run.get("name"))))
    yield from _named(pid, "steps", STEPS)
    for row, part in enumerate(PARTS, 1):
        yield from _named(pid, ROWS[part], row)
    yield from _steps(pid, run)
    for epoch, begun in enumerate(items(run, "epochs")):
        yield {
            "ph": "i",
            "name": f"epoch {epoch}",
            "pid": pid,
            "tid": STEPS,
            "ts": round(1e6 * max(0.0, number(begun, "start_s")), 3),  # the first began before the steps that count
            "s": "p",
        }
    for stall in items(run, "stalls"):
        if stall.get("t") is not None:
            yield _slice(pid, STALLS, str(stall.get("what")), number(stall, "t"), 1e3 * number(stall, "s"))
    for seconds, rss in points(section(run, "memory").get("rss")):
        yield _counter(pid, "memory, MB", seconds, memory=round(rss / 1e6, 3))
    for seconds, cpus in points(section(run, "cpu").get("timeline")):
        yield _counter(pid, "CPUs in use", seconds, cpus=cpus)


def events(m: Measurement) -> list[Event]:
    """All runs that have a timeline, each on a clock of its own that starts with 0."""
    shown = [run for run in items(m, "runs") if run.get("timeline")]
    return [event for pid, run in enumerate(shown, 1) for event in _run(pid, run)]


def write(m: Measurement, path: str | os.PathLike[str]) -> None:
    """Writes the file."""
    about = {key: m.get(key) for key in ("schema", "command", "started", "machine", "verdict")}
    document = {"traceEvents": events(m), "displayTimeUnit": "ms", "otherData": finite(about)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(finite(document), file, allow_nan=False)
