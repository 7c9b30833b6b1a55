# SPDX-License-Identifier: Apache-2.0
"""The record of a run: numbers of the training loop, in the form of the doctor's document."""

from __future__ import annotations

import bisect
import math
import os
import sys
from typing import Any

from . import probe, sampler

LONGEST = 200  # steps in the timeline
KEPT_LOSSES = 2000


def make(status: str, end: float) -> dict[str, Any]:
    loop = training_loop()
    record: dict[str, Any] = {
        "status": status,
        "pid": probe.pid,
        "rank": int(os.environ.get("RANK") or 0),
        "python": sys.executable,
        "framework": framework(),
        "target": loop.number if loop else None,
        "updates": probe.updates,
        "disabled": list(probe.disabled),
        "first": min((one.begin[0] for one in probe.loops if one.begin), default=None),
    }
    if loop:
        from . import checks, describe

        record["loader"] = describe.loader(loop)
        record["run"] = numbers(loop, end)
        record["checks"] = checks.make(loop, record["run"]["loss"])
    record["extra"] = {**probe.extra, "versions": versions()}  # after numbers(), which adds what a device knows
    return record


def framework() -> str | None:
    """What computes. A script with JAX may import torch or TensorFlow for their loaders only."""
    names = [name for name in ("torch", "tensorflow") if name in probe.computing]
    return next((name for name in (*names, "jax", "torch", "tensorflow") if name in sys.modules), None)


def versions() -> dict[str, str]:
    names = ("torch", "tensorflow", "keras", "jax", "lightning", "accelerate", "transformers", "stoker")
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return {name: str(version) for name, version in found.items() if version}


def training_loop() -> probe.Loop | None:
    """The target of the plan, else the loop whose batches were followed by most updates, else the longest.

    Of loops that take turns, and are followed by as many updates, the one that the script waits for most.
    """
    target = probe.plan.get("target")
    if target is not None and target < len(probe.loops):
        loop: probe.Loop = probe.loops[target]
        return loop

    def followed(loop: probe.Loop) -> int:
        after = [*loop.updates[1:], probe.updates]
        return sum(b > a for a, b in zip(loop.updates, after, strict=True)) if loop.begin else 0

    most = max(map(followed, probe.loops), default=0)
    if not most:
        return max(probe.loops, key=lambda loop: loop.end[-1] - loop.begin[0] if loop.begin else 0.0, default=None)
    return max(
        (loop for loop in probe.loops if followed(loop) >= 0.9 * most),
        key=lambda loop: sum(loop.end) - sum(loop.begin),
    )


def spread(values: list[float]) -> dict[str, float]:
    """Median, mean and percentiles."""
    if not values:
        return {"median": 0.0, "mean": 0.0, "p10": 0.0, "p90": 0.0}
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"median": at(0.5), "mean": sum(values) / len(values), "p10": at(0.1), "p90": at(0.9)}


BLOCKS = 8


def noise(values: list[float]) -> float | None:
    """Relative standard error of the mean, from the means of consecutive blocks.

    Steps are not independent: after a long wait, several batches may be ready.
    """
    size = len(values) // BLOCKS
    if not size:
        return None
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(BLOCKS)]
    mean = sum(means) / BLOCKS
    return float(math.sqrt(sum((m - mean) ** 2 for m in means) / (BLOCKS - 1) / BLOCKS) / mean) if mean else None


Span = tuple[float, float]  # begin and end


def other_loaders(loop: probe.Loop, finish: float) -> tuple[list[tuple[str, str | None, float, float]], list[Span]]:
    """What other loaders do until the run ends: evaluations (what, where, begin, end), during which training stands
    still, and each next() of loaders that take turns with the training loader, as in the training of a GAN."""
    found, turns = [], []
    for other in probe.loops:
        edges = [*other.epochs, len(other.begin)] if other is not loop else []
        for first, last in zip(edges, edges[1:], strict=False):
            if last == first:
                continue
            begin, end = other.begin[first], other.end[last - 1]
            until = other.begin[last] if last < len(other.begin) else float("inf")
            left = any(one.begin[-1] > end for one in probe.loops if one.begin)  # early; if not, it goes on
            end = min((t for t in other.closed if end <= t <= until), default=end if left else finish)
            if bisect.bisect_right(loop.begin, begin) == bisect.bisect_left(loop.begin, end):
                found.append(("evaluation", other.at_loop, begin, end))
            else:
                turns += list(zip(other.begin[first:last], other.end[first:last], strict=True))
    return found, turns


