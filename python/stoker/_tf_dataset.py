# SPDX-License-Identifier: Apache-2.0
"""A loader as a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ._errors import usage
from ._output import framework
from ._ragged import Padded, Ragged
from ._rows import IterableFill
from ._types import dtype_name


def _element(value: Any) -> Any:
    if isinstance(value, Ragged):
        return framework("tensorflow").RaggedTensor.from_row_splits(value.values, value.offsets, validate=False)
    return tuple(value) if isinstance(value, Padded) else value


def elements(batch: Any) -> Any:
    """The batch as Keras takes it: x, y and weights by their position in a plain tuple, or a dict."""
    if isinstance(batch, dict):
        return {name: _element(value) for name, value in batch.items()}
    return tuple(map(_element, batch)) if isinstance(batch, tuple) else _element(batch)


def _spec(tf: Any, value: Any, rows: int | None, is_open: bool = False) -> Any:
    if isinstance(value, list) and all(isinstance(v, (str, bytes)) for v in value):
        return tf.TensorSpec((rows,), tf.string)
    if isinstance(value, Ragged) and value.shapes is None:
        shape = (rows, None, *value.values.shape[1:])
        return tf.RaggedTensorSpec(shape, dtype_name(value.values.dtype), ragged_rank=1, row_splits_dtype=tf.int64)
    if isinstance(value, Padded):
        shape = (rows, None, *value.values.shape[2:])
        return tf.TensorSpec(shape, dtype_name(value.values.dtype)), _spec(tf, value.lengths, rows)
    if not hasattr(value, "dtype"):
        raise usage(f"TensorFlow has no tensor for a {type(value).__name__}; leave that field out with fields=")
    sides = [None] * 3 if is_open and value.ndim == 4 else value.shape[1:]
    return tf.TensorSpec((rows, *sides), dtype_name(value.dtype))


def _specs(tf: Any, batch: Any, rows: int | None, is_open: bool) -> Any:
    if isinstance(batch, dict):
        return {name: _specs(tf, value, rows, is_open) for name, value in batch.items()}
    if isinstance(batch, tuple) and not isinstance(batch, Padded):
        return tuple(_specs(tf, value, rows, is_open) for value in batch)
    return _spec(tf, batch, rows, is_open)


def _rows(loader: Any) -> int | None:
    """The rows of a batch if all batches have the same number, so that the graph knows the shapes; else None."""
    a = loader._arguments
    equal = (a["drop_last"] or a["pad_last"]) and a["on_error"] != "skip" and a["collate_fn"] is a["batch_fn"] is None
    return loader.batch_size if equal else None


def passes(loader: Any, length: int) -> Callable[[], Iterator[Any]]:
    """A pass is one epoch. After resuming in the middle, it has as many batches, and the next continues from there."""
    kept: list[tuple[Iterator[Any], int]] = []

    def batches() -> Iterator[Any]:
        it, generation = kept.pop() if kept else (iter(()), -1)
        if generation != loader._generation:  # none is kept, another was begun since, or a state was loaded
            it = iter(loader)
        crossed = False
        for n in range(1, length + 1):
            batch = next(it, None)
            if batch is None:
                it, crossed = iter(loader), True
                batch = next(it)
            if crossed and n == length:  # before the last batch: nothing is asked for after it
                kept.append((it, loader._generation))
            yield elements(batch)

    return batches


def tf_dataset(loader: Any) -> Any:
    """Implements Loader.as_tf_dataset()."""
    tf = framework("tensorflow")
    specs = _specs(tf, loader.peek(), _rows(loader), loader._form.is_open)
    if isinstance(loader._given.fill, IterableFill):
        data = tf.data.Dataset.from_generator(lambda: map(elements, loader), output_signature=specs)
    else:
        data = tf.data.Dataset.from_generator(passes(loader, len(loader)), output_signature=specs)
        data = data.apply(tf.data.experimental.assert_cardinality(len(loader)))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = (
        False  # the engine prefetches; a state counts what was trained on
    )
    return data.with_options(options)
