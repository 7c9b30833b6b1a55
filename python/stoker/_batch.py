# SPDX-License-Identifier: Apache-2.0
"""The form of a batch: which fields it has, their names and their types."""

from __future__ import annotations

import collections
import functools
import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _output, _stoker
from ._errors import DataError, hint, usage
from ._fields import CASTS, COMPUTED, Wanted
from ._ragged import Padded, Ragged, row_of, rows_in
from ._rows import OWN, Fill
from ._types import A

Raw = tuple[_stoker.Memory, ...]


class Batch(tuple[A, ...]):
    """The type of a batch, for annotations: a named tuple whose arrays are of type A.

    >>> def mean(batch: stoker.Batch[np.ndarray]) -> float:
    ...     return float(batch.image.mean())
    >>> 0 < mean(next(iter(stoker.Loader(photos, "CenterCrop(8)", output="numpy")))) < 1
    True
    """

    image: A
    label: A
    position: A
    valid: A
    path: list[str]
    key: list[str]
    drawn: list[dict[str, Any]]
    _fields: tuple[str, ...]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Dict(dict[str, Any]):
    """A batch with the random draws of its rows."""

    drawn: list[dict[str, Any]]


@dataclass
class Column:
    """One field of a batch, and how it is made from the engine's arrays."""

    name: str  # in the engine
    called: str  # in the source
    cast: str  # converted in Python; "": not
    kind: str  # "image", "text", ...
    beside: tuple[str, ...]  # of ragged fields: "offsets", "lengths", "shapes"
    at: int  # index of its first array in a raw batch
    computed: Callable[[int], str] | None
    objects: bool  # Python objects, kept in Objects
    last: bool  # viewed as channels_last
    sizes: bool = field(default=False, kw_only=True)  # true heights and widths of padded images
    views: int = field(default=1, kw_only=True)  # ragged: rows for each sample
    convert: _output.Convert
    convert_beside: _output.Convert

    @property
    def arrays(self) -> tuple[str, ...]:
        return (self.name, *(f"{self.name}.{word}" for word in self.beside))


