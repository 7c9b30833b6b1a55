# SPDX-License-Identifier: Apache-2.0
"""Lines of text files: the same as Python's own, in order and shuffled."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
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


@pytest.mark.parametrize("ranks", [1, 2])
def test_lines_and_tokens_are_resumed_and_shuffled(tmp_path: Path, ranks: int) -> None:
    """Stopped in the middle, gone on with by other threads and ranks; every sample once in an epoch."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {i}" for i in range(64)))
    (tmp_path / "t.bin").write_bytes(np.arange(64 * 8, dtype=np.uint16).tobytes())
    for source in (f"text:{tmp_path}/a.txt", f"tokens:{tmp_path}/t.bin?dtype=uint16&length=8"):
        common = {"fields": "index", "shuffle": True, "seed": 5, "output": "numpy"}
        whole = [i for batch in stoker.Loader(source, batch_size=4, threads=2, **common) for i in batch.index]
        assert sorted(whole) == list(range(64)) and whole != sorted(whole)
        first = stoker.Loader(source, batch_size=4, threads=1, **common)
        batches = iter(first)
        begun = [i for _ in range(5) for i in next(batches).index]
        rest = []
        for rank in range(ranks):
            other = stoker.Loader(source, batch_size=4 // ranks, threads=2, rank=rank, world_size=ranks, **common)
            other.load_state_dict(first.state_dict())
            rest.append([list(batch.index) for batch in other])
        assert begun + [i for step in zip(*rest, strict=True) for part in step for i in part] == whole


def test_the_shuffle_of_tokens_is_uniform(tmp_path: Path) -> None:
    """Every sequence comes to every quarter of an epoch: 64 of them, 200 epochs; 5 standard deviations."""
    (tmp_path / "t.bin").write_bytes(np.arange(64 * 8, dtype=np.uint16).tobytes())
    loader = stoker.Loader(f"tokens:{tmp_path}/t.bin?length=8", batch_size=64, shuffle=True, seed=2, output="numpy")
    counts = np.zeros((64, 4))
    for _ in range(200):
        [batch] = loader
        counts[np.asarray(batch.tokens)[:, 0] // 8, np.arange(64) // 16] += 1
    assert np.abs(counts - 50).max() < 5 * np.sqrt(50 * 3 / 4)


CORPUS = Path(os.environ.get("STOKER_TEST_DATA", "/nowhere")) / "corpus" / "torchdata-fakedata/test/_fakedata"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="STOKER_TEST_DATA has no torchdata-fakedata")
def test_text_of_others() -> None:
    """Lines and tables as Python reads them; single JSON documents are refused by their name."""
    for path in sorted((CORPUS / "txt").iterdir()):
        assert lines(str(path)) == path.read_text().splitlines()
    for path in sorted((CORPUS / "csv").iterdir()):
        with open(path, newline="") as file:
            wanted = [(int(row["key"]), row["item"]) for row in csv.DictReader(file)]
        [batch] = stoker.Loader(str(path), batch_size=2, output="numpy")
        assert list(zip(batch.my_key.tolist(), batch.item, strict=True)) == wanted
    for path in sorted((CORPUS / "json").iterdir()):
        with pytest.raises(stoker.UsageError, match="one object per line"):
            stoker.Loader(str(path))
