# SPDX-License-Identifier: Apache-2.0
"""One shape for all batches: pads every batch to the largest shape that the run as it is has seen."""

from __future__ import annotations

import sys
from typing import Any

from . import probe


def largest(shapes: set[Any]) -> list[int] | None:
    """The largest size in every dimension but that of samples, if all shapes have as many dimensions.

    >>> largest({(8, 20, 3), (8, 31, 2), (4, 7, 3)})
    [8, 31, 3]
    >>> largest({(8, 20), (8,)}) is None
    True
    """
    known = [shape for shape in shapes if shape]
    if not known or len({len(shape) for shape in known}) > 1:
        return None
    return [max(sizes) for sizes in zip(*known, strict=True)]


def fixed(batch: Any) -> Any:
    """The batch, padded with zeros."""
    target = (probe.plan.get("loader") or {}).get("shape")
    shape = probe.shape_of(batch)
    if not target or not shape or len(shape) != len(target):
        return batch
    probe.extra["applied"] = True
    more = [max(0, new - old) for old, new in zip(shape, target, strict=True)]
    more[0] = 0  # samples
    return _padded(batch, tuple(shape), more) if any(more) else batch


def _padded(value: Any, shape: tuple[int, ...], more: list[int]) -> Any:
    """Every array of a batch, in the dimensions that have the first array's old size: masks follow the inputs."""
    if hasattr(value, "shape"):
        known = len(shape) == len(value.shape)
        ends = [more[i] if known and n == shape[i] else 0 for i, n in enumerate(value.shape)]
        return _pad(value, ends) if any(ends) else value
    if isinstance(value, dict):
        return {key: _padded(one, shape, more) for key, one in value.items()}
    if isinstance(value, list | tuple):
        several = [_padded(one, shape, more) for one in value]
        return type(value)(*several) if hasattr(value, "_fields") else type(value)(several)
    return value


def _pad(array: Any, more: list[int]) -> Any:
    module = type(array).__module__.partition(".")[0]
    if module == "torch":
        ends = [n for size in reversed(more) for n in (0, size)]
        return sys.modules["torch"].nn.functional.pad(array, ends)
    name = "jax.numpy" if module.startswith("jax") else "numpy"
    return sys.modules[name].pad(array, [(0, size) for size in more])
