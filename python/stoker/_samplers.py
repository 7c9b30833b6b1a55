# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch from a sampler or a batch sampler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._errors import usage

Indices = NDArray[np.int64]


class Order(NamedTuple):
    samples: Indices
    starts: Indices | None  # of the batches; None: batch_size divides them
    largest: int  # size of a batch; 0: batch_size divides them, or there are none


def sample_indices(what: str, samples: Iterable[Any]) -> NDArray[np.int64]:
    """The indices that a sampler gives, as integers or as tensors with one integer.

    >>> sample_indices("the sampler", [3, np.int32(4)])
    array([3, 4])
    """

    def numbers() -> Iterator[int]:
        for value in samples:
            if type(value) is int:
                yield value
                continue
            try:
                if "bool" in str(getattr(value, "dtype", type(value))):  # an element of a mask
                    raise TypeError
                yield value.__index__()
            except (AttributeError, TypeError):
                raise usage(f"{what}: {value!r} is not an integer, but samples are chosen by index") from None

    return np.fromiter(numbers(), np.int64)


def order_of_samples(sampler: Iterable[Any]) -> Order:
    """The order from a sampler.

    >>> order_of_samples([4, 2, 0])
    Order(samples=array([4, 2, 0]), starts=None, largest=0)
    """
    return Order(sample_indices("the sampler", sampler), None, 0)


def order_of_batches(sampler: Iterable[Any]) -> Order:
    """The order from a batch sampler.

    >>> order_of_batches([[4, 2], [0]])
    Order(samples=array([4, 2, 0]), starts=array([0, 2]), largest=2)
    """
    batches = [sample_indices("the batch_sampler", b if isinstance(b, Iterable) else [b]) for b in sampler]
    sizes = [len(b) for b in batches]
    if 0 in sizes:
        raise usage(f"batch {sizes.index(0)} of the batch_sampler is empty; a batch needs at least one sample")
    if not batches:
        return Order(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    return Order(np.concatenate(batches), np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), max(sizes))
