# SPDX-License-Identifier: Apache-2.0
"""The training loader in words and numbers: its arguments, its dataset, its transforms."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from typing import Any

from . import probe, shapes


def loader(loop: probe.Loop) -> dict[str, Any]:
    thing = loop.thing
    dataset = dataset_of(thing)
    found: dict[str, Any] = {
        "kind": loop.kind,
        "at": loop.at,
        "workers": int(getattr(thing, "num_workers", 0) or 0),
        "batch_size": batch_size(loop),
        "shape": shapes.largest(loop.shapes),
        "pin_memory": bool(getattr(thing, "pin_memory", False)),
        "persistent": bool(getattr(thing, "persistent_workers", False)),
        "prefetch": getattr(thing, "prefetch_factor", None),
        "dataset": type(dataset).__name__ if dataset is not None else None,
        "dataset_at": getter_at(inner(dataset)),
        "samples": length(dataset),
        "transforms": [{"name": name_of(t), "at": at_of(t)} for t in transforms_of(dataset)],
    }
    collate = getattr(thing, "collate_fn", None)
    if collate is not None and not probe.is_library(file_of(collate)):
        found["collate"] = {"name": name_of(collate), "at": at_of(collate)}
    return found


def dataset_of(thing: Any) -> Any:
    """A dataset with a sample per index; arrays that Stoker's Loader was given have a field per index."""
    found = getattr(thing, "dataset", None)
    return None if isinstance(found, tuple | dict | str) else found


def batch_size(loop: probe.Loop) -> int:
    sizes = loop.sizes
    return max(set(sizes), key=sizes.count) if sizes else int(getattr(loop.thing, "batch_size", 0) or 0)


def length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:  # iterables have no length
        return None


def inner(dataset: Any) -> Any:
    """The dataset inside Subset and the like."""
    for _ in range(8):
        below = getattr(dataset, "dataset", None)
        if below is None:
            below = next(iter(parts_of(dataset)), None)
        if below is None or transform_of(dataset) is not None:
            return dataset
        dataset = below
    return dataset


def transform_of(dataset: Any) -> Any:
    return getattr(dataset, "transform", None) or getattr(dataset, "tfm", None)


def transforms_of(dataset: Any) -> list[Any]:
    """The callables of a dataset's transform, one by one."""
    whole = transform_of(inner(dataset))
    several = getattr(whole, "transforms", None)
    if isinstance(several, list | tuple):
        return list(several)
    return [whole] if callable(whole) else []


def name_of(thing: Any) -> str:
    if type(thing).__name__ == "Lambda" and hasattr(thing, "lambd"):
        return name_of(thing.lambd)
    return str(getattr(thing, "__name__", None) or type(thing).__name__)


def _code(thing: Any) -> Any:
    """A function or a class that inspect knows a place for."""
    if type(thing).__name__ == "Lambda" and hasattr(thing, "lambd"):
        return _code(thing.lambd)
    return thing if inspect.isfunction(thing) or inspect.isclass(thing) else type(thing)


def file_of(thing: Any) -> str:
    try:
        return inspect.getsourcefile(_code(thing)) or "<unknown>"
    except TypeError:
        return "<unknown>"


def getter_at(dataset: Any) -> str | None:
    """Where __getitem__ is defined, if that is the user's code."""
    function = getattr(type(dataset), "__getitem__", None)
    return at_of(function) if inspect.isfunction(function) and not probe.is_library(file_of(function)) else None


def at_of(thing: Any) -> str | None:
    """Where it is defined, if that is the user's code; else where the script makes one."""
    path = file_of(thing)
    if probe.is_library(path):
        return made_at(name_of(thing))
    try:
        return f"{probe.short(path)}:{inspect.getsourcelines(_code(thing))[1]}"
    except (OSError, TypeError):
        return None


def made_at(name: str) -> str | None:
    """The line of the user's files on which a class of this name is called."""
    paths = dict.fromkeys(
        path
        for module in list(sys.modules.values())
        if isinstance(path := getattr(module, "__file__", None), str) and not probe.is_library(path)
    )
    for path in list(paths)[:50]:
        try:
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name in (
                getattr(node.func, "attr", None),
                getattr(node.func, "id", None),
            ):
                return f"{probe.short(path)}:{node.lineno}"
    return None


PATHS = ("samples", "imgs", "paths", "files", "image_paths", "filenames")


def path_list(dataset: Any) -> Any:
    """The list in which a dataset keeps its files, each alone or with a label; None if there is none."""
    for name in PATHS:
        several = getattr(inner(dataset), name, None)
        if isinstance(several, list | tuple) and several:
            first = several[0]
            paired = isinstance(first, list | tuple) and first and isinstance(first[0], str)
            if paired or isinstance(first, str | os.PathLike):
                return several
    return None


def files_of(dataset: Any) -> list[str]:
    """All files of a dataset that keeps a list of them."""
    if parts := parts_of(dataset):
        return [path for part in parts for path in files_of(part)]
    return [str(one[0] if isinstance(one, list | tuple) else one) for one in path_list(dataset) or ()]


def parts_of(dataset: Any) -> list[Any]:
    """The datasets that one is put together from, as by ConcatDataset."""
    parts = getattr(dataset, "datasets", None)
    return list(parts) if isinstance(parts, list | tuple) else []


def paths_of(dataset: Any) -> list[str]:
    """The file of each sample, by index, for datasets that keep a list of them; empty if it is not known."""
    below, indices = getattr(dataset, "dataset", None), getattr(dataset, "indices", None)
    if below is not None and indices is not None:
        paths = paths_of(below)
        found = [paths[int(i)] for i in indices] if paths else []
    elif parts := parts_of(dataset):
        found = [path for part in parts for path in paths_of(part)]
    else:
        found = files_of(dataset)
    return found if len(found) == length(dataset) else []
