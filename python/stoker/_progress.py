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


def _line(loader: Any, epoch: int, done: int, total: int | None, began: float) -> str:
    rate = done / max(time.monotonic() - began, 1e-9)
    of = f"/{total}" if total else ""
    waited = 100 * loader.stats().waited
    return f"epoch {epoch}: {done}{of} batches, {rate:.1f} a second, waited {waited:.0f} % of the time"


def _plain(loader: Any, batches: Any, total: int | None) -> Iterator[Any]:
    began = shown = time.monotonic()
    epoch, done = loader.epoch, 0

    def tell(end: str) -> None:
        print(f"\r{_line(loader, epoch, done, total, began)}{ERASE}", end=end, file=sys.stderr, flush=True)

    try:
        for batch in batches:
            done += 1
            if time.monotonic() - shown > EVERY:
                shown = time.monotonic()
                tell("")
            yield batch
    finally:  # also after a break
        if loader._handle is not None:
            tell("\n")


def show(loader: Any, batches: Any) -> Iterator[Any]:
    total = batches.__length_hint__() or None
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _plain(loader, batches, total) if sys.stderr.isatty() else iter(batches)
    return iter(tqdm(batches, total=total, desc=f"epoch {loader.epoch}", unit="batch"))
