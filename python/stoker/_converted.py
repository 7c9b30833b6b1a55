# SPDX-License-Identifier: Apache-2.0
"""What a transform of another library is converted to: ops, and functions in Python with ops between them."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _ops, _stoker
from ._errors import UsageError
from ._types import DTYPE_CODES, LAYOUTS

LIBRARIES = ("torchvision", "timm")
ELSEWHERE = ("FiveCrop", "Normalize", "TenCrop", "ToDtype", "ToImage", "ToTensor")  # which a loader checks
PIL, BYTES, FLOATS = "a Pillow image", "a tensor of uint8", "a tensor of floats"
# Transforms without randomness, which threads of one process may run.
STEADY = {"CenterCrop", "ConvertImageDtype", "Grayscale", "MaybeToTensor", "Normalize", "Pad", "PILToTensor", "Resize"}
STEADY |= {
    "PadIfSmaller",
    "Identity",
    "MaybePILToTensor",
    "RGB",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToPureTensor",
    "ToTensor",
}


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
        """why: the functions, each with the reason why it cannot be an op."""
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
    crops: str = ""  # of FiveCrop or TenCrop: "stacked" into one tensor, or "apart"; "": there are none

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


def refusal(op: _ops.Op) -> str:
    """Why the engine does not take these arguments of an op; "" if it does.

    >>> from . import _ops_color
    >>> refusal(_ops_color.RandomPosterize(0)), refusal(_ops_color.RandomPosterize(4))
    ('bits: found 0, expected a whole number of bits from 1 to 8', '')
    """
    if type(op).__name__ in ELSEWHERE:
        return ""
    try:
        _stoker.Ops(str(op), DTYPE_CODES["float32"], LAYOUTS["NCHW"])
    except UsageError as error:
        return error.reason.partition(f"{type(op).__name__}: ")[2] or error.reason
    return ""


def name_of(thing: Any) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))


def is_known(thing: Any) -> bool:
    kind = type(thing)
    of_references = (kind.__module__, kind.__name__) == ("v2_extras", "PadIfSmaller")
    return kind.__module__.split(".")[0] in LIBRARIES or of_references


def is_steady(transform: Any) -> bool:
    return is_known(transform) and type(transform).__name__ in STEADY
