# SPDX-License-Identifier: Apache-2.0
"""A progress bar: tqdm's where it is installed, else a line on the terminal."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from typing import Any


def _line(loader: Any, done: int, total: int | None, began: float) -> str:
    stats = loader.stats()
    rate = done / max(time.monotonic() - began, 1e-9)
    of = f"/{total}" if total else ""
    return f"epoch {loader.epoch}: {done}{of} batches, {rate:.1f} a second, waited {100 * stats.waited:.0f} %"


def show(loader: Any, batches: Any) -> Iterator[Any]:
    total = batches.__length_hint__() or None
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        tqdm = None
    if tqdm:
        yield from tqdm(batches, total=total, desc=f"epoch {loader.epoch}", unit="batch")
        return
    began = shown = time.monotonic()
    on_terminal = sys.stderr.isatty()
    for done, batch in enumerate(batches, 1):
        if on_terminal and time.monotonic() - shown > 0.2:
            shown = time.monotonic()
            print("\r" + _line(loader, done, total, began), end="", file=sys.stderr, flush=True)
        yield batch
    if on_terminal:
        print(file=sys.stderr)
