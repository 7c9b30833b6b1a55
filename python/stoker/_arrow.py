# SPDX-License-Identifier: Apache-2.0
"""Parquet files, Arrow tables and data sets of Hugging Face, as tables that the engine reads without the GIL.

pyarrow reads; the engine takes pointers into its buffers by the Arrow C data interface. Columns are brought into a few
plain forms first (`_arrow_types.py`). Files are read by row groups, when a row of one is asked for.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _stoker
from ._arrow_types import Plan, plan_of
from ._errors import DataError, NotFoundError, UsageError, usage
from ._fields import Wanted
from ._nearest import hint
from ._output import framework

SUFFIXES = {".parquet": "parquet", ".parq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
LABELS = ("label", "labels", "target", "class", "cls", "y")
LOOKED_AT = 64  # entries of a folder, to tell what it holds
HELD = 1 << 29  # bytes of row groups, unless `memory` says otherwise


def form_of(source: Any) -> str:
    """What of Arrow's it is: "parquet", "arrow", "table", "dataset"; "": nothing.

    >>> form_of("train.parquet"), form_of("photos/"), form_of("parquet:x")
    ('parquet', '', 'parquet')
    """
    if isinstance(source, (str, bytes, os.PathLike)):
        return _form_of_path(os.fsdecode(source))
    if hasattr(source, "_data") and type(source).__module__.startswith("datasets."):
        return "dataset"
    return "table" if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__") else ""


def _form_of_path(path: str) -> str:
    for prefix in ("parquet", "arrow"):
        if path.startswith(f"{prefix}:"):
            return prefix
    if (kind := SUFFIXES.get(os.path.splitext(path)[1].lower())) and not os.path.isdir(path):
        return kind
    if not os.path.isdir(path):
        return ""
    with os.scandir(path) as entries:
        names = [entry.name for _, entry in zip(range(LOOKED_AT), entries, strict=False)]
    return "parquet" if any(name.lower().endswith(".parquet") for name in names) else ""


def _braces(pattern: str) -> list[str]:
    """
    >>> _braces("x-{08..10}.parquet")
    ['x-08.parquet', 'x-09.parquet', 'x-10.parquet']
    """
    match = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    numbers = [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return [name for n in numbers for name in _braces(pattern[: match.start()] + n + pattern[match.end() :])]


def files_of(name: str) -> list[str]:
    path = re.sub(r"^(parquet|arrow):", "", name)
    if os.path.isdir(path):
        found = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True), key=os.fsencode)
    else:
        found = []
        for one in _braces(path):
            found += sorted(glob.glob(one), key=os.fsencode) if glob.has_magic(one) else [one]
    missing = [p for p in found if not os.path.exists(p)]
    if not found or missing:
        raise NotFoundError("no such file or folder", path=missing[0] if missing else path, stage="open")
    return found


# ---------------------------------------------------------------- where rows come from


@dataclass
class Chunk:
    """Rows that are loaded together."""

    name: str
    rows: int
    load: Callable[[list[str]], Any]  # a pyarrow.Table of these columns
    size: Callable[[list[str]], int] = lambda _: 0  # bytes that they take in memory, about


def _of_parquet(path: str) -> tuple[Any, Iterator[Chunk]]:
    pq = framework("pyarrow.parquet")
    file = pq.ParquetFile(path)
    about, schema = file.metadata, file.schema_arrow
    file.close()

    paths = [about.schema.column(i).path for i in range(about.num_columns)]

    def size(group: int, names: list[str]) -> int:
        mine = [i for i, p in enumerate(paths) if any(p == n or p.startswith(f"{n}.") for n in names)]
        return sum(about.row_group(group).column(i).total_uncompressed_size for i in mine)

    def load(group: int, names: list[str]) -> Any:
        with pq.ParquetFile(path, metadata=about) as reader:  # one for each call: threads share none
            whole = reader.read_row_group(group, columns=names, use_threads=False)
        return whole.select(names)

    def chunks() -> Iterator[Chunk]:
        for g in range(about.num_row_groups):
            if rows := about.row_group(g).num_rows:
                yield Chunk(f"{path} row group {g}", rows, partial(load, g), partial(size, g))

    return schema, chunks()


def _of_ipc(path: str) -> tuple[Any, Iterator[Chunk]]:
    pa = framework("pyarrow")
    with open(path, "rb") as file:
        stream = file.read(6) != b"ARROW1"
    if stream:  # cannot be entered in the middle
        with pa.OSFile(path) as data, pa.ipc.open_stream(data) as reader:
            return _of_table(reader.read_all(), path)
    with pa.OSFile(path) as data:
        reader = pa.ipc.open_file(data)
        schema, n = reader.schema, reader.num_record_batches

    def load(i: int, names: list[str]) -> Any:
        with pa.OSFile(path) as data:
            return pa.Table.from_batches([pa.ipc.open_file(data).get_batch(i)]).select(names)

    def chunks() -> Iterator[Chunk]:
        with pa.OSFile(path) as data:
            reader = pa.ipc.open_file(data)
            counts = [reader.get_batch(i).num_rows for i in range(n)]
        for i, rows in enumerate(counts):
            if rows:
                yield Chunk(f"{path} batch {i}", rows, partial(load, i), lambda _: os.path.getsize(path) // n)

    return schema, chunks()


def _of_table(table: Any, name: str = "") -> tuple[Any, Iterator[Chunk]]:
    pa = framework("pyarrow")
    batches = (pa.Table.from_batches([b]) for b in table.to_batches() if b.num_rows)
    return table.schema, (Chunk(name, t.num_rows, t.select) for t in batches)


def _parts_of(source: Any, form: str) -> list[tuple[Any, Iterator[Chunk]]]:
    if form == "table":
        return [_of_table(framework("pyarrow").table(source))]
    if form == "dataset":
        return [_of_table(source.data.table)]
    files = files_of(os.fsdecode(source))
    try:
        return [_of_parquet(path) if form == "parquet" else _of_ipc(path) for path in files]
    except (OSError, ValueError, framework("pyarrow").ArrowException) as error:
        raise DataError(f"{form} cannot be read: {error}", path=files[0], stage="open") from error


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
        columns = [c.load([self.label]).column(0) for c in self.chunks]
        parts = [c.fill_null(-1).to_numpy() for c in columns]
        return np.concatenate(parts).astype(np.int64)

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

    def _picture(self) -> str | None:
        return next((name for name, plan in self.plans.items() if plan.kind == "image"), None)

    def opened(self, wanted: Iterable[str] | None, limit: int | None) -> _stoker.Arrow:
        names = self.needed(wanted)
        if reasons := [f"{n}: {self.plans[n].refused}" for n in names if self.plans[n].refused]:
            raise usage(f"a column cannot be read: {reasons[0]}")
        if not names:
            reasons = [f"{n}: {p.refused}" for n, p in self.plans.items() if p.refused]
            raise usage(f"there is no column that can be read{'; ' if reasons else ''}{'; '.join(reasons)}")
        columns = tuple(self.plans[n].spec(n, n == self.label) for n in names)
        reader = Reader(self.chunks, [(n, self.plans[n]) for n in names])
        rows = [(c.name, c.rows, reader.array(i) if self.in_memory else None) for i, c in enumerate(self.chunks)]
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
        table = self._chunks[i].load(self._names)
        columns = [plan.brought(table.column(k)) for k, (_, plan) in enumerate(self._plans)]
        return pa.RecordBatch.from_arrays(columns, names=[str(k) for k in range(len(columns))])

    def array(self, i: int) -> Any:
        return self._batch(i).__arrow_c_array__()[1]

    def __call__(self, thread: int, i: int) -> tuple[Any, int]:
        batch = self._batch(i)
        return batch.__arrow_c_array__()[1], batch.get_total_buffer_size()


def _features(schema: Any) -> dict[str, Any]:
    """What Hugging Face notes about the columns."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
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


