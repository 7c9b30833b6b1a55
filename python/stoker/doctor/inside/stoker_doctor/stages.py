# SPDX-License-Identifier: Apache-2.0
"""The parts of a loader, one by one, in one thread: read, decode, each transform, collate, sending to another process.

Only for datasets with __getitem__. Reading is timed on the files of the samples, decoding inside the libraries that
decode, transforms where the dataset calls them.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from . import describe, exif, probe

SECONDS = 3.0  # for all of it
MOST = 200  # samples
COLD = 24  # files that are read from storage
DECODERS = (  # functions that decode, and methods
    ("PIL.Image", "open"),
    ("PIL.ImageFile", "ImageFile.load"),
    ("PIL.Image", "Image.convert"),
    ("cv2", "imread"),
    ("cv2", "imdecode"),
    ("torchvision.io", "read_image"),
    ("torchvision.io", "decode_image"),
    ("torchvision.io", "decode_jpeg"),
    ("torchvision.io.image", "read_image"),
    ("torchvision.io.image", "decode_image"),
    ("torchvision.io.image", "decode_jpeg"),
    ("imageio", "imread"),
    ("skimage.io", "imread"),
)
FETCHERS = ("sqlite3", "lmdb", "zipfile", "h5py", "pyarrow", "datasets", "zarr", "psycopg", "psycopg2", "redis")

ASLEEP = 4  # a decoder that sleeps for as many times its CPU time waits for storage

timers: defaultdict[str, float] = defaultdict(float)
cpu: defaultdict[str, float] = defaultdict(float)  # CPU time of the same
_running: list[list[float]] = []  # time inside the timers that run now, so that none is counted twice


def timer(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its own time added to timers[name] and cpu[name]."""

    def call(*args: Any, **keywords: Any) -> Any:
        t0, c0 = probe.clock(), time.process_time()
        _running.append([0.0, 0.0])
        try:
            return function(*args, **keywords)
        finally:
            took, used = probe.clock() - t0, time.process_time() - c0
            inner = _running.pop()
            timers[name] += took - inner[0]
            cpu[name] += used - inner[1]
            if _running:
                _running[-1][0] += took
                _running[-1][1] += used

    return call


