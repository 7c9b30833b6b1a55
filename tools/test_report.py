# SPDX-License-Identifier: Apache-2.0
"""Reads the log of `meson test`, shows what failed or was skipped, and counts the cases.

    test_report.py testlog.json folder

Writes the counts to test-counts in the folder, and the names of what failed to test-failed. They are printed last, so
that they stay in a log that was cut.

A program that prints a line per case (tests/test.h) counts by its cases, any other as one. A program
that fails without naming a case, by a crash or a time-out, counts as one failure.
"""

import json
import sys
from pathlib import Path

TAIL = 80  # lines of a failed test's output
GOOD = {"OK", "EXPECTEDFAIL"}


def count(test: dict) -> tuple[int, int, list[str]]:
    """Passed, failed, and the words of the skipped cases of one program."""
    lines = test.get("stdout", "").splitlines()
    skipped = [line.removeprefix("skipped: ") for line in lines if line.startswith("skipped: ")]
    ok = sum(line.startswith("ok     ") for line in lines)
    failed = sum(line.startswith("FAILED ") for line in lines)
    if test["result"] == "SKIP":
        return 0, 0, skipped or [lines[-1] if lines else "no reason given"]
    if test["result"] not in GOOD:
        failed = max(failed, 1)
    elif ok == 0:
        return 1, 0, skipped
    # A skipped case of tests/test.h prints its "ok" as well.
    return max(ok - len(skipped), 0), failed, skipped


def names(test: dict) -> list[str]:
    """The failed cases of a program, or the program itself."""
    cases = [line.split(" ", 1)[1] for line in test.get("stdout", "").splitlines() if line.startswith("FAILED ")]
    return [f"{test['name']}: {case}" for case in cases or [test["result"]]]


def show(test: dict) -> None:
    print(f"\n--- {test['name']}: {test['result']}")
    both = test.get("stdout", "") + test.get("stderr", "")
    lines = [line for line in both.splitlines() if not line.startswith(("ok     ", "skipped: "))]
    for line in lines[-TAIL:]:
        print("    " + line)


def main() -> int:
    log, folder = Path(sys.argv[1]), Path(sys.argv[2])
    passed = failed = 0
    skipped: list[str] = []
    bad: list[str] = []
    if log.exists():
        tests = [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line]
    else:
        tests = []
    for test in tests:
        p, f, s = count(test)
        passed, failed = passed + p, failed + f
        skipped += [f"{test['name']}: {words}" for words in s]
        if f:
            show(test)
            bad += names(test)
    if not tests:
        bad.append("no test was run: the build folder has no log")
        failed = 1
    for title, lines in (("skipped", skipped), ("failed", bad)):
        if lines:
            print(f"\n{title}:", *lines, sep="\n    ")
    print()
    (folder / "test-counts").write_text(f"{passed} {failed} {len(skipped)}\n")
    (folder / "test-failed").write_text("".join(f"{line}\n" for line in bad))
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
