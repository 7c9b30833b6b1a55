# SPDX-License-Identifier: Apache-2.0
"""Converts transforms of torchvision, and basic ones of timm, to ops, by reading their attributes.

Neither library is imported. A transform is followed step by step, with the form of the image between the steps: a
Pillow image, a tensor of uint8, or a tensor of floats. A step becomes an op if the result is the same. A step that has
no such op runs in Python, on each image; the ops that follow it run in C again.
"""

from __future__ import annotations

import copy
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _convert_boxes, _convert_timm, _ops, _ops_color, _ops_geometry, _ops_recipe, _stoker
from ._errors import usage
from ._types import DTYPE_CODES, LAYOUTS

LIBRARIES = ("torchvision", "timm")
FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
PIL, BYTES, FLOATS = "a Pillow image", "a tensor of uint8", "a tensor of floats"
# Transforms without randomness, which threads of one process may run.
STEADY = {"CenterCrop", "ConvertImageDtype", "Grayscale", "MaybeToTensor", "Normalize", "Pad", "PILToTensor", "Resize"}
STEADY |= {"Identity", "MaybePILToTensor", "RGB", "ToDtype", "ToImage", "ToPILImage", "ToPureTensor", "ToTensor"}


class Native:
    """Ops that follow a function in Python. They run in C if the function returns what it was given: an image."""

    def __init__(self, to: Converted, transforms: list[Any], before: str, after: str) -> None:
        self.text = " | ".join(str(op) for op in to.ops)
        self.dtype = to.dtype or "uint8"
        self.random, self.transforms, self.before, self.after = to.random, transforms, before, after
        self._ops: _stoker.Ops | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ops": None}

    def _pixels(self, image: Any) -> Any:
        """Rows of RGB pixels; None for anything else."""
        if self.before == PIL:
            return np.asarray(image) if getattr(image, "mode", "") == "RGB" else None
        tensor = hasattr(image, "permute") and str(image.dtype) == "torch.uint8" and image.device.type == "cpu"
        if not tensor or image.dim() != 3 or image.shape[0] != 3:
            return None
        return np.ascontiguousarray(image.permute(1, 2, 0).numpy())

    def __call__(self, image: Any) -> Any:
        pixels = self._pixels(image)
        if pixels is None or not pixels.size:
            for transform in self.transforms:
                image = transform(image)
            return image
        if self._ops is None:
            self._ops = _stoker.Ops(
                self.text, DTYPE_CODES[self.dtype], LAYOUTS["NHWC" if self.after == PIL else "NCHW"]
            )
        height, width = pixels.shape[:2]
        seed = random.getrandbits(64) if self.random else 0
        made = np.empty(self._ops.shape(height, width, seed), self.dtype)
        self._ops.run(pixels, height, width, seed, made)
        return as_form(made, self.after)


def as_form(pixels: np.ndarray[Any, Any], form: str) -> Any:
    """An array as the next transform expects it: rows of pixels as a Pillow image, planes as a tensor."""
    if form != PIL:
        return sys.modules["torch"].from_numpy(pixels)
    from PIL import Image

    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


class Rest:
    """What follows the first transform that Stoker has no op for: functions in Python, and ops between them."""

    def __init__(self, parts: list[Any], form: str, why: Sequence[str] = ()) -> None:
        """why: the functions, each with the reason why it is no op."""
        self.parts, self.form, self.why = parts, form, list(dict.fromkeys(why))
        self.functions = [part for part in parts if not isinstance(part, Native)]
        self.__name__ = ", ".join(name_of(f) for f in self.functions)

    @property
    def text(self) -> str:
        """The ops that run in C."""
        return " | ".join(part.text for part in self.parts if isinstance(part, Native) and part.text)

    @property
    def transforms(self) -> list[Any]:
        """As they were given."""
        return [t for part in self.parts for t in (part.transforms if isinstance(part, Native) else [part])]

    @property
    def steady(self) -> bool:
        return all(not p.random if isinstance(p, Native) else is_steady(p) for p in self.parts)

    def __call__(self, image: Any) -> Any:
        if self.form == PIL or isinstance(image, np.ndarray):
            image = as_form(np.asarray(image), self.form)
        for part in self.parts:
            image = part(image)
        return image


