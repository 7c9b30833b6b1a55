# SPDX-License-Identifier: Apache-2.0
"""Where the Python code of a Loader runs: in threads of the engine, in the calling thread, or in worker processes.

Functions that draw from the generators of the whole process never run in threads: the trainer's own generators would
change. A worker has an engine of one thread, so that the ops on either side of a function stay in C.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import reduction
from typing import Any, NamedTuple

from . import _stoker
from ._errors import Error
from ._memory import new_file
from ._rows import Caller, Hook
from ._types import memory_bytes
from ._workers import Bad, InOrder, Samples, Task, Workers, start_workers

WORTH_S = 0.05  # Python work of an epoch that is worth a process
EACH_S = 0.2  # and each further one
PROBE_S = 0.02
AHEAD = 2  # batches for each process
SUMS = "bad read_bytes read_s decode_s transform_s op_s idle_s warnings memory_bytes cache_hits cache_misses".split()

# ---------------------------------------------------------------- how many


class Way(NamedTuple):
    """Where Python code runs."""

    processes: int = 0
    here: bool = False  # in the calling thread
    why: str = ""


def gil_is_off() -> bool:
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


def held_share(work: Callable[[], Any]) -> float:
    """How much of the time some code holds the GIL, 0 to 1: another thread measures how long it waits for it.

    >>> 0 <= held_share(lambda: time.sleep(0.001)) < 1
    True
    """
    waits: list[float] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            began = time.perf_counter()
            time.sleep(0.0005)
            waits.append(time.perf_counter() - began - 0.0005)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    end = time.perf_counter() + PROBE_S
    while time.perf_counter() < end:
        work()
    done.set()
    thread.join()
    most = sys.getswitchinterval()
    held = sum(min(max(wait, 0.0), most) for wait in waits)
    return min(1.0, held / max(held + 0.0005 * len(waits), 1e-9))


def decide(asked: int | None, callers: Sequence[Caller], hook: Hook | None, parts: int, cores: int) -> Way:
    """asked: by the user; parts: ranks that share the samples."""
    if asked is not None:
        return Way(asked, here=hook is not None and asked == 0, why="as processes= says")
    if hook is None:
        return Way()
    samples, names = hook.samples // parts, ", ".join(caller.name for caller in callers)
    seconds = hook.seconds if hook.seconds * samples < WORTH_S else hook.second_time()
    here = any(caller.seeds for caller in callers)
    if multiprocessing.current_process().daemon:
        return Way(here=here, why="this process is a daemon, which cannot start processes")
    if seconds * samples < WORTH_S:
        return Way(here=here, why=f"{names}: only {1e3 * seconds * samples:.0f} ms per epoch, too little for processes")
    if not here and gil_is_off():
        return Way(why="Python has no GIL")
    if not here and hook.again and (share := held_share(hook.again)) * cores <= 0.5:
        return Way(why=f"{names} holds the GIL {100 * share:.0f} % of the time")
    return Way(min(cores, max(1, math.ceil(seconds * samples / EACH_S))), why=f"{1e3 * seconds:.3g} ms a sample")


class SharedCache:
    """Memory that the caches of all workers share. It lasts as long as this object: loaders and iterators have it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        weakref.finalize(self, os.close, fd).atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.fd),)


def _received(fd: Any) -> SharedCache:
    return SharedCache(fd.detach())


