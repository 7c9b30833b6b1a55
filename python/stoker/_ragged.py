# SPDX-License-Identifier: Apache-2.0
"""Fields whose rows differ in length: Ragged (values and offsets) and Padded (values and lengths)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._errors import usage
from ._output import framework


class Ragged:
    """Rows of different lengths in one array.

    values     the values of all rows, one after the other
    offsets    where each row starts: row i is `values[offsets[i]:offsets[i + 1]]`, and `ragged[i]` gives it without a
               copy
    shapes     the shape of each row, if rows differ in more than the first dimension (values are flat then); else None
    views      of a field that follows several views of one name: how many. Then `offsets` has as many rows for each
               sample, and `ragged[i]` is the list of them

    >>> import numpy as np
    >>> r = Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
    >>> len(r), r[0], r.to_list()
    (3, array([1, 2]), [[1, 2], [], [3]])
    """

    __slots__ = ("offsets", "shapes", "values", "views")

    def __init__(self, values: Any, offsets: Any, shapes: Any = None, *, views: int = 1) -> None:
        self.values, self.offsets, self.shapes, self.views = values, offsets, shapes, views

    def __len__(self) -> int:
        return (int(self.offsets.shape[0]) - 1) // self.views

    def __getitem__(self, i: int) -> Any:
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"row {i} is out of range; there are {n} rows")
        i %= n
        return self._row(i) if self.views == 1 else [self._row(i * self.views + k) for k in range(self.views)]

    def _row(self, i: int) -> Any:
        row = self.values[int(self.offsets[i]) : int(self.offsets[i + 1])]
        if self.shapes is None:
            return row
        shape = [int(d) for d in self.shapes[i]]
        return row.reshape(shape) if hasattr(row, "reshape") else framework("tensorflow").reshape(row, shape)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """The rows as lists of plain Python numbers.

        >>> import numpy as np
        >>> Ragged(np.array([0.5, 1.5]), np.array([0, 1, 2])).to_list()
        [[0.5], [1.5]]
        """
        if self.views > 1:
            flat = Ragged(self.values, self.offsets, self.shapes).to_list()
            return [flat[i : i + self.views] for i in range(0, len(flat), self.views)]
        return [(row if hasattr(row, "tolist") else row.numpy()).tolist() for row in self]

    def nested(self) -> Any:
        """The rows as torch's nested tensor (jagged) or TensorFlow's RaggedTensor, without a copy.

        >>> import torch
        >>> Ragged(torch.tensor([1, 2, 3]), torch.tensor([0, 2, 3])).nested().is_nested
        True
        """
        kind = type(self.values).__module__.partition(".")[0]
        if self.shapes is not None:
            raise usage("nested(): the rows differ in more than one dimension, which nested tensors cannot hold")
        if kind == "torch":
            return framework("torch").nested.nested_tensor_from_jagged(self.values, self.offsets)
        if kind == "tensorflow":
            return framework("tensorflow").RaggedTensor.from_row_splits(self.values, self.offsets, validate=False)
        raise usage("nested(): only torch and TensorFlow have nested tensors; pass output='torch' or 'tensorflow'")

    def __repr__(self) -> str:
        shapes = "" if self.shapes is None else f", shapes={self.shapes!r}"
        views = "" if self.views == 1 else f", views={self.views}"
        return f"Ragged({self.values!r}, {self.offsets!r}{shapes}{views})"


class Padded(NamedTuple):
    """Rows padded to the length of the longest: row i is `values[i, : lengths[i]]`.

    >>> import numpy as np
    >>> p = Padded(np.array([[1, 2], [3, 0]]), np.array([2, 1]))
    >>> p.values[1, : p.lengths[1]]
    array([3])
    """

    values: Any
    lengths: Any


def row_of(value: Any, i: int) -> Any:
    """Row i of a field.

    >>> row_of(["a", "b"], 1)
    'b'
    """
    return value.values[i][: int(value.lengths[i])] if isinstance(value, Padded) else value[i]


def rows_in(value: Any) -> int:
    """The number of rows of a field."""
    return len(value.lengths if isinstance(value, Padded) else value)
