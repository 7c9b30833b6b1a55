# SPDX-License-Identifier: Apache-2.0
"""What changed between two documents of the doctor."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from .causes import percent, size, times
from .facts import (
    AS_IS,
    LOADER,
    MODEL,
    Measurement,
    Run,
    items,
    mean_ms,
    noise,
    number,
    run_of,
    section,
    step_ms,
)
from .remedies import label
from .report import peak_memory, sentence
from .trace import ROWS
from .verdict import gain_text

SCHEMA = "stoker-doctor/1"


class Line(NamedTuple):
    name: str
    before: str
    after: str
    change: str


def read(path: str | os.PathLike[str]) -> Measurement:
    """A document. Raises ValueError if the file is not a document, OSError if it cannot be read."""
    with open(path, encoding="utf-8") as file:
        try:
            m = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from None
    if not isinstance(m, dict) or m.get("schema") != SCHEMA:
        found = m.get("schema") if isinstance(m, dict) else None
        raise ValueError(f"{path}: not a document of stoker doctor --json: its schema is {found!r}, not {SCHEMA!r}")
    if m.get("form") == "data":
        raise ValueError(f"{path}: a document of a dataset; compare takes documents of a training script")
    return m


def _line(name: str, pair: tuple[float, float], text: Callable[[float], str]) -> list[Line]:
    """Empty where neither document has the value."""
    before, after = pair
    if not before and not after:
        return []
    change = gain_text(after / before) if before and after else ""
    return [Line(name, text(before) if before else "-", text(after) if after else "-", change)]


def _points(shares: tuple[float, float]) -> str:
    return f"{100 * (shares[1] - shares[0]):+.0f} points"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def lines(before: Measurement, after: Measurement) -> list[Line]:
    """Every value that one of the two has: training as it is, the ceilings, and the what-ifs."""
    old, new = (run_of(m, AS_IS) or {} for m in (before, after))

    def both(value: Callable[[Run], float]) -> tuple[float, float]:
        return value(old), value(new)

    found = _line("samples/s", both(lambda run: number(run, "samples_per_s")), _rate)
    found += _line("time of a step", both(step_ms), times)
    for part, words in ROWS.items():
        found += _line(f"  {words}", (mean_ms(old, part), mean_ms(new, part)), times)
    waits = both(lambda run: number(run, "wait_share"))
    if any(waits):
        found.append(Line("share of waiting", percent(waits[0]), percent(waits[1]), _points(waits)))
    found += _line("first batch, s", both(lambda run: number(run, "first_batch_s")), lambda value: f"{value:.2g}")
    found += _line("CPUs in use", both(lambda run: number(run, "cpu", "all")), lambda value: f"{value:.2g}")
    found += _line("memory at most", both(peak_memory), size)
    names = [str(run.get("name")) for m in (before, after) for run in items(m, "runs")]
    tried = [name for name in dict.fromkeys(names) if name not in (AS_IS, MODEL, LOADER)]
    for name in (MODEL, LOADER, *tried):
        rates = [number(run_of(m, name), "samples_per_s") for m in (before, after)]
        found += _line(f"{label(name)}, samples/s", (rates[0], rates[1]), _rate)
    return found


def table(found: list[Line]) -> str:
    rows = [Line("", "before", "after", "change"), *found]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        f"{r.name:<{widths[0]}}  {r.before:>{widths[1]}}  {r.after:>{widths[2]}}  {r.change:>{widths[3]}}".rstrip()
        for r in rows
    )


def verdict_of(before: Measurement, after: Measurement) -> tuple[str, int]:
    """Whether training is faster, in a sentence, and 1 if it is slower or failed."""
    runs = [run_of(m, AS_IS) for m in (before, after)]
    old, new = (number(run, "samples_per_s") for run in runs)
    if not new:
        return "The second document has no run of the script that worked.", 1
    if not old:
        return "The first document has no run of the script that worked; the second has one.", 0
    gain, least = new / old, max(0.03, 3 * noise([run for run in runs if run]))
    if abs(gain - 1) <= least:
        return f"Training is as fast as before: {gain_text(gain)}, and up to {percent(least)} is noise.", 0
    return f"Training is {gain_text(gain)} as fast as before.", int(gain < 1)


def _alarms(m: Measurement) -> dict[str, str]:
    return {str(alarm.get("id")): str(alarm.get("title")) for alarm in items(m, "alarms")}


def notes(before: Measurement, after: Measurement) -> list[str]:
    """Differences between the two documents, and the verdict of each."""
    found = []
    for key, words in (("command", "The commands differ"), ("machine", "The machines differ")):
        old, new = (_about(m, key) for m in (before, after))
        if old != new:
            found.append(f"{words}: {old} before, {new} after.")
    found += [f"Before: {sentence(before)}", f"After: {sentence(after)}"]
    old_alarms, new_alarms = _alarms(before), _alarms(after)
    found += [f"New alarm: {title}." for name, title in new_alarms.items() if name not in old_alarms]
    found += [f"No longer an alarm: {title}." for name, title in old_alarms.items() if name not in new_alarms]
    return found


def _about(m: Measurement, key: str) -> str:
    if key == "command":
        return " ".join(map(str, m.get("command") or ["?"]))
    machine = section(m, "machine")
    gpus = ", ".join(str(gpu.get("name")) for gpu in items(machine, "gpus")) or "no GPU"
    return f"{number(machine, 'cpus'):.0f} CPUs, {gpus}"


def text(before: Measurement, after: Measurement, width: int = 80) -> str:
    """The whole comparison."""
    words, _ = verdict_of(before, after)
    more = [textwrap.fill(note, width, subsequent_indent="  ") for note in notes(before, after)]
    return "\n".join([textwrap.fill(words, width), "", table(lines(before, after)), "", *more]) + "\n"


def main(before_path: str | os.PathLike[str], after_path: str | os.PathLike[str]) -> int:
    """Prints what changed, and returns the exit status.

    0: as fast or faster; 1: slower, failed, or a new alarm; 2: not a doctor document; 3: cannot be read
    """
    both: list[Any] = []
    for path in (before_path, after_path):
        try:
            both.append(read(path))
        except OSError as error:
            print(f"stoker doctor: cannot read {path}: {error.strerror}", file=sys.stderr)
            return 3
        except ValueError as error:
            print(f"stoker doctor: {error}", file=sys.stderr)
            return 2
    print(text(*both), end="")
    new = set(_alarms(both[1])) - set(_alarms(both[0]))
    return int(bool(new) or verdict_of(*both)[1])