@dataclass
class Converted:
    """A transform: ops first, then the rest, which runs in Python."""

    ops: list[_ops.Op] = field(default_factory=list)
    dtype: str | None = None  # of the ops' result; None: the loader chooses
    sized: bool = False  # whether all images have one size after the ops
    rest: Rest | None = None
    steps: list[Any] = field(default_factory=list)  # that became the ops
    form: str = PIL  # of the ops' result

    @property
    def random(self) -> bool:
        """Whether the transform is random.

        >>> Converted([_ops.CenterCrop(8)]).random, Converted([_ops.RandomCrop(8)]).random
        (False, True)
        """
        drawn = any(type(op).__name__ not in STEADY for op in self.ops)
        return drawn or (self.rest is not None and not self.rest.steady)

    def parts(self) -> list[Any]:
        """All of it as functions of a Pillow image."""
        first = Native(self, self.steps, PIL, self.rest.form if self.rest else self.form)
        return ([first] if self.steps else []) + (self.rest.parts if self.rest else [])


def name_of(thing: Any) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))


def is_known(thing: Any) -> bool:
    return type(thing).__module__.split(".")[0] in LIBRARIES


def is_steady(transform: Any) -> bool:
    return is_known(transform) and type(transform).__name__ in STEADY


def _is_v2(transform: Any) -> bool:
    return ".v2" in type(transform).__module__


def _is_timm(transform: Any) -> bool:
    return type(transform).__module__.startswith("timm.")


# ---------------------------------------------------------------- step by step


TENSOR = "torch rounds differently on tensors; before ToImage or ToTensor it would run in C"
FLOAT = "its input has floats; before ToTensor or ToDtype it would run in C"
LATER = "it follows a step that ends the ops: RandomErasing, or Normalize"
FILTER = "no op has this interpolation with the same result"
FILL = "no op has this fill"
SAME = "the transforms inside it change the type or the channels"
OTHERS = {
    "FiveCrop": "it returns several images; the op FiveCrop returns one array with a further dimension",
    "TenCrop": "it returns several images; the op TenCrop returns one array with a further dimension",
    "Lambda": "a function of your own",
    "LinearTransformation": "no op multiplies by a matrix",
    "SetClampingMode": "the ops that clamp boxes have only one mode",
    "ToPILImage": "no op converts to Pillow images",
    "UniformTemporalSubsample": "no op takes videos",
}


class _Stop(Exception):
    """Stoker has no op with the same result; says why."""


def _check(good: bool, why: str = "no op has these arguments") -> None:
    if not good:
        raise _Stop(why)


def _ints(value: Any) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    _check(bool(values) and all(isinstance(v, int) and not isinstance(v, bool) for v in values))
    return values


def _word(interpolation: Any) -> Any:
    """The name of an InterpolationMode, which may also be Pillow's number."""
    numbers = dict(enumerate(("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")))
    return str(numbers.get(interpolation, getattr(interpolation, "value", interpolation)))


def _one_or_more(values: list[int]) -> int | list[int]:
    return values[0] if len(values) == 1 else values


