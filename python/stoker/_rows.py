# SPDX-License-Identifier: Apache-2.0
"""Rows made in Python: the user's datasets, iterables and functions, as the engine calls them.

The engine passes (thread, epoch, position, sample, label, random) and views of the row's memory. The views are invalid
after the call, so the data that the user's code gets and returns is copied. These objects do not refer to a loader,
which would keep it alive. Exceptions are kept here and become the cause of the loader's exception.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ._errors import DataError, usage
from ._output import converted, numpy_bfloat16
from ._seeds import own_generators, seed_all
from ._types import DTYPE_CODES

About = tuple[int, int, int, int, int, int]
Field = tuple[str, int, tuple[int, ...]]
Place = tuple[int, int]  # epoch and position
KEPT = 1000  # exceptions
MOST_FIELDS, MOST_DIMS, MOST_NAME = 14, 8, 63  # the engine's limits for a row that Python makes
OWN = ("index", "position", "valid")  # the engine's own fields


def takes_rng(function: Callable[..., Any]) -> bool:
    """Whether a function has an argument `rng`.

    >>> takes_rng(lambda x, rng: x), takes_rng(lambda x: x)
    (True, False)
    """
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class Caller:
    """One of the user's functions. It gets an `rng`, or the process-wide generators are seeded before each call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.rng = function, takes_rng(function)
        self.steady = getattr(function, "steady", False) is True  # draws nothing
        self.generators: list[Any] | None = None  # looked up by the process that calls it
        self.errors: dict[int, BaseException] = {}

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def rule(self) -> str:
        if self.rng:
            return "deterministic, with an rng for each sample"
        return "draws no random numbers" if self.steady else "seeded for each sample"

    @property
    def seeds(self) -> bool:
        """Whether it uses generators of the whole process, so that threads of a process cannot share it."""
        return not self.rng and not self.steady

    def __call__(self, seed: int, *args: Any) -> Any:
        if self.rng:
            return self.function(*args, rng=np.random.Generator(np.random.Philox(key=seed)))
        if not self.steady:
            if self.generators is None:
                self.generators = own_generators(self.function)
            seed_all(seed, self.generators)
        return self.function(*args)

    def failed(self, sample: int, error: BaseException) -> str:
        """Keeps the error and its traceback, but not the frames' variables: samples, and views that become invalid."""
        if sample in self.errors or len(self.errors) < KEPT:
            trace = error.__traceback__ and error.__traceback__.tb_next  # without our own frame, which still runs
            traceback.clear_frames(trace)
            self.errors[sample] = error.with_traceback(trace)
        return f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()


def _is_bfloat16(value: Any) -> bool:
    return "bfloat16" in str(getattr(value, "dtype", ""))


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """Any value of the user's as an array. bfloat16, which NumPy lacks, becomes uint16."""
    if type(value) is np.ndarray and value.dtype.kind in "iufb":  # most values; the rest costs several microseconds
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return np.asarray(value, np.int64)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return np.asarray(value.view(dtype=sys.modules["torch"].uint16) if _is_bfloat16(value) else value)
    if np.ma.is_masked(value):
        raise ValueError("contains masked values; fill them first: filled(value)")
    array = np.asarray(value)
    return array.view(np.uint16) if _is_bfloat16(array) else array


def dtype_of(value: Any) -> str:
    """The name of a value's dtype; "object" if it is not numeric."""
    if _is_bfloat16(value):
        return "bfloat16"
    if isinstance(value, (str, bytes)) or value is None:
        return "object"
    try:
        name = as_array(value).dtype.name
    except (TypeError, ValueError, OverflowError):  # lists of several lengths, integers beyond 64 bits
        return "object"
    return name if name in DTYPE_CODES else "object"