def add_turns(steps: list[dict[str, Any]], turns: list[Span]) -> None:
    """Time in next() of other loaders, inside the script's own code of a step, is waiting too."""
    begins = [step["begin"] for step in steps]
    for begin, end in turns:
        i = bisect.bisect_right(begins, begin) - 1
        if i >= 0 and steps[i]["got"] <= begin < steps[i]["end"]:
            steps[i]["wait"] += end - begin


def overlap(begin: float, end: float, spans: list[tuple[float, float]]) -> float:
    return sum(max(0.0, min(end, b) - max(begin, a)) for a, b in spans)


def numbers(loop: probe.Loop, end: float) -> dict[str, Any]:
    steps = [step for step in finished_steps(loop) if step["end"] <= probe.device.profiled_from]
    skip = min(max(probe.SMALL_STEPS, len(steps) // 10), 20, max(0, len(steps) - 1))
    kept = whole_epochs(steps[skip:], loop.epochs)
    since, until = (kept[0]["begin"], kept[-1]["end"]) if kept else (end, end)
    evaluations, turns = other_loaders(loop, end)
    unfinished = [(*one, end) for one in probe.running]
    last = end if kept and kept[-1] is steps[-1] else until  # what follows after the last step belongs to its epoch
    stalls = [s for s in [*evaluations, *probe.stalls, *unfinished] if s[3] > since and s[2] < last]
    away = [(s[2], s[3]) for s in stalls]
    for step in kept:
        step["wait"] = step["wait"] - overlap(step["begin"], step["got"], away)
        step["all"] = step["end"] - step["begin"] - step["own"] - overlap(step["begin"], step["end"], away)
        step["copy"] = 0.0
    add_turns(kept, turns)
    split_rest(kept)
    probe.device.correct(loop, kept)
    times = {part: [1e3 * max(0.0, s[part]) for s in kept] for part in ("all", "wait", "copy", "compute", "host")}
    total = sum(times["all"]) / 1e3
    samples = sum(s["size"] for s in kept)
    result: dict[str, Any] = {
        "steps": len(kept),
        "seconds": total,
        "samples": samples,
        "samples_per_s": samples / total if total else 0.0,
        "noise": noise(times["all"]),
        "step_ms": spread(times["all"]),
        "wait_share": sum(times["wait"]) / sum(times["all"]) if total else 0.0,
        "first_batch_s": loop.end[0] - loop.begin[0] if loop.end else None,
        "epochs": epochs(loop, since, until),
        "timeline": [timeline(s, since) for s in kept[:LONGEST]],
        "loss": loss(),
        "shapes": len(loop.shapes),
        "stalls": [{"what": w, "at": at, "t": max(0.0, a - since), "s": b - a} for w, at, a, b in stalls],
        "syncs": probe.extra.pop("syncs", []),
        "hot": hot(kept),
        "loading": loading(),
        "in_graph": loop.in_graph,
        "window": [since, until],
        "overhead": overhead(kept),
        "host_share": sampler.counts["host"] / max(1, sum(sampler.counts.values())),
    }
    for part in ("wait", "copy", "compute", "host"):
        result[f"{part}_ms"] = spread(times[part])
    if probe.optimizer:
        result["optimizer_ms"] = spread(optimizer_times(kept))
    return result


def optimizer_times(steps: list[dict[str, Any]]) -> list[float]:
    """Milliseconds in each step; a script may have several optimizers."""
    times = [0.0] * len(steps)
    begins = [step["begin"] for step in steps]
    for t, took in probe.optimizer:
        i = bisect.bisect_right(begins, t) - 1
        if i >= 0 and t < steps[i]["end"]:
            times[i] += 1e3 * took
    return times


def finished_steps(loop: probe.Loop) -> list[dict[str, Any]]:
    """Steps that have an end: the next() that follows, in this epoch or the next one, or the one that ended the run.

    The loader's work at the end of an epoch, such as ending its workers, is waiting.
    """
    found = []
    for i, (t0, t1) in enumerate(zip(loop.begin, loop.end, strict=False)):
        end = loop.begin[i + 1] if i + 1 < len(loop.begin) else next((t for t in loop.closed if t >= t1), 0.0)
        if end:
            own = loop.own.get(i, 0.0)
            wait = t1 - t0 - own + (loop.closing.get(i, 0.0) if i + 1 < len(loop.begin) else 0.0)
            times = {"begin": t0, "got": t1, "end": end, "wait": wait, "own": own}
            found.append({**times, "size": loop.sizes[i], "index": i})
    return found


def whole_epochs(steps: list[dict[str, Any]], starts: list[int]) -> list[dict[str, Any]]:
    """As many steps as some epochs have, if there are at least two: pauses between epochs count as often as epochs."""
    length = starts[1] - starts[0] if len(starts) > 1 else 0
    return steps[: len(steps) // length * length] if length and len(steps) >= 2 * length else steps


def split_rest(steps: list[dict[str, Any]]) -> None:
    """Divides what is neither waiting nor copying into compute and host, as the samples saw it."""
    compute, host = sampler.counts["compute"], sampler.counts["host"]
    share = compute / (compute + host) if compute + host else 1.0
    for step in steps:
        rest = max(0.0, step["all"] - step["wait"] - step["copy"])
        step["compute"], step["host"] = rest * share, rest * (1 - share)


def timeline(step: dict[str, Any], since: float) -> dict[str, float]:
    parts = {part: 1e3 * max(0.0, step[part]) for part in ("wait", "copy", "compute", "host")}
    return {"t": step["begin"] - since, **parts}


def epochs(loop: probe.Loop, since: float, until: float) -> list[dict[str, Any]]:
    edges = [*loop.epochs, len(loop.begin)]
    return [
        {
            "start_s": loop.begin[a] - since,
            "first_wait_s": loop.end[a] - loop.begin[a] + loop.closing.get(a - 1, 0.0),
            "steps": b - a,
        }
        for a, b in zip(edges, edges[1:], strict=False)
        if a < len(loop.end) and loop.begin[a] < until
    ]


def loss() -> list[float]:
    """The losses of the script, one per update, from the first one on."""
    values = []
    for _, value in probe.losses[:KEPT_LOSSES]:
        try:
            values.append(float(value))
        except Exception:  # not a number after all
            return []
    return [x if math.isfinite(x) else float("nan") for x in values]


def hot(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Functions of the script that take a twentieth of the time or more."""
    total = sum(sampler.counts.values())
    mean = 1e3 * sum(s["all"] for s in steps) / max(1, len(steps))
    return [
        {"name": name, "at": at, "ms": mean * n / total}
        for (name, at), n in sampler.hot.most_common(5)
        if n >= max(3, 0.05 * total)
    ]


def loading() -> list[dict[str, Any]]:
    """Functions of the script that make batches in this process, and their share of the time."""
    total = max(1, sampler.seen)
    return [
        {"name": name, "at": at, "share": n / total}
        for (name, at), n in sampler.loading.most_common(3)
        if n >= max(3, 0.05 * total)
    ]


def overhead(steps: list[dict[str, Any]]) -> dict[str, float]:
    """What the doctor itself takes of a step: its thread's CPU time, and the cost of a timed next()."""
    total = sum(s["all"] for s in steps)
    if not total:
        return {"us_per_step": 0.0, "share": 0.0}
    per_step = sampler.taken / max(1, sampler.seen) / sampler.EVERY * total / len(steps) + cost_of_next()
    return {"us_per_step": 1e6 * per_step, "share": per_step * len(steps) / total}


def cost_of_next() -> float:
    """Seconds that a timed next() takes longer than a plain one, by the same code on an empty loop."""
    n = 2000
    loop = probe.Loop(None, "iterable", None)
    batch = [0]
    t0 = probe.clock()
    for _ in range(n):
        if probe.is_watching():
            loop.sizes.append(probe.size_of(batch))
            loop.begin.append(probe.clock())
            loop.end.append(probe.clock())
            loop.updates.append(0)
    return (probe.clock() - t0) / n