class _Walk:
    """Follows a transform; `form` is the form of the image before the next step."""

    def __init__(self, form: str = PIL, exact: bool = False) -> None:
        """exact: uint8 tensors are resized by torch, whose rounding differs by 1."""
        self.to = Converted()
        self.before = self.form = form
        self.grey = self.normalized = self.erased = False
        self.exact = exact
        self.steps: list[Any] = []

    def step(self, step: Any) -> str:
        """Adds the ops of a step. If there are none, changes nothing, and returns why."""
        name = type(step).__name__
        if not is_known(step):
            return "a function of your own"
        if name not in STEPS:
            return OTHERS.get(name, "no op has this name")
        if self.before == FLOATS:  # the engine begins with bytes
            return FLOAT
        before = copy.copy(self.__dict__) | {"to": copy.copy(self.to)}
        before["to"].ops = list(self.to.ops)
        try:
            STEPS[name](self, step)
        except (_Stop, AttributeError, TypeError, LookupError) as error:
            self.__dict__.update(before)
            return str(error) if isinstance(error, _Stop) else "no op has these arguments"
        self.steps.append(step)
        return ""

    def _pillow(self) -> None:
        _check(self.form == PIL, TENSOR if self.form == BYTES else FLOAT)

    def _whole(self) -> None:
        """The values must be bytes."""
        _check(self.form != FLOATS, FLOAT)

    def _add(self, op: _ops.Op, sizes: bool = False) -> None:
        _check(not self.erased or type(op).__name__ in ("Normalize", "ToDtype", "ToTensor"), LATER)
        self.to.ops.insert(
            len(self.to.ops) - self.normalized, op
        )  # ops that only move pixels may come before Normalize
        self.to.sized |= sizes

    def _filter(self, t: Any) -> dict[str, Any]:
        """Interpolation and antialias. Pillow always smooths; torch then rounds uint8 differently, by 1."""
        word = _word(t.interpolation)
        if self.form == PIL:
            word = "nearest" if word == "nearest-exact" else word
            _check(word in FILTERS, FILTER)
            return {"interpolation": word}
        _check(self.form == BYTES, FLOAT)
        _check(not self.exact, TENSOR)
        _check(word == "bilinear" or (word == "bicubic" and not t.antialias), TENSOR)
        return {"interpolation": word, "antialias": bool(t.antialias)}

    def _fill(self, t: Any) -> Any:
        fill = _one_or_more(_ints(0 if t.fill is None else t.fill))
        _check(self.form != FLOATS or (fill == 0 and t.padding_mode == "constant" and not self.normalized), FLOAT)
        _check(isinstance(fill, int) or (len(fill) == 3 and not self.grey), FILL)
        return fill

    def resize(self, t: Any) -> None:
        size = _one_or_more(_ints(t.size))
        max_size = getattr(t, "max_size", None)
        self._add(_ops.Resize(size, max_size=max_size, **self._filter(t)), not isinstance(size, int))

    def center_crop(self, t: Any) -> None:
        _check(not self.normalized, FLOAT)  # where it pads, it pads with 0
        self._add(_ops.CenterCrop(_one_or_more(_ints(t.size))), sizes=True)

    def random_crop(self, t: Any) -> None:
        padding = None
        if t.padding:
            padding = _ints(t.padding)
            if _is_v2(t) and len(padding) == 4:  # stored as left, right, top, bottom
                padding = [padding[i] for i in (0, 2, 1, 3)]
        _check(_is_v2(t) or not (padding and t.pad_if_needed), "transforms v1 pads twice; v2 pads once, as the op does")
        fill = self._fill(t) if padding or t.pad_if_needed else 0
        self._add(
            _ops.RandomCrop(
                _one_or_more(_ints(t.size)),
                None if padding is None else _one_or_more(padding),
                bool(t.pad_if_needed),
                fill,
                t.padding_mode if padding or t.pad_if_needed else "constant",
            ),
            sizes=True,
        )

    def random_resized_crop(self, t: Any) -> None:
        scale, ratio = [float(v) for v in t.scale], [float(v) for v in t.ratio]
        self._add(_ops.RandomResizedCrop(_one_or_more(_ints(t.size)), scale, ratio, **self._filter(t)), sizes=True)

    def pad(self, t: Any) -> None:
        self._add(_ops.Pad(_one_or_more(_ints(t.padding)), self._fill(t), t.padding_mode))

    def horizontal_flip(self, t: Any) -> None:
        self._add(_ops.RandomHorizontalFlip(float(t.p)))

    def vertical_flip(self, t: Any) -> None:
        self._add(_ops.RandomVerticalFlip(float(t.p)))

    def grayscale(self, t: Any) -> None:
        self._pillow()
        self._add(_ops.Grayscale(t.num_output_channels))
        self.grey = t.num_output_channels == 1

    def rgb(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RGB())
        self.grey = False

    def color_jitter(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.ColorJitter(t.brightness, t.contrast, t.saturation, t.hue))

    def photometric_distort(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.RandomPhotometricDistort(t.brightness, t.contrast, t.saturation, t.hue, t.p))

    def permute(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomChannelPermutation())

    def random_gray(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.RandomGrayscale(t.p))

    def sharpness(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.RandomAdjustSharpness(t.sharpness_factor, t.p))

    def autocontrast(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.RandomAutocontrast(t.p))

    def equalize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomEqualize(t.p))

    def posterize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomPosterize(t.bits, t.p))

    def solarize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomSolarize(t.threshold, t.p))

    def invert(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomInvert(t.p))

    def erasing(self, t: Any) -> None:
        if _is_timm(t):
            value: Any = {"rand": "color", "pixel": "random"}.get(t.mode, 0)
            low, high = (math.exp(v) for v in t.log_aspect_ratio)
            op = _ops_recipe.RandomErasing(
                t.probability, (t.min_area, t.max_area), (low, high), value, count=(t.min_count, t.max_count)
            )
        else:
            value = "random" if t.value is None else t.value
            if isinstance(value, (list, tuple)):
                value = value[0] if len(value) == 1 else value
            op = _ops_recipe.RandomErasing(t.p, t.scale, t.ratio, value)
        _check(self.form == FLOATS or (self.form == BYTES and value == 0), "its value would be scaled with the bytes")
        self.to.ops.append(op)
        self.erased = True

    def _policy(self, t: Any) -> dict[str, Any]:
        """Interpolation and fill of a policy, whose augmentations are Pillow's."""
        word = _word(t.interpolation)
        self._pillow()
        _check(word in ("nearest", "nearest-exact", "bilinear", "bicubic"), FILTER)
        fill = _one_or_more([int(v) for v in _ints([0] if t.fill is None else t.fill)])
        _check(isinstance(fill, int) or (len(fill) == 3 and not self.grey))
        return {"interpolation": word, "fill": fill}

    def timm_augment(self, t: Any) -> None:
        """A policy of timm, whose string is found from its augmentations."""
        self._pillow()
        _check(not self.grey, "timm's augmentations need three channels")
        self._add(_ops_recipe.TimmAugment(**_convert_timm.policy(t)))

    def auto_augment(self, t: Any) -> None:
        if _is_timm(t):
            return self.timm_augment(t)
        self._add(_ops_recipe.AutoAugment(t.policy.value, **self._policy(t)))

    def rand_augment(self, t: Any) -> None:
        if _is_timm(t):
            return self.timm_augment(t)
        self._add(_ops_recipe.RandAugment(t.num_ops, t.magnitude, t.num_magnitude_bins, **self._policy(t)))

    def augmix(self, t: Any) -> None:
        op = _ops_recipe.AugMix(
            t.severity, t.mixture_width, max(t.chain_depth, -1), t.alpha, bool(t.all_ops), **self._policy(t)
        )
        _check(t.mixture_width <= 8 and t.chain_depth <= 8)
        self._add(op)

    def trivial_augment(self, t: Any) -> None:
        self._add(_ops_recipe.TrivialAugmentWide(t.num_magnitude_bins, **self._policy(t)))

    def _map(self, t: Any) -> dict[str, Any]:
        """Interpolation and fill of a map. Pillow has three filters; torch samples tensors differently."""
        word = _word(t.interpolation)
        word = "nearest" if word == "nearest-exact" else word
        self._pillow()
        _check(word in ("nearest", "bilinear", "bicubic"), FILTER)
        return {"interpolation": word, "fill": self._color(t)}

    def _color(self, t: Any) -> Any:
        fill = _convert_boxes.fill_of(t.fill)
        fill = fill if isinstance(fill, (list, tuple)) else [0 if fill is None else fill]
        _check(len(fill) in (1, 1 if self.grey else 3), FILL)
        whole = [int(v) for v in fill]  # as torchvision does
        return whole[0] if len(whole) == 1 else whole

    def rotation(self, t: Any) -> None:
        center = None if t.center is None else [float(v) for v in t.center]
        self._add(_ops_geometry.RandomRotation(t.degrees, expand=bool(t.expand), center=center, **self._map(t)))
        self.to.sized &= not t.expand

    def affine(self, t: Any) -> None:
        center = None if t.center is None else [float(v) for v in t.center]
        self._add(_ops_geometry.RandomAffine(t.degrees, t.translate, t.scale, t.shear, center=center, **self._map(t)))

    def perspective(self, t: Any) -> None:
        self._add(_ops_geometry.RandomPerspective(t.distortion_scale, t.p, **self._map(t)))

    def elastic(self, t: Any) -> None:
        word = _word(t.interpolation)
        self._whole()
        _check(word in ("nearest", "bilinear", "bicubic"), FILTER)
        self._add(_ops_geometry.ElasticTransform(t.alpha, t.sigma, word, self._color(t)))

    def blur(self, t: Any) -> None:
        self._whole()
        self._add(_ops_geometry.GaussianBlur(t.kernel_size, tuple(t.sigma)))

    def noise(self, t: Any) -> None:
        _check(self.form == BYTES, "torchvision's GaussianNoise takes tensors only; on uint8 it would run in C")
        self._add(_ops_geometry.GaussianNoise(t.mean, t.sigma, bool(t.clip)))

    def jpeg(self, t: Any) -> None:
        self._whole()
        self._add(_ops_geometry.JPEG(t.quality))

    def zoom_out(self, t: Any) -> None:
        self._whole()
        self._add(_ops_geometry.RandomZoomOut(self._color(t), t.side_range, t.p))
        self.to.sized &= t.p == 0

    def scale_jitter(self, t: Any) -> None:
        self._add(_ops_geometry.ScaleJitter(_ints(t.target_size), t.scale_range, **self._filter(t)))
        self.to.sized = False

    def shortest_size(self, t: Any) -> None:
        sizes = _one_or_more(_ints(t.min_size))
        self._add(_ops_geometry.RandomShortestSize(sizes, t.max_size, **self._filter(t)))
        self.to.sized = False

    def random_resize(self, t: Any) -> None:
        self._add(_ops_geometry.RandomResize(t.min_size, t.max_size, **self._filter(t)))
        self.to.sized = False

    def _inside(self, transforms: Any) -> list[_ops.Op]:
        """The ops of transforms inside another one. They must all have ops, and leave the form of the image."""
        inner = _Walk(self.form, self.exact)
        inner.grey = self.grey
        _check(not self.erased and not self.normalized, LATER)
        for one in transforms:
            for step in flat(one):
                name = type(step).__name__
                _check(is_known(step), f"{name_of(step)} inside it is a function of your own")
                _check(name in STEPS, f"{name} inside it: {OTHERS.get(name, 'no op has this name')}")
                STEPS[type(step).__name__](inner, step)
        _check((inner.form, inner.grey, inner.normalized) == (self.form, self.grey, False) and not inner.erased, SAME)
        return inner.to.ops

    def _alternatives(self, transforms: Any) -> list[_ops.Op]:
        lists = [self._inside([one]) for one in transforms]
        return [ops[0] if len(ops) == 1 else _ops_color.Compose(ops) if ops else _ops_color.Identity() for ops in lists]

    def random_apply(self, t: Any) -> None:
        self._add(_ops_color.RandomApply(self._inside(t.transforms), float(t.p)))

    def random_choice(self, t: Any) -> None:
        weights = getattr(t, "p", None)
        self._add(_ops_color.RandomChoice(self._alternatives(t.transforms), weights))

    def random_order(self, t: Any) -> None:
        self._add(_ops_color.RandomOrder(self._alternatives(t.transforms)))

    def to_bytes(self, t: Any) -> None:
        self._pillow()
        self.form, self.to.dtype = BYTES, "uint8"

    def to_floats(self, t: Any) -> None:
        self._pillow()
        self._add(_ops.ToTensor())
        self.form, self.to.dtype = FLOATS, "float32"

    def _to_dtype(self, dtype: Any, op: _ops.Op) -> None:
        name = str(dtype).removeprefix("torch.")
        if self.form == BYTES and name == "float32":
            self._add(op)
            self.form, self.to.dtype = FLOATS, "float32"
            return
        _check(name == {BYTES: "uint8", FLOATS: "float32"}.get(self.form))

    def to_dtype(self, t: Any) -> None:
        dtype = t.dtype
        if isinstance(dtype, dict):
            kinds = {getattr(k, "__name__", k): v for k, v in dtype.items()}
            _check("Image" in kinds)
            dtype = kinds["Image"]
        if self.form != PIL:  # it does not change Pillow images
            self._to_dtype(dtype, _ops.ToDtype(dtype, t.scale))

    def convert_image_dtype(self, t: Any) -> None:
        scaled = _ops.ToDtype("float32", scale=True) if _is_v2(t) else _ops.ToTensor()  # v1 divides, v2 multiplies
        self._to_dtype(t.dtype, scaled)

    def normalize(self, t: Any) -> None:
        mean, std = [float(v) for v in t.mean], [float(v) for v in t.std]
        channels = 1 if self.grey else 3
        _check(self.form == FLOATS and not self.normalized and 0 not in std, "it must follow ToTensor or ToDtype, once")
        _check(len(mean) in (1, channels) and len(std) in (1, channels))
        self._add(_ops.Normalize(mean, std))
        self.normalized = True

    def nothing(self, t: Any) -> None:
        _check(self.form != PIL or type(t).__name__ != "ToPureTensor")

    def preset(self, t: Any) -> None:
        """The preset that `Weights.transforms()` returns for classification."""
        word = _word(t.interpolation)
        _check(self.form == PIL and word in FILTERS)
        self._add(_ops.Resize(_one_or_more(_ints(t.resize_size)), interpolation=word))
        self._add(_ops.CenterCrop(_one_or_more(_ints(t.crop_size))), sizes=True)
        self.to_floats(t)
        self.normalize(t)


