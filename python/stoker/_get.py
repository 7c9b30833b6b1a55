# SPDX-License-Identifier: Apache-2.0
"""get(), drawn() and load_all(): samples outside the order of an epoch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _stoker
from ._errors import usage
from ._rows import Caller, Fill, IterableFill
from ._types import memory_bytes

Numbers = int | Iterable[int] | None
Drawn = dict[str, Any]
LEFT_OUT = (
    *("weights", "steps_per_epoch", "mix", "drop_last", "pad_last", "shuffle", "rank", "world_size", "cache"),
    *("device", "device_work", "allocator"),
)
SCRATCH = 64 << 20  # for each thread
MIB = 1 << 20
Which = tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]


def _numbers(name: str, given: Numbers) -> NDArray[np.int64] | None:
    if given is None:
        return None
    values = np.atleast_1d(np.asarray(given if hasattr(given, "__array__") or isinstance(given, int) else list(given)))
    if values.size and (values.ndim != 1 or values.dtype.kind not in "iu"):
        raise usage(f"get(): {name} must be one integer or a list of integers")
    return np.ascontiguousarray(values, np.int64)


def which(indices: Numbers, positions: Numbers, fill: Fill | None) -> Which:
    """Checks the arguments of get(): arrays of indices and of positions, or None.

    >>> which(3, None, None)
    (array([3]), None)
    """
    if isinstance(fill, IterableFill):
        raise usage("get(): an iterable cannot go back to its samples; pass a dataset with __getitem__ and __len__")
    chosen, places = _numbers("indices", indices), _numbers("positions", positions)
    if chosen is None and places is None:
        raise usage("get() needs indices, as in the field `index`, or positions, as in the field `position`")
    if chosen is not None and places is not None and len(chosen) != len(places):
        raise usage(
            f"get(): there are {len(chosen)} indices but {len(places)} positions; pass one position for each index"
        )
    return chosen, places


def _calls(callers: list[Caller], seed: int) -> list[Drawn]:
    return [{"op": c.name, "seed": (seed + n) % 2**64} for n, c in enumerate(callers)]


def drawn(engine: _stoker.Loader, chosen: Which, epoch: int, functions: list[Caller], fill: Fill | None) -> list[Drawn]:
    """The draws for each row: the ops in order, with the values that torchvision's functions take."""
    rows = []
    indices, positions = (None if a is None else a.tolist() for a in chosen)
    for i in range(len(indices if indices is not None else positions or ())):
        index, position = indices and indices[i], positions and positions[i]
        found = json.loads(engine.drawn(index, position, epoch))
        row: Drawn = {"index": found["sample"], "epoch": epoch, "position": position}
        if found["size"] != [0, 0]:
            row["size"] = found["size"]
        if "views" in found:
            row["views"] = found["views"]
        row["ops"] = found.get("ops", [])
        if row["ops"] and positions:  # an op that combines rows is the last
            row["ops"][-1] |= json.loads(engine.blended(positions[0], len(positions), i, epoch))
        if "fill" in found and fill:
            row["ops"] += _calls([fill.caller, *fill.functions], found["fill"])
        if "op" in found:
            row["ops"] += _calls(functions, found["op"])
        rows.append(row)
    return rows


# ---------------------------------------------------------------- load_all


def _row_bytes(handle: _stoker.Loader) -> tuple[int, bool]:
    """Bytes of the fields that have one size in every row, and whether there are other fields."""
    about = handle.fields()
    if any(0 in shape for _, _, shape, _, beside in about if not beside):
        raise usage("load_all() needs images of one size: end the ops with CenterCrop(224) or Resize((224, 224))")
    sizes = {"bfloat16": 2}
    fixed = [
        math.prod(shape) * (sizes.get(dtype) or np.dtype(dtype).itemsize) for _, dtype, shape, _, b in about if not b
    ]
    return sum(fixed), any(beside for *_, beside in about)


def options_for_all(loader: Any, fill: Fill | None, memory: int | str | None) -> dict[str, Any]:
    """Options of an engine that makes one batch of all samples, if there is memory for it."""
    if isinstance(fill, IterableFill):
        raise usage("load_all(): an iterable has no length; pass a dataset with __getitem__ and __len__")
    n, (row, more) = loader._engine.count(), _row_bytes(loader._engine)
    need = n * row
    limit = memory_bytes("memory", memory)
    if limit is None:
        limit = 4 * int(_stoker.info()["memory"]) * 9 // 10
    if need > limit:
        least = "at least " if more else ""
        raise usage(
            f"load_all(): {n} samples of {row} bytes need {least}{-(-need // MIB)} MiB, but the limit is "
            f"{limit // MIB} MiB; allow more with memory=, or use smaller images or dtype='uint8'"
        )
    options = {k: v for k, v in loader._options.items() if k not in LEFT_OUT}
    if fill:
        options["fill"] = (fill, n, fill.fields)
    threads = options["threads"] or int(_stoker.info()["threads"])
    # The ring has room for a second batch, which is never made: memory that is not touched costs nothing.
    return {**options, "sampled": 1, "keep_empty": 1, "batch_size": n, "memory": 5 * need + 4 * SCRATCH * threads}


def all_rows(handle: _stoker.Loader, n: int, here: bool) -> Any:
    """The batch of all samples, in the order of the source. here: in the calling thread, because Python makes them."""
    order = np.arange(n, dtype=np.int64)
    if here:
        return handle.make(0, 0, order, n, None)
    handle.set_order(0, order, None)
    return handle.next()
