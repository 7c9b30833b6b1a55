# SPDX-License-Identifier: Apache-2.0
"""Divides a source into parts.

A hash of the sample's key alone selects its part, so a sample stays in its part when the dataset grows. The exception
is a fold that would be empty, which takes a sample from another. By class, the sizes are exact instead: samples are
sorted by hash and dealt out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import usage
from ._types import whole

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]


def edges_of(shares: tuple[Any, ...]) -> list[float]:
    """The boundaries of the parts, between 0 and 1. If the shares add up to less than 1, the rest is one more part.

    >>> edges_of((0.75,)), edges_of((0.5, 0.25, 0.25))
    ([0.75], [0.5, 0.75])
    """
    if not shares:
        raise usage("split() needs at least one share, such as split(0.9) or split(0.8, 0.1, 0.1)")
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise usage(f"split: a share is {share!r}; it must be between 0 and 1")
    total = math.fsum(shares)
    if total > 1 + 1e-9:
        raise usage(f"split: the shares {', '.join(map(str, shares))} add up to {total:g}, which is more than 1")
    ends = [math.fsum(shares[: i + 1]) for i in range(len(shares))]
    return ends[:-1] if total > 1 - 1e-9 else ends


def is_by_class(name: str, by: str | None) -> bool:
    """Checks the argument `by`.

    >>> is_by_class("split", "class")
    True
    """
    if by not in (None, "class"):
        raise usage(f"{name}: by is {by!r}; it must be None or 'class'")
    return by == "class"


def mixed(hashes: Hashes, seed: int, depth: int) -> Hashes:
    """Hashes that depend on the seed and the depth. Without depth, a part would be divided at the same place again."""
    key = (whole("seed", seed, 0, 2**64 - 1) + depth * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15
    return (hashes ^ np.uint64(key % 2**64)) * np.uint64(0x2545F4914F6CDD1D)


def by_share(hashes: Hashes, edges: list[float]) -> Numbers:
    """The part of each sample, by its hash."""
    return np.searchsorted(edges, hashes.astype(np.float64) / 2.0**64, side="right")


def by_share_of_class(hashes: Hashes, labels: Numbers, edges: list[float]) -> Numbers:
    """The part of each sample, with exact shares of every class."""
    part = np.zeros(len(hashes), np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        order = members[np.argsort(hashes[members], kind="stable")]
        for end in edges:
            part[order[round(end * len(order)) :]] += 1
    return part


def by_fold(hashes: Hashes, k: int) -> Numbers:
    """The fold of each sample, by its hash. An empty fold takes the smallest hash of the largest fold; all others stay.

    >>> by_fold(np.array([0, 1, 2], np.uint64), 3)
    array([1, 2, 0])
    """
    fold = by_share(hashes, [i / k for i in range(1, k)])
    sizes = np.bincount(fold, minlength=k)
    for empty in np.flatnonzero(sizes == 0):
        largest = sizes.argmax()  # it has at least two, because there are at least k samples
        members = np.flatnonzero(fold == largest)
        fold[members[hashes[members].argmin()]] = empty
        sizes[largest] -= 1
        sizes[empty] = 1
    return fold


def by_fold_of_class(hashes: Hashes, labels: Numbers, k: int) -> Numbers:
    """Dealt out across class boundaries, so that small classes do not all start with the same fold."""
    fold = np.zeros(len(hashes), np.int64)
    fold[np.lexsort((hashes, labels))] = np.arange(len(hashes)) % k
    return fold
