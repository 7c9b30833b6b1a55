# SPDX-License-Identifier: Apache-2.0
"""The nearest real name to one that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def hint(name: str, names: Iterable[str]) -> str:
    """
    >>> hint("bacth_size", ["batch_size", "shuffle"])
    '; did you mean batch_size?'
    >>> hint("xyz", ["batch_size", "shuffle"])
    ''
    """
    import difflib

    found = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {found[0]}?" if found else ""
