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
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import scratch
from .machine import History, children

INSIDE = str(Path(__file__).parent / "inside")
PATIENCE = 120.0  # seconds without a batch that count as hanging
EVERY = 0.5  # seconds between looks at /proc
FAREWELL = 5.0  # seconds for a process that is asked to write what it has measured
NOT_INSIDE = (
    "the doctor could not look inside: the options -I, -E and -S of Python prevent it, and so does a command that "
    "clears PYTHONPATH"
)
UNSAVED = "the script saves {}, but functions that save are disabled in this run"
UNSEEN = "only Python code finds {} in the scratch folder; run the script once without the doctor, so that it exists"
FORKED = (
    "it trains in a process that it forked, and the doctor cannot look into that one; start it in another way, such as "
    'multiprocessing.set_start_method("spawn")'
)
NO_LOADER = "it took no batch from a loader that the doctor knows; mark its loop: for batch in stoker.watch(batches)"
TEMPORARY = (tempfile.gettempdir() + "/", "/dev/shm/")
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
    interrupted: bool = False
    left: list[str] = field(default_factory=list)  # files and folders that the script has made
    new: list[str] = field(default_factory=list)  # those in its folder that it, or another program, has made

    @property
    def record(self) -> dict[str, Any]:
        return self.records[0] if self.records else {}


def environment(plan: Path) -> dict[str, str]:
    paths = [INSIDE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), scratch.VARIABLE: str(plan)}


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
    history = History(os.getpid())
    begun = time.perf_counter()
    timed_out = interrupted = False
    before = set(os.listdir())
    others = set(children(os.getpid()))
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
            return Result("failed", f"{command[0]}: {error.strerror}", [], history, 0.0, "")
        try:
            history.root = process.pid
            timed_out = _wait(process, history, out, begun, limit, progress)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            if timed_out or interrupted:
                _ask_to_end(folder)
            end_all(process.pid, folder, others)
            process.wait()
            left = scratch.remove_made(out)
    text = (folder / "stderr").read_bytes().decode(errors="replace")
    seconds = time.perf_counter() - begun
    result = _result(process, out, history, seconds, text, timed_out, limit)
    result.begun, result.interrupted = begun, interrupted
    new = {os.path.join(os.getcwd(), name) for name in set(os.listdir()) - before - {"__pycache__"}}
    left = [path for path in left if not path.startswith(TEMPORARY) or path.startswith(os.getcwd() + "/")]
    result.left, result.new = sorted(left), sorted(new.difference(left))
    if result.status == "failed" and (why := _missing(str(result.reason), folder)):
        result.reason = f"{result.reason} ({why})"
    return result


def _missing(words: str, folder: Path) -> str | None:
    """Why the script has not found a file that its error names, if the doctor is the cause."""
    for name in _unsaved(folder / "out"):
        if re.search(rf"(?<![\w ]){re.escape(name)}(?![\w ])", words):  # "out" is not meant in "CUDA out of memory"
            return UNSAVED.format(name)
    made = (path.name for path in (folder / "files").rglob("*") if path.is_file())
    return next((UNSEEN.format(name) for name in made if name in words), None)  # C code has not found it


def _unsaved(out: Path) -> set[str]:
    """The names of files that were not saved in this run."""
    try:
        paths = (out / "unsaved").read_bytes().split(b"\0")
    except OSError:
        return set()
    return {os.path.basename(os.fsdecode(path)) for path in paths if path}


def _wait(
    process: subprocess.Popen[bytes], history: History, out: Path, begun: float, limit: float, progress: Any
) -> bool:
    """Waits for the process; returns True if the time limit was reached."""
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


def _ask_to_end(folder: Path) -> None:
    """Lets the processes of the script write what they have measured so far."""
    (folder / "out" / "stop").touch()
    until = time.perf_counter() + FAREWELL
    while time.perf_counter() < until and scratch.processes(folder):
        time.sleep(0.05)


def end_all(root: int, folder: Path, others: set[int]) -> None:
    """Ends a process, its group, whatever has a plan of this folder, and all children of this process but `others`."""
    for _ in range(3):
        try:
            os.killpg(root, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        new = set(children(os.getpid())) - others - {root}
        scratch.kill(new)
        left = scratch.end_all(folder)
        _reap(root)
        if not left and not new:
            return
        time.sleep(0.05)


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
    """The error of a traceback, or the last line of stderr; empty if there is none."""
    lines = [RANK.sub("", line).strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line[:1].isalpha() and ("Error" in line.split(":")[0] or "Exception" in line)]
    errors = [line for line in errors if "ChildFailedError" not in line] or errors  # of a launcher of ranks
    words = [line for line in lines if any(map(str.isalpha, line))]
    return (errors or words or [""])[-1][:300].removeprefix("stoker_doctor.what_ifs.NotPossible: ")


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
    broken = next((r["traceback"] for r in records if r.get("status") == "doctor"), None)
    steps = (records[0].get("run") or {}).get("steps") if records else 0
    if broken:
        status, reason, stderr = "failed", f"the doctor itself failed: {last_line(broken)}", broken
    elif records:
        status = str(records[0].get("status"))
        if status == "ended" and any(r.get("status") == "ok" and r.get("rank") for r in records):
            status = "ok"  # another rank was done first, and this one lost its connection
        if status == "ended" and code not in (0, None) and not timed_out:
            status, reason = "failed", last_line(stderr) or f"it ended with exit status {code} and no message"
        elif status == "hangs" and not records[0].get("run"):
            status, reason = "failed", NO_LOADER
        elif status == "hangs":
            reason = f"it requested no batch within {PATIENCE:.0f} s"
        elif timed_out and not steps:
            status, reason = "failed", f"it did not end within {limit:.0f} s"
        elif not steps:
            status, reason = "ended", None
    elif timed_out:
        status, reason = "failed", f"it did not end within {limit:.0f} s"
    elif code:
        words = f"killed by signal {signal.Signals(-code).name}" if code < 0 else last_line(stderr)
        status, reason = "failed", words or f"it ended with exit status {code} and no message"
    elif not (out / "beat").exists():
        status, reason = "failed", NOT_INSIDE
    elif (out / "forked").exists():
        status, reason = "failed", FORKED
    else:
        status, reason = "ended", "it ended without taking a batch from a known loader"
    return Result(status, reason, records, history, seconds, stderr)
