# SPDX-License-Identifier: Apache-2.0
"""Parquet files, Arrow tables and Hugging Face datasets, as tables that the engine reads without the GIL.

pyarrow reads the data; the engine takes pointers into its buffers through the Arrow C data interface. Columns are first
converted to a few plain forms (`_arrow_types.py`). Files are loaded by row group when the engine needs one of its rows
(`_arrow_files.py`).
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
from ._errors import Error, UsageError, hint, usage
from ._fields import Wanted
from ._output import framework

LABELS = ("label", "labels", "target", "class", "cls", "y")
LOOKED_AT = 64  # rows or chunks in a fingerprint
LOOKED_INTO, MOST_ROWS = 4, 4096  # chunks, and rows of each, that are searched to find what a column contains
HELD = 1 << 29  # bytes of row groups that are held, unless `memory` limits them
KINDS = {
    "parquet": "Parquet files",
    "arrow": "Arrow files",
    "saved": "Hugging Face dataset",
    "dataset": "Hugging Face dataset",
    "table": "Arrow table",
}
Item = TypeVar("Item")


def form_of(source: Any) -> str:
    """The kind of a source that pyarrow reads: "parquet", "arrow", "saved", "table", "dataset"; "": another source.

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
            raise usage(f"the {type(source).__name__} cannot be read as an Arrow table: {words_of(error)}") from error
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
    """One or several sources with the same schema."""

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
        """The label of every sample; -1 where it has none."""
        if self.label is None or self.plans[self.label].refused:
            return np.full(len(self), -1, np.int64)
        return np.concatenate([self.labels_of(c) for c in self.chunks])

    def labels_of(self, chunk: Chunk) -> NDArray[np.int64]:
        with reading(chunk.name, f"{self.label}: "):
            column = chunk.load([str(self.label)]).column(0)
            return np.asarray(column.fill_null(-1).to_numpy()).astype(np.int64)

    def check(self, wanted: Iterable[Wanted]) -> None:
        """Refuses an unknown column. This is done here because the engine knows only the columns that are read."""
        known = {*self.plans, "image", "label"}
        for w in wanted:
            if w.column not in known and not (w.is_kind and w.name in known):
                columns = ", ".join(self.plans)
                raise usage(f"there is no column {w.column}; the columns are {columns}{hint(w.column, self.plans)}")

    def needed(self, wanted: Iterable[str] | None) -> list[str]:
        """Names of the columns to read; wanted=None: all that can be read."""
        if wanted is None:
            return self.readable
        names = set(wanted)
        for word, column in (("image", self._image()), ("label", self.label)):
            if word in names and word not in self.plans and column:
                names.add(column)
        return [name for name in self.plans if name in names]

    @property
    def readable(self) -> list[str]:
        return [name for name, plan in self.plans.items() if not plan.refused]

    @property
    def refused(self) -> list[str]:
        """Columns that cannot be read, with the reasons."""
        return [f"{name}: {plan.refused}" for name, plan in self.plans.items() if plan.refused]

    def _image(self) -> str | None:
        return next((name for name, plan in self.plans.items() if plan.kind == "image"), None)

    def _said(self, fields: Iterable[Wanted]) -> dict[str, Plan]:
        """Plans of columns for which the fields add something to the schema: that it contains images, or a default."""
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
        """The engine's table. fields: what the user requested, which may say how a column is read."""
        names = self.needed(wanted)
        plans = {**self.plans, **self._said(fields)}
        if reasons := [f"{n}: {plans[n].refused}" for n in names if plans[n].refused]:
            raise usage(f"a requested column cannot be read: {reasons[0]}")
        if not names:
            raise usage("no column can be read" + "".join(f"; {words}" for words in self.refused))
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
        """How many samples are shuffled together, so that two windows and parts of row groups fit in memory; 0: all."""
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
        """The first column that cannot be read alone."""
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
    """The features that Hugging Face stores in the schema."""
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
    """At most LOOKED_AT items, evenly spread."""
    return items[:: len(items) // LOOKED_AT + 1]


def _feed(seen: Any, value: Any) -> None:
    """Adds a value to a hash, independent of how it is stored."""
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        seen.update(b"%d items" % len(value))
        for part in value:
            _feed(seen, part)
    else:
        seen.update(value if isinstance(value, bytes) else repr(value).encode())


def _feed_rows(seen: Any, table: Table) -> None:
    """Adds some rows of a table in memory to a hash."""
    wanted, first = list(_spread(range(len(table)))), 0
    for chunk in table.chunks:
        rows = [row - first for row in wanted if first <= row < first + chunk.rows]
        columns = chunk.load(table.readable).columns if rows else ()
        for row, column in itertools.product(rows, columns):
            with contextlib.suppress(ArithmeticError, *foreign()):  # a time that Python cannot represent
                _feed(seen, column[row].as_py())
        first += chunk.rows


def _fingerprint(table: Table, parts: Sequence[Part]) -> int:
    """Hashes path, size and labels of files, or labels and some rows of a table in memory.

    The fingerprint of a Hugging Face dataset is not used: it changes with set_format(), and is random if a function
    cannot be hashed, so a restarted job would not resume.
    """
    seen = hashlib.blake2b(repr([str(table.schema), len(table), [p.identity for p in parts]]).encode(), digest_size=8)
    if table.in_memory:
        _feed_rows(seen, table)
    if table.label is not None and not table.plans[table.label].refused:
        chunks = table.chunks if table.in_memory else _spread([c for c in table.chunks if c.apart])
        for chunk in chunks:
            with contextlib.suppress(Error):  # errors are reported when the row is read
                seen.update(table.labels_of(chunk).tobytes())
    return int.from_bytes(seen.digest(), "little")


def _values(chunks: list[Chunk], name: str) -> Iterator[Any]:
    """Values of a column in the first chunks. Errors are ignored here and reported when the row is read."""
    with contextlib.suppress(*foreign()):
        for chunk in chunks[:LOOKED_INTO]:
            for value in chunk.load([name]).column(0).slice(0, MOST_ROWS):
                yield value.as_py()


def _plan(table: Table, name: str, features: dict[str, Any]) -> Plan:
    if table.schema.names.count(name) > 1:
        return Plan(refused="two columns have this name")
    if not name or "\0" in name:
        return Plan(refused="its name is empty or contains a null byte")
    return plan_of(table.schema.field(name).type, features.get(name), lambda: _values(table.chunks, name))


def table_of(sources: Sequence[Any]) -> Table:
    """One table of one or several sources with the same schema."""
    forms = [form_of(s) for s in sources]
    of_each = [_parts_of(s, form) for s, form in zip(sources, forms, strict=True)]
    parts = [part for some in of_each for part in some]
    if not parts:
        raise UsageError("it contains no samples", path=os.fsdecode(sources[0]), stage="open")
    for n, part in enumerate(parts):
        if not part.schema.equals(parts[0].schema, check_metadata=False):
            difference = _difference(parts[0].schema, part.schema)
            raise usage(f"the columns of {part.path or f'part {n}'} differ from the first part: {difference}")
        _check_classes(n, parts[0], part)
    chunks = [c for part in parts for c in part.chunks]
    table = Table(parts[0].schema, chunks, all(f in ("table", "dataset") for f in forms), kind=KINDS[forms[0]])
    if not chunks:
        raise UsageError("it contains no samples", path=parts[0].path or None, stage="open")
    features = _features(parts[0])
    table.label, table.classes = _label_of(table.schema, features)
    table.plans = {name: _plan(table, name, features) for name in table.schema.names}
    table.subset = _subset(sources, of_each)
    table.fingerprint = _fingerprint(table, parts)
    return table


def _check_classes(n: int, first: Part, other: Part) -> None:
    """Refuses parts with different classes: labels of tables are integers, which would change their meaning."""
    (_, a), (_, b) = _label_of(first.schema, _features(first)), _label_of(other.schema, _features(other))
    if a and b and a != b:
        raise usage(f"part {n} has the classes {', '.join(b)}, but the first part has {', '.join(a)}")


def _difference(a: Any, b: Any) -> str:
    for one in a:
        if one.name not in b.names:
            return f"{one.name} is missing"
        if b.field(one.name).type != one.type:
            return f"{one.name} is {b.field(one.name).type}, not {one.type}"
    return f"it has {', '.join(b.names)}"


def _subset(sources: Sequence[Any], of_each: list[list[Part]]) -> NDArray[np.int64] | None:
    """The rows that select(), shuffle() or filter() of a dataset left, in order; None: all."""
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
    """Whether a Hugging Face dataset returns rows as they are stored, without the user's transform."""
    return bool(dataset.format.get("type") != "custom")


def check_split(source: Any) -> None:
    """Refuses a DatasetDict of Hugging Face."""
    if isinstance(source, dict) and type(source).__module__.startswith("datasets."):
        raise usage(f"the dataset has several splits; choose one: dataset[{next(iter(source), 'train')!r}]")
