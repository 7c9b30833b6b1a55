# SPDX-License-Identifier: Apache-2.0
"""RandomErasing, and the noise that it writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import _stoker
from ._ops import Numbers, Op, Size


class RandomErasing(Op):
    """Overwrites a random rectangle of the finished image with probability p; comes last, before or after Normalize.

    scale            the range of the area, as a share of the image
    ratio            the range of height / width
    value            a number, or one per channel; "random": normal noise for every pixel; "color": for every channel
    count            rectangles per image: a number, or (least, most); the area is divided among them

    >>> RandomErasing(0.25, value="random")
    RandomErasing(p=0.25, value=random)
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: str | Numbers = 0,
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


def noise(seed: int, shape: int | Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The field of normal numbers that an op drew: what `drawn` returns as its seed, and the shape C, H, W.

    >>> noise(7, (3, 2, 2)).shape
    (3, 2, 2)
    >>> bool((noise(7, 9)[:5] == noise(7, 5)).all())
    True
    """
    field = np.empty(shape, np.float32)
    _stoker.noise(field, seed)
    return field
