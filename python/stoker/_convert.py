# SPDX-License-Identifier: Apache-2.0
"""Converts transforms of torchvision, and basic ones of timm, to ops, by reading their attributes.

Neither library is imported. A transform is followed step by step, with the form of the image between the steps: a
Pillow image, a tensor of uint8, or a tensor of floats. A step becomes an op if the result is the same. A step that has
no such op runs in Python, on each image; the ops that follow it run in C again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

from . import (
    _convert_boxes,
    _convert_crops,
    _convert_object,
    _convert_timm,
    _ops,
    _ops_color,
    _ops_geometry,
    _ops_recipe,
)
from ._converted import BYTES, FLOATS, PIL, Converted, Native, Rest, is_known, name_of, refusal
from ._errors import usage

FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")


def _is_v2(transform: Any) -> bool:
    return ".v2" in type(transform).__module__


def _is_timm(transform: Any) -> bool:
    return type(transform).__module__.startswith("timm.")


# ---------------------------------------------------------------- step by step


TENSOR = "torch rounds differently on tensors; before ToImage or ToTensor it would run in C"
FACTORS = "with these factors, the result on a tensor would differ by more than one level"
FLOAT = "its input has floats; before ToTensor or ToDtype it would run in C"
LATER = "it follows a step that ends the ops: RandomErasing, or Normalize"
FILTER = "no op has this interpolation with the same result"
FILL = "no op has this fill"
CROPS = "it returns several images, and what follows it runs in Python"
SAME = "the transforms inside it change the type or the channels"
OTHERS = {
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

    def __init__(self, form: str = PIL, exact: bool = False, crops: bool = False) -> None:
        """exact: uint8 tensors are resized by torch, whose rounding differs by 1. crops: it may have FiveCrop."""
        self.to, self.crops = Converted(), crops
        self.before = self.form = form
        self.grey = self.normalized = self.erased = False
        self.exact, self.bytes_at = exact, 0  # bytes_at: of the ops, the first one on a tensor
        self.image = form != PIL  # whether a tensor is one of torchvision.tv_tensors
        self.steps: list[Any] = []

    def step(self, step: Any) -> str:
        """Adds the ops of a step. If there are none, changes nothing, and returns why."""
        name = type(step).__name__
        if not is_known(step) and not isinstance(step, _convert_crops.Stacked):
            if not (script := _convert_object.of_a_script(step)):
                return "a function of your own"
            name = f"{script} of a script"
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
        if why := next(filter(None, map(refusal, self.to.ops)), ""):
            self.__dict__.update(before)
            return why
        self.steps.append(step)
        return ""

    def _pillow(self) -> None:
        _check(self.form == PIL, TENSOR if self.form == BYTES else FLOAT)

    def _near(self) -> None:
        """On a tensor, the op's result is that of Pillow, which may differ by one level from torch's."""
        _check(self.form != FLOATS, FLOAT)
        _check(self.form == PIL or not self.exact, TENSOR)

    def _tensor(self) -> None:
        """On a tensor, the op computes as torch does, within one level: the engine must know that it is one."""
        self._near()
        if self.form == BYTES and not any(type(op).__name__ == "ToImage" for op in self.to.ops):
            self.to.ops.insert(self.bytes_at, _ops.ToImage())

    def _whole(self) -> None:
        """The values must be bytes."""
        _check(self.form != FLOATS, FLOAT)

    def _add(self, op: _ops.Op, sizes: bool = False) -> None:
        only_types = type(op).__name__ in ("Normalize", "ToDtype", "ToTensor")
        _check(only_types or not self.erased, LATER)
        _check(only_types or not self.to.crops, CROPS)
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

    def _kind(self) -> str:
        return PIL if self.form == PIL else "Image" if self.image else "Tensor"

    def _color_of(self, t: Any) -> Any:
        return _convert_boxes.fill_of(t.fill, self._kind())

    def _mask_fill(self, t: Any) -> int | None:
        return _convert_boxes.mask_fill_of(t.fill, self._kind())

    def _fill(self, t: Any) -> Any:
        given = self._color_of(t)
        numbers = list(given) if isinstance(given, (list, tuple)) else [0 if given is None else given]
        fill = _one_or_more([int(v) for v in numbers])
        _check(all(v == int(v) for v in numbers), FILL)
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

    def several_crops(self, t: Any) -> None:
        _check(self.crops, CROPS)
        _check(not self.normalized and not self.to.crops, LATER)
        size = _one_or_more(_ints(t.size))
        ten = type(t).__name__ == "TenCrop"
        self._add(
            _ops_geometry.TenCrop(size, bool(t.vertical_flip)) if ten else _ops_geometry.FiveCrop(size), sizes=True
        )
        self.to.crops = "apart"

    def stacked_crops(self, t: Any) -> None:
        self._pillow()
        self.several_crops(t.crops)
        self.to.crops = "stacked"
        for step in t.each:
            STEPS[type(step).__name__](self, step)

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
                self._mask_fill(t) if padding or t.pad_if_needed else None,
            ),
            sizes=True,
        )

    def random_resized_crop(self, t: Any) -> None:
        scale, ratio = [float(v) for v in t.scale], [float(v) for v in t.ratio]
        size = _one_or_more(_ints(t.size))
        if isinstance(t.interpolation, (list, tuple)):  # timm's "random": one of them for every image
            self._pillow()
            words = [_word(one) for one in t.interpolation]
            _check(bool(words) and all(word in FILTERS for word in words), FILTER)
            crops = [_ops.RandomResizedCrop(size, scale, ratio, word) for word in words]
            self._add(_ops_color.RandomChoice(crops), sizes=True)
            return
        self._add(_ops.RandomResizedCrop(size, scale, ratio, **self._filter(t)), sizes=True)

    def pad(self, t: Any) -> None:
        mask_fill = self._mask_fill(t)
        self._add(_ops.Pad(_one_or_more(_ints(t.padding)), self._fill(t), t.padding_mode, mask_fill))

    def pad_if_smaller(self, t: Any) -> None:
        """Of torchvision's reference scripts for segmentation, in whose file v2_extras.py it is."""
        self._whole()
        fill = self._color_of(t)
        _check(fill is None or fill == int(fill), FILL)
        self._add(_ops.PadIfSmaller(int(t.size), int(fill or 0), self._mask_fill(t)))

    def horizontal_flip(self, t: Any) -> None:
        self._add(_ops.RandomHorizontalFlip(float(t.p)))

    def vertical_flip(self, t: Any) -> None:
        self._add(_ops.RandomVerticalFlip(float(t.p)))

    def grayscale(self, t: Any) -> None:
        self._near()
        self._add(_ops.Grayscale(t.num_output_channels))
        self.grey = t.num_output_channels == 1

    def rgb(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RGB())
        self.grey = False

    def _factors(self, *ranges: Any) -> None:
        """Torch's grey differs by one level, and so does the result, if it is mixed with a factor of up to 2."""
        highest = max((max(r) if isinstance(r, (list, tuple)) else 1 + r for r in ranges if r is not None), default=0)
        _check(self.form == PIL or highest <= 2, FACTORS)

    def color_jitter(self, t: Any) -> None:
        self._tensor()
        self._factors(t.contrast, t.saturation)
        self._add(_ops_color.ColorJitter(t.brightness, t.contrast, t.saturation, t.hue))

    def photometric_distort(self, t: Any) -> None:
        self._tensor()
        self._factors(t.contrast, t.saturation)
        self._add(_ops_color.RandomPhotometricDistort(t.brightness, t.contrast, t.saturation, t.hue, t.p))

    def permute(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomChannelPermutation())

    def random_gray(self, t: Any) -> None:
        self._near()
        self._add(_ops_color.RandomGrayscale(t.p))

    def sharpness(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomAdjustSharpness(t.sharpness_factor, t.p))

    def autocontrast(self, t: Any) -> None:
        self._near()
        self._add(_ops_color.RandomAutocontrast(t.p))

    def equalize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomEqualize(t.p))

    def posterize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomPosterize(t.bits, t.p))

    def solarize(self, t: Any) -> None:
        self._whole()
        self._add(_ops_color.RandomSolarize(min(max(t.threshold, 0), 256), t.p))

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
        """Interpolation and fill of a policy."""
        word = _word(t.interpolation)
        self._tensor()
        _check(word in ("nearest", "nearest-exact", "bilinear", "bicubic"), FILTER)
        given = self._color_of(t)
        fill = _one_or_more([int(v) for v in _ints([0] if given is None else given)])
        _check(isinstance(fill, int) or (len(fill) == 3 and not self.grey))
        if self.form == BYTES:  # torch blends a fill in at the border, even if it is 0
            _check(word in ("nearest", "bilinear"), FILTER)
            _check(given is None or fill != 0, FILL)
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
        """Interpolation and fill of a map. Pillow has three filters, torch two."""
        word = _word(t.interpolation)
        word = "nearest" if word == "nearest-exact" else word
        self._tensor()
        _check(word in ("nearest", "bilinear", "bicubic")[: 3 if self.form == PIL else 2], FILTER)
        _check(self.form == PIL or self._color_of(t) is not None, FILL)
        return {"interpolation": word, "fill": self._color(t), "mask_fill": self._mask_fill(t)}

    def _color(self, t: Any) -> Any:
        fill = self._color_of(t)
        fill = fill if isinstance(fill, (list, tuple)) else [0 if fill is None else fill]
        _check(len(fill) in (1, 1 if self.grey else 3), FILL)
        whole = [int(v) for v in fill]  # as torchvision does
        return whole[0] if len(whole) == 1 else whole

    def rotation(self, t: Any) -> None:
        center = None if t.center is None else [float(v) for v in t.center]
        _check(self.form == PIL or not t.expand, TENSOR)
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
        self._add(_ops_geometry.ElasticTransform(t.alpha, t.sigma, word, self._color(t), self._mask_fill(t)))

    def blur(self, t: Any) -> None:
        self._whole()
        self._add(_ops_geometry.GaussianBlur(t.kernel_size, tuple(t.sigma)))

    def pillow_blur(self, t: Any) -> None:
        self._pillow()
        radius = float(t.radius_min), float(t.radius_max)
        self._add(_ops_geometry.PillowBlur(radius, min(max(float(t.prob), 0.0), 1.0)))

    def solarization(self, t: Any) -> None:
        self._pillow()
        self._add(_ops_color.RandomSolarize(128, min(max(float(t.p), 0.0), 1.0)))

    def noise(self, t: Any) -> None:
        _check(self.form == BYTES, "torchvision's GaussianNoise takes tensors only; on uint8 it would run in C")
        self._add(_ops_geometry.GaussianNoise(t.mean, t.sigma, bool(t.clip)))

    def jpeg(self, t: Any) -> None:
        self._whole()
        self._add(_ops_geometry.JPEG(t.quality))

    def zoom_out(self, t: Any) -> None:
        self._whole()
        mask_fill = self._mask_fill(t)
        self._add(_ops_geometry.RandomZoomOut(self._color(t), t.side_range, t.p, mask_fill))
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
                script = "" if is_known(step) else _convert_object.of_a_script(step)
                _check(is_known(step) or bool(script), f"{name_of(step)} inside it is a function of your own")
                name = f"{script} of a script" if script else name
                _check(name in STEPS, f"{name} inside it: {OTHERS.get(name, 'no op has this name')}")
                STEPS[name](inner, step)
        _check((inner.form, inner.grey, inner.normalized) == (self.form, self.grey, False) and not inner.erased, SAME)
        ops = [op for op in inner.to.ops if type(op).__name__ != "ToImage"]
        if len(ops) != len(inner.to.ops):
            self._tensor()
        return ops

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
        self.form, self.to.dtype, self.bytes_at = BYTES, "uint8", len(self.to.ops)
        self.image = type(t).__name__ == "ToImage"

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
            dtype = kinds.get("Image" if self.image else "Tensor", kinds.get("others"))
            if dtype is None:
                return
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
    "FiveCrop": _Walk.several_crops,
    "GaussianBlur": _Walk.blur,
    "GaussianBlur of a script": _Walk.pillow_blur,
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
    "PadIfSmaller": _Walk.pad_if_smaller,
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
    "Solarization of a script": _Walk.solarization,
    "Stacked": _Walk.stacked_crops,
    "TenCrop": _Walk.several_crops,
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
    elif (inner := _passed(transform)) is not None and inner.kind is None:
        yield from flat(list(inner.views[0]))
    else:
        yield transform


