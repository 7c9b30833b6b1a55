# SPDX-License-Identifier: Apache-2.0
"""Arrow types, and the few plain forms that the engine reads."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._output import framework
from ._types import DTYPE_CODES

KIND_CODES = {"image": 1, "int": 2, "float": 3, "tensor": 4, "bytes": 5, "text": 6, "json": 7}
STORAGE = {"numbers": 0, "bits": 1, "bytes32": 2, "bytes64": 3, "fixed": 4, "image": 5}
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff")
MOST_LEVELS = 8
LOOKED_AT = 64  # values that decide what a column contains


@dataclass
class Plan:
    """How a column is read: its kind, its storage, and the conversion that comes first."""

    kind: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()  # -1: differs between rows
    storage: str = "numbers"
    item: int = 0  # bytes of a number; bits of the offsets of an image
    levels: tuple[int, ...] = ()  # of nested lists: bits of their offsets (32, 64), or -n for a fixed size n
    wide_path: int = 0  # bits of the offsets of an image's path
    refused: str = ""  # why it cannot be read
    is_empty: bool = False  # null in every row, without a type
    cast: Any = None  # the type to convert to
    make: Callable[[Any], Any] | None = None  # or a function that converts

    def spec(self, name: str, label: bool) -> tuple[Any, ...]:
        label = label and not self.levels and self.storage == "numbers"
        kind = KIND_CODES["int" if label else self.kind]
        dtype = DTYPE_CODES.get(self.dtype, 0)
        storage = STORAGE[self.storage]
        return name, kind, dtype, self.shape, int(label), storage, self.item, self.levels, self.wide_path

    def brought(self, column: Any) -> Any:
        """The column as one array in the form that the engine reads."""
        pa = framework("pyarrow")
        chunks = [_plain(c) for c in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
        array = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        if self.make is not None:
            return self.make(array)
        return array if self.cast is None else array.cast(self.cast)


def _plain(array: Any) -> Any:
    """The values of an extension, dictionary or run-end array."""
    pa = framework("pyarrow")
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            rows = np.arange(array.offset, array.offset + len(array))
            array = array.values.take(pa.array(np.searchsorted(array.run_ends.to_numpy(), rows, side="right")))
        else:
            return array


def is_image(value: Any) -> bool | None:
    """Whether a value is an image, by its first bytes or by the suffix of its path; None: there is no value.

    >>> is_image({"bytes": None, "path": "a.JPG"}), is_image(b"text"), is_image({"bytes": None})
    (True, False, None)
    """
    stored, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    if stored:
        start = bytes(stored[:12])
        return start.startswith(MAGIC) or (start[:4] == b"RIFF" and start[8:] == b"WEBP")
    return str(path).lower().endswith(IMAGE_SUFFIXES) if path else None


def _seen(values: Iterable[Any]) -> list[bool]:
    """Whether each of the first values is an image; missing values are skipped."""
    known = (found for value in values if (found := is_image(value)) is not None)
    return list(itertools.islice(known, LOOKED_AT))


def _json_of(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _as_json(column: Any) -> Any:
    """Nested values as JSON text."""
    pa = framework("pyarrow")
    rows = (None if v is None else json.dumps(v, default=_json_of) for v in column.to_pylist())
    return pa.array(rows, pa.large_string())


def _as_text(column: Any) -> Any:
    pa = framework("pyarrow")
    return pa.array((None if v is None else str(v) for v in column.to_pylist()), pa.large_string())


def _as_image(array: Any) -> Any:
    """A structure of "bytes" and "path", in this order and of plain types; other members are dropped."""
    pa, pc = framework("pyarrow"), framework("pyarrow.compute")
    types = {"bytes": pa.large_binary(), "path": pa.large_string()}
    names = [name for name in types if name in [f.name for f in array.type]]
    parts = [pc.struct_field(array, name).cast(types[name]) for name in names]
    return pa.StructArray.from_arrays(parts, fields=[pa.field(n, types[n]) for n in names], mask=pc.is_null(array))


def _number(t: Any) -> tuple[str, int] | None:
    """The engine's name of a numeric type, and its size in bytes."""
    types = framework("pyarrow").types
    if types.is_integer(t) or types.is_floating(t):
        name = {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(t), str(t))
        return name, t.bit_width // 8
    if types.is_timestamp(t) or types.is_date64(t) or types.is_time64(t) or types.is_duration(t):
        return "int64", 8
    if types.is_date32(t) or types.is_time32(t):
        return "int32", 4
    return None


def _text_plan(t: Any, kind: str) -> Plan:
    types, pa = framework("pyarrow").types, framework("pyarrow")
    if types.is_large_string(t) or types.is_large_binary(t):
        return Plan(kind, storage="bytes64")
    if types.is_string(t) or types.is_binary(t):
        return Plan(kind, storage="bytes32")
    return Plan(kind, storage="bytes64", cast=pa.large_string() if kind == "text" else pa.large_binary())  # views


def _is_text(t: Any) -> bool:
    types = framework("pyarrow").types
    return bool(types.is_string(t) or types.is_large_string(t) or types.is_string_view(t))


def _is_bytes(t: Any) -> bool:
    types = framework("pyarrow").types
    return bool(types.is_binary(t) or types.is_large_binary(t) or types.is_binary_view(t))


