# SPDX-License-Identifier: Apache-2.0
"""The machine, and what a tree of processes takes of it: everything that /proc, /sys and NVML report."""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .nvml import Nvml, Reading
from .nvml import summary as gpu_summary

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
NETWORK = ("nfs", "cifs", "smb", "fuse", "lustre", "ceph", "gpfs", "9p", "glusterfs", "beegfs", "afs")


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def cgroup_folder(controller: str) -> Path:
    """The cgroup of this process: of version 2, or of this controller in version 1."""
    root = Path("/sys/fs/cgroup")
    for line in _text("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        top = root / controller if names else root
        if (not names or controller in names.split(",")) and (top / f"{controller}.stat").exists():
            own = top / path.lstrip("/")
            return own if (own / f"{controller}.stat").exists() else top
    return root


def quota() -> float | None:
    """CPUs that the container may use, if that is limited."""
    folder = cgroup_folder("cpu")
    words = _text(folder / "cpu.max").split() or [_text(folder / f"cpu.cfs_{w}_us") for w in ("quota", "period")]
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() and words[1].isdigit() else None


def throttled() -> float:
    """Seconds for which the quota stopped the container so far."""
    for line in _text(cgroup_folder("cpu") / "cpu.stat").splitlines():
        if line.startswith(("throttled_usec", "throttled_time")):  # the latter, of version 1, in nanoseconds
            return int(line.split()[1]) / (1e6 if "usec" in line else 1e9)
    return 0.0


def memory() -> int:
    """Bytes that the container may use."""
    folder = cgroup_folder("memory")
    limit = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
    whole = os.sysconf("SC_PHYS_PAGES") * PAGE
    return min(whole, int(limit)) if limit.isdigit() else whole


def storage(path: str | None) -> dict[str, Any]:
    """What kind of storage a file is on."""
    try:
        device = os.stat(path or ".").st_dev
    except OSError:
        return {"kind": None}
    kind, best = None, -1
    real = os.path.realpath(path or ".")
    for line in _text("/proc/mounts").splitlines():
        words = line.split()
        if len(words) > 2 and (real + "/").startswith(words[1].rstrip("/") + "/") and len(words[1]) > best:
            best, kind = len(words[1]), words[2]
    if kind and kind.startswith(NETWORK):
        return {"kind": "network", "filesystem": kind}
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for folder in (block, block / ".."):
        spins = _text(folder / "queue/rotational")
        if spins:
            name = folder.resolve().name
            word = "disk" if spins == "1" else "nvme" if name.startswith("nvme") else "ssd"
            return {"kind": word, "filesystem": kind}
    return {"kind": "memory" if kind == "tmpfs" else None, "filesystem": kind}


def describe(gpus: list[dict[str, Any]], versions: dict[str, str], data: str | None) -> dict[str, Any]:
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "quota": quota(),
        "memory": memory(),
        "numa": len([name for name in os.listdir("/sys/devices/system/node") if name[4:].isdigit()])
        if os.path.isdir("/sys/devices/system/node")
        else 1,
        "gpus": gpus,
        "shm": {"total": shm.f_blocks * shm.f_frsize, "free": shm.f_bavail * shm.f_frsize} if shm else None,
        "storage": storage(data),
        "versions": {"python": platform.python_version(), **versions},
    }


# ---------------------------------------------------------------- processes


def idle() -> float | None:
    """Seconds for which the CPUs of the machine were idle so far, all together; None where that is not counted."""
    words = _text("/proc/stat").partition("\n")[0].split()
    counted = len(words) > 5 and any(map(int, words[1:]))  # in some containers, all of them are 0
    return (int(words[4]) + int(words[5])) / TICKS if counted else None


class Sample(NamedTuple):
    """A process at one moment."""

    pid: int
    cpu: float  # seconds
    rss: int
    threads: int
    faults: int  # major
    read_bytes: int  # from storage
    read_calls: int
    blocked: float  # seconds of waiting for storage


def children(root: int) -> list[int]:
    """A process and all that it started, in no order."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            words = _stat(int(name))
            if words:
                parents.setdefault(int(words[1]), []).append(int(name))
    found, left = [root], [root]
    while left:
        more = parents.get(left.pop(), [])
        found += more
        left += more
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ..."""
    text = _text(f"/proc/{pid}/stat")
    return text[text.rfind(")") + 2 :].split() if text else []


def sample(pid: int) -> Sample | None:
    words = _stat(pid)
    if len(words) < 40 or words[0] == "Z":
        return None
    io = dict(line.split(": ") for line in _text(f"/proc/{pid}/io").splitlines())
    return Sample(
        pid,
        (int(words[11]) + int(words[12])) / TICKS,
        int(words[21]) * PAGE,
        int(words[17]),
        int(words[9]),
        int(io.get("read_bytes", 0)),
        int(io.get("syscr", 0)),
        int(words[39]) / TICKS,
    )


