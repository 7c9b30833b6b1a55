# SPDX-License-Identifier: Apache-2.0
"""pack() and unpack(), as the commands `stoker pack` and `stoker unpack`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from . import _stoker
from ._arguments import Fields, Ops, check_text, check_types
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
    """The progress of packing, or its result. Values that are not known yet are 0.

    >>> seen = []
    >>> packed = stoker.pack(photos, tmp / "seen", progress=seen.append)
    >>> type(seen[0]).__name__, seen[-1].samples
    ('Packed', 12)
    """

    total: int  #: samples to pack
    samples: int  #: samples packed
    bad: int  #: bad samples that were left out
    resumed: int  #: samples that an earlier run had packed
    bytes_in: int  #: bytes read
    bytes_out: int  #: bytes written
    shards: int  #: finished files
    seconds: float  #: duration of this run
    expected_bytes: int  #: estimated size of the result
    expected_seconds: float  #: estimated time left
    free_bytes: int  #: free space on the disk of the result

    @property
    def complete(self) -> bool:
        """Whether all samples are packed.

        >>> stoker.pack(photos, tmp / "packed").complete
        True
        """
        return self.samples + self.bad == self.total


def _sides(resize: str | None) -> tuple[int, int]:
    """Parses `short=256` or `long=500`, as the command does."""
    if resize is None:
        return 0, 0
    side, _, pixels = resize.partition("=")
    if side not in ("short", "long") or not pixels.isdigit() or not 0 < int(pixels) <= 65536:
        raise usage(f"resize is {resize!r}; write short=256 or long=500")
    return (int(pixels), 0) if side == "short" else (0, int(pixels))


def _reporter(function: Callable[[Packed], Any] | None) -> Callable[[dict[str, Any]], bool] | None:
    if function is None:
        return None
    return lambda report: function(Packed(**report)) is False


def pack(
    source: Path | Source,
    out: str | os.PathLike[str],
    transform: Ops = None,
    *,
    fields: Fields | None = None,
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
    """Writes a source to a folder in a form that is fast to read, as `stoker pack` does.

    to           "tar" (default, WebDataset shards), "tfrecord", "hdf5", "npy" or "folder"
    as_          how images are stored: "keep" (default, the bytes of the files), "jpeg", "webp", "png", "raw" or "dct"
    transform    ops to apply first; they must not be random
    resize       "short=256" or "long=500": shrink larger images until that side has this size
    quality      of JPEG or WebP, 1 to 100 (default 90); WebP with 100 is lossless
    fields       which fields to pack, as in `Loader`; by default all
    shard_size   the largest size of a tar or TFRecord file; "256M" by default
    baseline     rewrite progressive JPEGs in one scan, without loss: slightly larger, faster to decode
    shuffle      pack in random order, by `seed`
    on_error     "raise" (default) or "skip" bad samples; max_bad: the share that may be bad
    force        replace a pack in `out` that was made with other options; also allow other files in `out`
    begin        called once with the estimate, and progress: called repeatedly; returning False stops packing

    After any interruption, the same call continues after the last complete shard, with the same result.

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
        raise usage("the transform contains Python functions, but pack() applies only ops; leave them out")
    options |= {"shuffle": int(shuffle), "seed": whole("seed", seed, 0, 2**64 - 1), "ops": ops.text}
    options["on_error"] = choice("on_error", on_error, ON_ERROR)
    if max_bad is not None:
        options["max_bad"] = float(max_bad) or -1.0
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
        _reporter(begin),
        _reporter(progress),
    )
    choices = [fields] if fields is None or isinstance(fields, str) else texts(wanted_of(fields))
    for text in choices[:-1]:  # a word may be a kind or a column: try both
        try:
            return Packed(**_stoker.pack(options | {"fields": text}, out, *how))
        except UsageError:
            pass
    return Packed(**_stoker.pack(options | {"fields": choices[-1]}, out, *how))


def unpack(source: Path, out: str | os.PathLike[str], *, force: bool = False, threads: int | None = None) -> int:
    """Writes the files in tar shards to a folder, and returns how many there are.

    source    a pack, a tar file, or a pattern such as "shard-{000..127}.tar"
    force     overwrite files that exist with other bytes

    Files of a pack get their original names, and their original bytes if those were kept. No file is written outside
    the folder.

    >>> packed = stoker.pack(photos, tmp / "packed")
    >>> stoker.unpack(tmp / "packed", tmp / "files")
    12
    """
    check_text("source", source)
    check_text("out", out)
    report = _stoker.unpack(source, out, force, 0 if threads is None else whole("threads", threads, 1, 1024))
    return int(report["samples"])
