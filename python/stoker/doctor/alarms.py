# SPDX-License-Identifier: Apache-2.0
"""What is wrong rather than slow: training on the wrong data, or on the way to run out of memory.

An alarm needs no what-if. It states a fact that was observed while the script ran.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from .._types import counted
from .causes import percent, size
from .facts import AS_IS, Measurement, Run, number, run_of, section, step_ms

DAY_MS = 24 * 3600e3
SMALL_GROWTH = 64e6  # bytes in half of a run


class Alarm(NamedTuple):
    number: int
    id: str
    find: Callable[[Measurement, dict[str, Any]], tuple[str, list[str]] | None]  # a title and the evidence
    change: str


def same_augmentation(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    if not checks.get("worker_seeds_equal"):
        return None
    count = number(checks, "workers_compared")
    words = f"{count:.0f} workers start with the same state: what a transform draws from it is the same in all of them"
    return "NumPy's or Python's random numbers are the same in all workers", [words]


def epoch_fixed(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    epochs, labels = number(checks, "epochs_seen"), number(checks, "epoch_labels")
    if checks.get("set_epoch_missing"):
        words = f"a DistributedSampler had the same epoch number in all {epochs:.0f} epochs that were seen"
        return "Every epoch has the same order: the sampler's set_epoch is never called", [words]
    if checks.get("epochs_equal"):
        words = f"two epochs begin with the same {labels:.0f} labels"
        return "Every epoch has the same order, although the loader shuffles", [words]
    return None


def rank_duplicates(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    share = number(checks, "rank_duplicates")
    if share < 0.9:  # ranks that shuffle the same small dataset have some samples in common
        return None
    what, count = checks.get("rank_compared") or "indices", number(checks, "rank_batches")
    words = f"the {what} of the first {counted(int(count), 'batch')} were compared"
    right = "this is right only for ranks that share one copy of the model, as in tensor or pipeline parallelism"
    return f"Ranks take the same samples: {percent(share)} of them at the same time", [words, right]


def poor_shuffle(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    classes = section(checks, "batch_classes")
    seen, expected = number(classes, "seen"), number(classes, "expected")
    if not seen or seen > 0.6 * expected:
        return None
    words = f"a batch has {seen:.3g} classes on average, and {expected:.3g} in a random order"
    return "The samples are poorly shuffled", [words]


def padded_eval(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    count = number(checks, "eval_padded")
    if not count:
        return None
    words = f"{count:.0f} sample{'s are' if count != 1 else ' is'} counted twice"
    samples = number(checks, "eval_samples")
    evidence = [f"the DistributedSampler takes {samples + count:.0f} samples of a dataset of {samples:.0f}"]
    return f"Evaluation repeats samples to fill the ranks: {words}", evidence


def exif_ignored(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    share, looked = number(checks, "exif_ignored"), number(checks, "exif_files")
    if share < 0.001:
        return None
    words = f"{share * looked:.0f} of {looked:.0f} files have an EXIF orientation"
    same = "the dataset returns the same sample for a picture with and without one"
    return f"{percent(share)} of the images are rotated by EXIF, and the script ignores that", [f"{words}; {same}"]


def loss_nan(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    step = checks.get("loss_nan_step")
    if step is None:
        return None
    losses = (run_of(m, AS_IS) or {}).get("loss") or []
    count = sum(x is None or x != x for x in losses)  # JSON has null for NaN
    when = f"from step {step} on" if count >= len(losses) - step else f"in step {step}"
    return f"The loss is NaN or infinite {when}", [f"{count} of {counted(len(losses), 'loss')} are NaN or infinite"]


def growth_of(run: Run | None) -> float:
    """Bytes per step that the memory grows by after the start; 0 if it also falls, or grows less and less."""
    points = [p[1] for p in (section(run, "memory").get("rss") or []) if isinstance(p, list | tuple) and len(p) == 2]
    if not run or len(points) < 8:
        return 0.0
    quarter = len(points) // 4
    later = points[quarter:]
    middles = [median(points[i * quarter : (i + 1) * quarter]) for i in range(1, 4)]
    rises = middles[1] - middles[0], middles[2] - middles[1]
    fallen = sum(max(0, a - b) for a, b in pairwise(later))
    if min(rises) < 0.3 * max(rises) or fallen > 0.2 * (later[-1] - later[0]):
        return 0.0
    if sum(rises) < SMALL_GROWTH:  # pools that fill in the first seconds
        return 0.0
    steps = number(run, "steps") / 2
    return sum(rises) / steps if steps else 0.0


def compiles_often(m: Measurement, run: Run) -> bool:
    """Whether most batches have a shape of their own, for which the framework compiles and keeps a step."""
    return m.get("framework") in ("jax", "tensorflow") and number(run, "shapes") > 0.5 * number(run, "steps")


def memory_growth(m: Measurement, checks: dict[str, Any]) -> tuple[str, list[str]] | None:
    run = run_of(m, AS_IS)
    growth, whole = growth_of(run), number(section(m, "machine"), "memory")
    if run is None or growth < 32e3 or not whole or compiles_often(m, run):
        return None
    left = (whole - section(run, "memory")["rss"][-1][1]) / growth
    hours = left * step_ms(run) / 3600e3
    if left * step_ms(run) > DAY_MS:
        return None
    evidence = [f"memory of {size(whole)} is full after {left:.0f} more steps ({hours:.2g} h)"]
    other = run_of(m, "stoker")
    if other and section(other, "memory").get("rss"):
        evidence.append(f"with Stoker it grows by {size(growth_of(other))} per step")
    return f"Memory grows by {size(growth)} per step", evidence


ALARMS = (
    Alarm(
        34,
        "same-augmentation",
        same_augmentation,
        "use torch's random numbers in transforms, or seed the others in worker_init_fn from torch.initial_seed()",
    ),
    Alarm(35, "epoch-fixed", epoch_fixed, "call loader.sampler.set_epoch(epoch) at the start of every epoch"),
    Alarm(
        36,
        "rank-duplicates",
        rank_duplicates,
        "divide the samples among the ranks: a DistributedSampler, or split_by_node of a WebDataset",
    ),
    Alarm(37, "poor-shuffle", poor_shuffle, "shuffle the file list before it is split, or enlarge the shuffle buffer"),
    Alarm(
        38, "padded-eval", padded_eval, "leave out the repeated samples when you count; len(dataset) is the true number"
    ),
    Alarm(
        39,
        "exif-ignored",
        exif_ignored,
        "apply PIL.ImageOps.exif_transpose, or load with Stoker's own ops, which do so",
    ),
    Alarm(40, "loss-nan", loss_nan, "lower the learning rate, or look for the first batch with NaN in it"),
    Alarm(
        41,
        "memory-growth",
        memory_growth,
        "store paths and labels as arrays, not as lists; keep no batches, and no losses with their graph",
    ),
)


def alarms(m: Measurement) -> list[dict[str, Any]]:
    """All alarms of a measurement."""
    checks, found = section(m, "checks"), []
    for alarm in ALARMS:
        if result := alarm.find(m, checks):
            title, evidence = result
            found.append(
                {"number": alarm.number, "id": alarm.id, "title": title, "evidence": evidence, "change": alarm.change}
            )
    return found
