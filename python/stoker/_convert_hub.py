# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face in DataLoader: the function of `set_transform` and `with_transform` runs on placeholders.

    def prepare(rows):
        return {"x": [augment(image.convert("RGB")) for image in rows["image"]], "y": rows["label"]}

The engine reads and decodes the images and applies `augment`; other columns are the dataset's own. This is right if the
function is simple (`_deferred`), and if it converts each image to RGB: the dataset's own image may be grey. In doubt
the function runs in Python.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from ._deferred import Deferred, Recorder, Untraceable, code_of, is_simple


def image_of(dataset: Any) -> str | None:
    """The only column of images that rows contain, as files or their bytes; None: there is none, or another format."""
    shown = dataset.format
    if shown["type"] not in (None, "custom") or shown["output_all_columns"]:
        return None
    kinds = {name: feature for name, feature in dataset.features.items() if "Image" in type(feature).__name__}
    image, *more = kinds or [None]
    if image is None or more or image not in shown["columns"]:
        return None
    feature = kinds[image]
    return image if type(feature).__name__ == "Image" and feature.decode and feature.mode in (None, "RGB") else None


def function_of(dataset: Any) -> Any:
    """What the user gave to set_transform; None: nothing."""
    return dataset.format["format_kwargs"].get("transform") if dataset.format["type"] == "custom" else None


class Raw(Deferred):
    """Stands for an image as the dataset returns it; its mode is not known."""

    __slots__ = ()

    def convert(self, mode: str) -> Deferred:
        if mode != "RGB":
            raise Untraceable
        return Deferred(self.path)


class HubRows:
    """Rows of a dataset, with placeholders for its images."""

    def __init__(self, dataset: Any, image: str, function: Callable[[Any], Any] | None) -> None:
        self.image, self.function, self.names = image, function, list(dataset.format["columns"])
        others = [name for name in self.names if name != image]
        self.kind = Deferred if dataset.features[image].mode == "RGB" else Raw
        self.others = dataset.with_format(None).select_columns(others) if others else None

    def many(self, indices: list[int]) -> list[Any]:
        """Several rows: one of them costs as much."""
        found = {} if self.others is None else self.others[indices]
        found[self.image] = [self.kind(str(i)) for i in indices]
        made: Any = {name: found[name] for name in self.names}
        if self.function is not None:
            made = self.function(made)
        return [{name: values[n] for name, values in made.items()} for n in range(len(indices))]

    def __getitem__(self, i: int) -> Any:
        return self.many([i])[0]


def samples(dataset: Any, is_transform: Callable[[Any], bool]) -> HubRows:
    """Rows with placeholders. Fails with Untraceable."""
    image, function = image_of(dataset), function_of(dataset)
    if image is None:
        raise Untraceable
    return HubRows(dataset, image, None if function is None else recording(function, is_transform))


def used(function: Any) -> Iterator[tuple[str, Any]]:
    """The global variables that a function uses, and those of functions around it."""
    if not isinstance(function, types.FunctionType):
        return
    names = {name for code in code_of(function) for name in code.co_names}
    yield from ((name, function.__globals__[name]) for name in names if name in function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not set yet
            yield name, cell.cell_contents


def recording(function: Any, is_transform: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A copy of a function that calls placeholders of transforms. Fails with Untraceable."""
    if not isinstance(function, types.FunctionType):
        raise Untraceable
    other = {name: Recorder(value) if is_transform(value) else value for name, value in used(function)}
    cells = tuple(types.CellType(other[name]) for name in function.__code__.co_freevars if name in other)
    if len(cells) != len(function.__code__.co_freevars):
        raise Untraceable
    space = {**function.__globals__, **{name: other[name] for name in other if name in function.__globals__}}
    copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    if not is_simple(copy, loops=True):
        raise Untraceable
    return copy


def why_not(dataset: Any, is_transform: Callable[[Any], bool]) -> str:
    """Why a dataset runs in Python."""
    function = function_of(dataset)
    name = getattr(function, "__name__", type(function).__name__)
    if image_of(dataset) is None:
        return "it has no images, several columns of them, or a format that changes them"
    if function is None:
        return "rows contain Pillow images; a transform that converts them to RGB would run in C"
    try:
        recording(function, is_transform)
    except Untraceable:
        return f"{name} does more than convert images to RGB and call transforms"
    return f"the transforms that {name} calls are not known, do not follow convert('RGB'), or run Python code"
