# SPDX-License-Identifier: Apache-2.0
"""Several sources, mixed by weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import usage
from ._source import Path, Source


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise usage(f"mix: the weight {value!r} is no number")
    return float(value)


def mixed(sources: Any, weights: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The arguments `source` and `mix` of a loader, when both are lists."""
    for name, value in (("source", sources), ("mix", weights)):
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise usage(
                f"{name} is {value!r}; to mix, give several sources and a weight for each: [a, b], mix=(0.7, 0.3)"
            )
    return sources, weights


def mixture(sources: Sequence[Any], weights: Iterable[Any]) -> Source:
    """One source of several, each with its weight."""
    parts = [s if isinstance(s, Source) else Source(s) for s in sources]
    numbers = [_weight(w) for w in weights]
    if len(parts) != len(numbers) or not parts:
        raise usage(f"mix: {len(numbers)} weights for {len(parts)} sources; one for each is needed")
    both = Source.joined(parts) if len(parts) > 1 else parts[0].subset(range(len(parts[0])))
    both._mix = np.array(numbers, np.float64), np.array([len(p) for p in parts], np.int64)
    return both


def mix(sources: Mapping[Path | Source, float] | Iterable[tuple[Path | Source, float]]) -> Source:
    """Sources and their weights, as one source: every position of an epoch is of one of them, by weight.

    Each source goes through its own samples pass after pass, over all epochs: none comes again before all came. An
    epoch has as many samples as there are in all; `steps_per_epoch` fixes it otherwise.

    >>> import stoker
    >>> src = stoker.Source(photos)
    >>> cats, dogs = src.select(classes=["cat"]), src.select(classes=["dog"])
    >>> loader = stoker.Loader(stoker.mix({cats: 0.75, dogs: 0.25}), "CenterCrop(8)", batch_size=4, output="numpy",
    ...                        shuffle=True, steps_per_epoch=256)
    >>> sum(int((labels == 0).sum()) for _, labels in loader)
    768
    """
    if not isinstance(sources, (Mapping, Iterable)) or isinstance(sources, (str, bytes)):
        raise usage(f"mix: {sources!r} is no dict of sources and their weights")
    pairs = list(sources.items() if isinstance(sources, Mapping) else sources)
    if any(not isinstance(p, tuple) or len(p) != 2 for p in pairs):
        raise usage("mix: pairs of a source and its weight are needed, or a dict of them")
    return mixture([s for s, _ in pairs], [w for _, w in pairs])
