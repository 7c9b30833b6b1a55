# SPDX-License-Identifier: Apache-2.0
"""What is wrong rather than slow, as far as a run shows it. Read at the end, when it costs no time."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

from . import probe

COMPARED = 4  # batches at the start of an epoch


def make(loop: probe.Loop, losses: list[float]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for function in (_shuffle, _epochs, _ranks, _padded, _workers):
        try:
            found.update(function(loop))
        except Exception as error:  # labels of a form that is not known here
            found.setdefault("not_checked", []).append(f"{function.__name__}: {type(error).__name__}")
    nan = next((i for i, x in enumerate(losses) if math.isnan(x)), None)
    if nan is not None:
        found["loss_nan_step"] = nan
    return found


def _lists(loop: probe.Loop) -> list[list[int]]:
    """Labels of the batches, where they are whole numbers."""
    lists = []
    for labels in loop.labels:
        if labels is None or "int" not in str(getattr(labels, "dtype", "")):
            return []
        array = labels if hasattr(labels, "tolist") else labels.numpy()  # a tensor of TensorFlow
        lists.append([int(x) for x in array.tolist()])
    return lists


def _shuffles(loop: probe.Loop) -> bool:
    return "Random" in type(getattr(loop.thing, "sampler", None)).__name__


def _chooses(loop: probe.Loop) -> bool:
    """Whether the script has a sampler of its own, which may choose the classes of a batch on purpose."""
    samplers = (getattr(loop.thing, name, None) for name in ("sampler", "batch_sampler"))
    return any(one is not None and not type(one).__module__.startswith("torch.") for one in samplers)


def _shuffle(loop: probe.Loop) -> dict[str, Any]:
    """Classes in a batch, and how many there would be if the samples seen came in a random order."""
    if _chooses(loop):
        return {}
    lists = [one for one in _lists(loop) if len(one) > 3]
    every = [x for one in lists for x in one]
    if len(lists) < 8:
        return {}
    share = [count / len(every) for count in Counter(every).values()]
    size = sum(map(len, lists)) / len(lists)
    expected = sum(1 - (1 - p) ** size for p in share)
    seen = sum(len(set(one)) for one in lists) / len(lists)
    return {"batch_classes": {"seen": seen, "expected": expected}}


def _epochs(loop: probe.Loop) -> dict[str, Any]:
    """Whether two epochs that should differ begin with the same labels."""
    found: dict[str, Any] = {}
    known = [e for e in loop.sampler_epochs if e is not None]
    found["epochs_seen"] = len(loop.epochs)
    if len(loop.epochs) > 2 and len(known) == len(loop.sampler_epochs) and len(set(known)) == 1:
        found["set_epoch_missing"] = bool(getattr(loop.thing.sampler, "shuffle", True))
    lists, starts = _lists(loop), [e for e in loop.epochs if e + COMPARED <= len(loop.labels)]
    if _shuffles(loop) and len(starts) > 1 and lists:
        first, second = (lists[e : e + COMPARED] for e in starts[:2])
        labels = [x for one in first for x in one]
        found["epochs_equal"] = first == second and len(set(labels)) > 3
        found["epoch_labels"] = len(labels)
    return found


def _ranks(loop: probe.Loop) -> dict[str, Any]:
    """What this rank took first, for the doctor to compare: indices as loaders.py has noted them, or else labels."""
    if int(os.environ.get("WORLD_SIZE", 1)) < 2:
        return {}
    indices = getattr(getattr(loop.thing, "_index_sampler", None), "_doctor_taken", None)
    what, batches = ("indices", indices) if indices else ("labels", _lists(loop)[:16])
    return {"taken": {"what": what, "batches": batches}}


def _padded(loop: probe.Loop) -> dict[str, Any]:
    """Samples that the samplers of other loaders repeat, so that all ranks have as many."""
    samplers: list[Any] = [getattr(other.thing, "sampler", None) for other in probe.loops if other is not loop]
    padded = [
        (s.total_size - len(s.dataset), len(s.dataset))
        for s in samplers
        if hasattr(s, "total_size") and hasattr(s, "dataset") and not getattr(s, "drop_last", False)
    ]
    return dict(zip(("eval_padded", "eval_samples"), max(padded), strict=True)) if padded else {}


def _workers(loop: probe.Loop) -> dict[str, Any]:
    """Whether all workers of this rank began their epochs with the same random numbers; see loaders.py."""
    folder, count = probe.plan.get("out"), int(getattr(loop.thing, "num_workers", 0) or 0)
    if not folder or count < 2:
        return {}
    words = [name.split("-")[1:] for name in os.listdir(folder) if name.startswith("worker-")]
    states: dict[str, list[set[str]]] = {}
    for rank, worker, _, *generators in words:
        if rank == os.environ.get("RANK", "0"):
            for seen, state in zip(states.setdefault(worker, [set(), set()]), generators, strict=True):
                seen.add(state)
    if len(states) < count:
        return {}
    equal = any(all(seen == first for seen in rest) for first, *rest in zip(*states.values(), strict=True))
    return {"worker_seeds_equal": equal, "workers_compared": len(states)}
