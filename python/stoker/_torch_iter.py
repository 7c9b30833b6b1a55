# SPDX-License-Identifier: Apache-2.0
"""Iterators of DataLoader: torch's own interface, samplers and seeds, with Stoker's ways to make a batch.

As in torch, an iterator draws its base seed from the loader's generator when it begins, then asks the sampler.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._device import device_of, moved
from ._errors import usage
from ._loader import MOST_EPOCHS, Loader
from ._output import framework
from ._processes import EngineSamples
from ._samplers import order_of_batches
from ._seeds import generators_kept, mixed
from ._workers import Failure, InOrder, Samples, Task, Workers, start_workers

torch = framework("torch")
data = framework("torch.utils.data")
_base: Any = framework("torch.utils.data.dataloader")._BaseDataLoaderIter
_pin: Any = framework("torch.utils.data._utils.pin_memory").pin_memory

CHUNK = 1 << 18  # samples that the engine is given at a time

# ---------------------------------------------------------------- the order


def _with_sampler(index_sampler: Any, sampler: Any) -> Any:
    """A copy of the batch sampler, or the sampler itself, that draws from another sampler."""
    if type(index_sampler) is data.BatchSampler:
        other = copy.copy(index_sampler)
        other.sampler = sampler
        return other
    return sampler


class Order:
    """How the sampler's order of an epoch can be had again: what it draws from, before it draws."""

    def __init__(self, loader: Any, indices: Iterator[Any], kept: dict[str, Any] | None) -> None:
        """indices: of the sampler, which has drawn nothing yet. kept: of a state; None: the sampler draws anew."""
        self._index_sampler = loader._index_sampler
        plain = type(self._index_sampler) is data.BatchSampler
        self.sampler = self._index_sampler.sampler if plain else loader.sampler
        plain = plain or self._index_sampler is self.sampler
        self._random = plain and type(self.sampler) is data.RandomSampler and self.sampler.generator is None
        self.indices, self.kept, self._begun = indices, kept, False

    def begin(self) -> None:
        """Draws what the sampler draws first, unless a state has it."""
        if self._begun:
            return
        self._begun = True
        if self.kept is None:
            self.kept = self._draw()
        if self._random and "order" in self.kept:
            sampler = copy.copy(self.sampler)
            sampler.generator = torch.Generator().manual_seed(self.kept["order"])
            self.indices = iter(_with_sampler(self._index_sampler, sampler))

    def _generator(self) -> Any:
        """The generator that one of torch's samplers draws from; None for others."""
        if not type(self.sampler).__module__.startswith("torch.") or not hasattr(self.sampler, "generator"):
            return None
        return torch.default_generator if self.sampler.generator is None else self.sampler.generator

    def _draw(self) -> dict[str, Any]:
        if self._random:  # the sampler's own draw, a moment earlier
            return {"order": int(torch.empty((), dtype=torch.int64).random_().item())}
        generator = self._generator()
        return {} if generator is None else {"generator": generator.get_state()}

    def skip(self, n: int) -> list[Any]:
        """Draws the first n of a resumed epoch, from where the generator was then."""
        generator, saved = self._generator(), (self.kept or {}).get("generator")
        if generator is None or saved is None:
            return list(itertools.islice(self.indices, n))
        before = generator.get_state()
        generator.set_state(saved)
        first = list(itertools.islice(self.indices, n))
        rest = next(self.indices, None) if n == 0 else None
        if rest is not None:
            self.indices = itertools.chain([rest], self.indices)
        if generator is torch.default_generator:  # belongs to the program; another one goes on as it would have
            generator.set_state(before)
        return first

    def generator_now(self) -> dict[str, Any]:
        """Where a generator that was given to the loader is, for the orders of later epochs."""
        generator = self._generator()
        own = generator is not None and generator is not torch.default_generator
        return {"generator": as_text(generator.get_state())} if own else {}

    def as_json(self) -> dict[str, Any]:
        self.begin()
        kept = self.kept or {}
        return {"generator": as_text(kept["generator"])} if "generator" in kept else kept


def as_text(generator_state: Any) -> str:
    return base64.b64encode(generator_state.numpy().tobytes()).decode()


