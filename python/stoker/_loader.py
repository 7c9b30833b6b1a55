# SPDX-License-Identifier: Apache-2.0
"""Loader: batches in order, epoch after epoch."""

from __future__ import annotations

import atexit
import collections
import copy
import itertools
import json
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from . import _device, _explain, _get, _ranks, _stoker
from ._arguments import Fields, Ops, Options, known_keywords
from ._batch import Batch, Form, Raw
from ._errors import ELSEWHERE, DataError, Error, bad_limit, make, usage
from ._fields import from_features, pipelines, texts, wanted_of
from ._handles import handle_in
from ._input import source_of, transform_of
from ._iterate import Batches, Forever, with_progress
from ._mix import mixed, mixture
from ._ops_batch import batch_op
from ._processes import EngineSamples, SharedCache, Stream, Way, decide, shared_cache
from ._rows import Caller, Fill, IterableFill
from ._samplers import order_of_batches, order_of_samples
from ._seeds import batch_seed, generators_kept, seed_all
from ._setup import check_order, engine_options, open_engine
from ._stats import Stats, stats_of
from ._types import DEVICE_WORKS, B_co, Output, choice, counted, whole
from ._workers import Bad, Task

if TYPE_CHECKING:
    import jax
    import torch

    from ._show import Sheet

T = TypeVar("T")

_stoker.on_error(make)

_alive: weakref.WeakSet[Loader] = weakref.WeakSet()
MOST_EPOCHS = 2**53
LEFT_OUT = object()  # a batch without any good sample


class Made(NamedTuple):
    """A batch: as the engine made it in this process, or as a worker process sent it."""

    raw: Raw | None
    batch: Any = None
    seed: int = 0  # for collate_fn and batch_fn


Taken = Made | None | Error  # a batch, the end of an epoch, or a batch that failed


@atexit.register
def _close_all() -> None:
    # Threads of the engine may run Python code, which must end before the interpreter does.
    for loader in list(_alive):
        loader.close()
    _stoker.wait()


def _leave_to_parent() -> None:
    # A thread that the child does not have may hold the lock. Peeked batches belong to the parent.
    for loader in list(_alive):
        loader._lock, loader._inherited = threading.RLock(), True
        loader._pending.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


