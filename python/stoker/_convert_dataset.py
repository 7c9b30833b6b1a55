# SPDX-License-Identifier: Apache-2.0
"""Datasets that Stoker reads itself: ImageFolder, DatasetFolder, timm's ImageDataset, those of `_convert_vision` and
TensorDataset, datasets of Hugging Face with images, also in Subset, ConcatDataset, and in classes of the user that
add something to them.

They are recognised by their attributes and their code; torchvision and timm are not imported. In doubt a dataset runs
in Python: with the user's own loader, code that is not simple (see `_deferred`), or files that Stoker does not list.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from . import _convert_hub, _convert_vision
from ._convert import flat
from ._convert import transform as convert_transform
from ._convert import views as convert_views
from ._converted import PIL, Converted, is_known
from ._deferred import (
    Beside,
    Deferred,
    Partly,
    Rules,
    Untraceable,
    deferring,
    has_getitems,
    is_hub,
    is_simple,
    made_by,
    target_transforms,
)
from ._errors import Error
from ._joint import FIELDS, Joint, Shape
from ._ops_boxes import ConvertBoundingBoxFormat, WholeBoundingBoxes
from ._source import Source
from ._types import DTYPE_CODES

MOST_FIELDS, MOST_DIMS = 13, 9  # the engine's limits for arrays
MOST_VIEWS = 15  # with names of their own
FOLDER = "torchvision.datasets.folder"
TIMM = "timm.data.dataset", "timm.data.readers.reader_image_folder"


@dataclass
class ConvertedDataset:
    source: Source
    transform: Any  # of the dataset, or None
    paths: list[str]  # of all samples
    beside: Beside | Joint | Views | None = None  # makes samples; None: they are an image and the source's label
    labels: bool = True  # whether the source knows the labels
    exif: bool | None = None  # whether the dataset applies the orientation; None: it does not
    boxes: bool = False  # whether boxes become XYXY before all ops, as wrap_dataset_for_transforms_v2 does


class Views:
    """Samples of several views of an image and a label, made from batches of the engine."""

    words = "several views made in C; put into lists as the transform does"

    def __init__(self, n: int, kind: type) -> None:
        self.n, self.kind = n, kind
        self.fields = *(f"view{i}" for i in range(n)), "label"

    def assembled(self, collate: Callable[[Any], Any] | None, batched: bool) -> Callable[[Any], Any]:
        return _ViewsCollated(self.kind, collate, batched)


class _ViewsCollated:
    """collate: the user's; None: torch's."""

    def __init__(self, kind: type, collate: Callable[[Any], Any] | None, batched: bool) -> None:
        self.kind, self.collate, self.batched = kind, collate, batched

    def __call__(self, batch: Any) -> Any:
        *views, labels = batch
        if self.collate is None:
            return [list(views), labels]
        rows = [(self.kind([v[i] for v in views]), label) for i, label in enumerate(labels.tolist())]
        return self.collate(rows if self.batched else rows[0])


def _views(thing: Any, found: ConvertedDataset) -> ConvertedDataset | None:
    """A dataset whose transform makes several views, all of them in C."""
    if not (found.labels and _is_plain(thing)) or (several := convert_views(found.transform)) is None:
        return None
    converted = [convert_transform(view) for view in several[0]]
    good = [c for c in converted if c is not None and c.sized and c.rest is None and not c.crops and c.form != PIL]
    if len(good) != len(several[0]) or len({c.dtype for c in good}) > 1 or len(good) > MOST_VIEWS:
        return None
    return replace(found, beside=Views(len(good), several[1]))


def _folder_source(root: str, paths: list[str], classes: Any, prefix: str = "") -> Source | None:
    """The files of a dataset, in its order."""
    below = os.path.join(root, "")
    if not paths or not all(path.startswith(below) for path in paths):
        return None
    source = Source.without_exif(prefix + root, classes)
    try:
        keys = source.keys
    except Error:
        return None
    wanted = [path[len(below) :] for path in paths]
    if keys == wanted:
        return source
    numbers = {key: i for i, key in enumerate(keys)}
    return source.subset([numbers[key] for key in wanted]) if all(key in numbers for key in wanted) else None


def _folder(dataset: Any) -> ConvertedDataset | None:
    """An ImageFolder or DatasetFolder that opens images as torchvision does."""
    if not made_by(getattr(dataset, "loader", None), "default_loader", FOLDER):
        return None
    paths = [os.fspath(path) for path, _ in dataset.samples]
    ordered = list(dataset.class_to_idx.items()) == [(name, i) for i, name in enumerate(dataset.classes)]
    source = _folder_source(os.fspath(dataset.root), paths, dataset.classes if ordered else None)
    if source is None:
        return None
    same = ordered and np.array_equal(source.labels, np.array([y for _, y in dataset.samples], np.int64))
    return ConvertedDataset(source, dataset.transform, paths, labels=same)


class TimmSamples:
    """What timm's ImageDataset returns, with a placeholder for the image."""

    def __init__(self, samples: list[tuple[str, int]], target_transform: Any, transform: Any) -> None:
        self.samples, self.target_transform, self.steps = samples, target_transform, (transform,)

    def __getitem__(self, i: int) -> Any:
        path, label = self.samples[i]
        label = self.target_transform(label) if self.target_transform is not None else label
        return Deferred(path, self.steps if self.steps[0] is not None else ()), label


