# SPDX-License-Identifier: Apache-2.0
"""docs/doctor.md has every verdict of the code, and every field of the recorded measurements."""

import re
from pathlib import Path

import doctor_cases as cases
from stoker.doctor.alarms import ALARMS
from stoker.doctor.causes import RULES

PAGE = (Path(__file__).parents[2] / "docs/doctor.md").read_text()


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
