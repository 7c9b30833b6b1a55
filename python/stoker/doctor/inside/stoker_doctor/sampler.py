# SPDX-License-Identifier: Apache-2.0
"""A thread that looks at where the main thread is, several times per second.

The samples separate computing from Python code of the script, and disturb neither. They also end a run whose script
asks for no further batch, show where it hangs, and end a run that the doctor has no time left for.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import Counter
from typing import Any

from . import probe

EVERY = 0.05  # seconds
MANY_UPDATES = 200
FRAMEWORKS = tuple(
    f"{s}{name}/"
    for s in ("site-packages/", "dist-packages/")
    for name in ("torch", "tensorflow", "keras", "jax", "jaxlib", "flax", "optax", "torchvision/models", "timm")
)
OPTIMIZER = "/torch/optim/"
COMPUTE = ("/torch/nn/modules/module.py", "/torch/autograd/", OPTIMIZER, "/torch/_dynamo/", "/torch/_ops.py")
INPUT = ("/torch/utils/data/", "/tensorflow/python/data/", "/torchvision/datasets/", "/torchvision/transforms/")
ADAPTERS = ("/tensorflow/python/data/", "/keras/src/trainers/data_adapters/")  # call a generator in a thread of theirs

counts: Counter[str] = Counter()  # of samples per kind: wait, compute, host
hot: Counter[tuple[str, str]] = Counter()  # Python functions of the script: name and place
loading: Counter[tuple[str, str]] = Counter()  # the same, of functions that make batches in this process
training: set[Any] = set()  # code of functions that train: the script's loop, and what it calls for a step
taken = 0.0  # CPU seconds of this thread
seen = 0


def begin() -> None:
    threading.Thread(target=_run, name="stoker-doctor", daemon=True).start()


def _run() -> None:
    global taken, seen
    last, at_last, marked = -1, probe.clock(), 0.0
    out = probe.plan.get("out", "")
    while probe.pid:
        time.sleep(EVERY)
        now = probe.clock()
        if out and os.path.exists(os.path.join(out, "stop")):
            if probe.loops:
                probe.finish("ended")
            os._exit(0)
        if now > probe.deadline + 2 * probe.plan.get("grace", 5.0) and probe.depth == 0:
            probe.finish("ok")  # the script does something else after its last batch
        total = sum(len(loop.begin) for loop in probe.loops)
        if total != last:
            last, at_last = total, now
            if out and now - marked > probe.plan["patience"] / 100:
                probe.mark("beat")
                marked = now
        elif out and probe.updates >= MANY_UPDATES and not probe.loops:
            probe.finish("hangs")  # it trains, and no loader was recognised
        elif out and now - at_last > probe.plan["patience"]:
            at_last += 1.0  # when to look again
            if is_stuck(out):
                probe.extra["stuck"] = stack()
                probe.finish("hangs")
        if probe.started and now < probe.deadline:
            before = time.thread_time()
            _look()
            seen += 1
            taken += time.thread_time() - before


def is_stuck(out: str) -> bool:
    """Whether no process of the script takes batches, and this is the one that should.

    A launcher waits for its children, and a worker waits for its parent.
    """
    if time.time() - os.stat(os.path.join(out, "beat")).st_mtime < probe.plan["patience"]:
        return False
    workers = sys.modules.get("multiprocessing.process")
    is_worker = workers is not None and workers.parent_process() is not None
    return bool(probe.loops) or not (is_worker or probe.children())


def _look() -> None:
    # Without its own frame, which would keep itself, all the others and their variables until garbage is collected.
    frames = {one: frame for one, frame in sys._current_frames().items() if one != threading.get_ident()}
    frame: Any = frames.get(probe.MAIN or 0)
    if probe.device.is_waited_for():  # whatever Python function asked for it
        counts["compute"] += 1
        return
    makers = [loader_function(one, one is frame) for one in frames.values() if one is not frame or probe.depth]
    loading.update({name for name in makers if name})
    if probe.depth:
        counts["wait"] += 1
        return
    if frame is None:
        return
    kind, name = classify(frame)
    counts[kind] += 1
    if name:
        hot[name] += 1


def classify(frame: Any) -> tuple[str, tuple[str, str] | None]:
    """compute or host, and for host the innermost function of the script that is not its loop."""
    path = frame.f_code.co_filename
    user: Any = None
    inner, steps = frame, 0
    in_framework = any(name in path for name in FRAMEWORKS) and not any(name in path for name in INPUT)
    while inner is not None and steps < 100:
        path = inner.f_code.co_filename
        if any(name in path for name in COMPUTE) and not (user and OPTIMIZER in path):  # which may call a closure
            return "compute", None
        if user is None and is_of_script(inner):
            user = inner
        inner, steps = inner.f_back, steps + 1
    if in_framework:
        return "compute", None
    if user is None or user.f_code in training:
        return "host", None
    code = user.f_code
    return "host", (code.co_name, f"{probe.short(code.co_filename)}:{code.co_firstlineno}")


def note_training(frame: Any) -> None:
    """The functions that this frame was called by train: without one of them, nothing would be left to measure."""
    while frame is not None:
        if not probe.is_library(frame.f_code.co_filename):
            training.add(frame.f_code)
        frame = frame.f_back


def loader_function(frame: Any, is_main: bool) -> tuple[str, str] | None:
    """The innermost function of the script that works for a next(), or for an adapter in another thread."""
    user: Any = None
    for _ in range(100):
        if frame is None:
            return None
        path = frame.f_code.co_filename
        if user is None and is_of_script(frame):
            user = frame.f_code
        elif user and (path.startswith(probe.HERE) if is_main else any(name in path for name in ADAPTERS)):
            return user.co_name, f"{probe.short(user.co_filename)}:{user.co_firstlineno}"
        elif is_main and path.startswith(probe.HERE):
            return None
        frame = frame.f_back
    return None


def is_of_script(frame: Any) -> bool:
    """Whether it is a function of the script, with a name."""
    return not frame.f_code.co_name.startswith("<") and not probe.is_library(frame.f_code.co_filename)


def stack() -> str:
    """Where the main thread is."""
    frame = sys._current_frames().get(probe.MAIN or 0)
    return "".join(traceback.format_stack(frame)) if frame else ""
