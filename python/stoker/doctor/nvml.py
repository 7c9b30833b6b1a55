# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver reports of its GPUs: how busy they are, their clocks and their memory.

The driver's library is opened at run time. Without it, or without a GPU, there is nothing to read.
"""

from __future__ import annotations

import ctypes
import os
from statistics import mean
from typing import Any, NamedTuple

LIBRARY = "libnvidia-ml.so.1"
SM_CLOCK = 1  # of nvmlClockType_t


class _Rates(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Reading(NamedTuple):
    """A GPU at one moment."""

    util: float  # of the time, from 0 to 1
    used: int  # bytes
    clock: int  # MHz
    top_clock: int


def is_visible(index: int, uuid: str, words: str | None) -> bool:
    """Whether a GPU is among those of CUDA_VISIBLE_DEVICES: indices, or the beginnings of UUIDs.

    >>> [is_visible(1, "GPU-4f", words) for words in ("0,1", "GPU-4", "10", "", None)]
    [True, True, False, False, True]
    """
    if words is None:
        return True
    names = [word.strip() for word in words.split(",")]
    return any(name == str(index) or (name.startswith("GPU-") and uuid.startswith(name)) for name in names)


class Nvml:
    """The GPUs of this machine that the script may use; none if the driver is missing."""

    def __init__(self, library: str = LIBRARY) -> None:
        self._handles: list[ctypes.c_void_p] = []
        count = ctypes.c_uint()
        try:
            self._library = ctypes.CDLL(library)
            if self._library.nvmlInit_v2() or self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
                return
        except (OSError, AttributeError):  # no driver, or one that is too old
            return
        for i in range(count.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            if self._library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)):
                continue
            self._library.nvmlDeviceGetUUID(handle, uuid, len(uuid))
            if is_visible(i, uuid.value.decode(), os.environ.get("CUDA_VISIBLE_DEVICES")):
                self._handles.append(handle)

    def read(self) -> list[Reading]:
        """These GPUs now, in the driver's order."""
        return [self._reading(handle) for handle in self._handles]

    def _reading(self, handle: ctypes.c_void_p) -> Reading:
        """Values that the driver does not report are 0."""
        rates, memory, clock, top = _Rates(), _Memory(), ctypes.c_uint(), ctypes.c_uint()
        self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates))
        self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        self._library.nvmlDeviceGetClockInfo(handle, SM_CLOCK, ctypes.byref(clock))
        self._library.nvmlDeviceGetMaxClockInfo(handle, SM_CLOCK, ctypes.byref(top))
        return Reading(rates.gpu / 100, memory.used, clock.value, top.value)


def summary(moments: list[list[Reading]]) -> dict[str, Any]:
    """The busiest GPU of a run, over its readings.

    >>> summary([[Reading(0.5, 10, 900, 1980)], [Reading(0.7, 20, 1100, 1980)]])
    {'util': 0.6, 'memory_used': 20, 'clock_mhz': 1000, 'clock_max_mhz': 1980}
    >>> summary([])
    {}
    """
    gpus = [list(one) for one in zip(*moments, strict=False)]
    if not gpus:
        return {}
    busiest = max(gpus, key=lambda readings: mean(r.util for r in readings))
    return {
        "util": mean(r.util for r in busiest),
        "memory_used": max(r.used for r in busiest),
        "clock_mhz": mean(r.clock for r in busiest),
        "clock_max_mhz": busiest[-1].top_clock,
    }
