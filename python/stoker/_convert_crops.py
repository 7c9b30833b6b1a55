# SPDX-License-Identifier: Apache-2.0
"""FiveCrop and TenCrop of torchvision, with the function that usually follows them:

    Lambda(lambda crops: torch.stack([ToTensor()(crop) for crop in crops]))

The op gives one array with a further dimension, which is what such a function makes of the crops. A function counts as
such if its code uses nothing but torch.stack and transforms of torchvision that convert and normalise, and if it gives
the same tensors as these on random crops.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

NAMES = ("FiveCrop", "TenCrop")
ATTRIBUTES = {"stack", "transforms", "v2", "functional", "ToTensor", "PILToTensor", "Normalize", "Compose"}
ATTRIBUTES |= {"to_tensor", "pil_to_tensor", "normalize"}
STEPS = {"ToTensor", "PILToTensor", "Normalize", "Compose"}


class Stacked:
    """FiveCrop or TenCrop, and a function that stacks the results of `each` for every crop."""

    def __init__(self, crops: Any, function: Any, each: list[Any]) -> None:
        self.crops, self.function, self.each = crops, function, each
        self.__name__ = type(crops).__name__

    def __call__(self, image: Any) -> Any:
        return self.function(self.crops(image))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _codes(value)


def _is_torchvisions(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    if isinstance(value, types.ModuleType):
        return module == "torch" or module.startswith("torchvision")
    if isinstance(value, (type, types.FunctionType)):
        return str(module).startswith("torchvision.transforms") and value.__name__ in ATTRIBUTES
    return type(value).__module__.startswith("torchvision.transforms") and type(value).__name__ in STEPS


def _used(function: types.FunctionType) -> list[Any] | None:
    """The global and closure variables that a function uses; None: it uses others than torchvision's, or methods."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    values = [cell.cell_contents for cell in cells.values()]
    space = function.__globals__
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in space:
                values.append(space[name])
            elif name not in ATTRIBUTES:
                return None
    good = all(_is_torchvisions(v) or getattr(v, "__module__", "").startswith("torch.") for v in values)
    return values if good else None


def _normalizes(values: list[Any]) -> list[Any]:
    found = [v for v in values if type(v).__name__ == "Normalize"]
    for one in (v for v in values if type(v).__name__ == "Compose"):
        found += _normalizes(list(one.transforms))
    return found


def _random_crops(n: int, size: Any) -> list[Any]:
    from PIL import Image

    rng = np.random.default_rng(n)
    return [Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)) for _ in range(n)]


def _is_same(function: Any, crops: list[Any], each: list[Any]) -> bool:
    torch = sys.modules["torch"]
    wanted = []
    for crop in crops:
        for step in each:
            crop = step(crop)
        wanted.append(crop)
    made = function(tuple(crops))
    stacked = torch.stack(wanted)
    return type(made) is torch.Tensor and made.dtype == stacked.dtype and torch.equal(made, stacked)


def _each(function: Any, size: Any, n: int) -> list[Any] | None:
    """The transforms that a function applies to every crop before it stacks them; None: it does something else."""
    if not isinstance(function, types.FunctionType) or (values := _used(function)) is None:
        return None
    v1 = sys.modules["torchvision.transforms"]
    choices: list[list[Any]] = [[v1.ToTensor()], [v1.PILToTensor()]]
    choices += [[v1.ToTensor(), one] for one in _normalizes(values)]
    try:
        probes = [_random_crops(n, size) for _ in range(2)]
        fitting = [each for each in choices if all(_is_same(function, crops, each) for crops in probes)]
    except Exception:  # the function does not take these crops
        return None
    return fitting[0] if fitting else None


def joined(steps: list[Any]) -> list[Any]:
    """The steps of a transform, with FiveCrop or TenCrop and the function that stacks its crops as one step."""
    result: list[Any] = []
    for step in steps:
        before: Any = result[-1] if result else None
        known = type(before).__name__ in NAMES and type(before).__module__.startswith("torchvision.")
        if known and type(step).__name__ == "Lambda":
            n = 5 if type(before).__name__ == "FiveCrop" else 10
            if (each := _each(getattr(step, "lambd", None), before.size, n)) is not None:
                result[-1] = Stacked(before, step, each)
                continue
        result.append(step)
    return result
