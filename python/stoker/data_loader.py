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
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, Unpack

from . import _ranks
from ._arguments import known_keywords
from ._convert_dataset import ConvertedDataset, drop_in, signature, tensors, why_not
from ._converted import Converted
from ._deferred import Partly, made_by
from ._device import device_of
from ._errors import DataError, bad_limit, usage
from ._explain import Text
from ._explain import drop_in as drop_in_words
from ._handles import handle_in
from ._joint import Joint, Shape
from ._output import framework
from ._processes import SharedCache, shared_cache
from ._stats import Counted, Stats, stats_of_python
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
from ._torch_rebuild import arguments_of, from_torch, keep_class_in_accelerate
from ._torch_rebuild import device as carrier
from ._types import ON_ERROR, SIZES, Cache, DType, Layout, OnError, Sizes, choice, counted, whole
from ._workers import Bad

if TYPE_CHECKING:
    from torch import Generator as _TorchGenerator
    from torch.utils.data import DataLoader as _TorchLoader
else:
    _TorchGenerator = framework("torch").Generator
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
    "seed": None,
    "device": None,
    "sizes": "same",
}


class OwnArguments(TypedDict, total=False):
    """The same, for type checkers."""

    on_error: OnError
    max_bad: float | None
    cache: Cache | None
    cache_dir: str | os.PathLike[str] | None
    cache_size: int | str | None
    memory: int | str | None
    dtype: DType | None
    layout: Layout
    seed: int | None
    device: Any
    sizes: Sizes


ENGINE_ONLY = ("cache", "cache_dir", "cache_size", "memory", "dtype", "layout")


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

    def __init__(self, function: Callable[[list[Any]], Any], shape: Shape) -> None:
        """shape: the type of the dataset's images."""
        self.function, self.shape = function, shape

    def __call__(self, samples: list[Any]) -> Any:
        return self.function([(self.shape.image_of(s[0]), *(int(v) for v in s[1:])) for s in samples])


class _Tuple:
    """A function's result as a tuple."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, batch: Any) -> tuple[Any, ...]:
        return tuple(self.function(batch))


class Seeded(_TorchGenerator):
    """The generator of a loader with `seed`: it determines the order and all random numbers."""

    def __new__(cls, seed: int) -> Seeded:
        return super().__new__(cls)  # torch's takes a device

    def __init__(self, seed: int) -> None:
        self.given = seed
        self.manual_seed(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _seeded, (self.given, self.get_state())


def _seeded(seed: int, state: Any) -> Seeded:
    generator = Seeded(seed)
    generator.set_state(state)
    return generator


def _generator(seed: Any, generator: Any) -> Any:
    """What the loader draws from. A loader that is made of another's attributes has both arguments."""
    if seed is None or (isinstance(generator, Seeded) and generator.given == seed):
        return generator
    if generator is not None:
        raise usage("seed and generator both determine the random numbers; pass only one of them")
    return Seeded(whole("seed", seed, 0, 2**63 - 1))


T_co = TypeVar("T_co", covariant=True)


