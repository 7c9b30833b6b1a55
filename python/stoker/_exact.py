# SPDX-License-Identifier: Apache-2.0
"""Numbers in another type, or an error where they would become other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import DataError


def converted(name: str, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Floats are rounded to floats; a whole number must stay the same, and nothing becomes infinite.

    >>> converted("x", np.array([1.0, 2.0]), "int64")
    array([1, 2])
    >>> converted("x", np.array([1.0, 2.5]), "int64")
    Traceback (most recent call last):
    stoker.DataError: x has the value 2.5, which int64 cannot hold
    """
    to = np.dtype(dtype)
    if array.dtype == to or to.kind == "b":
        return array.astype(to, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(to)
        wrong = result != array if to.kind in "iu" else np.isinf(result) & np.isfinite(array)
    if np.any(wrong):
        raise DataError(f"{name} has the value {array[wrong][0]}, which {to} cannot hold", stage="read")
    return result