def _fingerprint(parts: Sequence[Any]) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")


def _looked_at(chunks: list[Chunk], name: str) -> Any:
    """A column of the first rows, to see what its bytes are; None: it cannot be read, as whoever reads it will hear."""
    try:
        return chunks[0].load([name]).column(0).slice(0, LOOKED_AT)
    except (OSError, ValueError, framework("pyarrow").ArrowException):
        return None


def table_of(sources: Sequence[Any]) -> Table:
    """One table of one or several sources, all of Arrow's and of one schema."""
    forms = [form_of(s) for s in sources]
    parts = [part for s, form in zip(sources, forms, strict=True) for part in _parts_of(s, form)]
    schema = parts[0][0]
    for n, (other, _) in enumerate(parts):
        if not other.equals(schema, check_metadata=False):
            raise usage(f"part {n} has other columns than the first: {_difference(schema, other)}")
        _check_classes(n, schema, other)
    table = Table(schema, [c for _, chunks in parts for c in chunks], all(f in ("table", "dataset") for f in forms))
    table.kind = {"parquet": "Parquet files", "arrow": "Arrow files", "dataset": "data set of Hugging Face"}.get(
        forms[0], "Arrow table"
    )
    if not table.chunks:
        raise usage("there are no samples in it")
    features = _features(schema)
    table.label, table.classes = _label_of(schema, features)
    for name in schema.names:
        if schema.names.count(name) == 1:
            look = lambda name=name: _looked_at(table.chunks, name)  # noqa: E731
            table.plans[name] = plan_of(schema.field(name).type, features.get(name), look)
        else:
            table.plans[name] = Plan(refused="there are two columns of this name")
    seen = [str(schema), *((c.name, c.rows) for c in table.chunks)]
    if forms == ["dataset"]:
        table.subset = _indices(sources[0])
        seen.append(sources[0]._fingerprint)
    table.fingerprint = _fingerprint(seen)
    return table


def _check_classes(n: int, first: Any, other: Any) -> None:
    """Labels of tables are numbers: they mean the same in all parts, or are not joined."""
    (_, a), (_, b) = _label_of(first, _features(first)), _label_of(other, _features(other))
    if a and b and a != b:
        raise usage(f"part {n} has other classes than the first, {', '.join(b)} and not {', '.join(a)}")


def _difference(a: Any, b: Any) -> str:
    for one in a:
        if one.name not in b.names:
            return f"there is no {one.name}"
        if b.field(one.name).type != one.type:
            return f"{one.name} is {b.field(one.name).type}, and not {one.type}"
    return f"it has {', '.join(b.names)}"


def _indices(dataset: Any) -> NDArray[np.int64] | None:
    """Which rows, in which order, after select() or shuffle()."""
    if dataset._indices is None:
        return None
    return np.ascontiguousarray(dataset._indices.table.column(0).to_numpy(), np.int64)


def is_plain(dataset: Any) -> bool:
    """Whether a data set of Hugging Face gives its rows as they are stored, without a function of the user's."""
    return bool(dataset.format.get("type") != "custom")


def check_split(source: Any) -> None:
    if isinstance(source, dict) and type(source).__module__.startswith("datasets."):
        raise UsageError(f"this has several splits; choose one: dataset[{next(iter(source), 'train')!r}]", stage="open")
