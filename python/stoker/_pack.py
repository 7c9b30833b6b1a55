# SPDX-License-Identifier: Apache-2.0
"""pack and unpack: what the commands of these names do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _stoker
from ._arguments import check_text, check_types
from ._errors import UsageError, usage
from ._fields import texts, wanted_of
from ._input import transform_of
from ._source import Path, Source
from ._types import ON_ERROR, choice, memory_bytes, whole

To = Literal["tar", "tfrecord", "hdf5", "npy", "folder"]
As = Literal["keep", "jpeg", "webp", "png", "raw", "dct"]
TO: dict[str, int] = {"tar": 1, "tfrecord": 2, "hdf5": 3, "npy": 4, "folder": 5}
AS: dict[str, int] = {"keep": 1, "jpeg": 2, "webp": 3, "png": 4, "raw": 5, "dct": 6}


@dataclass(frozen=True)
class Packed:
    """How far packing is, or what it has made; what is not known yet is 0.

    >>> seen = []
    >>> packed = stoker.pack(photos, tmp / "told", progress=seen.append)
    >>> type(seen[0]).__name__, seen[-1].samples
    ('Packed', 12)
    """

    total: int  #: samples to pack
    samples: int  #: packed
    bad: int  #: left out
    resumed: int  #: of the samples: found there, from an earlier run
    bytes_in: int  #: read of the source
    bytes_out: int  #: written
    shards: int  #: files that are whole
    seconds: float  #: of this run
    expected_bytes: int  #: to be written in all, reckoned from a few samples
    expected_seconds: float  #: that are left
    free_bytes: int  #: on the disk of the target

    @property
    def complete(self) -> bool:
        """Whether all of it is packed.

        >>> stoker.pack(photos, tmp / "packed").complete
        True
        """
        return self.samples + self.bad == self.total


def _sides(resize: str | None) -> tuple[int, int]:
    """`short=256` or `long=500`, as the command takes it."""
    if resize is None:
        return 0, 0
    side, _, pixels = resize.partition("=")
    if side not in ("short", "long") or not pixels.isdigit() or not 0 < int(pixels) <= 65536:
        raise usage(f"resize is {resize!r}; it is short=256 or long=500")
    return (int(pixels), 0) if side == "short" else (0, int(pixels))


def _teller(function: Callable[[Packed], Any] | None) -> Callable[[dict[str, Any]], bool] | None:
    if function is None:
        return None
    return lambda report: function(Packed(**report)) is False


def pack(
    source: Path | Source,
    out: str | os.PathLike[str],
    transform: Any = None,
    *,
    fields: Sequence[str] | dict[str, str] | str | None = None,
    to: To | None = None,
    as_: As | None = None,
    resize: str | None = None,
    quality: int | None = None,
    shard_size: int | str | None = None,
    baseline: bool = False,
    shuffle: bool = False,
    seed: int = 0,
    on_error: Literal["raise", "skip"] = "raise",
    max_bad: float | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    force: bool = False,
    begin: Callable[[Packed], Any] | None = None,
    progress: Callable[[Packed], Any] | None = None,
) -> Packed:
    """Packs a source into a folder, as `stoker pack` does: into tar shards as WebDataset has them, or what `to` says.

    All fields of the source are packed, or those that `fields` names, as `Loader` takes them.
    Pictures keep their very bytes unless `resize`, the ops or `as_` change them; ops must not be random. Stopped in any
    way, the same call goes on behind the last whole shard and ends with the same bytes. `begin` is told what it will
    take, `progress` how far it is; either stops it by returning False.

    >>> packed = stoker.pack(photos, tmp / "packed")
    >>> packed.samples, packed.shards
    (12, 1)
    >>> stoker.Source(tmp / "packed").classes
    ['cat', 'dog']
    """
    check_types({"transform": transform, "fields": fields})
    check_text("out", out)
    options = (source if isinstance(source, Source) else Source(source)).options()
    short, long = _sides(resize)
    ops = transform_of(transform)
    if ops.functions:
        raise usage("the transform has functions of Python in it: what is packed is made by ops alone")
    options |= {"shuffle": int(shuffle), "seed": whole("seed", seed, 0, 2**64 - 1), "ops": ops.text}
    options["on_error"] = choice("on_error", on_error, ON_ERROR)
    if max_bad is not None:
        options["max_bad"] = max_bad if max_bad > 0 else -1.0
    if threads is not None:
        options["threads"] = whole("threads", threads, 1, 1024)
    if memory is not None:
        options["memory"] = memory_bytes("memory", memory)
    how = (
        0 if to is None else choice("to", to, TO),
        0 if as_ is None else choice("as_", as_, AS),
        0 if quality is None else whole("quality", quality, 1, 100),
        memory_bytes("shard_size", shard_size) or 0,
        short,
        long,
        baseline,
        force,
        _teller(begin),
        _teller(progress),
    )
    choices = [fields] if fields is None or isinstance(fields, str) else texts(wanted_of(fields))
    for text in choices[:-1]:  # a word may be a kind or a column: the first text whose columns there are
        try:
            return Packed(**_stoker.pack(options | {"fields": text}, out, *how))
        except UsageError:
            pass
    return Packed(**_stoker.pack(options | {"fields": choices[-1]}, out, *how))


def unpack(source: Path, out: str | os.PathLike[str], *, force: bool = False, threads: int | None = None) -> int:
    """Writes the files that tar shards hold, given as a pack, a file or a pattern, and returns how many there are.

    Of a pack they get the names back that they had, byte for byte where they were kept. None leaves the folder.

    >>> packed = stoker.pack(photos, tmp / "packed")
    >>> stoker.unpack(tmp / "packed", tmp / "files")
    12
    """
    check_text("source", source)
    check_text("out", out)
    report = _stoker.unpack(source, out, force, 0 if threads is None else whole("threads", threads, 1, 1024))
    return int(report["samples"])