def strings(kind: str, values: Any, offsets: NDArray[np.int64]) -> list[Any]:
    """The rows of a ragged field of text, bytes or JSON.

    >>> strings("text", np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3]))
    ['a', 'bc']
    """
    data, ends = values.tobytes(), offsets.tolist()
    rows = [data[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    if kind == "bytes":
        return rows
    if kind == "text":
        return [row.decode(errors="surrogateescape") for row in rows]
    return [_object(row) for row in rows]


def _ragged(c: Column, arrays: list[Any]) -> Any:
    if c.beside[0] != "offsets":
        return Padded(*arrays)
    rows = Ragged(*arrays, views=c.views)
    return list(rows) if c.kind in ("image", "mask") else rows  # sizes="list"


def _object(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise DataError(f"invalid JSON: {text[:60]!r}: {error}", stage="read") from error


def attributes(names: Sequence[str]) -> list[str]:
    """Field names as attributes of a named tuple.

    >>> attributes(["image", "image/class/text", "seg.png", "0", "class", "_id"])
    ['image', 'image_class_text', 'seg_png', 'field_0', 'class_', 'id']
    """
    words = [re.sub(r"\W", "_", name).lstrip("_") for name in names]
    words = [word if word[:1].isalpha() else f"field_{word}" for word in words]
    return [f"{word}_" if keyword.iskeyword(word) else word for word in words]


def array_order(fields: Sequence[str], arrays: Sequence[tuple[str, int]]) -> list[int]:
    """Which array each field of the engine comes from.

    The engine puts the image and the label first and calls them so. It writes my_ before names that are its own.

    >>> array_order(["image", "label", "z", "my_key"], [("z", 1), ("y", 1), ("key", 2), ("x", 4)])
    [3, 1, 0, 2]
    """
    names = [f"my_{name}" if name not in fields and f"my_{name}" in fields else name for name, _ in arrays]
    renamed = sorted((i for i, name in enumerate(names) if name not in fields), key=lambda i: -arrays[i][1])
    return [names.index(name) if name in names else renamed.pop(0) for name in fields]


@functools.cache
def batch_type(names: tuple[str, ...]) -> Any:
    """The named tuple of a batch. It can be pickled."""
    make_type: Any = collections.namedtuple
    batch = make_type("Batch", names, rename=True)
    batch.__reduce__ = lambda self: (_batch_of, (names, tuple(self)))
    return batch


def _batch_of(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return batch_type(names)._make(values)


class Form:
    """Makes the user's batches from raw batches of the engine."""

    def __init__(
        self,
        handle: _stoker.Loader,
        wanted: list[Wanted] | None,
        arrays: Sequence[tuple[str, int]],
        as_dict: bool,
        output: str,
        layout: str,
        fill: Fill | None,
        collate: Callable[[list[Any]], Any] | None,
        batch_fn: Callable[[Any], Any] | None,
        pipelines: Mapping[str, int] | None = None,
    ) -> None:
        """arrays: names and dimensions of the arrays in memory that are the source, in the user's order.

        pipelines: the names of the pipelines of the ops, and how many images each makes.
        """
        self.about = {name: (dtype, shape, kind, tuple(beside)) for name, dtype, shape, kind, beside in handle.fields()}
        self.is_open = any(0 in shape for _, shape, _, beside in self.about.values() if not beside)
        columns = list(self.about)
        images = [name for name in columns if self.about[name][2] == "image"]
        self._views = dict(pipelines or {})
        self._images = images
        own = [name for name in columns[: -len(OWN)] if name.partition(".")[0] not in images[1:]]  # not further views
        if wanted is None:
            base = [name if name in images else self._base(name) for name in own]
            order = array_order(base, arrays) if arrays else range(len(own))
            names = [name for _, name in sorted(zip(order, base, strict=True))]
            wanted = [Wanted(n, n) for name in names for n in self._in_views(name, columns)]
        else:
            wanted = [one for w in wanted for one in self._expanded(w, columns)]
        bound = (
            bool(own) and [w.name for w in wanted if not w.own] == own
        )  # the engine already uses the requested names
        self._computed = {name: getattr(handle, name) for name in COMPUTED if name not in columns}
        self.names = tuple(w.name for w in wanted)
        self._fill, self._collate, self._batch_fn, self._output = fill, collate, batch_fn, output
        self.columns: list[Column] = []
        for w in wanted:
            self._add(*self._named(w, columns, bound), w.column, layout)
        self._add_sizes()
        handle.select(tuple(name for c in self.columns if not c.sizes for name in c.arrays))
        self._classes = handle.classes()
        self._as_dict = as_dict or bool(fill and fill.mapping)
        batch = batch_type(tuple(attributes(self.names)))
        self._make = batch._make
        with_room: Any = type("Batch", (batch,), {})  # a subclass, so that it can have an attribute
        self._make_drawn = with_room._make

    def _base(self, name: str) -> str:
        """The name of a field without that of its view."""
        view, _, base = name.partition(".")
        return base if base and view in self._images else name

    def _in_views(self, name: str, columns: list[str]) -> list[str]:
        """The image, or a field, under its names in all views."""
        if name in self._images:
            return self._images
        return [n for n in (name, *(f"{view}.{name}" for view in self._images)) if n in columns]

    def _expanded(self, w: Wanted, columns: list[str]) -> list[Wanted]:
        """The field, or if only views have it, the field in all views."""
        if w.own or w.column in columns or not self._views:
            return [w]
        if w.name in columns:
            return [Wanted(w.name, w.name, "str" if w.kind == "str" else "")]
        image = "image" in (w.name, w.column, w.kind)
        names = self._images if image else self._in_views(w.name, columns)
        return [Wanted(name, name) for name in names] or [w]

    def _add_sizes(self) -> None:
        """Adds the true sizes of padded images. Masks have those of the image, unless they have ops of their own."""
        for c in [c for c in self.columns if c.beside == ("sizes",)]:
            name = "sizes" if "sizes" not in self.names else f"{c.name}_sizes"
            if name == "sizes" or c.name in self._views:
                self.names += (name,)
                self.columns.append(replace(c, called=name, kind="tensor", sizes=True, last=False))

    def _named(self, w: Wanted, columns: list[str], bound: bool) -> tuple[str, str]:
        """The engine's name of a field, and its conversion in Python."""
        if bound and not w.own:
            return w.name, "str" if w.kind == "str" and self._is_class(w) else ""
        name, kind = w.column, w.kind
        if name not in columns and name not in self._computed and w.is_kind and w.name in columns:
            name, kind = w.name, w.column  # {"label": "float"}
        if name not in columns and name not in self._computed:
            there = columns + list(self._computed)
            raise usage(f"there is no field {name!r}; the fields are {', '.join(there)}{hint(name, there)}")
        self._check_cast(f"{name}:{kind}", name, kind)
        return name, kind

    def _is_class(self, w: Wanted) -> bool:
        """Whether a field that is wanted as str is a label; text already is str."""
        dtype, shape, kind, beside = self.about[w.name]
        if kind != "text" and (shape or beside or "int" not in dtype):
            what = kind if kind in ("bytes", "json") else "numbers"
            raise usage(f"'{w.column}:str': {w.column} is {what}, which cannot be str")
        return bool(kind != "text")

    def _check_cast(self, text: str, name: str, kind: str) -> None:
        if kind not in CASTS:
            raise usage(f"the kind of {text!r} must be one of {', '.join(filter(None, CASTS))}{hint(kind, CASTS)}")
        if kind not in ("", "str") if name in self._computed else kind == "str" and name != "label":
            raise usage(
                f"{text!r}: {name} is {'text' if name in self._computed else 'numbers'}, which cannot be {kind}"
            )

    def _add(self, name: str, cast: str, called: str, layout: str) -> None:
        computed = self._computed.get(name)
        name = "index" if computed else name
        dtype, shape, kind, beside = self.about[name]
        number, fill = list(self.about).index(name), self._fill
        view, _, follower = name.partition(".")
        self.columns.append(
            Column(
                name=name,
                called=called,
                cast=CASTS[cast],
                kind=kind,
                beside=beside,
                at=sum(len(c.arrays) for c in self.columns),
                computed=computed,
                objects=bool(fill and number < len(fill.kinds) and fill.kinds[number] == "object"),
                last=layout == "channels_last" and len(shape) >= 3 and (kind == "image" or name == "image"),
                convert=_output.converter(self._output, dtype, called),
                convert_beside=_output.converter(self._output, "int64", called),
                views=self._views.get(view, 1) if follower and view in self._images and beside else 1,
            )
        )

    def _class_name(self, label: int) -> str:
        return self._classes[label] if 0 <= label < len(self._classes) else str(label)

    def _special(self, c: Column, raw: Raw) -> Any:
        """The list of Python objects of a field; None: the field is made of arrays."""
        if c.computed:
            return [c.computed(sample) for sample in np.asarray(raw[c.at]).tolist()]
        if c.objects and self._fill:
            return self._fill.objects.get(raw[c.at])
        if c.cast == "str":
            return [self._class_name(label) for label in np.asarray(raw[c.at]).tolist()]
        if c.beside[:1] == ("offsets",) and c.kind in ("text", "bytes", "json"):
            return strings(c.kind, np.asarray(raw[c.at]), np.asarray(raw[c.at + 1]))
        return None

    def _value(self, c: Column, raw: Raw, copy: bool) -> Any:
        special = self._special(c, raw)
        if special is not None:
            return special
        if c.cast:
            return _output.from_numpy(self._output, _output.converted(c.called, self._plain(c, raw), c.cast))
        arrays = [c.convert(raw[c.at]), *(c.convert_beside(m) for m in raw[c.at + 1 : c.at + len(c.arrays)])]
        if copy:
            arrays = [_output.copy(self._output, a) for a in arrays]
        if c.beside == ("sizes",):
            return arrays[1] if c.sizes else _output.as_channels_last(self._output, arrays[0]) if c.last else arrays[0]
        if c.beside:
            return _ragged(c, arrays)
        return _output.as_channels_last(self._output, arrays[0]) if c.last else arrays[0]

    def _plain(self, c: Column, raw: Raw) -> Any:
        """The field as NumPy arrays."""
        if c.beside:
            arrays = [np.asarray(m) for m in raw[c.at : c.at + len(c.arrays)]]
            return arrays[c.sizes] if c.beside == ("sizes",) else _ragged(c, arrays)
        values = np.asarray(raw[c.at])
        return (values.astype(np.uint32) << 16).view(np.float32) if raw[c.at].dtype == "bfloat16" else values

    def look(self, raw: Raw) -> dict[str, Any]:
        """Fields by their names in the source, as NumPy arrays or lists."""
        seen: dict[str, Any] = {}
        for c in self.columns:
            special = None if c.cast == "str" else self._special(c, raw)
            seen["image" if c.kind == "image" else c.called] = self._plain(c, raw) if special is None else special
        return seen

    def _finish(self, values: list[Any], drawn: list[dict[str, Any]] | None = None) -> Any:
        if self._collate:
            whole = range(rows_in(values[0]))
            rows = values[0] if self._fill else [tuple(row_of(v, i) for v in values) for i in whole]
            batch = self._collate(rows)
        elif self._as_dict:
            batch = Dict(zip(self.names, values, strict=True)) if drawn else dict(zip(self.names, values, strict=True))
        else:
            batch = self._make_drawn(values) if drawn else self._make(values)
        if drawn and not self._collate and "drawn" not in self.names:
            batch.drawn = drawn
        return self._batch_fn(batch) if self._batch_fn else batch

    @property
    def is_changed(self) -> bool:
        """Whether the user's functions change whole batches."""
        return self._collate is not None or self._batch_fn not in (None, list)

    def adopted(self, batch: Any) -> Any:
        """The user's batch from one of NumPy arrays, which a worker process made."""
        values = list(batch.values()) if isinstance(batch, dict) else list(batch)
        return self._finish([self._adopted(c, value) for c, value in zip(self.columns, values, strict=True)])

    def _adopted(self, c: Column, value: Any) -> Any:
        if isinstance(value, Ragged):
            parts = (self._adopted(c, part) for part in (value.values, value.offsets, value.shapes))
            return Ragged(*parts, views=value.views)
        if isinstance(value, list) and c.kind in ("image", "mask"):
            return [self._adopted(c, one) for one in value]
        if isinstance(value, Padded):
            return Padded(*(self._adopted(c, part) for part in value))
        return _output.from_array(self._output, c.called, value) if isinstance(value, np.ndarray) else value

    def batch(self, raw: Raw) -> Any:
        """The user's batch over the engine's memory."""
        return self._finish([self._value(c, raw, copy=False) for c in self.columns])

    def copy(self, raw: Raw) -> Any:
        """The user's batch in memory of its own."""
        return self._finish([self._value(c, raw, copy=True) for c in self.columns])

    def with_drawn(self, raw: Raw, drawn: list[dict[str, Any]]) -> Any:
        """The user's batch with an attribute `drawn`."""
        return self._finish([self._value(c, raw, copy=False) for c in self.columns], drawn)
