# SPDX-License-Identifier: Apache-2.0
"""Clocks on the loaders that are recognised without stoker.watch(), and on the framework's own steps."""

from __future__ import annotations

import functools
import inspect
import os
import random
import sys
import zlib
from collections.abc import Callable
from typing import Any

from . import device, probe, sampler
from .frameworks import note_jit, note_tape
from .hooks import after

NOTED = 3  # updates whose callers are looked at


def install() -> None:
    after("torch.utils.data.dataloader", _torch_loader)
    after("torch.utils.data._utils.worker", _torch_worker)
    after("torch.optim.optimizer", _torch_optimizer)
    after("torch.autograd", _torch_backward)
    after("tensorflow.python.data.ops.dataset_ops", lambda m: time_iter(m.DatasetV2, "tf.data"))
    after("tensorflow.python.eager.backprop", note_tape)
    after("jax", note_jit)
    after("webdataset.pipeline", lambda m: time_iter(m.DataPipeline, "webdataset", is_only_a_loader))
    after("stoker._loader", lambda m: time_iter(m.Loader, "stoker"))
    after("nvidia.dali.plugin.base_iterator", lambda m: time_next(m._DaliBaseIterator, "dali"))


def is_only_a_loader(pipeline: Any) -> bool:
    """Whether a pipeline is a WebLoader and nothing else: then torch's DataLoader in it is the loader."""
    parts: Any = getattr(pipeline, "pipeline", ())
    return len(parts) == 1 and hasattr(parts[0], "_doctor_at")


def time_iter(owner: Any, kind: str, leave: Callable[[Any], bool] = lambda _: False) -> None:
    """Times the iterators that a class makes, except for objects to leave alone."""
    original = owner.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if leave(self):
            return original(self)
        return probe.opened(self, kind_of(self, kind), lambda: original(self))

    owner.__iter__ = __iter__


def time_next(owner: Any, kind: str) -> None:
    """Times a class that is its own iterator."""
    original = owner.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if not probe.is_watching():
            return original(self)
        loop = probe.loop_of(self, kind)
        if not loop.begin:
            loop.open()
        return loop.take(lambda: original(self), self)

    owner.__next__ = __next__


def kind_of(loader: Any, kind: str) -> str:
    return "stoker" if type(loader).__module__.startswith("stoker.") else kind


# ---------------------------------------------------------------- torch


def _torch_loader(module: Any) -> None:
    made = module.DataLoader.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        object.__setattr__(self, "_doctor_at", probe.place())
        made(self, *args, **keywords)

    module.DataLoader.__init__ = __init__
    original = module.DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        if not probe.is_watching() or probe.is_worker():
            return original(self)
        if self.num_workers:
            from multiprocessing import util

            util.get_temp_dir()  # which workers then share: theirs would be left when they are killed
        at = self.__dict__.get("_doctor_at")
        return probe.opened(self, kind_of(self, "torch.DataLoader"), lambda: original(self), at)

    module.DataLoader.__iter__ = __iter__
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        _note_indices(module)


TAKEN = 8, 64  # batches, and samples of each


def _note_indices(module: Any) -> None:
    """Keeps the first indices that the loader of a rank takes, with its sampler; see checks.py."""
    original = module._BaseDataLoaderIter._next_index

    @functools.wraps(original)
    def _next_index(self: Any) -> Any:
        indices = original(self)
        if self._dataset_kind == module._DatasetKind.Map and isinstance(indices, list):
            taken = getattr(self._index_sampler, "__dict__", {}).setdefault("_doctor_taken", [])
            if len(taken) < TAKEN[0]:
                taken.append([str(index) for index in indices[: TAKEN[1]]])
        return indices

    module._BaseDataLoaderIter._next_index = _next_index


class Started:
    """A worker's init function, which notes the state of its random numbers for the checks."""

    def __init__(self, function: Any, folder: str) -> None:
        self.function, self.folder = function, folder

    def __call__(self, worker: int) -> None:
        if self.function is not None:
            self.function(worker)
        numpy = sys.modules.get("numpy")
        states = (
            numpy.random.get_state()[1].tobytes() if numpy else str(worker).encode(),
            repr(random.getstate()).encode(),
        )
        words = "-".join(f"{zlib.crc32(state):08x}" for state in states)
        name = f"worker-{os.environ.get('RANK', '0')}-{worker}-{os.getpid()}-{words}"
        os.close(os.open(os.path.join(self.folder, name), os.O_CREAT | os.O_WRONLY))


def _torch_worker(module: Any) -> None:
    original = module._worker_loop
    names = list(inspect.signature(original).parameters)
    folder = probe.plan.get("out")
    if probe.plan.get("mode") != "as-is" or not folder or "init_fn" not in names:
        return
    at = names.index("init_fn")

    @functools.wraps(original)
    def _worker_loop(*args: Any, **keywords: Any) -> None:
        changed = list(args)
        if len(changed) > at:
            changed[at] = Started(changed[at], folder)
        original(*changed, **keywords)

    module._worker_loop = _worker_loop


def _torch_optimizer(module: Any) -> None:
    """Torch calls these around the step of every optimizer. A closure runs the model, so its time does not count."""
    begun, inside, marks = [0.0], [0.0], [None]

    def timed(closure: Any) -> Any:
        @functools.wraps(closure)
        def call() -> Any:
            t0 = probe.clock()
            try:
                return closure()
            finally:
                inside[0] += probe.clock() - t0

        return call

    def before(optimizer: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not probe.pid:  # after a block of stoker.doctor()
            return None
        if probe.updates < NOTED:
            sampler.note_training(sys._getframe(1))
        begun[0], inside[0], marks[0] = probe.clock(), 0.0, None
        if callable(keywords.get("closure")):
            return args, {**keywords, "closure": timed(keywords["closure"])}
        if len(args) > 1 and callable(args[1]):  # args[0] is the optimizer
            return (args[0], timed(args[1]), *args[2:]), keywords
        if probe.is_watching():
            marks[0] = device.begin_optimizer(optimizer)
        return None

    def done(*_: Any) -> None:
        if not probe.pid:
            return
        probe.updates += 1
        probe.computing.add("torch")
        device.end_optimizer(begun[0], marks[0])
        probe.optimizer.append((begun[0], probe.clock() - begun[0] - inside[0]))

    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(done)


def _torch_backward(module: Any) -> None:
    """Keeps the loss. On a device, it is read when the run ends, so that the device is not waited for.

    In memory it is read at once: a small tensor per step that stays would fragment the memory of the script.
    """
    original = module.backward

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **keywords: Any) -> None:
        if probe.is_watching() and len(probe.losses) < 2000 and getattr(tensors, "numel", lambda: 0)() == 1:
            if len(probe.losses) < NOTED:
                sampler.note_training(sys._getframe(1))
                probe.computing.add("torch")
            loss = tensors.detach()
            probe.losses.append((probe.updates, loss.item() if loss.device.type == "cpu" else loss))
        original(tensors, *args, **keywords)

    module.backward = backward
