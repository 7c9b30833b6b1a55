# SPDX-License-Identifier: Apache-2.0
"""Ops that change colours, and ops that choose among ops."""

from __future__ import annotations

from collections.abc import Sequence

from ._ops import Numbers, Op

Range = Sequence[float]


class ColorJitter(Op):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    brightness       a number x: a factor from 1 - x to 1 + x; or (min, max). Also contrast and saturation.
    hue              a number x, up to 0.5: turned by -x to x; or (min, max)

    >>> ColorJitter(0.4, 0.4, 0.4, hue=0.1)
    ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)
    """

    def __init__(
        self,
        brightness: Numbers | None = None,
        contrast: Numbers | None = None,
        saturation: Numbers | None = None,
        hue: Numbers | None = None,
    ) -> None:
        super().__init__(
            brightness=(brightness, None), contrast=(contrast, None), saturation=(saturation, None), hue=(hue, None)
        )


class RandomPhotometricDistort(Op):
    """Changes brightness, contrast, saturation, hue and the order of channels, each with probability p.

    >>> RandomPhotometricDistort(p=0.3)
    RandomPhotometricDistort(p=0.3)
    """

    def __init__(
        self,
        brightness: Range = (0.875, 1.125),
        contrast: Range = (0.5, 1.5),
        saturation: Range = (0.5, 1.5),
        hue: Range = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__(
            brightness=(tuple(brightness), (0.875, 1.125)),
            contrast=(tuple(contrast), (0.5, 1.5)),
            saturation=(tuple(saturation), (0.5, 1.5)),
            hue=(tuple(hue), (-0.05, 0.05)),
            p=(p, 0.5),
        )


class RandomChannelPermutation(Op):
    """Puts the channels into a random order.

    >>> RandomChannelPermutation()
    RandomChannelPermutation
    """


class RandomGrayscale(Op):
    """Removes colour with probability p. The image keeps its channels.

    >>> RandomGrayscale(p=0.2)
    RandomGrayscale(p=0.2)
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=(p, 0.1))


class RGB(Op):
    """Makes three equal channels of one; leaves colour images alone.

    >>> RGB()
    RGB
    """


class RandomAdjustSharpness(Op):
    """Changes the sharpness with probability p: a factor of 0 blurs, 1 changes nothing, 2 sharpens.

    >>> RandomAdjustSharpness(2)
    RandomAdjustSharpness(2)
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__([sharpness_factor], p=(p, 0.5))


class RandomAutocontrast(Op):
    """Stretches every channel to the range from 0 to 255, with probability p.

    >>> RandomAutocontrast()
    RandomAutocontrast
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class RandomEqualize(Op):
    """Equalizes the histogram of every channel, with probability p.

    >>> RandomEqualize()
    RandomEqualize
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class RandomPosterize(Op):
    """Keeps only the highest `bits` of every value, with probability p.

    >>> RandomPosterize(4)
    RandomPosterize(4)
    """

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__([bits], p=(p, 0.5))


class RandomSolarize(Op):
    """Inverts values of at least `threshold`, with probability p.

    >>> RandomSolarize(128, p=0.2)
    RandomSolarize(128, p=0.2)
    """

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__([threshold], p=(p, 0.5))


class RandomInvert(Op):
    """Inverts all values, with probability p.

    >>> RandomInvert()
    RandomInvert
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


# ---------------------------------------------------------------- ops that have ops as arguments


class Identity(Op):
    """Changes nothing.

    >>> Identity()
    Identity
    """


class Compose(Op):
    """Applies ops one after the other; useful inside RandomChoice.

    >>> Compose([RandomInvert(), RandomGrayscale()])
    Compose([RandomInvert, RandomGrayscale])
    """

    def __init__(self, transforms: Sequence[Op]) -> None:
        super().__init__([transforms])


class RandomApply(Op):
    """Applies all of the ops with probability p, or none of them.

    >>> RandomApply([ColorJitter(0.4), RandomInvert()], p=0.8)
    RandomApply([ColorJitter(brightness=0.4), RandomInvert], p=0.8)
    """

    def __init__(self, transforms: Sequence[Op], p: float = 0.5) -> None:
        super().__init__([transforms], p=(p, 0.5))


class RandomChoice(Op):
    """Applies one of the ops, chosen at random; p: their weights.

    >>> RandomChoice([RandomInvert(1), RandomSolarize(128, 1)], p=[3, 1])
    RandomChoice([RandomInvert(p=1), RandomSolarize(128, p=1)], p=(3, 1))
    """

    def __init__(self, transforms: Sequence[Op], p: Sequence[float] | None = None) -> None:
        super().__init__([transforms], p=(p, None))


class RandomOrder(Op):
    """Applies the ops in random order.

    >>> RandomOrder([RandomInvert(), RandomGrayscale()])
    RandomOrder([RandomInvert, RandomGrayscale])
    """

    def __init__(self, transforms: Sequence[Op]) -> None:
        super().__init__([transforms])
