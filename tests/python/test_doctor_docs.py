# SPDX-License-Identifier: Apache-2.0
"""docs/doctor.md has every verdict of the code, and every field of the recorded measurements."""

import ast
import re
import sys
from pathlib import Path

import doctor_cases as cases
from stoker.doctor.alarms import ALARMS
from stoker.doctor.causes import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/doctor.md").read_text()


def test_every_verdict_is_explained_in_three_lines():
    found = re.findall(r"^#### (\d+)\. ([\w-]+)\n\n- Means: .*?\n- Measured: .*?\n- Do: .*?\n\n", PAGE, re.M | re.S)
    known = {(str(rule.number), rule.id) for rule in [*RULES, *ALARMS]} | {("1", "healthy")}
    assert set(found) == known
    assert [int(number) for number, _ in found] == list(range(1, len(known) + 1))


def test_every_field_is_documented():
    document = PAGE[PAGE.index("## The document") : PAGE.index("## The data alone")]
    names = set(re.findall(r"`([\w-]+)`", document))
    for m in [*cases.CASES.values(), *cases.HEALTHY.values()]:
        assert set(m) <= names
        for run in m["runs"]:
            assert set(run) <= names
        for section in ("machine", "loader", "stages"):
            assert set(m[section] or {}) <= names


def test_the_benchmark_has_a_script_for_every_verdict(monkeypatch):
    """Or a reason why there is none. And there are twenty healthy scripts."""
    monkeypatch.syspath_prepend(ROOT / "bench/doctor")
    bench = __import__("run")
    sys.modules.pop("run")  # tests/python/run.py has the same name
    found = bench.cases()
    provoked = [case.expected for case in found if case.expected]
    assert {*provoked, *bench.NOT_PROVOKED} == {rule.id for rule in [*RULES, *ALARMS]}
    assert not {*provoked} & {*bench.NOT_PROVOKED}
    assert sum(not case.expected and case.about.get("needs") != "gpu" for case in found) == 20
    for case in found:
        ast.parse(case.path.read_text())
