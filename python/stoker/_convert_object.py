# SPDX-License-Identifier: Apache-2.0
"""Transforms of the user's own class that only pass the image on to transforms of torchvision or timm.

The presets of torchvision's reference scripts do that, and classes that return several views of an image:

    class Views:                                    # of DINO, SimCLR
        def __call__(self, image):
            return [self.large(image)] + [self.small(image) for _ in range(8)]

Their code runs once, on a placeholder, with attributes that only note what they were called with. It may read its
attributes, decide by them, and build lists. Any other code is a function of the user's own.
"""

from __future__ import annotations

import copy
import dis
import random
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._deferred import Deferred, Recorder, Untraceable

BUILT_IN = {"range", "len", "list", "tuple", "enumerate"}
METHODS = {"append", "extend"}
CHANGES = (
    *("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "STORE_DEREF", "DELETE_", "IMPORT_", "YIELD_", "RAISE_", "RERAISE"),
    *("LOAD_BUILD_CLASS", "BEFORE_WITH", "GET_AWAITABLE", "SETUP_"),
)
PLAIN = (type(None), bool, int, float, str, tuple)


class Passed(NamedTuple):
    """What such an object returns."""

    views: list[tuple[Any, ...]]  # the transforms of each image, in order
    kind: type | None  # list or tuple; None: it returns one image


# Classes of DINO's script, by name: what their code uses, and their attributes. They are recognised by these, and by
# what they do to an image.
SCRIPTS = {
    "GaussianBlur": (
        {"random", "prob", "filter", "ImageFilter", "GaussianBlur", "uniform", "radius_min", "radius_max"},
        {"prob", "radius_min", "radius_max"},
    ),
    "Solarization": ({"random", "p", "ImageOps", "solarize"}, {"p"}),
}


def _does_the_same(thing: Any, chance: str) -> bool:
    """Whether an object of such a class does to an image what Pillow's function does."""
    from PIL import Image, ImageFilter, ImageOps

    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 11, 3), dtype=np.uint8))
    always, never = copy.copy(thing), copy.copy(thing)
    vars(always)[chance], vars(never)[chance] = 1.0, -1.0
    if chance == "prob":
        always.radius_min = always.radius_max = 1.3
        wanted = image.filter(ImageFilter.GaussianBlur(radius=1.3))
    else:
        wanted = ImageOps.solarize(image)
    before = random.getstate()
    try:
        return bool(always(image).tobytes() == wanted.tobytes() and never(image).tobytes() == image.tobytes())
    except Exception:
        return False
    finally:
        random.setstate(before)


def of_a_script(thing: Any) -> str:
    """The name of the class of DINO's script that an object has; "": it has none."""
    name = type(thing).__name__
    uses, attributes = SCRIPTS.get(name, (set(), set()))
    function = vars(type(thing)).get("__call__")
    if not uses or not isinstance(function, types.FunctionType) or set(vars(thing)) != attributes:
        return ""
    if type(thing).__module__.split(".")[0] in ("torchvision", "timm") or set(function.__code__.co_names) != uses:
        return ""
    return name if _does_the_same(thing, "prob" if name == "GaussianBlur" else "p") else ""


class _Pair:
    """Stands for a transform of image and target."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __call__(self, image: Any, target: Any) -> tuple[Any, Any]:
        return Recorder(self.transform)(image), target


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _codes(value)


def _is_simple(function: types.FunctionType, thing: Any) -> bool:
    for code in _codes(function.__code__):
        for i in dis.get_instructions(code):
            if i.opname.startswith(CHANGES):
                return False
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and (
                i.argval not in BUILT_IN or i.argval in function.__globals__
            ):
                return False
            if i.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR") and not (
                i.argval in vars(thing) or i.argval in METHODS
            ):
                return False
    return not function.__code__.co_flags & 0x2A0  # generators, coroutines


def _replaced(value: Any, is_transform: Callable[[Any], bool], record: Callable[[Any], Any]) -> Any:
    if type(value) is list and value and all(is_transform(v) for v in value):
        return [record(v) for v in value]
    if type(value) in PLAIN:
        return value
    if is_transform(value):
        return record(value)
    raise Untraceable


class _Refused:
    """An attribute that the code may not use: any use fails."""


def _run(thing: Any, function: types.FunctionType, is_transform: Callable[[Any], bool]) -> Any:
    pair = function.__code__.co_argcount == 3
    other_self = object.__new__(type(thing))
    for name, value in vars(thing).items():
        try:
            other_self.__dict__[name] = _replaced(value, is_transform, _Pair if pair else Recorder)
        except Untraceable:
            other_self.__dict__[name] = _Refused()
    if not pair:
        return function(other_self, Deferred(""))
    target = object()
    image, other = function(other_self, Deferred(""), target)
    if other is not target:
        raise Untraceable
    return image


def _steps(result: Any) -> Passed:
    several = list(result) if type(result) in (list, tuple) else [result]
    if not several or not all(type(one) is Deferred for one in several):
        raise Untraceable
    return Passed([one.steps for one in several], type(result) if type(result) in (list, tuple) else None)


def passed(thing: Any, is_transform: Callable[[Any], bool]) -> Passed | None:
    """The transforms that an object of the user's passes its image on to; None: it does something else."""
    function = next((vars(k)["__call__"] for k in type(thing).__mro__ if "__call__" in vars(k)), None)
    if not isinstance(function, types.FunctionType) or not hasattr(thing, "__dict__") or hasattr(thing, "forward"):
        return None
    if function.__code__.co_argcount not in (2, 3) or function.__code__.co_kwonlyargcount:
        return None
    if not _is_simple(function, thing):
        return None
    try:
        found = _steps(_run(thing, function, is_transform))
    except Exception:  # the code does something that a placeholder cannot stand for
        return None
    return found if all(found.views) else None
