# SPDX-License-Identifier: Apache-2.0
"""RandomErasing, the noise that it writes, and policies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

import numpy as np

from . import _stoker
from ._errors import usage
from ._ops import Interpolation, Numbers, Op, Size

Policy = Literal["imagenet", "cifar10", "svhn"] | Enum  # an Enum is torchvision's


class RandomErasing(Op):
    """Overwrites a random rectangle of the finished image with probability p; comes last, before or after Normalize.

    scale            the range of the area, as a share of the image
    ratio            the range of height / width
    value            a number, or one per channel; "random": normal noise for every pixel; "color": for every channel
    count            rectangles per image: a number, or (min, max); the area is divided among them

    >>> RandomErasing(0.25, value="random")
    RandomErasing(p=0.25, value=random)
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Literal["random", "color"] | Numbers = 0,
        inplace: bool = False,
        count: Size = 1,
    ) -> None:
        super().__init__(
            p=(p, 0.5),
            scale=(tuple(scale), (0.02, 0.33)),
            ratio=(tuple(ratio), (0.3, 3.3)),
            value=(value, 0),
            count=(count, 1),
        )


def noise(
    seed: int, shape: int | Sequence[int], kind: str = "normal"
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The random field that an op made from the seed that it drew (`Loader.get` returns it as "seed").

    kind    "normal" for RandomErasing, whose field has the shape (channels, height, width), and for GaussianNoise:
            (height, width, channels). "uniform", in [0, 1), for ElasticTransform: (2, height, width), for x and y.

    >>> noise(7, (3, 2, 2)).shape
    (3, 2, 2)
    >>> bool((noise(7, 9)[:5] == noise(7, 5)).all())
    True
    """
    if kind not in ("normal", "uniform"):
        raise usage(f'noise: kind is {kind!r}; it must be "normal" or "uniform"')
    field = np.empty(shape, np.float32)
    _stoker.noise(field, seed, kind == "uniform")
    return field


class AutoAugment(Op):
    """Applies two augmentations of a learned policy: "imagenet" (default), "cifar10" or "svhn".

    interpolation    "nearest" (default), "bilinear" or "bicubic", for rotations and shears
    fill             the colour outside of the image: one number or three

    >>> AutoAugment("cifar10")
    AutoAugment(policy=cifar10)
    """

    def __init__(
        self, policy: Policy = "imagenet", interpolation: Interpolation = "nearest", fill: Size | None = None
    ) -> None:
        super().__init__(policy=(policy, "imagenet"), interpolation=(interpolation, "nearest"), fill=(fill or 0, 0))


class RandAugment(Op):
    """Applies `num_ops` random augmentations of one magnitude; interpolation and fill: as in AutoAugment.

    >>> RandAugment(magnitude=5)
    RandAugment(magnitude=5)
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Interpolation = "nearest",
        fill: Size | None = None,
    ) -> None:
        super().__init__(
            num_ops=(num_ops, 2),
            magnitude=(magnitude, 9),
            num_magnitude_bins=(num_magnitude_bins, 31),
            interpolation=(interpolation, "nearest"),
            fill=(fill or 0, 0),
        )


class TrivialAugmentWide(Op):
    """Applies one random augmentation of a random magnitude; interpolation and fill: as in AutoAugment.

    >>> TrivialAugmentWide()
    TrivialAugmentWide
    """

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: Interpolation = "nearest", fill: Size | None = None
    ) -> None:
        super().__init__(
            num_magnitude_bins=(num_magnitude_bins, 31), interpolation=(interpolation, "nearest"), fill=(fill or 0, 0)
        )


class AugMix(Op):
    """Mixes the image with chains of random augmentations of it.

    severity         of the augmentations, 1 to 10
    mixture_width    the number of chains, up to 8
    chain_depth      augmentations in a chain, up to 8; -1: from 1 to 3, at random
    alpha            of the distribution of the weights
    all_ops          also brightness, contrast, colour and sharpness
    interpolation    "nearest", "bilinear" (default) or "bicubic"; fill: as in AutoAugment

    >>> AugMix(severity=5)
    AugMix(severity=5)
    """

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Interpolation = "bilinear",
        fill: Size | None = None,
    ) -> None:
        super().__init__(
            severity=(severity, 3),
            mixture_width=(mixture_width, 3),
            chain_depth=(chain_depth, -1),
            alpha=(alpha, 1.0),
            all_ops=(all_ops, True),
            interpolation=(interpolation, "bilinear"),
            fill=(fill or 0, 0),
        )


class TimmAugment(Op):
    """Applies a policy of timm, by its string: "rand-m9-mstd0.5-inc1", "original-mstd0.5", "3a", "augmix-m5-w4-d2".

    interpolation    "random" (default: bilinear or bicubic), "nearest", "bilinear" or "bicubic"
    fill             the colour outside of the image: one number or three
    translate_pct    the largest shift, as a share of the size

    >>> TimmAugment("rand-m9-mstd0.5-inc1")
    TimmAugment("rand-m9-mstd0.5-inc1")
    """

    def __init__(
        self,
        policy: str,
        interpolation: Interpolation | Literal["random"] = "random",
        fill: Size = 128,
        translate_pct: float = 0.45,
    ) -> None:
        super().__init__(
            [f'"{policy}"'],
            interpolation=(interpolation, "random"),
            fill=(fill, 128),
            translate_pct=(translate_pct, 0.45),
        )
