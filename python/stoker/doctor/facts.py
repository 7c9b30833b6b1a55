# SPDX-License-Identifier: Apache-2.0
"""A measurement with names for what the verdicts ask of it. Missing values are 0, empty or None, never an error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Measurement = dict[str, Any]
Run = dict[str, Any]

AS_IS, MODEL, LOADER, COLD = "as-is", "model", "loader", "loader-cold"
PARTS = ("wait", "copy", "compute", "host")
NO_STALLS = ("no-evaluation", "no-checkpoint")
BY_STOKER = ("stoker", "cache", "device", "draft", "pack")  # what-ifs whose loader is Stoker's
STEADY_STEPS = 20  # fewer steps give an unreliable median
DISTURBED = 0.2  # of the CPUs, used by other programs


def number(thing: Any, *keys: str) -> float:
    """A number inside nested dictionaries, 0 where it is missing.

    >>> number({"step_ms": {"median": 12.5}}, "step_ms", "median"), number({}, "cpu", "all")
    (12.5, 0.0)
    """
    for key in keys:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return float(thing) if isinstance(thing, int | float) else 0.0


def section(thing: Any, key: str) -> dict[str, Any]:
    """A dictionary inside another one; empty where it is missing."""
    found = thing.get(key) if isinstance(thing, dict) else None
    return found if isinstance(found, dict) else {}


def items(thing: Any, key: str) -> list[dict[str, Any]]:
    """The dictionaries of a list inside a dictionary."""
    found = thing.get(key) if isinstance(thing, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def finite(thing: Any) -> Any:
    """The same with None for NaN and infinity, which JSON cannot express.

    >>> finite({"loss": [1.5, float("nan")]})
    {'loss': [1.5, None]}
    """
    if isinstance(thing, dict):
        return {str(key): finite(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing


def mean_ms(run: Run, part: str) -> float:
    """Mean of a part of a step; the median where there is no mean."""
    times = run.get(f"{part}_ms")
    return number(times, "mean") or number(times, "median")


def step_ms(run: Run) -> float:
    """Time of a step: the sum of the means of its parts, or the median of the whole."""
    return sum(mean_ms(run, part) for part in PARTS) or number(run, "step_ms", "median")


def run_of(m: Measurement, name: str) -> Run | None:
    """A run that worked."""
    return next((run for run in items(m, "runs") if run.get("name") == name and run.get("status", "ok") == "ok"), None)


def gain_of(m: Measurement, run: Run | None) -> float:
    """How many times as fast as the script as it is; 0 if that is unknown."""
    if run is None:
        return 0.0
    if run.get("gain") is not None:
        return number(run, "gain")
    before = run_of(m, AS_IS)
    if before and run.get("name") in NO_STALLS:  # samples/s is without pauses, which are all that differs
        return (1 + stalled(before)) / (1 + stalled(run))
    return number(run, "samples_per_s") / rate if before and (rate := number(before, "samples_per_s")) else 0.0


def stalled(run: Run) -> float:
    """Seconds of evaluation and checkpoints per second of training."""
    seconds = step_ms(run) * number(run, "steps") / 1e3
    return sum(number(stall, "s") for stall in items(run, "stalls")) / seconds if seconds else 0.0


class Facts:
    """What the rules read. `run` is the run that they judge: as-is, or a what-if when the next limit is asked for."""

    def __init__(self, m: Measurement, run: Run) -> None:
        self.m, self.run = m, run
        what, _, value = str(run.get("name")).partition("=")
        self.loader, self.machine = {**section(m, "loader"), **changed_loader(what, value)}, section(m, "machine")
        # Stages were measured with the user's loader: they do not describe another one.
        self.stages = section(m, "stages") if run.get("name") == AS_IS else {}
        self.cpus = int(number(self.machine, "cpus")) or 1
        self.cores = min(self.cpus, number(self.machine, "quota") or self.cpus)
        self.ranks = max(1, len(items(run, "ranks")))
        self.workers = int(number(self.loader, "workers"))  # of one rank
        self.all_workers = self.ranks * self.workers
        self.has_gpu = bool(items(self.machine, "gpus"))
        self.step = step_ms(run)
        self.wait = number(run, "wait_share") or self.share("wait")
        self.rate = number(run, "samples_per_s")
        self.duration = self.step * number(run, "steps") / 1e3
        self.starts_workers = bool(self.workers and not self.loader.get("persistent"))
        self.starting = self._starting()  # seconds of pauses between epochs

    def _starting(self) -> float:
        """The first wait of every epoch but the first one. Without workers, only what is more than usual counts."""
        waits = [number(epoch, "first_wait_s") for epoch in items(self.run, "epochs")[1:]]
        if self.starts_workers:
            return sum(waits)
        if self.workers:  # that stay: it takes as long as they need for a batch, which has other causes
            return 0.0
        usual = number(self.run, "wait_ms", "median") / 1e3
        unusual = [wait - usual for wait in waits if wait > 4 * usual]
        return sum(unusual) if 2 * len(unusual) > len(waits) else 0.0

    def ms(self, part: str) -> float:
        return mean_ms(self.run, part)

    def share(self, part: str) -> float:
        """Of a step, from 0 to 1."""
        return min(1.0, self.ms(part) / self.step) if self.step else 0.0

    @property
    def waits(self) -> bool:
        """Whether waiting for data is worth a look, or the loader takes CPU time that the model needs."""
        return self.wait - self.starting_share >= 0.05 or self.crowded  # pauses between epochs have their own cause

    @property
    def starting_share(self) -> float:
        return self.starting / self.duration if self.duration else 0.0

    @property
    def crowded(self) -> bool:
        """Whether the model and the loader are each much faster alone than together, on CPUs that are all in use."""
        alone = min(self.rate_of(MODEL), self.rate_of(LOADER))
        together = self.run.get("name") == AS_IS and self.workers > 0 and not self.has_gpu and self.others < DISTURBED
        return together and self.rate < 0.8 * alone and self.idle_cores < 0.25 * self.cores

    def rate_of(self, name: str) -> float:
        """Samples per second of another run, 0 if there is none."""
        return number(run_of(self.m, name), "samples_per_s")

    @property
    def parts(self) -> dict[str, float]:
        """Microseconds per sample in each part of the loader, measured one by one."""
        s = self.stages
        return {
            "read": number(s, "cold_read_us") if self.reads_disk and s.get("cold_read_us") else number(s, "read_us"),
            "decode": number(s, "decode_us"),
            "transform": sum(number(t, "us") for t in items(s, "transforms")),
            "collate": number(s, "collate_us_per_sample"),
            "transfer": number(s, "transfer_us_per_sample"),
            "other": number(s, "other_us"),  # Python of the dataset itself
        }

    def is_largest(self, part: str) -> bool:
        parts = self.parts
        return parts[part] > 0 and parts[part] == max(parts.values())

    def part_share(self, us: float) -> float:
        """Of the loader's work per sample."""
        return us / total if (total := sum(self.parts.values())) else 0.0

    @property
    def slow_transform(self) -> dict[str, Any] | None:
        """The transform that takes most, if it takes a quarter of the loader's work and more than decoding."""
        all_of_them = items(self.stages, "transforms")
        one = max(all_of_them, key=lambda t: number(t, "us"), default=None)
        if one is None or self.part_share(number(one, "us")) < 0.25 or number(one, "us") < self.parts["decode"]:
            return None
        return one

    @property
    def reads_disk(self) -> bool:
        """Whether this run read its data from storage, not from memory."""
        return reads_disk(self.run, section(self.m, "loader"))

    @property
    def reads_network(self) -> bool:
        """Whether files come from a file system that keeps none in memory. FUSE does not count what it reads."""
        kind = section(self.machine, "storage").get("kind")
        return kind == "network" and number(self.stages, "read_us") > 1000 and not self.reads_disk

    @property
    def reads_little(self) -> bool:
        """Whether reading was timed, from storage if this run read from there, and takes little of the work."""
        timed = bool(number(self.stages, "cold_read_us")) or not self.reads_disk
        return timed and 0 < self.parts["read"] < 0.2 * sum(self.parts.values())

    @property
    def blocked(self) -> float:
        """Seconds for which the loader's processes slept while the script waited for them, all together."""
        known = number(self.run, "io", "blocked_s")  # 0 where the kernel does not count it
        if known or self.wait < 0.3 or not self.workers:
            return known
        return max(0.0, self.all_workers - number(self.run, "cpu", "workers")) * self.duration

    @property
    def idle_cores(self) -> float:
        used = number(self.run, "cpu", "all")
        spare = section(self.run, "cpu").get("idle")  # of the machine: other programs may use the rest
        unused = max(0.0, self.cores - used) if used else 0.0
        return min(unused, float(spare)) if isinstance(spare, int | float) else unused

    @property
    def others(self) -> float:
        """The part of the CPUs that other programs used meanwhile, from 0 to 1."""
        cpu = section(self.run, "cpu")
        if not isinstance(cpu.get("idle"), int | float) or not number(cpu, "all") or self.cores < self.cpus:
            return 0.0
        return max(0.0, 1 - (number(cpu, "all") + number(cpu, "idle")) / self.cpus)

    def more_workers(self) -> int:
        """A number that may be enough: one per core, more where cores are idle with that, or where workers sleep."""
        per_core = max(2, self.fewer_workers())
        if self.wait > 0.5 and 0 < number(self.run, "cpu", "all") < 0.25 * self.cores:
            return min(32, max(8, 4 * self.workers))
        return per_core if self.workers < per_core else min(32, 2 * self.workers)

    def fewer_workers(self) -> int:
        return max(1, int(self.cores / self.ranks))

    @property
    def memory(self) -> float:
        return number(self.machine, "memory")

    @property
    def data_bytes(self) -> float:
        return number(self.loader, "bytes")


