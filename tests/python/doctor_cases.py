# SPDX-License-Identifier: Apache-2.0
"""Measurements as the doctor records them, one per verdict, and healthy ones.

The base is a real run of a torchvision ImageFolder script on two cores, rounded. A case changes what its cause changes.
"""

from __future__ import annotations

import copy
from typing import Any

DIFF = """--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 import torch
-from torch.utils.data import DataLoader
+from stoker import DataLoader
 from torchvision import datasets, transforms
"""


def run(name: str, rate: float, *, batch: int = 32, steps: int = 60, kind: str = "what-if", **more: Any) -> dict:
    """A run of `rate` samples per second; parts of a step in ms are wait, copy, compute and host (the rest)."""
    step = 1e3 * batch / rate
    parts = {part: more.pop(part, 0.0) for part in ("wait", "copy", "compute")}
    parts["host"] = more.pop("host", max(0.0, step - sum(parts.values())))
    result = {
        "name": name,
        "kind": kind,
        "status": "ok",
        "reason": None,
        "steps": steps,
        "samples_per_s": rate,
        "step_ms": {"median": step, "p10": 0.97 * step, "p90": 1.03 * step},
        "wait_share": parts["wait"] / step,
        "first_batch_s": 0.2,
        "epochs": [{"start_s": 0.0, "first_wait_s": 0.2, "steps": steps}],
        "timeline": [{"t": i * step / 1e3, **parts} for i in range(min(steps, 200))],
        "loss": [2.3 - 0.01 * i for i in range(steps)],
        "cpu": {"main": 1.0, "workers": 0.9, "all": 1.9, "throttled_s": 0.0, "gil": 0.3, "threads": 4},
        "io": {"read_bytes": 0, "read_calls": 0, "major_faults": 0, "blocked_s": 0.0},
        "memory": {"rss": [[i / 2, 6e8] for i in range(20)], "growth": 0},
        "gpu": None,
        "syncs": [],
        "stalls": [],
        "ranks": None,
        "gain": None,
        "change": None,
        "diff": None,
        "same_result": True,
    }
    for part, ms in parts.items():
        result[f"{part}_ms"] = {"median": ms, "mean": ms, "p90": 1.2 * ms}
    return {**result, **more}


def measurement(*runs: dict, **more: Any) -> dict:
    """A measurement of these runs; `more` replaces whole sections, and `machine` and `loader` are merged."""
    result = {
        "schema": "stoker-doctor/1",
        "command": ["train.py", "--lr", "0.1"],
        "started": "2026-11-16T20:00:00+00:00",
        "seconds": 41.5,
        "machine": {
            "cpus": 2,
            "quota": None,
            "memory": 8_000_000_000,
            "gpus": [],
            "storage": {"kind": "nvme"},
            "versions": {"python": "3.11.2", "torch": "2.13.0"},
        },
        "framework": "torch",
        "loader": {
            "kind": "torch.DataLoader",
            "at": "train.py:33",
            "workers": 2,
            "batch_size": 32,
            "pin_memory": False,
            "persistent": True,
            "prefetch": 2,
            "dataset": "ImageFolder",
            "samples": 2000,
            "transforms": [{"name": "RandomResizedCrop", "at": "train.py:20"}],
            "image": {"width": 500, "height": 375, "needed_width": 224, "needed_height": 224},
        },
        "runs": list(runs),
        "stages": {
            "read_us": 60,
            "decode_us": 2400,
            "transforms": [{"name": "RandomResizedCrop", "at": "train.py:20", "us": 600}],
            "collate_us_per_sample": 90,
            "transfer_us_per_sample": 120,
            "cold_read_us": 900,
        },
        "slowest": [],
        "disabled": ["torch.save at train.py:80"],
        "overhead": {"us_per_step": 40, "share": 0.0008},
    }
    for key, value in more.items():
        result[key] = {**result[key], **value} if key in ("machine", "loader", "stages") and value else value
    return copy.deepcopy(result)


def slow(rate: float = 600, wait: float = 35.0, **more: Any) -> dict:
    """The script as it is, when it waits for most of a step of 53 ms."""
    return run("as-is", rate, kind="baseline", wait=wait, compute=15.0, **more)


def busy(**more: Any) -> dict:
    """The script as it is, when the model takes all of a step of 32 ms."""
    return run("as-is", 1000, kind="baseline", wait=0.4, compute=28.0, **more)


