# SPDX-License-Identifier: Apache-2.0
"""mix(): several sources, mixed by weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import usage
from ._source import Path, Source


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise usage(f"mix: the weight {value!r} is not a number")
    return float(value)


def mixed(sources: Any, weights: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Checks that the arguments `source` and `mix` of a loader are lists."""
    for name, value in (("source", sources), ("mix", weights)):
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise usage(
                f"{name} is {value!r}; pass several sources and a weight for each: Loader([a, b], mix=(0.7, 0.3))"
            )
    return sources, weights


def mixture(sources: Sequence[Any], weights: Iterable[Any]) -> Source:
    """One source made of several, each with its weight."""
    parts = [s if isinstance(s, Source) else Source(s) for s in sources]
    numbers = [_weight(w) for w in weights]
    if len(parts) != len(numbers) or not parts:
        raise usage(f"mix: {len(numbers)} weights for {len(parts)} sources; pass one for each source")
    both = Source.joined(parts) if len(parts) > 1 else parts[0].subset(range(len(parts[0])))
    both._mix = np.array(numbers, np.float64), np.array([len(p) for p in parts], np.int64)
    return both


def mix(sources: Mapping[Any, float] | Iterable[tuple[Path | Source, float]]) -> Source:
    """Mixes sources by weight: each position of an epoch takes a sample of one of them.

    sources    a dict {source: weight}, or pairs (source, weight); a source is a path or a Source. Weights are relative.

    Each source delivers all of its samples before any of them repeats, across epochs. An epoch has as many samples as
    all sources together, or as `steps_per_epoch` of the loader says.

    >>> import stoker
    >>> src = stoker.Source(photos)
    >>> cats, dogs = src.select(classes=["cat"]), src.select(classes=["dog"])
    >>> loader = stoker.Loader(stoker.mix({cats: 0.75, dogs: 0.25}), "CenterCrop(8)", batch_size=4, output="numpy",
    ...                        shuffle=True, steps_per_epoch=256)
    >>> sum(int((labels == 0).sum()) for _, labels in loader)
    768
    """
    if not isinstance(sources, (Mapping, Iterable)) or isinstance(sources, (str, bytes)):
        raise usage(f"mix: {sources!r} must be a dict of sources and weights")
    pairs = list(sources.items() if isinstance(sources, Mapping) else sources)
    if any(not isinstance(p, tuple) or len(p) != 2 for p in pairs):
        raise usage("mix: pass a dict of sources and weights, or pairs (source, weight)")
    return mixture([s for s, _ in pairs], [w for _, w in pairs])
