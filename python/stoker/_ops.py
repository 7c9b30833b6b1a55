# SPDX-License-Identifier: Apache-2.0
"""Ops: small typed objects that print as the text that the engine reads.

Names, arguments, their order and their defaults are those of torchvision.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from typing import Any, Literal

from ._errors import hint, usage
from ._types import DType, dtype_name

Size = int | Sequence[int]
Numbers = float | Sequence[float]
Interpolation = (  # an Enum is torchvision's or Pillow's, an int is Pillow's
    Literal["nearest", "nearest_exact", "box", "bilinear", "hamming", "bicubic", "lanczos"] | Enum | int
)
Preset = Literal["imagenet", "clip", "half"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]


def _plain(value: Any) -> Any:
    """Arrays and tensors as plain numbers; an enum (torchvision's InterpolationMode) as its value."""
    value = getattr(value, "value", value)
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        words = ", ".join(_text(v) for v in value)
        return f"[{words}]" if value and isinstance(value[0], Op) else f"({words})"
    return repr(value)


class Op:
    """Base class of ops, which change an image between the decoder and the batch. `|` joins ops to a pipeline.

    >>> import stoker
    >>> stoker.RandomResizedCrop(224, scale=(0.5, 1)) | stoker.RandomHorizontalFlip()
    'RandomResizedCrop(224, scale=(0.5, 1)) | RandomHorizontalFlip'
    """

    def __init_subclass__(cls) -> None:
        """Makes unknown keywords a UsageError that suggests the nearest one."""
        init, names = cls.__init__, list(inspect.signature(cls.__init__).parameters)[1:]

        @wraps(init)
        def checked(self: Op, *args: Any, **keywords: Any) -> None:
            for name in keywords:
                if name not in names:
                    takes = f"it takes {', '.join(names)}" if init is not Op.__init__ else "it takes none"
                    raise usage(f"{cls.__name__} has no argument {name!r}; {takes}{hint(name, names)}")
            init(self, *args, **keywords)

        cls.__init__ = checked  # type: ignore[method-assign]

    def __init__(self, first: Sequence[Any] = (), **others: tuple[Any, Any]) -> None:
        """first: positional arguments; others: name=(value, default)."""
        words = [_text(v) for v in first]
        words += [f"{name}={_text(value)}" for name, (value, default) in others.items() if _plain(value) != default]
        self._arguments = words

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({', '.join(self._arguments)})" if self._arguments else name

    def __or__(self, other: Op | str) -> str:
        return f"{self} | {other}"

    def __ror__(self, other: str) -> str:
        return f"{other} | {self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Resize(Op):
    """Resizes the shorter side to `size`, or the image to exactly (height, width).

    interpolation    "nearest", "box", "bilinear" (default), "hamming", "bicubic" or "lanczos"
    max_size         an upper limit for the longer side
    antialias        False: do not smooth when shrinking

    >>> Resize(256, interpolation="bicubic")
    Resize(256, interpolation=bicubic)
    """

    def __init__(
        self, size: Size, interpolation: Interpolation = "bilinear", max_size: int | None = None, antialias: bool = True
    ) -> None:
        super().__init__(
            [size],
            interpolation=(interpolation, "bilinear"),
            max_size=(max_size, None),
            antialias=(antialias, True),
        )


class CenterCrop(Op):
    """Crops the centre to `size`, or (height, width). Smaller images are padded with black.

    >>> CenterCrop(224)
    CenterCrop(224)
    """

    def __init__(self, size: Size) -> None:
        super().__init__([size])


class RandomCrop(Op):
    """Crops at a random place to `size`, or (height, width).

    padding          a border that is added first, as in Pad
    pad_if_needed    pad images that are smaller than the crop
    fill             the colour of the border; padding_mode and mask_fill: as in Pad

    >>> RandomCrop(32, padding=4)
    RandomCrop(32, padding=4)
    """

    def __init__(
        self,
        size: Size,
        padding: Size | None = None,
        pad_if_needed: bool = False,
        fill: Size = 0,
        padding_mode: PaddingMode = "constant",
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            [size],
            padding=(padding, None),
            pad_if_needed=(pad_if_needed, False),
            fill=(fill, 0),
            padding_mode=(padding_mode, "constant"),
            mask_fill=(mask_fill, None),
        )


class RandomResizedCrop(Op):
    """Crops a random area with a random aspect ratio and resizes it to `size`, or (height, width).

    scale            the range of the area, as a share of the image
    ratio            the range of width / height
    interpolation    and antialias: as in Resize

    >>> RandomResizedCrop(224)
    RandomResizedCrop(224)
    """

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Interpolation = "bilinear",
        antialias: bool = True,
    ) -> None:
        super().__init__(
            [size],
            scale=(tuple(scale), (0.08, 1.0)),
            ratio=(tuple(ratio), (3 / 4, 4 / 3)),
            interpolation=(interpolation, "bilinear"),
            antialias=(antialias, True),
        )