MODEL = run("model", 1900, kind="ceiling", compute=15.0)
LOADER = run("loader", 640, kind="ceiling", wait=50.0)
STOKER = run("stoker", 1500, wait=1.0, compute=15.0, diff=DIFF)
CEILINGS = (MODEL, LOADER)
FAST_LOADER = run("loader", 2600, kind="ceiling", wait=12.3)
GPU = {"gpus": [{"name": "NVIDIA H200", "memory": 141e9}], "cpus": 16}
IDLE = {"main": 0.4, "workers": 0.4, "all": 0.8, "throttled_s": 0.0, "gil": 0.2, "threads": 4}
DISK = {"read_bytes": 60 * 32 * 110_000, "read_calls": 60 * 32 * 2, "major_faults": 0, "blocked_s": 2.9}
STAGES_EVEN = {"decode_us": 400, "transforms": []}


def stages(**us: Any) -> dict:
    """Stages in which one part is the largest."""
    return {"decode_us": 300, "transforms": [], **us}


def of_model(name: str, base: dict, **more: Any) -> dict:
    """A model that is the limit, on a GPU, and a what-if that helps."""
    return measurement(
        base, run("model", 1010, kind="ceiling", compute=28.0), FAST_LOADER, run(name, 1400), machine=GPU, **more
    )


def storage(kind: str, io: dict, **more: Any) -> dict:
    cold = run("loader", 640, kind="ceiling", wait=50.0, io=io)
    also = {**STOKER, "io": io}
    return measurement(
        slow(io=io), MODEL, cold, also, machine={"storage": {"kind": kind}}, stages=stages(cold_read_us=5000), **more
    )


