# SPDX-License-Identifier: Apache-2.0
"""The engine's enumerators, and the arguments that become them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ._errors import hint, usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    B_co = TypeVar("B_co", covariant=True, default=Any)
    A = TypeVar("A", default=Any)
else:
    from typing import TypeVar

    B_co, A = TypeVar("B_co", covariant=True), TypeVar("A")

Output = Literal["auto", "numpy", "torch", "jax", "tensorflow"]
Layout = Literal["NCHW", "NHWC", "channels_last"]
Fidelity = Literal["exact", "draft"]
Sizes = Literal["same", "pad", "list"]
OnError = Literal["raise", "skip", "replace"]
Cache = Literal["none", "bytes", "dct", "pixels", "auto"]
DeviceWork = Literal["auto", "none", "idct", "decode"]


class _Sized(Protocol):
    """A dtype of NumPy or torch."""

    @property
    def itemsize(self) -> int: ...


class _Named(Protocol):
    """A dtype of TensorFlow."""

    @property
    def name(self) -> str: ...


DType = Literal["float32", "float16", "bfloat16", "uint8"] | type[Any] | _Sized | _Named

# In the order of stk_dtype, which starts at 1.
DTYPES = "float32 float16 bfloat16 uint8 int8 int16 uint16 int32 uint32 int64 uint64 float64 bool".split()
DTYPE_CODES = {name: i + 1 for i, name in enumerate(DTYPES)}
LAYOUTS = {"NCHW": 1, "NHWC": 2, "channels_last": 2}
FIDELITIES = {"exact": 1, "draft": 2}
SIZES = {"same": 1, "pad": 2, "list": 3}
ON_ERROR = {"raise": 1, "skip": 2, "replace": 3}
CACHES = {"none": 1, "bytes": 2, "dct": 3, "pixels": 4, "auto": 5}
DEVICE_WORKS = {"auto": 1, "none": 2, "idct": 3, "decode": 4}


def choice(name: str, value: Any, choices: dict[str, int]) -> int:
    """The engine's number for an argument that is one of several words.

    >>> choice("layout", "NHWC", LAYOUTS)
    2
    >>> choice("layout", "NWHC", LAYOUTS)
    Traceback (most recent call last):
    stoker.UsageError: layout is 'NWHC'; it must be one of NCHW, NHWC, channels_last; did you mean NHWC?
    """
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise usage(f"{name} is {value!r}; it must be one of {', '.join(choices)}{hint(str(value), choices)}")


def dtype_name(dtype: Any) -> str:
    """The name of a dtype, given as a string or as a dtype of NumPy, torch, JAX or TensorFlow.

    >>> import numpy as np
    >>> dtype_name(np.float16), dtype_name("uint8"), dtype_name(None)
    ('float16', 'uint8', 'float32')
    """
    if dtype is None:
        return "float32"
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return name.rsplit(".", 1)[-1]


def memory_bytes(name: str, value: int | str | None) -> int | None:
    """Bytes of a size such as 512M or 2GiB; units are powers of 1024.

    >>> memory_bytes("memory", "512M"), memory_bytes("memory", "2GiB"), memory_bytes("memory", 1000)
    (536870912, 2147483648, 1000)
    """
    if value is None:
        return None
    if not isinstance(value, int):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(value))
        if not match:
            raise usage(f"{name} is {value!r}; it must be a size such as 512M or 2GiB")
        value = int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))
    return whole(name, value, 0, 2**62)


def counted(n: int, word: str) -> str:
    """`1 sample`, `2 samples`, `2 classes`."""
    return f"{n} {word if n == 1 else word + ('es' if word.endswith(('s', 'h')) else 's')}"


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Checks an argument that is an integer within bounds.

    >>> whole("batch_size", 2.5, 1, 10)
    Traceback (most recent call last):
    stoker.UsageError: batch_size is 2.5; it must be a whole number
    """
    try:
        n = None if isinstance(value, bool) else value.__index__()
    except (AttributeError, TypeError):
        n = None
    if n is None:
        raise usage(f"{name} is {value!r}; it must be a whole number") from None
    if not least <= n <= most:
        bound = f"{least} or more" if n < least else f"at most {most}"
        raise usage(f"{name} is {n}; it must be {bound}")
    return int(n)
