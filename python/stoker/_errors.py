# SPDX-License-Identifier: Apache-2.0
"""Exceptions: what went wrong, where, and with which sample."""

from __future__ import annotations

import errno
from typing import Any

# Those codes of stoker.h's stk_code that have exceptions of their own.
EUSAGE, EDATA, EROTTEN, ENOTFOUND, ECHANGED, EBUILD = 16, 17, 18, 20, 22, 24


class Error(Exception):
    """Anything that Stoker has to complain about.

    >>> error = Error("is empty", path="train/cat/1.jpg", sample=17, stage="read")
    >>> print(error)
    train/cat/1.jpg: is empty
    >>> error.path, error.sample, error.stage, error.reason
    ('train/cat/1.jpg', 17, 'read', 'is empty')
    """

    path: str | None  #: the file, when one is to blame
    sample: int | None  #: the sample, when one is to blame
    stage: str  #: "read", "decode", "transform", ...
    reason: str  #: why, and what to do about it

    def __init__(self, reason: str = "", path: str | None = None, sample: int | None = None, stage: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason, self.path, self.sample, self.stage = reason, path, sample, stage

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...], dict[str, Any]]:
        return type(self), (self.reason, self.path, self.sample, self.stage), dict(vars(self))


class DataError(Error):
    """A sample that cannot be read, decoded or transformed, or too many of them.

    >>> raise DataError("the file ends after 20 bytes", path="1.jpg", sample=0, stage="decode")
    Traceback (most recent call last):
    stoker.DataError: 1.jpg: the file ends after 20 bytes
    """

    needs_memory = False  #: it is bad for want of memory alone, as verify() found: with more it may be good


class UsageError(Error, ValueError):
    """A wrong argument; also a ValueError.

    >>> import stoker
    >>> stoker.Loader("/", batch_size=0)
    Traceback (most recent call last):
    stoker.UsageError: batch_size is 0; it must be 1 or more
    """


class NotFoundError(Error, FileNotFoundError):
    """A source that is not there; also a FileNotFoundError.

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
    """The exception for an error of the engine."""
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


for _class in (Error, DataError, UsageError, NotFoundError):
    _class.__module__ = "stoker"  # where users find them