# What each verdict looks like; its what-if has run.
CASES: dict[str, dict] = {
    "decode": measurement(slow(), *CEILINGS, STOKER),
    "transform": measurement(
        slow(),
        *CEILINGS,
        run("without=blur", 1700),
        run("stoker", 620),
        stages=stages(transforms=[{"name": "blur", "at": "train.py:12", "us": 4200}]),
    ),
    "storage-iops": storage("nvme", DISK),
    "storage-bandwidth": storage("nvme", {**DISK, "read_bytes": 60 * 32 * 3e6}, loader={"samples": None}),
    "storage-latency": storage("network", {**DISK, "read_s": 60.0}),
    "page-cache": measurement(
        slow(io=DISK),
        MODEL,
        run("loader", 640, kind="ceiling", io=DISK),
        run("pack", 1300, io=DISK),
        loader={"bytes": 9.6e9, "samples": 90_000},
    ),
    "cold": measurement(
        slow(io=DISK),
        MODEL,
        run("loader", 2100, kind="ceiling"),
        loader={"bytes": 220e6},
        stages=stages(cold_read_us=5000),
    ),
    "few-workers": measurement(
        slow(cpu=IDLE), *CEILINGS, run("workers=2", 1150), run("stoker", 1200), loader={"workers": 1}
    ),
    "many-workers": measurement(
        slow(wait=2.0), MODEL, FAST_LOADER, run("workers=2", 800), loader={"workers": 12}, stages=None
    ),
    "threads": measurement(
        slow(cpu={**IDLE, "all": 2.0, "threads": 36}), *CEILINGS, run("threads=1", 1300), stages=None
    ),
    "worker-start": measurement(
        slow(epochs=[{"start_s": i, "first_wait_s": 0.5, "steps": 15} for i in range(4)]),
        *CEILINGS,
        run("persistent", 1100),
        loader={"persistent": False},
        stages=None,
    ),
    "shared-memory": measurement(
        {
            **slow(steps=0),
            "status": "failed",
            "reason": "RuntimeError: DataLoader worker is killed by signal: Bus error",
        },
        STOKER,
        machine={"shm": {"total": 64e6, "free": 1e6}},
    ),
    "gil": measurement(
        run(
            "as-is",
            600,
            kind="baseline",
            wait=0.5,
            compute=15.0,
            hot=[{"name": "log_images", "at": "train.py:44", "ms": 30.0}],
        ),
        run("model", 610, kind="ceiling", compute=15.0),
        FAST_LOADER,
        run("without=log_images", 1350),
    ),
    "collate": measurement(
        slow(),
        *CEILINGS,
        run("collate", 1400),
        stages=stages(collate_us_per_sample=3000),
        loader={"collate": {"name": "join", "at": "train.py:25"}},
    ),
    "pickling": measurement(slow(), *CEILINGS, STOKER, stages=stages(transfer_us_per_sample=3000)),
    "slow-samples": measurement(
        slow(),
        *CEILINGS,
        run("skip-slowest", 1500),
        run("stoker", 1550),
        samples_ms={
            "median": 3.0,
            "p90": 4.0,
            "p99": 60.0,
            "max": 240.0,
            "histogram": [[0, 4], [2, 180], [4, 20], [60, 2]],
        },
        slowest=[{"index": 17, "path": "photos/huge.jpg", "ms": 240.0}],
    ),
    "cpu-quota": measurement(
        slow(cpu={**IDLE, "all": 2.0, "throttled_s": 1.5}),
        *CEILINGS,
        run("workers=2", 1100),
        machine={"cpus": 16, "quota": 2.0},
        loader={"workers": 16},
        stages=None,
    ),
    "numa": measurement(slow(wait=6.0), *CEILINGS, run("numa", 900), machine={"numa": 2, "cpus": 64}, stages=None),
    "large-images": measurement(
        slow(),
        *CEILINGS,
        run("resize", 1700),
        STOKER,
        loader={"image": {"width": 4000, "height": 3000, "needed_width": 224, "needed_height": 224}},
    ),
    "serial-fetch": measurement(
        slow(), *CEILINGS, run("fetch", 1400), stages=stages(read_us=3000), loader={"dataset": "Column"}
    ),
    "unpinned": of_model("pin", busy(copy=5.0, copies={"pinned": False, "dtype": "uint8", "bytes": 5e6})),
    "sync-copy": of_model("pin", busy(copy=5.0, copies={"pinned": True, "non_blocking": False, "dtype": "uint8"})),
    "float32-copy": of_model(
        "device", busy(copy=5.0, copies={"pinned": True, "non_blocking": True, "dtype": "torch.float32", "bytes": 77e6})
    ),
    "model": of_model("amp-bf16", busy(gpu={"busy": 0.97, "util": 0.98})),
    "launch-bound": of_model("compile", busy(gpu={"busy": 0.4, "util": 0.9, "kernels": 2300})),
    "host-sync": of_model("no-sync", busy(syncs=[{"at": "train.py:51", "ms": 9.0, "calls": 1}])),
    "evaluation": of_model("no-evaluation", busy(stalls=[{"what": "evaluation", "at": "train.py:70", "s": 1.1}])),
    "checkpoint": of_model("no-checkpoint", busy(stalls=[{"what": "checkpoint", "at": "train.py:80", "s": 0.9}])),
    "ranks": measurement(
        slow(ranks=[{"rank": r, "step_ms": 53, "wait_share": 0.6 if r == 3 else 0.05} for r in range(4)]),
        *CEILINGS,
        STOKER,
        stages=None,
    ),
    "shapes": of_model("fixed-shapes", busy(shapes=40)),
    "optimizer": of_model("fused", busy(optimizer_ms={"median": 9.0, "mean": 9.0}, gpu={"busy": 0.9})),
    "communication": of_model("local-gradients", busy(comm_ms={"median": 12.0, "mean": 12.0})),
}

ALARMS: dict[str, dict] = {
    "same-augmentation": {"checks": {"worker_seeds_equal": True, "workers_compared": 2}},
    "epoch-fixed": {"checks": {"set_epoch_missing": True, "epochs_seen": 5}},
    "rank-duplicates": {"checks": {"rank_duplicates": 1.0, "rank_compared": "indices", "rank_batches": 8}},
    "poor-shuffle": {"checks": {"batch_classes": {"seen": 2, "expected": 16}}},
    "padded-eval": {"checks": {"eval_padded": 3, "eval_samples": 101}},
    "exif-ignored": {"checks": {"exif_ignored": 0.04, "exif_files": 50}},
    "loss-nan": {"checks": {"loss_nan_step": 12}, "runs": [busy(loss=[1.0] * 12 + [None] * 48)]},
    "memory-growth": {"runs": [busy(memory={"rss": [[i, 1e9 + i * 50e6] for i in range(40)]})]},
}

