# SPDX-License-Identifier: Apache-2.0
"""Processes that make the batches of a dataset in Python.

A worker collates a batch straight into memory that it shares with the trainer, and sends a description of it. The
trainer sees that memory as tensors, without a copy. Once they are gone, the worker uses the memory again.

    trainer                                  worker
    task: number, indices, free segments ->  samples -> collate_fn -> segments
    tensors over the segments            <-  number, pickled batch, new segments

Segments are memfds: they need no /dev/shm, and vanish with the processes. A segment reserves address space; it
takes memory as far as something was written to it.
"""

from __future__ import annotations

import collections
import contextlib
import io
import mmap
import os
import pickle
import selectors
import signal
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing import Pipe, reduction
from typing import Any, NamedTuple

import numpy as np

from ._errors import DataError, Error
from ._output import framework
from ._seeds import mixed, own_generators, seeder

SEGMENT = 256 << 20  # bytes of address space
ALIGN = 64
INLINE = 32 << 10  # a longer description travels in a segment, so that a pipe never fills up
GRACE_S = 0.05  # for a busy worker to end by itself
BOARD = 4096

Bad = tuple[Any, str]  # the index of a sample, and why it is bad
Place = tuple[int, int]  # segment and offset


class Task(NamedTuple):
    """One batch to make."""

    number: int
    position: int  # of its first sample in the epoch
    indices: Any  # a list; one index where there are no batches
    seed: int  # of the epoch


# ---------------------------------------------------------------- samples


def _no_report(n: int) -> None:
    """Nobody asks which sample of a batch is under way."""


