# SPDX-License-Identifier: Apache-2.0
"""The whole set as one batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _stoker
from ._errors import usage
from ._rows import Fill, IterableFill
from ._types import memory_bytes

LEFT_OUT = ("weights", "steps_per_epoch", "mix", "drop_last", "pad_last", "shuffle", "rank", "world_size", "cache")
SCRATCH = 64 << 20  # for each thread
MIB = 1 << 20


def _row_bytes(handle: _stoker.Loader) -> tuple[int, bool]:
    """Of what is of one size in every row; and whether there is more."""
    about = handle.fields()
    if any(0 in shape for _, _, shape, _, beside in about if not beside):
        raise usage("load_all() needs images of one size: end the ops with CenterCrop(224), or Resize((224, 224))")
    sizes = {"bfloat16": 2}
    fixed = [
        math.prod(shape) * (sizes.get(dtype) or np.dtype(dtype).itemsize) for _, dtype, shape, _, b in about if not b
    ]
    return sum(fixed), any(beside for *_, beside in about)


def options_for(loader: Any, fill: Fill | None, memory: int | str | None) -> dict[str, Any]:
    """Options of an engine with one batch of all samples, if that may be."""
    if isinstance(fill, IterableFill):
        raise usage("load_all(): an iterable has no number of samples")
    n, (row, more) = loader._engine.count(), _row_bytes(loader._engine)
    need = n * row
    limit = memory_bytes("memory", memory)
    if limit is None:
        limit = 4 * int(_stoker.info()["memory"]) * 9 // 10
    if need > limit:
        least = "at least " if more else ""
        raise usage(
            f"load_all(): {n} samples of {row} bytes need {least}{-(-need // MIB)} MiB, and {limit // MIB} MiB may be "
            "used; memory= allows more, and smaller pictures or dtype='uint8' need less"
        )
    options = {k: v for k, v in loader._options.items() if k not in LEFT_OUT}
    if fill:
        options["fill"] = (fill, n, fill.fields)
    threads = options["threads"] or int(_stoker.info()["threads"])
    # What is not touched is no memory: the ring has room for a second batch, which never comes.
    return {**options, "sampled": 1, "keep_empty": 1, "batch_size": n, "memory": 5 * need + 4 * SCRATCH * threads}


def whole(handle: _stoker.Loader, n: int) -> Any:
    handle.set_order(0, np.arange(n, dtype=np.int64), None)
    return handle.next()