CLEAN = {
    "worker_seeds_equal": False,
    "epochs_equal": False,
    "set_epoch_missing": False,
    "rank_duplicates": 0.001,
    "batch_classes": {"seen": 15.2, "expected": 16},
    "eval_padded": 0,
    "exif_ignored": 0.0,
    "loss_nan_step": None,
}
OK_MODEL = run("model", 1010, kind="ceiling", compute=28.0)

# Scripts that are well, and runs that prove nothing.
HEALTHY: dict[str, dict] = {
    "model is the limit": measurement(busy(), OK_MODEL, FAST_LOADER, checks=CLEAN),
    "nothing but as-is": measurement(busy()),
    "a what-if within the noise": measurement(busy(), OK_MODEL, FAST_LOADER, run("stoker", 1030)),
    "as many threads as two workers have": measurement(
        slow(cpu={**IDLE, "all": 2.0, "threads": 10}), *CEILINGS, run("threads=1", 1300), stages=None
    ),
    "a noisy script": measurement(
        busy(steps=12, step_ms={"median": 32, "p10": 18, "p90": 70}), OK_MODEL, FAST_LOADER, run("amp-bf16", 1150)
    ),
    "memory of steps that are compiled for every shape": measurement(
        busy(memory=ALARMS["memory-growth"]["runs"][0]["memory"], shapes=60), OK_MODEL, FAST_LOADER, framework="jax"
    ),
    "memory that goes up and down": measurement(
        busy(memory={"rss": [[i, 1e9 + i * 50e6 + i % 3 * 100e6] for i in range(40)]}), OK_MODEL, FAST_LOADER
    ),
    "memory that grows less and less": measurement(
        busy(memory={"rss": [[i, 2e9 - 1e9 * 0.85**i] for i in range(40)]}), OK_MODEL, FAST_LOADER
    ),
    "memory that grows at the start only": measurement(
        busy(memory={"rss": [[i, 1e9 + min(i, 8) * 50e6] for i in range(40)]}), OK_MODEL, FAST_LOADER
    ),
    "a GPU that is busy": measurement(
        busy(gpu={"busy": 0.97}), OK_MODEL, FAST_LOADER, run("amp-bf16", 1010), machine=GPU
    ),
    "pinned and fast copies": measurement(
        busy(copy=0.3, copies={"pinned": True, "non_blocking": True, "dtype": "float32"}),
        OK_MODEL,
        FAST_LOADER,
        machine=GPU,
    ),
    "a short evaluation": measurement(busy(stalls=[{"what": "evaluation", "at": "train.py:70", "s": 0.05}]), OK_MODEL),
    "two shapes": measurement(busy(shapes=2), OK_MODEL, run("fixed-shapes", 1020)),
    "one .item() that costs nothing": measurement(
        busy(syncs=[{"at": "train.py:51", "ms": 9.0, "calls": 1}]), OK_MODEL, run("no-sync", 1004), machine=GPU
    ),
    "workers kept": measurement(
        busy(epochs=[{"start_s": i, "first_wait_s": 0.002, "steps": 15} for i in range(4)]), OK_MODEL, FAST_LOADER
    ),
    "a lighter model": measurement(busy(), OK_MODEL, FAST_LOADER, run("half-channels", 3000), run("batch*2", 1300)),
    "Stoker": measurement(busy(), OK_MODEL, FAST_LOADER, loader={"kind": "stoker", "workers": 0}),
    "tf.data": measurement(
        busy(), OK_MODEL, FAST_LOADER, loader={"kind": "tf.data", "workers": 0}, framework="tensorflow"
    ),
    "JAX": measurement(busy(), OK_MODEL, FAST_LOADER, loader={"kind": "iterable", "workers": 0}, framework="jax"),
    "ranks alike": measurement(
        busy(ranks=[{"rank": r, "step_ms": 32, "wait_share": 0.01 + r / 200} for r in range(8)]), OK_MODEL, FAST_LOADER
    ),
    "waiting, and nothing helps": measurement(slow(), *CEILINGS, run("stoker", 610), run("workers=4", 590)),
    "waiting, and the what-if failed": measurement(
        slow(), *CEILINGS, {**run("stoker", 1), "status": "failed", "reason": "TypeError: no", "samples_per_s": None}
    ),
    "a what-if with other batches": measurement(slow(), *CEILINGS, {**STOKER, "same_result": False}),
    "a quota that is not reached": measurement(busy(), OK_MODEL, machine={"cpus": 16, "quota": 2.0}),
}
