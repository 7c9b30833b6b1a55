# SPDX-License-Identifier: Apache-2.0
"""The loader alone: iterates it as fast as it goes, then measures its parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import probe


def run(loop: probe.Loop, make: Callable[[], Any]) -> None:
    """Never returns: the run ends when it is time."""
    from . import describe, stages

    limit = None
    if probe.plan.get("cold"):
        evict(describe.files_of(getattr(loop.thing, "dataset", None)))
    loop.open()
    probe.depth += 1
    while True:
        iterator = make()
        before = len(loop.begin)
        while True:
            t0 = probe.clock()
            try:
                batch = next(iterator)
            except StopIteration:
                loop.closed.append(t0)
                break
            loop.note(loop.opened or t0, probe.clock(), batch)
            if len(loop.begin) == 1:
                limit = probe.clock() + probe.plan["seconds"]
            if t0 > (limit or t0) or (probe.plan.get("steps") and len(loop.begin) > probe.plan["steps"]):
                probe.deadline = float("inf")
                if not probe.plan.get("cold"):
                    stages.measure(loop, batch)
                probe.finish("ok")
        if len(loop.begin) == before:  # a generator: it cannot begin again
            probe.finish("ok")
        loop.open()


def evict(files: list[str]) -> None:
    """Takes the files out of the page cache."""
    for path in files:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
