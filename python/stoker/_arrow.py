# SPDX-License-Identifier: Apache-2.0
"""Parquet files, Arrow tables and data sets of Hugging Face, as tables that the engine reads without the GIL.

pyarrow reads; the engine takes pointers into its buffers by the Arrow C data interface. Columns are brought into a few
plain forms first (`_arrow_types.py`). Files are read by row groups, when a row of one is asked for (`_arrow_files.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _stoker
from ._arrow_files import (
    Chunk,
    File,
    Part,
    files_of,
    foreign,
    form_of_path,
    of_arrow,
    of_parquet,
    of_table,
    reading,
    saved_in,
    words_of,
)
from ._arrow_types import Plan, empty_plan, image_plan, plan_of
from ._errors import Error, UsageError, usage
from ._fields import Wanted
from ._nearest import hint
from ._output import framework

LABELS = ("label", "labels", "target", "class", "cls", "y")
LOOKED_AT = 64  # rows or chunks, to see whether the data are the same
LOOKED_INTO, MOST_ROWS = 4, 4096  # chunks, and rows of each, to find values that show what a column is
HELD = 1 << 29  # bytes of row groups, unless `memory` says otherwise
KINDS = {
    "parquet": "Parquet files",
    "arrow": "Arrow files",
    "saved": "data set of Hugging Face",
    "dataset": "data set of Hugging Face",
    "table": "Arrow table",
}
Item = TypeVar("Item")


def form_of(source: Any) -> str:
    """What of Arrow's it is: "parquet", "arrow", "saved", "table", "dataset"; "": nothing.

    >>> form_of("train.parquet"), form_of("photos/"), form_of("parquet:x")
    ('parquet', '', 'parquet')
    """
    if isinstance(source, (str, bytes, os.PathLike)):
        return form_of_path(os.fsdecode(source))
    if hasattr(source, "_data") and type(source).__module__.startswith("datasets."):
        return "dataset"
    return "table" if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__") else ""


def _parts_of(source: Any, form: str) -> list[Part]:
    if form == "table":
        try:
            return [of_table(framework("pyarrow").table(source))]
        except Exception as error:  # the user's object may raise anything
            raise usage(f"the rows of the {type(source).__name__} cannot be had: {words_of(error)}") from error
    if form == "dataset":
        part = of_table(source.data.table)
        part.features = source.features.to_dict()
        return [part]
    path = os.fsdecode(source)
    if form != "saved":
        return [_part_of(file, form) for file in files_of(path, form)]
    saved = saved_in(path)
    parts = [_part_of(file, "arrow") for file in saved.files]
    for part in parts:
        part.features, part.identity = saved.features, (saved.identity, part.identity)
    return parts


def _part_of(file: File, form: str) -> Part:
    with reading(file.path):
        return of_parquet(file) if form == "parquet" else of_arrow(file)


# ---------------------------------------------------------------- tables


@dataclass
class Table:
    """Several sources of one schema, as the engine reads them."""

    schema: Any
    chunks: list[Chunk]
    in_memory: bool
    classes: list[str] | None = None
    subset: NDArray[np.int64] | None = None
    fingerprint: int = 0
    kind: str = ""
    label: str | None = None
    plans: dict[str, Plan] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(c.rows for c in self.chunks)

    def labels(self) -> NDArray[np.int64]:
        """Of every sample; -1 where it has none."""
        if self.label is None or self.plans[self.label].refused:
            return np.full(len(self), -1, np.int64)
        return np.concatenate([self.labels_of(c) for c in self.chunks])

    def labels_of(self, chunk: Chunk) -> NDArray[np.int64]:
        with reading(chunk.name, f"{self.label}: "):
            column = chunk.load([str(self.label)]).column(0)
            return np.asarray(column.fill_null(-1).to_numpy()).astype(np.int64)

    def check(self, wanted: Iterable[Wanted]) -> None:
        """A name that is no column is said here, where all of them are known."""
        known = {*self.plans, "image", "label"}
        for w in wanted:
            if w.column not in known and not (w.is_kind and w.name in known):
                columns = ", ".join(self.plans)
                raise usage(f"there is no column {w.column}; the columns are {columns}{hint(w.column, self.plans)}")

    def needed(self, wanted: Iterable[str] | None) -> list[str]:
        """Columns that are to be read; None: all that can be."""
        if wanted is None:
            return self.readable
        names = set(wanted)
        for word, column in (("image", self._picture()), ("label", self.label)):
            if word in names and word not in self.plans and column:
                names.add(column)
        return [name for name in self.plans if name in names]

    @property
    def readable(self) -> list[str]:
        return [name for name, plan in self.plans.items() if not plan.refused]

    @property
    def refused(self) -> list[str]:
        """Columns that no field is made of, with the reasons."""
        return [f"{name}: {plan.refused}" for name, plan in self.plans.items() if plan.refused]

    def _picture(self) -> str | None:
        return next((name for name, plan in self.plans.items() if plan.kind == "image"), None)

    def _said(self, fields: Iterable[Wanted]) -> dict[str, Plan]:
        """Plans of columns for which the fields say more than the schema: that it holds images, or a default."""
        said: dict[str, Plan | None] = {}
        for w in fields:
            column, kind = (w.name, w.column) if w.is_kind else (w.column, w.kind)
            if column not in self.plans:
                continue
            if kind == "image":
                said[column] = image_plan(self.schema.field(column).type)
            elif w.default is not None and self.plans[column].is_empty:
                said[column] = empty_plan(kind, w.default)
        return {column: plan for column, plan in said.items() if plan}

    def opened(self, wanted: Iterable[str] | None, limit: int | None, fields: Iterable[Wanted] = ()) -> _stoker.Arrow:
        names = self.needed(wanted)
        plans = {**self.plans, **self._said(fields)}
        if reasons := [f"{n}: {plans[n].refused}" for n in names if plans[n].refused]:
            raise usage(f"a column cannot be read: {reasons[0]}")
        if not names:
            raise usage("there is no column that can be read" + "".join(f"; {words}" for words in self.refused))
        columns = tuple(plans[n].spec(n, n == self.label) for n in names)
        reader = Reader(self.chunks, [(n, plans[n]) for n in names])
        with reading(None):
            arrays = [reader.array(i) if self.in_memory else None for i in range(len(self.chunks))]
        rows = [(c.name, c.key, c.rows, a) for c, a in zip(self.chunks, arrays, strict=True)]
        load = None if self.in_memory else reader
        limit = limit or HELD
        kind, window = self.kind, self._window(names, limit)
        if window:
            kind += f", more than {limit >> 20} MiB: shuffled in windows of {window}"
        return _stoker.Arrow(columns, tuple(rows), load, limit, kind, self.fingerprint, window)

    def _window(self, names: list[str], limit: int) -> int:
        """How many samples are shuffled at a time, so that two windows and the ends of row groups are held; 0: all."""
        if self.in_memory or len(self.chunks) == 1:
            return 0
        total = sum(c.size(names) for c in self.chunks)
        return 0 if total <= limit else max(1, limit // 3 * len(self) // total)


class Reader:
    """Loads chunks for the engine, from any of its threads."""

    def __init__(self, chunks: list[Chunk], plans: list[tuple[str, Plan]]) -> None:
        self._chunks, self._plans, self._names = chunks, plans, [name for name, _ in plans]

    def _batch(self, i: int) -> Any:
        pa = framework("pyarrow")
        try:
            table = self._chunks[i].load(self._names)
            columns = [plan.brought(table.column(k)) for k, (_, plan) in enumerate(self._plans)]
        except foreign() as error:
            raise ValueError(f"{self._damaged(i)}{words_of(error)}") from error
        return pa.RecordBatch.from_arrays(columns, names=[str(k) for k in range(len(columns))])

    def _damaged(self, i: int) -> str:
        """The first column that cannot be read by itself."""
        for name, plan in self._plans:
            try:
                plan.brought(self._chunks[i].load([name]).column(0))
            except foreign():
                return f"{name}: "
        return ""

    def array(self, i: int) -> Any:
        return self._batch(i).__arrow_c_array__()[1]

    def __call__(self, thread: int, i: int) -> tuple[Any, int]:
        batch = self._batch(i)
        return batch.__arrow_c_array__()[1], batch.get_total_buffer_size()


def _features(part: Part) -> dict[str, Any]:
    """What Hugging Face notes about the columns."""
    if part.features is not None:
        return part.features
    try:
        noted = json.loads((part.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = noted["info"]["features"]
        return features if isinstance(features, dict) else {}
    except (ValueError, KeyError, TypeError):
        return {}


def _label_of(schema: Any, features: dict[str, Any]) -> tuple[str | None, list[str] | None]:
    pa = framework("pyarrow")
    for name, about in features.items():
        if isinstance(about, dict) and about.get("_type") == "ClassLabel" and name in schema.names:
            return name, [str(n) for n in about.get("names", ())] or None
    for name in LABELS:
        if name in schema.names and pa.types.is_integer(schema.field(name).type):
            return name, None
    return None, None


def _spread(items: Sequence[Item]) -> Sequence[Item]:
    """LOOKED_AT of them at the most, from the first to near the last."""
    return items[:: len(items) // LOOKED_AT + 1]


def _feed(seen: Any, value: Any) -> None:
    """Values, however they are stored."""
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        seen.update(b"%d items" % len(value))
        for part in value:
            _feed(seen, part)
    else:
        seen.update(value if isinstance(value, bytes) else repr(value).encode())


def _feed_rows(seen: Any, table: Table) -> None:
    """Some rows of a table in memory."""
    wanted, first = list(_spread(range(len(table)))), 0
    for chunk in table.chunks:
        rows = [row - first for row in wanted if first <= row < first + chunk.rows]
        columns = chunk.load(table.readable).columns if rows else ()
        for row, column in itertools.product(rows, columns):
            with contextlib.suppress(ArithmeticError, *foreign()):  # a time that Python's have no room for
                _feed(seen, column[row].as_py())
        first += chunk.rows


def _fingerprint(table: Table, parts: Sequence[Part]) -> int:
    """Of files path, size and labels; of what is in memory labels and some rows.

    A data set of Hugging Face has a fingerprint of its own. That is another one after set_format(), and a random one
    where a function cannot be hashed: a job that is started again would not resume.
    """
    seen = hashlib.blake2b(repr([str(table.schema), len(table), [p.identity for p in parts]]).encode(), digest_size=8)
    if table.in_memory:
        _feed_rows(seen, table)
    if table.label is not None and not table.plans[table.label].refused:
        chunks = table.chunks if table.in_memory else _spread([c for c in table.chunks if c.apart])
        for chunk in chunks:
            with contextlib.suppress(Error):  # what cannot be read is reported when it is read
                seen.update(table.labels_of(chunk).tobytes())
    return int.from_bytes(seen.digest(), "little")


def _values(chunks: list[Chunk], name: str) -> Iterator[Any]:
    """A column of the first chunks, to see what it holds; what cannot be read is reported when it is read."""
    with contextlib.suppress(*foreign()):
        for chunk in chunks[:LOOKED_INTO]:
            for value in chunk.load([name]).column(0).slice(0, MOST_ROWS):
                yield value.as_py()


def _plan(table: Table, name: str, features: dict[str, Any]) -> Plan:
    if table.schema.names.count(name) > 1:
        return Plan(refused="there are two columns of this name")
    if not name or "\0" in name:
        return Plan(refused="a field cannot have its name")
    return plan_of(table.schema.field(name).type, features.get(name), lambda: _values(table.chunks, name))


def table_of(sources: Sequence[Any]) -> Table:
    """One table of one or several sources, all of Arrow's and of one schema."""
    forms = [form_of(s) for s in sources]
    of_each = [_parts_of(s, form) for s, form in zip(sources, forms, strict=True)]
    parts = [part for some in of_each for part in some]
    if not parts:
        raise UsageError("there are no samples in it", path=os.fsdecode(sources[0]), stage="open")
    for n, part in enumerate(parts):
        if not part.schema.equals(parts[0].schema, check_metadata=False):
            difference = _difference(parts[0].schema, part.schema)
            raise usage(f"{part.path or f'part {n}'} has other columns than the first: {difference}")
        _check_classes(n, parts[0], part)
    chunks = [c for part in parts for c in part.chunks]
    table = Table(parts[0].schema, chunks, all(f in ("table", "dataset") for f in forms), kind=KINDS[forms[0]])
    if not chunks:
        raise UsageError("there are no samples in it", path=parts[0].path or None, stage="open")
    features = _features(parts[0])
    table.label, table.classes = _label_of(table.schema, features)
    table.plans = {name: _plan(table, name, features) for name in table.schema.names}
    table.subset = _subset(sources, of_each)
    table.fingerprint = _fingerprint(table, parts)
    return table


