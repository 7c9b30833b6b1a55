# SPDX-License-Identifier: Apache-2.0
"""A temporary folder, and a child process that removes it.

The child waits until the pipe to this process is closed. This happens when the folder is closed, and also when this
process dies in any other way. Then the child ends what is left of the script, and removes what is left on disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "STOKER_DOCTOR_PLAN"  # in the environment of all processes of the script
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parent_of_scratch(folder: Path) -> str:
    """Where to make it: on the file system of the script's folder if possible, because checkpoints are timed there."""
    for place in (tempfile.gettempdir(), str(folder.parent)):
        if os.stat(place).st_dev == os.stat(folder).st_dev and os.access(place, os.W_OK | os.X_OK):
            return place
    return tempfile.gettempdir()


class Scratch:
    def __enter__(self) -> Path:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # the child keeps them blocked
        self.path = Path(tempfile.mkdtemp(prefix="stoker-doctor-", dir=parent_of_scratch(Path.cwd())))
        from_parent, self._pipe = os.pipe()
        self._remover = os.fork()
        if self._remover == 0:
            os.close(self._pipe)
            _wait_and_remove(self.path, from_parent)
        os.close(from_parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return self.path

    def __exit__(self, *error: object) -> None:
        os.close(self._pipe)
        try:
            os.waitpid(self._remover, 0)
        except ChildProcessError:  # somebody ended it
            pass


def _wait_and_remove(path: Path, pipe: int) -> None:
    """Never returns."""
    try:
        os.setsid()
        for stream in (0, 1, 2):  # a reader of the output must not wait for this process
            os.close(stream)
        os.read(pipe, 1)
        end_all(path)
        for folder in path.glob("*/out"):
            remove_made(folder)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os._exit(0)


def end_all(path: Path) -> bool:
    """Ends the processes of the script; False if there was none."""
    found = processes(path)
    kill(found)
    return bool(found)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def processes(path: Path) -> list[int]:
    """All processes whose plan is in this folder."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has_plan(pid, path)]


def _has_plan(pid: int, path: Path) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{VARIABLE}={path}/".encode() in file.read()
    except OSError:
        return False


def remove_made(out: Path) -> list[str]:
    """Removes folders that a run made if they are empty, and returns the others."""
    try:
        folders = set(filter(None, (out / "folders").read_text().split("\0")))
    except OSError:
        return []
    for folder in sorted(folders, key=len, reverse=True):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # gone, or not empty
    return sorted(filter(os.path.exists, folders))
