# SPDX-License-Identifier: Apache-2.0
"""Turns the arguments `source` and `transform` into what the engine takes."""

from __future__ import annotations

import copy
import os
import random
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from . import _convert, _convert_albumentations, _convert_dataset
from ._arguments import check_text
from ._arrow import Table, check_split, form_of, is_plain
from ._converted import PIL, Converted, Rest
from ._deferred import same
from ._errors import usage
from ._ops import Lambda, Op
from ._output import framework
from ._rows import Caller, Fill, IterableFill, MapFill
from ._source import Source
from ._types import DTYPE_CODES

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, partial)
FRAMEWORKS = ("torchvision", "timm", "torch")


@dataclass
class Given:
    """A source, as the engine takes it."""

    options: dict[str, Any]
    fill: Fill | None = None
    foreign: bool = False  # converted from another library's object, which ignores EXIF
    table: Table | None = None  # an Arrow table; how the engine reads it depends on the fields


@dataclass
class Transform:
    """A transform, as the engine takes it."""

    text: str = ""
    functions: list[Caller] = field(default_factory=list)
    foreign: bool = False
    dtype: str | None = None  # of the ops' result, if another library's object determines it
    partly: bool = False  # part of such an object runs in Python
    rows: bool = False  # that part begins with rows of pixels
    originals: list[Caller] = field(default_factory=list)  # such objects as functions, for samples of datasets


# ---------------------------------------------------------------- transforms


def _add(to: Transform, item: Any) -> None:
    if isinstance(item, type):
        raise usage(f"transform contains the class {item.__name__}; pass an object: {item.__name__}(...)")
    if isinstance(item, Lambda):
        to.functions.append(Caller(item.function))
    elif isinstance(item, FUNCTIONS):
        to.functions.append(Caller(item))
    elif isinstance(item, (str, Op)):
        if to.functions and str(item).strip():
            raise usage(f"{item} comes after a function; put Stoker's ops first")
        to.text = f"{to.text} | {item}" if to.text else str(item)
    elif callable(item):
        _add_object(to, item)
    else:
        raise usage(f"transform contains a {type(item).__name__}; it may contain ops, strings and functions")


class Albumentations:
    """A transform of albumentations as a function of an image."""

    def __init__(self, transform: Any, why: Sequence[str] = ()) -> None:
        self.transform, self.why = transform, list(why)
        self.__name__ = f"albumentations.{type(transform).__name__}"

    def __call__(self, image: Any) -> Any:
        if image.shape[-1] > 4:
            raise usage("albumentations takes images of (height, width, channels); pass layout='NHWC'")
        self.transform.set_random_seed(random.getrandbits(31))  # it has generators of its own
        return self.transform(image=np.asarray(image))["image"]


def _add_pipeline(to: Transform, item: Any) -> None:
    """A pipeline of albumentations, whose first steps become ops if nothing precedes them."""
    walk, left, why = _convert_albumentations.transform(item)
    if left and getattr(item, "processors", None):
        raise usage(f"boxes and keypoints follow the ops of Stoker only, and there is no op for {why}")
    if to.text or to.functions or left[:1] == [item] or (left and not walk.to.ops):
        to.functions.append(Caller(Albumentations(item, [why] if why and not to.text else ())))
        return
    if left and not walk.to.sized:
        raise usage(f"images differ in size before {why.partition(':')[0]}, which runs in Python; put a crop before it")
    to.dtype, to.rows = walk.to.dtype or "uint8", not walk.planes
    for op in walk.to.ops:
        _add(to, op)
    if left:
        rest = copy.copy(item)
        rest.transforms = left
        to.partly, to.dtype = True, "uint8"
        to.functions.append(Caller(Albumentations(rest, [why])))


def _add_object(to: Transform, item: Any) -> None:
    if _convert_albumentations.is_pipeline(item):
        return _add_pipeline(to, item)
    converted = _convert.transform(item)
    if converted is not None:
        _add_converted(to, item, converted)
    elif type(item).__module__.split(".")[0] in FRAMEWORKS:
        raise usage(
            f"Stoker cannot convert {type(item).__module__}.{type(item).__name__}; wrap it in a function, or pass the "
            "dataset that uses it"
        )
    else:
        to.functions.append(Caller(item))


def _add_converted(to: Transform, item: Any, converted: Converted) -> None:
    rest = converted.rest
    if to.functions:
        to.functions.append(Caller(item))
        return
    if rest and not converted.sized and not to.text:
        raise usage(
            f"Stoker has no op {rest.__name__.partition(',')[0]}, and images differ in size before it: put a crop "
            "before it, or pass the dataset (ImageFolder) instead of the path"
        )
    to.foreign, to.dtype = True, converted.dtype
    to.originals.append(Caller(item))
    for op in converted.ops:
        _add(to, op)
    if rest:
        to.partly, to.rows = True, rest.form == PIL
        to.functions.append(Caller(rest))