def parts_of(sample: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Names and values of a sample: a dict, a named tuple, a tuple, a list, or one value.

    >>> parts_of((np.zeros(3), 7))[0], parts_of({"x": 1})[0]
    (('image', 'label'), ('x',))
    """
    if isinstance(sample, Mapping):
        return tuple(str(k) for k in sample), tuple(sample.values())
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return tuple(sample._fields), tuple(sample)
    if isinstance(sample, (tuple, list)):
        names = ("image", "label") if len(sample) == 2 else tuple(f"field_{i}" for i in range(len(sample)))
        return names, tuple(sample)
    return ("image",), (sample,)


def misfit(names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> str:
    """Why a row cannot have these fields; "" if it can.

    >>> misfit(("image", "label"), ((3, 8, 8), ())), misfit(("image",), ((3, 0),))
    ('', "the field 'image' is empty: its shape is (3, 0)")
    """
    if len(names) > MOST_FIELDS:
        return f"samples have {len(names)} fields, but at most {MOST_FIELDS} are allowed"
    for name, shape in zip(names, shapes, strict=True):
        if name in OWN:
            return f"a field of the dataset is called {name!r}, which Stoker uses for its own field"
        if not 1 <= len(name.encode(errors="surrogateescape")) <= MOST_NAME:
            return f"the field name {name!r} must have 1 to {MOST_NAME} bytes"
        if len(shape) > MOST_DIMS:
            return f"the field {name!r} has {len(shape)} dimensions, but at most {MOST_DIMS} are allowed"
        if 0 in shape:
            return f"the field {name!r} is empty: its shape is {shape}"
    return ""


class Objects:
    """Values that are not arrays. The row holds a ticket; the value waits here until its batch is delivered.

    Tickets increase, so that a restart can drop all values with earlier tickets.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Place, Any]] = {}
        self._apart: dict[int, dict[int, tuple[Place, Any]]] = {}  # of threads that make rows with get()
        self._next = itertools.count(1)

    def put(self, place: Place, value: Any) -> int:
        ticket = self.mark()
        self._apart.get(threading.get_ident(), self._waiting)[ticket] = place, value
        return ticket

    def get(self, tickets: Any) -> list[Any]:
        own = self._apart.get(threading.get_ident(), self._waiting)
        return [(own.get(t) or self._waiting[t])[1] for t in np.asarray(tickets).tolist()]

    def mark(self) -> int:
        """A ticket that is higher than all earlier ones."""
        return next(self._next)

    def drop_before(self, mark: int) -> None:
        """Drops values with a lower ticket."""
        for ticket in list(self._waiting):
            if ticket < mark:
                self._waiting.pop(ticket, None)

    def drop_passed(self, place: Place) -> None:
        """Drops values of rows before a place: their batches were delivered, failed, or were left out."""
        for ticket in list(self._waiting):  # other threads add to it meanwhile
            waiting = self._waiting.get(ticket)
            if waiting and waiting[0] < place:
                self._waiting.pop(ticket, None)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Keeps this thread's values apart and drops them at the end: for rows outside the order of the epoch."""
        thread = threading.get_ident()
        before = self._apart.get(thread)
        self._apart[thread] = {}
        try:
            yield
        finally:
            if before is None:
                del self._apart[thread]
            else:
                self._apart[thread] = before


def change_first(sample: Any, change: Callable[[Any], Any]) -> Any:
    """The sample with its first part replaced.

    >>> change_first((1, 2), str), change_first({"x": 1, "y": 2}, str)
    (('1', 2), {'x': '1', 'y': 2})
    """
    if isinstance(sample, Mapping):
        first = next(iter(sample))
        return {**sample, first: change(sample[first])}
    if isinstance(sample, tuple) and hasattr(sample, "_replace"):
        return sample._replace(**{parts_of(sample)[0][0]: change(sample[0])})
    if isinstance(sample, (tuple, list)):
        return type(sample)([change(sample[0]), *sample[1:]])
    return change(sample)


