# SPDX-License-Identifier: Apache-2.0
"""`stoker verify` over every folder of images in the test data, and over every file of whatever kind: bad
files are named, and nothing crashes, takes over 5 seconds of CPU time, or takes more memory than it was given.

    verify_corpus.py STOKER [FOLDER]

FOLDER is that of STOKER_TEST_DATA unless named. Ends with 77 without data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

SLOW_S = 5.0
HANG_S = 600.0
MEMORY = 1 << 30
IMAGES = (".jpg", ".jpeg", ".png", ".webp")
SANITIZERS = (b"__asan_init", b"__tsan_init")


class Run(NamedTuple):
    end: int
    seconds: float  # of CPU time: that of the clock depends on what else runs
    peak: int  # bytes
    words: str


def run(*command: str) -> Run:
    """Runs it to its end, or kills it after HANG_S."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        timer = threading.Timer(HANG_S, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        words = out.read().decode(errors="replace")
    return Run(process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, words)


class Check:
    def __init__(self, stoker: str) -> None:
        self.stoker = stoker
        code = Path(stoker).read_bytes()
        self.sanitized = any(word in code for word in SANITIZERS)
        self.slow_s = SLOW_S * (5 if self.sanitized else 1)
        self.limit = MEMORY + run(stoker, "info").peak
        self.runs = self.failed = self.peak = 0

    def fail(self, what: object, why: str, words: str = "") -> None:
        self.failed += 1
        print(f"{what}: {why}")
        for line in words.splitlines()[-5:]:
            print(f"    {line}")

    def verify(self, source: str, what: object) -> Run:
        r = run(self.stoker, "verify", source, "--memory", str(MEMORY), "--threads", "2")
        self.runs += 1
        self.peak = max(self.peak, r.peak)
        if r.end not in (0, 1):
            self.fail(what, f"ended with {r.end} after {r.seconds:.1f} s", r.words)
        # A sanitizer keeps memory of its own.
        if r.peak > self.limit and not self.sanitized:
            self.fail(what, f"took {r.peak >> 20} MiB, {(r.peak - self.limit) >> 20} MiB too much")
        return r

    def files(self, paths: list[str]) -> None:
        """Together; if that takes longer than one may, halves of them, down to the one that does."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.writelines(json.dumps({"path": os.path.abspath(p)}) + "\n" for p in paths)
            f.flush()
            what = paths[0] if len(paths) == 1 else f"{len(paths)} files from {paths[0]}"
            r = self.verify(f.name, what)
        if r.end not in (0, 1) or r.seconds <= self.slow_s:
            return
        if len(paths) == 1:
            self.fail(what, f"took {r.seconds:.1f} s")
            return
        half = len(paths) // 2
        self.files(paths[:half])
        self.files(paths[half:])


def main() -> int:
    data = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("STOKER_TEST_DATA", "/nonexistent") + "/corpus"
    if not os.path.isdir(data):
        print("skipped: no test data (STOKER_TEST_DATA)")
        return 77
    check = Check(sys.argv[1])
    everything = sorted(os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names)
    images = [p for p in everything if p.lower().endswith(IMAGES)]
    for folder in sorted({os.path.dirname(p) for p in images}):
        check.verify(f"files:{folder}", folder)
    check.files(everything)
    print(f"{len(everything)} files, {len(images)} with the suffix of an image; {check.runs} runs, "
          f"at most {check.peak >> 20} MiB; {check.failed} failed")  # fmt: skip
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