def _views(pipelines: Mapping[str, Any]) -> Transform:
    """The pipelines of several views, by name."""
    parts = {name: transform_of(one) for name, one in pipelines.items()}
    for name, part in parts.items():
        if part.functions:
            reasons = getattr(part.functions[0].function, "why", None) or [part.functions[0].name]
            raise usage(f"the view {name} needs Python, but several views run in C only; no op for {reasons[0]}")
    dtypes = {part.dtype for part in parts.values() if part.dtype}
    if len(dtypes) > 1:
        raise usage(f"the views have different types, {' and '.join(sorted(dtypes))}; give all of them one type")
    text = " ; ".join(f"{name}: {part.text or 'Identity'}" for name, part in parts.items())
    return Transform(text, foreign=any(p.foreign for p in parts.values()), dtype=next(iter(dtypes), None))


def transform_of(transform: Any) -> Transform:
    """Splits a transform into ops for the engine and functions. A dict has the pipelines of several views.

    >>> import stoker
    >>> transform_of([stoker.Resize(8), "CenterCrop(8)"]).text
    'Resize(8) | CenterCrop(8)'
    >>> transform_of({"a": "CenterCrop(8)", "b*2": stoker.RandomCrop(8)}).text
    'a: CenterCrop(8) ; b*2: RandomCrop(8)'
    """
    if isinstance(transform, Mapping):
        return _views(transform)
    to = Transform()
    if transform is None:
        return to
    if (several := _convert.views(transform)) is not None:
        pipelines = {f"view{i}": view for i, view in enumerate(several[0])}
        if all((one := _convert.transform(view)) is not None and one.rest is None for view in several[0]):
            return _views(pipelines)
    for item in transform if isinstance(transform, (list, tuple)) else [transform]:
        _add(to, item)
    return to


# ---------------------------------------------------------------- sources


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _kind_of(value: Any) -> str:
    return "a single number" if getattr(value, "ndim", None) == 0 else f"of type {type(value).__name__}"


