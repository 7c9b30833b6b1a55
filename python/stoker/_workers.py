# SPDX-License-Identifier: Apache-2.0
"""Processes that make batches with the user's Python code, for DataLoader and Loader.

A worker puts a batch straight into memory that it shares with the trainer, and sends a description of it. The trainer
sees that memory as arrays and tensors, and copies small ones. Once they are gone, a worker uses the memory again.

    trainer                                  worker
    task: number, indices                ->  samples -> collate_fn -> segments
    tensors over the segments            <-  number, pickled batch, new segments
    pool, board: segments that are free  ->  uses one of them again, gives the memory of the others back

Segments are memfds: they need no /dev/shm, and vanish with the processes. A segment reserves address space; it
takes memory as far as something was written to it. A worker looks for free segments when it needs one, not when it
gets a task: tasks wait in the pipe.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import gc
import io
import multiprocessing
import multiprocessing.process
import operator
import os
import pickle
import selectors
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import Pipe, popen_fork
from typing import Any, NamedTuple

import numpy as np

from ._channel import Channel, channel, framed
from ._deferred import has_getitems
from ._errors import DataError, Error
from ._memory import FREE, LEFT, Memory, close_all, new_file, unclosed
from ._output import framework
from ._pool import Maps, Pool
from ._seeds import mixed, own_generators, seed_all
from ._segments import COMMON, LARGE, MOST_SEGMENTS, Pickler, Placed, Segments, Unpickler, form, is_plain

INLINE = 32 << 10  # a longer description travels in a segment, so that a pipe never fills up
GRACE_S, IDLE_GRACE_S = 0.05, 5.0  # for a busy worker to end by itself, and for one that only has to exit
MOST_STILLBORN = 5
LOOK_S = 2.0  # how often a forked process is looked at that has not begun yet
# Bytes. A byte follows for each segment that a worker has made, which says whether the trainer still uses the segment.
# For segments of the pool, its table says it.
BOARD = 4096

Bad = tuple[Any, str, str, str] | None  # a sample, its path, the stage and why it is bad; None: known already


class Task(NamedTuple):
    """One batch to make."""

    number: int
    position: int  # of its first sample in the epoch
    indices: Any  # a list; one index where there are no batches; None: the engine's own order
    seed: int  # of the epoch
    rows: int = 0  # in the engine's own order
    lost: tuple[tuple[int, str], ...] = ()  # samples that ended a process, and how

    @property
    def size(self) -> int:
        return len(self.indices) if isinstance(self.indices, list) else 1


# ---------------------------------------------------------------- samples


def number_of(index: Any) -> int | None:
    """An index as an int: samplers also give NumPy's integers, and tensors. None for other keys.

    >>> number_of(np.int64(3)), number_of("a.png")
    (3, None)
    """
    try:
        return operator.index(index)
    except TypeError:
        return None


class Samples:
    """Makes batches from a dataset, in the process that calls it."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool, on_error: str) -> None:
        self.dataset, self.collate, self.batched, self.on_error = dataset, collate, batched, on_error
        self.generators: list[Any] | None = None  # not looked up yet
        self.seconds = 0.0  # in the dataset and collate_fn
        self.keep: Callable[[int, int, Any], Any] | None = None  # of a worker: puts a sample into its batch
        # The row under way, the number of its task plus 1, and the sample that stands in for a bad one plus 1.
        self.board: Any = [0, 0, 0]  # the trainer sees it

    def find_generators(self) -> None:
        """The search touches many objects: workers that inherit what it found need not copy their memory."""
        self.generators = own_generators(self.dataset)

    def _seed(self, seed: int) -> None:
        if self.generators is None:
            self.find_generators()
        seed_all(seed, self.generators or ())

    def name(self, task: Task, n: int) -> str:
        """Row n of a task, in words."""
        sample = self.sample(task, n)
        return f"the batch of samples {sample!r}" if isinstance(sample, list) else f"sample {sample!r}"

    def sample(self, task: Task, n: int) -> Any:
        """The index of a row; all of them, if it is not known which row is under way."""
        return task.indices[n] if isinstance(task.indices, list) and 0 <= n < len(task.indices) else task.indices

    def counters(self) -> dict[str, Any]:
        """What the process did so far, under the names of `Stats`."""
        return {"op_s": self.seconds}

    def _one(self, task: Task, n: int, index: Any, row: int, stands_in: bool = False) -> Any:
        self.board[0], self.board[2] = n, index + 1 if stands_in else 0
        self._seed(mixed(task.seed, task.position + n))
        try:
            sample = self.dataset[index]
        except Exception as error:
            error.add_note(f"Stoker: this was sample {index!r} of the dataset")
            raise
        return sample if self.keep is None else self.keep(task.size, row, sample)

    def _kept(self, task: Task, bads: list[Bad]) -> list[Any]:
        """The good samples; with on_error="replace" the next good one stands in for a bad one."""
        samples: list[Any] = []
        lost = dict(task.lost)
        for n, index in enumerate(task.indices):
            tries, number = [index], number_of(index)
            if self.on_error == "replace" and number is not None:
                tries += [(number + k) % len(self.dataset) for k in range(1, min(len(self.dataset), 100))]
            for attempt in tries:
                name = attempt if number is None else number_of(attempt)
                if number is not None and name in lost:
                    bads.append((name, "", "read", lost[name]))
                    continue
                try:
                    samples.append(self._one(task, n, attempt, len(samples), attempt is not index))
                    break
                except Exception as error:
                    bads.append((name, "", "read", f"{type(error).__name__}: {error}"))
        return samples

    def make(self, task: Task) -> tuple[Any, list[Bad]]:
        """The batch and its bad samples; None for a batch without any good one."""
        began = time.perf_counter()
        try:
            return self._make(task)
        finally:
            self.seconds += time.perf_counter() - began

    def _make(self, task: Task) -> tuple[Any, list[Bad]]:
        bads: list[Bad] = []
        if not self.batched:
            task = task._replace(indices=[task.indices])
        if self.on_error != "raise":  # which sample is bad must be known
            samples = self._kept(task, bads)
            self.board[2] = 0
        elif self.batched and has_getitems(self.dataset):
            self.board[0] = -1  # all of them
            self._seed(mixed(task.seed, task.position))
            samples = self.dataset.__getitems__(task.indices)
        else:
            samples = [self._one(task, n, index, n) for n, index in enumerate(task.indices)]
        if not samples and task.indices:
            return None, bads
        if not self.batched:
            return self.collate(samples[0]), bads
        self.board[0] = -1
        self._seed(mixed(~task.seed, task.position))
        return self.collate(samples), bads


