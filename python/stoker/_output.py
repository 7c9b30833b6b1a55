# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, torch, JAX, TensorFlow or CuPy over the engine's memory, without copies."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ._errors import DataError, usage
from ._stoker import Memory

Convert = Callable[[Memory], Any]
OUTPUTS = {"auto": 0, "numpy": 1, "torch": 2, "jax": 3, "tensorflow": 4, "cupy": 5}


def framework(name: str) -> Any:
    """Imports a module, or says that it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise usage(f"{name} cannot be imported; install it, or choose another output") from None


def numpy_bfloat16() -> Any:
    """The bfloat16 of ml_dtypes, which NumPy lacks."""
    try:
        return importlib.import_module("ml_dtypes").bfloat16
    except ImportError:
        raise usage("NumPy has no bfloat16; run pip install ml_dtypes, or pass output='torch'") from None


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


def _cupy() -> Convert:
    cupy = framework("cupy")
    return lambda m: cupy.from_dlpack(m) if m.__dlpack_device__()[0] == 2 else cupy.asarray(np.asarray(m))


def converter(output: str, dtype: str, name: str) -> Convert:
    """The function that makes an array from a Memory; name: of the field, for errors."""
    if output == "numpy":
        return _numpy(dtype == "bfloat16")
    if output == "jax":
        return _jax(name)
    if output == "cupy":
        return _cupy()
    return _torch() if output == "torch" else _tensorflow()


def as_channels_last(output: str, array: Any) -> Any:
    """A view of NHWC memory as NCHW, which torch calls channels_last."""
    n = array.ndim
    axes = (*range(n - 3), n - 1, n - 3, n - 2)
    return array.permute(axes) if output == "torch" else array.transpose(axes)


def from_numpy(output: str, array: Any) -> Any:
    """The framework's array over, or copied from, a NumPy array."""
    if output == "torch":
        return framework("torch").from_numpy(array)
    if output in ("jax", "cupy"):
        return framework("jax.numpy" if output == "jax" else "cupy").asarray(array)
    return framework("tensorflow").constant(array) if output == "tensorflow" else array


def from_array(output: str, name: str, array: Any) -> Any:
    """The framework's array of a field that another process made; 64-bit numbers as the framework has them."""
    narrow = output == "jax" and array.dtype.name in ("int64", "uint64", "float64")
    if narrow and not framework("jax").config.jax_enable_x64:
        array = converted(name, array, array.dtype.name.replace("64", "32"))
    return from_numpy(output, array)


def copy(output: str, array: Any) -> Any:
    """A copy of an array. Arrays of JAX and TensorFlow are immutable and need none."""
    if output == "torch":
        return array.clone()
    return array.copy() if output in ("numpy", "cupy") else array


# ---------------------------------------------------------------- other dtypes


def _changed(integers: np.ndarray[Any, Any], floats: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where floats differ from the integers they were made from.

    They are cast back and compared. Casting is undefined outside the range of the integers, so the range is checked
    first: 2**63 - 1 becomes 2.0**63, which int64 cannot hold.
    """
    wide = floats.astype(np.float64)
    end = float(np.iinfo(integers.dtype).max + 1)
    changed: np.ndarray[Any, Any] = (wide >= end) | (wide < -end) | (wide.astype(integers.dtype) != integers)
    return changed


def converted(name: str, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Converts an array. Floats may be rounded; integers must stay equal; finite numbers must stay finite.

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