def from_text(text: str) -> Any:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.uint8).copy())


def kept_of(state: dict[str, Any]) -> dict[str, Any]:
    """The reverse of Order.as_json."""
    if "order" in state:
        return {"order": int(state["order"])}
    return {"generator": from_text(state["generator"])} if "generator" in state else {}


# ---------------------------------------------------------------- iterators


class Place:
    """Where an epoch is. The loader keeps it when the iterator is gone."""

    def __init__(self, seed: int, order: Order, last: int | None, in_order: bool) -> None:
        """last: the number of batches, if the sampler says it."""
        self.batches = 0  # of the sampler, up to the last one that was delivered; also those that were left out
        self.seed, self.order, self.last, self.in_order, self.ended = seed, order, last, in_order, False

    @property
    def is_over(self) -> bool:
        return self.ended or self.batches == self.last

    @property
    def is_exact(self) -> bool:
        """Whether a number of batches says where the epoch is."""
        return self.in_order or self.batches == 0 or self.is_over

    def state(self, epoch: int) -> dict[str, Any]:
        if self.is_over:
            return {"epoch": epoch + 1, **self.order.generator_now()}
        if not self.is_exact:
            raise usage(
                "a state in the middle of an epoch needs batches in order; leave in_order=False out, or save the "
                "state between epochs"
            )
        return {"epoch": epoch, "batches": self.batches, "seed": self.seed, **self.order.as_json()}