# ---------------------------------------------------------------- the worker's side


class _Worker:
    """What runs in a worker process."""

    def __init__(self, pipe: Any, samples: Samples, returned: memoryview, pool: Pool) -> None:
        self.pipe, self.samples, self.segments = pipe, samples, Segments(returned, pool)
        self.placed: Placed = {}
        self.blocks: list[tuple[Any, Any]] = []  # for the large tensors of the samples: all rows, and their place
        self.leaf = 0  # of the sample that is kept

    def _plain(self, value: Any) -> bool:
        torch = framework("torch")
        return type(value) is torch.Tensor and is_plain(value) and value.numel() > 0

    def keep(self, rows: int, row: int, sample: Any) -> Any:
        """Moves large tensors of a sample to their row of the batch: a list of samples would need memory of its own."""
        if row == 0:
            self.blocks = []
        elif not self.blocks:  # the first sample has no large tensor
            return sample
        else:
            self.segments.tidy()
        self.leaf = 0
        return self._kept(rows, row, sample)

    def _kept(self, rows: int, row: int, part: Any) -> Any:
        kind = type(part)
        if kind is tuple or kind is list:
            return kind([self._kept(rows, row, value) for value in part])
        if kind is dict:
            return {name: self._kept(rows, row, value) for name, value in part.items()}
        if not self._plain(part) or part.numel() * part.itemsize < LARGE:
            return part
        shape, self.leaf = (rows, *part.shape), self.leaf + 1
        if row == 0:
            self.blocks.append(self.segments.tensor(part.dtype, framework("torch").Size(shape)))
        block = self.blocks[self.leaf - 1][0] if self.leaf <= len(self.blocks) else None
        if block is None or block.shape != shape or block.dtype != part.dtype:
            return part
        began = time.perf_counter()
        kept = block[row].copy_(part)
        self.segments.copied(part.numel() * part.itemsize, time.perf_counter() - began)
        return kept

    def _block(self, batch: list[Any]) -> tuple[Any, Any] | None:
        """The block that contains all of these rows and nothing else before them."""
        for block, place in self.blocks:
            rows = block[: len(batch)]
            if len(rows) == len(batch) and all(form(t) == form(row) for t, row in zip(batch, rows, strict=True)):
                return rows, place
        return None

    def stack(self, batch: list[Any], *, collate_fn_map: Any = None) -> Any:
        """Takes the place of torch's own: stacks straight into a segment."""
        torch, first = framework("torch"), batch[0]
        kind, dtype = torch.Tensor, first.dtype
        alike = all(type(t) is kind and t.dtype is dtype and not t.requires_grad for t in batch)
        if not alike or not self._plain(first):
            return torch.stack(batch, 0)
        shape = torch.Size((len(batch), *first.shape))
        known = self._block(batch) if self.blocks else None
        out, place = known or self.segments.tensor(first.dtype, shape)
        if known is None:
            torch.stack(batch, 0, out=out)
        self.placed[id(out)] = out, ("tensor", place, first.dtype, tuple(shape), None), form(out)
        return out

    def reply(self, number: int, value: Any, bads: list[Bad]) -> Any:
        """The message to send for a batch, or for its failure."""
        file = io.BytesIO()
        Pickler(file, self.segments, self.placed).dump(value)
        text: Any = file.getbuffer()
        place = None
        if len(text) > INLINE:
            to, place = self.segments.array(np.dtype(np.uint8), (len(text),))
            to[...] = np.frombuffer(text, np.uint8)
            text = place, len(text)
        else:
            text = bytes(text)
        return number, text, bads, self.segments.used, list(self.segments.fresh), self.samples.counters()

    def make(self, task: Task) -> Any:
        began = time.perf_counter()
        try:
            message = self.reply(task.number, *self.samples.make(task))
            self.segments.end(time.perf_counter() - began)
            return message
        except (SystemExit, KeyboardInterrupt):
            raise  # of the user's code: this process ends
        except BaseException as error:
            self.segments.drop()
            self.placed.clear()  # the exception may have a tensor of the batch
            self.blocks.clear()
            return self.reply(task.number, failure_of(error), [])

    def run(self, failed: BaseException | None) -> None:
        """failed: why there are no batches."""
        while True:
            task, _ = self.pipe.recv()
            self.segments.begin()
            self.samples.board[0], self.samples.board[1], self.samples.board[2] = 0, task.number + 1, 0
            message = self.make(task) if failed is None else self.reply(task.number, failure_of(failed), [])
            self.segments.send()
            self.pipe.send(message, list(self.segments.fresh.values()))
            while self.segments.fresh:
                os.close(self.segments.fresh.popitem()[1])
            self.samples.board[1] = 0
            self.placed.clear()
            self.blocks.clear()
            self.segments.let_go()


