# SPDX-License-Identifier: Apache-2.0
"""Memory that processes share."""

from __future__ import annotations

import collections
import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np

from ._errors import Error

SEGMENT = 256 << 20  # bytes of address space
# What the trainer says of a segment that it no longer uses. LEFT: a process that it has forked may still use it.
FREE, LEFT = 1, 2

# Objects that still own memory and descriptors. This set keeps them from the garbage collector, which calls all
# finalizers before any __del__: close() would then touch memory and descriptors that already belong to others.
unclosed: set[Any] = set()

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def close_all(fds: list[int]) -> None:
    """Closes descriptors, and sets all entries to -1, which means none. The loop is in C, so that Ctrl-C cannot
    interrupt it."""
    taken, fds[:] = list(fds), [-1] * len(fds)
    collections.deque(map(os.close, [fd for fd in taken if fd >= 0]), 0)


def new_file(size: int, name: str = "stoker") -> int:
    """A descriptor of new memory."""
    fd = os.memfd_create(name)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Memory:
    """A mapped file. Python's mmap would keep a descriptor open for each, and descriptors are limited."""

    def __init__(self, fd: int, size: int) -> None:
        address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address == ctypes.c_void_p(-1).value:
            why = os.strerror(ctypes.get_errno())
            raise Error(f"cannot map the memory of a batch: {why}; a program that keeps many batches must copy them")
        self.address, self.size = address, size
        self._unmap = weakref.finalize(self, _libc.munmap, address, size)
        self._unmap.atexit = False

    def view(self) -> Any:
        """A buffer that keeps the memory mapped. Not a memoryview: NumPy would keep another one of its own."""
        view: Any = (ctypes.c_char * self.size).from_address(self.address)
        view.memory = self
        return view

    def as_bytes(self) -> memoryview:
        """The same as a memoryview of bytes."""
        return np.frombuffer(self.view(), np.uint8).data

    def empty(self) -> None:
        """Gives the memory back; it reads as zeros."""
        if self._unmap.alive:
            _libc.madvise(self.address, self.size, mmap.MADV_REMOVE)
