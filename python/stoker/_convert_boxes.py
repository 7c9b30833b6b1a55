# SPDX-License-Identifier: Apache-2.0
"""Converts torchvision's transforms of boxes and keypoints to ops, for _convert.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _ops, _ops_boxes, _ops_geometry
from ._converted import PIL

LAST = ("Normalize", "RandomErasing", "ToDtype", "ToTensor")
OPTIONS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]


def _fills(fill: dict[Any, Any]) -> dict[str, Any]:
    """By the name of the kind: a Pillow image and a torchvision.tv_tensors.Image have different fills."""
    names = {k: getattr(k, "__name__", k) for k in fill}
    return {PIL if getattr(k, "__module__", "").startswith("PIL") else names[k]: v for k, v in fill.items()}


def fill_of(fill: Any, kind: str) -> Any:
    """The colour of images of this kind: PIL, "Image" or "Tensor".

    >>> fill_of({"others": 3}, "Image"), fill_of((1, 2, 3), "Tensor")
    (3, (1, 2, 3))
    """
    if not isinstance(fill, dict):
        return fill
    fills = _fills(fill)
    return fills.get(kind, fills.get("others"))


def mask_fill_of(fill: Any, kind: str) -> int | None:
    """The number of masks, if it differs from what the ops take: the colour of images, or 0 if it has three numbers.

    >>> mask_fill_of({"others": 0, "Mask": 255}, "Image"), mask_fill_of({"others": 3}, "Image")
    (255, None)
    """
    number: Any = fill_of(fill, "Mask") or 0
    color = fill_of(fill, kind) or 0
    if not isinstance(fill, dict) or number in (color, 0 if isinstance(color, (list, tuple)) else color):
        return None
    number = number[0] if isinstance(number, (list, tuple)) and len(number) == 1 else number
    if number != int(number) or not 0 <= number <= 255:
        raise TypeError
    return int(number)


def _beside(walk: Any, op: _ops.Op) -> None:
    """Adds an op that leaves the image alone, before those that make floats."""
    at = len(walk.to.ops)
    while at > 0 and type(walk.to.ops[at - 1]).__name__ in LAST:
        at -= 1
    walk.to.ops.insert(at, op)


def iou_crop(walk: Any, t: Any) -> None:
    if walk.to.dtype == "float32":
        raise TypeError  # it crops floats; an op must come before them
    sides = t.min_scale, t.max_scale, t.min_aspect_ratio, t.max_aspect_ratio
    _beside(walk, _ops_geometry.RandomIoUCrop(*sides, None if t.options == OPTIONS else tuple(t.options), t.trials))
    walk.to.sized = False


def sanitize_boxes(walk: Any, t: Any) -> None:
    if getattr(t, "labels_getter", "default") != "default":
        raise TypeError  # the op also removes entries of other fields
    _beside(walk, _ops_boxes.SanitizeBoundingBoxes(t.min_size, t.min_area))


def clamp_boxes(walk: Any, t: Any) -> None:
    if getattr(t, "clamping_mode", "auto") not in ("auto", "soft"):
        raise TypeError
    _beside(walk, _ops_boxes.ClampBoundingBoxes())


def box_format(walk: Any, t: Any) -> None:
    word: Any = str(getattr(t.format, "value", t.format)).upper()
    if word not in ("XYXY", "XYWH", "CXCYWH"):
        raise TypeError
    _beside(walk, _ops_boxes.ConvertBoundingBoxFormat(word))


STEPS: dict[str, Callable[[Any, Any], None]] = {
    "ClampBoundingBoxes": clamp_boxes,
    "ClampKeyPoints": lambda walk, t: _beside(walk, _ops_boxes.ClampKeyPoints()),
    "ConvertBoundingBoxFormat": box_format,
    "RandomIoUCrop": iou_crop,
    "SanitizeBoundingBoxes": sanitize_boxes,
    "SanitizeKeyPoints": lambda walk, t: _beside(walk, _ops_boxes.SanitizeKeyPoints()),
}
