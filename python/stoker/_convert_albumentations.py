# SPDX-License-Identifier: Apache-2.0
"""Converts pipelines of albumentations to ops, by reading their attributes, without importing the library.

A step becomes an op if the pixels differ by at most one level: OpenCV rounds differently. The first step that has no
such op, and all that follow, run in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _ops, _ops_boxes, _ops_color, _ops_geometry
from ._converted import Converted, refusal

LINEAR, NEAREST_EXACT = 1, 6  # of OpenCV
FORMATS = {"pascal_voc": "XYXY", "coco": "XYWH", "yolo": "CXCYWH", "albumentations": "XYXY"}
NOT_CUT = "without check_each_transform, crops do not cut boxes, and after Pad they are whole again; the ops cut them"
SMALLEST = 1e-6  # a box without an area is left out
BORDERS: dict[int, Any] = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}
FILTERS = {LINEAR: ("bilinear", False), NEAREST_EXACT: ("nearest", True)}


class _Stop(Exception):
    """There is no op with the same result; says why."""


def _check(good: bool, why: str = "no op has these arguments") -> None:
    if not good:
        raise _Stop(why)


def _filter(t: Any) -> dict[str, Any]:
    _check(t.interpolation in FILTERS, "only cv2.INTER_LINEAR and INTER_NEAREST_EXACT have the same result in an op")
    _check(getattr(t, "area_for_downscale", None) is None)
    word, antialias = FILTERS[t.interpolation]
    return {"interpolation": word, "antialias": antialias}


def _fixed(pair: Any) -> Any:
    _check(isinstance(pair, (tuple, list)) and len(pair) == 2 and pair[0] == pair[1], "no op draws this argument")
    return pair[0]


def _pixels(fill: Any) -> Any:
    values = [float(v) for v in (fill if isinstance(fill, (tuple, list)) else [fill])]
    _check(len(values) in (1, 3) and all(v == int(v) for v in values), "no op has this fill")
    return int(values[0]) if len(values) == 1 else [int(v) for v in values]


class Followers:
    """The ops that bbox_params and keypoint_params stand for."""

    def __init__(self, processors: dict[str, Any]) -> None:
        self.first: list[_ops.Op] = []
        self.each: list[_ops.Op] = []  # after every step that moves pixels
        self.last: list[_ops.Op] = []
        self.pads = True  # whether boxes are right after Pad
        for name, processor in processors.items():
            {"bboxes": self._boxes, "keypoints": self._keypoints}[name](processor.params)

    def _boxes(self, p: Any) -> None:
        _check(p.max_accept_ratio is None, "no op has max_accept_ratio")
        _check(
            p.min_width == p.min_height, "SanitizeBoundingBoxes has one min_size, but min_width and min_height differ"
        )
        least = max(float(p.min_width), SMALLEST), max(float(p.min_area), SMALLEST), float(p.min_visibility)
        clamp = _ops_boxes.ClampBoundingBoxes()
        checks = [clamp, _ops_boxes.SanitizeBoundingBoxes(*least)]
        if p.clip or p.filter_invalid_bboxes:
            self.first += [clamp, _ops_boxes.SanitizeBoundingBoxes(SMALLEST, SMALLEST)]
        if p.check_each_transform:
            self.each += checks
        else:
            self.last += checks
            self.pads = False
        relative = p.format in ("yolo", "albumentations")
        self.last.append(_ops_boxes.ConvertBoundingBoxFormat(FORMATS[p.format], relative))

    def _keypoints(self, p: Any) -> None:
        _check(p.format == "xy", "keypoints of a Loader are x and y; no op has this format")
        if p.remove_invisible:
            (self.each if p.check_each_transform else self.last).append(_ops_boxes.SanitizeKeyPoints())


class Walk:
    """Follows a pipeline; `size` is the height and width of the image before the next step, if they are known."""

    def __init__(self, followers: Followers | None = None) -> None:
        self.followers = followers
        self.to = Converted()
        self.size: tuple[int, int] | None = None
        self.planes = self.normalized = self.moved = False

    def step(self, t: Any) -> None:
        """Adds the ops of a step, or raises _Stop."""
        name = type(t).__name__
        _check(name in STEPS, "no op has the same result")
        _check(not self.planes and (name == "ToTensorV2" or not self.normalized), "it follows Normalize")
        _check(name != "Pad" or self.followers is None or self.followers.pads, NOT_CUT)
        made = STEPS[name](self, t)
        if self.followers is not None and name in MOVES:
            self.to.ops += [made] if made is not None else []
            self.to.ops += self.followers.each
            self.moved = True
            _check(t.p == 1 or name in CHANCES, "it changes the size, and p is not 1")
            return
        chance = name in CHANCES or made is None
        if made is not None:
            self.to.ops.append(made if chance or t.p == 1 else _ops_color.RandomApply([self._kept(made)], float(t.p)))
        elif t.p != 1:
            raise _Stop("it changes the type, and p is not 1")

    def _kept(self, op: _ops.Op) -> _ops.Op:
        _check(type(op).__name__ in KEEP, "it changes the size, and p is not 1")
        return op

    def resize(self, t: Any) -> _ops.Op:
        self.size, self.to.sized = (t.height, t.width), True
        return _ops.Resize(self.size, **_filter(t))

    def random_resized_crop(self, t: Any) -> _ops.Op:
        self.size, self.to.sized = (t.size[0], t.size[1]), True
        return _ops.RandomResizedCrop(self.size, tuple(t.scale), tuple(t.ratio), **_filter(t))

    def random_crop(self, t: Any) -> _ops.Op:
        _check(not t.pad_if_needed)
        self.size, self.to.sized = (t.height, t.width), True
        return _ops.RandomCrop(self.size)

    def center_crop(self, t: Any) -> _ops.Op:
        _check(self.size is not None and not t.pad_if_needed, "the size before it is not fixed; put Resize before it")
        beyond = [have - want for have, want in zip(self.size or (), (t.height, t.width), strict=True)]
        _check(
            all(n >= 0 and n // 2 == round(n / 2) for n in beyond),
            "it rounds the position of the crop down, but the op CenterCrop rounds to even",
        )
        self.size, self.to.sized = (t.height, t.width), True
        return _ops.CenterCrop(self.size)

    def pad(self, t: Any) -> _ops.Op:
        _check(t.border_mode in BORDERS)
        sides = [t.padding] if isinstance(t.padding, int) else list(t.padding)
        edges = (sides * 4)[:4]
        if self.size is not None:
            self.size = (self.size[0] + edges[1] + edges[3], self.size[1] + edges[0] + edges[2])
        return _ops.Pad(sides[0] if len(sides) == 1 else sides, _pixels(t.fill), BORDERS[t.border_mode])

    def gray(self, t: Any) -> _ops.Op:
        _check(t.num_output_channels == 3 and t.method == "weighted_average")
        return _ops_color.RandomGrayscale(float(t.p))

    def jitter(self, t: Any) -> _ops.Op:
        _check(tuple(t.hue) == (0, 0), "OpenCV has only 180 hues, so the result would differ")
        return _ops_color.ColorJitter(tuple(t.brightness), tuple(t.contrast), tuple(t.saturation))

    def blur(self, t: Any) -> _ops.Op:
        side = _fixed(t.blur_limit)
        _check(side % 2 == 1)
        return _ops_geometry.GaussianBlur(side, tuple(float(v) for v in t.sigma_limit))

    def posterize(self, t: Any) -> _ops.Op:
        return _ops_color.RandomPosterize(_fixed(t.num_bits), float(t.p))

    def solarize(self, t: Any) -> _ops.Op:
        return _ops_color.RandomSolarize(int(_fixed(t.threshold_range) * 255) + 1, float(t.p))  # above, not from

    def one_of(self, t: Any) -> _ops.Op:
        def certain(one: Any) -> _ops.Op:
            inner = Walk()
            inner.size = self.size
            chance, one.p = one.p, 1.0  # the weights are the chances
            try:
                inner.step(one)
            finally:
                one.p = chance
            _check(len(inner.to.ops) == 1 and type(inner.to.ops[0]).__name__ in KEEP, "a step in it changes the size")
            return inner.to.ops[0]

        return _ops_color.RandomChoice([certain(one) for one in t.transforms], [float(p) for p in t.transforms_ps])

    def sequential(self, t: Any) -> _ops.Op:
        inner = Walk()
        for one in t.transforms:
            inner.step(one)
        _check(all(type(op).__name__ in KEEP for op in inner.to.ops), "a step in it changes the size")
        return _ops_color.Compose(inner.to.ops) if t.p == 1 else _ops_color.RandomApply(inner.to.ops, float(t.p))

    def normalize(self, t: Any) -> None:
        _check(t.normalization == "standard" and t.max_pixel_value == 255 and t.mean is not None and t.std is not None)
        mean, std = ([float(v) for v in (w if isinstance(w, (tuple, list)) else [w])] for w in (t.mean, t.std))
        self.to.ops.append(_ops.Normalize(mean, std))
        self.normalized, self.to.dtype = True, "float32"

    def to_planes(self, t: Any) -> None:
        self.planes = True


STEPS: dict[str, Callable[[Walk, Any], _ops.Op | None]] = {
    "CenterCrop": Walk.center_crop,
    "ChannelShuffle": lambda walk, t: _ops_color.RandomChannelPermutation(),
    "ColorJitter": Walk.jitter,
    "GaussianBlur": Walk.blur,
    "HorizontalFlip": lambda walk, t: _ops.RandomHorizontalFlip(float(t.p)),
    "InvertImg": lambda walk, t: _ops_color.RandomInvert(float(t.p)),
    "NoOp": lambda walk, t: _ops_color.Identity(),
    "Normalize": Walk.normalize,
    "OneOf": Walk.one_of,
    "Pad": Walk.pad,
    "Posterize": Walk.posterize,
    "RandomCrop": Walk.random_crop,
    "RandomResizedCrop": Walk.random_resized_crop,
    "Resize": Walk.resize,
    "Sequential": Walk.sequential,
    "Solarize": Walk.solarize,
    "ToGray": Walk.gray,
    "ToTensorV2": Walk.to_planes,
    "VerticalFlip": lambda walk, t: _ops.RandomVerticalFlip(float(t.p)),
}
# Steps that move pixels; steps whose op has their chance itself; ops that keep the size of an image.
MOVES = {"CenterCrop", "HorizontalFlip", "Pad", "RandomCrop", "RandomResizedCrop", "Resize", "VerticalFlip"}
CHANCES = {"HorizontalFlip", "InvertImg", "NoOp", "Posterize", "Sequential", "Solarize", "ToGray"}
CHANCES |= {"VerticalFlip"}
KEEP = {"ColorJitter", "GaussianBlur", "Identity", "RandomApply", "RandomChannelPermutation"}
KEEP |= {"RandomChoice", "RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomPosterize", "RandomSolarize"}
KEEP |= {"RandomVerticalFlip", "Compose"}


def is_pipeline(thing: Any) -> bool:
    return type(thing).__module__.split(".")[0] == "albumentations"


def transform(thing: Any) -> tuple[Walk, list[Any], str]:
    """The ops of a pipeline, the steps that have none, and why the first of these has none."""
    composed = type(thing).__name__ == "Compose"
    steps = list(thing.transforms) if composed else [thing]
    walk = Walk()
    if composed and (thing.p != 1 or thing.additional_targets):
        return walk, steps, "Compose: it has p or other targets"
    if composed and thing.processors:
        try:
            walk.followers = Followers(thing.processors)
        except (_Stop, AttributeError, KeyError, TypeError) as error:
            return walk, steps, f"Compose: {error if isinstance(error, _Stop) else 'no op has these parameters'}"
    for i, step in enumerate(steps):
        before = list(walk.to.ops), walk.size, walk.to.sized
        try:
            walk.step(step)
            for why in map(refusal, walk.to.ops):
                _check(not why, why)
        except (_Stop, AttributeError, TypeError, ValueError) as error:
            walk.to.ops, walk.size, walk.to.sized = before
            why = str(error) if isinstance(error, _Stop) else "no op has these arguments"
            first = i
            if walk.normalized:  # Python begins with bytes
                first = next(j for j, one in enumerate(steps) if type(one).__name__ == "Normalize")
                walk.to.ops.pop()
            return walk, steps[first:], f"{type(step).__name__}: {why}"
    if walk.followers is not None:
        at = len(walk.to.ops) - walk.normalized
        walk.to.ops[at:at] = ([] if walk.moved else walk.followers.each) + walk.followers.last
        walk.to.ops[:0] = walk.followers.first
    return walk, [], ""
