# SPDX-License-Identifier: Apache-2.0
"""Exceptions, with the file, the sample and the stage that failed."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from typing import Any

# Codes of stk_code (stoker.h) that have their own exception.
EUSAGE, EDATA, EROTTEN, ENOTFOUND, ECHANGED, EBUILD = 16, 17, 18, 20, 22, 24


class Error(Exception):
    """Base class of all exceptions that Stoker raises.

    >>> error = Error("is empty", path="train/cat/1.jpg", sample=17, stage="read")
    >>> print(error)
    train/cat/1.jpg: is empty
    >>> error.path, error.sample, error.stage, error.reason
    ('train/cat/1.jpg', 17, 'read', 'is empty')
    """

    path: str | None  #: the file that caused the error, if it was one file
    sample: int | None  #: the index of the sample that caused the error, if it was one sample
    stage: str  #: the stage that failed: "open", "read", "decode", "transform", ...
    reason: str  #: what is wrong, and what to do about it

    def __init__(self, reason: str = "", path: str | None = None, sample: int | None = None, stage: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason, self.path, self.sample, self.stage = reason, path, sample, stage

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...], dict[str, Any]]:
        return type(self), (self.reason, self.path, self.sample, self.stage), dict(vars(self))


class DataError(Error):
    """A sample cannot be read, decoded or transformed, or too many samples are bad.

    >>> raise DataError("the file ends after 20 bytes", path="1.jpg", sample=0, stage="decode")
    Traceback (most recent call last):
    stoker.DataError: 1.jpg: the file ends after 20 bytes
    """

    needs_memory = False  #: set by verify(): it failed only because memory was short, and may be good with more


class UsageError(Error, ValueError):
    """An argument is wrong. Also a ValueError.

    >>> import stoker
    >>> stoker.Loader("/", batch_size=0)
    Traceback (most recent call last):
    stoker.UsageError: batch_size is 0; it must be 1 or more
    """


class NotFoundError(Error, FileNotFoundError):
    """The source does not exist. Also a FileNotFoundError.

    >>> import errno, stoker
    >>> try:
    ...     stoker.Loader("/no/such/folder", "CenterCrop(8)")
    ... except FileNotFoundError as error:
    ...     print(error.path, error.errno == errno.ENOENT)
    /no/such/folder True
    """

    def __init__(self, reason: str = "", path: str | None = None, sample: int | None = None, stage: str = "") -> None:
        super().__init__(reason, path, sample, stage)
        self.errno, self.filename = errno.ENOENT, path

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...], dict[str, Any]]:
        kind, arguments, state = super().__reduce__()
        return kind, arguments, {**state, "errno": self.errno}


def make(code: int, os_error: int, sample: int, stage: str, path: str, reason: str) -> Error:
    """Makes the exception for an error of the engine."""
    kind: type[Error] = Error
    if code in (EUSAGE, ECHANGED, EBUILD):
        kind = UsageError
    elif code in (EDATA, EROTTEN) or sample >= 0:
        kind = DataError
    elif code == ENOTFOUND:
        kind = NotFoundError
    error = kind(reason, path or None, sample if sample >= 0 else None, stage)
    if isinstance(error, NotFoundError) and os_error:
        error.errno = os_error
    return error


def bad_limit(share: float | None, samples: int) -> int:
    """How many samples of an epoch may be bad: a share, but at least one; none if the share is 0.

    >>> bad_limit(None, 10_000), bad_limit(0.1, 5), bad_limit(0, 5)
    (100, 1, 0)
    """
    share = 0.01 if share is None else share
    return max(1, int(share * samples)) if share > 0 else 0


def usage(reason: str) -> UsageError:
    return UsageError(reason, stage="open")


def unusable(text: Any, why: ValueError) -> UsageError:
    """For text that C cannot hold; called by the extension.

    >>> print(unusable("a\\0b", ValueError("embedded null byte")))
    the text 'a\\x00b' cannot be used: embedded null byte; remove it, or choose another name
    """
    error = usage(f"the text {text!r} cannot be used: {why}; remove it, or choose another name")
    error.__cause__ = why
    return error


# Names in other loaders, and the argument of Loader that does the same.
ELSEWHERE = {
    "num_workers": "threads",
    "num_threads": "threads",
    "workers": "threads",
    "bs": "batch_size",
    "dataset": "source",
    "root": "source",
    "ops": "transform",
    "generator": "seed",
    "num_shards": "world_size",
    "shard_id": "rank",
    "class_names": "classes",
}


def hint(name: str, names: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """Text that suggests one of the names; "" when none is close. elsewhere: other words for some of them.

    >>> hint("bacth_size", ["batch_size", "shuffle"])
    '; did you mean batch_size?'
    >>> hint("xyz", ["batch_size", "shuffle"])
    ''
    >>> hint("num_workers", ["batch_size", "threads"], ELSEWHERE)
    '; did you mean threads?'
    """
    import difflib

    if elsewhere and name in elsewhere:
        return f"; did you mean {elsewhere[name]}?"
    found = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {found[0]}?" if found else ""


for _class in (Error, DataError, UsageError, NotFoundError):
    _class.__module__ = "stoker"  # where users find them
