# SPDX-License-Identifier: Apache-2.0
"""Keeps the script's folder as it is: what Python code changes there is changed in a copy.

The copy of a file has the same path, below the scratch folder. open() and os.open() make it when they open a file to
write, and everything of `os` that takes a path looks at the copy first: so do pathlib, shutil, glob and tempfile, and
other Python processes of the script. A file that the script removes is only hidden from it.

New folders are made for real, because C libraries may write there. The doctor removes them if they are empty. C
libraries and commands neither see a copy nor make one.
"""

from __future__ import annotations

import builtins
import errno
import functools
import io
import os
import posix  # the functions as they were
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import probe

MOST = 20  # things that are listed
MOST_COPIED = 256 << 20  # bytes of a file that the script changes in part
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
FLAGS = {"w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT, "x": os.O_CREAT | os.O_EXCL, "+": os.O_RDWR}  # of open()
CACHES = ("/__pycache__/", "/.cache/", "/.triton/", "/.nv/", "/torchinductor_")  # which serve later runs
DEVICES = ("/dev/", "/proc/", "/sys/", "/run/")
SYSTEM = (*DEVICES, "/tmp/", "/var/tmp/")
READ = ("stat", "lstat", "access", "readlink", "getxattr", "listxattr")
CHANGE = ("chmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr")

roots: set[str] = set()  # folders whose files are copied, each with a slash at its end
gone: set[str] = set()  # what the script removed, although it is there
made: set[str] = set()  # folders that this process made
noted: set[tuple[str, str | None]] = set()
everywhere = 0  # above 0 while a checkpoint is saved: wherever it goes
scratch = ""  # the folder of the copies
open_here = builtins.open


def install(plan: dict[str, Any]) -> None:
    global scratch
    probe.plan.update(plan)
    scratch = str(plan["scratch"])
    os.makedirs(scratch, exist_ok=True)
    roots.add(str(plan["folder"]) + "/")
    builtins.open = io.open = _open
    for name in READ:
        _replace(name, _reading(getattr(posix, name)))
    for name in CHANGE:
        _replace(name, _changing(getattr(posix, name)))
    for function in (listdir, scandir, mkdir, rmdir, unlink, rename, symlink, link):
        _replace(function.__name__, function)
    _replace("open", os_open)
    _replace("remove", unlink)
    _replace("replace", rename)
    import shutil

    shutil.rmtree = _rmtree(shutil.rmtree)  # type: ignore[assignment]


def _replace(name: str, function: Any) -> None:
    original = getattr(os, name)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in known:
            known.add(function)
    setattr(os, name, functools.wraps(original)(function))
    function.__module__ = "os"  # where pickle finds it


def note(what: str) -> None:
    if len(probe.disabled) < MOST:
        probe.disabled[what] = None


def note_file(what: str, full: str) -> None:
    """Once per line of the script, which may make many files."""
    at = probe.place()
    if (what, at) not in noted:
        noted.add((what, at))
        note(f"{what} {probe.short(full)}" + (f" at {at}" if at else ""))


# ---------------------------------------------------------------- where a file is


@functools.cache
def _folder(script: str) -> str:
    return os.path.dirname(os.path.abspath(script)) + "/"


def absolute(path: Any) -> str | None:
    """None for what is no path, such as a file descriptor."""
    if type(path) is not str:
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        path = os.fsdecode(path)
    return str(os.path.abspath(path))


def is_below(path: str) -> bool:
    """Whether a path is below the folder that the script was started in, below its own, or where it saved before."""
    script = _folder(sys.argv[0]) if getattr(sys, "argv", None) else "//"
    return f"{path}/".startswith((script, *roots))


def is_apart(path: str) -> bool:
    """Whether a file belongs to the doctor, or to a cache."""
    return path.startswith((scratch, str(probe.plan["out"]))) or any(name in path for name in CACHES)


def is_mine(path: str) -> bool:
    return is_below(path) and not is_apart(path)


def adopt(full: str) -> None:
    """From now on, copies stand for this file and those beside it, wherever they are."""
    if not is_mine(full) and not is_apart(full):
        folder = os.path.dirname(full).rstrip("/") + "/"
        roots.add(full if folder in ("/", *SYSTEM) else folder)


def mine(path: Any, changes: bool = True, more: dict[str, Any] | None = None) -> str | None:
    """The absolute path, if a copy may stand for it."""
    full = None if more and any(name.endswith("dir_fd") and more[name] is not None for name in more) else absolute(path)
    if full is None:
        return None
    if everywhere and changes and not full.startswith(DEVICES):
        adopt(full)
    return full if is_below(full) and not (changes and is_apart(full)) else None


def copy(full: str) -> str:
    return scratch + full


def exists(path: str) -> bool:
    return posix.access(path, os.F_OK, follow_symlinks=False)  # does not raise, which is faster


def linked(path: str) -> os.stat_result | None:
    try:
        return posix.lstat(path)
    except OSError:
        return None


def followed(path: str) -> os.stat_result | None:
    try:
        return posix.stat(path)
    except OSError:
        return None


def is_folder(path: str) -> bool:
    status = followed(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_gone(full: str) -> bool:
    while len(full) > 1:
        if full in gone:
            return True
        full = os.path.dirname(full)
    return False


def there(full: str) -> os.stat_result | None:
    """The script's own file, unless the script removed it."""
    return None if is_gone(full) else linked(full)


def seen(full: str) -> str:
    """The path where the script finds this file, if it exists."""
    return copy(full) if exists(copy(full)) or gone and is_gone(full) else full


def found(path: Any, changes: bool = True, more: dict[str, Any] | None = None) -> Any:
    """The same for any path, which is returned as it is if it has no copy."""
    full = mine(path, changes, more)
    other = seen(full) if full else None
    return path if other == full else other


def new(full: str) -> str:
    """The path of a copy that is about to be made."""
    os.makedirs(os.path.dirname(copy(full)), exist_ok=True)
    return copy(full)


# ---------------------------------------------------------------- opening


def opened(path: Any, flags: int, more: dict[str, Any] | None = None) -> Any:
    """The path to open instead; the same one where there is no copy, and where opening fails."""
    if not flags & CHANGES or flags & os.O_TMPFILE == os.O_TMPFILE:
        return found(path, False, more)
    full = mine(path, True, more)
    if full is None or exists(copy(full)):
        return copy(full) if full else path
    old = followed(full) if there(full) else None
    if there(full) and flags & os.O_EXCL or old and not stat.S_ISREG(old.st_mode):
        return path
    if not (old or flags & os.O_CREAT) or not is_folder(seen(os.path.dirname(full))):
        return seen(full)
    if old and not flags & os.O_TRUNC:
        if old.st_size > MOST_COPIED:
            return path
        _fill(full)
    note_file("writing", full)
    return new(full)


def _fill(full: str) -> None:
    with open_here(full, "rb") as source, open_here(new(full), "wb") as target:
        while block := source.read(1 << 20):
            target.write(block)


@functools.cache
def flags_of(mode: str) -> int:
    return sum(FLAGS.get(c, 0) for c in set(mode))


@functools.wraps(open_here)
def _open(file: Any, mode: str = "r", *args: Any, **keywords: Any) -> Any:
    if isinstance(mode, str) and not keywords.get("opener") and len(args) < 6:  # an opener calls os.open()
        file = opened(file, flags_of(mode))
    return open_here(file, mode, *args, **keywords)


def os_open(path: Any, flags: int, *args: Any, **keywords: Any) -> int:
    return posix.open(opened(path, flags, keywords), flags, *args, **keywords)


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, *args: Any, **keywords: Any) -> Any:
        return original(found(path, False, keywords), *args, **keywords)

    return call


def _changing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Changes the copy. Without one, nothing is changed."""

    def call(path: Any, *args: Any, **keywords: Any) -> Any:
        full = mine(path, True, keywords)
        if full and not exists(copy(full)) and there(full):
            note_file("changing", full)
            return None
        return original(found(path, True, keywords), *args, **keywords)

    return call


# ---------------------------------------------------------------- folders


class Entry:
    """An entry of os.scandir(), under the path that the script knows."""

    def __init__(self, entry: Any, folder: str) -> None:
        self._entry, self.name, self.path = entry, entry.name, os.path.join(folder, entry.name)

    def __fspath__(self) -> str:
        return self.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


class Listing:
    """What os.scandir() returns."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._entries)

    def __enter__(self) -> Listing:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def entries(path: Any) -> list[Entry] | None:
    """The script's own files and the copies; None if there is nothing but its own."""
    full = None if isinstance(path, bytes) else mine(path, False)
    if full is None or not (is_folder(copy(full)) or gone and is_folder(full) and not is_gone(full)):
        return None
    both = {}
    for folder in (full, copy(full)):
        if is_folder(folder) and not is_gone(folder):
            both.update({entry.name: entry for entry in posix.scandir(folder) if f"{folder}/{entry.name}" not in gone})
    return [Entry(entry, os.fspath(path)) for entry in both.values()]


def listdir(path: Any = ".") -> Any:
    listed = entries(path)
    return posix.listdir(found(path, False)) if listed is None else [entry.name for entry in listed]


def scandir(path: Any = ".") -> Any:
    listed = entries(path)
    return posix.scandir(found(path, False)) if listed is None else Listing(listed)


def mkdir(path: Any, *args: Any, **keywords: Any) -> None:
    full = mine(path, True, keywords)
    if full and (is_gone(full) or exists(copy(full)) or not is_folder(os.path.dirname(full))):
        is_possible = is_folder(seen(os.path.dirname(full)))
        return posix.mkdir(new(full) if is_possible else copy(full), *args, **keywords)
    posix.mkdir(path, *args, **keywords)
    full = absolute(path)
    if full and keywords.get("dir_fd") is None and not is_apart(full):
        made.add(full)
        with open_here(os.path.join(probe.plan["out"], "folders"), "a") as file:
            file.write(full + "\0")
    return None


def hide(full: str) -> None:
    """Removes a folder that this process made; anything else of the script stays, and the script sees it no more."""
    if full in made:
        try:
            return posix.rmdir(full)
        except OSError:
            pass
    if there(full):
        note_file("removing", full)
        gone.add(full)
    return None


def rmdir(path: Any, *args: Any, **keywords: Any) -> None:
    full = mine(path, True, keywords)
    if full is None or not is_folder(seen(full)):
        return posix.rmdir(found(path, True, keywords), *args, **keywords)
    if listdir(full):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    if is_folder(copy(full)):
        posix.rmdir(copy(full))
    return hide(full)


def _rmtree(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rmtree(path: Any, *args: Any, **keywords: Any) -> Any:
        full = mine(path, True, keywords)
        if full is None or not is_folder(seen(full)):
            return original(path, *args, **keywords)
        if is_folder(copy(full)):
            original(copy(full))
        return hide(full)

    return rmtree


# ---------------------------------------------------------------- names


def unlink(path: Any, *args: Any, **keywords: Any) -> None:
    full = mine(path, True, keywords)
    own = there(full) if full else None
    if full is None or own is None or stat.S_ISDIR(own.st_mode):
        return posix.unlink(found(path, True, keywords), *args, **keywords)
    if exists(copy(full)):
        posix.unlink(copy(full))
    return hide(full)


def rename(source: Any, target: Any, **keywords: Any) -> None:
    first, second = mine(source, True, keywords), mine(target, True, keywords)
    if not first and not second:
        return posix.replace(source, target, **keywords)
    if first and not exists(copy(first)) and there(first) and is_folder(first):
        if listdir(first):
            note_file("moving", first)
            return None
        os.makedirs(copy(first))
    elif first and not exists(copy(first)) and there(first):
        _fill(first)
    posix.replace(found(source), new(second) if second else target)
    return hide(first) if first else None


def symlink(source: Any, target: Any, *args: Any, **keywords: Any) -> None:
    full = mine(target, True, keywords)
    return posix.symlink(source, target if full is None or there(full) else new(full), *args, **keywords)


def link(source: Any, target: Any, **keywords: Any) -> None:
    """A copy instead of a hard link, which cannot lead to another file system."""
    full = mine(target, True, keywords)
    if full is None or there(full):
        return posix.link(source, target, **keywords)
    with _open(source, "rb") as file, open_here(new(full), "xb") as other:
        other.write(file.read())
    return None
