# SPDX-License-Identifier: Apache-2.0
"""mypy --strict and pyright accept programs that use the package correctly, and report each mistake."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stoker
from stoker._arguments import Options

HERE = Path(__file__).parent
RIGHT, WRONG = HERE / "typing_right.py", HERE / "typing_wrong.py"


def program(*names):
    """One of them: beside the interpreter, or in PATH."""
    for name in names:
        found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
        if found:
            return found
    pytest.skip(f"{' and '.join(names)} are not installed" if len(names) > 1 else f"{names[0]} is not installed")


def mypy(cache):
    command = [program("mypy"), "--strict", "--config-file", "", "--python-executable", sys.executable]
    command += ["--cache-dir", str(cache), str(RIGHT), str(WRONG)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cache)
    lines = re.findall(r"^(.*?):(\d+): error: (.*)", done.stdout, flags=re.M)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {(Path(name).name, int(line)): text for name, line, text in lines}


def pyright(folder):
    checker = program("pyright", "basedpyright")
    config = {"include": [str(RIGHT), str(WRONG)], "typeCheckingMode": "standard", "reportUnusedExpression": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [checker, "--pythonpath", sys.executable, "--outputjson", "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    return {(Path(d["file"]).name, d["range"]["start"]["line"] + 1): d["message"] for d in found}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker(checker, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    errors = checker(tmp_path)
    assert {at: text for at, text in errors.items() if at[0] == RIGHT.name} == {}
    lines = WRONG.read_text().splitlines()
    wrong = {n for n, line in enumerate(lines, 1) if line.endswith("# wrong")}
    reported = {n for name, n in errors if name == WRONG.name}
    assert [lines[n - 1] for n in sorted(wrong ^ reported)] == []


def test_the_options_are_the_arguments():
    """Loader's arguments are written twice: by name, and for type checkers."""
    named = {"source", "transform", "batch_size", "shuffle", "fields", "as_dict", "collate_fn", "batch_fn", "output"}
    assert set(inspect.signature(stoker.Loader).parameters) == named | set(Options.__annotations__)


def test_the_package_says_that_it_is_typed():
    assert (Path(stoker.__file__).parent / "py.typed").exists()
