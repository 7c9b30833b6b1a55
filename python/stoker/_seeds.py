# SPDX-License-Identifier: Apache-2.0
"""Seeds for Python code: each sample gets its own, so that its random numbers depend on nothing else."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

MASK = 2**64 - 1
DEPTH = 5  # of objects that own_generators looks at
CALLED = ("__getitem__", "__getitems__", "__call__", "__iter__")
_random: Any = random


def mixed(seed: int, n: int) -> int:
    """The n-th of a stream of independent 64-bit seeds (SplitMix64).

    >>> mixed(1, 0) != mixed(1, 1) != mixed(2, 0)
    True
    """
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def batch_seed(seed: int, epoch: int, position: int) -> int:
    """Of the functions on a whole batch that begins at a position."""
    return mixed(mixed(~seed & MASK, epoch), position)


@functools.cache
def _seeder(with_torch: bool) -> Callable[[int], None]:
    instance, seed_python, seed_numpy = _random._inst, _random.Random.__base__.seed, np.random.seed
    seed_torch = sys.modules["torch"].default_generator.manual_seed if with_torch else None

    def seed(n: int) -> None:
        seed_python(instance, n)  # random.seed() costs twice as much
        instance.gauss_next = None
        seed_numpy(n & 0xFFFFFFFF)
        if seed_torch:
            seed_torch(n)

    return seed


def seed_all(n: int, generators: Sequence[Any] = ()) -> None:
    """Seeds the process-wide generators of `random`, NumPy and, if it is loaded, torch; and generators of objects.

    >>> seed_all(7)
    >>> first = random.random()
    >>> seed_all(7)
    >>> random.random() == first
    True
    """
    _seeder("torch" in sys.modules)(n)
    for generator in generators:
        generator.set_random_seed(n & 0x7FFFFFFF)


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restores the process-wide generators afterwards."""
    torch: Any = sys.modules.get("torch")
    numpy: Any = np.random  # NumPy imports it on the first use, which takes long
    before = random.getstate(), numpy.get_bit_generator(), torch.get_rng_state() if torch else None
    numpy.set_bit_generator(np.random.MT19937(0))
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy.set_bit_generator(before[1])
        if torch:
            torch.set_rng_state(before[2])


def _cells(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not set yet
            yield cell.cell_contents


def _parts(thing: Any) -> Iterator[Any]:
    """What an object or a function uses."""
    if isinstance(thing, types.MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, types.FunctionType):
        yield from _cells(thing)
        yield from (thing.__globals__.get(name) for name in thing.__code__.co_names)
    elif isinstance(thing, (list, tuple, dict)):
        values = thing.values() if isinstance(thing, dict) else thing
        yield from values if len(thing) < 100 else ()
    elif not isinstance(thing, (type, types.ModuleType, np.ndarray)):
        yield from list(getattr(thing, "__dict__", {}).values())
        of_class = vars(type(thing)) if str(type(thing).__module__) != "builtins" else {}
        yield from (v for k, v in of_class.items() if k in CALLED or not callable(v))


def own_generators(thing: Any) -> list[Any]:
    """Objects that `thing` uses with random generators of their own: albumentations' pipelines.

    >>> own_generators([1, 2, 3])
    []
    """
    found, seen, level = [], {id(thing)}, [thing]
    for _ in range(DEPTH):
        parts = []
        for one in level:
            if str(type(one).__module__).startswith("albumentations") and hasattr(one, "set_random_seed"):
                found.append(one)
                continue
            new = [part for part in itertools.islice(_parts(one), 200) if id(part) not in seen]
            seen.update(map(id, new))
            parts += new
        level = parts[:1000]
    return found
