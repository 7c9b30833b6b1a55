# SPDX-License-Identifier: Apache-2.0
"""Samples out of turn: as training saw them, and what was drawn for them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _stoker
from ._errors import usage
from ._rows import Caller, Fill, IterableFill

Numbers = int | Iterable[int] | None
Drawn = dict[str, Any]
Which = tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]


def _numbers(name: str, given: Numbers) -> NDArray[np.int64] | None:
    if given is None:
        return None
    values = np.atleast_1d(np.asarray(given if hasattr(given, "__array__") or isinstance(given, int) else list(given)))
    if values.size and (values.ndim != 1 or values.dtype.kind not in "iu"):
        raise usage(f"get(): {name} must be whole numbers, one after the other")
    return np.ascontiguousarray(values, np.int64)


def which(indices: Numbers, positions: Numbers, fill: Fill | None) -> Which:
    """
    >>> which(3, None, None)
    (array([3]), None)
    """
    if isinstance(fill, IterableFill):
        raise usage("get(): an iterable has no samples to go back to")
    chosen, places = _numbers("indices", indices), _numbers("positions", positions)
    if chosen is None and places is None:
        raise usage("get() takes indices, as in the field `index`, or positions, as in the field `position`")
    if chosen is not None and places is not None and len(chosen) != len(places):
        raise usage(f"get(): {len(chosen)} indices and {len(places)} positions")
    return chosen, places


def _calls(callers: list[Caller], seed: int) -> list[Drawn]:
    return [{"op": c.name, "seed": (seed + n) % 2**64} for n, c in enumerate(callers)]


def drawn(engine: _stoker.Loader, chosen: Which, epoch: int, functions: list[Caller], fill: Fill | None) -> list[Drawn]:
    """What was drawn for each row: the ops in their order, with the numbers that torchvision's functions take."""
    rows = []
    indices, positions = (None if a is None else a.tolist() for a in chosen)
    for i in range(len(indices if indices is not None else positions or ())):
        index, position = indices and indices[i], positions and positions[i]
        told = json.loads(engine.drawn(index, position, epoch))
        row: Drawn = {"index": told["sample"], "epoch": epoch, "position": position}
        if told["size"] != [0, 0]:
            row["size"] = told["size"]
        row["ops"] = told["ops"]
        if "fill" in told and fill:
            row["ops"] += _calls([fill.caller, *fill.functions], told["fill"])
        if "op" in told:
            row["ops"] += _calls(functions, told["op"])
        rows.append(row)
    return rows
