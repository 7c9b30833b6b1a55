# SPDX-License-Identifier: Apache-2.0
"""What a CUDA device sees: how long it waits for batches, copies, and values that the host reads from it.

The host runs ahead of the device, so its clock says little. Two events are recorded around next(): if the device is
still busy when the batch arrives, both events have the same time, and the wait is 0.
"""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

from . import probe
from .hooks import after

MOST = 100_000  # events of a kind
PROFILED = 5  # steps
events: dict[tuple[int, int], tuple[Any, Any]] = {}  # by loop and step: before and after next()
copied: list[tuple[float, Any, Any, int, bool, bool, str]] = []  # host time, events, bytes, pinned, non_blocking, dtype
places: set[str] = set()  # of the calls that copy to the device; "?" if one of them is a library's, or copies back, too
optimizing: list[tuple[float, Any, Any]] = []  # host time, and events around the optimizer's step
syncs: dict[str, list[float]] = {}  # by place: seconds of the host, calls
profiled_from = float("inf")  # the host's time; later steps are profiled, which makes them slow
_reads = 0  # inside a read that is timed
_copies_now = 0  # inside a copy that is timed
_profile: Any = None


def install() -> None:
    after("torch._tensor", _tensor)


def is_used() -> bool:
    """Whether the script uses CUDA; this never starts it."""
    torch = sys.modules.get("torch")
    return bool(torch and getattr(torch, "cuda", None) and torch.cuda.is_initialized())


def is_waited_for() -> bool:
    """Whether the main thread is inside a copy or a read, which lasts until the device is done."""
    return bool(_reads or _copies_now)


def event() -> Any:
    made = sys.modules["torch"].cuda.Event(enable_timing=True)
    made.record()
    return made


def reset() -> None:
    """Forgets what was measured before."""
    global profiled_from, _profile
    profiled_from, _profile = float("inf"), None
    known: list[Any] = [events, copied, places, optimizing, syncs]
    for things in known:
        things.clear()


def _tensor(module: Any) -> None:
    for name in ("to", "cuda"):
        setattr(module.Tensor, name, _copying(getattr(module.Tensor, name)))
    for name in ("item", "tolist", "cpu", "numpy", "__float__", "__bool__", "__int__"):
        setattr(module.Tensor, name, _reading(getattr(module.Tensor, name)))


def _copying(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        global _copies_now
        if self.device.type != "cpu":  # torch.compile traces this: nothing else may come before it
            result = original(self, *args, **keywords)
            if result.device.type == "cpu" and places and call_end(sys._getframe(1)) in places:
                places.add("?")
            return result
        if not probe.loops or not is_used() or not probe.is_watching():
            return original(self, *args, **keywords)
        if sys.modules["torch"].compiler.is_compiling():
            return original(self, *args, **keywords)
        t0, before = probe.clock(), event()
        _copies_now += 1
        try:
            result = original(self, *args, **keywords)
        finally:
            _copies_now -= 1
        if result.device.type != "cpu" and len(copied) < MOST:
            size, dtype = self.numel() * self.element_size(), str(self.dtype)
            non_blocking = bool(keywords.get("non_blocking")) or True in args[1:3]
            copied.append((t0, before, event(), size, self.is_pinned(), non_blocking, dtype))
            if not non_blocking:
                places.add(call_end(sys._getframe(1)))
        return result

    return call


def call_end(frame: Any) -> str:
    """file:line:column where the call that a frame of the script makes ends; "?" for any other frame."""
    code = frame.f_code
    _, line, _, column = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    if probe.is_library(code.co_filename) or column is None:
        return "?"
    return f"{probe.short(code.co_filename)}:{line}:{column}"


def _reading(original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        global _reads
        if _reads or self.device.type == "cpu" or not probe.started or not probe.is_watching():
            return original(self, *args, **keywords)
        _reads += 1
        t0 = probe.clock()
        try:
            return original(self, *args, **keywords)
        finally:
            _reads -= 1
            found = syncs.setdefault(probe.place() or "?", [0.0, 0.0])
            found[0] += probe.clock() - t0
            found[1] += 1

    return call


def begin() -> Any:
    """Before next()."""
    return event() if is_used() and len(events) < MOST else None


def end(loop: probe.Loop, before: Any) -> None:
    """After next(); the step has been noted."""
    if before is not None:
        events[loop.number, len(loop.begin) - 1] = (before, event())


def begin_optimizer(optimizer: Any) -> Any:
    """Before the optimizer's step, if its parameters are on a device: an event, unless work is being recorded there."""
    torch = sys.modules["torch"]
    if not is_used() or len(optimizing) >= MOST or torch.compiler.is_compiling():
        return None
    first = next((one for group in optimizer.param_groups for one in group["params"]), None)
    if first is None or first.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return None
    return event()


def end_optimizer(begun: float, before: Any) -> None:
    if before is not None:
        optimizing.append((begun, before, event()))


# ---------------------------------------------------------------- a few steps under torch's profiler


def profiles(loop: probe.Loop, now: float) -> bool:
    """At the end of the run of the model alone: counts kernels in a few more steps. True while it does."""
    if not is_used() or probe.plan.get("mode") != "model":
        return False
    try:
        return _profiles(now)
    except Exception as error:  # the driver may not allow it; everything else was measured
        probe.extra.setdefault("hooks", []).append(f"torch.profiler: {type(error).__name__}: {error}")
        return False


def _profiles(now: float) -> bool:
    global _profile, profiled_from
    torch = sys.modules["torch"]
    if _profile is None:
        profiled_from = now
        _profile = [torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]), 0, 0.0]
        torch.cuda.synchronize()
        _profile[0].start()
        _profile[2] = probe.clock()
    _profile[1] += 1
    if _profile[1] <= PROFILED:
        return True
    torch.cuda.synchronize()
    seconds = probe.clock() - _profile[2]
    _profile[0].stop()
    _count(_profile[0].events(), seconds)
    return False


