# SPDX-License-Identifier: Apache-2.0
"""Iterators over a loader. Not generators: those end with their first exception, and here the next call goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from ._errors import usage


class Batches:
    """One epoch under way."""

    def __init__(self, loader: Any, generation: int) -> None:
        self._loader, self._generation, self._done = loader, generation, False

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        self._loader._check_may_wait("next")
        with self._loader._lock:  # several threads may share it: none may run into the next epoch
            if self._done:
                raise StopIteration
            if self._loader._generation != self._generation:
                raise usage("this iterator has ended: another one was begun on the same loader, or a state was loaded")
            try:
                return self._loader._next()
            except StopIteration:
                self._done = True
                raise

    def __length_hint__(self) -> int:
        try:
            return len(self._loader)
        except TypeError:
            return 0


class Forever:
    """Epochs without end."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches: Iterator[Any] = iter(())
        self._lock = threading.Lock()

    def __iter__(self) -> Forever:
        return self

    def __next__(self) -> Any:
        self._loader._check_may_wait("next")
        self._loader._check_usable()  # in a forked child a thread that is not there may hold the lock
        with self._lock:
            for _ in range(3):  # the rest of an epoch is empty where a state was taken at its end
                try:
                    return next(self._batches)
                except StopIteration:
                    self._batches = iter(self._loader)
            raise usage("forever(): an epoch has no batch at all")
