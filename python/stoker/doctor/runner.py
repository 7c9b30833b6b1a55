# SPDX-License-Identifier: Apache-2.0
"""One run of the user's command: a fresh process with the probe inside, a time limit, and nothing left behind."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .machine import History, children

INSIDE = str(Path(__file__).parent / "inside")
PATIENCE = 120.0  # seconds without a batch that count as hanging
EVERY = 0.5  # seconds between looks at /proc
SUBREAPER = 36  # of prctl: orphans of the script become children of this process


def adopt_orphans() -> None:
    """So that a process the script leaves behind can be found and ended."""
    try:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):  # not Linux
        pass


@dataclass
class Result:
    status: str  # ok, ended, failed, hangs
    reason: str | None
    records: list[dict[str, Any]]  # one per process that trains, rank 0 first
    history: History
    seconds: float
    stderr: str
    begun: float = 0.0  # on the clock of the records

    @property
    def record(self) -> dict[str, Any]:
        return self.records[0] if self.records else {}


def environment(plan: Path) -> dict[str, str]:
    paths = [INSIDE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "STOKER_DOCTOR_PLAN": str(plan)}


def run(
    command: list[str],
    plan: dict[str, Any],
    folder: Path,
    limit: float,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Result:
    """Runs the command with a plan. `limit` is for all of it, imports included."""
    if folder.exists():
        shutil.rmtree(folder)
    out = folder / "out"
    out.mkdir(parents=True)
    plan = {"patience": PATIENCE, "folder": os.getcwd(), **plan, "out": str(out), "scratch": str(folder / "files")}
    (folder / "plan.json").write_text(json.dumps(plan))
    begun = time.perf_counter()
    with open(folder / "stdout", "wb") as stdout, open(folder / "stderr", "wb") as stderr:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=environment(folder / "plan.json"),
                start_new_session=True,
            )
        except OSError as error:
            return Result("failed", f"{command[0]}: {error.strerror}", [], History(0), 0.0, "")
        history = History(process.pid)
        try:
            timed_out = _wait(process, history, out, begun, limit, progress)
        finally:
            end_all(process.pid)
            process.wait()
    text = (folder / "stderr").read_bytes().decode(errors="replace")
    seconds = time.perf_counter() - begun
    result = _result(process, out, history, seconds, text, timed_out, limit)
    result.begun = begun
    return result


def _wait(
    process: subprocess.Popen[bytes], history: History, out: Path, begun: float, limit: float, progress: Any
) -> bool:
    """Until the process ends; True if it had to be ended."""
    looked, first_record = 0.0, 0.0
    while process.poll() is None:
        now = time.perf_counter()
        if now - looked >= EVERY:
            history.look()
            looked = now
            progress(now - begun)
            if not first_record and any(out.glob("*.json")):
                first_record = now
        if now - begun > limit:
            return True
        if first_record and now - first_record > 12:  # other ranks, or a launcher that waits for them
            return False
        time.sleep(0.05)
    return False


def end_all(root: int) -> None:
    """Ends a process, its group, and whatever it started."""
    for _ in range(3):
        try:
            os.killpg(root, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        left = [pid for pid in children(os.getpid()) if pid != os.getpid() and _is_of(pid, root)]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        _reap(root)
        if not left:
            return
        time.sleep(0.05)


def _is_of(pid: int, root: int) -> bool:
    """Whether a process was started by this run: it has the plan in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"STOKER_DOCTOR_PLAN=" in file.read()
    except OSError:
        return False


def _reap(root: int) -> None:
    """Takes the exit codes of orphans; that of the script itself is left to subprocess."""
    for pid in children(os.getpid())[1:]:
        try:
            with open(f"/proc/{pid}/stat") as file:
                words = file.read().rpartition(")")[2].split()
            if words[0] == "Z" and int(words[1]) == os.getpid() and pid != root:
                os.waitpid(pid, os.WNOHANG)
        except (OSError, ValueError, IndexError):
            continue


RANK = re.compile(r"^\[rank\d+\]: ?")


def last_line(text: str) -> str:
    """The error of a traceback, or whatever was said last; empty if nothing was."""
    lines = [RANK.sub("", line).strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line[:1].isalpha() and ("Error" in line.split(":")[0] or "Exception" in line)]
    errors = [line for line in errors if "ChildFailedError" not in line] or errors  # of a launcher of ranks
    return (errors or lines or [""])[-1][:300].removeprefix("stoker_doctor.what_ifs.")


def _result(
    process: subprocess.Popen[bytes],
    out: Path,
    history: History,
    seconds: float,
    stderr: str,
    timed_out: bool,
    limit: float,
) -> Result:
    records = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    records.sort(key=lambda r: (r.get("rank", 0), -(r.get("run") or {}).get("steps", 0)))
    code = process.returncode
    status, reason = "ok", None
    if records:
        status = str(records[0].get("status"))
        if status == "ended" and any(r.get("status") == "ok" and r.get("rank") for r in records):
            status = "ok"  # another rank was done first, and this one lost its connection
        if status == "ended" and code not in (0, None) and not timed_out:
            status, reason = "failed", last_line(stderr) or f"it ended with exit status {code} and no message"
        elif status == "hangs":
            reason = f"it requested no batch within {PATIENCE:.0f} s"
        elif not (records[0].get("run") or {}).get("steps"):
            status, reason = "ended", None
    elif timed_out:
        status, reason = "failed", f"it took no batch from a loader within {limit:.0f} s"
    elif code:
        words = f"killed by signal {signal.Signals(-code).name}" if code < 0 else last_line(stderr)
        status, reason = "failed", words or f"it ended with exit status {code} and no message"
    else:
        status, reason = "ended", "it ended without taking a batch from a known loader"
    return Result(status, reason, records, history, seconds, stderr)