def shared_cache(memory: Any) -> SharedCache:
    """A new one. memory: as the loader has it."""
    limit = memory_bytes("memory", memory) or int(_stoker.info()["memory"])
    return SharedCache(new_file(limit // 4 * 3, "stoker cache"))


# ---------------------------------------------------------------- in a worker


class EngineSamples(Samples):
    """The engine makes the rows of a batch, and calls the functions that are not ops of its own."""

    def __init__(
        self, arguments: dict[str, Any], processes: int, batched: bool = True, cache: SharedCache | None = None
    ) -> None:
        super().__init__(arguments["source"], len, batched, arguments["on_error"])
        memory = memory_bytes("memory", arguments["memory"])
        shares = {"memory": memory and max(memory // (processes + 1), 32 << 20), "threads": 1, "processes": 0}
        self.arguments, self.cache = {**arguments, **shares}, cache
        self.maker: Any = None
        self.engine: _stoker.Loader | None = None  # of the trainer

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "engine": None, "maker": None}

    def _open(self) -> Any:
        from ._loader import Maker

        self.engine = None
        self.maker = Maker(self.cache.fd if self.cache else 0, self.arguments)
        return self.maker

    def make(self, task: Task) -> tuple[Any, list[Bad]]:
        maker = self._open() if self.maker is None else self.maker
        indices = task.indices if self.batched or task.indices is None else [task.indices]
        return maker.make(task._replace(indices=indices), self.board), maker.new_bads()

    def counters(self) -> dict[str, Any]:
        return {} if self.maker is None else self.maker._engine.stats()

    def sample(self, task: Task, n: int) -> Any:
        if task.indices is not None or self.engine is None:
            return super().sample(task, n)
        try:
            return json.loads(self.engine.drawn(None, task.position + n, task.seed))["sample"]
        except Error:
            return None

    def name(self, task: Task, n: int) -> str:
        sample = self.sample(task, n)
        if sample is None:
            return f"a batch of epoch {task.seed}, from position {task.position} on"
        return f"sample {sample!r}"


# ---------------------------------------------------------------- in the trainer


def merged(counters: dict[str, Any], workers: Workers) -> dict[str, Any]:
    """The counters of a loader with those of its worker processes."""
    parts = workers.counters()
    total = {name: sum(p.get(name, 0) for p in parts) for name in SUMS}
    merged = {**counters, **{name: counters[name] + value for name, value in total.items()}}
    merged["processes"] = workers.count
    stages = {name: merged[f"{name}_s"] for name in ("read", "decode", "transform", "op")}
    slowest = max(stages, key=lambda name: stages[name])
    merged["limit"] = slowest if merged["waited_s"] > 0.1 * merged["seconds"] else "consumer"
    return merged


class Stream:
    """The batches of a Loader, made by worker processes."""

    def __init__(self, samples: EngineSamples, count: int, handle: bool) -> None:
        """handle: the Python code has an open file or database."""
        context = multiprocessing.get_context()
        self.workers = start_workers(count, samples, None, context, 0, handle)
        self._open = InOrder(self.workers)
        self._limit = AHEAD * count
        self._waited = 0.0
        self._batches = self._samples = 0

    def restart(self) -> None:
        self._open.forget()

    def _top_up(self, engine: _stoker.Loader, order: Callable[[int, int, int], Any]) -> None:
        while len(self._open.tasks) < self._limit and (span := engine.span(len(self._open.tasks))) is not None:
            epoch, first, n = span
            samples = order(epoch, first, n)
            self._open.send(Task(self._open.number, first, None if samples is None else samples.tolist(), epoch, n))

    def take(
        self,
        engine: _stoker.Loader,
        order: Callable[[int, int, int], Any],
        count: Callable[[int, list[Bad]], None],
    ) -> Any:
        """The next batch; None: the epoch has ended. order: the samples at positions; count: counts bad ones."""
        while True:
            task = next(iter(self._open.tasks.values()), None)
            if task is not None and engine.span(0) != (task.seed, task.position, task.rows):
                self._open.forget()  # Ctrl-C came before a batch was passed: it is made again
            self._top_up(engine, order)
            task = next(iter(self._open.tasks.values()), None)
            if task is None or task.seed != engine.epoch():
                engine.pass_batch()
                return None
            began = time.perf_counter()
            task, reply = self._open.take()
            self._waited += time.perf_counter() - began
            engine.pass_batch()
            self._top_up(engine, order)
            count(task.seed, reply.bads)
            if hasattr(reply.batch, "reraise"):
                reply.batch.reraise()
            if reply.batch is not None:
                self._batches += 1
                self._samples += task.rows - (len(reply.bads) if self.workers.samples.on_error == "skip" else 0)
                return reply.batch

    def stats(self, counters: dict[str, Any]) -> dict[str, Any]:
        """The engine's counters of all processes together."""
        delivered = {"batches": self._batches, "samples": self._samples, "waited_s": self._waited}
        return merged({**counters, **delivered}, self.workers)

    def close(self) -> None:
        self.workers.close()
