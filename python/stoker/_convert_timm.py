# SPDX-License-Identifier: Apache-2.0
"""Finds the string of timm that makes a policy, from the augmentations in it."""

from __future__ import annotations

import sys
from typing import Any

FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers


def _shared(ops: list[Any]) -> dict[str, Any]:
    """Interpolation, fill and shift, which all augmentations must share; a LookupError otherwise."""
    first = ops[0]
    for op in ops:
        if (op.kwargs, op.hparams) != (first.kwargs, first.hparams):
            raise LookupError("augmentations differ")
    resample, fill = first.kwargs["resample"], first.kwargs["fillcolor"]
    if isinstance(resample, (tuple, list)):
        if sorted(resample) != [2, 3]:
            raise LookupError("unusual interpolation")
        sampling = "random"
    else:
        sampling = FILTERS[int(resample)]
    fill = tuple(int(v) for v in fill) if isinstance(fill, (tuple, list)) else int(fill)
    fill = fill[0] if isinstance(fill, tuple) and len(set(fill)) == 1 else fill
    return {"interpolation": sampling, "fill": fill, "translate_pct": first.hparams.get("translate_pct", 0.45)}


def _noise(op: Any) -> str:
    """The sections about the magnitude's noise."""
    std = op.magnitude_std
    words = f"-mstd{101 if std == float('inf') else std:g}" if std else ""
    return words + (f"-mmax{op.magnitude_max:g}" if op.magnitude_max else "")


def _rand(t: Any, library: Any) -> str:
    first, names = t.ops[0], [op.name for op in t.ops]
    if any((op.prob, op.magnitude) != (first.prob, first.magnitude) for op in t.ops):
        raise LookupError("augmentations differ")
    sets = {"": "", "-inc1": "", "-t3a": "3a", "-t3aw": "3aw", "-tweights": "weights"}
    for words, name in sets.items():
        known = library.rand_augment_choices(name, increasing=words != "")
        weights = None
        if isinstance(known, dict):
            known, weights = library._get_weighted_transforms(known)
        same = (weights is None) == (t.choice_weights is None) and (
            weights is None or list(weights) == list(t.choice_weights)
        )
        if list(known) == names and same:
            m = f"rand-m{first.magnitude:g}-n{t.num_layers}-p{first.prob:g}"
            return m + _noise(first) + words
    raise LookupError("unknown augmentations")


def _auto(t: Any, library: Any) -> str:
    def content(policy: Any) -> list[Any]:
        return [[(op.name, op.prob, op.magnitude) for op in some] for some in policy]

    for name in ("original", "originalr", "v0", "v0r", "3a"):
        if content(library.auto_augment_policy(name)) == content(t.policy):
            return name + _noise(t.policy[0][0])
    raise LookupError("unknown policy")


def _augmix(t: Any, library: Any) -> str:
    first = t.ops[0]
    if [op.name for op in t.ops] != library._AUGMIX_TRANSFORMS or t.blended or t.width > 8 or t.depth > 8:
        raise LookupError("unusual mixture")
    depth = f"-d{t.depth}" if t.depth > 0 else ""
    return f"augmix-m{first.magnitude:g}-w{t.width}{depth}-a{t.alpha:g}" + (_noise(first) or "-mstd0")


def policy(t: Any) -> dict[str, Any]:
    """The arguments of TimmAugment; a LookupError if there are none."""
    library = sys.modules[type(t).__module__]
    if type(t).__name__ == "RandAugment":
        return {"policy": _rand(t, library), **_shared(t.ops)}
    if type(t).__name__ == "AugMixAugment":
        return {"policy": _augmix(t, library), **_shared(t.ops)}
    return {"policy": _auto(t, library), **_shared([op for some in t.policy for op in some])}
