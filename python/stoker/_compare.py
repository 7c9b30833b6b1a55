# SPDX-License-Identifier: Apache-2.0
"""compare(): torch's DataLoader and Stoker's on the same data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import usage
from ._explain import in_short
from ._output import framework
from ._rows import as_array, dtype_of, parts_of
from ._seeds import generators_kept
from ._types import counted
from .data_loader import DataLoader, is_iterable

LINE = "from stoker import DataLoader    # instead of: from torch.utils.data import DataLoader"
SAMPLES = 16  # how many are compared
CLOSE = 0.05  # a difference by rounding: torch resizes tensors of bytes differently, by 1


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`. Prints as a table.

    >>> print(Comparison(100.0, 250.0, 0.0, 0, 16, True, "read, decoded and transformed in C"))
    yours      100.0 images/s
    Stoker     250.0 images/s, 2.50 times as fast, read, decoded and transformed in C
    pixels     equal in 16 samples
    labels     equal in 16 samples
    to paste   from stoker import DataLoader    # instead of: from torch.utils.data import DataLoader
    >>> print(Comparison(100.0, 50.0, None, None, 0, False, "samples made in Python").line)
    nothing: your loader is faster
    """

    theirs: float  #: images/s of the given loader
    ours: float  #: images/s of Stoker
    pixels: float | None  #: the largest difference; None: not compared, because samples are random or not arrays
    labels: int | None  #: how many labels differ; None: not compared, because they are random or not single numbers
    samples: int  #: how many samples were compared
    native: bool  #: True: Stoker reads the dataset itself, in C; False: the dataset does, at least partly, in Python
    how: str  #: what Stoker did in C, and what in Python

    @property
    def speedup(self) -> float:
        """How many times as fast Stoker is.

        >>> Comparison(100.0, 250.0, 0.0, 0, 16, True, "").speedup
        2.5
        """
        return self.ours / self.theirs if self.theirs else float("inf")

    @property
    def line(self) -> str:
        """The line to paste, or why there is none.

        >>> Comparison(100.0, 250.0, 3.0, 0, 16, True, "").line
        'nothing: samples differ'
        """
        if self.labels or (self.pixels or 0) > CLOSE and self.pixels != 1:
            return "nothing: samples differ"
        return LINE if self.speedup >= 1 else "nothing: your loader is faster"

    def __str__(self) -> str:
        among = f"in {counted(self.samples, 'sample')}"
        if self.pixels is None:
            pixels = "not compared: samples are random, or are not arrays"
        else:
            pixels = f"differ by at most {self.pixels:.3g} {among}" if self.pixels else f"equal {among}"
        if self.labels is None:
            labels = "not compared"
        else:
            labels = f"{self.labels} differ {among}" if self.labels else f"equal {among}"
        return (
            f"yours      {self.theirs:.1f} images/s\n"
            f"Stoker     {self.ours:.1f} images/s, {self.speedup:.2f} times as fast, {self.how}\n"
            f"pixels     {pixels}\nlabels     {labels}\nto paste   {self.line}"
        )


def _images(batch: Any, single: bool) -> int:
    while isinstance(batch, (tuple, list, dict)) and not single and batch:
        first = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
        if isinstance(first, (str, bytes, int, float)):
            return len(batch)
        batch = first
    return 1 if single or not hasattr(batch, "__len__") else len(batch)


def _forever(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise usage("compare(): the loader has no batches")


def _speed(loader: Any, seconds: float, single: bool) -> float:
    """Images per second after the first batch, which includes the start."""
    batches = _forever(loader)
    next(batches)
    images, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds or not images:
        images += _images(next(batches), single)
    return images / passed


def _arrays(sample: Any) -> list[np.ndarray[Any, Any]] | None:
    values = parts_of(sample)[1]
    return None if any(dtype_of(v) == "object" for v in values) else [as_array(v) for v in values]


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    if a.shape != b.shape:
        return float("inf")
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def _parity(
    dataset: Any, keep: Callable[[list[Any]], Any], count: int = SAMPLES
) -> tuple[float | None, int | None, int]:
    """The largest difference of pixels, how many labels differ, and how many samples were compared."""
    if is_iterable(dataset) or not hasattr(dataset, "__len__") or not len(dataset):
        return None, None, 0
    chosen = np.unique(np.linspace(0, len(dataset) - 1, count).astype(int)).tolist()
    with generators_kept():
        once, twice = ([_arrays(dataset[i]) for i in chosen] for _ in range(2))
    loader: DataLoader[Any]
    with DataLoader(dataset, batch_size=len(chosen), sampler=chosen, collate_fn=keep) as loader:
        ours = [_arrays(sample) for sample in next(iter(loader))]
    pixels: float | None = 0.0
    labels: int | None = 0
    for a, again, b in zip(once, twice, ours, strict=True):
        if a is None or again is None or b is None:
            return None, None, 0
        if _difference(a[0], again[0]):
            pixels = None
        elif pixels is not None:
            pixels = max(pixels, _difference(a[0], b[0]))
        if len(a) != 2 or a[1].ndim or _difference(a[1], again[1]):
            labels = None
        elif labels is not None:
            labels += int(_difference(a[1], b[1]) != 0)
    return pixels, labels, len(chosen)


def _keep(samples: list[Any]) -> list[Any]:
    return samples


def compare(dataloader: Any, seconds: float = 3.0) -> Comparison:
    """Measures torch's DataLoader and the equivalent Stoker, compares their samples, and prints the result.

    dataloader    a torch.utils.data.DataLoader as your program uses it
    seconds       how long to run each of them

    >>> import torch, stoker
    >>> data = torch.utils.data.TensorDataset(torch.arange(64.0), torch.arange(64))
    >>> found = stoker.compare(torch.utils.data.DataLoader(data, batch_size=8), seconds=0.05)    # doctest: +ELLIPSIS
    yours      ...
    Stoker     ...
    pixels     equal in 16 samples
    labels     equal in 16 samples
    to paste   ...
    >>> found.pixels, found.labels, found.native
    (0.0, 0, True)
    """
    if isinstance(dataloader, DataLoader) or not isinstance(dataloader, framework("torch.utils.data").DataLoader):
        given = "Stoker's own" if isinstance(dataloader, DataLoader) else f"a {type(dataloader).__name__}"
        raise usage(f"compare() takes a torch.utils.data.DataLoader, but this is {given}")
    single = dataloader.batch_size is None and dataloader.batch_sampler is None
    pixels, labels, samples = _parity(dataloader.dataset, _keep)
    theirs = _speed(dataloader, seconds, single)
    with DataLoader.from_torch(dataloader) as loader:
        ours, native, how = _speed(loader, seconds, single), loader.native, in_short(loader)
    found = Comparison(theirs, ours, pixels, labels, samples, native, how)
    print(found)
    return found
