# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of a GPU, and in page-locked memory."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ._errors import usage
from ._output import OUTPUTS, framework
from ._types import choice

ON_DEVICE = ("torch", "jax", "cupy")  # outputs that can be in the memory of a GPU


def _index_of(device: Any) -> tuple[str, int | None]:
    """The kind and the number of a device: a string, or an object of torch, JAX or CuPy."""
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        if number and not (number.isascii() and number.isdigit()):
            return device, None
        return kind, int(number) if number else None
    if hasattr(device, "type"):  # torch
        return str(device.type), device.index
    if hasattr(device, "platform"):  # JAX
        return "cuda" if device.platform == "gpu" else str(device.platform), int(device.local_hardware_id)
    if type(device).__module__.startswith("cupy"):
        return "cuda", int(device.id)
    return repr(device), None


def device_of(device: Any) -> str | None:
    """The engine's name of a device; None: host memory.

    As in torch, "cuda" is torch's current device if torch is in use, else the first one.

    >>> device_of(None), device_of("cpu"), device_of("cuda:1")
    (None, None, 'cuda:1')
    >>> device_of("gpu")
    Traceback (most recent call last):
    stoker.UsageError: device is 'gpu'; it must be 'cpu', 'cuda', 'cuda:N', or a device of torch, JAX or CuPy
    """
    if device is None:
        return None
    kind, number = _index_of(device)
    if kind == "cpu":
        return None
    if kind != "cuda":
        raise usage(f"device is {device!r}; it must be 'cpu', 'cuda', 'cuda:N', or a device of torch, JAX or CuPy")
    if number is None:
        torch = sys.modules.get("torch")
        number = torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else 0
    return f"cuda:{number}"


def output_of(output: str, device: str | None) -> str:
    """The output; with `auto`, what the program has imported.

    >>> output_of("numpy", None)
    'numpy'
    >>> output_of("numpy", "cuda:0")
    Traceback (most recent call last):
    stoker.UsageError: output='numpy' is in host memory; with device='cuda:0' pass output='torch', 'jax' or 'cupy'
    """
    choice("output", output, OUTPUTS)
    if output == "auto":
        names = ON_DEVICE if device else ("torch",)
        output = next((name for name in names if name in sys.modules), "numpy")
        if device and output == "numpy":
            raise usage(
                f"device={device!r} gives arrays of torch, JAX or CuPy; import one of them first, or pass output"
            )
    if device and output not in ON_DEVICE:
        raise usage(f"output={output!r} is in host memory; with device={device!r} pass output='torch', 'jax' or 'cupy'")
    return output


class Pinned:
    """Torch's allocator of page-locked memory, for the engine.

    Torch follows the copies from this memory (`.to("cuda", non_blocking=True)`), and reuses it after them.
    """

    def __init__(self) -> None:
        self._torch = framework("torch")
        self._held: dict[int, Any] = {}  # without a lock: collecting garbage may free a batch while one is allocated

    def allocate(self, n: int) -> int:
        memory = self._torch.empty(n, dtype=self._torch.uint8, pin_memory=True)
        self._held[memory.data_ptr()] = memory
        return int(memory.data_ptr())

    def free(self, address: int) -> None:
        del self._held[address]


def pinned(pin_memory: Any, output: str, device: str | None) -> Pinned | None:
    """The allocator for pin_memory=True; None: ordinary memory."""
    if not pin_memory or device:  # batches on a device are there already
        return None
    if output != "torch":
        raise usage(f"pin_memory=True is for output='torch', and output is {output!r}; leave it out")
    if not framework("torch").cuda.is_available():
        warnings.warn("pin_memory=True has no effect, because torch finds no GPU", RuntimeWarning, stacklevel=4)
        return None
    return Pinned()


def pinned_copy(batch: Any) -> Any:
    """A batch from a worker process, in torch's page-locked memory."""
    return framework("torch.utils.data._utils.pin_memory").pin_memory(batch)


def moved(batch: Any, device: str) -> Any:
    """A batch with all its tensors on a device. They are copied from page-locked memory, without waiting."""
    torch = framework("torch")
    if isinstance(batch, torch.Tensor):
        return (batch.pin_memory() if batch.device.type == "cpu" else batch).to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(moved(value, device) for value in batch)
    return batch.to(device) if hasattr(batch, "to") else batch
