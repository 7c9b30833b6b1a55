# SPDX-License-Identifier: Apache-2.0
"""DataLoader: torch's, argument by argument, with Stoker behind it.

    from stoker import DataLoader          # instead of: from torch.utils.data import DataLoader

What an argument means, it means here. Batches, their order without shuffle, and lengths are torch's; a shuffled order
is Stoker's own, made from `generator` or `torch.manual_seed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import usage
from ._explain import Text, line
from ._input import length_of
from ._loader import Loader
from ._nearest import hint
from ._output import framework
from ._rows import dtype_of, misfit, parts_of, undisturbed
from ._types import whole

# Arguments without a meaning here: what they are by default, and why.
UNUSED = {
    "pin_memory": (False, "batches are in ordinary memory in this version"),
    "timeout": (0, "threads do not die unseen; Ctrl-C ends a wait"),
    "worker_init_fn": (None, "there are no worker processes; seeds are set for each sample"),
    "multiprocessing_context": (None, "there are no worker processes"),
    "prefetch_factor": (None, "the ring of batches has the size that the memory allows"),
    "persistent_workers": (False, "threads live as long as the loader"),
    "pin_memory_device": ("", "batches are in ordinary memory in this version"),
    "in_order": (True, "batches always come in order"),
}


class _Samples:
    """An iterable data set, also one that has a length."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)


def is_iterable(dataset: Any) -> bool:
    return any(k.__name__ == "IterableDataset" and k.__module__.startswith("torch.") for k in type(dataset).__mro__)


def _is_plain(value: Any) -> bool:
    """A tensor, an array, a number or a text: what a batch holds without help."""
    return isinstance(value, (int, float, str, bytes)) or (hasattr(value, "dtype") and dtype_of(value) != "object")


class _One:
    """Batches of one sample, as they are without batch_size."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function(samples[0])


class _Labels:
    """collate_fn of the user's for samples that the engine made: labels are numbers, as the data set gives them."""

    def __init__(self, function: Callable[[list[Any]], Any]) -> None:
        self.function = function

    def __call__(self, samples: list[Any]) -> Any:
        return self.function([(s[0], *(int(v) for v in s[1:])) for s in samples])


def _first(batch: Any) -> Any:
    return batch[0]


def _how_to_collate(dataset: Any) -> tuple[Callable[[list[Any]], Any] | None, Callable[[Any], Any] | None]:
    """collate_fn and batch_fn that give what torch's own collate gives."""
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or not length_of(dataset):
        return framework("torch.utils.data").default_collate, None
    sample = dataset[0]
    names, values = parts_of(sample)
    plain = bool(values) and all(_is_plain(v) for v in values)
    if not plain or misfit(names, [np.shape(v) for v in values]):
        return framework("torch.utils.data").default_collate, None
    if isinstance(sample, Mapping) and names != tuple(sample):  # names that are no text
        return framework("torch.utils.data").default_collate, None
    return None, _first if _is_plain(sample) else None


class DataLoader(Loader):
    """torch's DataLoader, with Stoker behind it: the same arguments, the same batches.

    Folders of pictures (ImageFolder, DatasetFolder, parts and sums of them) are read, decoded and transformed in C, as
    far as Stoker has the transforms; any other data set runs in threads. `explain()` names what is not used.

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
        parallel = unknown.pop("parallel", False)  # the one that torch has not
        given["parallel"] = parallel
        for name in unknown:
            raise usage(f"DataLoader has no argument {name!r}; stoker.Loader has more{hint(name, given)}")
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
            rank=0,  # a DistributedSampler divides, or nobody does
            world_size=1,
            output="torch",
        )
        self.dataset = dataset
        if batch_size is None:
            self.batch_size = None
        if not self._sampled and hasattr(dataset, "__len__") and not is_iterable(dataset):
            data = framework("torch.utils.data")  # for len(loader.sampler); Stoker's own order is not asked of it
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

    def _tell_epoch(self, sampler: Any, epoch: int) -> None:
        """As with torch the script calls its sampler's set_epoch, perhaps with another number."""

    def __len__(self) -> int:
        if not is_iterable(self.dataset):
            return super().__len__()
        n, size = len(self.dataset), self.batch_size or 1
        return n // size if self.drop_last else -(-n // size)

    def explain(self) -> str:
        """What was chosen, and why; and which arguments have no meaning here.

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
