# SPDX-License-Identifier: Apache-2.0
"""The experiments in their order: as it is, the model alone, the loader alone, then the what-ifs for the verdict."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._types import counted
from . import edits, machine, runner
from .facts import AS_IS, COLD, LOADER, MODEL, Facts, Measurement, number, reads_disk, run_of, section
from .remedies import IN_TENSORFLOW, label, remedy
from .verdict import is_doubtful, is_put_off, judge, wanted

SHARES = {AS_IS: 0.2, MODEL: 0.09, LOADER: 0.09, "what-if": 0.13}  # of the seconds for all
FEW_STEPS = 3  # minimum for a measurement
MOST_WHAT_IFS = 4
LARGE_GAIN = 4.0  # after which no other cause is looked for

Progress = Callable[[str, float, Any], None]  # the name of a run, its seconds so far, and its result at the end


@dataclass
class Options:
    command: list[str]  # what is started
    shown: list[str]  # what the user typed
    seconds: float = 60.0
    steps: int | None = None
    tries: list[str] | None = None  # names; ["all"]; None: what the verdict needs
    scratch: Path = field(default_factory=lambda: Path("."))
    progress: Progress = lambda name, seconds, run: None
    warn: Callable[[str], None] = lambda words: None


class Examination:
    """The document while it grows."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.begun = time.perf_counter()
        self.imports = 0.0  # seconds that the script takes until its first batch
        self.slowness = 1.0  # how many times as long as planned a run takes, because its steps are long
        self.target: int | None = None
        self.updates = 0.0  # of the optimizer, in the script as it is
        self.fast: list[int] = []  # samples that are not slow
        self.stderr = ""  # of the script as it is
        self.interrupted = False  # the last run was, and it had measured enough
        self.document: Measurement = {
            "schema": "stoker-doctor/1",
            "form": "script",
            "command": options.shown,
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "machine": {},
            "framework": None,
            "loader": {},
            "runs": [],
            "stages": None,
            "slowest": [],
            "checks": {},
            "disabled": [],
            "overhead": {},
        }

    # ---------------------------------------------------------------- runs

    def run(self, name: str, kind: str, mode: str, **plan: Any) -> dict[str, Any]:
        """Runs the command once, and adds the result to the document."""
        self.stop_if_interrupted()
        share = SHARES.get(name, SHARES["what-if"])
        seconds = max(1.0, share * self.options.seconds)
        limit = seconds * 2.5 + max(30.0, 2 * self.imports) if self.imports else seconds * 2.5 + runner.PATIENCE + 30
        plan = {"name": name, "mode": mode, "seconds": seconds, "steps": self.options.steps, **plan}
        if self.target is not None:
            loader = self.document["loader"]
            plan.update(target=self.target, loader={name: loader.get(name) for name in ("at", "shape")})
        result = runner.run(
            self._command(name),
            plan,
            self.options.scratch / "run",
            limit,
            lambda passed: self.options.progress(name, passed, None),
        )
        run = self._as_run(name, kind, result)
        if result.interrupted and run["status"] != "ok":
            raise KeyboardInterrupt
        self.interrupted = result.interrupted
        self.document["runs"].append(run)
        self.document["seconds"] = time.perf_counter() - self.begun
        self.last = result
        self.options.progress(name, result.seconds, run)
        return run

    def stop_if_interrupted(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt

    def _command(self, name: str) -> list[str]:
        prefix = ["numactl", "--cpunodebind=0", "--membind=0"] if name == "numa" else []
        return [*prefix, *self.options.command]

    def _as_run(self, name: str, kind: str, result: runner.Result) -> dict[str, Any]:
        record = result.record
        numbers: dict[str, Any] = dict(record.get("run") or {})
        status = "ok" if result.status == "ended" and number(numbers, "steps") >= FEW_STEPS else result.status
        imports = max(0.0, number(record, "first") - result.begun) if record.get("first") else None
        run = {"name": name, "kind": kind, "status": status, "reason": result.reason, **numbers, "imports_s": imports}
        if status == "ended":
            run["status"], run["reason"] = "failed", few_words(numbers, result)
        window = numbers.get("window") or [0.0, 0.0]
        run.update(result.history.summary(window[0], window[1], record.get("pid")))
        run.pop("window", None)
        if "cpu" in run:
            run["cpu"]["gil"] = run.pop("host_share", None)
        self._add_extra(run, section(record, "extra"))
        if len(result.records) > 1:
            run["ranks"] = [rank_of(r) for r in result.records]
            run["samples_per_s"] = sum(number(r.get("run"), "samples_per_s") for r in result.records)
        if kind == "what-if":
            if run["status"] == "ok" and not section(record, "extra").get("applied"):
                run["status"], run["reason"] = "failed", not_applied(section(record, "extra"))
            elif (
                run["status"] == "ok" and name.startswith("without=") and self.updates and not number(record, "updates")
            ):
                run["status"], run["reason"] = "failed", "without it, the script does not train"
            tensorflow = IN_TENSORFLOW if self.document["framework"] == "tensorflow" else {}
            run["change"] = tensorflow.get(name) or remedy(name).advice
            run["diff"] = edits.diff(self.document, name)
        if run.get("inference"):  # nothing of its training was changed
            run = {key: run[key] for key in ("name", "kind", "status", "reason", "inference", "change", "diff")}
        return run

    def _add_extra(self, run: dict[str, Any], extra: dict[str, Any]) -> None:
        """What only some runs know: copies, reads and kernels of a device, and whether results are the same."""
        for name in ("copies", "syncs", "same_result", "compared", "explain", "parameters", "jitted", "inference"):
            if name in extra:
                run[name] = extra[name]
        gpu = {**section(extra, "gpu"), **{f"memory_{k}": v for k, v in section(extra, "gpu_memory").items()}}
        if gpu:
            run["gpu"] = {**section(run, "gpu"), **gpu}
            base = next((r for r in self.document["runs"] if r["name"] == AS_IS), None)
            if run["name"] == MODEL and base and number(gpu, "kernel_ms"):
                busy = number(gpu, "kernel_ms") / max(1e-9, number(base, "step_ms", "median"))
                base["gpu"] = {**section(base, "gpu"), "kernels": gpu["kernels"], "busy": min(1.0, busy)}

    def _fill_waiting(self, run: dict[str, Any]) -> None:
        """Estimates waiting as step time minus model time, where the host cannot time it."""
        model = run_of(self.document, MODEL)
        hidden = run.get("in_graph")
        if not model or not (hidden or (run["name"] == AS_IS and self.document["framework"] == "jax")):
            return
        mean = number(run, "step_ms", "mean")
        most = max(0.0, mean - number(model, "step_ms", "mean"))
        wait = most if hidden else min(number(run, "wait_ms", "mean"), most)
        run["compute_ms"]["mean"] = max(0.0, number(run, "compute_ms", "mean") + number(run, "wait_ms", "mean") - wait)
        run["wait_ms"]["mean"], run["wait_share"] = wait, wait / mean if mean else 0.0
        for step in run["timeline"] if hidden else []:
            more = min(step["compute"], wait)
            step["compute"], step["wait"] = step["compute"] - more, step["wait"] + more

    # ---------------------------------------------------------------- experiments

    def as_is(self) -> bool:
        """The script as it is; False if nothing can be measured."""
        run = self.run(AS_IS, "baseline", "as-is")
        record = self.last.record
        self.stderr = self.last.stderr
        self.target = record.get("target")
        self.updates = number(record, "updates")
        self.document["loader"] = record.get("loader") or {}
        self.document["framework"] = record.get("framework")
        watching = self.last.history.taken / max(1e-3, self.last.seconds)
        self.document["overhead"] = {**run.pop("overhead", {}), "watching": watching}
        self.document["disabled"] = record.get("disabled") or []
        taken = [section(section(r, "checks"), "taken") for r in self.last.records]
        checks = {key: value for key, value in section(record, "checks").items() if key != "taken"}
        self.document["checks"] = {**checks, **duplicates(taken)}
        extra = section(record, "extra")
        self.imports = max(1.0, number(run, "imports_s"))
        planned = SHARES[AS_IS] * self.options.seconds
        self.slowness = max(1.0, (self.last.seconds - self.imports) / planned)
        self.document["machine"] = machine.describe(extra.get("gpus") or [], extra.get("versions") or {}, None)
        written = [f"writes {path}" for path in self.last.left]
        written += [f"it or another program made {path}" for path in self.last.new]
        self.document["not_disabled"] = list(dict.fromkeys([*(extra.get("not_caught") or []), *written]))
        if extra.get("stuck"):
            self.stderr += "\n" + str(extra["stuck"])
        return bool(run["status"] == "ok")

    def ceilings(self) -> None:
        self.run(MODEL, "ceiling", "model")
        base = self.document["runs"][0]
        self._fill_waiting(base)
        if base.get("ranks"):
            alone = self.what_if("local-gradients")
            if alone["status"] == "ok":
                more = number(base, "step_ms", "mean") - number(alone, "step_ms", "mean")
                base["comm_ms"] = {"mean": max(0.0, more)}
        # Samples that the script has read from storage are in memory now; the ceiling is without storage.
        again = {"steps": int(number(base, "steps"))} if reads_disk(base, self.document["loader"]) else {}
        self.run(LOADER, "ceiling", "loader", **again)
        extra = section(self.last.record, "extra")
        self.document["stages"] = extra.get("stages")
        self.document["slowest"] = extra.get("slowest") or []
        self.fast = extra.get("fast") or []
        for name in ("samples_ms", "stages_failed"):
            if extra.get(name):
                self.document[name] = extra[name]
        for name in ("exif_ignored", "exif_files"):
            if name in extra:
                self.document["checks"][name] = extra[name]
        for name in ("image", "bytes"):
            if extra.get(name):
                self.document["loader"][name] = extra[name]
        facts = Facts(self.document, self.document["runs"][0])
        cold = (facts.reads_disk and not facts.reads_little) or self.options.tries == ["all"]
        if cold and self.document["loader"].get("bytes"):  # its files are known
            self.run(COLD, "ceiling", "loader", cold=True)
        if self.document["slowest"]:
            path = self.document["slowest"][0].get("path")
            self.document["machine"]["storage"] = machine.storage(path)

    def what_if(self, name: str) -> dict[str, Any]:
        image = self.document["loader"].get("image")
        disk = reads_disk(self.document["runs"][0], self.document["loader"])
        run = self.run(name, "what-if", "what-if", what_if=name, fast=self.fast, image=image, reads_disk=disk)
        if run["status"] == "ok":
            self._fill_waiting(run)
        return run

    def what_ifs(self) -> None:
        """Those that the verdict needs, then those that the user asked for."""
        asked = self.options.tries or []
        every = asked == ["all"]
        self._search(every)
        if is_doubtful(self.document):
            self._as_is_again()
            if not self._is_settled() and not self._is_late():
                self._search(every)
        for name in asked:
            if name != "all" and name not in {run["name"] for run in self.document["runs"]}:
                self.what_if(name)

    def _search(self, every: bool) -> None:
        for i in range(100 if every else MOST_WHAT_IFS):
            names = wanted(self.document, all=every)
            if not names or (i and not every and self._is_late()):
                break
            self.what_if(names[0])
            if not every and self._is_settled():
                break

    def _as_is_again(self) -> None:
        """Measures the script as it is once more. The faster run counts, or the one with the data in memory."""
        other = self.run(AS_IS, "baseline", "as-is", seconds=SHARES["what-if"] * self.options.seconds)
        runs, loader = self.document["runs"], self.document["loader"]
        runs.pop()
        warmer = reads_disk(runs[0], loader) and not reads_disk(other, loader)
        if other["status"] == "ok" and (warmer or other["samples_per_s"] > runs[0]["samples_per_s"]):
            self._fill_waiting(other)
            if gpu := {**section(runs[0], "gpu"), **section(other, "gpu")}:  # other runs have added to both of these
                other["gpu"] = gpu
            other.update({name: runs[0][name] for name in ("comm_ms",) if name in runs[0]})
            other, runs[0] = runs[0], other
        self.document["as_is_again"] = number(other, "samples_per_s")

    def _is_late(self) -> bool:
        passed = time.perf_counter() - self.begun - self.imports * len(self.document["runs"])
        return passed + self.slowness * SHARES["what-if"] * self.options.seconds > self.options.seconds

    def _is_settled(self) -> bool:
        """Whether a proved gain is large enough to stop, or close to the model's ceiling."""
        found = judge(self.document)["verdict"]
        if not found:
            return False
        rate = {run["name"]: number(run, "samples_per_s") for run in self.document["runs"]}
        ceiling = rate.get(MODEL) or float("inf")  # unknown if that run failed
        if (found["gain"] or 0.0) >= LARGE_GAIN:
            return True
        return rate.get(found["run"], 0.0) >= 0.8 * ceiling and not is_put_off(self.document, found["id"])

    def all(self) -> Measurement:
        """Everything. Interrupted, the document has what is known so far."""
        is_measured = self.as_is()
        if self.document["not_disabled"]:
            self.options.warn(f"cannot be disabled in later runs: {'; '.join(self.document['not_disabled'])}")
        if is_measured:
            self.ceilings()
        if is_measured or wanted(self.document):  # else a failure that a what-if explains
            self.what_ifs()
        self.stop_if_interrupted()
        return self.judged()

    def judged(self) -> Measurement:
        self.document["seconds"] = round(time.perf_counter() - self.begun, 1)
        return judge(self.document)


def not_applied(extra: dict[str, Any]) -> str:
    """Why a what-if changed nothing."""
    errors = extra.get("hooks") or []
    return str(
        extra.get("not_possible") or (errors[-1] if errors else "not supported for this script's loader or framework")
    )


def few_words(numbers: dict[str, Any], result: runner.Result) -> str:
    """Why a run that ended by itself was too short."""
    steps = int(number(numbers, "steps"))
    if result.reason:
        return f"{result.reason}; mark its loop: for batch in stoker.watch(loader)"
    return (
        f"it ended after {result.seconds:.0f} s and {counted(steps, 'measured step')}, which is too few; "
        "give it more epochs or more data"
    )


LABELS = 32  # so many equal labels in the same order, of 4 classes or more, are no coincidence


def duplicates(taken: list[dict[str, Any]]) -> dict[str, Any]:
    """The part of the first samples that another rank takes at the same time; empty if that is not known."""
    what = {one.get("what") for one in taken}
    count = min((len(one.get("batches") or []) for one in taken), default=0)
    if len(taken) < 2 or len(what) != 1 or not count:
        return {}
    each = [one["batches"][:count] for one in taken]
    if "indices" in what:
        shares = []
        for step in zip(*each, strict=True):
            often = Counter(index for batch in step for index in set(batch))
            shares += [sum(often[index] > 1 for index in batch) / len(batch) for batch in step if batch]
    else:
        flat = [[label for batch in one for label in batch] for one in each]
        if any(len(one) < LABELS or len(set(one)) < 4 for one in flat):
            return {}
        shares = [float(flat.count(one) > 1) for one in flat]
    share = sum(shares) / len(shares) if shares else 0.0
    return {"rank_duplicates": share, "rank_compared": what.pop(), "rank_batches": count}


def rank_of(record: dict[str, Any]) -> dict[str, Any]:
    run = record.get("run") or {}
    return {
        "rank": record.get("rank"),
        "step_ms": number(run, "step_ms", "median"),
        "wait_share": number(run, "wait_share"),
    }


def progress_words(name: str, run: dict[str, Any] | None) -> str:
    """A run in a line."""
    if run is None:
        return label(name)
    if run.get("status") != "ok":
        return f"{label(name)}: {run.get('reason') or run.get('status')}"
    if run.get("inference"):
        return f"{label(name)}: measured"
    return f"{label(name)}: {number(run, 'samples_per_s'):,.0f} samples/s"
