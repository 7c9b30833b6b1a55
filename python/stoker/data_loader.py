# SPDX-License-Identifier: Apache-2.0
"""DataLoader: a subclass of torch's, with Stoker's engine and workers behind it.

    from stoker import DataLoader          # instead of: from torch.utils.data import DataLoader

Arguments, samplers, batches and their order are torch's. Datasets that Stoker can read itself are read, decoded and
transformed in C; other datasets run in worker processes.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ._arguments import known_keywords
from ._convert_set import dataset as read_here
from ._convert_set import tensors, why_not
from ._errors import DataError, usage
from ._explain import Text, line
from ._handles import handle_in
from ._output import framework
from ._stats import Stats
from ._torch_iter import (
    Batches,
    EngineBatches,
    EngineLoader,
    HereBatches,
    MixedBatches,
    Place,
    WorkerBatches,
    from_text,
)
from ._torch_rebuild import arguments_of, device, from_torch, keep_class_in_accelerate
from ._types import ON_ERROR, Cache, DType, Layout, OnError, choice, counted
from ._workers import Workers

if TYPE_CHECKING:
    from torch.utils.data import DataLoader as _TorchLoader
else:
    _TorchLoader = framework("torch.utils.data").DataLoader

data = framework("torch.utils.data")
BADS = 1000  # bad samples that are kept

# Torch's arguments that the engine does not need, their defaults, and why it does not need them.
UNUSED = {
    "timeout": (0, "the engine reports a failed thread at once; Ctrl-C interrupts a wait"),
    "worker_init_fn": (None, "the engine has no worker processes"),
    "multiprocessing_context": (None, "the engine has no worker processes"),
    "persistent_workers": (False, "the engine's threads live as long as the loader"),
    "in_order": (True, "the engine delivers in order"),
}
# Stoker's own arguments, and their defaults.
OWN = {
    "on_error": "raise",
    "max_bad": None,
    "cache": None,
    "cache_dir": None,
    "cache_size": None,
    "memory": None,
    "dtype": None,
    "layout": "NCHW",
}


def is_iterable(dataset: Any) -> bool:
    return isinstance(dataset, data.IterableDataset)


class _One:
    """The only sample of a batch, as it is without batch_size."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function(samples[0])


