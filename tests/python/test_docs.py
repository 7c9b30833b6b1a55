# SPDX-License-Identifier: Apache-2.0
"""The Python in the guides runs as it stands there."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["docs/python.md", "docs/migrate.md", "README.md"])
def test_guide(name, photos, tmp_path, monkeypatch):
    for folder in ("train", "val", "photos"):
        (tmp_path / folder).symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), flags=re.S | re.M)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    assert blocks


@pytest.mark.parametrize("framework", ["torch", "keras", "jax"])
def test_example(framework, photos, monkeypatch, capsys):
    pytest.importorskip("tensorflow" if framework == "keras" else framework, reason=f"{framework} is not installed")
    names = runpy.run_path(str(ROOT / f"examples/train_{framework}.py"))
    monkeypatch.setitem(names["train"].__globals__, "BATCH", 2)
    losses = names["train"](photos)
    assert losses[-1] < losses[0] and "for data" in capsys.readouterr().out