class Samples:
    """Makes batches from a dataset, in the process that calls it."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool, on_error: str) -> None:
        self.dataset, self.collate, self.batched, self.on_error = dataset, collate, batched, on_error
        self.generators = own_generators(dataset)
        self.report: Callable[[int], None] = _no_report
        self.seed: Callable[[int], None] | None = None  # made in the process that uses it

    def _seed(self, seed: int) -> None:
        if self.seed is None:
            self.seed = seeder()
        self.seed(seed)
        for generator in self.generators:
            generator.set_random_seed(seed & 0x7FFFFFFF)

    def _one(self, task: Task, n: int, index: Any) -> Any:
        self.report(n)
        self._seed(mixed(task.seed, task.position + n))
        try:
            return self.dataset[index]
        except Exception as error:
            error.add_note(f"Stoker: this was sample {index!r} of the dataset")
            raise

    def _kept(self, task: Task, bads: list[Bad]) -> list[Any]:
        """The good samples; with on_error="replace" the next good one stands in for a bad one."""
        samples = []
        for n, index in enumerate(task.indices):
            tries = [index]
            if self.on_error == "replace" and isinstance(index, int):
                tries += [(index + k) % len(self.dataset) for k in range(1, min(len(self.dataset), 100))]
            for attempt in tries:
                try:
                    samples.append(self._one(task, n, attempt))
                    break
                except Exception as error:
                    bads.append((attempt, f"{type(error).__name__}: {error}"))
        return samples

    def make(self, task: Task) -> tuple[Any, list[Bad]]:
        """The batch and its bad samples; None for a batch without any good one."""
        bads: list[Bad] = []
        if not self.batched:
            return self.collate(self._one(task, 0, task.indices)), bads
        together = getattr(self.dataset, "__getitems__", None)
        if together:
            self.report(0)
            self._seed(mixed(task.seed, task.position))
            samples = together(task.indices)
        elif self.on_error == "raise":
            samples = [self._one(task, n, index) for n, index in enumerate(task.indices)]
        else:
            samples = self._kept(task, bads)
        if not samples and task.indices:
            return None, bads
        self._seed(mixed(~task.seed, task.position))
        return self.collate(samples), bads


# ---------------------------------------------------------------- the worker's side


class Segments:
    """Memory that the worker fills and the trainer reads."""

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []
        self.free: list[int] = []
        self.used: list[int] = []  # by the batch under way
        self.fresh: list[int] = []  # descriptors that the trainer does not have yet
        self.offset = 0

    def begin(self, free: list[int]) -> None:
        self.free += free
        self.used = []

    def _another(self, n: int) -> int:
        for i in range(len(self.free) - 1, -1, -1):
            if len(self.maps[self.free[i]]) >= n:
                return self.free.pop(i)
        fd = os.memfd_create("stoker")
        size = max(n, SEGMENT)
        os.ftruncate(fd, size)
        self.maps.append(mmap.mmap(fd, size))
        self.fresh.append(fd)
        return len(self.maps) - 1

    def place(self, n: int) -> Place:
        if not self.used or self.offset + n > len(self.maps[self.used[-1]]):
            self.used.append(self._another(n))
            self.offset = 0
        at = self.offset
        self.offset += -(-n // ALIGN) * ALIGN
        return self.used[-1], at

    def array(self, dtype: Any, shape: tuple[int, ...]) -> tuple[Any, Place]:
        count = int(np.prod(shape))
        segment, at = self.place(count * dtype.itemsize)
        return np.frombuffer(self.maps[segment], dtype, count, at).reshape(shape), (segment, at)

    def tensor(self, dtype: Any, shape: Any, strides: Any = None) -> tuple[Any, Place]:
        count = shape.numel()
        segment, at = self.place(count * dtype.itemsize)
        flat = framework("torch").frombuffer(self.maps[segment], dtype=dtype, count=count, offset=at)
        return flat.view(shape) if strides is None else flat.as_strided(shape, strides), (segment, at)


class _Pickler(pickle.Pickler):
    """Arrays and tensors go into segments; their places are pickled."""

    def __init__(self, file: io.BytesIO, segments: Segments, placed: dict[int, tuple[Any, Any]]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.segments, self.placed, self.tensor = segments, placed, framework("torch").Tensor

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind is not self.tensor and kind is not np.ndarray:
            return None
        known = self.placed.get(id(value))
        if known is None:
            name = self._tensor(value) if kind is self.tensor else self._array(value)
            if name is None:
                return None
            known = self.placed[id(value)] = value, name  # holds the value, so that its id is not used again
        return known[1]

    def _array(self, value: Any) -> Any:
        if value.dtype.hasobject or value.size == 0:
            return None
        to, place = self.segments.array(value.dtype, value.shape)
        to[...] = value
        return "array", place, value.dtype, value.shape, None

    def _tensor(self, value: Any) -> Any:
        torch = framework("torch")
        plain = value.device.type == "cpu" and value.layout is torch.strided and not value.is_quantized
        if not plain or value.requires_grad or value.is_conj() or value.is_neg() or value.numel() == 0:
            return None
        last = value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last)
        strides = value.stride() if last and not value.is_contiguous() else None
        to, place = self.segments.tensor(value.dtype, value.shape, strides)
        to.copy_(value)
        return "tensor", place, value.dtype, tuple(value.shape), strides


class _Worker:
    """What runs in a worker process."""

    def __init__(self, pipe: Any, samples: Samples) -> None:
        self.pipe, self.samples, self.segments = pipe, samples, Segments()
        self.placed: dict[int, tuple[Any, Any]] = {}

    def stack(self, batch: list[Any], *, collate_fn_map: Any = None) -> Any:
        """Takes the place of torch's own: stacks straight into a segment."""
        torch, first = framework("torch"), batch[0]
        alike = all(
            type(t) is torch.Tensor and t.shape == first.shape and t.dtype == first.dtype and not t.requires_grad
            for t in batch
        )
        if not alike or first.layout is not torch.strided or first.device.type != "cpu" or first.numel() == 0:
            return torch.stack(batch, 0)
        shape = torch.Size((len(batch), *first.shape))
        out, place = self.segments.tensor(first.dtype, shape)
        torch.stack(batch, 0, out=out)
        self.placed[id(out)] = out, ("tensor", place, first.dtype, tuple(shape), None)
        return out

    def reply(self, number: int, value: Any, bads: list[Bad]) -> None:
        file = io.BytesIO()
        _Pickler(file, self.segments, self.placed).dump(value)
        text: Any = file.getbuffer()
        place = None
        if len(text) > INLINE:
            to, place = self.segments.array(np.dtype(np.uint8), (len(text),))
            to[...] = np.frombuffer(text, np.uint8)
            text = place, len(text)
        else:
            text = bytes(text)
        fresh, self.segments.fresh = self.segments.fresh, []
        self.pipe.send((number, text, bads, self.segments.used, len(fresh)))
        for fd in fresh:
            reduction.send_handle(self.pipe, fd, os.getppid())
            os.close(fd)

    def run(self) -> None:
        with contextlib.suppress(EOFError, ConnectionError):  # the trainer is gone
            while (message := self.pipe.recv()) is not None:
                task, free = message
                self.segments.begin(free)
                try:
                    value, bads = self.samples.make(task)
                    self.reply(task.number, value, bads)
                except BaseException as error:
                    self.segments.begin(self.segments.used)
                    self.fail(task.number, error)
                self.placed.clear()

    def fail(self, number: int, error: BaseException) -> None:
        where = f"in worker process {os.getpid()}"
        self.reply(
            number, framework("torch._utils").ExceptionWrapper((type(error), error, error.__traceback__), where), []
        )