class Rows(Protocol[T_co]):
    """A dataset for type checkers: torch's, Hugging Face's, a list."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class DataLoader(_TorchLoader[T_co]):
    """torch's DataLoader on Stoker's engine: the same arguments, the same batches.

    Folders of images (ImageFolder, DatasetFolder, and Subset and ConcatDataset of them) and TensorDataset are read in
    C. Any other dataset runs in `num_workers` processes, or in the calling thread without workers. Each sample has its
    own seed, so its random numbers do not depend on the number of workers. The trainer's own generators do not change.

    Stoker's own arguments are keywords: on_error, max_bad, cache, cache_dir, cache_size, memory, dtype, layout, seed,
    device, sizes; see `stoker.Loader`. `explain()` reports what runs where.

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
        seed: int | None = None,
        device: Any = None,
        sizes: Sizes = "same",
    ) -> None:
        before = set(vars(self))
        choice("on_error", on_error, ON_ERROR)
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
            _generator(seed, generator),
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=str(pin_memory_device),
            in_order=in_order,
        )
        self.on_error, self.max_bad, self.memory, self.dtype, self.layout = on_error, max_bad, memory, dtype, layout
        self.cache, self.cache_dir, self.cache_size, self.seed = cache, cache_dir, cache_size, seed
        self.device, self.sizes = device, sizes
        choice("sizes", sizes, SIZES)
        device_of(device)
        self.pin_memory_device = carrier(pin_memory_device, {name: getattr(self, name) for name in OWN})
        self._engine: EngineLoader | None = None
        self._engine_collates: Any = None  # the collate_fn that the engine was opened with
        self._signature: tuple[Any, ...] = ()  # of the dataset that `_found` is about
        self._found: tuple[ConvertedDataset | Partly, Converted | None] | None = None
        self._tensors = False
        self._lent: weakref.ref[Any] | None = None
        self._iterators: weakref.WeakSet[Batches] = weakref.WeakSet()
        self._place: Place | None = None
        self._resume: dict[str, Any] | None = None
        self._epochs = 0  # that were begun
        self._bads: list[tuple[Any, str, str, str]] = []
        self._n_bads = 0
        self._counted: Counted | None = None
        self._shared: SharedCache | None = None  # the cache of all workers
        self._warned = self._warned_of_bads = False
        self._own = {"_own", "_iterator", *vars(self)} - before  # attributes; others are those of a subclass
        self._ready = True

    @classmethod
    def from_torch(cls, loader: Any, **own: Unpack[OwnArguments]) -> Any:
        """Converts a loader that another library has made.

        Takes torch's loaders, and those that accelerate, Hugging Face's Trainer and timm's create_loader return. Such a
        wrapper is changed in place and returned. `own` are arguments of Stoker's, such as `on_error` and `cache`.

        >>> from torch.utils.data import DataLoader
        >>> loader = stoker.DataLoader.from_torch(DataLoader([1, 2, 3], batch_size=2))
        >>> type(loader).__module__, [b.tolist() for b in loader]
        ('stoker.data_loader', [[1, 2], [3]])
        """
        return from_torch(cls, loader, dict(own))

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Accelerate reads this before it builds a loader of the parts of this one."""
        keep_class_in_accelerate(DataLoader)
        return False

    # ---------------------------------------------------------------- iterators

    def _get_iterator(self) -> Any:
        self._warn_of_ranks()
        if is_iterable(self.dataset):
            self._check_options((*ENGINE_ONLY, "on_error", "max_bad"), "this one is an iterable, which torch reads")
            if device_of(self.device):
                raise usage("device needs a dataset with __getitem__; move the batches of an iterable with .to(device)")
            return super()._get_iterator()
        if self.native:
            self._check_form_of_tensors()
            return MixedBatches(self) if self._in_processes else EngineBatches(self)
        self._check_options(ENGINE_ONLY, self._why())
        if self.num_workers == 0:
            return HereBatches(self)
        return WorkerBatches(self)

    def _check_options(self, names: Sequence[str], why: str) -> None:
        """Refuses arguments that only the engine has."""
        for name in names:
            value = getattr(self, name)
            if value != OWN[name] and (name, value) != ("cache", "none"):
                raise usage(f"{name}={value!r} needs a dataset that Stoker reads itself; {why}")

    def _check_form_of_tensors(self) -> None:
        for name in ("dtype", "layout"):
            if self._tensors and getattr(self, name) != OWN[name]:
                value = getattr(self, name)
                raise usage(f"{name}={value!r} is for images; the tensors of a TensorDataset stay as they are")

    def _why(self) -> str:
        if self._partly is not None:
            return "this one runs in Python, which makes the rows of the batch"
        return f"this one runs in Python: {why_not(self.dataset) or 'it is a ' + type(self.dataset).__name__}"

    def _warn_of_ranks(self) -> None:
        dist = framework("torch.distributed")
        if self._warned or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return
        self._warned = True
        ours = (data.SequentialSampler, data.RandomSampler)
        if type(self.sampler) in ours and (self.batch_sampler is None or type(self.batch_sampler) is data.BatchSampler):
            warnings.warn(
                f"each of the {dist.get_world_size()} ranks reads the whole dataset: pass "
                "sampler=DistributedSampler(dataset), or use stoker.Loader, which divides the samples by itself",
                RuntimeWarning,
                stacklevel=4,
            )

    def _finish(self) -> tuple[Any, Any]:
        """What the trainer does to the engine's batches: collate_fn for samples, or a function for whole batches."""
        batched = self.batch_size is not None or self.batch_sampler is not None
        collate = self.collate_fn if self._user_collates or not batched else None
        if self._fast_collates:
            return None, tuple if self._beside is None else _Tuple(self._beside.assembled(None, batched))
        if self._beside is not None:
            return None, self._beside.assembled(collate, batched)
        if collate is None:
            return None, list
        collate = collate if batched else _One(collate)
        if self._tensors or self._found is None:
            return collate, None
        transform = self._found[1]
        native = transform is not None and transform.rest is None
        return _Labels(collate, Shape(transform.steps if transform is not None and native else [])), None

    @property
    def _fast_collates(self) -> bool:
        """Whether collate_fn is timm's fast_collate: the engine's bytes and labels already are its result."""
        if not made_by(self.collate_fn, "fast_collate", "timm.data.loader") or self._found is None:
            return False
        transform = self._found[1]
        return transform is not None and (transform.dtype, transform.rest, self.dtype) == ("uint8", None, None)

    @property
    def native(self) -> bool:
        """Whether Stoker reads the dataset itself, in C, as it is now.

        >>> stoker.DataLoader([1, 2, 3]).native
        False
        """
        self._look()
        return self._tensors or (self._found is not None and isinstance(self._found[0], ConvertedDataset))

    def _look(self) -> None:
        """Finds out how the dataset can be read, again if it has changed."""
        if is_iterable(self.dataset) or (now := signature(self.dataset)) == self._signature:
            return
        self._close_engine()
        self._signature, self._tensors = now, tensors(self.dataset) is not None
        self._found = None if self._tensors else drop_in(self.dataset)

    @property
    def _partly(self) -> Partly | None:
        """The dataset with its images read in C, if they can be, and the rest in Python."""
        self._look()
        return self._found[0] if self._found is not None and isinstance(self._found[0], Partly) else None

    @property
    def _rows(self) -> Any:
        """What makes the rows in Python."""
        return self.dataset if (partly := self._partly) is None else partly

    @property
    def _beside(self) -> Any:
        """What the dataset's own code adds to the engine's images; None: nothing."""
        found = None if self._found is None else self._found[0]
        return found.beside if isinstance(found, ConvertedDataset) else None

    @property
    def _in_processes(self) -> bool:
        """Whether worker processes run the engine, since functions in Python follow it."""
        return self.native and self.num_workers > 0 and (self._rest is not None or self._collates)

    @property
    def _rest(self) -> Any:
        """The functions in Python that follow the engine's ops; None: there are none."""
        return self._found[1].rest if self._found is not None and self._found[1] is not None else None

    @property
    def _user_collates(self) -> bool:
        """Whether collate_fn is the user's own. Scripts also set it after the loader is made."""
        convert = data._utils.collate.default_convert
        return self.collate_fn not in (data.default_collate, data.default_collate if self._auto_collation else convert)

    @property
    def _collates(self) -> bool:
        """Whether the user's collate_fn runs."""
        return self._user_collates and not self._fast_collates

    def _shared_cache(self) -> SharedCache | None:
        """A cache in memory that all workers use; None: they need none."""
        if self._shared is None and self.cache not in (None, "none") and not self.cache_dir:
            self._shared = shared_cache(self.memory)
        return self._shared

    def _engine_arguments(self) -> dict[str, Any]:
        collate, change = self._finish()
        found, beside = self._found[0] if self._found is not None else None, self._beside
        ranks = _ranks.of_sampler(self.sampler if self.batch_sampler is None else self.batch_sampler)
        return {
            "source": self.dataset if beside is None else found,
            "exif": found.exif if isinstance(found, ConvertedDataset) else None,
            "fields": None if beside is None else beside.fields,
            "batch_size": self.batch_size or 1,
            "sampler": (),
            "threads": self.num_workers or None,
            "processes": 0,
            "collate_fn": collate,
            "batch_fn": change,
            "rank": ranks.rank,
            "world_size": ranks.world_size,
            "output": "torch",
            "pin_memory": self.pin_memory and framework("torch").cuda.is_available(),
            **{name: getattr(self, name) for name in OWN if name != "seed"},
            **({"sizes": "list"} if isinstance(beside, Joint) else {}),
        }

    def _open_engine(self) -> EngineLoader:
        return EngineLoader(**self._engine_arguments())

    def _lend_engine(self, to: Batches) -> EngineLoader:
        """Each live iterator has an engine; the first one's is kept for the next epoch."""
        free = self._lent is None or self._lent() in (None, to)
        if free and self._engine is not None and self._engine_collates is not self.collate_fn:
            self._close_engine()
        if self._engine is None or self._engine._inherited:
            self._engine, self._engine_collates = self._open_engine(), self.collate_fn
        if free:
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
        self._shared = None

    def close(self) -> None:
        """Ends threads and processes; batches that are kept stay valid.

        >>> stoker.DataLoader([1, 2, 3]).close()
        """
        for iterator in list(self._iterators):
            iterator.close()
        self._close_engine()

    def __enter__(self) -> DataLoader[T_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- state

    def _started(self, iterator: Batches) -> None:
        self._iterators.add(iterator)
        self._place = iterator._place
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

    def _count(self, bads: list[Bad]) -> None:
        if not bads:
            return
        self._n_bads += len(bads)
        known = {repr(bad[0]) for bad in self._bads}
        self._bads += [bad for bad in bads if bad is not None and repr(bad[0]) not in known][: BADS - len(self._bads)]
        size = len(self.dataset) if hasattr(self.dataset, "__len__") else 0
        limit = bad_limit(self.max_bad, size)
        if not self._warned_of_bads:
            self._warned_of_bads = True
            did = "left out" if self.on_error == "skip" else "replaced"
            sample, _, _, why = self._bads[0]
            warnings.warn(f"sample {sample!r} is bad and was {did}: {why}; bad_samples() lists all", RuntimeWarning, 3)
        if self._n_bads > limit:
            raise DataError(
                f"{counted(self._n_bads, 'bad sample')} in this epoch, but max_bad allows {limit}; the last one is "
                f"sample {self._bads[-1][0]!r}: {self._bads[-1][3]}",
                stage="read",
            )

    def bad_samples(self) -> list[DataError]:
        """The bad samples of the batches so far, each once; the first 1,000.

        >>> stoker.DataLoader([1, 2, 3]).bad_samples()
        []
        """
        if self._engine is not None and not self._in_processes:
            return self._engine.bad_samples()
        return [
            DataError(why, path or None, sample if isinstance(sample, int) else None, stage)
            for sample, path, stage, why in self._bads
        ]

    def stats(self) -> Stats:
        """Samples, waiting time, and what limits the loader. Prints as a table.

        >>> import torch
        >>> stoker.DataLoader(torch.utils.data.TensorDataset(torch.arange(4))).stats().batches
        0
        """
        if self.is_iterable:
            raise usage("stats() needs a dataset with __getitem__: torch itself reads an iterable")
        if self.native and not self._in_processes:
            return self._engine_to_explain().stats()
        return stats_of_python(self)

    def _delivered(self, samples: int, began: float, ended: float) -> None:
        """Counts a batch for stats()."""
        if self._counted is None:
            self._counted = Counted(began)
        self._counted.add(samples, began, ended)

    def explain(self) -> str:
        """What runs where, and why; and which arguments are not needed.

        >>> print(stoker.DataLoader([1, 2, 3], batch_size=2, num_workers=2).explain())
        dataset    list, 3 samples, in Python: the calling program's own code makes the samples
        order      as listed, 2 batches per epoch; random numbers come from torch's global generator
        workers    2 processes, each batch made by one of them; every sample has its own seed
        """
        return Text(drop_in_words(self).rstrip())

    @property
    def is_iterable(self) -> bool:
        """Whether the dataset is an iterable, which torch itself reads.

        >>> stoker.DataLoader([1, 2, 3]).is_iterable
        False
        """
        return is_iterable(self.dataset)

    def _engine_to_explain(self) -> EngineLoader:
        if self._engine is None:
            self._engine = self._open_engine()
        return self._engine

    def _shared_handle(self) -> str:
        """Why the Python code runs in one process only, in words; "": it may run in several."""
        handle = handle_in(self.dataset, self.collate_fn)
        return handle and f"{handle} is an open handle"

    def _not_used(self) -> list[str]:
        given = [(name, getattr(self, name), *about) for name, about in UNUSED.items()]
        return [f"{name}={value!r}: {why}" for name, value, default, why in given if value != default]

    def __getstate__(self) -> dict[str, Any]:
        """The arguments that it was made of, where it is, and what a subclass has added."""
        arguments = {**arguments_of(self), **{name: getattr(self, name) for name in OWN}}
        more = {name: value for name, value in vars(self).items() if name not in {"_ready", *self._own}}
        exact = self._resume is not None or self._place is None or self._place.is_exact
        state = self.state_dict() if exact else {"epoch": self._epochs - 1}  # of the epoch under way, from its start
        return {"arguments": arguments, "state": state, "more": more}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DataLoader.__init__(self, **state["arguments"])
        vars(self).update(state["more"])
        self.load_state_dict(state["state"])
