# SPDX-License-Identifier: Apache-2.0
"""A progress bar: tqdm's where it is installed, else a line on the terminal."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from typing import Any

EVERY = 0.2  # seconds
ERASE = "\x1b[K"  # what a longer line left behind


class _Line:
    """A line that is written over, with the two methods of tqdm's that are needed."""

    def __init__(self, loader: Any, total: int | None) -> None:
        self._loader, self._total, self._epoch = loader, total, loader.epoch
        self._done, self._open = 0, True
        self._began = self._told = time.monotonic()

    def update(self) -> None:
        self._done += 1
        if time.monotonic() - self._told > EVERY:
            self._told = time.monotonic()
            self._tell("")

    def close(self) -> None:
        if self._open and self._loader._handle is not None:
            self._tell("\n")
        self._open = False

    def _tell(self, end: str) -> None:
        rate = self._done / max(time.monotonic() - self._began, 1e-9)
        of = f"/{self._total}" if self._total else ""
        waited = 100 * self._loader.stats().waited
        words = f"epoch {self._epoch}: {self._done}{of} batches, {rate:.1f} a second, waited {waited:.0f} % of the time"
        print(f"\r{words}{ERASE}", end=end, file=sys.stderr, flush=True)


class _Shown:
    """Batches, counted by a bar. Not a generator: an error would end it, and the next call must go on."""

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


def show(loader: Any, batches: Any) -> Iterator[Any]:
    total = batches.__length_hint__() or None
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _Shown(batches, _Line(loader, total)) if sys.stderr.isatty() else iter(batches)
    return _Shown(batches, tqdm(total=total, desc=f"epoch {loader.epoch}", unit="batch"))
