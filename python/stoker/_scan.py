# SPDX-License-Identifier: Apache-2.0
"""ls and verify: what the commands of these names do."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any

from . import _stoker
from ._errors import DataError
from ._source import Path, Source
from ._types import memory_bytes, whole

OK = 0
SHOWN = 20  # bad samples that a listing prints


@dataclass(frozen=True)
class Listing:
    """What is in a source; prints as a small table.

    >>> print(stoker.ls(photos))                    # doctest: +ELLIPSIS
    source     folder of classes, 12 samples, 2 classes, ... KiB
    formats    PNG 12
    bad        0
    """

    kind: str
    samples: int
    bytes: int
    n_classes: int
    fingerprint: int
    formats: dict[str, int] = field(default_factory=dict)
    bad: list[DataError] = field(default_factory=list)

    def __str__(self) -> str:
        formats = ", ".join(f"{name} {n}" for name, n in self.formats.items())
        lines = [
            f"source     {self.kind}, {self.samples} samples, {self.n_classes} classes, {self.bytes / 1024:.1f} KiB",
            f"formats    {formats or 'none'}",
            f"bad        {len(self.bad)}",
        ]
        return "\n".join(lines + [f"           {error}" for error in self.bad[:SHOWN]])


def _scan(
    source: Path | Source, decode: bool, threads: int | None, memory: int | str | None
) -> tuple[dict[str, Any], list[Any]]:
    options = (source if isinstance(source, Source) else Source(source)).options()
    if threads is not None:
        options["threads"] = whole("threads", threads, 1, 1024)
    if memory is not None:
        options["memory"] = memory_bytes("memory", memory)
    return _stoker.scan(options, decode)


def _bad(findings: list[Any]) -> list[DataError]:
    bad = []
    for sample, path, *_, code, reason, needs_memory in findings:
        if code != OK:
            bad.append(DataError(reason, path, sample, "decode"))
            bad[-1].needs_memory = bool(needs_memory)
    return bad


def ls(source: Path | Source, threads: int | None = None) -> Listing:
    """Looks at the header of every sample.

    >>> listing = stoker.ls(photos)
    >>> listing.samples, listing.formats
    (12, {'PNG': 12})
    """
    about, findings = _scan(source, False, threads, None)
    formats = collections.Counter(f[2] for f in findings if f[2])
    return Listing(
        about["kind"],
        about["samples"],
        about["bytes"],
        about["n_classes"],
        about["fingerprint"],
        dict(formats),
        _bad(findings),
    )


def verify(source: Path | Source, threads: int | None = None, memory: int | str | None = None) -> list[DataError]:
    """Decodes every sample and returns what is bad; `needs_memory` marks what may be good with more memory.

    >>> stoker.verify(photos)
    []
    """
    return _bad(_scan(source, True, threads, memory)[1])
