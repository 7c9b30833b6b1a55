# SPDX-License-Identifier: Apache-2.0
"""Ops that rotate, distort, blur and add noise, and ops that resize at random."""

from __future__ import annotations

from collections.abc import Sequence

from ._ops import Interpolation, Numbers, Op, Size

Range = Sequence[float]


class RandomRotation(Op):
    """Rotates by a random angle, counterclockwise.

    degrees          a number x: from -x to x; or (min, max)
    interpolation    "nearest" (default), "bilinear" or "bicubic"
    expand           True: the result contains the whole rotated image, so its size differs
    center           (x, y) in pixels; None: the middle
    fill             the colour outside of the image: one number or three
    mask_fill        the number in masks; by default `fill` if it is one number, else 0

    >>> RandomRotation(30, interpolation="bilinear")
    RandomRotation(30, interpolation=bilinear)
    """

    def __init__(
        self,
        degrees: Numbers,
        interpolation: Interpolation = "nearest",
        expand: bool = False,
        center: Range | None = None,
        fill: Size = 0,
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            [degrees],
            interpolation=(interpolation, "nearest"),
            expand=(expand, False),
            center=(center, None),
            fill=(fill, 0),
            mask_fill=(mask_fill, None),
        )


class RandomAffine(Op):
    """Rotates, moves, scales and shears at random.

    degrees          a number x: from -x to x; or (min, max)
    translate        (horizontal, vertical): the largest shifts, as shares of the size
    scale            (min, max) factor
    shear            degrees: a number, (min, max), or (min x, max x, min y, max y)
    interpolation    fill, center and mask_fill: as in RandomRotation

    >>> RandomAffine(10, translate=(0.1, 0.1))
    RandomAffine(10, translate=(0.1, 0.1))
    """

    def __init__(
        self,
        degrees: Numbers,
        translate: Range | None = None,
        scale: Range | None = None,
        shear: Numbers | None = None,
        interpolation: Interpolation = "nearest",
        fill: Size = 0,
        center: Range | None = None,
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            [degrees],
            translate=(translate, None),
            scale=(scale, None),
            shear=(shear, None),
            interpolation=(interpolation, "nearest"),
            fill=(fill, 0),
            center=(center, None),
            mask_fill=(mask_fill, None),
        )


class RandomPerspective(Op):
    """Moves the corners of the image inwards at random, with probability p.

    distortion_scale how far, from 0 to 1; with 1, by up to half of the size
    interpolation    "nearest", "bilinear" (default) or "bicubic"
    fill             the colour outside of the image
    mask_fill        as in RandomRotation

    >>> RandomPerspective(0.3)
    RandomPerspective(distortion_scale=0.3)
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Interpolation = "bilinear",
        fill: Size = 0,
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            distortion_scale=(distortion_scale, 0.5),
            p=(p, 0.5),
            interpolation=(interpolation, "bilinear"),
            fill=(fill, 0),
            mask_fill=(mask_fill, None),
        )


class ElasticTransform(Op):
    """Moves pixels along a smooth random field.

    alpha            how far: one number or (x, y)
    sigma            how smooth: one number or (x, y)
    interpolation    "nearest", "bilinear" (default) or "bicubic"
    fill             the colour outside of the image
    mask_fill        as in RandomRotation

    >>> ElasticTransform(alpha=100)
    ElasticTransform(alpha=100)
    """

    def __init__(
        self,
        alpha: Numbers = 50.0,
        sigma: Numbers = 5.0,
        interpolation: Interpolation = "bilinear",
        fill: Size = 0,
        mask_fill: int | None = None,
    ) -> None:
        super().__init__(
            alpha=(alpha, 50.0),
            sigma=(sigma, 5.0),
            interpolation=(interpolation, "bilinear"),
            fill=(fill, 0),
            mask_fill=(mask_fill, None),
        )


class GaussianBlur(Op):
    """Blurs with a random sigma.

    kernel_size      odd: one number or (horizontal, vertical)
    sigma            a number, or (min, max)

    >>> GaussianBlur(23)
    GaussianBlur(23)
    """

    def __init__(self, kernel_size: Size, sigma: Numbers = (0.1, 2.0)) -> None:
        sigma = tuple(sigma) if isinstance(sigma, Sequence) else sigma
        super().__init__([kernel_size], sigma=(sigma, (0.1, 2.0)))


class PillowBlur(Op):
    """Blurs as Pillow's ImageFilter.GaussianBlur with a random radius, with probability p.

    radius           a number, or (min, max)

    >>> PillowBlur(p=0.1)
    PillowBlur(p=0.1)
    """

    def __init__(self, radius: Numbers = (0.1, 2.0), p: float = 0.5) -> None:
        radius = tuple(radius) if isinstance(radius, Sequence) else radius
        super().__init__(radius=(radius, (0.1, 2.0)), p=(p, 0.5))


class GaussianNoise(Op):
    """Adds normal noise to every value, in whole levels. mean and sigma are shares of 255.

    clip             False: values below 0 and above 255 wrap around, as in torchvision

    >>> GaussianNoise(sigma=0.05)
    GaussianNoise(sigma=0.05)
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__(mean=(mean, 0.0), sigma=(sigma, 0.1), clip=(clip, True))