def _as_numpy(name: str, value: Any) -> np.ndarray[Any, Any]:
    if np.ma.is_masked(value):
        raise usage(f"the array {name} has masked values; fill them first: {name}.filled(value)")
    try:
        array = np.asarray(value) if hasattr(value, "__array__") or _is_list(value) else np.from_dlpack(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise usage(f"the array {name} cannot be read: {error}") from error
    if array.ndim == 0:
        raise usage(f"{name} is {_kind_of(value)}; it must be an array with one row for each sample")
    return array


def _array(name: str, value: Any) -> tuple[str, int, Any]:
    kind = ""
    if hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise usage(f"the tensor {name} is on {value.device}; move it to host memory: {name}.cpu()")
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            kind, value = "bfloat16", value.view(framework("torch").uint16)
    array = _as_numpy(name, value)
    kind = kind or array.dtype.name
    if kind not in DTYPE_CODES:
        raise usage(f"the array {name} has the dtype {array.dtype}; it must have numbers or bool")
    if not array.dtype.isnative:
        raise usage(f"the array {name} is not in the byte order of this machine; convert it: astype({kind!r})")
    if any(stride % array.itemsize for stride in array.strides):  # the engine takes strides in elements
        array = np.ascontiguousarray(array)
    return name, DTYPE_CODES[kind], array


def _from_arrays(arrays: Mapping[str, Any]) -> Given:
    listed = [_array(name, value) for name, value in arrays.items()]
    lengths = {name: len(a) for name, _, a in listed}
    if len(set(lengths.values())) > 1:
        raise usage("the arrays differ in length: " + ", ".join(f"{k} {n}" for k, n in lengths.items()))
    return Given({"arrays": listed})


def _from_tensors(source: Any, transform: Transform) -> Given | None:
    """The tensors of a TensorDataset. "y" is renamed where the engine would make int64 labels of it."""
    found = None if transform.text or transform.functions else _convert_dataset.tensors(source)
    if found is None:
        return None
    names = ["x", "y"] if len(found[0]) <= 2 else [f"array{i}" for i in range(len(found[0]))]
    arrays = dict(zip(names, found[0], strict=False))
    if "y" in arrays and (y := arrays["y"]).ndim == 1 and not y.is_floating_point() and str(y.dtype) != "torch.int64":
        arrays["target"] = arrays.pop("y")
    given = _from_arrays(arrays)
    if found[1] is not None:
        given.options["subset"] = np.array(found[1], np.int64)
    return given


def _from_sequence(source: Sequence[Any]) -> Given | None:
    if isinstance(source, tuple) and any(_is_array(a) for a in source):
        names = ["x", "y"] if len(source) <= 2 else [f"array{i}" for i in range(len(source))]
        return _from_arrays(dict(zip(names, source, strict=False)))
    if source:
        check_split(source[0])
    if source and all(isinstance(p, (str, os.PathLike, Source)) or form_of(p) for p in source):
        if not all(is_plain(p) for p in source if form_of(p) == "dataset"):
            raise usage("a dataset with its own transform cannot be joined with others; remove the transform")
        check_text("source", source)
        joined = Source.joined(source)
        return Given(joined.options(), table=joined.table)
    return None


def _from_views(source: _convert_dataset.ConvertedDataset, transform: Transform) -> Given:
    """A dataset whose transform makes several views."""
    made = transform_of(source.transform)
    transform.text, transform.dtype, transform.foreign = made.text, made.dtype, True
    return Given(source.source.options(), foreign=True)


def _from_set(source: Any, transform: Transform, whole: bool, any_size: bool) -> Given | None:
    """A dataset that Stoker reads itself; its own transform runs before the loader's."""
    if isinstance(source, _convert_dataset.ConvertedDataset) and isinstance(source.beside, _convert_dataset.Views):
        return _from_views(source, transform)
    if (found := _convert_dataset.dataset(source, bool(transform.text), whole, any_size)) is None:
        return None
    converted_set, converted = found
    if converted is not None:
        first = Transform()
        _add_converted(first, converted_set.transform or same, converted)
        if first.functions and transform.text:
            raise usage(f"{transform.text} comes after a function in the dataset's transform; put Stoker's ops first")
        transform.text = " | ".join(t for t in (first.text, transform.text) if t)
        transform.functions[:0] = first.functions
        transform.partly |= first.partly
        transform.rows |= first.rows
        transform.dtype = transform.dtype or first.dtype
    return Given(converted_set.source.options(), foreign=True, table=converted_set.source.table)


def _functions_for(transform: Transform) -> list[Caller]:
    """The functions for samples that Python makes: other libraries' transforms run as they are."""
    if transform.originals:
        rest = [c for c in transform.functions if not isinstance(c.function, Rest)]
        transform.functions[:] = transform.originals + rest
        transform.text, transform.dtype, transform.partly = "", None, False
    return transform.functions


def length_of(dataset: Any) -> int:
    """len() of a dataset, with the user's own exception as the cause of ours."""
    try:
        return len(dataset)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise usage(f"len() of the {type(dataset).__name__} fails ({words}); __len__ must count its samples") from error


def _check_makes_samples(source: Any) -> None:
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        if length_of(source) == 0:
            raise usage(f"the source has no samples: it is an empty {type(source).__name__}")
    elif not hasattr(source, "__iter__"):
        what = "None" if source is None else f"of type {type(source).__name__}"
        raise usage(
            f"the source is {what}; pass a path, a Source, arrays, a dataset with __getitem__ and __len__, or an "
            "iterable of samples"
        )


def source_of(source: Any, whole: bool, transform: Transform, any_size: bool) -> Given:
    """whole: samples of datasets are passed on unchanged, for collate_fn; transform: for their first part; any_size:
    images may differ in size."""
    check_split(source)
    if (form := form_of(source)) and (form != "dataset" or (is_plain(source) and not transform.originals)):
        source = Source(source)
    if isinstance(source, (str, bytes, os.PathLike)):
        check_text("source", source)
        return Given({"source": os.fsdecode(source)})
    if isinstance(source, Source):
        return Given(source.options(), table=source.table)
    if _is_array(source):
        return _from_arrays({"x": source})
    if isinstance(source, Mapping) and source:
        others = [f"{k!r} is {_kind_of(v)}" for k, v in source.items() if not _is_array(v)]
        if others:
            raise usage(f"the source is a dict, so every value must be an array, but {others[0]}")
        return _from_arrays(source)
    if isinstance(source, type) or getattr(source, "ndim", 1) == 0:
        what = f"the class {source.__name__}; pass an object" if isinstance(source, type) else "a single number"
        raise usage(f"the source is {what}")
    if _is_list(source) and (given := _from_sequence(source)):
        return given
    if (given := _from_tensors(source, transform) or _from_set(source, transform, whole, any_size)) is not None:
        return given
    _check_makes_samples(source)
    if transform.text and not transform.originals:
        raise usage(
            f"{transform.text}: ops work on images that Stoker reads itself, but {type(source).__name__} makes its "
            "samples in Python; pass a torchvision transform instead, or the folder, list or array of the images"
        )
    functions = _functions_for(transform)
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        fill: Fill = MapFill(source, whole, functions)
        return Given({"fill": (fill, len(source), fill.fields)}, fill)
    fill = IterableFill(source, whole, functions)
    return Given({"fill": (fill, IterableFill.COUNT, fill.fields)}, fill)
