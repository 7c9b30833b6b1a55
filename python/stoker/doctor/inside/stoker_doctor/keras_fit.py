# SPDX-License-Identifier: Apache-2.0
"""Keras fit(): steps are timed by the callbacks.

With TensorFlow, batches are taken inside a compiled step. Waiting cannot be timed there; it is the difference between
a step as it is and a step of the model alone.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import probe
from .frameworks import prefetched
from .hooks import after

current: list[probe.Loop] = []  # the loop of the fit() that runs


def install() -> None:
    after("keras.src.backend.tensorflow.trainer", _tensorflow)
    after("keras.src.backend.jax.trainer", _jax)
    after("keras.src.callbacks.callback_list", _callbacks)


def _tensorflow(module: Any) -> None:
    original = module.TFEpochIterator.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        probe.depth += 1  # batches that Keras takes while it sets up are not steps
        try:
            original(self, *args, **keywords)
        finally:
            probe.depth -= 1
        caller = sys._getframe(1)
        if caller.f_code.co_name != "fit" or "epoch_iterator" in caller.f_locals or not probe.is_watching():
            return
        data = self._distributed_dataset = prefetched(self._distributed_dataset)
        loop = probe.Loop(keywords.get("x", data), kind(keywords.get("x")), probe.place())
        loop.in_graph = True
        probe.computing.add("tensorflow")
        probe.loops.append(loop)
        current[:] = [loop]
        if loop.is_target and probe.plan.get("mode") == "loader":
            from . import alone

            alone.run(loop, lambda: iter(data))
        if loop.is_target and probe.plan.get("mode") == "model":
            self._distributed_dataset = data.take(1).cache().repeat()
        loop.open()

    module.TFEpochIterator.__init__ = __init__


def kind(x: Any) -> str:
    name = type(x).__module__
    return "stoker" if name.startswith("stoker") else "tf.data" if name.startswith("tensorflow") else "keras"


def _jax(module: Any) -> None:
    original = module.JAXEpochIterator._get_iterator

    @functools.wraps(original)
    def _get_iterator(self: Any) -> Any:
        return probe.opened(self.data_adapter, "keras", lambda: iter(original(self)))

    module.JAXEpochIterator._get_iterator = _get_iterator


def _callbacks(module: Any) -> None:
    owner = module.CallbackList
    begin, end = owner.on_train_batch_begin, owner.on_train_batch_end
    test_begin, test_end = owner.on_test_begin, owner.on_test_end
    epoch_end = owner.on_epoch_end

    def on_train_batch_begin(self: Any, batch: Any, logs: Any = None) -> None:
        if current and probe.is_watching():
            now = probe.clock()
            if now > probe.deadline:
                probe.finish("ok")
            current[0].note(now, now, None)
            current[0].sizes[-1] = size(current[0].thing)
        begin(self, batch, logs)

    def on_train_batch_end(self: Any, batch: Any, logs: Any = None) -> None:
        probe.updates += 1
        if isinstance(logs, dict) and len(probe.losses) < 2000 and "loss" in logs:
            probe.losses.append((probe.updates, logs["loss"]))
        end(self, batch, logs)

    def on_test_begin(self: Any, logs: Any = None) -> None:
        probe.begin_stall("evaluation", probe.place())
        if current:
            current[0].closed.append(probe.clock())
        test_begin(self, logs)

    def on_test_end(self: Any, logs: Any = None) -> None:
        probe.end_stall("evaluation")
        test_end(self, logs)

    def on_epoch_end(self: Any, epoch: Any, logs: Any = None) -> None:
        if current:
            current[0].closed.append(probe.clock())
            current[0].open()
        epoch_end(self, epoch, logs)

    for function in (on_train_batch_begin, on_train_batch_end, on_test_begin, on_test_end, on_epoch_end):
        setattr(owner, function.__name__, function)


def size(data: Any) -> int:
    """Samples per batch, from the specification of a dataset or from the arguments of fit()."""
    spec = getattr(data, "element_spec", None)
    array = probe.first_array(spec)
    if array is not None and len(array.shape) and array.shape[0]:
        return int(array.shape[0])
    for _ in range(8):  # through prefetch and the like
        size_of = getattr(data, "_batch_size", None)
        if size_of is not None:
            return int(size_of)
        data = getattr(data, "_input_dataset", None)
    known = current[0].sizes[0] if current and current[0].sizes and current[0].sizes[0] > 1 else 0
    return known or batch_size_of_fit() or 1


def batch_size_of_fit() -> int:
    """The batch_size of the fit() that is running, or the size of a batch that it has."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "fit" and "epoch_iterator" in frame.f_locals:
            adapter = getattr(frame.f_locals["epoch_iterator"], "data_adapter", None)
            first = probe.first_array(getattr(adapter, "_first_batches", None))  # of a generator
            own = getattr(getattr(adapter, "py_dataset", None), "batch_size", None)
            try:
                return int(getattr(adapter, "batch_size", None) or (first is not None and first.shape[0]) or own or 0)
            except (TypeError, IndexError):
                return 0
        frame = frame.f_back
    return 0