def _is_transform(thing: Any) -> bool:
    composed = type(thing).__name__ == "Sequential" and type(thing).__module__.startswith("torch.")
    return is_known(thing) or composed


def _passed(thing: Any) -> _convert_object.Passed | None:
    """What an object of the user's own class passes its image on to."""
    if _is_transform(thing) or type(thing) is list:
        return None
    return _convert_object.passed(thing, _is_transform)


def views(thing: Any) -> tuple[list[list[Any]], type] | None:
    """The transforms of each view that an object returns, and whether it returns a list or a tuple; None: it returns
    one image, or is not one that Stoker can follow.

    >>> views(len) is None
    True
    """
    found = _passed(thing)
    return None if found is None or found.kind is None else ([list(v) for v in found.views], found.kind)


def transform(thing: Any) -> Converted | None:
    """Converts a transform of torchvision or timm; None for anything else.

    >>> transform(len) is None
    True
    """
    passed = _passed(thing)
    known = all(is_known(t) for t in thing) if isinstance(thing, list) else _is_transform(thing)
    if not known and (passed is None or passed.kind is not None):
        return None
    steps = _convert_crops.joined(list(flat(thing)))
    converted = _walked(steps, True)
    return _walked(steps, False) if converted.crops and converted.rest is not None else converted


def _walked(steps: list[Any], crops: bool) -> Converted:
    """crops: FiveCrop and TenCrop become ops."""
    first = walk = _Walk(crops=crops)
    parts: list[Any] = []  # after the first walk
    why: list[str] = []
    for step in steps:
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
        raise usage(f"convert_transform() takes a transform of torchvision, but this is a {type(thing).__name__}")
    rest = converted.rest
    return converted.ops + ([_ops.Lambda(rest)] if rest else [])
