# SPDX-License-Identifier: Apache-2.0
"""What a batch is handed over as: NumPy, torch, JAX or TensorFlow, without copies."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ._errors import usage
from ._exact import converted
from ._stoker import Memory
from ._types import choice

Convert = Callable[[Memory], Any]
OUTPUTS = {"auto": 0, "numpy": 1, "torch": 2, "jax": 3, "tensorflow": 4}


def decide(output: str) -> str:
    """`auto` is torch when the program has imported it, else NumPy.

    >>> decide("numpy")
    'numpy'
    """
    choice("output", output, OUTPUTS)
    if output != "auto":
        return output
    return "torch" if "torch" in sys.modules else "numpy"


def framework(name: str) -> Any:
    """A module that the program has, or the words that it has not."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise usage(f"{name} cannot be imported here; install it, or choose another output") from None


def numpy_bfloat16() -> Any:
    """The type that other packages add to NumPy's."""
    try:
        return importlib.import_module("ml_dtypes").bfloat16
    except ImportError:
        raise usage("NumPy has no bfloat16; pip install ml_dtypes, or take output='torch'") from None


def _numpy(bfloat16: bool) -> Convert:
    if not bfloat16:
        return np.asarray
    kind = numpy_bfloat16()
    return lambda m: np.asarray(m).view(kind)


def _torch() -> Convert:
    from_dlpack: Convert = framework("torch").from_dlpack
    return from_dlpack


def _jax(name: str) -> Convert:
    jax, jnp = framework("jax"), framework("jax.numpy")

    def convert(m: Memory) -> Any:
        if m.dtype in ("int64", "uint64", "float64") and not jax.config.jax_enable_x64:
            return jnp.asarray(converted(name, np.asarray(m), m.dtype.replace("64", "32")))
        if m.dtype == "bool":
            return jnp.asarray(np.asarray(m))
        return jnp.from_dlpack(m)

    return convert


def _tensorflow() -> Convert:
    tf = framework("tensorflow")

    def convert(m: Memory) -> Any:
        if m.dtype == "bool" or 0 in m.shape:
            return tf.constant(np.asarray(m))
        return tf.experimental.dlpack.from_dlpack(m.__dlpack__())

    return convert


def converter(output: str, dtype: str, name: str) -> Convert:
    """The function that makes an array of a Memory; name: of the field, for errors."""
    if output == "numpy":
        return _numpy(dtype == "bfloat16")
    if output == "jax":
        return _jax(name)
    return _torch() if output == "torch" else _tensorflow()


def as_channels_last(output: str, array: Any) -> Any:
    """NHWC memory seen as NCHW: what torch calls channels_last."""
    return array.permute(0, 3, 1, 2) if output == "torch" else array.transpose(0, 3, 1, 2)


def from_numpy(output: str, array: Any) -> Any:
    """An array of the framework's over, or of, a NumPy array."""
    if output == "torch":
        return framework("torch").from_numpy(array)
    if output == "jax":
        return framework("jax.numpy").asarray(array)
    return framework("tensorflow").constant(array) if output == "tensorflow" else array


def copy(output: str, array: Any) -> Any:
    """Arrays of JAX and TensorFlow cannot be changed: they need no copy."""
    if output == "torch":
        return array.clone()
    return array.copy() if output == "numpy" else array