def _end_with_trainer(life: Any) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv_bytes()
    os._exit(1)


def _work(
    pipe: Any,
    life: Any,
    worker: int,
    workers: int,
    seed: int,
    samples: Samples,
    init: Callable[[int], None] | None,
) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer, which ends its workers
    threading.Thread(target=_end_with_trainer, args=(life,), daemon=True).start()
    torch: Any = framework("torch")
    torch.set_num_threads(1)
    inner: Any = framework("torch.utils.data._utils.worker")
    inner._worker_info = inner.WorkerInfo(id=worker, num_workers=workers, seed=seed + worker, dataset=samples.dataset)
    fd = os.memfd_create("stoker")
    os.ftruncate(fd, BOARD)
    board = memoryview(mmap.mmap(fd, BOARD)).cast("q")
    reduction.send_handle(pipe, fd, os.getppid())
    os.close(fd)
    here = _Worker(pipe, samples)
    framework("torch.utils.data._utils.collate").default_collate_fn_map[torch.Tensor] = here.stack

    def report(n: int) -> None:
        board[0] = n

    samples.report = report
    failed: BaseException | None = None
    seeder()(seed + worker)
    try:
        if init:
            init(worker)
    except Exception as error:
        failed = error
    if failed is None:
        here.run()
    else:
        with contextlib.suppress(EOFError, ConnectionError):
            while (message := pipe.recv()) is not None:
                here.fail(message[0].number, failed)


# ---------------------------------------------------------------- the trainer's side

_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # of pipes, that no child may keep open


def _close_ends() -> None:
    for end in list(_ends):
        end.close()
    _ends.clear()


os.register_at_fork(after_in_child=_close_ends)


class _Unpickler(pickle.Unpickler):
    def __init__(self, text: Any, views: dict[int, memoryview]) -> None:
        super().__init__(io.BytesIO(text))
        self.views, self.torch = views, framework("torch")

    def persistent_load(self, name: Any) -> Any:
        kind, (segment, at), dtype, shape, strides = name
        count = int(np.prod(shape))
        if kind == "array":
            return np.frombuffer(self.views[segment], dtype, count, at).reshape(shape)
        flat = self.torch.frombuffer(self.views[segment], dtype=dtype, count=count, offset=at)
        return flat.view(shape) if strides is None else flat.as_strided(shape, strides)


class _Process:
    """One worker as the trainer sees it."""

    def __init__(self, start: Callable[[Any, Any], Any]) -> None:
        self.pipe, theirs = Pipe()
        self.life, their_life = Pipe()
        _ends.update((self.pipe, self.life))
        try:
            self.process = start(theirs, their_life)
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()
            their_life.close()
        self.tasks: collections.OrderedDict[int, Task] = collections.OrderedDict()
        self.maps: list[mmap.mmap] = []
        self.freed: collections.deque[int] = collections.deque()
        self.board: memoryview | None = None

    def send(self, task: Task) -> None:
        self.tasks[task.number] = task
        free = [self.freed.popleft() for _ in range(len(self.freed))]
        self.pipe.send((task, free))

    def _map(self) -> mmap.mmap:
        fd = reduction.recv_handle(self.pipe)
        try:
            return mmap.mmap(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)

    def receive(self) -> tuple[int, Any, list[Bad]] | None:
        """The next batch; None: it was the worker's first message."""
        if self.board is None:
            self.board = memoryview(self._map()).cast("q")
            return None
        number, text, bads, used, fresh = self.pipe.recv()
        self.maps += [self._map() for _ in range(fresh)]
        views = {}
        for segment in used:
            views[segment] = memoryview(self.maps[segment])
            weakref.finalize(views[segment], self.freed.append, segment).atexit = False
        if not isinstance(text, bytes):
            (segment, at), n = text
            text = views[segment][at : at + n]
        value = _Unpickler(text, views).load()
        self.tasks.pop(number)
        return number, value, bads

    def close(self) -> None:
        for end in (self.pipe, self.life):
            _ends.discard(end)
            end.close()


class Failure:
    """A batch that failed; `reraise` is what torch's own wrapper has."""

    def __init__(self, error: Error) -> None:
        self.error = error

    def reraise(self) -> None:
        raise self.error


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = " (the kernel kills processes when memory runs out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