def _end_with_trainer(life: Any) -> None:
    """From now on the kernel kills this process once the other end is closed, also if C code holds the GIL then."""
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if life.poll():  # it is closed already
        os._exit(1)


def _set_up_torch(here: _Worker, worker: int, workers: int, seed: int) -> None:
    torch: Any = framework("torch")
    torch.set_num_threads(1)
    inner: Any = framework("torch.utils.data._utils.worker")
    inner._worker_info = inner.WorkerInfo(
        id=worker, num_workers=workers, seed=seed + worker, dataset=here.samples.dataset
    )
    collate = framework("torch.utils.data._utils.collate")
    collate.default_collate_fn_map[torch.Tensor] = here.stack
    if here.samples.batched and here.samples.collate is collate.default_collate:
        here.samples.keep = here.keep


def _work(
    pipe: Channel,
    life: Any,
    worker: int,
    workers: int,
    seed: int,
    samples: Samples,
    init: Callable[[int], None] | None,
    pool: Pool,
) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not the program's handler, which may not end this process
    gc.freeze()  # the collector would write to all inherited objects, and so copy their memory
    _end_with_trainer(life)
    fd = new_file(BOARD + MOST_SEGMENTS)
    board = Memory(fd, BOARD + MOST_SEGMENTS).as_bytes()
    try:
        pipe.send(None, [fd])
    except ConnectionError:  # the loader was closed before its worker was up
        return
    os.close(fd)
    samples.board = board[:BOARD].cast("q")
    here = _Worker(pipe, samples, board[BOARD:], pool)
    if "torch" in sys.modules:
        _set_up_torch(here, worker, workers, seed)
    failed: BaseException | None = None
    seed_all(seed + worker)
    try:
        if init:
            init(worker)
    except Exception as error:
        failed = error
    if init:
        samples.generators = None  # it may have changed the dataset
    with contextlib.suppress(EOFError, ConnectionError):  # the trainer is gone
        here.run(failed)


