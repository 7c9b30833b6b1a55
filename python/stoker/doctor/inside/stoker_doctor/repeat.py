# SPDX-License-Identifier: Apache-2.0
"""The batch that is repeated when the model runs alone: every step gets it as it was at first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from . import probe


class Repeated:
    """A batch, and copies of the arrays in it that a script may change in place, as with images.div_(255)."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.kept = [(one, copied(one), version(one)) for one in changeable(batch)]

    def again(self) -> Any:
        """The same arrays in a new container, because scripts take values out of a dictionary."""
        self.kept = [(one, first, restored(one, first, before)) for one, first, before in self.kept]
        return type(self.batch)(self.batch) if type(self.batch) in (dict, list) else self.batch


def changeable(batch: Any) -> Iterator[Any]:
    """The tensors of torch and the arrays of NumPy in a batch; those of JAX and TensorFlow cannot be changed."""
    if isinstance(batch, probe.array_types()):
        yield batch
        return
    values = getattr(batch, "values", None)
    for one in values() if callable(values) else batch if isinstance(batch, list | tuple) else ():
        yield from changeable(one)


def copied(array: Any) -> Any:
    return array.detach().clone() if hasattr(array, "detach") else array.copy()


def version(array: Any) -> Any:
    """What torch counts up whenever a tensor is changed; None if nothing is counted."""
    try:
        return getattr(array, "_version", None)
    except RuntimeError:  # of a tensor that was made in torch.inference_mode()
        return None


def restored(array: Any, first: Any, before: Any) -> Any:
    """Undoes changes to an array, and returns its version. It stays the same array: it may be pinned."""
    if before is None or version(array) != before:
        if hasattr(array, "detach"):
            with sys.modules["torch"].inference_mode(array.is_inference()), sys.modules["torch"].no_grad():
                array.copy_(first)
        elif array.flags.writeable:
            array[...] = first
    return version(array)