def _length(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except (TypeError, NotImplementedError):
        return None


class Batches(_base):  # type: ignore[misc]
    """An epoch under way. Subclasses make the batches."""

    _sampler_iter: Iterator[Any]

    def __init__(self, loader: Any) -> None:
        self._loader = loader  # also for __del__, if the sampler fails now
        super().__init__(loader)
        self._next_seed = self._base_seed
        if self._num_workers > 0:  # torch calls iter() of the sampler twice; some samplers draw there
            super()._reset(loader, True)
        self._begin(loader)

    _under_way: bool | None  # None: it begins, or failed to
    _made = 0  # samples in the last batch
    _in_order = True  # whether batches are delivered as the sampler has them

    def __next__(self) -> Any:
        began = time.perf_counter()
        self._ensure_started()
        try:
            batch = super().__next__()
        except StopIteration:
            self._place.ended = True
            raise
        self._place.batches = self._passed()
        self._loader._delivered(self._made, began, time.perf_counter())
        return batch

    def _passed(self) -> int:
        """How many of the sampler's batches were delivered, were left out or have failed."""
        return self._drawn

    def _begin(self, loader: Any) -> None:
        resume = loader._take_resume()
        seed = self._next_seed if resume is None else int(resume["seed"])
        self._next_seed = mixed(seed, 1)
        # Programs give all ranks one seed, and trainers save the state of one rank; augmentations must still differ.
        self._seed = mixed(seed, self._rank) if self._rank else seed
        self._drawn = self._position = 0  # batches and samples that were handed out for making
        order = Order(loader, self._sampler_iter, None if resume is None else kept_of(resume))
        self._place = Place(seed, order, _length(self._index_sampler), self._in_order)
        self._place.batches = 0 if resume is None else int(resume["batches"])
        loader._started(self)
        self._resumed, self._under_way = resume is not None, False
        if self._num_workers > 0:
            self._ensure_started()

    def _ensure_started(self) -> None:
        """Asks the sampler: with workers when the epoch begins, else for the first batch. That is when torch does."""
        if self._under_way:
            return
        if self._under_way is None:  # what was drawn from the sampler is lost
            raise usage("this iterator was interrupted or failed before its first batch; call iter() again")
        self._under_way = None
        self._place.order.begin()
        self._sampler_iter = self._place.order.indices
        if self._resumed:
            self._skip(self._place.batches)
        self._start()
        self._under_way = True

    def _skip(self, n: int) -> None:
        """Goes to the n-th batch of the epoch."""
        first = self._place.order.skip(n)
        self._drawn = n
        self._position = sum(len(i) if isinstance(i, (list, tuple)) else 1 for i in first)
        self._sampler_iter = self._place.order.indices

    def _start(self) -> None:
        """Begins to make batches."""

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._begin(loader)

    def _next_task(self, number: int) -> Task:
        indices = self._next_index()  # raises StopIteration
        position = self._position
        self._drawn += 1
        if self._auto_collation:
            indices = list(indices)
            self._position += len(indices)
        else:
            self._position += 1
        return Task(number, position, indices, self._seed)

    def _left(self, task: Task, bads: list[Any]) -> int:
        """How many samples a batch has."""
        rows = len(task.indices) if self._auto_collation else 1
        return rows - len(bads) if self._loader.on_error == "skip" else rows

    def _pinned(self, batch: Any) -> Any:
        if to := device_of(self._loader.device):
            return moved(batch, to)
        return _pin(batch, self._pin_memory_device) if self._pin_memory else batch

    def close(self) -> None:
        """Ends what runs for it."""


class HereBatches(Batches):
    """num_workers=0: the dataset runs in the calling thread; the generators are as before, afterwards."""

    def _start(self) -> None:
        self._samples = Samples(self._loader._rows, self._collate_fn, self._auto_collation, self._loader.on_error)

    def _next_data(self) -> Any:
        while True:
            task = self._next_task(0)
            with generators_kept():
                batch, bads = self._samples.make(task)
            self._loader._count(bads)
            if batch is not None or not bads:
                self._made = self._left(task, bads)
                return self._pinned(batch)


class WorkerBatches(Batches):
    """num_workers=n: the dataset and collate_fn run in processes."""

    _workers: Workers | None = None

    @property
    def _in_order(self) -> bool:  # type: ignore[override]
        return bool(self._loader.in_order)

    def _passed(self) -> int:
        return self._drawn - len(self._open.tasks)

    def _start(self) -> None:
        loader = self._loader
        if self._workers is None or not self._workers.usable:  # a forked child needs its own
            context = loader.multiprocessing_context or framework("torch.multiprocessing")
            handle = bool(loader._shared_handle())
            count = 1 if handle else loader.num_workers
            arguments = self._samples(), loader.worker_init_fn, context, self._base_seed
            self._workers = start_workers(count, *arguments, handle)
            self._limit = max(1, loader.prefetch_factor * loader.num_workers)
        self._open = InOrder(self._workers, loader.in_order, self._timeout)
        self._ended = False
        self._top_up()

    def _samples(self) -> Samples:
        return Samples(self._loader._rows, self._collate_fn, self._auto_collation, self._loader.on_error)

    def _top_up(self) -> None:
        while not self._ended and len(self._open.tasks) < self._limit:
            try:
                task = self._next_task(self._open.number)
            except StopIteration:
                self._ended = True
                return
            self._open.send(task)

    def _next_data(self) -> Any:
        self._top_up()  # Ctrl-C may have come before it
        while self._open.tasks:
            task, (_, batch, bads) = self._open.take()
            self._made = self._left(task, bads)
            self._top_up()
            self._loader._count(bads)
            if isinstance(batch, (Failure, framework("torch._utils").ExceptionWrapper)):
                batch.reraise()
            if batch is not None or not bads:
                return self._pinned(batch)
        if not self._persistent_workers:
            self.close()
        raise StopIteration

    def close(self) -> None:
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()


class EngineLoader(Loader):
    """Stoker's engine behind a DataLoader: it reads what a sampler says, chunk after chunk."""

    _orders: dict[int, Any] = {}  # of the chunk that is read, and of the next one

    def go(self, epoch: int, position: int = 0) -> None:
        """Forgets all orders."""
        with self._lock:
            self._restarted(self._mark())
            self._engine.set_state(json.dumps({**json.loads(self._state()), "epoch": epoch, "position": position}))
            self._committed = -1

    def give(self, epoch: int, batches: list[Any]) -> Any:
        """Returns the positions where the batches start."""
        order = order_of_batches(batches)
        if order.largest > self._options["batch_size"]:
            self._reopen(self._ranks, order.largest)
        self._engine.set_order(epoch, order.samples, order.starts)
        self._orders = {e: samples for e, samples in self._orders.items() if e == epoch - 1} | {epoch: order.samples}
        return order.starts

    def _samples_at(self, epoch: int, first: int, n: int) -> Any:
        return self._orders[epoch][first : first + n]

    def take(self) -> Any:
        """The next batch; StopIteration at the end of a chunk."""
        with self._lock:
            return self._next()


class EngineBatches(Batches):
    """The engine reads, decodes and transforms.

    The sampler's order goes to the engine in chunks, each of which is an epoch there, so that a sampler without an end
    works, too. Chunks are numbered from the seed on: the engine's random numbers depend on it.
    """

    _engine: EngineLoader
    _starts: dict[int, Any]  # for a chunk, the positions where its batches start

    _behind = 0  # batches that were delivered before a resume
    _before = 0  # batches of the chunks before this one

    def _skip(self, n: int) -> None:
        self._place.order.skip(0)
        self._sampler_iter, self._behind = self._place.order.indices, n

    def _start(self) -> None:
        self._engine = self._loader._lend_engine(self)
        self._chunk = self._given = self._seed % (MOST_EPOCHS // 2)
        self._all, self._before, self._starts = False, 0, {}
        batches = self._draw()
        while self._behind >= len(batches) and not self._all:
            self._behind -= len(batches)
            self._before += len(batches)
            self._chunk += 1
            batches = self._draw()
        self._engine.go(self._chunk, sum(len(b) for b in batches[: self._behind]))
        self._behind, self._given = 0, self._chunk
        self._give(batches)

    def _draw(self) -> list[Any]:
        """The batches of the next chunk."""
        batches: list[Any] = []
        n = 0
        while n < CHUNK and not self._all:
            try:
                indices = self._next_task(0).indices
            except StopIteration:
                self._all = True
                break
            batches.append(indices if self._auto_collation else [indices])
            n += len(batches[-1])
        return batches

    def _give(self, batches: list[Any]) -> None:
        if batches:
            self._starts[self._given] = self._engine.give(self._given, batches)
            self._given += 1

    def _passed(self) -> int:
        position = json.loads(self._engine._state())["position"]
        return self._before + int(np.searchsorted(self._starts[self._chunk], position))

    def _next_data(self) -> Any:
        while True:
            while self._chunk < self._given and self._engine.epoch > self._chunk:
                self._pass_chunk()  # Ctrl-C came before it was noted
            if not self._all and self._given == self._chunk + 1:
                self._give(self._draw())  # one ahead
            if self._chunk == self._given:
                self._loader._return_engine(self)
                raise StopIteration
            try:
                return self._pinned(self._engine.take())
            except StopIteration:
                self._pass_chunk()

    def _pass_chunk(self) -> None:
        self._before, self._chunk = self._before + len(self._starts[self._chunk]), self._chunk + 1
        self._starts.pop(self._chunk - 1)

    def _pinned(self, batch: Any) -> Any:
        return batch if self._engine._device else super()._pinned(batch)

    def close(self) -> None:
        self._loader._return_engine(self)

    def __del__(self) -> None:
        self.close()


class MixedBatches(WorkerBatches):
    """The engine reads and transforms in worker processes, since functions in Python follow its ops.

    In one process they would run one at a time. Seeds and positions are those of EngineBatches, and so are the rows.
    """

    def _samples(self) -> Samples:
        loader = self._loader
        arguments = {
            **loader._engine_arguments(),
            "device": None,
            "pin_memory": False,
        }  # moved in the trainer's process
        return EngineSamples(arguments, loader.num_workers, self._auto_collation, loader._shared_cache())

    def _skip(self, n: int) -> None:
        self._place.order.skip(0)
        self._sampler_iter = self._place.order.indices
        for _ in range(n):
            self._next_task(0)

    def _next_task(self, number: int) -> Task:
        if self._position == 0:
            self._chunk, self._chunk_start = self._seed % (MOST_EPOCHS // 2), 0
        elif self._position - self._chunk_start >= CHUNK:
            self._chunk, self._chunk_start = self._chunk + 1, self._position
        task = super()._next_task(number)
        return task._replace(position=task.position - self._chunk_start, seed=self._chunk)
