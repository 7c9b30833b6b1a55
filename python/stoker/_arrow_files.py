# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, and folders that Hugging Face saved, as chunks of rows that are loaded one at a time."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ._errors import DataError, Error, NotFoundError, usage
from ._output import framework

SUFFIXES = {".parquet": "parquet", ".parq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
LOOKED_AT = 64  # entries of a folder that are searched for files of these formats
SMALL = 1 << 20  # bytes of a batch
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"  # of Dataset.save_to_disk()


@dataclass
class Chunk:
    """Rows that are loaded together."""

    name: str  # as the user would type it
    key: str  # the path below the given folder: it stays the same when the folder is moved
    rows: int
    load: Callable[[list[str]], Any]  # gives a pyarrow.Table of these columns
    size: Callable[[list[str]], int] = lambda _: 0  # roughly, their bytes in memory
    apart: bool = True  # a column can be loaded without the others, or loading all is cheap


@dataclass
class Part:
    """One file or table."""

    schema: Any
    chunks: list[Chunk]
    identity: tuple[Any, ...] = ()  # of the file: differs where the data differ
    features: dict[str, Any] | None = None  # of Hugging Face, if not in the schema
    path: str = ""


class File(NamedTuple):
    path: str
    key: str  # below the given folder


def words_of(error: BaseException) -> str:
    """The message of an exception in one line; those of Arrow have several."""
    return " ".join(str(error).split()) or type(error).__name__


def foreign() -> tuple[type[BaseException], ...]:
    """The exceptions that pyarrow raises, also on damaged files."""
    return OSError, ValueError, TypeError, LookupError, framework("pyarrow").ArrowException


@contextlib.contextmanager
def reading(path: str | None, what: str = "") -> Iterator[None]:
    """Turns exceptions of other libraries into a DataError that names the file."""
    try:
        yield
    except Error:
        raise
    except foreign() as error:
        raise DataError(f"{what}cannot be read: {words_of(error)}", path=path or None, stage="open") from error


# ---------------------------------------------------------------- which files


def form_of_path(path: str) -> str:
    """The kind of files: "parquet", "arrow", "saved" (a folder that Hugging Face saved); "": none of these."""
    for prefix in ("parquet", "arrow"):
        if path.startswith(f"{prefix}:"):
            return prefix
    if not os.path.isdir(path):
        return SUFFIXES.get(os.path.splitext(path)[1].lower(), "")
    if _is_saved(path):
        return "saved"
    try:
        with os.scandir(path) as entries:
            names = [entry.name.lower() for _, entry in zip(range(LOOKED_AT), entries, strict=False)]
    except OSError:  # the engine reports it
        return ""
    return next((form for form in ("parquet", "arrow") if any(n.endswith(f".{form}") for n in names)), "")


def _is_saved(folder: str) -> bool:
    def has(name: str) -> bool:
        return os.path.isfile(os.path.join(folder, name))

    return has(SPLITS) or (has(STATE) and has(INFO))


def _braces(pattern: str) -> list[str]:
    """Expands ranges such as {08..10}.

    >>> _braces("x-{08..10}.parquet")
    ['x-08.parquet', 'x-09.parquet', 'x-10.parquet']
    """
    match = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    numbers = [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return [name for n in numbers for name in _braces(pattern[: match.start()] + n + pattern[match.end() :])]


def _found(path: str, form: str) -> list[str]:
    if os.path.isdir(path):
        suffixes = [s for s, kind in SUFFIXES.items() if kind == form]
        names = [n for s in suffixes for n in glob.glob(os.path.join(glob.escape(path), "**", f"*{s}"), recursive=True)]
        return sorted((n for n in names if not os.path.isdir(n)), key=os.fsencode)
    return [
        name
        for one in _braces(path)
        for name in (sorted(glob.glob(one, recursive=True), key=os.fsencode) if glob.has_magic(one) else [one])
    ]


def _key(path: str, given: str) -> str:
    """The path below the given folder; for a pattern, below the folder that contains all its files.

    >>> _key("data/1.parquet", "data/1.parquet"), _key("data/a/1.parquet", "data/*/1.parquet")
    ('1.parquet', 'a/1.parquet')
    """
    folder = given if os.path.isdir(given) else os.path.dirname(re.split(r"[*?\[{]", given, maxsplit=1)[0])
    below = path[len(folder) :] if path.startswith(folder) else path
    return below.lstrip("/")


def files_of(name: str, form: str) -> list[File]:
    """The files of a path, a folder or a pattern, in order."""
    given = re.sub(r"^(parquet|arrow):", "", name)
    found = _found(given, form)
    missing = [p for p in found if not os.path.lexists(p)]
    if not found or missing:
        raise NotFoundError("no such file or folder", path=missing[0] if missing else given, stage="open")
    return [File(path, _key(path, given)) for path in found]


def _size(path: str) -> int:
    """The size of a regular file. Others are refused: opening a pipe would wait for its writer."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise DataError("is not a regular file", path=path, stage="open")
    return about.st_size


# ---------------------------------------------------------------- Parquet


def _footer(path: str) -> bytes:
    """A hash of the footer, which contains the sizes and statistics of all columns in all row groups."""
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        return hashlib.blake2b(file.read(length), digest_size=16).digest()


def of_parquet(file: File) -> Part:
    """A Parquet file, one chunk for each row group."""
    pq, path = framework("pyarrow.parquet"), file.path
    size_of_file = _size(path)
    with pq.ParquetFile(path) as opened:
        about, schema = opened.metadata, opened.schema_arrow
    paths = [about.schema.column(i).path for i in range(about.num_columns)]

    def size(group: int, names: list[str]) -> int:
        mine = [i for i, p in enumerate(paths) if any(p == n or p.startswith(f"{n}.") for n in names)]
        return sum(about.row_group(group).column(i).total_uncompressed_size for i in mine)

    def load(group: int, names: list[str]) -> Any:
        with pq.ParquetFile(path, metadata=about) as reader:  # one for each call, because threads cannot share it
            whole = reader.read_row_group(group, columns=names, use_threads=False)
        return whole.select(names)

    rows = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
    chunks = [
        Chunk(f"{path} row group {g}", f"{file.key} row group {g}", n, partial(load, g), partial(size, g))
        for g, n in enumerate(rows)
        if n
    ]
    return Part(schema, chunks, (file.key, size_of_file, _footer(path)), path=path)


# ---------------------------------------------------------------- Arrow's own format


class Message(NamedTuple):
    """The header of a message."""

    kind: int
    at: int  # offset in the file
    body: int  # bytes
    value: int  # rows of a batch; byte order of a schema, 0: little endian


SCHEMA, BATCH = 1, 3
MAGIC, AFTER_MAGIC = b"ARROW1", 8


def _field(table: bytes, at: int, number: int) -> int:
    """The offset of a field in a FlatBuffers table; 0: it has its default."""
    vtable = at - struct.unpack_from("<i", table, at)[0]
    if struct.unpack_from("<H", table, vtable)[0] <= 4 + 2 * number:
        return 0
    offset = struct.unpack_from("<H", table, vtable + 4 + 2 * number)[0]
    return at + offset if offset else 0


def _number(table: bytes, at: int, number: int, form: str) -> int:
    place = _field(table, at, number)
    return int(struct.unpack_from(form, table, place)[0]) if place else 0


def _message(head: bytes, at: int) -> Message:
    root = struct.unpack_from("<I", head)[0]
    kind, body = _number(head, root, 1, "<B"), _number(head, root, 3, "<q")
    about = _field(head, root, 2)
    about += _number(head, root, 2, "<I")
    value = _number(head, about, 0, "<q" if kind == BATCH else "<h") if kind in (SCHEMA, BATCH) else 0
    if body < 0 or value < 0:
        raise ValueError(f"the message at byte {at} has a negative length")
    return Message(kind, at, body, value)


def _messages(path: str, size: int, at: int) -> Iterator[Message]:
    """All messages from `at` on. Reads the headers and skips the bodies."""
    with open(path, "rb") as file:
        while True:
            file.seek(at)
            marker = file.read(4)
            new = marker == b"\xff\xff\xff\xff"  # older writers omit it
            length = int.from_bytes(file.read(4) if new else marker, "little")
            if length == 0:  # the end marker, or the end of the file
                return
            head = file.read(length) if length <= size else b""
            if len(head) < length:
                raise ValueError(f"the file ends within the message at byte {at}")
            try:
                message = _message(head, at)
            except struct.error:
                raise ValueError(f"the message at byte {at} is damaged") from None
            at += (8 if new else 4) + length + message.body
            if at > size:
                raise ValueError(f"the file ends within the message at byte {message.at}")
            yield message


def of_arrow(file: File) -> Part:
    """An Arrow file or stream, one chunk for each record batch."""
    path = file.path
    size = _size(path)
    with open(path, "rb") as opened:
        is_file = opened.read(len(MAGIC)) == MAGIC
    messages = list(_messages(path, size, AFTER_MAGIC if is_file else 0))
    batches = [m for m in messages if m.kind == BATCH]
    part = _of_file(file, batches) if is_file else _of_stream(file, messages)
    part.identity, part.path = (file.key, size, [(m.body, m.value) for m in batches]), path
    return part


def _of_file(file: File, batches: list[Message]) -> Part:
    pa = framework("pyarrow")
    with pa.OSFile(file.path) as data, pa.ipc.open_file(data) as reader:
        schema, count = reader.schema, reader.num_record_batches
    if count != len(batches):
        raise ValueError(f"the footer lists {count} batches, but the file has {len(batches)}")
    return Part(schema, _chunks(file, batches, partial(_load_batch, file.path, schema), True))


def _of_stream(file: File, messages: list[Message]) -> Part:
    pa = framework("pyarrow")
    with pa.OSFile(file.path) as data, pa.ipc.open_stream(data) as reader:
        schema = reader.schema
        if not all(m.kind == BATCH or (m.kind == SCHEMA and m.value == 0) for m in messages):
            return of_table(reader.read_all(), file)  # batches need the dictionaries that precede them
    batches = [m for m in messages if m.kind == BATCH]
    return Part(schema, _chunks(file, batches, partial(_load_message, file.path, schema), False))


def _chunks(file: File, batches: list[Message], load: Callable[..., Any], apart: bool) -> list[Chunk]:
    return [
        Chunk(
            f"{file.path} batch {i}",
            f"{file.key} batch {i}",
            m.value,
            partial(load, i, m),
            partial(_body, m),
            apart or m.body < SMALL,
        )
        for i, m in enumerate(batches)
        if m.value
    ]


def _body(message: Message, names: list[str]) -> int:
    return message.body


def _load_batch(path: str, schema: Any, i: int, _: Message, names: list[str]) -> Any:
    pa = framework("pyarrow")
    options = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(n) for n in names])
    with pa.OSFile(path) as data, pa.ipc.open_file(data, options=options) as reader:
        return pa.Table.from_batches([reader.get_batch(i)]).select(names)


def _load_message(path: str, schema: Any, _: int, message: Message, names: list[str]) -> Any:
    pa = framework("pyarrow")
    with pa.OSFile(path) as data:
        data.seek(message.at)
        batch = pa.ipc.read_record_batch(pa.ipc.read_message(data), schema)
    return pa.Table.from_batches([batch]).select(names)


def of_table(table: Any, file: File | None = None) -> Part:
    """A table in memory, one chunk for each of its batches."""
    pa = framework("pyarrow")
    tables = [pa.Table.from_batches([b]) for b in table.to_batches() if b.num_rows]
    names = [(f"{file.path} batch {i}", f"{file.key} batch {i}") if file else ("", "") for i in range(len(tables))]
    return Part(table.schema, [Chunk(*names[i], t.num_rows, t.select) for i, t in enumerate(tables)])


# ---------------------------------------------------------------- folders that Hugging Face saved


class Saved(NamedTuple):
    """A folder that Dataset.save_to_disk() wrote."""

    files: list[File]
    features: dict[str, Any] | None
    identity: str


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    with reading(path):
        _size(path)
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
    return found


def saved_in(folder: str) -> Saved:
    """The files and features of a saved dataset."""
    if os.path.isfile(os.path.join(folder, SPLITS)):
        splits = _json(folder, SPLITS).get("splits") or ["train"]
        paths = ", ".join(os.path.join(folder, str(s)) for s in splits)
        raise usage(f"{folder} has several splits; choose one: {paths}")
    state, features = _json(folder, STATE), _json(folder, INFO).get("features")
    with reading(os.path.join(folder, STATE)):
        names = [str(f["filename"]) for f in state["_data_files"]]
        if bad := [n for n in names if os.path.basename(n) != n]:
            raise ValueError(f"it names {bad[0]!r}, which is outside this folder")
    files = [File(os.path.join(folder, n), n) for n in names]
    return Saved(files, features if isinstance(features, dict) else None, str(state.get("_fingerprint")))
