# SPDX-License-Identifier: Apache-2.0
"""ls() and verify(), as the commands `stoker ls` and `stoker verify`."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any

from . import _stoker
from ._errors import DataError
from ._source import Path, Source
from ._types import counted, memory_bytes, whole

Spread = tuple[int, int, int]
OK = 0
SHOWN = 20  # bad samples that a listing prints


@dataclass(frozen=True, repr=False)
class Listing:
    """What a source contains. Prints as a small table.

    >>> print(stoker.ls(photos))                    # doctest: +ELLIPSIS
    source     folder of classes, 12 samples, 2 classes, ... KiB
    fields     image:image, label:int
    formats    PNG 12
    width      32 to 32, median 32
    height     24 to 24, median 24
    """

    kind: str  #: what the source is, for example "folder of classes"
    samples: int
    bytes: int  #: of all files; 0 if not known
    n_classes: int
    fingerprint: int  #: of paths, sizes and labels: it changes when the data changes
    formats: dict[str, int] = field(default_factory=dict)  #: samples of each image format
    bad: list[DataError] = field(default_factory=list)  #: samples that cannot be read
    odd: dict[str, int] = field(default_factory=dict)  #: counts of unusual images: grey, rotated, CMYK, ...
    width: Spread | None = None  #: smallest, median and largest width, as stored
    height: Spread | None = None  #: the same for heights
    fields: str = ""  #: what a batch contains, in the syntax of `fields`
    columns: str = ""  #: other columns that `fields` can select
    left_out: str = ""  #: fields of joined sources that not all of them have

    def __repr__(self) -> str:
        size = f", {self.bytes / 2**20:.1f} MiB" if self.bytes >= 2**20 else f", {self.bytes / 2**10:.1f} KiB"
        classes = f", {counted(self.n_classes, 'class')}" if self.n_classes else ""
        rows = {
            "source": f"{self.kind}, {counted(self.samples, 'sample')}{classes}{size if self.bytes else ''}",
            "fields": self.fields,
            "columns": f"available with fields=: {self.columns}" if self.columns else "",
            "left out": f"not in all sources: {self.left_out}" if self.left_out else "",
            "formats": _counts(self.formats),
            "width": _spread(self.width),
            "height": _spread(self.height),
            "odd": _counts(self.odd),
            "bad": str(len(self.bad)) if self.bad else "",
        }
        lines = [f"{name:<10} {words}" for name, words in rows.items() if words]
        return "\n".join(lines + [f"           {error}" for error in self.bad[:SHOWN]])


def _counts(of: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in of.items())


def _spread(of: Spread | None) -> str:
    return f"{of[0]} to {of[2]}, median {of[1]}" if of else ""


def _spread_of(values: list[int]) -> Spread | None:
    return (min(values), sorted(values)[len(values) // 2], max(values)) if values else None


def _odd(bits: list[int]) -> dict[str, int]:
    words = _stoker.oddities.rstrip(";").split(";")
    counts = {word: sum(b >> i & 1 for b in bits) for i, word in enumerate(words)}
    return {word: n for word, n in counts.items() if n}


def _scan(
    source: Path | Source, decode: bool, threads: int | None, memory: int | str | None
) -> tuple[dict[str, Any], list[Any]]:
    options = (source if isinstance(source, Source) else Source(source)).options()
    if threads is not None:
        options["threads"] = whole("threads", threads, 1, 1024)
    if memory is not None:
        options["memory"] = memory_bytes("memory", memory)
    return _stoker.scan(options, decode, True)


def _bad(findings: list[Any]) -> list[DataError]:
    bad = []
    for sample, path, *_, code, reason, needs_memory in findings:
        if code != OK:
            bad.append(DataError(reason, path, sample, "decode"))
            bad[-1].needs_memory = bool(needs_memory)
    return bad


def ls(source: Path | Source, threads: int | None = None) -> Listing:
    """Reads the header of every sample and reports what the source contains.

    source     a path or a Source
    threads    by default all CPUs that this process may use

    >>> listing = stoker.ls(photos)
    >>> listing.samples, listing.formats
    (12, {'PNG': 12})
    """
    about, findings = _scan(source, False, threads, None)
    seen = [f for f in findings if f[2]]
    return Listing(
        about["kind"],
        about["samples"],
        about["bytes"],
        about["n_classes"],
        about["fingerprint"],
        dict(collections.Counter(f[2] for f in seen)),
        _bad(findings),
        _odd([f[7] for f in seen]),
        _spread_of([f[3] for f in seen]),
        _spread_of([f[4] for f in seen]),
        about["fields"],
        about["columns"],
        about["left_out"],
    )


def verify(source: Path | Source, threads: int | None = None, memory: int | str | None = None) -> list[DataError]:
    """Decodes every sample and returns an exception for each bad one.

    source     a path or a Source
    threads    by default all CPUs that this process may use
    memory     a limit such as "2GiB". If a sample failed only because of it, `needs_memory` of its exception is True.

    >>> stoker.verify(photos)
    []
    """
    return _bad(_scan(source, True, threads, memory)[1])
