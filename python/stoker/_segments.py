# SPDX-License-Identifier: Apache-2.0
"""Memory that a worker process fills and the trainer reads: arrays and tensors of a batch, without a copy.

A large tensor has a segment of its own, so that a program that keeps the masks of a batch does not keep its images.
If a batch has many of them, the last ones share segments. Small ones, such as labels, share a segment with others, and
the trainer copies them. The trainer gets all segments of a batch, and returns them one by one.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np

from ._errors import Error
from ._memory import FREE, LEFT, SEGMENT, Memory, new_file
from ._output import framework
from ._pool import Pool

MOST_SEGMENTS = 1 << 16  # of a worker; the kernel's limit for the mappings of a process
COMMON = MOST_SEGMENTS  # the number of the first segment of the pool
ALIGN = 64
LARGE = 64 << 10  # bytes of an array or tensor that is not copied
MOST_ALONE = 16  # arrays and tensors of a batch; the others share segments, since descriptors are limited
SLOW, WORTH = 100, 4 << 20  # a free segment of this size keeps its memory, unless a batch takes 100 times as long
COLD_S = 1e-9  # to fill a byte of a segment without memory, which the kernel must find and clear first

Place = tuple[int, int]  # segment and offset


class Segments:
    """The worker's side: segments of the pool, and of its own where the pool has none left."""

    def __init__(self, returned: memoryview, pool: Pool) -> None:
        """returned: a byte for each segment of its own; 0: the trainer may use it, else FREE or LEFT."""
        self.returned, self.pool = returned, pool
        self.maps: list[Memory | None] = []  # None: was left
        self.filled: list[int] = []  # bytes that hold memory, for each segment of its own
        self.views: dict[int, weakref.ref[Any]] = {}
        self.free: list[int] = []
        self.left: list[int] = []  # numbers of segments that were left
        self.used: list[int] = []  # by the batch under way
        self.kept: set[int] = set()  # segments of the pool that the user's code may refer to
        self.needed = 1  # segments of the last batch
        self.fresh: dict[int, int] = {}  # segments that the trainer does not have yet, and their descriptors
        self.offset = 0
        self._lock = threading.Lock()  # a collate_fn may stack tensors in several threads
        self.slow = False  # whether the last batch took long
        self.cold = [0.0, 0]  # seconds and bytes of the first batch, whose segments had no memory
        self.cost = 0.0  # as COLD_S, but measured

    def begin(self) -> None:
        """Begins a batch."""
        self.needed, self.used = max(1, len(self.used)), []
        self.let_go()
        self.pool.give_all_back()  # of a batch that failed: an exception may have come anywhere
        self.pool.tidy()
        self.tidy()

    def tidy(self) -> None:
        """Gives memory back. As many free segments keep theirs as a batch needs; if batches take long, none does."""
        if self.slow:
            self.pool.empty(lambda s: self.pool.filled[s] >= WORTH)
        self._take_back()
        spare = [s for s in self.free if self.filled[s] and not self._held(s)]
        for segment in [s for s in spare if self.filled[s] >= WORTH] if self.slow else spare[: -self.needed]:
            self._memory(segment).empty()
            self.filled[segment] = 0

    def copied(self, n: int, seconds: float) -> None:
        """A row was put into a segment."""
        if not self.cost:
            self.cold = [self.cold[0] + seconds, self.cold[1] + n]

    def end(self, seconds: float) -> None:
        """The batch is complete."""
        if not self.cost:
            self.cost = self.cold[0] / self.cold[1] if self.cold[1] else COLD_S
        self.slow = seconds > SLOW * self.cost * sum(self._filled(segment) for segment in self.used)
        self._keep()

    def send(self) -> None:
        """The batch is about to be sent."""
        for segment in [s for s in self.used if s >= COMMON]:
            self.pool.send(segment - COMMON)

    def drop(self) -> None:
        """The batch under way is not sent."""
        self._keep()
        for segment in self.used:
            if segment >= COMMON:
                self.pool.give_back(segment - COMMON)
            else:
                self.free.append(segment)
        self.used = []

    def _keep(self) -> None:
        """Until let_go(), no worker may take the segments of the batch: arrays and tensors in them are still here."""
        for segment in self.used:
            if segment >= COMMON:
                self.pool.keep(segment - COMMON)
                self.kept.add(segment)

    def let_go(self) -> None:
        """Lets others take segments that the user's code in this worker has not kept."""
        for segment in [s for s in self.kept if not self._held(s)]:
            self.pool.let_go(segment - COMMON)
            self.kept.remove(segment)

    def _held(self, segment: int) -> bool:
        """Whether the user's code kept an array or tensor in a segment."""
        return segment in self.views and self.views[segment]() is not None

    def _filled(self, segment: int) -> int:
        return self.pool.filled[segment - COMMON] if segment >= COMMON else self.filled[segment]

    def _memory(self, segment: int) -> Memory:
        memory = self.pool.memory(segment - COMMON) if segment >= COMMON else self.maps[segment]
        assert memory is not None
        return memory

    def _take_back(self) -> None:
        flags = bytes(self.returned[: len(self.maps)])
        for flag, to in ((FREE, self.free), (LEFT, self.left)):
            segment = -1
            while (segment := flags.find(flag, segment + 1)) >= 0:
                self.returned[segment] = 0
                to.append(segment)
                if flag == LEFT:
                    self.maps[segment], self.filled[segment] = None, 0
                    self.views.pop(segment, None)

    def _another(self, n: int) -> int:
        """A free segment, if possible one that holds as much memory as is needed."""
        common = self.pool.take(n)
        if common is not None:
            return COMMON + common
        self._take_back()
        fits = [s for s in self.free if self._memory(s).size >= n and not self._held(s)]
        if fits:
            segment = min(fits, key=lambda s: abs(self.filled[s] - n))
            self.free.remove(segment)
            return segment
        if not self.left:
            if len(self.maps) == len(self.returned):
                raise Error("the program keeps too many batches of a worker process; it must copy what it keeps")
            self.left.append(len(self.maps))
            self.maps.append(None)
            self.filled.append(0)
        size, segment = max(n, SEGMENT), self.left[-1]
        fd = new_file(size)
        try:
            self.maps[segment] = Memory(fd, size)
        except BaseException:
            os.close(fd)
            raise
        self.fresh[segment] = fd
        return self.left.pop()

    def place(self, n: int) -> Place:
        alone = n >= LARGE and len(self.used) < MOST_ALONE
        if not self.used or alone or self.offset + n > self._memory(self.used[-1]).size:
            self.used.append(self._another(n))
            self.offset = 0
        segment, at = self.used[-1], self.offset
        self.offset += -(-n // ALIGN) * ALIGN
        if segment >= COMMON:
            self.pool.filled[segment - COMMON] = max(self._filled(segment), self.offset)
        else:
            self.filled[segment] = max(self.filled[segment], self.offset)
        return segment, at

    def _view(self, segment: int) -> Any:
        """The memory of a segment. It lives as long as arrays and tensors in it, which the user's code may keep."""
        view = self.views[segment]() if segment in self.views else None
        if view is None:
            view = self._memory(segment).view()
            self.views[segment] = weakref.ref(view)
        return view

    def _room(self, n: int) -> tuple[Any, Place]:
        """The memory of a segment, and a place of n bytes in it."""
        with self._lock:
            segment, at = self.place(n)
            return self._view(segment), (segment, at)

    def array(self, dtype: Any, shape: tuple[int, ...]) -> tuple[Any, Place]:
        count = int(np.prod(shape))
        view, place = self._room(count * dtype.itemsize)
        return np.frombuffer(view, dtype, count, place[1]).reshape(shape), place

    def tensor(self, dtype: Any, shape: Any, strides: Any = None) -> tuple[Any, Place]:
        count = shape.numel()
        view, place = self._room(count * dtype.itemsize)
        flat = framework("torch").frombuffer(view, dtype=dtype, count=count, offset=place[1])
        return flat.view(shape) if strides is None else flat.as_strided(shape, strides), place


# Values of a batch that are in a segment, by their id, with what is sent for them and their form then. A value is held
# here, so that its id is not used again.
Placed = dict[int, tuple[Any, Any, Any]]


def form(value: Any) -> Any:
    """Where the values are and how they are read. Code in place may change it, such as unsqueeze_()."""
    if type(value) is np.ndarray:
        return value.shape, value.strides
    shape = value.data_ptr(), value.shape, value.stride(), value.dtype
    return *shape, value.requires_grad, value.is_conj(), value.is_neg()


def is_plain(tensor: Any) -> bool:
    """Whether a tensor is only numbers in host memory."""
    dense = tensor.layout is framework("torch").strided and not tensor.is_nested and not tensor.is_quantized
    return dense and tensor.device.type == "cpu" and not tensor.requires_grad


class Pickler(pickle.Pickler):
    """Arrays and tensors go into segments; their places are pickled."""

    def __init__(self, file: io.BytesIO, segments: Segments, placed: Placed) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.segments, self.placed = segments, placed
        torch = sys.modules.get("torch")
        self.tensor = torch.Tensor if torch else None

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind is not self.tensor and kind is not np.ndarray:
            return None
        known = self.placed.get(id(value))
        if known is None or known[2] != form(value):
            name = self._tensor(value) if kind is self.tensor else self._array(value)
            if name is None:
                return None
            known = self.placed[id(value)] = value, name, form(value)
        return known[1]

    def _array(self, value: Any) -> Any:
        if value.dtype.hasobject or value.nbytes == 0:
            return None
        order = sorted(range(value.ndim), key=lambda d: -value.strides[d])
        dense = value.transpose(order)  # such as NHWC seen as NCHW
        if not dense.flags.c_contiguous:
            dense, order = value, list(range(value.ndim))
        to, place = self.segments.array(value.dtype, dense.shape)
        to[...] = dense
        return "array", place, value.dtype, dense.shape, tuple(np.argsort(order).tolist())

    def _tensor(self, value: Any) -> Any:
        if not is_plain(value) or value.is_conj() or value.is_neg() or value.numel() == 0:
            return None
        order = sorted(range(value.dim()), key=lambda d: -value.stride(d))
        dense = not value.is_contiguous() and value.permute(order).is_contiguous()  # such as channels_last
        strides = value.stride() if dense else None
        to, place = self.segments.tensor(value.dtype, value.shape, strides)
        to.copy_(value)
        return "tensor", place, value.dtype, tuple(value.shape), strides


class Unpickler(pickle.Unpickler):
    """The trainer's side: views are buffers of the segments that a batch uses."""

    def __init__(self, text: Any, views: dict[int, Any]) -> None:
        super().__init__(io.BytesIO(text))
        self.views, self.torch = views, sys.modules.get("torch")
        self.made: dict[Place, Any] = {}  # a batch may contain a tensor twice

    def persistent_load(self, name: Any) -> Any:
        place = name[1]
        if place not in self.made:
            self.made[place] = self._array(*name[1:]) if name[0] == "array" else self._tensor(*name[1:])
        return self.made[place]

    def _array(self, place: Place, dtype: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
        count = int(np.prod(shape))
        flat = np.frombuffer(self.views[place[0]], dtype, count, place[1])
        return (flat.copy() if flat.nbytes < LARGE else flat).reshape(shape).transpose(axes)

    def _tensor(self, place: Place, dtype: Any, shape: tuple[int, ...], strides: Any) -> Any:
        torch: Any = self.torch
        count = int(np.prod(shape))
        flat = torch.frombuffer(self.views[place[0]], dtype=dtype, count=count, offset=place[1])
        flat = flat.clone() if count * dtype.itemsize < LARGE else flat
        return flat.view(shape) if strides is None else flat.as_strided(shape, strides)
