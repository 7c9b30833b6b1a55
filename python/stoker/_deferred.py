# SPDX-License-Identifier: Apache-2.0
"""Datasets whose own code runs on placeholders, so that the engine can read the images.

A shallow copy of the dataset gets another loader of images, and other transforms: they only record their arguments. The
dataset's own `__getitem__` then runs for every sample, on the copy. It returns what it always returns, with a
placeholder where the image would be. So labels, paths, indices and `target_transform` are the dataset's own.

This is right if the code does nothing else to the image, changes nothing, and costs little. `is_simple` checks that by
its bytecode, which may only read attributes, index them, build tuples and dicts, and call the dataset's transforms. Any
other code runs in Python as before. A placeholder also knows its file, which is compared with the file that the engine
reads, for every sample.
"""

from __future__ import annotations

import builtins
import dis
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ._errors import DataError
from ._output import framework

_DATA = (type(None), bool, int, float, str, bytes, tuple, list, dict, range, np.ndarray)
_CALLED = {"super", "int", "str", "float", "bool", "len", "tuple", "list", "dict", "abs", "min", "max", "round", "zip"}
_MODULES = ("os", "posixpath", "torch", "numpy")
# Attributes of strings, paths, tensors and modules that only compute something.
_PURE = {"__getitem__", "path", "basename", "dirname", "splitext", "split", "stem", "name", "parent", "get"}
_PURE |= {"tensor", "as_tensor", "long", "int64", "float32", "convert"}
_STEPS = {
    *("RESUME", "NOP", "CACHE", "PRECALL", "PUSH_NULL", "POP_TOP", "COPY", "SWAP", "KW_NAMES", "COPY_FREE_VARS"),
    *("LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_CHECK"),
    *("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_ATTR"),
    *("LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_GLOBAL", "LOAD_DEREF", "CALL", "CALL_KW", "UNPACK_SEQUENCE"),
    *("BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "LIST_EXTEND", "LIST_APPEND"),
    *("LIST_TO_TUPLE", "CALL_INTRINSIC_1", "BINARY_SUBSCR", "RETURN_VALUE", "RETURN_CONST", "IS_OP", "TO_BOOL"),
    *("JUMP_FORWARD", "NOT_TAKEN", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"),
    *("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE"),
}
_JUMPS = {"POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE"}
_LOOPS = {
    *("MAKE_FUNCTION", "GET_ITER", "FOR_ITER", "JUMP_BACKWARD", "END_FOR", "POP_ITER", "LOAD_FAST_AND_CLEAR"),
    *("LOAD_CLOSURE", "MAKE_CELL", "STORE_DEREF", "MAP_ADD", "STORE_SUBSCR", "DELETE_SUBSCR", "RERAISE"),
}
_ARITHMETIC = {"BINARY_OP", "COMPARE_OP", "CONTAINS_OP", "UNARY_NEGATIVE", "UNARY_NOT", *_JUMPS}


class Untraceable(Exception):
    """The dataset's code does something that a placeholder cannot stand for."""


class Deferred:
    """Stands for an image: its file, and the transforms that follow."""

    __slots__ = ("path", "steps")

    def __init__(self, path: Any, steps: tuple[Any, ...] = ()) -> None:
        self.path, self.steps = path, steps

    def convert(self, mode: str) -> Deferred:
        """As Pillow's; the engine's images are RGB."""
        if mode != "RGB" or self.steps:
            raise Untraceable
        return self


class Recorder:
    """Stands for a transform."""

    __slots__ = ("transform",)

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __call__(self, image: Any) -> Deferred:
        if type(image) is not Deferred:
            raise Untraceable
        return Deferred(image.path, (*image.steps, self.transform))


# ---------------------------------------------------------------- code


def _may_load(value: Any) -> bool:
    """Whether code may use this global or closure variable."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in _MODULES
    named = getattr(value, "__name__", "")
    path = getattr(sys.modules.get("pathlib"), "Path", 0)
    called = named in _CALLED and value is getattr(builtins, named, 0)
    return called or value is path or type(value) in (*_DATA, Recorder)


def _attribute_is_pure(owner: Any, name: str) -> bool:
    """Whether reading `self.name`, or `name` of a value, runs no code of the user."""
    if name in vars(owner) if hasattr(owner, "__dict__") else False:
        return True
    return name in _PURE and (name == "__getitem__" or not hasattr(type(owner), name))


def code_of(function: types.FunctionType) -> Iterator[types.CodeType]:
    """The code of a function, and of comprehensions and functions in it."""
    level = [function.__code__]
    for code in level:
        yield code
        level += [value for value in code.co_consts if isinstance(value, types.CodeType)]


def _variables_are_plain(function: types.FunctionType, owner: Any) -> bool:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    if not all(name == "__class__" or _may_load(cell.cell_contents) for name, cell in cells):
        return False
    loaded = {i.argval for code in code_of(function) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    space = {**vars(builtins), **function.__globals__}
    own = type(owner).__mro__  # super(Class, self)
    return all(name in space and (_may_load(space[name]) or space[name] in own) for name in loaded)


def is_simple(function: Any, owner: Any = None, arithmetic: bool = False, loops: bool = False) -> bool:
    """Whether a function only reads, indexes and builds values, and calls attributes of `owner`.

    arithmetic: it may also compute and decide, as a function of a label does. loops: it may also go through lists, and
    change what it was given.

    >>> is_simple(lambda self, i: (self[i], i)), is_simple(lambda i: print(i)), is_simple(lambda y: y + 1)
    (True, False, False)
    >>> is_simple(lambda y: y + 1, arithmetic=True)
    True
    """
    if function in (int, float, str, bool):
        return True
    if isinstance(function, types.BuiltinMethodType):  # classes.index, a dict's get
        return type(function.__self__) in (dict, list) and function.__name__ in ("get", "__getitem__", "index")
    if not isinstance(function, types.FunctionType) or not _variables_are_plain(function, owner):
        return False
    allowed = _STEPS | (_ARITHMETIC if arithmetic else set()) | (_LOOPS if loops else set())
    codes = list(code_of(function)) if loops else [function.__code__]
    return all(_steps_are_simple(code, owner, allowed) for code in codes)


def _steps_are_simple(code: types.CodeType, owner: Any, allowed: set[str]) -> bool:
    before = ""
    for i in dis.get_instructions(code):
        joined = i.opname == "BINARY_OP" and (i.argrepr == "[]" or (i.argrepr == "+" and before == "BUILD_TUPLE"))
        decided = i.opname in _JUMPS and before in ("LOAD_ATTR", "TO_BOOL", "IS_OP")
        if not (i.opname in allowed or joined or decided):
            return False
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD") and not _attribute_is_pure(owner, i.argval):
            return False
        before = before if i.opname in ("CACHE", "TO_BOOL", "PRECALL") else i.opname
    return True


# ---------------------------------------------------------------- datasets


def made_by(function: Any, qualname: str, module: str) -> bool:
    return getattr(function, "__qualname__", "") == qualname and getattr(function, "__module__", "") == module


def has_getitems(dataset: Any) -> bool:
    """Whether the dataset's own code makes all samples of a batch together. torch's Subset has none of its own."""
    together = getattr(dataset, "__getitems__", None)
    if made_by(together, "Subset.__getitems__", "torch.utils.data.dataset"):
        return has_getitems(dataset.dataset)
    return callable(together)


KNOWN = {
    "Subset.__getitem__": "torch.utils.data.dataset",
    "ConcatDataset.__getitem__": "torch.utils.data.dataset",
    "DatasetFolder.__getitem__": "torchvision.datasets.folder",
}


def _code_is_simple(dataset: Any) -> bool:
    """Whether the code of __getitem__, and of those that it extends, is known or simple."""
    kind = type(dataset)
    if has_getitems(dataset):
        return False
    if any("__getattribute__" in vars(base) or "__getattr__" in vars(base) for base in kind.__mro__[:-1]):
        return False
    for base in kind.__mro__:
        function = vars(base).get("__getitem__")
        if function is None:
            continue
        if any(made_by(function, name, module) for name, module in KNOWN.items()):
            return True
        if not is_simple(function, dataset):
            return False
        if "super" not in function.__code__.co_names:
            return True
    return False


def is_hub(dataset: Any) -> bool:
    """Whether it is a dataset of Hugging Face."""
    return made_by(getattr(type(dataset), "__getitem__", None), "Dataset.__getitem__", "datasets.arrow_dataset")


def _is_dataset(value: Any) -> bool:
    return isinstance(value, framework("torch.utils.data").Dataset) or is_hub(value)


class Rules(NamedTuple):
    """How attributes of a dataset are replaced."""

    copy: Callable[[Any], Any]  # for datasets below it
    is_transform: Callable[[Any], bool]  # whether ops may replace it
    labels: bool  # whether to call the user's target_transform


def same(value: Any) -> Any:
    """A target_transform, or any function, that does nothing."""
    return value


def _replaced(name: str, value: Any, rules: Rules) -> Any:
    if name == "target_transform":
        return value if rules.labels or value is None else same
    if made_by(value, "default_loader", "torchvision.datasets.folder"):
        return Deferred
    if _is_dataset(value):
        return rules.copy(value)
    if type(value) is list and value and all(_is_dataset(v) for v in value):
        return [rules.copy(v) for v in value]
    return Recorder(value) if rules.is_transform(value) else value


def deferring(dataset: Any, rules: Rules) -> Any:
    """A copy of a dataset that returns placeholders for its images. Fails with Untraceable."""
    if not hasattr(dataset, "__dict__") or not _code_is_simple(dataset):
        raise Untraceable
    copy = object.__new__(type(dataset))
    for name, value in vars(dataset).items():
        copy.__dict__[name] = _replaced(name, value, rules)
        other = callable(value) and copy.__dict__[name] is value and not isinstance(value, type)
        if other and name != "target_transform" and name in _names_used(dataset):
            raise Untraceable
    return copy


def _names_used(dataset: Any) -> set[str]:
    functions = [vars(base).get("__getitem__") for base in type(dataset).__mro__]
    return {name for f in functions if isinstance(f, types.FunctionType) for name in f.__code__.co_names}


def target_transforms(dataset: Any) -> Iterator[Any]:
    """The functions of labels in a dataset, and in those below it."""
    for name, value in getattr(dataset, "__dict__", {}).items():
        if name == "target_transform" and value is not None:
            yield value
        for below in value if type(value) is list else [value]:
            if _is_dataset(below):
                yield from target_transforms(below)


# ---------------------------------------------------------------- samples


def placeholders(sample: Any) -> Iterator[Deferred]:
    """The placeholders in a sample.

    >>> [d.path for d in placeholders(({"image": Deferred("a.png")}, 3))]
    ['a.png']
    """
    if isinstance(sample, Deferred):
        yield sample
    elif isinstance(sample, Mapping):
        for value in sample.values():
            yield from placeholders(value)
    elif isinstance(sample, (tuple, list)):
        for value in sample:
            yield from placeholders(value)


def with_image(sample: Any, image: Any) -> Any:
    """The sample with the image in place of the placeholder.

    >>> with_image((Deferred("a.png"), 3), "image")
    ('image', 3)
    """
    if type(sample) is Deferred:
        return image
    if isinstance(sample, Mapping):
        return type(sample)({key: with_image(value, image) for key, value in sample.items()})  # type: ignore[call-arg]
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*(with_image(value, image) for value in sample))
    if isinstance(sample, (tuple, list)):
        return type(sample)([with_image(value, image) for value in sample])
    return sample


class Beside:
    """What a dataset's own code returns, with placeholders; `paths` are the files that the engine reads."""

    fields = "image", "index"  # of the engine's batch

    def __init__(self, dataset: Any, paths: list[str]) -> None:
        self.dataset, self.paths = dataset, paths
        self.steps: tuple[Any, ...] = ()
        self.indices: Any = range(len(paths))  # of the dataset, for the indices of the engine
        self.image_of: Callable[[Any], Any] = same  # gives a tensor the type that the transforms give it

    def trace(self, dataset: Any) -> None:
        """Learns which transforms follow, from a few samples of another copy. Fails with Untraceable."""
        chosen = np.unique(np.linspace(0, len(self.paths) - 1, 16).astype(int)).tolist()
        try:
            self.steps = next(placeholders(dataset[0])).steps
            if not all(self._fits(i, dataset[i]) for i in chosen):
                raise Untraceable
        except Exception as error:
            raise Untraceable from error

    def assembled(self, collate: Callable[[Any], Any] | None, batched: bool) -> Callable[[Any], Any]:
        return Assembled(self, collate, batched)

    def _fits(self, i: int, sample: Any) -> bool:
        found = list(placeholders(sample))
        if len(found) != 1 or type(found[0]) is not Deferred or os.fspath(found[0].path) != self.paths[i]:
            return False
        steps = found[0].steps
        return len(steps) == len(self.steps) and all(a is b for a, b in zip(steps, self.steps, strict=True))

    def many(self, indices: list[int]) -> list[Any]:
        """Several samples."""
        together = getattr(self.dataset, "many", None)
        samples = together(indices) if together else [self.dataset[i] for i in indices]
        return [self._checked(i, sample) for i, sample in zip(indices, samples, strict=True)]

    def __getitem__(self, i: int) -> Any:
        return self._checked(i, self.dataset[i])

    def _checked(self, i: int, sample: Any) -> Any:
        if not self._fits(i, sample):
            raise DataError(
                f"{type(self.dataset).__name__} reads a different file for this sample than Stoker expected, or "
                "applies different transforms; use torch's DataLoader for this dataset",
                sample=i,
                path=self.paths[i],
                stage="read",
            )
        return sample


class Assembled:
    """Batches of a dataset: images of the engine, and what the dataset's own code returns beside them."""

    def __init__(self, beside: Beside, collate: Callable[[Any], Any] | None, batched: bool) -> None:
        """collate: the user's; None: torch's."""
        self.beside, self.collate, self.batched = beside, collate, batched

    def __call__(self, batch: Any) -> Any:
        images, indices = batch
        samples = self.beside.many([int(self.beside.indices[i]) for i in indices.tolist()])
        if self.collate is not None:
            kind = self.beside.image_of
            rows = [with_image(sample, kind(image)) for sample, image in zip(samples, images, strict=True)]
            return self.collate(rows if self.batched else rows[0])
        inner = framework("torch.utils.data._utils.collate")
        return inner.collate(samples, collate_fn_map={Deferred: _given(images), **inner.default_collate_fn_map})


def _given(images: Any) -> Callable[..., Any]:
    return lambda batch, *, collate_fn_map=None: images


class Partly:
    """A dataset whose images are read and decoded in C. What follows runs in Python, with ops of Stoker between."""

    def __init__(self, beside: Beside, source: Any, parts: list[Any]) -> None:
        self.beside, self.source, self.parts = beside, source, parts

    def __len__(self) -> int:
        return len(self.beside.paths)

    def __getitem__(self, i: int) -> Any:
        i = range(len(self))[i]
        image = self.source.pillow(i)
        for part in self.parts:
            image = part(image)
        return with_image(self.beside[i], self.beside.image_of(image) if hasattr(image, "permute") else image)