class JPEG(Op):
    """Makes the artefacts of a JPEG: as if the image were saved with a random quality and read again.

    quality          1 to 100, or (min, max)

    >>> JPEG((20, 90))
    JPEG((20, 90))
    """

    def __init__(self, quality: Size) -> None:
        super().__init__([quality])


class FiveCrop(Op):
    """Crops the four corners and the middle, each to `size`, or (height, width). Batches have another dimension of 5.

    >>> FiveCrop(224)
    FiveCrop(224)
    """

    def __init__(self, size: Size) -> None:
        super().__init__([size])


class TenCrop(Op):
    """Makes the crops of FiveCrop, and those of the flipped image. Batches have another dimension of 10.

    vertical_flip    True: mirrors top to bottom instead of left to right

    >>> TenCrop(224, vertical_flip=True)
    TenCrop(224, vertical_flip=True)
    """

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__([size], vertical_flip=(vertical_flip, False))


class RandomIoUCrop(Op):
    """Crops so that the middle of a box stays inside and a box overlaps the crop enough. Samples need boxes.

    min_scale        and max_scale: the range of each side, as a share
    min_aspect_ratio and max_aspect_ratio: the range of width / height
    sampler_options  overlaps to choose from; 1 or more keeps the image unchanged
    trials           how often it tries before it chooses again

    >>> RandomIoUCrop(min_scale=0.5)
    RandomIoUCrop(min_scale=0.5)
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Range | None = None,
        trials: int = 40,
    ) -> None:
        super().__init__(
            min_scale=(min_scale, 0.3),
            max_scale=(max_scale, 1.0),
            min_aspect_ratio=(min_aspect_ratio, 0.5),
            max_aspect_ratio=(max_aspect_ratio, 2.0),
            sampler_options=(sampler_options, None),
            trials=(trials, 40),
        )


class RandomZoomOut(Op):
    """Puts the image at a random place on a larger canvas, with probability p.

    fill             the colour of the canvas: one number or three
    side_range       (min, max) factor of the size
    mask_fill        the number in masks; by default `fill` if it is one number, else 0

    >>> RandomZoomOut(fill=127)
    RandomZoomOut(fill=127)
    """

    def __init__(
        self, fill: Size = 0, side_range: Range = (1.0, 4.0), p: float = 0.5, mask_fill: int | None = None
    ) -> None:
        super().__init__(
            fill=(fill, 0), side_range=(tuple(side_range), (1.0, 4.0)), p=(p, 0.5), mask_fill=(mask_fill, None)
        )


class ScaleJitter(Op):
    """Resizes so that the image fits into target_size, times a random factor.

    scale_range      (min, max) factor
    interpolation    and antialias: as in Resize

    >>> ScaleJitter((1024, 1024))
    ScaleJitter((1024, 1024))
    """

    def __init__(
        self,
        target_size: Sequence[int],
        scale_range: Range = (0.1, 2.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool = True,
    ) -> None:
        super().__init__(
            [target_size],
            scale_range=(tuple(scale_range), (0.1, 2.0)),
            interpolation=(interpolation, "bilinear"),
            antialias=(antialias, True),
        )


class RandomShortestSize(Op):
    """Resizes the shorter side to a random one of some sizes.

    min_size         one size, or up to 15 to choose from
    max_size         an upper limit for the longer side
    interpolation    and antialias: as in Resize

    >>> RandomShortestSize([480, 512, 544], max_size=1333)
    RandomShortestSize((480, 512, 544), max_size=1333)
    """

    def __init__(
        self,
        min_size: Size,
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
        antialias: bool = True,
    ) -> None:
        super().__init__(
            [min_size],
            max_size=(max_size, None),
            interpolation=(interpolation, "bilinear"),
            antialias=(antialias, True),
        )


class RandomResize(Op):
    """Resizes the shorter side to a random size from min_size to max_size - 1.

    interpolation    and antialias: as in Resize

    >>> RandomResize(256, 512)
    RandomResize(256, 512)
    """

    def __init__(
        self, min_size: int, max_size: int, interpolation: Interpolation = "bilinear", antialias: bool = True
    ) -> None:
        super().__init__([min_size, max_size], interpolation=(interpolation, "bilinear"), antialias=(antialias, True))
