# SPDX-License-Identifier: Apache-2.0
"""Adds documents of the doctor to the recorded measurements that the tests judge.

record.py BUILD/doctor/documents/NAME-0.json ...    writes tests/python/doctor_recorded.json, a line per script
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from run import cases

OUT = Path(__file__).parents[2] / "tests/python/doctor_recorded.json"
LEFT_OUT = (
    *("timeline", "loss", "histogram", "explain", "compared", "diff", "slowest", "disabled", "not_disabled"),
    *("versions", "verdict", "next", "alarms", "command", "started"),
)
POINTS = 24  # of memory over time


def trimmed(thing: Any) -> Any:
    """A document without what no rule reads, and numbers with four digits."""
    if isinstance(thing, dict):
        if thing.get("kind") in ("ceiling", "what-if"):
            thing = {key: value for key, value in thing.items() if key not in ("epochs", "memory")}
        if "rss" in thing:
            thing = {**thing, "rss": thing["rss"][:: 1 + len(thing["rss"]) // POINTS]}
        return {key: trimmed(value) for key, value in thing.items() if key not in LEFT_OUT}
    if isinstance(thing, list):
        return [trimmed(one) for one in thing]
    return float(f"{thing:.4g}") if isinstance(thing, float) else thing


def main(paths: list[str]) -> None:
    expected = {case.name: case.expected for case in cases()}
    known = json.loads(OUT.read_text()) if OUT.exists() else {}
    for path in map(Path, paths):
        name = path.stem.rpartition("-")[0]
        known[name] = {"expects": expected[name], "measurement": trimmed(json.loads(path.read_text()))}
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