STEPS: dict[str, Callable[[_Walk, Any], None]] = {
    **_convert_boxes.STEPS,
    "AugMix": _Walk.augmix,
    "AugMixAugment": _Walk.timm_augment,
    "AutoAugment": _Walk.auto_augment,
    "CenterCrop": _Walk.center_crop,
    "ColorJitter": _Walk.color_jitter,
    "ConvertImageDtype": _Walk.convert_image_dtype,
    "ElasticTransform": _Walk.elastic,
    "GaussianBlur": _Walk.blur,
    "GaussianNoise": _Walk.noise,
    "Grayscale": _Walk.grayscale,
    "Identity": _Walk.nothing,
    "ImageClassification": _Walk.preset,
    "MaybePILToTensor": _Walk.to_bytes,
    "JPEG": _Walk.jpeg,
    "MaybeToTensor": _Walk.to_floats,
    "Normalize": _Walk.normalize,
    "PILToTensor": _Walk.to_bytes,
    "Pad": _Walk.pad,
    "RGB": _Walk.rgb,
    "RandAugment": _Walk.rand_augment,
    "RandomAdjustSharpness": _Walk.sharpness,
    "RandomAffine": _Walk.affine,
    "RandomApply": _Walk.random_apply,
    "RandomAutocontrast": _Walk.autocontrast,
    "RandomChannelPermutation": _Walk.permute,
    "RandomChoice": _Walk.random_choice,
    "RandomCrop": _Walk.random_crop,
    "RandomEqualize": _Walk.equalize,
    "RandomErasing": _Walk.erasing,
    "RandomGrayscale": _Walk.random_gray,
    "RandomHorizontalFlip": _Walk.horizontal_flip,
    "RandomInvert": _Walk.invert,
    "RandomOrder": _Walk.random_order,
    "RandomPerspective": _Walk.perspective,
    "RandomPhotometricDistort": _Walk.photometric_distort,
    "RandomPosterize": _Walk.posterize,
    "RandomResize": _Walk.random_resize,
    "RandomResizedCrop": _Walk.random_resized_crop,
    "RandomResizedCropAndInterpolation": _Walk.random_resized_crop,
    "RandomRotation": _Walk.rotation,
    "RandomShortestSize": _Walk.shortest_size,
    "RandomSolarize": _Walk.solarize,
    "RandomVerticalFlip": _Walk.vertical_flip,
    "RandomZoomOut": _Walk.zoom_out,
    "Resize": _Walk.resize,
    "ScaleJitter": _Walk.scale_jitter,
    "ToDtype": _Walk.to_dtype,
    "TrivialAugmentWide": _Walk.trivial_augment,
    "ToImage": _Walk.to_bytes,
    "ToPureTensor": _Walk.nothing,
    "ToTensor": _Walk.to_floats,
}