# ---------------------------------------------------------------- the trainer's side

_ends: weakref.WeakSet[Any] = weakref.WeakSet()  # of pipes, that no child may keep open
_started: weakref.WeakSet[Any] = weakref.WeakSet()  # processes
_starting = threading.RLock()  # one starts at a time: it must not inherit the ends that another one will have
_forked = 0  # forks of this process, counted before and after


def _children() -> set[Any]:
    """The processes that multiprocessing looks after."""
    known: Any = multiprocessing.process
    children: set[Any] = known._children
    return children


def _close_ends() -> None:
    global _starting
    _starting = threading.RLock()  # a thread that the child does not have may hold it
    for end in list(_ends):
        end.close()
    _ends.clear()
    unclosed.clear()
    _children().difference_update(_started)  # a child would end them when it exits


def _count_fork() -> None:
    global _forked
    _forked += 1


os.register_at_fork(before=_count_fork, after_in_parent=_count_fork, after_in_child=_close_ends)


def _give_back(maps: weakref.ref[Maps], returned: Any, segment: int, owner: int, forked: int) -> None:
    """The trainer no longer uses a segment. No worker must write to it if a child of the trainer may have it."""
    if os.getpid() != owner:
        return  # a child
    left = forked != _forked
    if (known := maps()) is not None:
        known.took_back(segment, left)
    returned[segment] = LEFT if left else FREE  # last: from now on it may be sent again


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block, also of one that raises; a second one does not.

    An exception between fork() and the line that stores its result would leave a process that nobody waits for.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # signal handlers run in the main thread
        return
    came: list[Any] = []

    def later(*arguments: Any) -> None:
        if came:
            handler(*arguments)
        came[:] = arguments

    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came)