class Pad(Op):
    """Adds a border.

    padding          pixels: one number, (left and right, top and bottom), or (left, top, right, bottom)
    fill             the colour: one number or three
    padding_mode     "constant" (default), "edge", "reflect" or "symmetric"
    mask_fill        the number in masks; by default `fill` if it is one number, else 0

    >>> Pad(4, padding_mode="reflect")
    Pad(4, padding_mode=reflect)
    """

    def __init__(
        self,
        padding: Size,
        fill: Size = 0,
        padding_mode: PaddingMode = "constant",
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            [padding], fill=(fill, 0), padding_mode=(padding_mode, "constant"), mask_fill=(mask_fill, None)
        )


class PadIfSmaller(Op):
    """Pads at the right and at the bottom to `size`, or (height, width), as torchvision's scripts for segmentation do.

    fill             the colour: one number or three; mask_fill: as in Pad

    >>> PadIfSmaller(480, mask_fill=255)
    PadIfSmaller(480, mask_fill=255)
    """

    def __init__(self, size: Size, fill: Size = 0, mask_fill: int | None = None) -> None:
        super().__init__([size], fill=(fill, 0), mask_fill=(mask_fill, None))


class RandomHorizontalFlip(Op):
    """Mirrors the image left to right with probability p.

    >>> RandomHorizontalFlip()
    RandomHorizontalFlip
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class RandomVerticalFlip(Op):
    """Mirrors the image top to bottom with probability p.

    >>> RandomVerticalFlip(p=0.1)
    RandomVerticalFlip(p=0.1)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class Grayscale(Op):
    """Removes colour; the result has 1 or 3 channels.

    >>> Grayscale(3)
    Grayscale(num_output_channels=3)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=(num_output_channels, 1))


class Normalize(Op):
    """Scales to 0..1, subtracts the mean and divides by the standard deviation, for each channel.

    mean    and std: numbers for each channel, or the name of a preset as the only argument: "imagenet" (default),
            "clip" or "half" (0.5 and 0.5)

    >>> Normalize()
    Normalize
    >>> Normalize("clip")
    Normalize(clip)
    >>> Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    Normalize(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    """

    def __init__(self, mean: Preset | Numbers | None = None, std: Numbers | None = None) -> None:
        if isinstance(mean, str):
            super().__init__([mean])
        else:
            super().__init__(mean=(mean, None), std=(std, None))


class ToTensor(Op):
    """Accepted so that lists of torchvision transforms can be copied; a batch contains tensors anyway.

    >>> ToTensor()
    ToTensor
    """


class ToImage(Op):
    """Accepted like ToTensor.

    >>> ToImage()
    ToImage
    """


class PILToTensor(Op):
    """Accepted like ToTensor, with dtype="uint8".

    >>> PILToTensor()
    PILToTensor
    """


class ToDtype(Op):
    """Accepted if it agrees with the loader's dtype.

    >>> ToDtype("float32", scale=True)
    ToDtype(float32, scale=True)
    """

    def __init__(self, dtype: DType, scale: bool = False) -> None:
        super().__init__([dtype_name(dtype)], scale=(scale, False))


class Lambda(Op):
    """Runs your own function on each finished image, after the other ops.

    A function with an argument `rng` gets a numpy.random.Generator of its own for each sample. For any other function,
    the generators of `random`, NumPy and torch are seeded for each sample. It runs in worker processes, or in the
    thread that asks for batches (see `processes` of Loader).

    >>> import numpy as np, stoker
    >>> def noise(x, rng):
    ...     return x + rng.normal(0, 0.1, x.shape).astype(x.dtype)
    >>> images = np.zeros((4, 8, 8, 3), np.uint8)
    >>> loader = stoker.Loader(images, [stoker.CenterCrop(8), stoker.Lambda(noise)], output="numpy")
    >>> next(iter(loader)).image.shape
    (1, 3, 8, 8)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise usage(f"Lambda takes a function, not {function!r}")
        super().__init__([getattr(function, "__name__", type(function).__name__)])
        self.function = function