def _timm(dataset: Any) -> ConvertedDataset | None:
    reader = dataset.reader
    plain = made_by(getattr(type(reader), "__getitem__", None), "ReaderImageFolder.__getitem__", TIMM[1])
    if not plain or dataset.load_bytes or dataset.input_img_mode != "RGB" or dataset.additional_features is not None:
        return None
    paths = [os.fspath(path) for path, _ in reader.samples]
    source = _folder_source(os.fspath(reader.root), paths, None)
    if source is None:
        return None
    return ConvertedDataset(source, dataset.transform, paths, labels=False)


def _vision(dataset: Any) -> ConvertedDataset | None:
    if (found := _convert_vision.files_of(dataset)) is None or not found[0]:
        return None
    paths, transform = found
    source = _folder_source(os.path.commonpath([os.path.dirname(p) for p in paths]), paths, None, "files:")
    return None if source is None else ConvertedDataset(source, transform, paths, labels=False)


def _hub(dataset: Any) -> ConvertedDataset | None:
    if len(dataset) == 0 or _convert_hub.image_of(dataset) is None:
        return None
    try:
        source = Source.joined([dataset])
    except Error:
        return None
    return ConvertedDataset(source, None, list(map(str, range(len(dataset)))), labels=False, exif=True)


def _sum(parts: list[ConvertedDataset]) -> ConvertedDataset | None:
    first = parts[0].transform
    if any(p.exif is not parts[0].exif for p in parts) or parts[0].source.table is not None:
        return None
    others = [p.transform for p in parts if p.transform is not first]
    if others and (_ops_of(first) is None or any(_ops_of(t) != _ops_of(first) for t in others)):
        return None
    source = reduce(add, (p.source for p in parts))
    same = np.array_equal(source.labels, np.concatenate([p.source.labels for p in parts]))
    paths = [path for p in parts for path in p.paths]
    return ConvertedDataset(source, first, paths, labels=same and all(p.labels for p in parts))


def _ops_of(transform: Any) -> tuple[Any, ...] | None:
    """What a transform does, with all its parameters; its repr may leave some out. None: it runs Python code."""
    if transform is None:
        return ()
    converted = convert_transform(transform)
    if converted is None or converted.rest is not None:
        return None
    return (*map(str, converted.ops), converted.dtype, converted.form)


def _search(dataset: Any, depth: int = 5) -> ConvertedDataset | None:
    """The files of a dataset, or of the only one that it contains."""
    found = _found(dataset)
    if found is not None or depth == 0 or not hasattr(dataset, "__getitem__"):
        return found
    below = [v for v in getattr(dataset, "__dict__", {}).values() if hasattr(v, "__getitem__")]
    inner = [one for v in below if (one := _search(v, depth - 1)) is not None]
    return inner[0] if len(inner) == 1 else None