class _Process:
    """One worker as the trainer sees it."""

    def __init__(self, start: Callable[[Any, Any], Any], pool: Pool) -> None:
        self.pool, self.maps = pool, Maps()
        with _starting:
            self.pipe, theirs = channel()
            self.life, their_life = Pipe()
            _ends.update((self.pipe, self.life))
            unclosed.add(self)
            try:
                self.process = start(theirs, their_life)
            except BaseException:
                self.close()
                raise
            finally:
                theirs.close()
                their_life.close()
        self.tasks: collections.OrderedDict[int, Task] = collections.OrderedDict()
        self.board: memoryview | None = None
        self.returned: Any = None  # segments, for the worker
        self.counters: Any = None  # of its last batch
        self.over = False  # it sends no more messages
        self.cut_off = False  # it was killed, since a message was not sent or read to its end
        self._look: tuple[str, ...] = ()

    def hangs(self) -> bool:
        """Whether a forked process sleeps before its first line, and did so at the last look.

        In CPython 3.11, a child waits forever if another thread of the program was just getting a thread state.
        """
        if self.board is not None:
            return False
        try:
            with open(f"/proc/{self.process.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended
            return False
        before, self._look = self._look, (fields[0], *fields[11:13])  # the state, and the CPU time
        return before == self._look and fields[0] == "S"

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """After Ctrl-C or without memory in the middle of a message, another process makes the batches of this one."""
        try:
            yield
        except (EOFError, ConnectionError):
            raise
        except BaseException:
            self.over = self.cut_off = True
            self.process.kill()
            raise

    def send(self, task: Task) -> None:
        """If it has died, receive() finds out, and gives the task to another."""
        message = framed(task)
        with self.whole():
            self.pipe.push(message)
            self.tasks[task.number] = task

    def flush(self) -> None:
        with self.whole():
            self.pipe.flush()

    def at(self) -> tuple[int, int]:
        """The task under way, and its row; (-1, 0) without one."""
        return (self.board[1] - 1, self.board[0]) if self.board else (-1, 0)

    def stand_in(self) -> int | None:
        """The sample under way, if it stands in for a bad one."""
        return self.board[2] - 1 if self.board and self.board[2] else None

    def _mapped(self, message: Any, fds: list[int]) -> Any:
        """The message. Maps the memory that comes with it; the first one is the board."""
        try:
            if message is None:
                board = Memory(fds[0], BOARD + MOST_SEGMENTS).as_bytes()
                self.board, self.returned = board[:BOARD].cast("q"), board[BOARD:]
            else:
                for segment, fd in zip(message[4], fds, strict=True):
                    self.maps[segment] = Memory(fd, os.fstat(fd).st_size)
        finally:
            close_all(fds)
        return message

    def receive(self) -> Reply | None:
        """The next batch; None: it was the worker's first message."""
        with self.whole():
            return self._receive()

    def _lent(self, used: list[int]) -> dict[int, Any]:
        """The buffers of a batch."""
        views = {}
        for segment in used:
            if segment >= COMMON:
                views[segment] = self.pool.lend(segment - COMMON, _give_back, os.getpid(), _forked)
            else:
                views[segment] = self.maps.lend(segment, _give_back, self.returned, os.getpid(), _forked)
        return views

    def _receive(self) -> Reply | None:
        with _interrupts_later():  # a segment would be lost
            message = self._mapped(*self.pipe.recv())
            if message is None:
                return None
            number, text, bads, used, _, counters = message
            views = self._lent(used)
        if not isinstance(text, bytes):
            (segment, at), n = text
            text = memoryview(views[segment])[at : at + n]
        try:
            value = Unpickler(text, views).load()
        except Exception as error:  # of the user's own code, such as __setstate__
            value = Failure(error)
        self.tasks.pop(number)
        self.counters = counters
        return Reply(number, value, bads)

    def close(self) -> None:
        """The process has ended, or was never there."""
        unclosed.discard(self)
        for end in (self.pipe, self.life):
            _ends.discard(end)
            end.close()
        for segment, memory in list(self.maps.items()):  # workers of another loader may have inherited it
            if segment not in self.maps.lent:
                memory.empty()


class Reply(NamedTuple):
    """A batch, and the bad samples in it."""

    number: int
    batch: Any
    bads: list[Bad]


class Failure:
    """A batch that failed; `reraise` is what torch's own wrapper has."""

    def __init__(self, error: BaseException, cause: BaseException | None = None, trace: str = "") -> None:
        self.error, self.cause, self.trace = error, cause, trace

    def reraise(self) -> None:
        if self.trace:
            (self.cause or self.error).add_note(f"Stoker: in a worker process:\n{self.trace}")
            self.trace = ""
        raise self.error from self.cause


def _pickles(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value))
        return True
    except Exception:
        return False


def _picklable(error: BaseException) -> BaseException:
    """The exception, or one of the same words that can be pickled."""
    return error if _pickles(error) else RuntimeError(f"{type(error).__name__}: {error}")


def failure_of(error: BaseException) -> Any:
    """An exception that can be sent. Exceptions of a dataset get torch's words, those of Stoker their cause."""
    torch, cause = sys.modules.get("torch._utils"), error.__cause__
    if isinstance(error, Error):
        trace = "".join(traceback.format_exception(cause)) if cause else ""
        return Failure(_picklable(error), cause and _picklable(cause), trace)
    if torch and _pickles(type(error)):
        where = f"in worker process {os.getpid()}"
        return torch.ExceptionWrapper((type(error), error, error.__traceback__), where)
    return Failure(_picklable(error), None, "".join(traceback.format_exception(error)))


def _close_pipes(error: OSError) -> None:
    """CPython leaves the pipes of a process open that cannot be forked."""
    popen: Any = popen_fork.Popen
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is popen._launch.__code__:
            for name in ("parent_r", "child_w", "child_r", "parent_w"):
                if name in frame.f_locals:
                    os.close(frame.f_locals[name])