def changed_loader(what: str, value: str) -> dict[str, Any]:
    """How a what-if changes the loader of the script."""
    if what in BY_STOKER:
        return {"kind": "stoker", "workers": 0}
    return {"workers": int(value)} if what == "workers" else {"persistent": True} if what == "persistent" else {}


def reads_disk(run: Run | None, loader: dict[str, Any]) -> bool:
    """Whether at least a quarter of the bytes came from storage; without sizes, whether 4 KB per sample did."""
    samples = number(run, "steps") * number(loader, "batch_size") * max(1, len(items(run, "ranks")))
    if not run or not samples:
        return False
    each = number(run, "io", "read_bytes") / samples
    size = number(loader, "bytes") / count if (count := number(loader, "samples")) else 0.0
    return each >= (size / 4 if size else 4096)


def noise(runs: Iterable[Run]) -> float:
    """The largest relative standard error of these runs; where it was not measured, from percentiles of their steps."""
    most = 0.0
    for run in runs:
        if run.get("noise") is not None:
            most = max(most, number(run, "noise"))
            continue
        times, steps = section(run, "step_ms"), number(run, "steps")
        if times.get("p90") is not None and times.get("median") and steps:
            spread = (number(times, "p90") - number(times, "p10")) / 2.56 / number(times, "median")
            most = max(most, 1.25 * spread / steps**0.5)
    return most