def _found(dataset: Any) -> ConvertedDataset | None:
    """The files of a dataset, and its transform as far as its attributes say."""
    if isinstance(dataset, ConvertedDataset):
        return dataset
    getitem = getattr(type(dataset), "__getitem__", None)
    if made_by(getitem, "Subset.__getitem__", "torch.utils.data.dataset"):
        whole, indices = _found(dataset.dataset), [int(i) for i in dataset.indices]
        return whole and replace(
            whole, source=whole.source.subset(indices), paths=[whole.paths[i] for i in indices], beside=None
        )
    if made_by(getitem, "ConcatDataset.__getitem__", "torch.utils.data.dataset"):
        parts = [_found(d) for d in dataset.datasets]
        good = [p for p in parts if p is not None]
        return _sum(good) if len(good) == len(parts) else None
    if made_by(getitem, "ImageDataset.__getitem__", TIMM[0]):
        return _timm(dataset)
    if _convert_vision.is_one(dataset):
        return _vision(dataset)
    if is_hub(dataset):
        return _hub(dataset)
    return _folder(dataset) if any(made_by(kind, "DatasetFolder", FOLDER) for kind in type(dataset).__mro__) else None


def _is_plain(dataset: Any) -> bool:
    """Whether samples are an image and the label that the source knows: all code is torch's and torchvision's."""
    getitem = getattr(type(dataset), "__getitem__", None)
    if has_getitems(dataset):
        return False
    if made_by(getitem, "Subset.__getitem__", "torch.utils.data.dataset"):
        return _is_plain(dataset.dataset)
    if made_by(getitem, "ConcatDataset.__getitem__", "torch.utils.data.dataset"):
        return all(_is_plain(d) for d in dataset.datasets)
    length = getattr(type(dataset), "__len__", None)
    torchvisions = made_by(getitem, "DatasetFolder.__getitem__", FOLDER) and made_by(
        length, "DatasetFolder.__len__", FOLDER
    )
    return torchvisions and dataset.target_transform is None


def _is_transform(value: Any) -> bool:
    return convert_transform(value) is not None


def _copy(dataset: Any, labels: bool) -> Any:
    """The dataset with placeholders for its images; labels: call the user's target_transform."""
    if made_by(getattr(type(dataset), "__getitem__", None), "ImageDataset.__getitem__", TIMM[0]):
        return TimmSamples(dataset.reader.samples, dataset.target_transform if labels else None, dataset.transform)
    if (vision := _convert_vision.samples(dataset, labels)) is not None:
        return vision
    if is_hub(dataset):
        return _convert_hub.samples(dataset, _is_transform)
    return deferring(dataset, Rules(partial(_copy, labels=labels), _is_transform, labels))


def _traced(dataset: Any, found: ConvertedDataset) -> ConvertedDataset | None:
    """With what the dataset's own code returns, and the transforms that it calls; None: the code is not simple."""
    try:
        beside = Beside(_copy(dataset, True), found.paths)
        beside.trace(_copy(dataset, False))
    except Untraceable:
        return None
    steps = beside.steps
    if (shape := Shape(list(flat(list(steps))))).image:
        beside.image_of = shape.image_of
    return replace(found, beside=beside, transform=steps[0] if len(steps) == 1 else list(steps) or None)


def dataset(
    thing: Any, more: bool = False, whole: bool = False, any_size: bool = False
) -> tuple[ConvertedDataset, Converted | None] | None:
    """The source and the transform of a dataset that Stoker reads itself; None: it runs in Python.

    more: ops follow, which may give all images one size. whole: a collate_fn expects the dataset's own samples.
    any_size: images may differ in size.

    >>> dataset([1, 2, 3]) is None
    True
    """
    if (more or not whole) and (annotated := _annotated(thing)) is not None:
        if annotated.transform is None:
            return annotated, Converted([ConvertBoundingBoxFormat("XYXY")]) if annotated.boxes else None
        sized = _sized(annotated, more or any_size)  # functions in Python would miss the annotations
        return None if sized is None or (sized[1] is not None and sized[1].rest is not None) else sized
    found = _found(thing)
    return None if found is None else _as_ops(thing, found, more or any_size)


