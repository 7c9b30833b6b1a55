# SPDX-License-Identifier: Apache-2.0
"""What-ifs for TensorFlow's input pipelines and functions, and for JAX."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from . import probe
from .hooks import after

DATASET = "tensorflow.python.data.ops.dataset_ops"


def parallel() -> None:
    """Functions of map() run on all CPUs, and batches are made ahead of time."""
    after(DATASET, _parallel)


def _parallel(module: Any) -> None:
    owner, auto = module.DatasetV2, module.AUTOTUNE
    plain_map, plain_iter = owner.map, owner.__iter__

    @functools.wraps(plain_map)
    def map(self: Any, map_func: Any, num_parallel_calls: Any = None, *args: Any, **keywords: Any) -> Any:
        if num_parallel_calls is None:
            probe.extra["applied"] = True
            num_parallel_calls = auto
        return plain_map(self, map_func, num_parallel_calls, *args, **keywords)

    @functools.wraps(plain_iter)
    def __iter__(self: Any) -> Any:
        return plain_iter(prefetched(self)) if probe.is_watching() else plain_iter(self)

    owner.map, owner.__iter__ = map, __iter__


def prefetched(data: Any) -> Any:
    """The dataset with batches made ahead of time, the same one every time it is asked for."""
    if probe.plan.get("what_if") != "parallel" or "Prefetch" in type(data).__name__ or not hasattr(data, "prefetch"):
        return data
    other = data.__dict__.get("_doctor_prefetched")
    if other is None:
        other = data.prefetch(sys.modules[DATASET].AUTOTUNE)
        data._doctor_prefetched = other
        probe.extra["applied"] = True
    return other


def note_tape(module: Any) -> None:
    """Notes that TensorFlow computes gradients."""
    original = module.GradientTape.gradient

    @functools.wraps(original)
    def gradient(*args: Any, **keywords: Any) -> Any:
        probe.computing.add("tensorflow")
        return original(*args, **keywords)

    module.GradientTape.gradient = gradient


def compile_functions(tensorflow: Any) -> None:
    """The tf.functions of the script are compiled with XLA."""
    original = tensorflow.function

    @functools.wraps(original)
    def function(*args: Any, **keywords: Any) -> Any:
        if is_called_by_script():
            probe.extra["applied"] = True
            keywords["jit_compile"] = True
        return original(*args, **keywords)

    tensorflow.function = function


def is_called_by_script() -> bool:
    """Whether the caller of the function that asks is no library."""
    return not probe.is_library(os.path.abspath(sys._getframe(2).f_code.co_filename))


# ---------------------------------------------------------------- JAX


def note_jit(jax: Any) -> None:
    """Notes whether the script compiles anything itself."""
    original = jax.jit

    @functools.wraps(original)
    def jit(*args: Any, **keywords: Any) -> Any:
        if is_called_by_script():
            probe.extra["jitted"] = True
        return original(*args, **keywords)

    jax.jit = jit


def jit() -> None:
    """Gradients are computed by compiled functions."""
    after("jax", _jit)


def _jit(jax: Any) -> None:
    for name in ("grad", "value_and_grad"):
        setattr(jax, name, _compiled(jax, getattr(jax, name)))


def _compiled(jax: Any, original: Any) -> Any:
    """jax.grad or jax.value_and_grad, whose result is compiled once for each function."""
    made: dict[Any, Any] = {}

    @functools.wraps(original)
    def transform(fun: Any, *args: Any, **keywords: Any) -> Any:
        key = (fun, args, tuple(sorted(keywords.items())))
        try:
            if key not in made:
                made[key] = jax.jit(original(fun, *args, **keywords))
        except TypeError:  # arguments that have no hash
            return original(fun, *args, **keywords)
        probe.extra["applied"] = True
        return made[key]

    return transform
