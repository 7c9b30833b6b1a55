# SPDX-License-Identifier: Apache-2.0
"""Ops: small typed objects that print as the text the engine reads.

They carry torchvision's names, argument names, order and defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ._errors import usage
from ._nearest import hint
from ._types import dtype_name

Size = int | Sequence[int]
Numbers = float | Sequence[float]


def _plain(value: Any) -> Any:
    """Numbers, arrays and tensors as Python's own; torchvision's InterpolationMode is an enum of words."""
    value = getattr(value, "value", value)
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "(" + ", ".join(_text(v) for v in value) + ")"
    return repr(value)


class Op:
    """What happens to a picture between the decoder and the batch.

    >>> import stoker
    >>> stoker.RandomResizedCrop(224, scale=(0.5, 1)) | stoker.RandomHorizontalFlip()
    'RandomResizedCrop(224, scale=(0.5, 1)) | RandomHorizontalFlip'
    """

    def __init_subclass__(cls) -> None:
        """A keyword that an op does not have is told with the nearest that it has."""
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
        """first: arguments without a name; others: name=(value, default)."""
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
    """The shorter side to `size`, or exactly (height, width).

    >>> Resize(256, interpolation="bicubic")
    Resize(256, interpolation=bicubic)
    """

    def __init__(
        self, size: Size, interpolation: Any = "bilinear", max_size: int | None = None, antialias: bool = True
    ) -> None:
        super().__init__(
            [size],
            interpolation=(interpolation, "bilinear"),
            max_size=(max_size, None),
            antialias=(antialias, True),
        )


class CenterCrop(Op):
    """The middle, padded with black where the picture is smaller.

    >>> CenterCrop(224)
    CenterCrop(224)
    """

    def __init__(self, size: Size) -> None:
        super().__init__([size])


class RandomCrop(Op):
    """A piece of the picture.

    >>> RandomCrop(32, padding=4)
    RandomCrop(32, padding=4)
    """

    def __init__(
        self,
        size: Size,
        padding: Size | None = None,
        pad_if_needed: bool = False,
        fill: Size = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__(
            [size],
            padding=(padding, None),
            pad_if_needed=(pad_if_needed, False),
            fill=(fill, 0),
            padding_mode=(padding_mode, "constant"),
        )


class RandomResizedCrop(Op):
    """A piece of random area and shape, resized.

    >>> RandomResizedCrop(224)
    RandomResizedCrop(224)
    """

    def __init__(
        self,
        size: Size,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Any = "bilinear",
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
    """A border: a number, (across, down) or (left, top, right, bottom).

    >>> Pad(4, padding_mode="reflect")
    Pad(4, padding_mode=reflect)
    """

    def __init__(self, padding: Size, fill: Size = 0, padding_mode: str = "constant") -> None:
        super().__init__([padding], fill=(fill, 0), padding_mode=(padding_mode, "constant"))


class RandomHorizontalFlip(Op):
    """Left and right change places, with probability p.

    >>> RandomHorizontalFlip()
    RandomHorizontalFlip
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class RandomVerticalFlip(Op):
    """Top and bottom change places, with probability p.

    >>> RandomVerticalFlip(p=0.1)
    RandomVerticalFlip(p=0.1)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=(p, 0.5))


class Grayscale(Op):
    """Without colour, in 1 or 3 channels.

    >>> Grayscale(3)
    Grayscale(num_output_channels=3)
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=(num_output_channels, 1))


class Normalize(Op):
    """To 0..1, minus the mean, by the deviation: of ImageNet, of `imagenet`, `clip` or `half`, or as given.

    >>> Normalize()
    Normalize
    >>> Normalize("clip")
    Normalize(clip)
    >>> Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    Normalize(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    """

    def __init__(self, mean: str | Numbers | None = None, std: Numbers | None = None) -> None:
        if isinstance(mean, str):
            super().__init__([mean])
        else:
            super().__init__(mean=(mean, None), std=(std, None))


class ToTensor(Op):
    """Does what it says already; for lists of transforms that are copied over.

    >>> ToTensor()
    ToTensor
    """


class ToImage(Op):
    """As ToTensor.

    >>> ToImage()
    ToImage
    """


class PILToTensor(Op):
    """As ToTensor, for uint8.

    >>> PILToTensor()
    PILToTensor
    """


class ToDtype(Op):
    """Accepted where it agrees with the loader's dtype.

    >>> ToDtype("float32", scale=True)
    ToDtype(float32, scale=True)
    """

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__([dtype_name(dtype)], scale=(scale, False))


class Lambda(Op):
    """A function of your own, run on each finished picture, after the other ops.

    A function that takes `rng` (a numpy.random.Generator) is deterministic and runs in parallel. Another one is seeded
    and called one at a time, because the generators of `random`, NumPy and torch belong to the whole process;
    `parallel=True` gives that up.

    >>> import numpy as np, stoker
    >>> def noise(x, rng):
    ...     return x + rng.normal(0, 0.1, x.shape).astype(x.dtype)
    >>> pictures = np.zeros((4, 8, 8, 3), np.uint8)
    >>> loader = stoker.Loader(pictures, [stoker.CenterCrop(8), stoker.Lambda(noise)], output="numpy")
    >>> next(iter(loader)).image.shape
    (1, 3, 8, 8)
    """

    def __init__(self, function: Callable[..., Any], parallel: bool = False) -> None:
        if not callable(function):
            raise usage(f"Lambda takes a function, and not {function!r}")
        super().__init__([getattr(function, "__name__", type(function).__name__)])
        self.function, self.parallel = function, parallel
