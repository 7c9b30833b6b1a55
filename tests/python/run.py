# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the installed package and prints a line a case, as tests/test.h does.

run.py [--part K/N] [arguments of pytest]        exit 77: the package or pytest is not there

--part 1/2 runs every second file, so that two processes can share the work.
"""

import sys
from pathlib import Path


def main() -> int:
    try:
        import pytest
        import stoker  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}; tools/wheel.sh builds and installs the package")
        return 77

    class Report:
        """Keeps the last word on every case."""

        lines: dict[str, list[str]] = {}

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                self.lines[report.nodeid] = [f"FAILED {report.nodeid}"]

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            name = report.nodeid.removeprefix("tests/python/")
            if report.failed:
                self.lines[name] = [f"FAILED {name}"]
            elif report.skipped:
                words = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected"
                self.lines[name] = [f"skipped: {name}: {words.removeprefix('Skipped: ')}", f"ok     {name}"]
            elif report.when == "call":
                self.lines[name] = [f"ok     {name}"]

    report = Report()
    here = Path(__file__).parent
    arguments, what = sys.argv[1:], [str(here)]
    if arguments[:1] == ["--part"]:
        part, parts = map(int, arguments[1].split("/"))
        arguments, what = arguments[2:], sorted(map(str, here.glob("test_*.py")))[part - 1 :: parts]
    # -rN: pytest's own list of failures would count each of them a second time.
    code = pytest.main(["-q", "-rN", "-p", "no:cacheprovider", *what, *arguments], plugins=[report])
    print()
    for lines in report.lines.values():
        print(*lines, sep="\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
