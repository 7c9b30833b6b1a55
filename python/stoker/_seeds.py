# SPDX-License-Identifier: Apache-2.0
"""Seeds for Python code: each sample gets its own, so that its random numbers depend on nothing else."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MASK = 2**64 - 1
_random: Any = random
_numpy: Any = np.random


def mixed(seed: int, n: int) -> int:
    """The n-th of a stream of independent 64-bit seeds (SplitMix64).

    >>> mixed(1, 0) != mixed(1, 1) != mixed(2, 0)
    True
    """
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def seeder() -> Callable[[int], None]:
    """A function that seeds the process-wide generators of `random`, NumPy and, if it is loaded, torch.

    >>> seed = seeder()
    >>> seed(7)
    >>> first = random.random()
    >>> seed(7)
    >>> random.random() == first
    True
    """
    instance, seed_python, seed_numpy = _random._inst, _random.Random.__base__.seed, np.random.seed
    torch: Any = sys.modules.get("torch")
    seed_torch = torch.default_generator.manual_seed if torch else None

    def seed(n: int) -> None:
        seed_python(instance, n)  # random.seed() costs twice as much
        instance.gauss_next = None
        seed_numpy(n & 0xFFFFFFFF)
        if seed_torch:
            seed_torch(n >> 1)

    return seed


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restores the process-wide generators afterwards."""
    torch: Any = sys.modules.get("torch")
    before = random.getstate(), _numpy.get_bit_generator(), torch.get_rng_state() if torch else None
    _numpy.set_bit_generator(np.random.MT19937(0))
    try:
        yield
    finally:
        random.setstate(before[0])
        _numpy.set_bit_generator(before[1])
        if torch:
            torch.set_rng_state(before[2])


def own_generators(thing: Any, depth: int = 3) -> list[Any]:
    """Objects below `thing` with random generators of their own, such as albumentations' pipelines.

    >>> own_generators([1, 2, 3])
    []
    """
    if callable(getattr(thing, "set_random_seed", None)) and type(thing).__module__.startswith("albumentations"):
        return [thing]
    if depth == 0:
        return []
    inner = thing if isinstance(thing, (list, tuple)) and len(thing) < 100 else getattr(thing, "__dict__", {}).values()
    return [found for value in inner for found in own_generators(value, depth - 1)]
