# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch, as a sampler or a batch sampler gives it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._arguments import sample_numbers
from ._errors import usage

Numbers = NDArray[np.int64]


class Order(NamedTuple):
    samples: Numbers
    starts: Numbers | None  # of the batches; None: as batch_size has it
    largest: int  # batch; 0: there is none, or no choice


def order_of_samples(sampler: Iterable[Any]) -> Order:
    """
    >>> order_of_samples([4, 2, 0])
    Order(samples=array([4, 2, 0]), starts=None, largest=0)
    """
    return Order(sample_numbers("the sampler", sampler), None, 0)


def order_of_batches(sampler: Iterable[Any]) -> Order:
    """
    >>> order_of_batches([[4, 2], [0]])
    Order(samples=array([4, 2, 0]), starts=array([0, 2]), largest=2)
    """
    batches = [sample_numbers("the batch_sampler", b if isinstance(b, Iterable) else [b]) for b in sampler]
    sizes = [len(b) for b in batches]
    if 0 in sizes:
        raise usage(f"batch {sizes.index(0)} of the batch_sampler is empty")
    if not batches:
        return Order(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    return Order(np.concatenate(batches), np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), max(sizes))