def _annotated(dataset: Any) -> ConvertedDataset | None:
    """A dataset whose annotations the engine reads as well."""
    if (found := _convert_vision.fields_of(dataset)) is None:
        return None
    name, wanted, transform = found
    boxes = name.startswith("coco:") and _convert_vision.is_wrapped(dataset)
    return ConvertedDataset(_source_of(name, wanted), transform, [], boxes=boxes)


def _source_of(name: str, wanted: list[str] | list[int] | None) -> Source:
    """A source, and the samples of it with these keys or indices; None: all."""
    source = Source.without_exif(name, None)
    if wanted is None:
        return source
    if wanted and isinstance(wanted[0], str):
        numbers = {key: i for i, key in enumerate(source.keys)}
        return source.subset([numbers[str(key)] for key in wanted])
    return source.subset([int(i) for i in wanted])


def _as_ops(thing: Any, found: ConvertedDataset, more: bool) -> tuple[ConvertedDataset, Converted | None] | None:
    if not isinstance(thing, ConvertedDataset) and not (found.labels and _is_plain(thing)):
        return None
    return _sized(found, more)


def _joint(thing: Any) -> tuple[ConvertedDataset, Converted] | str:
    """A dataset of wrap_dataset_for_transforms_v2, or a Subset of one, whose targets follow in C; or why they do not;
    "": it is another dataset."""
    indices, outer = None, thing
    while made_by(getattr(type(outer), "__getitem__", None), "Subset.__getitem__", "torch.utils.data.dataset"):
        chosen = [int(i) for i in outer.indices]
        indices = chosen if indices is None else [chosen[i] for i in indices]
        outer = outer.dataset
    if not _convert_vision.is_wrapped(outer) or has_getitems(thing):
        return ""
    inner = outer._dataset
    if (name := _convert_vision.name_of(inner)) not in FIELDS:
        return "no source of Stoker's has the annotations of this class"
    if outer.transforms is None or (converted := convert_transform(outer.transforms)) is None:
        return "its transforms are not torchvision's transforms v2"
    joint = Joint(outer, name, converted)
    if why := joint.why_not(converted):
        return why
    if (found := _convert_vision.source_of(inner, "masks" in joint.keys)) is None:
        return "its annotations are not where Stoker would look"
    try:
        source = _source_of(*found)
        joint.indices = source.places()
        same = joint.indices is not None and joint.agrees(source)
        source = source if indices is None else source.subset(indices)
    except (Error, LookupError) as error:
        return f"its annotations cannot be read in C: {error}"
    if not same or len(source) != len(thing):
        return "its files differ from what Stoker finds in the folder"
    boxes = name == "CocoDetection" and "boxes" in joint.keys
    return ConvertedDataset(source, outer.transforms, [], joint, boxes=boxes), converted


def _sized(found: ConvertedDataset, more: bool) -> tuple[ConvertedDataset, Converted | None] | None:
    if found.transform is None:  # without ops, samples are Pillow images
        return (found, None) if more else None
    converted = convert_transform(found.transform)
    open_sizes = (more or isinstance(found.beside, Joint)) and converted is not None and converted.rest is None
    if converted is None or not (converted.sized or open_sizes):
        return None
    if found.boxes:
        converted.ops.insert(0, ConvertBoundingBoxFormat("XYXY"))
    if isinstance(found.beside, Joint) and found.beside.whole:
        converted.ops.insert(0, WholeBoundingBoxes())
    return found, converted


def drop_in(thing: Any) -> tuple[ConvertedDataset | Partly, Converted | None] | None:
    """How DataLoader reads a dataset: in C, or partly in C; None: it runs in Python.

    >>> drop_in([1, 2, 3]) is None
    True
    """
    if not isinstance(joint := _joint(thing), str):
        return joint
    found = _search(thing)
    if found is None or not hasattr(thing, "__len__") or len(thing) != len(found.paths):
        return None
    if (plain := _as_ops(thing, found, False)) is not None:
        return None if _apart(plain[1]) else plain
    if (several := _views(thing, found)) is not None:
        return several, None
    traced = _traced(thing, found)
    if traced is None or traced.transform is None or (converted := convert_transform(traced.transform)) is None:
        return None
    if _apart(converted):
        return None
    assert isinstance(traced.beside, Beside)
    indices = traced.source.places()
    simple = all(is_simple(f, arithmetic=True) for f in target_transforms(thing))
    simple = simple and not _convert_vision.is_heavy(thing)
    if converted.sized and simple and indices is not None:
        traced.beside.indices = indices
        return traced, converted
    return Partly(traced.beside, traced.source, converted.parts()), converted