def _how(code: int | None) -> str:
    if code is None:
        return "ended"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = " (the kernel kills processes when memory runs out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


@contextlib.contextmanager
def _start_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "ask for fewer of them, or raise the limit of processes, memory or open files"
        raise Error(f"a worker process cannot start: {error}; {advice}", stage="read") from error


class Workers:
    """Processes and what they are doing. Closing ends them at once.

    Any thread may close them. The lock is held by the one thread that sends or receives, also while it waits;
    close() wakes it first.
    """

    def __init__(
        self, count: int, samples: Samples, init: Callable[[int], None] | None, context: Any, seed: int
    ) -> None:
        self.samples, self.init, self.context, self.seed = samples, init, context, seed
        self._lock = threading.RLock()
        self._closing = threading.Lock()  # taken once, by the first that closes
        self.processes: list[_Process] = []
        self._forks = context.get_start_method() == "fork"
        self._owner = os.getpid()
        self.count = count
        self.sent = 0  # tasks
        self._stillborn = [0] * count  # processes in a row that died before their first task, in each place
        self._found: list[Reply] = []  # outlives an exception of another worker
        self._past: list[dict[str, Any]] = []  # counters of processes that ended
        with _interrupts_later(), _start_errors(), contextlib.ExitStack() as undo:
            undo.callback(self._closing.acquire)  # then __del__ has nothing to close
            self._wake = os.eventfd(0)
            undo.callback(os.close, self._wake)
            self._selector = selectors.DefaultSelector()
            undo.callback(self._selector.close)
            self._selector.register(self._wake, selectors.EVENT_READ)
            self.pool = Pool.make(count)
            undo.pop_all()
        try:
            for i in range(count):
                with _interrupts_later():
                    self.processes.append(self._start(i))
        except BaseException:
            self.close()
            raise

    def _start(self, i: int) -> _Process:
        def start(pipe: Any, life: Any) -> Any:
            arguments = (pipe, life, i, self.count, self.seed, self.samples, self.init, self.pool)
            process = self.context.Process(target=_work, args=arguments, daemon=True)
            try:
                process.start()
            except OSError as error:
                _close_pipes(error)
                raise
            _started.add(process)
            return process

        with _start_errors():
            one = _Process(start, self.pool)
            try:
                self._selector.register(one.pipe, selectors.EVENT_READ, (i, False, one))
                self._selector.register(one.process.sentinel, selectors.EVENT_READ, (i, True, one))
            except BaseException:
                one.process.kill()
                one.process.join()
                one.close()
                raise
        return one

    def send(self, task: Task) -> None:
        """To the worker with the least to do."""
        with self._held():
            self.sent = max(self.sent, task.number + 1)
            min(self.processes, key=lambda one: len(one.tasks)).send(task)

    def send_again(self, task: Task) -> None:
        """Sends a task that no worker has, and whose batch is not here."""
        with self._held():
            if not any(task.number in one.tasks for one in self.processes):
                if not any(task.number == reply.number for reply in self._found):
                    self.send(task)

    def _watch(self, i: int) -> None:
        """Waits for room for more of a worker's tasks, if there is not enough."""
        pipe, known = self.processes[i].pipe, self._selector.get_map()
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if pipe.waiting else 0)
        if pipe in known and known[pipe].events != events:
            self._selector.modify(pipe, events, (i, False, self.processes[i]))

    @property
    def usable(self) -> bool:
        """Whether they are this process's, and not closed."""
        return self._owner == os.getpid() and not self._closing.locked()

    def _check_open(self) -> None:
        if self._owner != os.getpid():
            raise Error("these worker processes belong to the process that forked this one; call iter() here, too")
        if self._closing.locked():  # by another thread, or a signal handler
            raise Error("the loader is closed", stage="read")

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Holds the lock."""
        self._check_open()  # in a forked child, a thread that it does not have may hold the lock
        with self._lock:
            self._check_open()
            try:
                yield
            except Error:
                raise
            except Exception:  # such as that of a closed selector
                self._check_open()
                raise
            self._check_open()  # a signal handler may have closed them: then this memory is not a batch any more

    def receive(self, timeout: float | None) -> list[Reply]:
        """Batches that are ready, and failures; waits for the first of them. An empty list: the timeout has passed."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._found:
            with self._held():
                events = self._select(None if end is None else max(0.0, end - time.monotonic()))
                if not events:
                    break
                for i, dead in sorted(events, key=lambda event: event[1]):  # what it sent before it died
                    self._found += self._dead(i) if dead else self._ready(i)
        found, self._found = self._found, []
        return found

    def _select(self, timeout: float | None) -> list[tuple[int, bool]]:
        """Workers that sent something, and workers that died."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            new = [one for one in self.processes if self._forks and one.board is None]
            for i, one in enumerate(self.processes):
                if one.pipe.waiting:
                    self._watch(i)
            events = self._selector.select(LOOK_S if left is None else min(LOOK_S, left))
            self._check_open()
            found = []
            for (file, _, _, data), mask in events:
                i, dead, one = data
                if self.processes[i] is not one:  # Ctrl-C came while it was replaced
                    self._ignore(file)
                    continue
                if mask & selectors.EVENT_WRITE:
                    one.flush()
                    self._watch(i)
                if mask & selectors.EVENT_READ:
                    found.append((i, dead))
            if found or left == 0:
                return found
            if events:
                continue
            # A process that another thread forked meanwhile may hold the ends of a dead worker's pipes open.
            if ended := [(i, True) for i, one in enumerate(self.processes) if one.process.exitcode is not None]:
                return ended
            for one in new:
                if one.hangs():
                    one.process.kill()  # another one takes its place

    def _ready(self, i: int) -> list[Reply]:
        one = self.processes[i]
        try:
            if not one.over:
                if (reply := one.receive()) is None:
                    return []
                self._stillborn[i] = 0
                return [reply]
        except (EOFError, ConnectionError):
            one.over = True
        self._ignore(one.pipe)  # its death is an event of its own
        return []

    def _ignore(self, file: Any) -> None:
        """From now on. It may be closed, or be ignored already."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(file)

    def _dead(self, i: int) -> list[Reply]:
        """Replaces a worker; the batch that it was making fails, the others are made again. After Ctrl-C in the middle,
        another call goes on."""
        old = self.processes[i]
        while not old.over and old.pipe.poll():
            if found := self._ready(i):
                return found  # comes back for its death
        old.over = True
        old.process.join()
        if old.process.exitcode is None:  # Ctrl-C came while multiprocessing asked for it, which asks only once
            _children().discard(old.process)
        self.pool.forget(old.process.pid)
        how, tasks = _how(old.process.exitcode), list(old.tasks.values())
        (number, n), stand_in = (-1, 0) if old.cut_off else old.at(), old.stand_in()
        self._past += [old.counters] if old.counters else []
        self._stillborn[i] += old.counters is None and number < 0 and not old.cut_off
        if self._stillborn[i] > MOST_STILLBORN:
            self.close()
            where = " in worker_init_fn" if old.board and self.init else ""
            method = self.context.get_start_method()
            hint = "" if method == "fork" else f"; with {method}, classes of a notebook must be in a module"
            raise Error(f"worker processes do not start: the last one {how}{where}{hint}", stage="read")
        try:
            with _interrupts_later():
                self.processes[i] = self._start(i)
                self._ignore(old.pipe)
                self._ignore(old.process.sentinel)
                old.close()
        except BaseException:
            self.close()
            raise
        for task in tasks:
            if task.number != number:
                self.processes[i].send(task)
        return [reply for task in tasks if task.number == number for reply in self._lost(task, n, how, stand_in)]

    def _lost(self, task: Task, n: int, how: str, stand_in: int | None) -> list[Reply]:
        """The batch fails, or is made again without the sample that ended the process."""
        sample = number_of(self.samples.sample(task, n)) if stand_in is None else stand_in
        name = self.samples.name(task, n) if stand_in is None else f"sample {stand_in}"
        words = f"the worker process that made {name} {how}"
        if self.samples.on_error == "raise" or sample is None or sample in dict(task.lost):
            return [Reply(task.number, Failure(DataError(words, sample=sample, stage="read")), [])]
        self.send(task._replace(lost=(*task.lost, (sample, words))))
        return []

    def counters(self) -> list[dict[str, Any]]:
        """Of all processes, after their last batch."""
        return self._past + [one.counters for one in self.processes if one.counters]

    def under_way(self, number: int) -> str:
        """Which sample of a batch a worker is at, in words."""
        for one in self.processes:
            if number in one.tasks:
                at, n = one.at()
                return self.samples.name(one.tasks[number], n if at == number else -1)
        return "a batch"

    def close(self) -> None:
        if self._owner != os.getpid():
            return  # a forked child: they are the trainer's
        with _interrupts_later():
            if self._closing.acquire(blocking=False):
                known = [self.pool, *self.processes]
                try:
                    self._close()
                finally:
                    unclosed.difference_update(known)  # a second Ctrl-C may leave some open

    def _close(self) -> None:
        os.eventfd_write(self._wake, 1)
        with contextlib.ExitStack() as last:  # also after an exception
            last.callback(self.pool.close)
            with self._lock:
                self._past, processes, self.processes = self.counters(), self.processes, []
                self._selector.close()
                os.close(self._wake)
                for one in processes:
                    last.callback(one.close)
                    one.pipe.close()
            began = time.monotonic()
            for one in sorted(processes, key=lambda p: not p.tasks):  # busy ones first
                one.process.join(max(0.0, began + (GRACE_S if one.tasks else IDLE_GRACE_S) - time.monotonic()))
                if one.process.is_alive():
                    one.process.kill()
            for one in processes:
                one.process.join()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # at the end of the program, modules may be gone
            pass


