# SPDX-License-Identifier: Apache-2.0
"""with stoker.doctor(): what can be measured in a program that runs already, without starting it again."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from typing import Any

from . import machine, report, runner
from .facts import AS_IS, Measurement, section
from .verdict import judge


class Here:
    """Times the loops inside the block, and prints what they wait for when it ends.

    `document` has the measurements then. A cause is suspected only: to prove it, run the script with `stoker doctor`.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.document: Measurement = {}

    def __enter__(self) -> Here:
        if runner.INSIDE not in sys.path:
            sys.path.append(runner.INSIDE)
        self._probe: Any = import_module("stoker_doctor.probe")
        if self._probe.pid:
            raise RuntimeError("a block of stoker.doctor() is running already")
        hooks = import_module("stoker_doctor.hooks")
        self._probe.reset()
        try:
            self._probe.begin({"mode": "here", "folder": os.getcwd()})
            hooks.install_clocks()
            self._history = machine.History(os.getpid())
            self._history.look()
        except BaseException:
            self._probe.pid = 0  # type: ignore[attr-defined]
            raise
        self._begun = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self._report()
        except Exception:
            if kind is None:  # else the exception of the block is raised
                raise
        finally:
            self._probe.pid = 0

    def _report(self) -> None:
        self._history.look()
        record = import_module("stoker_doctor.record").make("ok", time.perf_counter())
        numbers = record.get("run") or {}
        run = {"name": AS_IS, "kind": "baseline", "status": "ok", "reason": None, **numbers}
        if not numbers.get("steps"):
            run["status"], run["reason"] = "failed", "no known loader was used; mark yours: stoker.watch(loader)"
        run.update(self._history.summary(self._begun, time.perf_counter(), os.getpid()))
        extra = section(record, "extra")
        self.document = judge(
            {
                "schema": "stoker-doctor/1",
                "form": "here",
                "command": sys.argv,
                "seconds": time.perf_counter() - self._begun,
                "machine": machine.describe(extra.get("gpus") or [], extra.get("versions") or {}, None),
                "framework": record.get("framework"),
                "loader": record.get("loader") or {},
                "runs": [run],
                "overhead": run.pop("overhead", {}),
            }
        )
        if not self.quiet:
            print(report.text(self.document), end="")
