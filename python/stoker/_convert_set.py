# SPDX-License-Identifier: Apache-2.0
"""Datasets that Stoker reads itself: ImageFolder, DatasetFolder and TensorDataset, also in Subset and ConcatDataset.

They are recognised by their attributes; neither torch nor torchvision is imported. In doubt a dataset runs in Python:
with the user's own loader or `__getitem__`, changed targets, files that Stoker does not list, or other class indices.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ._convert import Converted
from ._convert import transform as convert_transform
from ._errors import Error
from ._source import Source
from ._types import DTYPE_CODES

MOST_FIELDS, MOST_DIMS = 13, 9  # the engine's limits for arrays


@dataclass
class ConvertedSet:
    source: Source
    transform: Any  # of the dataset, or None


def _made_by(function: Any, qualname: str, module: str) -> bool:
    return getattr(function, "__qualname__", "") == qualname and getattr(function, "__module__", "") == module


def _is_folder(dataset: Any) -> bool:
    """Whether samples are read as torchvision does; a subclass may change the classes only."""
    module = "torchvision.datasets.folder"
    return (
        _made_by(getattr(type(dataset), "__getitem__", None), "DatasetFolder.__getitem__", module)
        and _made_by(getattr(type(dataset), "__len__", None), "DatasetFolder.__len__", module)
        and _made_by(dataset.loader, "default_loader", module)
        and dataset.target_transform is None
    )


def _folder(dataset: Any) -> ConvertedSet | None:
    root = os.fspath(dataset.root)
    paths, labels = [path for path, _ in dataset.samples], np.array([label for _, label in dataset.samples], np.int64)
    if list(dataset.class_to_idx.items()) != [(name, i) for i, name in enumerate(dataset.classes)] or not paths:
        return None
    try:
        source = Source(root, classes=dataset.classes)
    except Error:
        return None
    below = os.path.join(root, "")
    if not all(path.startswith(below) for path in paths):
        return None
    keys, wanted = source.keys, [path[len(below) :] for path in paths]
    if keys != wanted:
        numbers = {key: i for i, key in enumerate(keys)}
        if any(key not in numbers for key in wanted):
            return None
        source = source.subset([numbers[key] for key in wanted])
    return ConvertedSet(source, dataset.transform) if np.array_equal(source.labels, labels) else None


def _sum(parts: list[ConvertedSet]) -> ConvertedSet | None:
    first = parts[0].transform
    if any(p.transform is not first and repr(p.transform) != repr(first) for p in parts):
        return None
    if any(p.transform is not first and _in_python(p.transform) for p in parts):
        return None
    source = reduce(add, (p.source for p in parts))
    same = np.array_equal(source.labels, np.concatenate([p.source.labels for p in parts]))
    return ConvertedSet(source, first) if same else None


def _in_python(transform: Any) -> bool:
    converted = None if transform is None else convert_transform(transform)
    return transform is not None and (converted is None or converted.rest is not None)


def _found(dataset: Any) -> ConvertedSet | None:
    kind = type(dataset)
    if _made_by(getattr(kind, "__getitem__", None), "Subset.__getitem__", "torch.utils.data.dataset"):
        whole = _found(dataset.dataset)
        return whole and ConvertedSet(whole.source.subset([int(i) for i in dataset.indices]), whole.transform)
    if _made_by(getattr(kind, "__getitem__", None), "ConcatDataset.__getitem__", "torch.utils.data.dataset"):
        parts = [_found(d) for d in dataset.datasets]
        good = [p for p in parts if p is not None]
        return _sum(good) if len(good) == len(parts) else None
    return _folder(dataset) if hasattr(dataset, "loader") and _is_folder(dataset) else None


def dataset(thing: Any, more: bool = False) -> tuple[ConvertedSet, Converted | None] | None:
    """The source and the transform of a dataset that Stoker reads itself; None: it runs in Python.

    more: ops follow, which may give all images one size.

    >>> dataset([1, 2, 3]) is None
    True
    """
    found = _found(thing)
    if found is None:
        return None
    if found.transform is None:  # without ops, samples are Pillow images
        return (found, None) if more else None
    converted = convert_transform(found.transform)
    if converted is None or not (converted.sized or (more and converted.rest is None)):
        return None
    return found, converted


def why_not(thing: Any) -> str:
    """Why a torchvision folder runs in Python; "" for other datasets.

    >>> why_not([1, 2, 3])
    ''
    """
    if not any(_made_by(kind, "DatasetFolder", "torchvision.datasets.folder") for kind in type(thing).__mro__):
        return ""
    if thing.target_transform is not None:
        return "it has a target_transform"
    if not _is_folder(thing):
        return "its loader or its __getitem__ is not torchvision's"
    if thing.transform is None or not ((converted := convert_transform(thing.transform)) and converted.sized):
        return "its transform runs Python code before all images have one size"
    return "its files or classes differ from what Stoker finds in the folder"


def _plain(tensor: Any) -> bool:
    """Whether the engine can read a tensor in place: plain numbers in host memory, without gradient, and not pixels."""
    if str(tensor.layout) != "torch.strided" or tensor.device.type != "cpu" or tensor.requires_grad:
        return False
    name, shape = str(tensor.dtype).removeprefix("torch."), tensor.shape
    pixels = name == "uint8" and len(shape) == 4 and shape[3] in (1, 3)
    return name in DTYPE_CODES and not pixels and 1 <= len(shape) <= MOST_DIMS and 0 not in shape


def tensors(thing: Any) -> tuple[tuple[Any, ...], list[int] | None] | None:
    """The tensors of a TensorDataset, and the rows of a Subset of one; None: it is neither.

    >>> tensors([1, 2, 3]) is None
    True
    """
    getitem = getattr(type(thing), "__getitem__", None)
    if _made_by(getitem, "Subset.__getitem__", "torch.utils.data.dataset"):
        found = tensors(thing.dataset)
        if found is None:
            return None
        rows = range(len(found[0][0])) if found[1] is None else found[1]
        return found[0], [rows[int(i)] for i in thing.indices]
    if not _made_by(getitem, "TensorDataset.__getitem__", "torch.utils.data.dataset"):
        return None
    good = 0 < len(thing.tensors) <= MOST_FIELDS and all(_plain(t) for t in thing.tensors)
    return (tuple(thing.tensors), None) if good else None
