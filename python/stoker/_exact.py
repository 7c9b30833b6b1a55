# SPDX-License-Identifier: Apache-2.0
"""Numbers in another type, or an error where they would become other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import DataError


def _changed(integers: np.ndarray[Any, Any], floats: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where floats differ from the integers that they were made of.

    They are cast back to compare them. That is undefined outside the range of the integers, so the range comes first:
    2**63 - 1 becomes 2.0**63, which int64 does not have.
    """
    wide = floats.astype(np.float64)
    end = float(np.iinfo(integers.dtype).max + 1)
    changed: np.ndarray[Any, Any] = (wide >= end) | (wide < -end) | (wide.astype(integers.dtype) != integers)
    return changed


def converted(name: str, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Floats are rounded to floats; integers must stay the same, and no finite number becomes infinite.

    >>> converted("x", np.array([1.0, 2.0]), "int64")
    array([1, 2])
    >>> converted("x", np.array([1.0, 2.5]), "int64")
    Traceback (most recent call last):
    stoker.DataError: x has the value 2.5, which int64 cannot hold
    >>> converted("x", np.array([16777217]), "float32")
    Traceback (most recent call last):
    stoker.DataError: x has the value 16777217, which float32 cannot hold
    """
    to = np.dtype(dtype)
    if array.dtype == to or to.kind == "b":
        return array.astype(to, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        result = array.astype(to)
        if to.kind in "iu":
            wrong = result != array
        elif array.dtype.kind in "iu":
            wrong = _changed(array, result)
        else:
            wrong = np.isinf(result) & np.isfinite(array)
    if np.any(wrong):
        raise DataError(f"{name} has the value {array[wrong][0]}, which {to} cannot hold", stage="read")
    return result