def _apart(converted: Converted | None) -> bool:
    """Whether samples are tuples of crops, which the engine would stack."""
    return converted is not None and converted.crops == "apart"


def _mark(value: Any) -> Any:
    """Changes with a value, as far as that can be seen quickly."""
    if type(value) in (list, tuple):
        return tuple(map(id, value))
    if type(value) is np.ndarray and value.nbytes < 1 << 24:
        return value.tobytes()
    is_transform = convert_transform(value) is not None and not type(value).__module__.endswith(".vision")
    return tuple(map(_mark_of_step, flat(value))) if is_transform else id(value)


def _mark_of_step(step: Any) -> Any:
    """Changes with the attributes of a library's transform. The user's own is called as it is."""
    if not is_known(step):
        return id(step)
    try:
        return pickle.dumps(step)
    except Exception:  # it contains a function of the user
        return id(step), repr(step)


def signature(thing: Any, depth: int = 5) -> tuple[Any, ...]:
    """Changes with what a dataset was recognised by: other transforms, other samples.

    >>> signature(samples := [1, 2]) == signature(samples)
    True
    """
    attributes = getattr(thing, "__dict__", {})
    values = [w for v in attributes.values() for w in (v[:100] if type(v) is list else [v])]
    below = [v for v in values if depth and hasattr(v, "__getitem__") and hasattr(v, "__dict__")]
    used = _convert_hub.used(_convert_hub.function_of(thing)) if is_hub(thing) else ()
    marks = [(k, _mark(v)) for k, v in (*attributes.items(), *used)]
    return id(thing), *marks, *(signature(v, depth - 1) for v in below)


def why_not(thing: Any) -> str:
    """Why a torchvision folder or a dataset of Hugging Face runs in Python; "" for other datasets.

    >>> why_not([1, 2, 3])
    ''
    """
    if not isinstance(why := _joint(thing), str):
        return 'its transforms give images of different sizes; set sizes="pad" or sizes="list"'
    if why:
        return why
    if why := _convert_vision.why_not(thing):
        return why
    if is_hub(thing):
        return _convert_hub.why_not(thing, _is_transform)
    if not any(made_by(kind, "DatasetFolder", FOLDER) for kind in type(thing).__mro__):
        return ""
    if not made_by(thing.loader, "default_loader", FOLDER):
        return "its loader is not torchvision's"
    found = _found(thing)
    if found is None:
        return "its files differ from what Stoker finds in the folder"
    if thing.transform is None:
        return "it has no transform"
    if convert_transform(thing.transform) is None:
        return "its transform is not torchvision's"
    if not _is_plain(thing) and _traced(thing, found) is None:
        return "its __getitem__ does more than add to torchvision's sample"
    if not found.labels:
        return "its classes differ from the folders"
    if _apart(convert_transform(thing.transform)):
        return "its samples are tuples of crops; stack them with a Lambda, and they are made in C"
    return "its transform runs Python code before all images have one size"


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
    if has_getitems(thing):
        return None
    if made_by(getitem, "Subset.__getitem__", "torch.utils.data.dataset"):
        found = tensors(thing.dataset)
        if found is None:
            return None
        rows = range(len(found[0][0])) if found[1] is None else found[1]
        return found[0], [rows[int(i)] for i in thing.indices]
    if not made_by(getitem, "TensorDataset.__getitem__", "torch.utils.data.dataset"):
        return None
    good = 0 < len(thing.tensors) <= MOST_FIELDS and all(_plain(t) for t in thing.tensors)
    return (tuple(thing.tensors), None) if good else None
