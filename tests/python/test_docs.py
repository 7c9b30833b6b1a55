# SPDX-License-Identifier: Apache-2.0
"""The Python in the guides runs as it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["docs/python.md", "README.md"])
def test_guide(name, photos, tmp_path, monkeypatch):
    for folder in ("train", "val", "photos"):
        (tmp_path / folder).symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), flags=re.S | re.M)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    assert blocks
