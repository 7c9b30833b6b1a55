# SPDX-License-Identifier: Apache-2.0
"""From a measurement to one verdict. Pure functions: nothing is read, run or printed here.

A cause is a verdict only if a what-if that removes it was run and made the script faster by more than the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._types import counted
from .alarms import alarms
from .causes import RULES, Rule, Suspicion
from .facts import (
    AS_IS,
    BY_STOKER,
    DISTURBED,
    LOADER,
    MODEL,
    NO_STALLS,
    STEADY_STEPS,
    Facts,
    Measurement,
    Run,
    gain_of,
    items,
    noise,
    number,
    run_of,
    section,
)
from .remedies import REMEDIES, remedy

NEAR = 0.9  # causes within this ratio of the largest gain are explained equally well


@dataclass
class Proven:
    rule: Rule
    found: Suspicion
    run: str
    gain: float | None


def gain_text(gain: float) -> str:
    """
    >>> gain_text(1.337), gain_text(2.31), gain_text(18.2)
    ('1.34x', '2.3x', '18x')
    """
    return f"{gain:.2f}x" if gain < 2 else f"{gain:.2g}x" if gain < 10 else f"{gain:.0f}x"


def _as_is(m: Measurement) -> Run | None:
    """The baseline, also a failed one."""
    return next((run for run in items(m, "runs") if run.get("name") == AS_IS), None)


def suspicions(m: Measurement, run: Run) -> list[tuple[Rule, Suspicion]]:
    """All that may be wrong with a run; of a failed run, only what explains the failure."""
    facts = Facts(m, run)
    rules = RULES if run.get("status", "ok") == "ok" else RULES[:1]
    return [(rule, found) for rule in rules if (found := rule.find(facts))]


IN_MEMORY = ("fetch",)  # repeats samples that it keeps, which is what it tries


def doubt(m: Measurement, run: Run) -> str:
    """Why the gain of a what-if proves nothing; empty if it does."""
    base = _as_is(m)
    if run.get("kind") != "what-if" or base is None:
        return ""
    if run.get("same_result") is False:
        return "its results differ"
    if has_nan(run) and not has_nan(base):
        return "the loss is NaN"
    before, after = losses(base), losses(run)[-5:]
    if len(before) >= 5 and len(after) >= 5 and sum(after) / 5 > 2 * max(map(abs, before)):
        return "the loss grows"
    facts, read = Facts(m, base), section(run, "io").get("read_bytes")
    cold = facts.reads_disk and not facts.reads_little and run.get("name") not in IN_MEMORY
    if cold and read is not None and read < 0.1 * number(base, "io", "read_bytes"):
        return IN_MEMORY_NOW
    return ""


def has_nan(run: Run) -> bool:
    return any(x is None or x != x for x in run.get("loss") or [])  # JSON has null for NaN


def losses(run: Run) -> list[float]:
    return [x for x in run.get("loss") or [] if isinstance(x, int | float) and x == x]


def is_not_compared(run: Run) -> bool:
    """Whether the batches of a what-if could not be compared with those of the script."""
    return bool(run.get("compared")) and run.get("same_result") is None


def _proof(m: Measurement, found: Suspicion, least: float) -> tuple[str, float | None] | None:
    """The run that gained most of those that prove a suspicion; an earlier one if it gains nearly as much."""
    base = _as_is(m)
    if found.proof:
        return found.proof if found.proof[1] >= least else None
    done = [(name, run) for name in found.tries if (run := run_of(m, name)) and not doubt(m, run)]
    if base is not None and base.get("status", "ok") != "ok":
        return (done[0][0], None) if done else None
    gains = [(name, gain) for name, run in done if (gain := gain_of(m, run)) >= max(least, 1 + _doubtful(m, run))]
    most = max((gain for _, gain in gains), default=0.0)
    if (test := run_of(m, found.test)) and not doubt(m, test) and found.test not in dict(gains):
        return None
    return next(((name, gain) for name, gain in gains if gain >= NEAR * most), None)


def _doubtful(m: Measurement, run: Run) -> float:
    """How much a what-if may gain by accident."""
    base = _as_is(m)
    return max(disturbed(m, run), 3 * math.hypot(noise([base] if base else []), noise([run])))


def disturbed(m: Measurement, run: Run) -> float:
    """The part of the CPUs that other programs used during this run or the baseline; 0 if it is small."""
    if run.get("name") in NO_STALLS:  # whose gain is a share of the time in each of them
        return 0.0
    most = max(Facts(m, one).others for one in (run, _as_is(m) or run))
    return most if most >= DISTURBED else 0.0


def _proven(m: Measurement, run: Run) -> list[Proven]:
    found = []
    for rule, suspicion in suspicions(m, run):
        if proof := _proof(m, suspicion, rule.least):
            found.append(Proven(rule, suspicion, *proof))
    return found


def _confidence(m: Measurement, run: Run, gain: float | None) -> str:
    """Low: few steps, or other batches perhaps. Medium: a small gain, or more than what the model alone can reach."""
    steps = min(number(run, "steps"), number(_as_is(m), "steps"))
    if is_not_compared(run):
        return "low"
    if gain is None:
        return "medium"
    if steps < STEADY_STEPS / 2 or disturbed(m, run):
        return "low"
    ceiling, rate = number(run_of(m, MODEL), "samples_per_s"), number(_as_is(m), "samples_per_s")
    too_much = ceiling and rate and run.get("name") in LOADER_SIDE and gain > 1.1 * ceiling / rate
    noisy = gain - 1 < 6 * noise([run, *(r for r in [_as_is(m)] if r)])
    return "medium" if steps < STEADY_STEPS or gain < 1.15 or too_much or noisy else "high"


LOADER_SIDE = (*BY_STOKER, "resize", "collate", "fetch", "persistent")
IN_MEMORY_NOW = "it found the data in memory, and the script reads them from storage"


def is_doubtful(m: Measurement) -> bool:
    """Whether the script as it is should be measured again: it was slowed down meanwhile, or read from storage what a
    what-if found in memory."""
    base, found = _as_is(m), judge(m)["verdict"]
    if base is None or base.get("status", "ok") != "ok":
        return False
    if found is None:
        return any(doubt(m, run) == IN_MEMORY_NOW for run in items(m, "runs"))
    run, gain = run_of(m, str(found["run"])), found["gain"] or 0.0
    if run is None or run.get("kind") != "what-if":
        return False
    return bool(disturbed(m, run)) or gain > 1.15 * _most(m, Facts(m, base), found)


def _most(m: Measurement, facts: Facts, found: dict[str, Any]) -> float:
    """The largest gain that removing a cause can give, where that is known."""
    if found["id"] == "optimizer":
        share = next((one.share for rule, one in suspicions(m, facts.run) if rule.id == "optimizer"), 1.0)
    elif found["run"] in LOADER_SIDE:
        share = max(facts.wait, 1 - facts.rate / facts.rate_of(MODEL) if facts.rate_of(MODEL) else 1.0)
    else:
        return math.inf
    return 1 / (1 - share) if share < 1 else math.inf


def _effect(proven: Proven) -> str:
    """What the what-if showed, to follow the cause."""
    if proven.gain is None:
        return f"with {remedy(proven.run).label}, the script runs"
    gain = gain_text(proven.gain)
    if proven.rule.id == "cold":
        return f"after it, training is {gain} as fast"
    word = remedy(proven.run).label
    if proven.run.startswith("without="):
        return f"without it, training is {gain} as fast"
    return f"with {word}, training is {gain} as fast"


ADVICE = {  # where the change is not what was tried
    "cold": "change nothing, or pack the data: stoker pack DATA packed/",
    "ranks": "look at the disk, the CPUs and the data of that rank, or make its loader faster",
}


def _verdict(m: Measurement, proven: Proven) -> dict[str, Any]:
    run = run_of(m, proven.run) or {}
    advice = ADVICE.get(proven.rule.id)
    gain = proven.gain
    return {
        "number": proven.rule.number,
        "id": proven.rule.id,
        "title": f"{proven.found.title}; {_effect(proven)}.",
        "evidence": proven.found.evidence,
        "confidence": _confidence(m, run, gain),
        "change": advice or run.get("change") or remedy(proven.run).advice,
        "diff": run.get("diff"),
        "gain": None if gain is None else round(gain, 3),
        "run": proven.run,
    }


def _next(m: Measurement, first: Proven) -> dict[str, Any] | None:
    """What limits the run that proves the verdict; a gain is given only where a what-if measured it."""
    run = run_of(m, first.run)
    if run is None or first.run == LOADER or not number(run, "samples_per_s"):
        return None
    ceiling = number(run_of(m, MODEL), "samples_per_s")
    found = [(rule, one) for rule, one in suspicions(m, run) if rule.id != first.rule.id]
    if ceiling and number(run, "samples_per_s") >= 0.85 * ceiling:
        found = [(rule, one) for rule, one in found if rule.id in ("model", "launch-bound", "gil", "host-sync")]
    elif ceiling:
        found = [(rule, one) for rule, one in found if rule.id != "model"]
    if not found:
        return None
    rule, one = max(found, key=lambda pair: pair[1].share)
    if one.share < 0.05:
        return None
    return {
        "number": rule.number,
        "id": rule.id,
        "title": f"Then: {one.title}.",
        "evidence": one.evidence,
        "confidence": "low",
        "change": remedy(one.tries[0]).advice if one.tries else None,
        "diff": None,
        "gain": None,
        "run": None,
    }


def _refuted(m: Measurement, found: Suspicion, least: float) -> bool:
    """Whether the what-ifs that ran refute a suspicion: its test gained nothing, or none of them gained anything."""
    if found.beyond:
        return False
    names = [found.test] if run_of(m, found.test) else found.tries
    return all((run := run_of(m, name)) and gain_of(m, run) < least and not _waits_less(m, run) for name in names)


def _waits_less(m: Measurement, run: Run) -> bool:
    """Whether a what-if halves waiting. While other programs use the CPUs, its gain may not show that it helps."""
    before = number(_as_is(m), "wait_share")
    return bool(disturbed(m, run)) and before >= 0.1 and number(run, "wait_share") <= 0.5 * before


def _suspicion(m: Measurement, base: Run) -> dict[str, Any] | None:
    """The largest cause that was neither proved nor refuted, except the model itself."""
    facts = Facts(m, base)
    least = 0.1 if facts.waits or facts.starting_share >= 0.05 else 0.2  # of the time
    found = [
        (rule, one)
        for rule, one in suspicions(m, base)
        if rule.id != "model" and one.share >= least and not _refuted(m, one, rule.least)
    ]
    if not found:
        return None
    rule, one = _in_order(found)[0]
    done = {run.get("name") for run in items(m, "runs")}
    left = [name for name in [*one.tries, *one.asked] if name not in done]
    return {
        "number": rule.number,
        "id": rule.id,
        "title": f"Suspected, not proved: {one.title}.",
        "evidence": one.evidence,
        "change": one.beyond or remedy(one.test or (left or one.tries)[0]).advice,
        "tries": left,
    }


def judge(m: Measurement) -> Measurement:
    """The measurement with `verdict` (the largest cause that was proved, or None), `next`, `suspicion` and `alarms`."""
    base = _as_is(m)
    result = {**m, "verdict": None, "next": None, "suspicion": None, "alarms": alarms(m)}
    proven = _proven(m, base) if base else []
    if proven:
        most = max(p.gain or 1e30 for p in proven)
        first = next(p for p in proven if (p.gain or 1e30) >= NEAR * most)
        result["verdict"], result["next"] = _verdict(m, first), _next(m, first)
    elif base and base.get("status", "ok") == "ok":
        result["suspicion"] = _suspicion(m, base)
    return result


WORTH_TRYING_FIRST = 0.05  # of the time


def _in_order(found: list[tuple[Rule, Suspicion]]) -> list[tuple[Rule, Suspicion]]:
    """Sorts by share. Causes that were measured come before those that are inferred from the remaining time."""

    def key(pair: tuple[Rule, Suspicion]) -> tuple[float, bool, float]:
        rule, one = pair
        inferred = [other.share for _, other in found if rule.id in other.after and one.share >= WORTH_TRYING_FIRST]
        return -max([one.share, *inferred]), bool(one.after), -one.share

    return sorted(found, key=key)


def is_put_off(m: Measurement, verdict: str) -> bool:
    """Whether a larger cause was deferred in favour of this verdict, and is still untried."""
    base = _as_is(m)
    found = suspicions(m, base) if base else []
    share = max((one.share for rule, one in found if rule.id == verdict), default=1.0)
    done = {run.get("name") for run in items(m, "runs")}
    return any(verdict in one.after and one.share > share and done.isdisjoint(one.tries) for _, one in found)


def wanted(m: Measurement, all: bool = False) -> list[str]:
    """What-ifs worth running, the most promising first: the first choice of every suspicion, then the second, ...

    With `all`, also every other one that the machine and the loader allow.
    """
    base = _as_is(m)
    if base is None:
        return []
    found = _in_order(suspicions(m, base))
    depth = max((len(one.tries) for _, one in found), default=0)
    names = [one.tries[i] for i in range(depth) for _, one in found if i < len(one.tries)]
    if all:
        names += _applicable(m, Facts(m, base))
    done = {run.get("name") for run in items(m, "runs")}
    return [name for name in dict.fromkeys(names) if name not in done]


GPU_ONLY = ("pin", "device", "tf32", "cudnn-benchmark", "amp-fp16", "no-sync", "cuda-graphs")
ON_SUSPICION = (
    "collate",
    "next-epoch",
    "skip-slowest",
    "numa",
    "fetch",
    "no-evaluation",
    "no-checkpoint",
    "fixed-shapes",
)
ON_RANKS = ("local-gradients",)
OF_TORCH_LOADER = "stoker threads=1 persistent pin device cache pack draft resize batch*2 batch/2".split()
OF_FRAMEWORK: dict[str, Sequence[str]] = {
    "tensorflow": ("parallel", "amp-bf16", "amp-fp16", "compile"),
    "jax": ("jit",),
}


def _applicable(m: Measurement, facts: Facts) -> list[str]:
    of_torch = facts.loader.get("kind") == "torch.DataLoader"
    torch = [name for name in REMEDIES if name not in ("parallel", "jit")]
    names = [
        name
        for name in OF_FRAMEWORK.get(str(m.get("framework")), torch)
        if name not in ON_SUSPICION
        and (of_torch or name not in OF_TORCH_LOADER)
        and (facts.has_gpu or name not in GPU_ONLY)
        and (items(facts.run, "ranks") or name not in ON_RANKS)
    ]
    if of_torch:
        names.insert(1, f"workers={facts.more_workers()}")
    return names


def healthy_words(m: Measurement) -> str:
    """Why there is no verdict, in a sentence."""
    base = _as_is(m)
    if base is None:
        return "Nothing was measured."
    if base.get("status", "ok") != "ok":
        reason = str(base.get("reason") or "no reason is known").rstrip(".")
        status = "cannot be measured" if reason.startswith(("it ended", "it took no batch")) else base.get("status")
        return f"The script {status}: {reason}."
    facts = Facts(m, base)
    if m.get("interrupted"):
        return (
            f"Interrupted, and nothing was proved so far. Waiting for data takes {100 * facts.wait:.1f} % of the time."
        )
    if not facts.waits:
        largest = {"compute": "the model", "host": "Python code of the script", "copy": "copies to the device"}
        part = max(largest, key=facts.ms)
        limit = f"; the limit is {largest[part]}" if facts.ms(part) else ""
        start = "Waiting" if m.get("suspicion") else "Nothing to gain here: waiting"
        return f"{start} for data takes {100 * facts.wait:.1f} % of the time{limit}."
    tried = [run for run in items(m, "runs") if run.get("kind") == "what-if" and run.get("status", "ok") == "ok"]
    best = max((gain_of(m, run) for run in tried if not doubt(m, run)), default=0.0)
    words = f"Waiting for data takes {100 * facts.wait:.0f} % of the time"
    if not tried and m.get("form") == "here":
        return f"{words}."
    more = f": {counted(len(tried), 'what-if')} ran, and the best gives {gain_text(best)}" if best else ""
    loader, model = facts.rate_of(LOADER), facts.rate_of(MODEL)
    limit = f" The loader alone delivers {loader:,.0f} samples/s, and the model alone takes {model:,.0f}."
    return f"{words}, but no change was proved to help{more}.{limit if 0 < loader < 0.9 * model else ''}"