class Workers:
    """Processes and what they are doing. Closing ends them, whatever they do."""

    def __init__(
        self, count: int, samples: Samples, init: Callable[[int], None] | None, context: Any, seed: int
    ) -> None:
        self.samples, self.init, self.context, self.seed = samples, init, context, seed
        self._selector = selectors.DefaultSelector()
        self.processes: list[_Process] = []
        self._owner = os.getpid()
        self.count = count
        self.sent = self.deaths = 0  # tasks, and processes
        try:
            for i in range(count):
                self.processes.append(self._start(i))
        except BaseException:
            self.close()
            raise

    def _start(self, i: int) -> _Process:
        def start(pipe: Any, life: Any) -> Any:
            arguments = (pipe, life, i, self.count, self.seed, self.samples, self.init)
            process = self.context.Process(target=_work, args=arguments, daemon=True)
            process.start()
            return process

        one = _Process(start)
        self._selector.register(one.pipe, selectors.EVENT_READ, (i, False))
        self._selector.register(one.process.sentinel, selectors.EVENT_READ, (i, True))
        return one

    def send(self, task: Task) -> None:
        """To the worker with the least to do."""
        min(self.processes, key=lambda p: len(p.tasks)).send(task)

    def receive(self, timeout: float | None) -> list[tuple[int, Any, list[Bad]]]:
        """Batches that are ready, and failures; waits for the first of them. An empty list: in vain."""
        found: list[tuple[int, Any, list[Bad]]] = []
        end = None if timeout is None else time.monotonic() + timeout
        while not found:
            left = None if end is None else max(0.0, end - time.monotonic())
            events = self._selector.select(left)
            if not events:
                break
            for key, _ in sorted(events, key=lambda event: bool(event[0].data[1])):  # what it sent before it died
                i, dead = key.data
                found += self._dead(i) if dead else self._ready(i)
        return found

    def _ready(self, i: int) -> list[tuple[int, Any, list[Bad]]]:
        with contextlib.suppress(EOFError, ConnectionError):  # its death is an event of its own
            reply = self.processes[i].receive()
            return [reply] if reply else []
        self._selector.unregister(self.processes[i].pipe)
        return []

    def _dead(self, i: int) -> list[tuple[int, Any, list[Bad]]]:
        """Replaces a worker; the batch that it was making fails, the others are made again."""
        old = self.processes[i]
        while old.pipe.fileno() in self._selector.get_map() and old.pipe.poll():
            if found := self._ready(i):
                return found  # comes back for its death
        with contextlib.suppress(KeyError):
            self._selector.unregister(old.pipe)
        self._selector.unregister(old.process.sentinel)
        old.process.join()
        how, tasks = _how(old.process.exitcode), list(old.tasks.values())
        n = old.board[0] if old.board else 0
        old.close()
        self.deaths += 1
        if old.board is None and self.deaths > 3 * self.count:
            raise Error(f"worker processes do not start: the last one {how}", stage="read")
        self.processes[i] = self._start(i)
        for task in tasks[1:]:
            self.processes[i].send(task)
        return [self._lost(tasks[0], n, how)] if tasks else []

    def _lost(self, task: Task, n: int, how: str) -> tuple[int, Any, list[Bad]]:
        index = task.indices[n] if isinstance(task.indices, list) and 0 <= n < len(task.indices) else task.indices
        words = f"the worker process that made sample {index!r} {how}"
        sample = index if isinstance(index, int) else None
        if self.samples.on_error == "raise" or not isinstance(task.indices, list):
            return task.number, Failure(DataError(words, sample=sample, stage="read")), []
        rest = task._replace(indices=[k for k in task.indices if k != index])
        self.send(rest)
        return -1, None, [(index, words)]

    def under_way(self, number: int) -> str:
        """Which sample of a batch a worker is at, in words."""
        for one in self.processes:
            if number in one.tasks:
                task, n = one.tasks[number], one.board[0] if one.board else 0
                if isinstance(task.indices, list) and 0 <= n < len(task.indices):
                    return f"sample {task.indices[n]!r}"
                return f"sample {task.indices!r}"
        return "a batch"

    def close(self) -> None:
        if self._owner != os.getpid():
            return  # a forked child: they are the trainer's
        processes, self.processes = self.processes, []
        self._selector.close()
        for one in processes:
            one.close()
        end = time.monotonic() + GRACE_S
        for one in processes:
            one.process.join(max(0.0, end - time.monotonic()))
        for one in processes:
            if one.process.is_alive():
                one.process.kill()
        for one in processes:
            one.process.join()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