def _own_memory(pid: int) -> int:
    """Proportional set size in bytes; 0 if the kernel does not report it."""
    for line in _text(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


LOCKED = 0.005  # of the time, for which asking for shared memory may lock the memory of processes


class History:
    """Samples of a tree of processes over time, on the clock that the probe uses too."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.moments: list[tuple[float, dict[int, Sample], float]] = []
        self.idle: list[tuple[float, float | None]] = []
        self.gpus: list[tuple[float, list[Reading]]] = []
        self.taken = 0.0  # CPU seconds for looking
        self._shared: dict[int, int] = {}  # bytes of a process that others count, too
        self._ask_at = 0.0
        self._nvml = Nvml()

    def look(self) -> None:
        began = time.thread_time()
        found = {s.pid: s for pid in children(self.root) if (s := sample(pid))}
        self.moments.append((time.perf_counter(), found, throttled()))
        self.idle.append((time.perf_counter(), idle()))
        self.gpus.append((time.perf_counter(), self._nvml.read()))
        self.taken += time.thread_time() - began
        if time.perf_counter() >= self._ask_at:
            self._ask_at = math.inf
            threading.Thread(target=self._ask, args=(list(found.values()),), daemon=True).start()

    def _ask(self, found: list[Sample]) -> None:
        """How much memory is shared. The kernel locks that of the process meanwhile, and may take seconds."""
        began, cpu = time.perf_counter(), time.thread_time()
        for one in found:
            if own := _own_memory(one.pid):
                self._shared[one.pid] = one.rss - own
        now = time.perf_counter()
        self.taken += time.thread_time() - cpu
        self._ask_at = now + (now - began) / LOCKED

    def _rss(self, found: dict[int, Sample]) -> int:
        """Memory of all processes; what they share counts once."""
        return sum(max(0, one.rss - self._shared.get(pid, 0)) for pid, one in found.items())

    def within(self, begin: float, end: float) -> list[tuple[float, dict[int, Sample], float]]:
        """The moments of a window, and the last one before it."""
        before = [m for m in self.moments if m[0] <= begin][-1:]
        return before + [m for m in self.moments if begin < m[0] <= end + 0.6]

    def summary(self, begin: float, end: float, trainer: int | None) -> dict[str, Any]:
        """The sections cpu, io, memory and, on a machine with GPUs, gpu of a run."""
        moments = self.within(begin, end)
        if len(moments) < 2:
            return {}
        seconds = moments[-1][0] - moments[0][0]

        def after(t: float) -> float:
            """Seconds on the clock of the steps, which starts with the window; the first moment was before it."""
            return round(max(0.0, t - begin), 3)

        main = _grown((m[1] for m in moments), "cpu", lambda pid: pid == trainer)
        whole = _grown((m[1] for m in moments), "cpu", lambda pid: True)
        spare = [i for t, i in self.idle if i is not None and moments[0][0] <= t <= moments[-1][0] + 0.1]
        reads = {
            name: _grown((m[1] for m in moments), name, lambda pid: True)
            for name in ("read_bytes", "read_calls", "faults", "blocked")
        }
        alive = [(t, found) for t, found, _ in moments if found and t <= end]  # after it, the processes end
        rss = [[after(t), self._rss(found)] for t, found in alive]
        gpu = gpu_summary([readings for t, readings in self.gpus if begin <= t <= end])
        return {
            **({"gpu": gpu} if gpu else {}),
            "cpu": {
                "main": main / seconds,
                "workers": (whole - main) / seconds,
                "all": whole / seconds,
                "idle": (spare[-1] - spare[0]) / seconds if len(spare) > 1 else None,
                "throttled_s": moments[-1][2] - moments[0][2],
                "threads": max(sum(s.threads for s in m[1].values()) for m in moments),
                "timeline": [[after(a[0]), _between(a, b)] for a, b in zip(moments, moments[1:], strict=False)],
            },
            "io": {
                "read_bytes": reads["read_bytes"],
                "read_calls": reads["read_calls"],
                "major_faults": reads["faults"],
                "blocked_s": reads["blocked"],
            },
            "memory": {"rss": rss, "growth": (rss[-1][1] - rss[0][1]) / seconds if rss else 0.0},
        }


Moment = tuple[float, dict[int, Sample], float]


def _between(a: Moment, b: Moment) -> float:
    """CPUs that all processes used between two moments."""
    used = sum(s.cpu - (a[1][pid].cpu if pid in a[1] else 0.0) for pid, s in b[1].items())
    return round(used / max(1e-3, b[0] - a[0]), 3)


def _grown(moments: Iterable[dict[int, Sample]], name: str, chosen: Any) -> float:
    """How much a counter of the chosen processes has grown, also of those that came or went in between."""
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for i, found in enumerate(moments):
        for pid, one in found.items():
            if chosen(pid):
                value = float(getattr(one, name))
                first.setdefault(pid, value if i == 0 else 0.0)
                last[pid] = value
    return sum(last[pid] - first[pid] for pid in last)