def start_workers(
    count: int, samples: Samples, init: Callable[[int], None] | None, context: Any, seed: int, handle: bool
) -> Workers:
    """handle: the dataset has an open file or database, which may not be picklable; a forked process inherits it."""
    samples.find_generators()
    try:
        return Workers(count, samples, init, context, seed)
    except (TypeError, pickle.PicklingError):
        if not handle:
            raise
    return Workers(count, samples, init, multiprocessing.get_context("fork"), seed)


class InOrder:
    """Tasks that workers have, and their batches in the order of the tasks."""

    def __init__(self, workers: Workers, in_order: bool = True, timeout: float = 0) -> None:
        self.workers, self._in_order, self._timeout = workers, in_order, timeout
        self.tasks: dict[int, Task] = {}  # to deliver; those of an epoch that was left are not in it
        self._done: dict[int, Reply] = {}
        self._settled = True  # False: Ctrl-C may have come between a task and its worker, or a batch and this object

    @property
    def number(self) -> int:
        """Of the next task. After Ctrl-C, the last one may be here, but not be sent yet."""
        return max(self.workers.sent, next(reversed(self.tasks), -1) + 1)

    def send(self, task: Task) -> None:
        self._settled, settled = False, self._settled
        self.tasks[task.number] = task
        try:
            self.workers.send(task)
        except Exception:  # it was not sent
            del self.tasks[task.number]
            raise
        self._settled = settled

    def forget(self) -> None:
        """The batches under way will not be delivered."""
        self.tasks, self._done = {}, {}

    def _wait(self) -> None:
        if not self._settled:
            for task in [task for task in self.tasks.values() if task.number not in self._done]:
                self.workers.send_again(task)
        self._settled = False
        replies = self.workers.receive(self._timeout if self._timeout > 0 else None)
        if not replies:
            at = self.workers.under_way(next(iter(self.tasks)))
            spent = f"a worker process needed more than timeout={self._timeout:g} s for {at}; raise timeout"
            raise DataError(spent, stage="read")
        self._done.update({reply.number: reply for reply in replies if reply.number in self.tasks})
        self._settled = True

    def _due(self) -> int | None:
        """The batch to deliver now, if it is ready."""
        if not self._in_order:
            return next(iter(self._done), None)
        number = next(iter(self.tasks))
        return number if number in self._done else None

    def take(self) -> tuple[Task, Reply]:
        """The next batch; there must be a task."""
        while (number := self._due()) is None:
            self._wait()
        self._settled, settled = False, self._settled
        reply, task = self._done.pop(number), self.tasks.pop(number)
        self._settled = settled
        return task, reply