def _check_classes(n: int, first: Part, other: Part) -> None:
    """Labels of tables are numbers: they mean the same in all parts, or are not joined."""
    (_, a), (_, b) = _label_of(first.schema, _features(first)), _label_of(other.schema, _features(other))
    if a and b and a != b:
        raise usage(f"part {n} has other classes than the first, {', '.join(b)} and not {', '.join(a)}")


def _difference(a: Any, b: Any) -> str:
    for one in a:
        if one.name not in b.names:
            return f"there is no {one.name}"
        if b.field(one.name).type != one.type:
            return f"{one.name} is {b.field(one.name).type}, and not {one.type}"
    return f"it has {', '.join(b.names)}"


def _subset(sources: Sequence[Any], of_each: list[list[Part]]) -> NDArray[np.int64] | None:
    """Which rows, in which order, after select(), shuffle() or filter() of a data set; None: all."""
    if all(getattr(s, "_indices", None) is None for s in sources):
        return None
    chosen, first = [], 0
    for source, parts in zip(sources, of_each, strict=True):
        rows = sum(c.rows for part in parts for c in part.chunks)
        indices = getattr(source, "_indices", None)
        own = np.arange(rows) if indices is None else indices.table.column(0).to_numpy()
        chosen.append(own.astype(np.int64) + first)
        first += rows
    return np.concatenate(chosen)


def is_plain(dataset: Any) -> bool:
    """Whether a data set of Hugging Face gives its rows as they are stored, without a function of the user's."""
    return bool(dataset.format.get("type") != "custom")


def check_split(source: Any) -> None:
    if isinstance(source, dict) and type(source).__module__.startswith("datasets."):
        raise UsageError(f"this has several splits; choose one: dataset[{next(iter(source), 'train')!r}]", stage="open")