class Loader(Generic[B_co]):
    """Reads, decodes, transforms, shuffles and batches a source with threads, in C.

    >>> import stoker
    >>> loader = stoker.Loader(photos, "RandomResizedCrop(16) | RandomHorizontalFlip | Normalize", batch_size=4,
    ...                        shuffle=True, output="numpy")
    >>> for images, labels in loader:
    ...     print(images.shape, labels.shape)
    (4, 3, 16, 16) (4,)
    (4, 3, 16, 16) (4,)
    (4, 3, 16, 16) (4,)
    >>> loader.epoch                                # the next `for` is the next epoch
    1

    What to read:

    source           a folder, a list file (.csv, .tsv, .jsonl, .txt), a container (tar, TFRecord, HDF5, npy, zip),
                     Parquet or Arrow files, a Source, arrays or tensors, an Arrow table, a dataset, or an iterable
    transform        ops as a string or objects, your own functions, torchvision transforms, or a list of these;
                     or a dict of these, for several views of an image
    fields           what a batch contains: names ("image", "label", "path"), a dict of new name to column[:kind],
                     {"pixels": "jpg", "y": "cls:int"}, or a string "ids:int64(*) pad=-1"; by default all fields
    features         the same as a dict of tf.io.FixedLenFeature and VarLenFeature, for TFRecord
    classes          the class names in label order; by default those of the source, sorted
    exif             False: ignore the EXIF orientation; by default it is applied
    sizes            for images of different sizes: "same" (default) refuses them; "pad" pads them with zeros at the
                     right and at the bottom, and adds a field `sizes` of heights and widths; "list" gives a list
    fidelity         "exact" (default): the pixels that Pillow gives; "draft": decode large JPEGs at a smaller scale

    What a batch is:

    batch_size       samples in a batch on this rank; 1 by default
    drop_last        leave a short last batch out; pad_last: fill it with repeated rows whose field "valid" is False
    output           "torch", "numpy", "jax", "tensorflow" or "cupy"; "auto" (default): torch if it is imported, else
                     numpy
    dtype            of images: "float32" (default), "float16", "bfloat16" or "uint8"
    layout           of images: "NCHW" (default), "NHWC" or "channels_last" (NCHW shape over NHWC memory)
    as_dict          batches are dicts instead of named tuples
    collate_fn       makes a batch from a list of samples; batch_fn: changes a finished batch

    In which order:

    shuffle          a new order in every epoch; seed (default 0) determines the order and all random ops
    sampler          an iterable of sample indices in your own order; batch_sampler: an iterable of lists of them
    weights          one number for each sample: samples are drawn with these weights, with replacement
    mix              one weight for each of several sources: Loader([a, b], mix=(0.7, 0.3))
    steps_per_epoch  batches in an epoch; by default one pass over the samples
    rank             and world_size: the part of the data for this process; found from torch.distributed or torchrun by
                     default; rank="slurm" and rank="mpi" read those launchers' variables

    How:

    threads          and memory ("2GiB"): upper limits; by default they follow the machine
    on_error         "raise" (default), "skip" or "replace" a bad sample; max_bad: the share that may be bad (0.01)
    cache            keep "bytes", "dct" or "pixels" for later epochs, or "auto"; cache_dir and cache_size: on disk
    processes        worker processes for your own functions and datasets; 0: they run in the thread that asks for
                     batches; by default as many as are useful. The rows are the same for any number of processes
    progress         show a progress bar
    device           "cuda", "cuda:1", or a device of torch, JAX or CuPy: batches arrive in the memory of this GPU
    device_work      which part of decoding JPEGs this GPU does: "none", "idct" (all after the Huffman codes), "decode"
                     (the Huffman codes, too) or "auto"
    pin_memory       batches in torch's page-locked memory, for `.to("cuda", non_blocking=True)`
    """

    _handle: _stoker.Loader | None = None
    _inherited = False  # by fork(): every call on the handle fails
    known: dict[str, str] = {}  # lines of explain() that the engine cannot know

    @overload
    def __init__(
        self: Loader[T],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        collate_fn: Callable[[list[Any]], T],
        fields: Fields | None = None,
        as_dict: bool = False,
        output: Output = "auto",
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[T],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        batch_fn: Callable[[Any], T],
        collate_fn: Callable[[list[Any]], Any] | None = None,
        fields: Fields | None = None,
        as_dict: bool = False,
        output: Output = "auto",
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[dict[str, Any]],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        as_dict: Literal[True],
        fields: Fields | None = None,
        output: Output = "auto",
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Batch[torch.Tensor]],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        output: Literal["torch"],
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Batch[NDArray[Any]]],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        output: Literal["numpy"],
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Batch[jax.Array]],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        output: Literal["jax"],
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(  # text and bytes are lists, and fields= may choose them
        self: Loader[Batch[Any]],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        fields: Fields | None = None,
        as_dict: Literal[False] = False,
        output: Output = "auto",
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Any],
        source: Any,
        transform: Ops = None,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        fields: Fields | None = None,
        as_dict: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        batch_fn: Callable[[Any], Any] | None = None,
        output: Output = "auto",
        **options: Unpack[Options],
    ) -> None: ...

    @known_keywords(elsewhere=ELSEWHERE)  # type: ignore[misc]  # mypy does not match options with arguments
    def __init__(
        self,
        source: Any,
        transform: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        pad_last: bool = False,
        seed: int = 0,
        threads: int | None = None,
        memory: int | str | None = None,
        dtype: Any = None,
        layout: str = "NCHW",
        fidelity: str = "exact",
        exif: bool | None = None,
        fields: Sequence[str] | dict[str, str] | str | None = None,
        as_dict: bool = False,
        classes: Sequence[str] | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        weights: Any = None,
        steps_per_epoch: int | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        batch_fn: Callable[[Any], Any] | None = None,
        on_error: str = "raise",
        max_bad: float | None = None,
        rank: int | str | None = None,
        world_size: int | None = None,
        output: str = "auto",
        pin_memory: bool = False,
        device: Any = None,
        device_work: str = "auto",
        cache: str | None = None,
        cache_dir: str | None = None,
        cache_size: int | str | None = None,
        progress: bool = False,
        processes: int | None = None,
        mix: Sequence[float] | None = None,
        features: Mapping[str, Any] | None = None,
        sizes: str = "same",
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._arguments = arguments
        self._lock = threading.RLock()  # held by iterators and peek()
        self._generations = itertools.count(1)
        self._generation = 0  # of the live iterator
        self._moves = 0  # how often the program chose an epoch
        self._committed = -1  # the epoch that is left by the next iterator, since a batch of it was delivered
        self._ordered = -1  # the epoch for which the sampler gave an order
        self._order = np.zeros(0, np.int64)
        self._pending: collections.deque[tuple[str, Taken]] = collections.deque()  # peeked, with the state before
        self._warned = 0
        self._bads: list[tuple[Any, str, str, str]] = []  # that worker processes reported, the first 1,000
        self._n_bad = self._bad_epoch = 0
        self._way = Way()
        self._shared: SharedCache | None = None  # the cache of worker processes
        self._stream: Stream | None = None
        check_order(arguments)
        self.dataset, self.sampler, self.batch_sampler, self.drop_last = source, sampler, batch_sampler, bool(drop_last)
        self.batch_size: int | None = whole("batch_size", batch_size, 1, 2**31 - 1) if batch_sampler is None else None
        self._device = _device.device_of(device)
        self._output = _device.output_of(output, self._device)
        self._pinned = _device.pinned(pin_memory, self._output, self._device)
        self._transform = transform_of(transform)
        op = batch_op(batch_fn)
        if op is not None and self._transform.text and not self._transform.functions and collate_fn is None:
            arguments["transform"] = [*(transform if isinstance(transform, (list, tuple)) else [transform]), op]
            arguments["batch_fn"] = None
            self._transform.text += f" | {op}"
        if mix is not None:
            source = mixture(*mixed(source, mix))
        self._wanted = None if fields is None else wanted_of(fields)
        if features is not None:
            self._wanted = wanted_of(from_features(features))
        self._ranks = self._find_ranks()
        with generators_kept():  # the first sample is made
            self._given = source_of(source, collate_fn is not None, self._transform, sizes != "same")
            self._open(self._engine_options())

    # ---------------------------------------------------------------- open and close

    def _find_ranks(self) -> _ranks.Ranks:
        if self._sampled:
            a, sampler = self._arguments, self.sampler if self.batch_sampler is None else self.batch_sampler
            return _ranks.of_sampler(sampler, a["rank"], a["world_size"])
        return _ranks.find(self._arguments["rank"], self._arguments["world_size"])

    @property
    def _sampled(self) -> bool:
        return self.sampler is not None or self.batch_sampler is not None

    def _engine_options(self) -> dict[str, Any]:
        options = engine_options(self._arguments, self._given, self._transform, self._ranks)
        if self._pinned is not None:
            options["allocator"] = self._pinned
        work = choice("device_work", self._arguments["device_work"], DEVICE_WORKS)
        return {**options, "device": self._device, "device_work": work}

    def _form_of(self, handle: _stoker.Loader, fill: Fill | None) -> Form:
        a = self._arguments
        return Form(
            handle,
            self._wanted,
            [(name, array.ndim) for name, _, array in self._options.get("arrays", ())],
            a["as_dict"],
            self._output,
            a["layout"],
            fill,
            a["collate_fn"],
            a["batch_fn"],
            pipelines(self._transform.text),
        )

    def _open(self, options: dict[str, Any]) -> None:
        self._options = options
        plain = self._given.fill or ("arrays" in options and not isinstance(self._arguments["fields"], str))
        views = pipelines(self._transform.text)
        choices = [None] if plain else texts(self._wanted, views)  # fields of plain sources are chosen in Python
        handle = open_engine(options, choices, self._wanted, self._given, self._transform, self._output, self._settle)
        try:
            self._form = self._form_of(handle, self._given.fill)
        except BaseException:
            handle.close()
            raise
        self._handle = handle
        _alive.add(self)

    def _settle(self, options: dict[str, Any]) -> None:
        """Decides where Python code runs."""
        fill, asked = self._given.fill, self._arguments["processes"]
        op = options["op"][0] if "op" in options else None
        if isinstance(fill, IterableFill):
            if asked:
                raise usage("an iterable is read in order by one thread; leave processes out")
            self._way = Way(here=any(caller.seeds for caller in fill.functions), why="an iterable is read in order")
        else:
            cores = options["threads"] or int(_stoker.info()["threads"])
            if asked and not (fill or op or self._arguments["collate_fn"] or self._arguments["batch_fn"]):
                asked = 0  # nothing runs in Python
            if self._device and self._output != "torch":
                asked = 0  # only tensors can be moved from another process
            self._way = decide(asked, self._callers(), fill or op, self._ranks.world_size, cores)
            if self._way.processes > 1 and (handle := self._shared_handle()):
                self._way = Way(1, why=f"{handle} is an open handle, which several processes cannot share")
        options["idle"] = int(self._way.here or self._way.processes > 0)
        cached = self._arguments["cache"] not in (None, "none") and not self._arguments["cache_dir"]
        if self._way.processes and cached and self._shared is None:
            self._shared = shared_cache(self._arguments["memory"])
        options["cache_shared"] = self._shared.fd if self._shared else 0

    def _shared_handle(self) -> str:
        """An open file or database that the processes of Python code would share; "" without one."""
        return handle_in(*(self._arguments[name] for name in ("source", "transform", "collate_fn", "batch_fn")))

    @property
    def _engine(self) -> _stoker.Loader:
        if self._handle is None:
            raise Error("the loader is closed", stage="next")
        return self._handle

    def _check_usable(self) -> None:
        """Fails when the loader is closed, or was inherited by fork()."""
        self._engine.epoch()

    def close(self) -> None:
        """Stops the threads and frees the memory. Batches that you keep stay valid. Closing twice is fine.

        >>> loader = stoker.Loader(photos, "CenterCrop(8)")
        >>> loader.close()
        """
        self._check_may_wait("close")
        handle, self._handle = self._handle, None
        self._pending.clear()
        self._end_stream()
        if handle is not None:
            handle.close()
        if self._given.fill:
            self._given.fill.objects.drop_before(self._mark())

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        self._shared = None

    def _callers(self) -> list[Caller]:
        """The user's functions on samples."""
        fill = self._given.fill
        return self._transform.functions if fill is None else [fill.caller, *fill.functions]

    def _may_wait(self, handle: _stoker.Loader) -> bool:
        return not handle.inside()

    def _check_may_wait(self, call: str) -> None:
        """Fails inside a function that the call would wait for: it would never return."""
        if self._handle is not None and not self._may_wait(self._handle):
            raise usage(
                f"{call}() was called by a function that the loader itself runs; call it outside of that function"
            )

    def __del__(self) -> None:
        # Any thread may collect garbage. If this one must not wait for the threads, the engine closes it later.
        if self._handle is not None and self._may_wait(self._handle):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": self._arguments, "state": self._handle and self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["arguments"])  # type: ignore[misc]
        if state["state"]:
            self.load_state_dict(state["state"])

    # ---------------------------------------------------------------- epochs

    @property
    def epoch(self) -> int:
        """The current epoch, or the one that the next `iter()` begins.

        >>> stoker.Loader(photos, "CenterCrop(8)").epoch
        0
        """
        return int(json.loads(self._state())["epoch"]) if self._pending else self._engine.epoch()

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of an epoch. Does nothing if that is the current epoch.

        >>> loader = stoker.Loader(photos, "CenterCrop(8)", shuffle=True)
        >>> loader.set_epoch(3)
        >>> loader.epoch
        3
        """
        self._check_may_wait("set_epoch")
        epoch = whole("epoch", epoch, 0, MOST_EPOCHS)
        with self._lock:
            if epoch != self.epoch:
                self._go(epoch)

    def _go(self, epoch: int) -> None:
        mark = self._mark()
        self._moves += 1
        if self._pending:  # a batch that was only peeked at was not delivered
            self._engine.set_state(self._state())
        self._engine.set_epoch(epoch)
        self._restarted(mark)
        self._committed = -1

    def _mark(self) -> int:
        return self._given.fill.objects.mark() if self._given.fill else 0

    def _restarted(self, mark: int) -> None:
        """Drops what was prefetched before the mark, now that the engine is somewhere else.

        A row that was being made meanwhile has a later ticket. It is dropped by its place: here, or when a batch
        behind that place is delivered.
        """
        self._pending.clear()
        self._ordered = -1
        if self._stream is not None:
            self._stream.restart()
        if self._given.fill:
            self._given.fill.objects.drop_before(mark)
            self._drop_passed(self._given.fill)

    def _drop_passed(self, fill: Fill) -> None:
        """Drops objects of rows that come before the next batch."""
        at = json.loads(self._engine.state())
        fill.objects.drop_passed((at["epoch"], at["position"]))

    def _begin(self) -> None:
        self._check_usable()
        ranks = self._find_ranks()
        if ranks[:2] != self._ranks[:2]:  # torch.distributed has been initialised since
            self._reopen(ranks, self._options["batch_size"])
        if self._committed == self.epoch:
            self._warn()
            self._go(self.epoch + 1)
        if self._sampled and self._ordered != self.epoch:
            self._give_order(self.epoch)

    def _reopen(self, ranks: _ranks.Ranks, batch_size: int) -> None:
        state = self._state()
        self.close()
        self._ranks, self._ordered = ranks, -1
        self._open({**self._engine_options(), "batch_size": batch_size})
        self._engine.set_state(state)

    def _give_order(self, epoch: int) -> None:
        sampler: Any = self.batch_sampler if self.sampler is None else self.sampler
        self._set_sampler_epoch(sampler, epoch)
        order = order_of_samples(sampler) if self.batch_sampler is None else order_of_batches(sampler)
        if order.largest > self._options["batch_size"]:
            self._reopen(self._ranks, order.largest)
        self._engine.set_order(epoch, order.samples, order.starts)
        self._ordered, self._order = epoch, order.samples

    def _set_sampler_epoch(self, sampler: Any, epoch: int) -> None:
        inner = getattr(sampler, "sampler", sampler)
        for one in (sampler, inner) if inner is not sampler else (sampler,):
            if hasattr(one, "set_epoch"):
                one.set_epoch(epoch)

    def _order_of(self, epoch: int) -> NDArray[np.int64]:
        """The sampler's order of the current epoch; other epochs are not known."""
        if epoch != self.epoch:
            raise usage(
                f"the order of epoch {epoch} is unknown, because the sampler only gave that of epoch {self.epoch}; "
                f"call set_epoch({epoch}) first"
            )
        if self._ordered != epoch:
            self._give_order(epoch)
        return self._order

    def __iter__(self) -> Iterator[B_co]:
        self._check_may_wait("iter")
        self._generation = generation = next(self._generations)  # ends the previous iterator
        with self._lock:  # which may still wait for one batch
            self._begin()
            batches = Batches(self, generation)
        if self._arguments["progress"]:
            return with_progress(self, batches)
        return batches

    def __len__(self) -> int:
        """The number of batches in an epoch on this rank.

        >>> len(stoker.Loader(photos, "CenterCrop(8)", batch_size=5))
        3
        """
        if isinstance(self._given.fill, IterableFill):
            raise TypeError("a loader of an iterable has no length")
        self._check_usable()
        if not self._sampled:
            return self._engine.length()
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        n, size = len(self.sampler), self.batch_size or 1  # type: ignore[arg-type]
        return n // size if self.drop_last else -(-n // size)

    def forever(self) -> Iterator[B_co]:
        """Iterates over epoch after epoch without end.

        >>> batches = stoker.Loader(photos, "CenterCrop(8)", batch_size=12).forever()
        >>> [len(next(batches).label) for _ in range(3)]
        [12, 12, 12]
        """
        return Forever(self)

    def peek(self) -> B_co:
        """A copy of the next batch. The loader does not move on.

        >>> loader = stoker.Loader(photos, "CenterCrop(8)", output="numpy")
        >>> (loader.peek().image == next(iter(loader)).image).all()
        np.True_
        """
        self._check_may_wait("peek")
        with self._lock:
            batch: B_co = self._peek()
            return batch

    def _peek(self) -> Any:
        if self._sampled and self._ordered != self.epoch:
            self._give_order(self.epoch)
        for n in range(2):  # at the end of an epoch, the first batch of the next
            if n == len(self._pending):
                self._pending.append((self._engine.state(), self._taken()))
            taken = self._pending[n][1]
            if isinstance(taken, Error):
                raise taken
            if taken is not None:
                return copy.deepcopy(taken.batch) if taken.raw is None else self._formed(taken, self._form.copy)
        raise usage("peek(): the epoch has no batches")

    # ---------------------------------------------------------------- batches

    def _taken(self) -> Taken:
        taken: Taken
        try:
            taken = self._sent() if self._way.processes else self._made()
        except Error as error:
            self._add_cause(error)
            taken = error
        if self._given.fill and not isinstance(taken, Made):
            self._drop_passed(self._given.fill)
        return taken

    def _sent(self) -> Made | None:
        """The next batch from the worker processes."""
        stream = self._stream
        if stream is None or not stream.workers.usable:
            stream = self._stream = self._start()
            if self._handle is None:  # another thread has closed the loader meanwhile
                self._end_stream()
        batch = stream.take(self._engine, self._samples_at, self._count)
        if batch is not None and self._late:
            batch = self._form.adopted(batch)
        if batch is not None and self._device:
            batch = _device.moved(batch, self._device)
        elif batch is not None and self._pinned is not None:
            batch = _device.pinned_copy(batch)
        return None if batch is None else Made(None, batch)

    @property
    def _late(self) -> bool:
        """Whether batches get their form in this process, because their framework cannot be used in another one."""
        return self._output in ("jax", "tensorflow")

    def _start(self) -> Stream:
        ranks = {"rank": self._ranks.rank, "world_size": self._ranks.world_size}
        ranks["batch_size"] = self._options["batch_size"]
        sampler = {"sampler": (), "batch_sampler": None, "drop_last": False} if self._sampled else {}
        form = {"output": "numpy", "collate_fn": None, "batch_fn": None} if self._late else {"output": self._output}
        here = {"progress": False, "device": None, "device_work": "auto", "pin_memory": False}  # done in this process
        arguments = {**self._arguments, **ranks, **sampler, **form, **here}
        samples = EngineSamples(arguments, self._way.processes, cache=self._shared)
        samples.engine = self._engine
        return Stream(samples, self._way.processes, bool(self._shared_handle()))

    def _samples_at(self, epoch: int, first: int, n: int) -> NDArray[np.int64] | None:
        """The samples that the sampler has at these positions; None: the engine knows the order."""
        return self._order[first : first + n] if self._sampled else None

    def _made(self) -> Made | None:
        """The next batch from the engine, which runs Python code in its threads or in this one."""
        while True:
            raw = self._made_here() if self._way.here else self._engine.next()
            if raw is not LEFT_OUT:
                break
        if isinstance(self._given.fill, IterableFill) and raw is not None:
            raw = self._end_of_iterable(self._given.fill, raw)
        return None if raw is None else Made(raw, seed=self._batch_seed())

    def _made_here(self) -> Any:
        span = self._engine.span(0)
        if span is None or span[0] != self._engine.epoch():
            self._engine.pass_batch()
            return None
        epoch, first, n = span
        fill = self._given.fill
        try:
            with generators_kept():
                raw = self._engine.make(epoch, first, self._samples_at(*span), n, None)
        except BaseException as error:
            # After Ctrl-C the batch is made again, unless its samples can be read only once.
            if isinstance(error, Error) or (isinstance(fill, IterableFill) and fill.once):
                self._engine.pass_batch()
            raise
        self._engine.pass_batch()
        return LEFT_OUT if raw is None else raw

    def _batch_seed(self) -> int:
        """Of the functions on the batch that was taken last."""
        if not self._form.is_changed:
            return 0
        span = self._engine.span(-1)
        return batch_seed(self._arguments["seed"], *span[:2]) if span else 0

    def _formed(self, made: Made, form: Callable[[Raw], Any]) -> Any:
        """The user's batch. Functions on batches are seeded, and leave the trainer's generators as they are."""
        assert made.raw is not None
        if not self._form.is_changed:
            return form(made.raw)
        with generators_kept():
            seed_all(made.seed)
            return form(made.raw)

    def _count(self, epoch: int, bads: list[Bad]) -> None:
        """Counts bad samples that worker processes report."""
        self._n_bad = len(bads) + (self._n_bad if epoch == self._bad_epoch else 0)
        self._bad_epoch = epoch
        known = {bad[0] for bad in self._bads}
        self._bads += [bad for bad in bads if bad is not None and bad[0] not in known][: 1000 - len(self._bads)]
        limit = bad_limit(self._arguments["max_bad"], self._engine.count() // self._ranks.world_size)
        if self._n_bad > limit and self._arguments["on_error"] != "raise":
            raise DataError(
                f"{counted(self._n_bad, 'bad sample')} in epoch {epoch}, more than the {limit} that max_bad allows; "
                "list them with bad_samples()",
                stage="read",
            )

    def _end_of_iterable(self, fill: IterableFill, raw: Raw) -> Raw | None:
        epoch = self._engine.epoch()
        short = raw[0].shape[0] < self._options["batch_size"]
        error = fill.caller.errors.pop(epoch, None) if short else None  # full batches precede the error
        if isinstance(error, Error):
            raise error
        if error is not None:
            raise DataError(f"the iterable failed: {type(error).__name__}: {error}", stage="read") from error
        if raw[0].shape[0] == 0 or (short and self.drop_last):
            self._engine.set_epoch(epoch + 1)
            fill.ended.pop(epoch, None)
            return None
        return raw

    def _add_cause(self, error: Error) -> None:
        if error.sample is None:
            return
        for caller in self._callers():
            if error.sample in caller.errors:
                error.__cause__ = caller.errors.pop(error.sample)

    def _next(self) -> Any:
        """The next batch, or StopIteration at the end of the epoch."""
        taken = self._pending.popleft()[1] if self._pending else self._taken()
        if isinstance(taken, Error):
            raise taken
        if taken is None:
            self._warn()
            raise StopIteration
        self._committed = self.epoch
        batch = taken.batch if taken.raw is None else self._formed(taken, self._form.batch)
        if self._given.fill:
            self._drop_passed(self._given.fill)
        return batch

    def _warn(self) -> None:
        if self._arguments["on_error"] == "raise" or isinstance(self._given.fill, IterableFill) or self._warned:
            return
        bad = self.stats().bad
        if bad:
            self._warned = bad
            did = "left out" if self._arguments["on_error"] == "skip" else "replaced"
            what = "1 bad sample was" if bad == 1 else f"{bad} bad samples were"
            warnings.warn(f"{what} {did}; bad_samples() lists them", RuntimeWarning, stacklevel=4)

    def get(self, indices: _get.Numbers = None, epoch: int | None = None, positions: _get.Numbers = None) -> B_co:
        """Samples as training sees them in an epoch, made now.

        indices      one or several samples, as in the field `index`
        epoch        by default the current one
        positions    places in the epoch, as in the field `position`

        With weights, steps_per_epoch or a sampler, a sample may appear several times in an epoch, with other random
        draws each time; its position selects one of them. Positions without indices select the samples at these places,
        except with a sampler. The batch has an attribute `drawn`, the result of `drawn()`.

        >>> loader = stoker.Loader(photos, "RandomCrop(8)", output="numpy")
        >>> (loader.get(0, epoch=0).image == next(iter(loader)).image).all()
        np.True_
        >>> loader.get([3, 4], epoch=5).drawn[0]["ops"]
        [{'op': 'RandomCrop', 'padding': [0, 0, 0, 0], 'top': 2, 'left': 6, 'height': 8, 'width': 8}]
        """
        self._check_may_wait("get")
        chosen, at = _get.which(indices, positions, self._given.fill), self._epoch_of(epoch)
        with self._apart(), generators_kept():
            try:
                raw = self._engine.get(*chosen, at)
            except Error as error:
                self._add_cause(error)
                raise
            batch: B_co = self._form.with_drawn(raw, self._drawn(chosen, at))
            return batch

    def _apart(self) -> AbstractContextManager[None]:
        """A context for rows that are made outside the epoch's order."""
        return self._given.fill.objects.apart() if self._given.fill else nullcontext()

    def load_all(self, memory: int | str | None = None) -> B_co:
        """The whole dataset as one batch, in the order of the source.

        memory    the most that it may take; by default nine tenths of the free memory. If that is too little, the
                  error says how much is needed.

        Ranks, shuffle and the loader's position have no effect, and the loader does not move on. Random ops draw new
        values, not those of an epoch. The batch is in host memory, also with a device.

        >>> stoker.Loader(photos, "CenterCrop(8)", output="numpy").load_all().image.shape
        (12, 3, 8, 8)
        """
        self._check_may_wait("load_all")
        fill = self._given.fill and self._given.fill.alone()
        options = _get.options_for_all(self, fill, memory)
        handle = _stoker.Loader(options)
        try:
            with generators_kept():
                form = self._form_of(handle, fill)
                rows = _get.all_rows(handle, options["batch_size"], bool(options.get("idle")))
                batch: B_co = form.batch(rows)
                return batch
        except Error as error:
            self._add_cause(error)
            raise
        finally:
            handle.close()

    def drawn(
        self, indices: _get.Numbers = None, epoch: int | None = None, positions: _get.Numbers = None
    ) -> list[_get.Drawn]:
        """The random draws of samples in an epoch: one dict for each sample, with the ops in order and their values.

        The values are arguments of torchvision's functions (`resized_crop`, `crop`, `hflip`, ...). Your own functions
        are listed with their seed: their `rng` was `np.random.Generator(np.random.Philox(key=seed))`. The arguments are
        those of `get()`.

        >>> loader = stoker.Loader(photos, "RandomResizedCrop(8) | RandomHorizontalFlip")
        >>> row = loader.drawn(7, epoch=2)[0]
        >>> row["index"], row["size"]
        (7, [24, 32])
        >>> row["ops"][1]
        {'op': 'RandomHorizontalFlip', 'flip': True}
        """
        return self._drawn(_get.which(indices, positions, self._given.fill), self._epoch_of(epoch))

    def _drawn(self, chosen: _get.Which, epoch: int) -> list[_get.Drawn]:
        return _get.drawn(self._engine, chosen, epoch, self._transform.functions, self._given.fill)

    def _epoch_of(self, epoch: int | None) -> int:
        return self.epoch if epoch is None else whole("epoch", epoch, 0, MOST_EPOCHS)

    # ---------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, to save in a checkpoint: a dict of plain values, under 300 bytes as JSON.

        It counts batches that were delivered, not those that were prefetched.

        >>> loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=4)
        >>> batch = next(iter(loader))
        >>> loader.state_dict()["position"]
        4
        """
        state: dict[str, Any] = json.loads(self._state())
        return state

    def _state(self) -> str:
        """The state as JSON; batches that were only peeked at do not count."""
        return self._pending[0][0] if self._pending else self._engine.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a state: the next `iter()` delivers the batch that followed when it was taken.

        >>> loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=4, output="numpy")
        >>> first = next(iter(loader))
        >>> other = stoker.Loader(photos, "CenterCrop(8)", batch_size=4, output="numpy", threads=3)
        >>> other.load_state_dict(loader.state_dict())
        >>> len(list(other))
        2
        """
        self._check_may_wait("load_state_dict")
        if not isinstance(state, dict):
            raise usage(f"the state is a {type(state).__name__}; it must be a dict from state_dict()")
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as error:
            raise usage(f"the state is not from state_dict(): {error}") from None
        with self._lock:
            mark = self._mark()
            self._engine.set_state(text)
            if self._epoch_is_over(state):
                self._engine.set_epoch(self._engine.epoch() + 1)
            self._restarted(mark)
            self._committed = -1
            self._generation = next(self._generations)

    def _epoch_is_over(self, state: dict[str, Any]) -> bool:
        """Whether a state was taken after the last batch of its epoch, so that the next epoch follows."""
        step = self._options["batch_size"] * self._find_ranks().world_size
        if self._sampled or isinstance(self._given.fill, IterableFill):
            return False
        steps = self._arguments["steps_per_epoch"]
        left = (self._engine.count() if steps is None else steps * step) - state["position"]
        return bool(left < step if self.drop_last else left <= 0)

    # ---------------------------------------------------------------- inspecting

    @property
    def classes(self) -> list[str]:
        """The class names; `classes[label]` is the name of a label.

        >>> stoker.Loader(photos, "CenterCrop(8)").classes
        ['cat', 'dog']
        """
        return self._engine.classes()

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class name.

        >>> stoker.Loader(photos, "CenterCrop(8)").class_to_idx
        {'cat': 0, 'dog': 1}
        """
        return {name: i for i, name in enumerate(self.classes)}

    def stats(self) -> Stats:
        """Counters since the loader was opened: samples, waiting time, time per stage, memory. Prints as a table.

        >>> stoker.Loader(photos, "CenterCrop(8)").stats().batches
        0
        """
        counters = self._engine.stats()
        if isinstance(self._given.fill, IterableFill):
            counters["bad"] = 0  # rows past the end mark the end
        if self._stream is not None:
            counters = self._stream.stats(counters)
        return stats_of(counters, _explain.python_in(self))

    def bad_samples(self) -> list[DataError]:
        """The first 1,000 bad samples since the loader was opened, as exceptions with path, sample and reason.

        >>> stoker.Loader(photos, "CenterCrop(8)").bad_samples()
        []
        """
        return [
            DataError(reason, path or None, sample, stage)
            for sample, path, stage, reason in [*self._engine.bad_samples(), *self._bads]
            if reason != IterableFill.END
        ]

    def explain(self) -> str:
        """What the loader chose, and why: threads, memory, order, cache, output, and what runs in Python.

        >>> "threads" in stoker.Loader(photos, "CenterCrop(8)").explain()
        True
        """
        return _explain.Text(_explain.explain(self).rstrip())

    def show(
        self,
        path: str | os.PathLike[str] | None = None,
        n: int = 16,
        epoch: int | None = None,
        columns: int | None = None,
    ) -> Sheet:
        """A contact sheet of the first n samples of an epoch as training sees them, with their classes.

        path       where to write it as PNG; by default a temporary file; print the sheet to see its path. In a notebook
                   the sheet is shown, and written only if `path` is given.
        epoch      by default the current one
        columns    images in a row

        >>> sheet = stoker.Loader(photos, "RandomResizedCrop(32) | Normalize").show(photos + ".png", n=4)
        >>> sheet.labels
        ['cat', 'cat', 'cat', 'cat']
        """
        from ._show import sheet

        self._check_may_wait("show")
        with self._apart(), generators_kept():
            return sheet(self, path, n, self._epoch_of(epoch), columns)

    def as_tf_dataset(self) -> Any:
        """A tf.data.Dataset for Keras' `fit`. It has a length, and each pass over it is one epoch.

        After resuming in the middle of an epoch, a pass has the same number of batches and starts from there. Batches
        are delivered when TensorFlow asks for them, so `state_dict()` in a callback counts what was trained on.

        >>> import tensorflow as tf
        >>> loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=4, layout="NHWC")
        >>> data = loader.as_tf_dataset()               # model.fit(data, epochs=3, validation_data=val.as_tf_dataset())
        >>> int(data.cardinality()), data.element_spec[0].shape.as_list()
        (3, [None, 8, 8, 3])
        """
        from ._tf_dataset import tf_dataset

        return tf_dataset(self)

    def as_keras(self) -> Any:
        """Data for Keras' `fit`, `evaluate` and `predict`, with any backend. Each pass over it is one epoch.

        It is a tf.data.Dataset (`as_tf_dataset()`) where Keras runs on TensorFlow, else a keras.utils.PyDataset, which
        needs no TensorFlow. The first field of a batch is the input, the second the target, a third is the weight of
        each sample. The images must have Keras' layout, which is NHWC unless you changed it.

        >>> import keras
        >>> loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=4, layout="NHWC")
        >>> data = loader.as_keras()                    # model.fit(data, epochs=3, validation_data=val.as_keras())
        >>> len(data), tuple(next(iter(data))[0].shape)
        (3, (4, 8, 8, 3))
        """
        from ._keras import keras_data

        return keras_data(self)

    def __repr__(self) -> str:
        return _explain.table(self)


class Maker(Loader):
    """A loader in a worker process, which makes the batches that the trainer asks for."""

    def __init__(self, cache: int, arguments: dict[str, Any]) -> None:
        self._cache, self._listed, self._counted = cache, 0, 0
        super().__init__(**arguments)

    def _settle(self, options: dict[str, Any]) -> None:
        options.update(idle=1, cache_shared=self._cache)
        self._ops = [hook for hook in (self._given.fill, options["op"][0] if "op" in options else None) if hook]

    def make(self, task: Task, board: Any) -> Any:
        """The batch; None: all its samples are bad."""
        indices = None if task.indices is None else np.array(task.indices, np.int64)
        n = task.rows if indices is None else len(indices)
        if n > self._options["batch_size"]:
            self._reopen(self._ranks, n)
        for hook in self._ops:
            hook.lost = dict(task.lost)
        with self._apart():
            try:
                raw = self._engine.make(task.seed, task.position, indices, n, board)
            except Error as error:
                self._add_cause(error)
                raise
            return None if raw is None else self._delivered(raw, task)

    def _delivered(self, raw: Raw, task: Task) -> Any:
        seed_all(batch_seed(self._arguments["seed"], task.seed, task.position))
        return self._form.batch(raw)

    def new_bads(self) -> list[Bad]:
        """Bad samples since the last call."""
        count = int(self._engine.stats()["bad"])
        if count == self._counted:
            return []
        bads: list[Bad] = [*self._engine.bad_samples()[self._listed :]]
        self._listed += len(bads)
        bads += [None] * (count - self._counted - len(bads))  # listed before
        self._counted = count
        return bads
