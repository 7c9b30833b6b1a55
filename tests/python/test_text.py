# SPDX-License-Identifier: Apache-2.0
"""Lines of text files: the same as Python's own, in order and shuffled."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import stoker

LINES = ["", "first", "zweite Zeile: äöü", "x" * 70_000, "tab\there", "日本語", ""] * 40


def lines(source: str, **keywords: object) -> list[str]:
    return [line for batch in stoker.Loader(source, batch_size=16, output="numpy", **keywords) for line in batch.text]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [False, True])
def test_every_line(tmp_path: Path, end: str, last: bool) -> None:
    text = end.join([*LINES, "last"]) + (end if last else "")
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert lines(str(tmp_path / "a.txt")) == [*LINES, "last"]
    assert sorted(lines(f"text:{tmp_path}/a.txt", shuffle=True)) == sorted([*LINES, "last"])


def test_several_files(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text(f"line {i}\nand another")
    assert lines(f"{tmp_path}/*.txt") == [text for i in range(3) for text in (f"line {i}", "and another")]


def test_packed(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
    assert lines(f"text:{tmp_path}/a.txt.gz") == LINES[:-1]  # what follows the last end of a line is nothing
