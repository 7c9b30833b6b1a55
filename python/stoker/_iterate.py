# SPDX-License-Identifier: Apache-2.0
"""Iterators over a loader, and the progress bar.

They are classes, not generators: a generator ends at its first exception, but here the next call goes on.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from ._errors import usage

EVERY = 0.2  # seconds
ERASE = "\x1b[K"  # the rest of a longer line


class Batches:
    """Iterates over one epoch."""

    def __init__(self, loader: Any, generation: int) -> None:
        self._loader, self._generation, self._done = loader, generation, False
        self._moves, self._epoch = loader._moves, loader.epoch

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        self._loader._check_may_wait("next")
        with self._loader._lock:  # threads may share the iterator; none may enter the next epoch
            if self._done:
                raise StopIteration
            if self._loader._generation != self._generation:
                raise usage(
                    "this iterator has ended: the loader started another iterator, or loaded a state; call iter() again"
                )
            if self._has_ended():
                self._done = True
                self._loader._warn()
                raise StopIteration
            try:
                return self._loader._next()
            except StopIteration:
                self._done = True
                raise

    def _has_ended(self) -> bool:
        """Whether the loader went on to the next epoch by itself, in a call that Ctrl-C interrupted."""
        moves, epoch = self._loader._moves, self._loader.epoch
        if moves == self._moves and epoch != self._epoch:
            return True
        self._moves, self._epoch = moves, epoch
        return False

    def __length_hint__(self) -> int:
        try:
            return len(self._loader)
        except TypeError:
            return 0


class Forever:
    """Iterates over epochs without end."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches: Iterator[Any] = iter(())
        self._lock = threading.Lock()

    def __iter__(self) -> Forever:
        return self

    def __next__(self) -> Any:
        self._loader._check_may_wait("next")
        self._loader._check_usable()  # a thread that a forked child does not have may hold the lock
        with self._lock:
            for _ in range(3):  # a state that was taken at the end of an epoch leaves no batch in it
                try:
                    return next(self._batches)
                except StopIteration:
                    self._batches = iter(self._loader)
            raise usage("forever(): an epoch has no batches")


# ---------------------------------------------------------------- progress


class _Line:
    """A line on the terminal that is overwritten. Has the two methods of tqdm that are needed."""

    def __init__(self, loader: Any, total: int | None) -> None:
        self._loader, self._total, self._epoch = loader, total, loader.epoch
        self._done, self._open = 0, True
        self._began = self._printed = time.monotonic()

    def update(self) -> None:
        self._done += 1
        if time.monotonic() - self._printed > EVERY:
            self._printed = time.monotonic()
            self._print("")

    def close(self) -> None:
        if self._open and self._loader._handle is not None:
            self._print("\n")
        self._open = False

    def _print(self, end: str) -> None:
        rate = self._done / max(time.monotonic() - self._began, 1e-9)
        of = f"/{self._total}" if self._total else ""
        waited = 100 * self._loader.stats().waited
        words = f"epoch {self._epoch}: {self._done}{of} batches, {rate:.1f} a second, waited {waited:.0f} % of the time"
        print(f"\r{words}{ERASE}", end=end, file=sys.stderr, flush=True)


class _Shown:
    """Iterates over batches and counts them in a bar."""

    def __init__(self, batches: Iterator[Any], bar: Any) -> None:
        self._batches, self._bar = batches, bar

    def __iter__(self) -> _Shown:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self._bar.close()
            raise
        self._bar.update()
        return batch

    def __del__(self) -> None:  # also after a break
        self._bar.close()


def with_progress(loader: Any, batches: Any) -> Iterator[Any]:
    """Uses tqdm where it is installed, else a line on the terminal; nothing if stderr is not a terminal."""
    total = batches.__length_hint__() or None
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _Shown(batches, _Line(loader, total)) if sys.stderr.isatty() else iter(batches)
    return _Shown(batches, tqdm(total=total, desc=f"epoch {loader.epoch}", unit="batch"))
