# SPDX-License-Identifier: Apache-2.0
"""A loader as data for Keras: a tf.data.Dataset where Keras runs on TensorFlow, else a keras.utils.PyDataset."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ._errors import usage
from ._output import framework
from ._ragged import Ragged
from ._rows import IterableFill
from ._tf_dataset import elements, passes, tf_dataset
from ._types import dtype_name

LOOK = 2  # batches that Keras takes at most, to see their shapes, before it trains


def _check_array(name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, part in value.items():
            _check_array(f"{name}[{key!r}]", part)
    elif isinstance(value, (tuple, list)) and not isinstance(value, Ragged) and any(hasattr(v, "dtype") for v in value):
        for part in value:
            _check_array(name, part)
    elif isinstance(value, Ragged):
        kind = dtype_name(value.values.dtype)
        raise usage(f"{name} has rows of different lengths; pad them with fields='{name}:{kind}(*) pad=0'")
    elif not hasattr(value, "dtype"):
        raise usage(f"{name} is a {type(value).__name__}, not an array; leave it out with fields=")


def _check_batch(batch: Any, backend: str) -> None:
    """Refuses a batch that Keras would refuse, or misunderstand, with its fields' names."""
    if isinstance(batch, dict):
        names, values = list(batch), list(batch.values())
    else:
        values = list(batch) if isinstance(batch, (tuple, list)) else [batch]
        names = list(getattr(batch, "_fields", (f"part {i} of the batch" for i in range(len(values)))))
        if len(values) > 3:
            raise usage(
                f"a batch has {len(values)} fields ({', '.join(names)}), but Keras takes inputs, targets and sample "
                "weights; choose them with fields=, or arrange them with batch_fn"
            )
    if backend != "tensorflow":  # which has tensors of text and ragged tensors
        for name, value in zip(names, values, strict=True):
            _check_array(name, value)


def _check_layout(loader: Any, keras: Any) -> None:
    a, transform = loader._arguments, loader._transform
    if a["collate_fn"] or a["batch_fn"] or transform.functions or transform.partly:
        return  # these may change the layout
    wanted = keras.config.image_data_format()
    if any(c.kind == "image" for c in loader._form.columns) and (wanted == "channels_last") != (a["layout"] == "NHWC"):
        good = "NHWC" if wanted == "channels_last" else "NCHW"
        raise usage(
            f"the images have the layout {a['layout']}, but Keras' image_data_format is {wanted}; pass the loader "
            f"layout='{good}', or call keras.config.set_image_data_format()"
        )


def _py_dataset(keras: Any, loader: Any) -> Any:
    length, new_pass = len(loader), passes(loader, len(loader))

    class Batches(keras.utils.PyDataset):  # type: ignore[misc]
        """Each pass over it is one epoch of the loader, in the loader's order; the indices are ignored.

        Keras takes one batch, or two, to see their shapes, leaves that pass, and begins another to train. These
        batches are delivered again: the epoch has not begun.
        """

        def __init__(self) -> None:
            super().__init__()
            self._begins = True
            self._pass: Iterator[Any] = iter(())
            self._n, self._generation = 0, -1  # batches of the pass so far; the loader's iterator that made them
            self._taken: list[Any] = []  # these batches, while they are few
            self._again: deque[Any] = deque()

        def __len__(self) -> int:
            return length

        @property
        def num_batches(self) -> int:
            self._begins = True  # Keras reads it when it begins to iterate, and at no other time
            return length

        def __getitem__(self, index: int) -> Any:
            if self._begins:
                self._begin()
            if self._again:
                return self._again.popleft()
            n, self._n = self._n + 1, 0  # an exception ends the pass
            batch = elements(next(self._pass))
            self._n, self._generation = n, loader._generation
            self._taken = [*self._taken, batch] if n <= LOOK else []
            return batch

        def _begin(self) -> None:
            self._begins = False
            only_seen = 0 < self._n <= LOOK and self._n < length and self._generation == loader._generation
            if not only_seen:
                self._pass, self._n, self._taken = new_pass(), 0, []
            self._again = deque(self._taken)

    return Batches()


def keras_data(loader: Any) -> Any:
    """Implements Loader.as_keras()."""
    keras = framework("keras")
    backend = keras.config.backend()
    if isinstance(loader._given.fill, IterableFill) and backend != "tensorflow":
        raise usage(
            "an iterable has no length, which Keras needs; use a dataset with __len__, or "
            "fit((tuple(b) for b in loader.forever()), steps_per_epoch=n)"
        )
    _check_layout(loader, keras)
    _check_batch(loader.peek(), backend)
    return tf_dataset(loader) if backend == "tensorflow" else _py_dataset(keras, loader)
