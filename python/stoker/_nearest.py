# SPDX-License-Identifier: Apache-2.0
"""The real name that was meant by one that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# What arguments of Loader are called in other loaders.
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
    """elsewhere: other words for some of the names.

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
