# SPDX-License-Identifier: Apache-2.0
"""Checks a loader's arguments and makes the engine's options from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _stoker
from ._arguments import check_types, weights_of
from ._errors import Error, UsageError, hint, usage
from ._fields import Wanted
from ._input import Given, Transform
from ._ranks import Ranks
from ._rows import Field, IterableFill, RowOp, failed_first
from ._types import CACHES, DTYPE_CODES, FIDELITIES, LAYOUTS, ON_ERROR, SIZES, choice, dtype_name, memory_bytes, whole

Arguments = dict[str, Any]


def check_order(a: Arguments) -> None:
    """Refuses arguments of the wrong type, and arguments that exclude each other."""
    check_types(a)
    if a["processes"] is not None:
        whole("processes", a["processes"], 0, 1024)
    sampled = a["sampler"] is not None or a["batch_sampler"] is not None
    others = a["batch_size"] != 1 or a["shuffle"] or a["sampler"] is not None or a["drop_last"]
    if a["batch_sampler"] is not None and others:
        raise usage("batch_sampler cannot be combined with batch_size, shuffle, sampler or drop_last; leave those out")
    if a["sampler"] is not None and a["shuffle"]:
        raise usage("sampler and shuffle cannot be combined, because the sampler is the order; leave one out")
    if a["layout"] == "channels_last" and a["output"] == "tensorflow":
        raise usage("layout='channels_last' is for torch; with TensorFlow, pass layout='NHWC'")
    if a["fields"] is not None and a["features"] is not None:
        raise usage("fields and features both choose the fields; pass only one of them")
    if sampled and any(a[name] is not None for name in ("weights", "steps_per_epoch", "mix")):
        raise usage("a sampler cannot be combined with weights, mix or steps_per_epoch; leave those out")


def _dtype(dtype: Any) -> int:
    name = dtype_name(dtype)
    if name not in DTYPE_CODES:
        raise usage(f"dtype is {dtype!r}; it must be float32, float16, bfloat16 or uint8{hint(name, DTYPE_CODES)}")
    return DTYPE_CODES[name]


def _wanted_dtype(a: Arguments, transform: Transform) -> Any:
    if not transform.partly:
        return transform.dtype if a["dtype"] is None else a["dtype"]
    if a["dtype"] is not None or a["layout"] != "NCHW":
        raise usage("part of the transform runs in Python and determines dtype and layout; leave them out")
    return transform.dtype


def _batch_size(a: Arguments) -> int:
    if a["batch_sampler"] is None:
        return whole("batch_size", a["batch_size"], 1, 2**31 - 1)
    return int(getattr(a["batch_sampler"], "batch_size", None) or 1)


def _optional(a: Arguments, given: Given, transform: Transform) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if a["max_bad"] is not None:
        options["max_bad"] = float(a["max_bad"]) or -1.0  # which allows none; 0 means the default to the engine
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
    """All options of the engine but the fields."""
    sampled = a["sampler"] is not None or a["batch_sampler"] is not None
    options = {
        "dtype": _dtype(_wanted_dtype(a, transform)),
        "layout": LAYOUTS["NHWC"] if transform.rows else choice("layout", a["layout"], LAYOUTS),
        "fidelity": choice("fidelity", a["fidelity"], FIDELITIES),
        "sizes": choice("sizes", a["sizes"], SIZES),
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
            raise usage("an iterable has its own order; shuffle, samplers and weights need a dataset with __getitem__")
        options.update(threads=1, on_error=ON_ERROR["skip"], max_bad=1.0, keep_empty=1)  # an empty batch marks its end
    return options


def _first_image(options: dict[str, Any]) -> tuple[str, tuple[int, ...], np.ndarray[Any, Any], int]:
    """Dtype, shape and content of the first row, and the number of samples, from a loader that prefetches nothing."""
    left_out = ("weights", "steps_per_epoch", "mix", "device", "device_work", "allocator")
    idle = {k: v for k, v in options.items() if k not in left_out}
    idle.update(sampled=1, shuffle=0, threads=1, batch_size=1, cache=CACHES["none"])
    handle = _stoker.Loader(idle)
    try:
        about = handle.fields()
        name, dtype, shape, _, _ = next((a for a in about if a[3] == "image"), about[0])
        handle.select((name,))
        first = options["subset"][:1] if "subset" in options else np.zeros(1, np.int64)
        image = np.asarray(handle.get(np.ascontiguousarray(first), None, 0)[0])[0].copy()
        return dtype, shape, image, handle.count()
    finally:
        handle.close()


def _row_op(options: dict[str, Any], transform: Transform, output: str) -> tuple[RowOp, Field | None]:
    """The user's functions on rows, and the field that they make if it has another dtype or shape."""
    dtype, shape, image, samples = _first_image(options)
    if 0 in shape:
        first = transform.functions[0]
        reasons = getattr(first.function, "why", None)
        why = f" (no op for {reasons[0]})" if reasons else ""
        raise usage(
            f"{first.name} runs in Python{why} and needs images of one size: put CenterCrop(224) or Resize((224, 224)) "
            "before it, or pass a dataset that applies it"
        )
    op = RowOp(transform.functions, dtype, shape, output == "torch")
    op.samples = samples
    try:
        return op, op.probe(image)
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
    settle: Callable[[dict[str, Any]], None],
) -> _stoker.Loader:
    """Opens the engine with the first choice of fields that the source has, and stores that choice in options.

    settle: completes the options, once the user's functions have been tried.
    """
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
            settle(options)
            return _stoker.Loader(options)
        except UsageError as error:
            if n == len(choices) or "there is no column" not in str(error):
                raise
    raise AssertionError  # there is at least one choice
