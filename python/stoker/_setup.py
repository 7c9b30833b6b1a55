# SPDX-License-Identifier: Apache-2.0
"""The arguments of a loader, checked, become the options of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _stoker
from ._arguments import check_types, weights_of
from ._errors import Error, UsageError, usage
from ._fields import Wanted
from ._input import Given, Transform
from ._nearest import hint
from ._ranks import Ranks
from ._rows import Field, IterableFill, RowOp, failed_first
from ._types import CACHES, FIDELITIES, LAYOUTS, NUMBERS, ON_ERROR, choice, dtype_name, memory_bytes, whole

Arguments = dict[str, Any]

LATER = {
    "device": "batches are in host memory in this version; move them with .to(device)",
    "pin_memory": "pinned memory is not in this version",
}


def check_order(a: Arguments) -> None:
    """What is of a wrong type, what is not there yet, and what excludes what."""
    check_types(a)
    for name, words in LATER.items():
        if a[name] not in (None, False) and str(a[name]) not in ("none", "cpu"):
            raise usage(f"{name}={a[name]!r}: {words}")
    sampled = a["sampler"] is not None or a["batch_sampler"] is not None
    others = a["batch_size"] != 1 or a["shuffle"] or a["sampler"] is not None or a["drop_last"]
    if a["batch_sampler"] is not None and others:
        raise usage("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
    if a["sampler"] is not None and a["shuffle"]:
        raise usage("sampler excludes shuffle: the sampler is the order")
    if a["layout"] == "channels_last" and a["output"] == "tensorflow":
        raise usage("layout='channels_last' is torch's word; TensorFlow takes layout='NHWC'")
    if a["fields"] is not None and a["features"] is not None:
        raise usage("fields and features say the same; give one of them")
    if sampled and any(a[name] is not None for name in ("weights", "steps_per_epoch", "mix")):
        raise usage("a sampler excludes weights, mix and steps_per_epoch")


def _dtype(dtype: Any) -> int:
    name = dtype_name(dtype)
    if name not in NUMBERS:
        raise usage(f"dtype is {dtype!r}; float32, float16, bfloat16 and uint8 are possible{hint(name, NUMBERS)}")
    return NUMBERS[name]


def _wanted_dtype(a: Arguments, transform: Transform) -> Any:
    if not transform.partly:
        return transform.dtype if a["dtype"] is None else a["dtype"]
    if a["dtype"] is not None or a["layout"] != "NCHW":
        raise usage("a part of the transform runs in Python, and decides on dtype and layout: leave them out")
    return transform.dtype


def _batch_size(a: Arguments) -> int:
    if a["batch_sampler"] is None:
        return whole("batch_size", a["batch_size"], 1, 2**31 - 1)
    return int(getattr(a["batch_sampler"], "batch_size", None) or 1)


def _optional(a: Arguments, given: Given, transform: Transform) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if a["max_bad"] is not None:
        options["max_bad"] = float(a["max_bad"])
    if a["steps_per_epoch"] is not None:
        options["steps_per_epoch"] = whole("steps_per_epoch", a["steps_per_epoch"], 1, 2**40)
    if a["classes"] is not None:
        options["classes"] = [str(c) for c in a["classes"]]
    if a["weights"] is not None:
        options["weights"] = weights_of(a["weights"])
    if a["exif"] is False or (a["exif"] is None and (given.foreign or transform.foreign)):
        options["no_exif"] = 1
    return options


def engine_options(a: Arguments, given: Given, transform: Transform, ranks: Ranks) -> dict[str, Any]:
    sampled = a["sampler"] is not None or a["batch_sampler"] is not None
    options = {
        "dtype": _dtype(_wanted_dtype(a, transform)),
        "layout": choice("layout", a["layout"], LAYOUTS),
        "fidelity": choice("fidelity", a["fidelity"], FIDELITIES),
        "batch_size": _batch_size(a),
        "shuffle": int(bool(a["shuffle"])),
        "drop_last": int(bool(a["drop_last"])),
        "pad_last": int(bool(a["pad_last"])),
        "seed": whole("seed", a["seed"], 0, 2**64 - 1),
        "on_error": choice("on_error", a["on_error"], ON_ERROR),
        "threads": 0 if a["threads"] is None else whole("threads", a["threads"], 1, 1024),
        "memory": memory_bytes("memory", a["memory"]),
        "cache": choice("cache", a["cache"] or "none", CACHES),
        "cache_dir": a["cache_dir"],
        "cache_size": memory_bytes("cache_size", a["cache_size"]),
        "rank": ranks.rank,
        "world_size": ranks.world_size,
        "sampled": int(sampled),
        "ops": transform.text,
        **given.options,
        **_optional(a, given, transform),
    }
    if isinstance(given.fill, IterableFill):
        if a["shuffle"] or sampled or a["weights"] is not None:
            raise usage("an iterable has an order of its own; shuffle, samplers and weights need __getitem__")
        options.update(threads=1, on_error=ON_ERROR["skip"], max_bad=1.0, keep_empty=1)  # an empty batch is its end
    return options


def _first_picture(options: dict[str, Any]) -> tuple[str, tuple[int, ...], np.ndarray[Any, Any]]:
    """Type, shape and content of the first row, by a loader that prefetches nothing."""
    idle = {k: v for k, v in options.items() if k not in ("weights", "steps_per_epoch", "mix")}
    idle.update(sampled=1, shuffle=0, threads=1, batch_size=1, cache=CACHES["none"])
    handle = _stoker.Loader(idle)
    try:
        about = handle.fields()
        name, dtype, shape, _, _ = next((a for a in about if a[3] == "image"), about[0])
        handle.select((name,))
        first = options["subset"][:1] if "subset" in options else np.zeros(1, np.int64)
        return dtype, shape, np.asarray(handle.get(np.ascontiguousarray(first), None, 0)[0])[0].copy()
    finally:
        handle.close()


def _row_op(options: dict[str, Any], transform: Transform, output: str) -> tuple[RowOp, Field | None]:
    """Functions of the user's on rows, and the form of what they make."""
    dtype, shape, picture = _first_picture(options)
    if 0 in shape:
        raise usage(
            "a function of your own needs images of one size: let CenterCrop(224) or Resize((224, 224)) come before it"
        )
    op = RowOp(transform.functions, dtype, shape, output == "torch")
    try:
        return op, op.probe(picture)
    except Error:
        raise
    except Exception as error:
        raise failed_first(transform.functions, error) from error


def open_engine(
    options: dict[str, Any],
    choices: Sequence[str | None],
    wanted: Sequence[Wanted] | None,
    given: Given,
    transform: Transform,
    output: str,
) -> _stoker.Loader:
    """With the first text of fields whose columns there are; options keep what it was opened with."""
    if given.table is not None:
        columns = [w for w in wanted or () if not w.own]
        names = {n for w in columns for n in (w.name, w.column)}
        given.table.check(columns)
        limit = options["memory"] and options["memory"] // 4
        options["arrow"] = given.table.opened(names or None, limit, columns)
    for n, text in enumerate(choices, 1):
        options["fields"] = text
        try:
            if transform.functions and not given.fill:
                options["op"] = _row_op(options, transform, output)
            return _stoker.Loader(options)
        except UsageError as error:
            if n == len(choices) or "there is no column" not in str(error):
                raise
    raise AssertionError  # there is at least one
