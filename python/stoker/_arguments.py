# SPDX-License-Identifier: Apache-2.0
"""Checks the types of arguments before anything is opened."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ._errors import hint, usage
from ._ops import Op
from ._types import Cache, DeviceWork, DType, Fidelity, Layout, OnError, Sizes

Test = Callable[[Any], bool]
Fields = Sequence[str] | Mapping[str, str] | str
_Pipeline = str | Op | Callable[..., Any] | Sequence[str | Op | Callable[..., Any]]
Ops = _Pipeline | Mapping[str, _Pipeline] | None
Init = TypeVar("Init", bound=Callable[..., None])


class Options(TypedDict, total=False):
    """The arguments of Loader that do not determine the type of a batch, for type checkers."""

    drop_last: bool
    pad_last: bool
    seed: int
    threads: int | None
    memory: int | str | None
    dtype: DType | None
    layout: Layout
    fidelity: Fidelity
    sizes: Sizes
    exif: bool | None
    classes: Sequence[str] | None
    sampler: Iterable[int] | None
    batch_sampler: Iterable[Sequence[int]] | None
    weights: Any
    steps_per_epoch: int | None
    on_error: OnError
    max_bad: float | None
    rank: int | Literal["slurm", "mpi"] | None
    world_size: int | None
    pin_memory: bool
    device: Any
    device_work: DeviceWork
    cache: Cache | None
    cache_dir: str | os.PathLike[str] | None
    cache_size: int | str | None
    progress: bool
    processes: int | None
    mix: Sequence[float] | None
    features: Mapping[str, Any] | None


def known_keywords(words: str = "", elsewhere: Mapping[str, str] | None = None) -> Callable[[Init], Init]:
    """Decorates `__init__`, so that an unknown keyword is a UsageError that suggests the nearest one."""

    def decorate(init: Init) -> Init:
        of, names = init.__qualname__.partition(".")[0], list(inspect.signature(init).parameters)[1:]

        @functools.wraps(init)
        def checked(self: Any, *args: Any, **keywords: Any) -> None:
            for name in keywords:
                if name not in names:
                    raise usage(f"{of} has no argument {name!r}{words}{hint(name, names, elsewhere)}")
            init(self, *args, **keywords)

        return cast(Init, checked)

    return decorate


def _is_flag(value: Any) -> bool:
    return value is None or isinstance(value, (bool, np.bool_)) or (type(value) is int and value in (0, 1))


def _is_names(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _is_fields(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, Mapping):
        return all(isinstance(v, str) for v in (*value, *value.values()))
    return _is_names(value) and isinstance(value, Sequence) and all(isinstance(v, str) for v in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


FLAG: tuple[Test, str] = (_is_flag, "True or False")
RULES: dict[str, tuple[Test, str]] = {
    **dict.fromkeys(("shuffle", "drop_last", "pad_last", "as_dict", "progress", "exif", "pin_memory"), FLAG),
    "collate_fn": (callable, "a function"),
    "batch_fn": (callable, "a function"),
    "classes": (_is_names, "a list of names"),
    "fields": (_is_fields, "a list of names such as ('image', 'label'), a dict, or a string"),
    "max_bad": (_is_number, "a number"),
    "sampler": (lambda v: isinstance(v, Iterable), "an iterable of sample indices"),
    "batch_sampler": (lambda v: isinstance(v, Iterable), "an iterable of lists of sample indices"),
    "cache_dir": (lambda v: isinstance(v, (str, bytes, os.PathLike)), "a path, or 'off'"),
}
TEXTS = ("transform", "fields", "classes", "cache_dir")


def check_types(arguments: Mapping[str, Any]) -> None:
    """Raises a UsageError for the first argument of the wrong type.

    >>> check_types({"collate_fn": 3})
    Traceback (most recent call last):
    stoker.UsageError: collate_fn is 3; it must be a function
    """
    for name, (test, words) in RULES.items():
        value = arguments.get(name)
        if value is not None and not test(value):
            raise usage(f"{name} is {value!r}; it must be {words}")
    for name in TEXTS:
        check_text(name, arguments.get(name))


def check_text(name: str, value: Any) -> None:
    """Refuses text that C cannot hold. The argument is a text, or a list or a dict with texts.

    >>> check_text("cache_dir", "a\\0b")
    Traceback (most recent call last):
    stoker.UsageError: cache_dir is 'a\\x00b', which contains a null byte; remove it
    """
    items = [*value, *value.values()] if isinstance(value, Mapping) else value
    for text in items if isinstance(items, (list, tuple)) else [items]:
        if not isinstance(text, (str, bytes, os.PathLike)):
            continue
        try:
            if b"\0" in os.fsencode(text):
                raise usage(f"{name} is {text!r}, which contains a null byte; remove it")
        except UnicodeEncodeError as error:
            raise usage(f"{name} is {text!r}, which cannot be encoded: {error.reason}") from error


def weights_of(value: Any) -> NDArray[np.float64]:
    """Weights as an array of float64.

    >>> weights_of([1, 2])
    array([1., 2.])
    """
    try:
        array = np.asarray(value)
        if np.ma.is_masked(value) or array.dtype.kind not in "biuf":
            raise TypeError
        return np.ascontiguousarray(array.ravel(), dtype=np.float64)
    except (TypeError, ValueError):
        raise usage(f"weights is {value!r}; it must have one number for each sample") from None
