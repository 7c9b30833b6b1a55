# SPDX-License-Identifier: Apache-2.0
"""stoker.h for the Python tests, by ctypes: opens a loader and gives its batches as NumPy arrays.

with Loader(library, source=..., ops=..., dtype=UINT8) as loader:
    for batch in loader.epoch():
        batch["image"], batch["label"]
"""

import ctypes as c
from collections.abc import Iterator, Sequence

import numpy as np

FLOAT32, FLOAT16, BFLOAT16, UINT8 = 1, 2, 3, 4
NCHW, NHWC = 1, 2
RAISE, SKIP, REPLACE = 1, 2, 3
OK, END = 0, 1
DTYPES = {1: np.float32, 2: np.float16, 3: np.uint16, 4: np.uint8, 10: np.int64, 13: np.bool_}


class Error(c.Structure):
    _fields_ = [
        ("code", c.c_int),
        ("os_error", c.c_int),
        ("sample", c.c_int64),
        ("stage", c.c_char * 16),
        ("path", c.c_char * 1024),
        ("reason", c.c_char * 640),
        ("text", c.c_char * 1700),
    ]


class Array(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("kind", c.c_int),
        ("ndim", c.c_int),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("device", c.c_int),
        ("device_id", c.c_int),
        ("ready", c.c_void_p),
    ]


class Options(c.Structure):
    _fields_ = [
        ("source", c.c_char_p),
        ("sources", c.c_void_p),
        ("n_sources", c.c_int),
        ("arrays", c.POINTER(Array)),
        ("n_arrays", c.c_int),
        ("read_hooks", c.c_void_p),
        ("fill_hooks", c.c_void_p),
        ("cells_hooks", c.c_void_p),
        ("opened", c.c_void_p),
        ("classes", c.c_void_p),
        ("n_classes", c.c_int),
        ("index_beside", c.c_int),
        ("max_bytes", c.c_int64),
        ("fields", c.c_char_p),
        ("source_fields", c.c_void_p),
        ("subset", c.POINTER(c.c_int64)),
        ("n_subset", c.c_int64),
        ("take", c.c_int64),
        ("ops", c.c_char_p),
        ("op", c.c_void_p),
        ("dtype", c.c_int),
        ("layout", c.c_int),
        ("sizes", c.c_int),
        ("fidelity", c.c_int),
        ("no_exif", c.c_int),
        ("max_pixels", c.c_int64),
        ("batch_size", c.c_int64),
        ("drop_last", c.c_int),
        ("pad_last", c.c_int),
        ("shuffle", c.c_int),
        ("seed", c.c_uint64),
        ("steps_per_epoch", c.c_int64),
        ("weights", c.c_void_p),
        ("n_weights", c.c_int64),
        ("sampled", c.c_int),
        ("mix", c.c_void_p),
        ("n_mix", c.c_int),
        ("mix_counts", c.c_void_p),
        ("on_error", c.c_int),
        ("max_bad", c.c_double),
        ("keep_empty", c.c_int),
        ("log", c.c_void_p),
        ("threads", c.c_int),
        ("memory", c.c_int64),
        ("reader", c.c_int),
        ("cpu", c.c_int),
        ("idle", c.c_int),
        ("allocator", c.c_void_p),
        ("cache", c.c_int),
        ("cache_dir", c.c_char_p),
        ("cache_size", c.c_int64),
        ("cache_shared", c.c_int),
        ("rank", c.c_int),
        ("world_size", c.c_int),
        ("device", c.c_char_p),
        ("device_work", c.c_int),
    ]


class StokerError(Exception):
    def __init__(self, e: Error) -> None:
        super().__init__(e.text.decode(errors="replace"))
        self.code, self.sample = e.code, e.sample


def load(path: str) -> c.CDLL:
    """The library, with the types of what is used here."""
    lib = c.CDLL(path)
    error = c.POINTER(Error)
    lib.stk_open_sized.argtypes = [c.POINTER(c.c_void_p), c.POINTER(Options), c.c_size_t, error]
    lib.stk_next.argtypes = [c.c_void_p, c.POINTER(c.c_void_p), error]
    lib.stk_close.argtypes = lib.stk_release.argtypes = [c.c_void_p]
    lib.stk_close.restype = lib.stk_release.restype = None
    lib.stk_samples.argtypes = [c.c_void_p]
    lib.stk_samples.restype = c.c_int64
    lib.stk_field.argtypes = [c.c_void_p, c.c_char_p]
    lib.stk_field.restype = c.POINTER(Array)
    lib.stk_loader_count.argtypes = [c.c_void_p]
    lib.stk_loader_count.restype = c.c_int64
    lib.stk_loader_source.argtypes = [c.c_void_p]
    lib.stk_loader_source.restype = c.c_void_p
    lib.stk_source_path.argtypes = [c.c_void_p, c.c_int64, c.c_char_p, c.c_size_t]
    lib.stk_source_path.restype = c.c_size_t
    return lib


def jpeg_version(lib: c.CDLL) -> str:
    """The first member of stk_info; an older caller's struct may end there."""
    name = c.c_char_p()
    lib.stk_info_get_sized(c.byref(name), c.c_size_t(c.sizeof(name)))
    return (name.value or b"").decode()


class Loader:
    """A loader; options are those of stk_options, `subset` a list of samples."""

    def __init__(self, lib: c.CDLL, subset: Sequence[int] | None = None, **options: object) -> None:
        o = Options(cache_dir=b"off")
        for name, value in options.items():
            setattr(o, name, value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
        if subset is not None:
            o.subset, o.n_subset = (c.c_int64 * len(subset))(*subset), len(subset)
        self.lib, self.handle, error = lib, c.c_void_p(), Error()
        if lib.stk_open_sized(c.byref(self.handle), c.byref(o), c.sizeof(o), c.byref(error)) != OK:
            raise StokerError(error)

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.stk_close(self.handle)

    def __len__(self) -> int:
        return self.lib.stk_loader_count(self.handle)

    def path(self, sample: int) -> bytes:
        buffer = c.create_string_buffer(8192)
        self.lib.stk_source_path(self.lib.stk_loader_source(self.handle), sample, buffer, len(buffer))
        return buffer.value

    def epoch(self, fields: Sequence[str] = ("image", "label", "index")) -> Iterator[dict[str, np.ndarray]]:
        """The batches of one epoch, copied."""
        batch, error = c.c_void_p(), Error()
        while (rc := self.lib.stk_next(self.handle, c.byref(batch), c.byref(error))) == OK:
            try:
                yield {name: self._field(batch, name) for name in fields}
            finally:
                self.lib.stk_release(batch)
        if rc != END:
            raise StokerError(error)

    def _field(self, batch: c.c_void_p, name: str) -> np.ndarray:
        a = self.lib.stk_field(batch, name.encode()).contents
        shape = tuple(a.shape[i] for i in range(a.ndim))
        dtype = np.dtype(DTYPES[a.dtype])
        n = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(c.string_at(a.data, n), dtype).reshape(shape)