def _count(found: Any, seconds: float) -> None:
    """Kernels and copies per step, and how long at least one of them ran.

    User annotations (`record_function`) are skipped.
    """
    kernels = [e for e in found if str(e.device_type).endswith("CUDA") and not getattr(e, "is_user_annotation", False)]
    spans = sorted((e.time_range.start, e.time_range.end) for e in kernels)
    busy, last = 0.0, 0.0
    for a, b in spans:
        busy += max(0.0, b - max(a, last))
        last = max(last, b)
    probe.extra["gpu"] = {
        "kernels": len(kernels) / PROFILED,
        "kernel_ms": busy / 1e3 / PROFILED,
        "busy": min(1.0, busy / 1e6 / seconds),
    }


# ---------------------------------------------------------------- the record


def correct(loop: probe.Loop, steps: list[dict[str, Any]]) -> None:
    """Replaces the host's view of waiting and copying by the device's."""
    if not events:
        return
    torch = sys.modules["torch"]
    torch.cuda.synchronize()
    for step in steps:
        pair = events.get((loop.number, step["index"]))
        if pair:
            step["wait"] = min(step["wait"], pair[0].elapsed_time(pair[1]) / 1e3)
    _copies(steps)
    if optimizing:  # the host only launches its kernels
        seconds = {t: before.elapsed_time(after) / 1e3 for t, before, after in optimizing}
        probe.optimizer[:] = [(t, seconds.get(t, took)) for t, took in probe.optimizer]
    for step in steps:
        rest = max(0.0, step["all"] - step["wait"] - step["copy"])
        step["compute"], step["host"] = rest, 0.0
    _summary(loop, steps)


def _copies(steps: list[dict[str, Any]]) -> None:
    spans = iter(sorted(copied, key=lambda c: c[0]))
    one = next(spans, None)
    for step in steps:
        step["copy"] = 0.0
        while one and one[0] < step["end"]:
            if one[0] >= step["got"]:
                step["copy"] += one[1].elapsed_time(one[2]) / 1e3
            one = next(spans, None)
        step["copy"] = min(step["copy"], max(0.0, step["all"] - step["wait"]))


def _summary(loop: probe.Loop, steps: list[dict[str, Any]]) -> None:
    torch = sys.modules["torch"]
    timed = max(1, sum(t >= probe.started for t in loop.end))  # in these, reads were timed; `steps` are fewer
    within = [c for c in copied if steps and steps[0]["begin"] <= c[0] <= steps[-1]["end"]]
    if within:
        largest = max(within, key=lambda c: c[3])
        probe.extra["copies"] = {
            "bytes": sum(c[3] for c in within) / len(steps),
            "pinned": largest[4],
            "non_blocking": largest[5],
            "dtype": largest[6],
            "at": sorted(places),
        }
    probe.extra["syncs"] = [
        {"at": at, "ms": 1e3 * s / timed, "calls": n / timed}
        for at, (s, n) in sorted(syncs.items(), key=lambda pair: -pair[1][0])[:5]
    ]
    device = torch.cuda.current_device()
    found = torch.cuda.get_device_properties(device)
    count = torch.cuda.device_count()
    names = [torch.cuda.get_device_properties(i) for i in range(count)]
    probe.extra["gpus"] = [{"name": one.name, "memory": one.total_memory} for one in names]
    probe.extra["gpu_memory"] = {"peak": torch.cuda.max_memory_allocated(device), "total": found.total_memory}
