# SPDX-License-Identifier: Apache-2.0
"""DataLoader: the arguments and the batches of torch's DataLoader, made by Stoker.

    from stoker import DataLoader          # instead of: from torch.utils.data import DataLoader

Arguments have the same meaning. Batches, lengths, and the order without shuffle are equal to torch's. A shuffled order
is Stoker's own; its seed comes from `generator` or `torch.manual_seed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import hint, usage
from ._explain import Text, line
from ._input import length_of
from ._loader import Loader
from ._output import framework
from ._rows import dtype_of, misfit, parts_of, undisturbed
from ._types import whole

# Arguments that have no effect: their default, and the reason.
UNUSED = {
    "pin_memory": (False, "this version delivers batches in ordinary memory"),
    "timeout": (0, "threads cannot die unnoticed; Ctrl-C ends a wait"),
    "worker_init_fn": (None, "there are no worker processes; every sample is seeded"),
    "multiprocessing_context": (None, "there are no worker processes"),
    "prefetch_factor": (None, "memory determines how many batches are prefetched"),
    "persistent_workers": (False, "threads always live as long as the loader"),
    "pin_memory_device": ("", "this version delivers batches in ordinary memory"),
    "in_order": (True, "batches are always in order"),
}


class _Samples:
    """An iterable dataset, which may also have a length."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)


def is_iterable(dataset: Any) -> bool:
    """Whether it is an IterableDataset of torch."""
    return any(k.__name__ == "IterableDataset" and k.__module__.startswith("torch.") for k in type(dataset).__mro__)


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor, an array, a number or a string, which need no collate_fn."""
    return isinstance(value, (int, float, str, bytes)) or (hasattr(value, "dtype") and dtype_of(value) != "object")


class _One:
    """collate_fn for batch_size=None: the sample itself."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function(samples[0])


class _Labels:
    """The user's collate_fn on samples of the engine: labels become int, as the dataset gives them."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function([(s[0], *(int(v) for v in s[1:])) for s in samples])


def _first(batch: Any) -> Any:
    return batch[0]


def _how_to_collate(dataset: Any) -> tuple[Callable[[list[Any]], Any] | None, Callable[[Any], Any] | None]:
    """collate_fn and batch_fn that give the result of torch's default_collate."""
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or not length_of(dataset):
        return framework("torch.utils.data").default_collate, None
    sample = dataset[0]
    names, values = parts_of(sample)
    plain = bool(values) and all(_is_plain(v) for v in values)
    if not plain or misfit(names, [np.shape(v) for v in values]):
        return framework("torch.utils.data").default_collate, None
    if isinstance(sample, Mapping) and names != tuple(sample):  # names that are not strings
        return framework("torch.utils.data").default_collate, None
    return None, _first if _is_plain(sample) else None


class DataLoader(Loader):
    """torch's DataLoader, with the same arguments and the same batches, made by Stoker.

    ImageFolder, DatasetFolder, Subset and ConcatDataset of these are read, decoded and transformed in C, as far as
    Stoker has the transforms. Any other dataset runs in threads of this process. Arguments are those of
    torch.utils.data.DataLoader; `explain()` lists those that have no effect. `parallel=True` calls the dataset in
    parallel, without seeding.

    >>> from stoker import DataLoader
    >>> squares = [(float(i), i * i) for i in range(10)]
    >>> loader = DataLoader(squares, batch_size=4, num_workers=2, pin_memory=True)
    >>> len(loader), len(loader.dataset), loader.batch_size
    (3, 10, 4)
    >>> [labels.tolist() for _, labels in loader]
    [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    >>> print(loader.explain().splitlines()[-2])
    workers    num_workers=2: 2 threads of this process
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
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
        **unknown: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "unknown", "__class__")}
        parallel = unknown.pop("parallel", False)  # not an argument of torch
        given["parallel"] = parallel
        for name in unknown:
            raise usage(f"DataLoader has no argument {name!r}; stoker.Loader has more arguments{hint(name, given)}")
        torch = framework("torch")
        workers = whole("num_workers", num_workers, 0, 1024)
        self._given_to_torch = given
        self.num_workers, self.pin_memory, self.generator = num_workers, pin_memory, generator
        self.timeout, self.worker_init_fn, self.prefetch_factor = timeout, worker_init_fn, prefetch_factor
        self.persistent_workers, self.collate_fn = persistent_workers, collate_fn
        source = _Samples(dataset) if is_iterable(dataset) else dataset
        collate, batch_fn = self._collate(source, collate_fn, batch_size)
        super().__init__(
            source,
            batch_size=1 if batch_size is None else batch_size,
            shuffle=bool(shuffle),
            sampler=sampler,
            batch_sampler=batch_sampler,
            drop_last=drop_last,
            threads=workers or None,
            parallel=parallel,
            seed=undisturbed(torch.initial_seed if generator is None else generator.initial_seed) % 2**64,
            collate_fn=collate,
            batch_fn=batch_fn,
            rank=0,  # only a DistributedSampler divides the data
            world_size=1,
            output="torch",
        )
        self.dataset = dataset
        if batch_size is None:
            self.batch_size = None
        if not self._sampled and hasattr(dataset, "__len__") and not is_iterable(dataset):
            data = framework("torch.utils.data")  # for len(loader.sampler); it does not determine the order
            self.sampler = data.RandomSampler(dataset) if shuffle else data.SequentialSampler(dataset)

    @staticmethod
    def _collate(
        source: Any, collate_fn: Callable[[list[Any]], Any] | None, batch_size: int | None
    ) -> tuple[Callable[[list[Any]], Any] | None, Callable[[Any], Any] | None]:
        from ._convert_set import dataset as read_here
        from ._convert_set import tensors

        data = framework("torch.utils.data")
        if collate_fn is data.default_collate:
            collate_fn = None
        native = read_here(source) is not None
        in_place = tensors(source) is not None
        if batch_size is None:
            one = _One(collate_fn or data.default_convert)
            return (_Labels(one) if native else one), None
        if collate_fn is not None:
            return (_Labels(collate_fn) if native else collate_fn), None
        return (None, None) if native or in_place else _how_to_collate(source)

    @property
    def _sampled(self) -> bool:
        return self._arguments["sampler"] is not None or self._arguments["batch_sampler"] is not None

    def _set_sampler_epoch(self, sampler: Any, epoch: int) -> None:
        """Does nothing: as with torch, the script calls set_epoch of its sampler."""

    def __len__(self) -> int:
        if not is_iterable(self.dataset):
            return super().__len__()
        n, size = len(self.dataset), self.batch_size or 1
        return n // size if self.drop_last else -(-n // size)

    def explain(self) -> str:
        """What the loader chose, and why, and which arguments have no effect.

        >>> "not used" in stoker.DataLoader([1, 2, 3]).explain()
        False
        """
        text = super().explain() + "\n"
        if self.num_workers:
            threads = "one thread" if is_iterable(self.dataset) else f"{self.num_workers} threads"
            text += line("workers", f"num_workers={self.num_workers}: {threads} of this process")
        for name, (default, why) in UNUSED.items():
            if self._given_to_torch[name] != default:
                text += line("not used", f"{name}={self._given_to_torch[name]!r}: {why}")
        return Text(text.rstrip())

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": self._given_to_torch, "state": self._handle and self.state_dict()}
