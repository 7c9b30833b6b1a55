# SPDX-License-Identifier: Apache-2.0
"""What a loader did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stats:
    """Counters since the loader was opened; stages are summed over the threads.

    >>> import numpy as np, stoker
    >>> loader = stoker.Loader(np.zeros((8, 3), np.float32), batch_size=4, output="numpy")
    >>> for batch in loader: pass
    >>> loader.stats().batches, loader.stats().samples
    (2, 8)
    """

    seconds: float  #: since the loader was opened
    waited_s: float  #: of it: the trainer waited for a batch
    batches: int
    samples: int
    bad: int
    read_bytes: int
    read_s: float
    decode_s: float
    transform_s: float
    op_s: float
    idle_s: float  #: threads with nothing to do: the trainer is the slower side
    threads: int
    memory_bytes: int
    memory_limit: int
    kept_bytes: int  #: batches that the program keeps
    warnings: int
    limit: str  #: "read", "decode", "transform", "op" or "consumer"

    @property
    def images_per_s(self) -> float:
        """Samples delivered for each second."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def waited(self) -> float:
        """The share of time the trainer waited for data, 0 to 1."""
        return self.waited_s / self.seconds if self.seconds > 0 else 0.0

    @property
    def stages(self) -> dict[str, float]:
        """Seconds by stage, over all threads."""
        return {"read": self.read_s, "decode": self.decode_s, "transform": self.transform_s, "op": self.op_s}

    def __str__(self) -> str:
        stages = "  ".join(f"{name} {s:.2f} s" for name, s in self.stages.items() if s)
        return (
            f"{self.samples} samples in {self.batches} batches, {self.images_per_s:.1f} a second, {self.bad} bad\n"
            f"waited {100 * self.waited:.1f} % of {self.seconds:.1f} s; limited by {self.limit}\n"
            f"{stages or 'no work yet'} on {self.threads} threads; {self.memory_bytes / 2**20:.1f} MiB held"
        )


def stats_of(counters: dict[str, Any]) -> Stats:
    return Stats(**counters)
