# SPDX-License-Identifier: Apache-2.0
"""Statistics of a loader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ._types import counted

MIB = 2**20


class Mixed(NamedTuple):
    """One source of a mixture."""

    share: float  #: its share of the positions
    samples: int  #: how many of its samples were delivered so far, over all epochs and ranks


@dataclass(frozen=True, repr=False)
class Stats:
    """Counters since the loader was opened. Prints as a table. Times of stages are summed over the threads.

    >>> import numpy as np, stoker
    >>> loader = stoker.Loader(np.zeros((8, 3), np.float32), batch_size=4, output="numpy")
    >>> for batch in loader: pass
    >>> loader.stats().batches, loader.stats().samples
    (2, 8)
    """

    seconds: float  #: since the loader was opened
    waited_s: float  #: how long the trainer waited for batches
    batches: int  #: delivered
    samples: int  #: delivered
    bad: int  #: samples that could not be used
    read_bytes: int
    read_s: float
    decode_s: float
    transform_s: float
    op_s: float  #: in your own functions
    idle_s: float  #: threads had nothing to do, because the trainer is slower
    threads: int
    memory_bytes: int  #: used by the loader
    memory_limit: int
    kept_bytes: int  #: in batches that the program still holds
    warnings: int  #: images that decoded with a warning of the codec
    limit: str  #: the slowest stage: "read", "decode", "transform", "op" or "consumer" (the trainer)
    cache_entries: int = 0  #: samples in the cache
    cache_bytes: int = 0  #: in memory
    cache_disk_bytes: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    device_bytes: int = 0  #: memory of the GPU that the loader uses
    copied_bytes: int = 0  #: sent to the GPU
    copy_s: float = 0.0  #: of these copies
    kernel_s: float = 0.0  #: of the loader's kernels
    stream_waited_s: float = 0.0  #: how long streams of the GPU waited for batches
    device_samples: int = 0  #: images that the GPU finished
    device_decoded: int = 0  #: of these, those whose Huffman codes it decoded
    sources: tuple[Mixed, ...] = ()  #: the sources of a mixture, in order
    python: str = ""  #: your own functions and datasets, and where they are
    processes: int = 0  #: that run them

    @property
    def images_per_s(self) -> float:
        """Samples delivered per second since the loader was opened.

        >>> stoker.Loader(photos, "CenterCrop(8)").stats().images_per_s
        0.0
        """
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def waited(self) -> float:
        """The share of the time that the trainer waited for data, 0 to 1.

        >>> 0 <= stoker.Loader(photos, "CenterCrop(8)").stats().waited <= 1
        True
        """
        return self.waited_s / self.seconds if self.seconds > 0 else 0.0

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of each stage, summed over the threads.

        >>> list(stoker.Loader(photos, "CenterCrop(8)").stats().stages)
        ['read', 'decode', 'transform', 'op']
        """
        return {"read": self.read_s, "decode": self.decode_s, "transform": self.transform_s, "op": self.op_s}

    def __repr__(self) -> str:
        """The statistics as a table.

        >>> print(Stats(2.0, 0.5, 10, 640, 1, 0, 0.1, 2.2, 0.4, 0, 0.2, 2, 2**27, 2**30, 2**25, 0, "decode"))
        samples    640 in 10 batches, 320.0 per second, 1 bad
        waited     0.50 s of 2.00 s for data (25.0 %); limited by decode
        threads    2: read 0.10 s, decode 2.20 s, transform 0.40 s, idle 0.20 s
        memory     128.0 MiB, of at most 1024 MiB; 32.0 MiB in batches that the program holds
        """
        stages = {**self.stages, "idle": self.idle_s}
        work = ", ".join(f"{name} {s:.2f} s" for name, s in stages.items() if s >= 0.005)
        work = work or ("less than 0.01 s of work" if self.samples else "no work yet")
        bad = f", {self.bad} bad" if self.bad else ""
        limit = f"; limited by {self._limit}" if self.samples else ""
        kept = f"; {self.kept_bytes / MIB:.1f} MiB in batches that the program holds" if self.kept_bytes else ""
        size = (self.cache_disk_bytes or self.cache_bytes) / MIB
        cache = f"\ncache      {counted(self.cache_entries, 'sample')} in {size:.1f} MiB, found {self.cache_hits} times"
        cache = cache if self.cache_entries else ""
        device = (
            f"\ndevice     {self.copied_bytes / MIB:.1f} MiB copied in {self.copy_s:.2f} s, "
            f"kernels {self.kernel_s:.2f} s, streams waited {self.stream_waited_s:.2f} s; "
            f"{self.device_bytes / MIB:.1f} MiB of the GPU's memory"
        )
        device = device if self.device_bytes else ""
        mixed = "".join(
            f"\n{'' if i else 'mix':<10} source {i}: {counted(s.samples, 'sample')}, "
            f"{100 * s.share:.4g} % of the positions"
            for i, s in enumerate(self.sources)
        )
        memory = f"memory     {self.memory_bytes / MIB:.1f} MiB, of at most {self.memory_limit / MIB:.0f} MiB"
        return (
            f"samples    {self.samples} in {counted(self.batches, 'batch')}, {self.images_per_s:.1f} per second{bad}\n"
            f"waited     {self.waited_s:.2f} s of {self.seconds:.2f} s for data ({100 * self.waited:.1f} %){limit}\n"
            + (f"threads    {self.threads}: {work}\n{memory}" if self.threads else self._where)
            + f"{kept}{device}{cache}{mixed}"
        )

    @property
    def _limit(self) -> str:
        words = {"consumer": "the program, which takes batches more slowly than they are made"}
        if self.limit == "op" and self.python:
            return f"your Python function {self.python}"
        return words.get(self.limit, self.limit)

    @property
    def _where(self) -> str:
        return f"workers    {counted(self.processes, 'process') if self.processes else 'none: in the calling thread'}"


def stats_of(counters: dict[str, Any], python: str = "") -> Stats:
    return Stats(**{**counters, "sources": tuple(Mixed(*s) for s in counters["sources"])}, python=python)


class Counted:
    """What a DataLoader has delivered of a dataset that runs in Python."""

    def __init__(self, began: float) -> None:
        self.began = self.ended = began
        self.batches, self.samples, self.waited = 0, 0, 0.0

    def add(self, samples: int, began: float, ended: float) -> None:
        self.batches, self.samples, self.waited = self.batches + 1, self.samples + samples, self.waited + ended - began
        self.ended = ended


def stats_of_python(loader: Any) -> Stats:
    """Statistics of a DataLoader whose rows are made by Python."""
    from ._explain import python_of

    c = loader._counted or Counted(0.0)
    seconds = c.ended - c.began
    none = "read_bytes threads memory_bytes memory_limit kept_bytes warnings read_s decode_s transform_s op_s idle_s"
    counts: dict[str, Any] = dict.fromkeys(none.split(), 0)
    counts |= {"batches": c.batches, "samples": c.samples, "bad": len(loader._bads)}
    limit = "op" if c.waited > 0.2 * seconds else "consumer"
    processes = (1 if loader._shared_handle() else loader.num_workers) if loader.num_workers else 0
    return Stats(seconds, c.waited, **counts, limit=limit, python=python_of(loader), processes=processes)
