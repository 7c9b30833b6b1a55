# SPDX-License-Identifier: Apache-2.0
"""The what-if next-epoch: the first batch of the next epoch is made in a thread, while this epoch runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from . import probe
from .what_ifs import NotPossible


class Ahead(threading.Thread):
    """The iterator of an epoch and its first batches: one, or none if the epoch is empty."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__(name="stoker-doctor-next-epoch", daemon=True)
        self.make = make
        self.error: Exception | None = None
        self.iterator: Any = None
        self.first: list[Any] = []
        self.start()

    def run(self) -> None:
        try:
            self.iterator = self.make()
            self.first = list(itertools.islice(self.iterator, 1))
        except Exception as error:
            self.error = error

    def taken(self) -> Any:
        self.join()
        if self.error:
            raise self.error
        return itertools.chain(self.first, self.iterator)


def iterator(loop: probe.Loop, make: Callable[[], Any]) -> Any:
    """The iterator of this epoch. A loader that is an iterator itself has no further epoch."""
    ready: Ahead | None = loop.ahead
    found = ready.taken() if ready else make()
    if found is loop.thing:
        raise NotPossible("an iterator cannot be started again")
    loop.ahead = Ahead(make)
    if ready:
        probe.extra["applied"] = True
    return found