def _array_over(view: memoryview, kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.frombuffer(view, "uint16" if kind == "bfloat16" else kind).reshape(shape)


def _put(view: memoryview, kind: str, name: str, value: Any, array: np.ndarray[Any, Any]) -> None:
    """Copies a value into a row of this dtype, if that does not change its numbers."""
    to = _array_over(view, kind, array.shape)
    if array.dtype == to.dtype and to.dtype != np.uint16:  # which may be bfloat16
        to[...] = array
        return
    is_half = _is_bfloat16(value)
    if is_half != (kind == "bfloat16") or not np.can_cast(array.dtype, to.dtype, "same_kind"):
        raise TypeError(
            f"{name} has the dtype {'bfloat16' if is_half else array.dtype}, but the first sample had {kind}; "
            "use one dtype for all samples, or pass a collate_fn"
        )
    to[...] = converted(name, array, to.dtype)


def _is_for_the_caller(error: BaseException) -> bool:
    """Whether an exception, maybe of a signal handler, is for the code that asked for the row.

    Handlers run in the main thread. In a thread of the engine, no code has asked: there the sample is bad.
    """
    here = threading.get_ident() == threading.main_thread().ident
    return here and isinstance(error, (KeyboardInterrupt, SystemExit))


def failed_first(callers: Sequence[Caller], error: Exception) -> DataError:
    """The exception for functions that fail on the first sample.

    >>> print(failed_first([Caller(abs)], TypeError("no number")))
    abs failed on the first sample: TypeError: no number
    """
    names = ", ".join(caller.name for caller in callers)
    return DataError(f"{names} failed on the first sample: {type(error).__name__}: {error}", sample=0, stage="op")


class Hook:
    """What the engine calls for each row."""

    seconds = 0.0  # that the first row took
    samples = 0
    again: Callable[[], Any] | None = None  # makes the first row again, to measure it
    lost: Mapping[int, str] = {}  # samples that ended a worker process

    def second_time(self) -> float:
        """Seconds for the first row, once everything is imported and set up."""
        if self.again is None:
            return self.seconds
        began = time.perf_counter()
        self.again()
        return min(self.seconds, time.perf_counter() - began)


class Fill(Hook):
    """Writes the user's samples into rows. Base class of the two below."""

    def __init__(self, caller: Caller, first: Any, whole: bool, functions: list[Caller]) -> None:
        """first: a sample that determines the fields; whole: samples are passed on unchanged, for collate_fn."""
        self.caller, self.objects, self.whole, self.functions = caller, Objects(), whole, functions
        try:
            first = self.changed(0, first)
        except Exception as error:
            raise failed_first(functions, error) from error
        names, values = (("sample",), (first,)) if whole else parts_of(first)
        if not names:
            raise usage("the dataset's first sample is empty; a sample needs at least one value")
        self.names = names
        self.kinds = tuple("object" if whole else dtype_of(v) for v in values)
        self.shapes = tuple(() if k == "object" else as_array(v).shape for k, v in zip(self.kinds, values, strict=True))
        self.mapping = isinstance(first, Mapping)
        if words := misfit(self.names, self.shapes):
            raise usage(f"{words}; rename or reshape it in the dataset, or pass a collate_fn")

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(
            (name, DTYPE_CODES["int64" if kind == "object" else kind], shape)
            for name, kind, shape in zip(self.names, self.kinds, self.shapes, strict=True)
        )

    def changed(self, seed: int, sample: Any) -> Any:
        for n, function in enumerate(self.functions, 1):
            sample = change_first(sample, partial(function, (seed + n) % 2**64))
        return sample

    def alone(self) -> Fill:
        """A copy for another engine, with its own objects."""
        other = copy.copy(self)
        other.objects = Objects()
        return other

    def write(self, sample: Any, place: Place, views: tuple[memoryview, ...]) -> None:
        names, values = (("sample",), (sample,)) if self.whole else parts_of(sample)
        if sample is None and not self.whole:
            raise ValueError("is None; is a return missing?")
        if names != self.names:
            raise ValueError(f"has the fields {', '.join(names)}, but the first sample had {', '.join(self.names)}")
        objects = []
        for name, kind, shape, value, view in zip(names, self.kinds, self.shapes, values, views, strict=True):
            if kind == "object":
                objects.append((value, view))
                continue
            array = as_array(value)
            if array.shape != shape:
                raise ValueError(
                    f"{name} has the shape {array.shape}, but the first sample had {shape}; "
                    "resize or pad it in the dataset, or pass a collate_fn"
                )
            _put(view, kind, name, value, array)
        for value, view in objects:  # last, because nothing can fail any more
            np.frombuffer(view, np.int64)[0] = self.objects.put(place, value)


class MapFill(Fill):
    """A dataset with `__getitem__`."""

    def __init__(self, dataset: Any, whole: bool, functions: list[Caller]) -> None:
        self.dataset = dataset
        caller, began = Caller(dataset.__getitem__), time.perf_counter()
        try:
            first = caller(0, 0)
        except Exception as error:
            words = f"the dataset failed on its first sample: {type(error).__name__}: {error}"
            raise DataError(words, sample=0, stage="read") from error
        super().__init__(caller, first, whole, functions)
        self.seconds, self.samples = time.perf_counter() - began, len(dataset)
        self.again = lambda: self.changed(0, caller(0, 0))

    def __call__(self, about: About, views: tuple[memoryview, ...]) -> str | None:
        sample = about[3]
        if why := self.lost.get(sample):
            return why
        try:
            self.write(self.changed(about[5], self.caller(about[5], sample)), about[1:3], views)
        except BaseException as error:
            if _is_for_the_caller(error):
                raise
            return self.caller.failed(sample, error)
        return None


class IterableFill(Fill):
    """An iterable, read in order by a single thread.

    An epoch ends where the iterable ends: rows past its end are bad samples, which are skipped.
    """

    END = "the iterable has ended"
    OVER = "the iterable can be read only once; for another epoch, pass an object whose __iter__ starts again"
    COUNT = 1 << 40

    def __init__(self, iterable: Iterable[Any], whole: bool, functions: list[Caller]) -> None:
        self.iterable = iterable
        self._iterator: Iterator[Any] = iter(iterable)
        try:
            first = next(self._iterator)
        except StopIteration:
            raise usage("the iterable has no samples; it may have been read before") from None
        self.once = self._iterator is iterable
        if self.once:  # its first sample must not be lost
            self._iterator = itertools.chain([first], self._iterator)
        else:
            self._iterator = iter(iterable)
        self._epoch, self._position = -1, 0
        self.ended: dict[int, int] = {}  # epoch: its length
        super().__init__(Caller(self._take), first, whole, functions)

    def _take(self, epoch: int, position: int) -> Any:
        if epoch != self._epoch or position < self._position:  # a loaded state may go back
            if self._epoch >= 0 and self.once:
                raise usage(self.OVER)
            if self._epoch >= 0:
                self._iterator = iter(self.iterable)
            self._epoch, self._position = epoch, 0
        while self._position < position:  # or start in the middle
            next(self._iterator)
            self._position += 1
        self._position += 1
        return next(self._iterator)

    def __call__(self, about: About, views: tuple[memoryview, ...]) -> str | None:
        _, epoch, position, _, _, _ = about
        # A state was loaded, or Ctrl-C came: failed rows are tried again.
        if epoch == self._epoch and position < self._position:
            self.ended.pop(epoch, None)
            self.caller.errors.pop(epoch, None)
        if position >= self.ended.get(epoch, position + 1):
            return self.END
        try:
            self.write(self.changed(about[5], self._take(epoch, position)), (epoch, position), views)
        except StopIteration:
            self.ended[epoch] = position
            return self.END
        except BaseException as error:
            if _is_for_the_caller(error):
                if not self.once:
                    self._position = self.COUNT  # the iterator may be dead: the next row begins a new one
                raise
            self.ended[epoch] = position
            return self.caller.failed(epoch, error)
        return None


class RowOp(Hook):
    """The user's functions on each finished image, one after the other."""

    def __init__(self, callers: list[Caller], dtype: str, shape: tuple[int, ...], as_torch: bool) -> None:
        self.callers, self.as_torch = callers, as_torch
        self.dtype, self.shape = dtype, shape
        self.out_dtype, self.out_shape = dtype, shape

    def probe(self, image: np.ndarray[Any, Any]) -> Field | None:
        """Learns dtype and shape of the result; None if they are those of the image."""
        began = time.perf_counter()
        result = self._apply(0, image)
        self.seconds, self.again = time.perf_counter() - began, partial(self._apply, 0, image)
        self.out_dtype, self.out_shape = dtype_of(result), as_array(result).shape
        if self.out_dtype == "object":
            raise usage(f"the function returned a {type(result).__name__}; it must return an array or a tensor")
        if (self.out_dtype, self.out_shape) == (self.dtype, self.shape):
            return None
        return "image", DTYPE_CODES[self.out_dtype], self.out_shape

    def _apply(self, seed: int, array: np.ndarray[Any, Any]) -> Any:
        value: Any = sys.modules["torch"].from_numpy(array) if self.as_torch else array
        if self.dtype == "bfloat16":
            value = value.view(sys.modules["torch"].bfloat16 if self.as_torch else numpy_bfloat16())
        for n, caller in enumerate(self.callers):
            result = caller((seed + n) % 2**64, value)
            value = value if result is None else result
        return value

    def __call__(self, about: About, views: tuple[memoryview, ...]) -> str | None:
        if why := self.lost.get(about[3]):
            return why
        try:
            result = self._apply(about[5], _array_over(views[0], self.dtype, self.shape).copy())
            array = as_array(result)
            if array.shape != self.out_shape:
                raise ValueError(f"returned the shape {array.shape}, but {self.out_shape} for the first sample")
            _put(views[1], self.out_dtype, "the result", result, array)
        except BaseException as error:
            if _is_for_the_caller(error):
                raise
            return self.callers[0].failed(about[3], error)
        return None