class _Labels:
    """The user's collate_fn for samples from the engine: their labels are int, as the dataset has them."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function([(s[0], *(int(v) for v in s[1:])) for s in samples])


def _signature(dataset: Any) -> tuple[Any, ...]:
    """Changes with what the engine was opened for: another transform, other samples."""
    inner = getattr(dataset, "dataset", None)
    parts = getattr(dataset, "datasets", None)
    own = tuple(
        id(getattr(dataset, name, None)) for name in ("transform", "target_transform", "samples", "tensors", "indices")
    )
    below: list[Any] = ([] if inner is None else [inner]) + (list(parts) if isinstance(parts, (list, tuple)) else [])
    return (id(dataset), *own, *(_signature(d) for d in below))


T_co = TypeVar("T_co", covariant=True)


class Rows(Protocol[T_co]):
    """A dataset for type checkers: torch's, Hugging Face's, a list."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class DataLoader(_TorchLoader[T_co]):
    """torch's DataLoader, with Stoker behind it: the same arguments, the same batches.

    Folders of images (ImageFolder, DatasetFolder, parts and sums of them) and TensorDataset are read in C. Any other
    dataset runs in `num_workers` processes, or in the calling thread without workers. Each sample has its own seed, so
    that its random numbers do not depend on the number of workers; the trainer's own generators stay as they are.

    Stoker's own arguments are keywords: on_error, max_bad, cache, cache_dir, cache_size, memory, dtype, layout; see
    `stoker.Loader`. `explain()` reports what runs where.

    >>> from stoker import DataLoader
    >>> squares = [(float(i), i * i) for i in range(10)]
    >>> loader = DataLoader(squares, batch_size=4)
    >>> len(loader), len(loader.dataset), loader.batch_size
    (3, 10, 4)
    >>> [labels.tolist() for _, labels in loader]
    [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    """

    _ready = False

    @known_keywords("; stoker.Loader has more")
    def __init__(
        self,
        dataset: Rows[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        on_error: OnError = "raise",
        max_bad: float | None = None,
        cache: Cache | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: int | str | None = None,
        memory: int | str | None = None,
        dtype: DType | None = None,
        layout: Layout = "NCHW",
    ) -> None:
        before = set(vars(self))
        choice("on_error", on_error, ON_ERROR)
        self._user_collates = collate_fn is not None and collate_fn is not data.default_collate
        super().__init__(
            dataset,  # type: ignore[arg-type]
            batch_size,
            shuffle,
            sampler,
            batch_sampler,  # type: ignore[arg-type]
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=str(pin_memory_device),
            in_order=in_order,
        )
        self.on_error, self.max_bad, self.memory, self.dtype, self.layout = on_error, max_bad, memory, dtype, layout
        self.cache, self.cache_dir, self.cache_size = cache, cache_dir, cache_size
        self.pin_memory_device = device(pin_memory_device, {name: getattr(self, name) for name in OWN})
        self._engine: EngineLoader | None = None
        self._signature: tuple[Any, ...] = ()  # of the dataset that `_native` is about
        self._native = False
        self._lent: weakref.ref[Any] | None = None
        self._current: weakref.ref[Batches] | None = None
        self._place: Place | None = None
        self._idle: Workers | None = None
        self._resume: dict[str, Any] | None = None
        self._epochs = 0  # that were begun
        self._bads: list[tuple[Any, str]] = []
        self._n_bads = 0
        self._handle_in_dataset = ""
        self._warned = False
        self._own = {"_own", "_iterator", *vars(self)} - before  # attributes; others are those of a subclass
        self._ready = True

    @classmethod
    def from_torch(cls, loader: Any, **own: Any) -> Any:
        """The same loader with Stoker behind it, for loaders that another library has made.

        Takes torch's loaders, and those that accelerate, Hugging Face's Trainer and timm's create_loader return. Such a
        wrapper is changed in place and returned. `own` are arguments of Stoker's, such as `on_error` and `cache`.

        >>> from torch.utils.data import DataLoader
        >>> loader = stoker.DataLoader.from_torch(DataLoader([1, 2, 3], batch_size=2))
        >>> type(loader).__module__, [b.tolist() for b in loader]
        ('stoker.data_loader', [[1, 2], [3]])
        """
        return from_torch(cls, loader, own)

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Accelerate reads this before it builds a loader of the parts of this one."""
        keep_class_in_accelerate(DataLoader)
        return False

    # ---------------------------------------------------------------- iterators

    def _get_iterator(self) -> Any:
        self._warn_of_ranks()
        if is_iterable(self.dataset):
            return super()._get_iterator()
        if self.native:
            return MixedBatches(self) if self._in_processes else EngineBatches(self)
        self._check_options()
        if self.num_workers == 0:
            return HereBatches(self)
        self._handle_in_dataset = handle_in(self.dataset)
        return WorkerBatches(self)

    @property
    def _sized(self) -> Any:
        return self.dataset

    def _check_options(self) -> None:
        """Options that only the engine has."""
        for name in ("cache", "dtype", "memory", "cache_dir", "cache_size"):
            if getattr(self, name) is not None:
                raise usage(f"{name}={getattr(self, name)!r} needs a dataset that Stoker reads itself; {self._why()}")

    def _why(self) -> str:
        return f"this one runs in Python: {why_not(self.dataset) or 'it is a ' + type(self.dataset).__name__}"

    def _warn_of_ranks(self) -> None:
        dist = framework("torch.distributed")
        if self._warned or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return
        self._warned = True
        ours = (data.SequentialSampler, data.RandomSampler)
        if type(self.sampler) in ours and (self.batch_sampler is None or type(self.batch_sampler) is data.BatchSampler):
            warnings.warn(
                f"each of the {dist.get_world_size()} ranks reads the whole dataset: give "
                "sampler=DistributedSampler(dataset), or use stoker.Loader, which divides the samples by itself",
                RuntimeWarning,
                stacklevel=4,
            )

    def _collate_here(self) -> Any:
        """What the trainer does to the engine's batches."""
        if self.batch_size is None and self.batch_sampler is None:
            return _Labels(_One(self.collate_fn)) if tensors(self.dataset) is None else _One(self.collate_fn)
        if not self._user_collates:
            return None
        return _Labels(self.collate_fn) if tensors(self.dataset) is None else self.collate_fn

    @property
    def native(self) -> bool:
        """Whether Stoker reads the dataset itself, in C, as it is now.

        >>> stoker.DataLoader([1, 2, 3]).native
        False
        """
        if is_iterable(self.dataset):
            return False
        signature = _signature(self.dataset)
        if signature != self._signature:
            self._close_engine()
            self._signature = signature
            self._native = read_here(self.dataset) is not None or tensors(self.dataset) is not None
        return self._native

    @property
    def _in_processes(self) -> bool:
        """Whether worker processes run the engine, since functions in Python follow its ops."""
        if not self.native or self.num_workers == 0 or self.on_error != "raise" or self.cache not in (None, "none"):
            return False
        found = read_here(self.dataset)
        return found is not None and found[1] is not None and found[1].rest is not None

    def _take_workers(self) -> Workers | None:
        workers, self._idle = self._idle, None
        return workers

    def _keep_workers(self, workers: Workers) -> None:
        """For the next epoch, as each has opened the dataset."""
        if self._idle is None and self._ready and self.native:
            self._idle = workers
        else:
            workers.close()

    def _engine_arguments(self) -> dict[str, Any]:
        return {
            "source": self.dataset,
            "batch_size": self.batch_size or 1,
            "sampler": (),
            "threads": self.num_workers or None,
            "collate_fn": self._collate_here(),
            "batch_fn": None if self._collate_here() else list,
            "rank": 0,
            "world_size": 1,
            "output": "torch",
            **{name: getattr(self, name) for name in OWN},
        }

    def _open_engine(self) -> EngineLoader:
        return EngineLoader(**self._engine_arguments())

    def _lend_engine(self, to: Batches) -> EngineLoader:
        """Each live iterator has an engine; the first one's is kept for the next epoch."""
        if self._engine is None or self._engine._inherited:
            self._engine = self._open_engine()
        if self._lent is None or self._lent() in (None, to):
            self._lent = weakref.ref(to)
            return self._engine
        return self._open_engine()

    def _return_engine(self, by: Batches) -> None:
        engine = getattr(by, "_engine", None)
        if self._ready and engine is self._engine and self._lent is not None and self._lent() in (None, by):
            self._lent = None
        elif engine is not None and engine is not self._engine:
            engine.close()

    def _close_engine(self) -> None:
        engine, self._engine, self._lent = self._engine, None, None
        if engine is not None:
            engine.close()
        if (workers := self._take_workers()) is not None:
            workers.close()

    def close(self) -> None:
        """Ends threads and processes; batches that are kept stay valid.

        >>> stoker.DataLoader([1, 2, 3]).close()
        """
        current = self._current() if self._current else None
        if current is not None:
            current.close()
        self._close_engine()

    def __enter__(self) -> DataLoader[T_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- state

    def _started(self, iterator: Batches) -> None:
        self._current, self._place = weakref.ref(iterator), iterator._place
        self._epochs += 1
        self._n_bads = 0

    def _take_resume(self) -> dict[str, Any] | None:
        resume, self._resume = self._resume, None
        if resume is not None:
            self._epochs = int(resume["epoch"])
        return resume

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, as JSON can hold it: the epoch, the batches delivered, its seed and its order.

        >>> loader = stoker.DataLoader([1, 2, 3])
        >>> for batch in loader:
        ...     break
        >>> loader.state_dict()["batches"]
        1
        """
        if self._resume is not None:
            return dict(self._resume)
        return {"epoch": self._epochs} if self._place is None else self._place.state(self._epochs - 1)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next `iter()` continues where the state was taken, with its seed and its order.

        >>> loader = stoker.DataLoader([1, 2, 3], shuffle=True)
        >>> batches = iter(loader)
        >>> first, state = next(batches), loader.state_dict()
        >>> other = stoker.DataLoader([1, 2, 3], shuffle=True)
        >>> other.load_state_dict(state)
        >>> [int(b) for b in other] == [int(b) for b in batches]
        True
        """
        if not isinstance(state, dict) or "epoch" not in state:
            raise usage("this is not a state of a DataLoader; state_dict() returns one")
        self._resume = dict(state) if "batches" in state else None
        self._epochs, self._place = int(state["epoch"]), None
        if self._resume is None and "generator" in state and self.generator is not None:
            self.generator.set_state(from_text(state["generator"]))

    # ---------------------------------------------------------------- seeing

    def _count(self, bads: list[tuple[Any, str]]) -> None:
        self._n_bads += len(bads)
        self._bads += bads[: BADS - len(self._bads)]
        limit = max(1, int((0.01 if self.max_bad is None else self.max_bad) * len(self._sized)))
        if bads and self._n_bads > limit:
            raise DataError(
                f"{counted(self._n_bads, 'bad sample')} in this epoch; max_bad allows {limit}; the last one, "
                f"{bads[-1][0]!r}: {bads[-1][1]}",
                stage="read",
            )

    def bad_samples(self) -> list[DataError]:
        """The bad samples so far, the first 1,000.

        >>> stoker.DataLoader([1, 2, 3]).bad_samples()
        []
        """
        if self._engine is not None:
            return self._engine.bad_samples()
        return [DataError(why, sample=i if isinstance(i, int) else None, stage="read") for i, why in self._bads]

    def stats(self) -> Stats:
        """What the engine did; an error for datasets that run in Python.

        >>> import torch
        >>> stoker.DataLoader(torch.utils.data.TensorDataset(torch.arange(4))).stats().batches
        0
        """
        if not self.native:
            raise usage(f"stats() counts what Stoker reads itself; {self._why()}")
        if self._engine is None:
            self._engine = self._open_engine()
        return self._engine.stats()

    def explain(self) -> str:
        """What runs where, and why; and which arguments are not needed.

        >>> print(stoker.DataLoader([1, 2, 3], batch_size=2, num_workers=2).explain())
        dataset    list, 3 samples, in Python: the calling program's own code makes the samples
        workers    2 processes, each batch made by one of them; every sample has its own seed
        """
        if is_iterable(self.dataset):
            where = f"{self.num_workers} processes" if self.num_workers else "the calling thread"
            return Text(
                line("dataset", f"an iterable, {type(self.dataset).__name__}: torch's own code, in {where}").rstrip()
            )
        if self.native:
            return self._explain_engine()
        name = type(self.dataset).__name__
        why = why_not(self.dataset) or "the calling program's own code makes the samples"
        text = line("dataset", f"{name}, {counted(len(self._sized), 'sample')}, in Python: {why}")
        handle = handle_in(self.dataset)
        if not self.num_workers:
            text += line("workers", "none: in the calling thread; num_workers=2 runs it in 2 processes")
        elif handle:
            text += line("workers", f"1 process: {handle} is an open handle, which several processes cannot share")
        else:
            processes = counted(self.num_workers, "process")
            text += line("workers", f"{processes}, each batch made by one of them; every sample has its own seed")
        return Text(text.rstrip())

    def _explain_engine(self) -> str:
        if self._engine is None:
            self._engine = self._open_engine()
        text = self._engine.explain() + "\n"
        if self._in_processes:
            text += line("workers", f"{counted(self.num_workers, 'process')}, since functions in Python follow the ops")
            return Text(text.rstrip())
        if self.num_workers:
            threads = counted(self.num_workers, "thread")
            text += line("workers", f"num_workers={self.num_workers}: {threads} of this process")
        for name, (default, why) in UNUSED.items():
            if getattr(self, name) != default:
                text += line("not used", f"{name}={getattr(self, name)!r}: {why}")
        return Text(text.rstrip())

    def __getstate__(self) -> dict[str, Any]:
        """The arguments that it was made of, where it is, and what a subclass has added."""
        arguments = {**arguments_of(self), **{name: getattr(self, name) for name in OWN}}
        more = {name: value for name, value in vars(self).items() if name not in {"_ready", *self._own}}
        return {"arguments": arguments, "state": self.state_dict(), "more": more}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DataLoader.__init__(self, **state["arguments"])
        vars(self).update(state["more"])
        self.load_state_dict(state["state"])
