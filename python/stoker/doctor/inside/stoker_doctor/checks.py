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
        lists.append([int(x) for x in labels.tolist()])
    return lists


def _shuffles(loop: probe.Loop) -> bool:
    return "Random" in type(getattr(loop.thing, "sampler", None)).__name__


def _shuffle(loop: probe.Loop) -> dict[str, Any]:
    """Classes in a batch, and how many there would be if the samples seen came in a random order."""
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
    if len(loop.epochs) > 2 and len(known) == len(loop.sampler_epochs) and len(set(known)) == 1:
        found["set_epoch_missing"] = bool(getattr(loop.thing.sampler, "shuffle", True))
    lists, starts = _lists(loop), [e for e in loop.epochs if e + COMPARED <= len(loop.labels)]
    if _shuffles(loop) and len(starts) > 1 and lists:
        first, second = (lists[e : e + COMPARED] for e in starts[:2])
        found["epochs_equal"] = first == second and len({x for one in first for x in one}) > 3
    return found


def _ranks(loop: probe.Loop) -> dict[str, Any]:
    """Whether every rank goes through the whole dataset."""
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    dataset: Any = getattr(loop.thing, "dataset", None)
    if ranks < 2 or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        return {}
    each = len(loop.thing) * max(loop.sizes or [1])
    return {"rank_duplicates": 1 - 1 / ranks if each >= 0.9 * len(dataset) and each > 1 else 0.0}


def _padded(loop: probe.Loop) -> dict[str, Any]:
    """Samples that the samplers of other loaders repeat, so that all ranks have as many."""
    samplers: list[Any] = [getattr(other.thing, "sampler", None) for other in probe.loops if other is not loop]
    padded = [
        s.total_size - len(s.dataset)
        for s in samplers
        if hasattr(s, "total_size") and hasattr(s, "dataset") and not getattr(s, "drop_last", False)
    ]
    return {"eval_padded": max(padded)} if padded else {}


def _workers(loop: probe.Loop) -> dict[str, Any]:
    """Whether all workers began with the same random numbers; see loaders.py."""
    folder = probe.plan.get("out")
    found = [name.split("-")[2:] for name in os.listdir(folder) if name.startswith("worker-")] if folder else []
    if len(found) < 2:
        return {}
    return {"worker_seeds_equal": any(len({words[i] for words in found}) == 1 for i in range(2))}
