# SPDX-License-Identifier: Apache-2.0
"""Finds open files and databases in a dataset and in functions: processes that inherit one share its position."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import socket
import types
from collections.abc import Iterator
from typing import Any

LIBRARIES = {"sqlite3", "h5py", "lmdb", "psycopg", "psycopg2", "pymysql", "duckdb", "tables", "netCDF4"}
DEPTH, PARTS, OBJECTS = 6, 100, 1000  # limits of the search: levels, parts of a container, objects of a level
PLAIN = (str, bytes, int, float, type(None), type, types.ModuleType)


def _is_handle(value: Any) -> bool:
    if isinstance(value, io.IOBase):
        return not isinstance(value, (io.BytesIO, io.StringIO)) and not value.closed and value.readable()
    if isinstance(value, socket.socket):
        return True
    return type(value).__module__.partition(".")[0] in LIBRARIES


def _of_function(thing: Any) -> Iterator[tuple[str, Any]]:
    """What a function can use, apart from its arguments and its module."""
    if isinstance(thing, types.FunctionType):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # it has no value yet
                yield f".{name}", cell.cell_contents
        defaults = inspect.signature(thing).parameters.items()
        yield from ((f".{name}", p.default) for name, p in defaults if p.default is not p.empty)
    elif isinstance(thing, types.MethodType):
        yield ".__self__", thing.__self__
    elif isinstance(thing, functools.partial):
        yield from ((f".{name}", getattr(thing, name)) for name in ("func", "args", "keywords"))


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object contains, and how to write it after the name of the object."""
    yield from _of_function(thing)
    if isinstance(thing, dict):
        yield from ((f"[{key!r}]", value) for key, value in itertools.islice(thing.items(), PARTS))
    elif isinstance(thing, (list, tuple)):
        yield from ((f"[{i}]", value) for i, value in enumerate(itertools.islice(thing, PARTS)))
    else:
        yield from ((f".{name}", value) for name, value in list(getattr(thing, "__dict__", {}).items()))


def handle_in(*things: Any) -> str:
    """The name of an open file or database in objects or functions; "" without one.

    >>> import types
    >>> handle_in(types.SimpleNamespace(files={"a": [open("/dev/null")]}))
    "SimpleNamespace.files['a'][0]"
    >>> handle_in([1, 2, 3])
    ''
    """
    level = [(getattr(thing, "__name__", type(thing).__name__), thing) for thing in things]
    seen = {id(thing) for thing in things}
    for _ in range(DEPTH):
        inner: list[tuple[str, Any]] = []
        for name, one in level:
            for word, part in _parts(one):
                if id(part) in seen or isinstance(part, PLAIN):
                    continue
                if _is_handle(part):
                    return name + word
                seen.add(id(part))
                inner.append((name + word, part))
        level = inner[:OBJECTS]
    return ""