def flat(transform: Any) -> Iterator[Any]:
    """The steps of a Compose or Sequential, and of those inside it."""
    kind = type(transform)
    if kind is list:
        for one in transform:
            yield from flat(one)
    elif kind.__name__ == "Compose" and is_known(transform):
        for one in transform.transforms:
            yield from flat(one)
    elif kind.__name__ == "Sequential" and kind.__module__.startswith("torch."):
        for one in transform:
            yield from flat(one)
    else:
        yield transform


def transform(thing: Any) -> Converted | None:
    """Converts a transform of torchvision or timm; None for anything else.

    >>> transform(len) is None
    True
    """
    composed = type(thing).__name__ == "Sequential" and type(thing).__module__.startswith("torch.")
    if isinstance(thing, list):
        composed = all(is_known(t) for t in thing)
    if not is_known(thing) and not composed:
        return None
    first = walk = _Walk()
    parts: list[Any] = []  # after the first walk
    why: list[str] = []
    for step in flat(thing):
        if not (reason := walk.step(step)):
            continue
        if walk is not first and walk.steps:
            parts.append(Native(walk.to, walk.steps, walk.before, walk.form))
        parts.append(step)
        why.append(f"{name_of(step)}: {reason}")
        walk = _Walk(walk.form, exact=True)
    if walk is not first and walk.steps:
        parts.append(Native(walk.to, walk.steps, walk.before, walk.form))
    if parts:
        first.to.rest = Rest(parts, first.form, why)
        first.to.dtype = first.to.dtype or "uint8"
    first.to.steps, first.to.form = first.steps, first.form
    return first.to


def convert_transform(thing: Any) -> list[_ops.Op]:
    """The ops that do the same as a torchvision transform. What Stoker lacks is a Lambda at the end.

    Loaders accept torchvision transforms directly; this function shows what they become.

    >>> from torchvision import transforms
    >>> val = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    >>> stoker.convert_transform(val)
    [Resize(256), CenterCrop((224, 224)), ToTensor]
    >>> stoker.convert_transform(len)
    Traceback (most recent call last):
    stoker.UsageError: ...
    """
    converted = transform(thing)
    if converted is None:
        raise usage(f"a {type(thing).__name__} is not a torchvision transform")
    rest = converted.rest
    return converted.ops + ([_ops.Lambda(rest)] if rest else [])