def _list_plan(t: Any, shape: tuple[int, ...] | None) -> Plan:
    """Lists of numbers, which may be nested; other lists become JSON."""
    pa, types = framework("pyarrow"), framework("pyarrow").types
    levels: list[int] = []
    inner = t
    while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
        fixed = types.is_fixed_size_list(inner)
        levels.append(-inner.list_size if fixed else 64 if types.is_large_list(inner) else 32)
        inner = inner.value_type
    number, cast = _number(inner), None
    if types.is_boolean(inner):
        cast, number = pa.uint8(), ("uint8", 1)
        for level in reversed(levels):
            made = {32: pa.list_, 64: pa.large_list}.get(level)
            cast = made(cast) if made else pa.list_(cast, -level)
    if number is None or len(levels) > MOST_LEVELS or 0 in levels:
        return Plan("json", storage="bytes64", make=_as_json)
    found = shape or tuple(-n if n < 0 else -1 for n in levels)
    if len(found) != len(levels):
        found = tuple(-n if n < 0 else -1 for n in levels)
    return Plan("tensor", number[0], found, "numbers", number[1], tuple(levels), cast=cast)


def _holds_images(t: Any) -> bool:
    """Whether a structure has the form of Hugging Face's images. A member that is null in every row has no type."""
    types = framework("pyarrow").types
    fields = {f.name: f.type for f in t}
    stored, path = fields.get("bytes"), fields.get("path")
    if stored is None or not (path is None or types.is_null(path) or _is_text(path)):
        return False
    return _is_bytes(stored) or (types.is_null(stored) and path is not None and _is_text(path))


def _struct_plan(t: Any, has_images: Callable[[], bool]) -> Plan:
    if not _holds_images(t) or not has_images():
        return Plan("json", storage="bytes64", make=_as_json)
    fields = {f.name: f.type for f in t}
    stored, path = fields["bytes"], fields.get("path")
    wide = {"binary": 32, "string": 32, "large_binary": 64, "large_string": 64}
    if list(fields) in (["bytes", "path"], ["bytes"]) and all(str(one) in wide for one in fields.values()):
        return Plan("image", storage="image", item=wide[str(stored)], wide_path=wide.get(str(path), 0))
    return Plan("image", storage="image", item=64, wide_path=64, make=_as_image)


def plan_of(t: Any, feature: Any, look: Callable[[], Iterable[Any]]) -> Plan:
    """How to read a column. feature: its feature in Hugging Face's notation; look: iterates over its values."""
    pa, types = framework("pyarrow"), framework("pyarrow").types
    shape = None
    is_noted = isinstance(feature, dict) and feature.get("_type") == "Image"

    def mostly_images() -> bool:
        seen = [] if is_noted else _seen(look())
        return is_noted or 2 * sum(seen) > len(seen)

    if isinstance(t, pa.BaseExtensionType):
        shape = tuple(int(n) for n in t.shape if n is not None) if hasattr(t, "shape") else None
        t = t.storage_type
    if isinstance(feature, dict) and isinstance(feature.get("shape"), list) and None not in feature["shape"]:
        shape = tuple(int(n) for n in feature["shape"])
    if types.is_dictionary(t) or types.is_run_end_encoded(t):
        return plan_of(t.value_type, feature, look)
    if types.is_null(t):
        return Plan(refused="it has no values; give it a default (x:int ? 0)", is_empty=True)
    if types.is_boolean(t):
        return Plan("tensor", "bool", storage="bits")
    if (number := _number(t)) is not None:
        return Plan("tensor", number[0], (), "numbers", number[1])
    if _is_text(t):
        return _text_plan(t, "text")
    if _is_bytes(t):
        return _text_plan(t, "image" if mostly_images() else "bytes")
    if types.is_fixed_size_binary(t):
        return Plan("bytes", storage="fixed", item=t.byte_width)
    if types.is_list(t) or types.is_large_list(t) or types.is_fixed_size_list(t):
        return _list_plan(t, shape)
    if types.is_struct(t):
        return _struct_plan(t, lambda: is_noted or any(_seen(look())))
    if types.is_decimal(t):
        return Plan("text", storage="bytes64", make=_as_text)
    if types.is_interval(t) or types.is_map(t) or types.is_union(t) or types.is_nested(t):
        return Plan("json", storage="bytes64", make=_as_json)
    return Plan(refused=f"Stoker does not read the type {t}")


def empty_plan(kind: str, default: str) -> Plan | None:
    """How to read a column that has a default but no values; None: it cannot be read as this kind.

    >>> empty_plan("int", "-1").dtype, empty_plan("", "0.5").dtype, empty_plan("", "none").kind
    ('int64', 'float64', 'text')
    """
    pa = framework("pyarrow")
    if not kind:
        kind = "int" if re.fullmatch(r"[-+]?\d+", default) else "float" if _is_number(default) else "text"
    if kind in ("int", "float"):
        dtype = f"{kind}64"
        return Plan("tensor", dtype, (), "numbers", 8, cast=pa.int64() if kind == "int" else pa.float64())
    if kind in ("text", "json", "bytes"):
        is_bytes = kind == "bytes"
        return Plan(kind, storage="bytes64", cast=pa.large_binary() if is_bytes else pa.large_string())
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def image_plan(t: Any) -> Plan | None:
    """The plan for a structure that the user says contains images; None: it has another form."""
    pa, types = framework("pyarrow"), framework("pyarrow").types
    if isinstance(t, pa.BaseExtensionType):
        t = t.storage_type
    return _struct_plan(t, lambda: True) if types.is_struct(t) and _holds_images(t) else None
