# SPDX-License-Identifier: Apache-2.0
"""The form of a batch: which fields, under which names, of which type."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _output, _stoker
from ._errors import usage
from ._nearest import hint
from ._rows import OWN, Fill
from ._types import DTYPES

Raw = tuple[_stoker.Memory, ...]
# What a field may be asked for as: "label:float". str is the name of a label's class.
KINDS = {"int": "int64", "float": "float32", "": "", "str": "str"}
KINDS |= {name: name for name in DTYPES if name != "bfloat16"}
COMPUTED = ("path", "key")  # from the number of the sample, unless the source has fields of these names


class Dict(dict[str, Any]):
    """A batch with what was drawn for its rows."""

    drawn: list[dict[str, Any]]


class Form:
    """Turns what the engine hands over into what the user asked for."""

    def __init__(
        self,
        handle: _stoker.Loader,
        fields: Sequence[str] | dict[str, str] | None,
        order: Sequence[str],
        as_dict: bool,
        output: str,
        layout: str,
        fill: Fill | None,
        collate: Callable[[list[Any]], Any] | None,
        batch_fn: Callable[[Any], Any] | None,
    ) -> None:
        """order: of the fields, where the source has one that is not the engine's."""
        about = handle.fields()
        columns = [name for name, _, _ in about]
        if fields is None:
            own = columns[: -len(OWN)]
            fields = sorted(own, key=order.index) if order else own
        chosen = dict(fields) if isinstance(fields, dict) else {name: name for name in self._names(fields)}
        if not chosen:
            raise usage("fields is empty; a batch has at least one")
        self.names = tuple(chosen)
        self._computed = {name: getattr(handle, name) for name in COMPUTED if name not in columns}
        self._columns = [self._column(c, columns) for c in chosen.values()]
        wanted = [columns.index("index" if c in self._computed else c) for c, _ in self._columns]
        handle.select(tuple(wanted))
        self._classes = handle.classes()
        self._fill, self._collate, self._batch_fn = fill, collate, batch_fn
        self._output = output
        self._convert = [_output.converter(output, about[i][1]) for i in wanted]
        self._last = [layout == "channels_last" and len(about[i][2]) == 3 and about[i][0] == "image" for i in wanted]
        self._objects = [bool(fill and i < len(fill.kinds) and fill.kinds[i] == "object") for i in wanted]
        self._as_dict = as_dict or bool(fill and fill.mapping)
        make_type: Any = collections.namedtuple
        batch: Any = make_type("Batch", self.names, rename=True)
        self._make = batch._make
        with_room: Any = type("Batch", (batch,), {})  # for an attribute
        self._make_drawn = with_room._make

    @staticmethod
    def _names(fields: Sequence[str]) -> Sequence[str]:
        if isinstance(fields, str):
            raise usage(f"fields is {fields!r}; it must be a list, for example ('image', 'label')")
        if twice := [name for i, name in enumerate(fields) if name in fields[:i]]:
            raise usage(f"fields has {twice[0]!r} twice; a dict gives them names of their own")
        return fields

    def _column(self, text: str, columns: list[str]) -> tuple[str, str]:
        name, _, kind = text.partition(":")
        if name not in columns and name not in self._computed:
            there = columns + list(self._computed)
            raise usage(f"there is no field {name!r}; there are {', '.join(there)}{hint(name, there)}")
        if kind not in KINDS:
            raise usage(f"the kind of {text!r} must be one of {', '.join(filter(None, KINDS))}{hint(kind, KINDS)}")
        if kind not in ("", "str") if name in self._computed else kind == "str" and name != "label":
            raise usage(f"{text!r}: {name} is {'text' if name in self._computed else 'numbers'}, and cannot be {kind}")
        return name, KINDS[kind]

    def _class_name(self, label: int) -> str:
        return self._classes[label] if 0 <= label < len(self._classes) else str(label)

    def _value(self, i: int, m: _stoker.Memory, copy: bool) -> Any:
        name, kind = self._columns[i]
        if name in self._computed:
            return [self._computed[name](sample) for sample in np.asarray(m).tolist()]
        if self._objects[i] and self._fill:
            return self._fill.objects.take(np.asarray(m), keep=copy)
        if kind == "str":
            return [self._class_name(label) for label in np.asarray(m).tolist()]
        if kind:
            return _output.from_numpy(self._output, np.asarray(m).astype(kind))
        value = self._convert[i](m)
        if copy:
            value = _output.copy(self._output, value)
        return _output.as_channels_last(self._output, value) if self._last[i] else value

    def look(self, raw: Raw, keep: bool) -> dict[str, Any]:
        """Columns by their own names, as NumPy arrays or lists; keep: they are still to be delivered."""
        seen: dict[str, Any] = {}
        for i, (m, (name, _)) in enumerate(zip(raw, self._columns, strict=True)):
            values = np.asarray(m)
            if name in self._computed or (self._objects[i] and self._fill):
                values = self._value(i, m, copy=keep)
            elif m.dtype == "bfloat16":
                values = (values.astype(np.uint32) << 16).view(np.float32)
            seen[name] = values
        return seen

    def _finish(self, values: list[Any], drawn: list[dict[str, Any]] | None = None) -> Any:
        if self._collate:
            rows = values[0] if self._fill else [tuple(v[i] for v in values) for i in range(len(values[0]))]
            batch = self._collate(rows)
        elif self._as_dict:
            batch = Dict(zip(self.names, values, strict=True)) if drawn else dict(zip(self.names, values, strict=True))
        else:
            batch = self._make_drawn(values) if drawn else self._make(values)
        if drawn and not self._collate and "drawn" not in self.names:
            batch.drawn = drawn
        return self._batch_fn(batch) if self._batch_fn else batch

    def batch(self, raw: Raw) -> Any:
        return self._finish([self._value(i, m, copy=False) for i, m in enumerate(raw)])

    def copy(self, raw: Raw) -> Any:
        return self._finish([self._value(i, m, copy=True) for i, m in enumerate(raw)])

    def joined(self, pieces: list[Raw], drawn: list[dict[str, Any]]) -> Any:
        """One batch of several, with what was drawn for its rows, for get()."""
        values: list[Any] = []
        for i in range(len(self.names)):
            parts = [self._value(i, raw[i], copy=False) for raw in pieces]
            if len(parts) == 1:
                values += parts
            elif isinstance(parts[0], list):
                values.append([v for part in parts for v in part])
            else:
                values.append(_output.concatenate(self._output, parts))
        return self._finish(values, drawn)