class Patched:
    """Replaces attributes, and puts them back."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        try:
            self._before.append((owner, name, owner.__dict__[name] if name in vars(owner) else getattr(owner, name)))
            setattr(owner, name, value)
        except (AttributeError, TypeError, KeyError):
            self._before.pop()

    def undo(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)


def measure(loop: probe.Loop, batch: Any) -> None:
    """Fills the sections stages, samples_ms, slowest and image of the record."""
    dataset = describe.dataset_of(loop.thing)
    n = describe.length(dataset)
    if dataset is None or not n or not hasattr(dataset, "__getitem__"):
        return
    try:
        _measure(loop, dataset, n, batch)
    except Exception as error:  # the other measurements stand
        probe.extra["stages_failed"] = f"{type(error).__name__}: {error}"


def _measure(loop: probe.Loop, dataset: Any, n: int, batch: Any) -> None:
    chosen = random.Random(0).sample(range(n), min(n, MOST))
    paths = describe.paths_of(dataset)
    sizes: list[tuple[int, int]] = []
    opened: list[str] = []
    patched = Patched()
    if not paths:
        _note_opens(patched, opened)
    _time_decoders(patched, sizes)
    parts = _time_transforms(patched, dataset)
    _one_thread()
    until = probe.clock() + SECONDS / 2
    times: list[tuple[float, int]] = []
    samples: list[Any] = []
    try:
        dataset[chosen[0]]  # imports and opens files
        timers.clear()
        cpu.clear()
        opened.clear()
        for index in chosen:
            t0 = probe.clock()
            sample = dataset[index]
            times.append((1e3 * (probe.clock() - t0), index))
            if len(samples) < 64:
                samples.append(sample)
            if probe.clock() > until and len(times) >= 4:
                break
    finally:
        patched.undo()
    whole = sum(t for t, _ in times) / 1e3
    times = _again(dataset, times)
    done = len(times)
    parts_of_files = len(set(opened)) < len(opened)
    files = [paths[i] for _, i in times] if paths else [] if parts_of_files else opened
    stages: dict[str, Any] = {
        "samples": done,
        **_decoding(done, files),
        "transforms": [
            {"name": name, "at": at, "us": 1e6 * timers[key] / done} for key, name, at in parts if timers[key] > 0
        ],
    }
    stats = _profile(dataset, chosen[: max(4, done // 4)])
    if not files:
        stages["read_us"] = 1e6 * whole / done * _fetching(stats)
    stages["transforms"] += _functions(stats, max(4, done // 4), {name for _, name, _ in parts})
    known = stages["decode_us"] + stages["read_us"] + sum(one["us"] for one in stages["transforms"])
    stages["other_us"] = max(0.0, 1e6 * whole / done - known)
    collate = getattr(loop.thing, "collate_fn", None)
    if collate and samples:
        size = max(1, min(len(samples), int(getattr(loop.thing, "batch_size", None) or 1)))
        stages["collate_us_per_sample"] = _best(lambda: collate(samples[:size])) * 1e6 / size
    if getattr(loop.thing, "num_workers", 0):
        stages["transfer_us_per_sample"] = _transfer_us(loop, batch)
    probe.extra["stages"] = stages
    _distribution(times, paths)
    _image(sizes, samples)
    _bytes(paths, n)
    exif.check(dataset, [paths[i] for _, i in times] if paths else [])


def _decoding(samples: int, files: list[str]) -> dict[str, float]:
    """Time to decode a sample, and to read it from memory and from storage. Decoders read files themselves."""
    each = len(files) / samples
    read, cold = each * _read_us(files), each * _read_us(files[:COLD], cold=True)
    whole, used = 1e6 * timers["decode"] / samples, 1e6 * cpu["decode"] / samples
    decode = max(0.0, whole - read)
    if decode > ASLEEP * used:
        decode, slept = used, whole - used
        read, cold = max(read, slept), max(cold, slept)
    return {"decode_us": decode, "read_us": read, "cold_read_us": cold}


def _again(dataset: Any, times: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Times the slowest samples a second time: another program may have held them up."""
    ordered = sorted(times, reverse=True)
    for i, (took, index) in enumerate(ordered[: max(3, len(ordered) // 20)]):
        t0 = probe.clock()
        dataset[index]
        ordered[i] = (min(took, 1e3 * (probe.clock() - t0)), index)
    return ordered


def _one_thread() -> None:
    """As torch's workers have it."""
    torch = sys.modules.get("torch")
    if torch:
        torch.set_num_threads(1)


def _best(function: Callable[[], Any], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        t0 = probe.clock()
        function()
        best = min(best, probe.clock() - t0)
    return best


def _time_decoders(patched: Patched, sizes: list[tuple[int, int]]) -> None:
    for module_name, path in DECODERS:
        owner: Any = sys.modules.get(module_name)
        *names, last = path.split(".")
        for name in names:
            owner = getattr(owner, name, None)
        function = getattr(owner, last, None)
        if callable(function):
            patched.set(owner, last, timer("decode", _sized(function, sizes) if path == "open" else function))


def _sized(function: Callable[..., Any], sizes: list[tuple[int, int]]) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> Any:
        image = function(*args, **keywords)
        sizes.append(image.size)
        return image

    return call


def _time_transforms(patched: Patched, dataset: Any) -> list[tuple[str, str, str | None]]:
    """Puts a clock on each transform. Returns the name of the timer, of the transform, and its place."""
    below = describe.inner(dataset)
    found = []
    for name in ("transform", "tfm"):
        whole = getattr(below, name, None)
        if whole is None:
            continue
        several = getattr(whole, "transforms", None)
        each = list(several) if isinstance(several, list | tuple) else [whole]
        keys = [f"transform {i}" for i in range(len(each))]
        clocks = [timer(key, one) for key, one in zip(keys, each, strict=True)]
        if isinstance(several, list | tuple):
            patched.set(whole, "transforms", type(several)(clocks))
        else:
            patched.set(below, name, clocks[0])
            if hasattr(below, "transforms"):  # torchvision keeps it a second time
                pair = below.transforms
                if getattr(pair, "transform", None) is whole:
                    patched.set(pair, "transform", clocks[0])
        found += [(key, describe.name_of(one), describe.at_of(one)) for key, one in zip(keys, each, strict=True)]
    return found


def _note_opens(patched: Patched, names: list[str]) -> None:
    original = builtins.open

    def call(file: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(file, str | os.PathLike):
            names.append(str(os.fspath(file)))
        return original(file, *args, **keywords)

    patched.set(builtins, "open", call)
    patched.set(io, "open", call)  # which pathlib calls


def _profile(dataset: Any, indices: list[int]) -> Any:
    """Time per function while these samples are made, as pstats has it."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    for index in indices:
        dataset[index]
    profile.disable()
    return pstats.Stats(profile, stream=io.StringIO()).stats  # type: ignore[attr-defined]


def _fetching(stats: Any) -> float:
    """The share of the time in libraries that fetch samples out of a file or a table."""

    names = "|".join(FETCHERS)

    def fetches(key: Any) -> bool:
        if key[0] == "~":  # a function in C: only its name is known
            return bool(re.search(rf"\b({names})\b", key[2]))
        return bool(re.search(rf"(-packages|/python3\.\d+)/({names})\b", key[0]))

    total = sum(value[2] for value in stats.values())
    entered = 0.0
    for key, (_, _, _, _, callers) in stats.items():
        if fetches(key):
            entered += sum(times[3] for caller, times in callers.items() if not fetches(caller))
    return min(1.0, entered / total) if total else 0.0


def _functions(stats: Any, count: int, known: set[str]) -> list[dict[str, Any]]:
    """Functions of the user that the dataset calls outside its transform, with their time per sample."""
    mine = {key for key in stats if not probe.is_library(key[0]) and key[0] != "~"}
    getters = {key for key in mine if key[2] in ("__getitem__", "__getitems__")}
    found = []
    for key in mine - getters:
        _, _, _, cumulative, callers = stats[key]
        called = set(callers) & getters
        if called and key[2] not in known and not key[2].startswith("<"):
            share = sum(callers[c][3] for c in called)
            at = f"{probe.short(key[0])}:{key[1]}"
            found.append({"name": key[2], "at": at, "us": 1e6 * min(share, cumulative) / count})
    return [one for one in found if not _decodes(stats, one)]


def _decodes(stats: Any, one: dict[str, Any]) -> bool:
    """Whether a function mainly reads and decodes. If so, it does not count as a transform."""
    decoded = sum(
        value[3] for key, value in stats.items() if key[2] in ("imread", "imdecode", "load") and key[0] != "~"
    )
    own = next((value[3] for key, value in stats.items() if key[2] == one["name"]), 0.0)
    return bool(own and decoded > 0.5 * own and one["name"] in ("load", "read", "load_image", "read_image", "loader"))


def _read_us(files: list[str], cold: bool = False) -> float:
    """Microseconds to read a file, from memory or from storage."""
    took, count, until = 0.0, 0, probe.clock() + SECONDS / 3
    for path in files:
        if probe.clock() > until:
            break
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            size = os.fstat(fd).st_size
            if cold:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            elif not count:
                os.pread(fd, size, 0)
            t0 = probe.clock()
            os.pread(fd, size, 0)
            took += probe.clock() - t0
            count += 1
        finally:
            os.close(fd)
    return 1e6 * took / count if count else 0.0


def _transfer_us(loop: probe.Loop, batch: Any) -> float:
    """Microseconds per sample to hand a batch over as torch's workers do: into shared memory, through a pipe."""
    import pickle
    from multiprocessing.reduction import ForkingPickler

    torch: Any = sys.modules["torch"]

    def tensors(value: Any) -> list[Any]:
        if isinstance(value, torch.Tensor):
            return [value]
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return [tensor for one in values for tensor in tensors(one)]

    found = tensors(batch)

    def once() -> None:
        for tensor in found:
            tensor.clone()  # the copy into shared memory that a worker makes
        pickle.loads(ForkingPickler.dumps(batch))

    try:
        return 1e6 * _best(once) / max(1, loop.size(batch))
    except Exception:  # what cannot be pickled here is not measured
        return 0.0


def _distribution(times: list[tuple[float, int]], paths: list[str]) -> None:
    ordered = sorted(times)
    values = [t for t, _ in ordered]

    def at(share: float) -> float:
        return values[min(len(values) - 1, int(share * len(values)))]

    top = values[-1] or 1.0
    edges = [top * i / 40 for i in range(41)]
    histogram = [
        [a, sum(a <= v < b or (b == edges[-1] and v == b) for v in values)]
        for a, b in zip(edges, edges[1:], strict=False)
    ]
    probe.extra["samples_ms"] = {
        "median": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "max": values[-1],
        "histogram": histogram,
    }
    probe.extra["fast"] = [i for t, i in times if t <= 4 * at(0.5)]
    probe.extra["slowest"] = [
        {"index": i, "path": os.path.abspath(paths[i]) if paths else None, "ms": t} for t, i in reversed(ordered[-10:])
    ]


def _image(sizes: list[tuple[int, int]], samples: list[Any]) -> None:
    array = probe.first_array(samples[0]) if samples else None
    shape = tuple(array.shape) if array is not None else ()
    if not sizes or len(shape) != 3:
        return
    height, width = (shape[1], shape[2]) if shape[0] in (1, 3, 4) else (shape[0], shape[1])
    middle = sorted(sizes, key=lambda s: s[0] * s[1])[len(sizes) // 2]
    probe.extra["image"] = {
        "width": middle[0],
        "height": middle[1],
        "needed_width": width,
        "needed_height": height,
    }


def _bytes(paths: list[str], n: int) -> None:
    """The size of the data, from a sample of the files."""
    some = paths[:: max(1, len(paths) // 500)]
    found = []
    for path in some:
        try:
            found.append(os.stat(path).st_size)
        except OSError:
            continue
    if found:
        probe.extra["bytes"] = int(sum(found) / len(found) * n)
