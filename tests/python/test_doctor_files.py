# SPDX-License-Identifier: Apache-2.0
"""What a script under the doctor writes, saves and reports: it finds its own files, and nothing is left behind."""

import errno
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import doctor_scripts as scripts
import pytest
from stoker.doctor import __main__ as main
from stoker.doctor import runner, scratch

FILES = """
import glob, os, pathlib, pickle, shutil, subprocess, sys, tempfile
import stoker


def fails(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        return True
    return False


# A new file, also by a path in bytes, and seen by another process.
with open("index.txt", "w") as file:
    file.write("hello")
assert os.path.getsize("index.txt") == 5 and "index.txt" in os.listdir()
assert pathlib.Path("index.txt").read_text() == "hello" and "index.txt" in glob.glob("*.txt")
code = "import os; assert os.path.exists('index.txt'); print(open('index.txt').read(), end='')"
assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "hello"
open(b"bytes.bin", "wb").close()
assert os.path.exists(b"bytes.bin") and fails(open, "index.txt", "x") and fails(open, "nowhere/at/all", "w")

# A file that was there.
with open("mine.txt", "a") as file:
    file.write(" and new")
assert pathlib.Path("mine.txt").read_text() == "old and new"
os.remove("mine.txt")
assert not os.path.exists("mine.txt") and "mine.txt" not in os.listdir() and fails(open, "mine.txt")
open("mine.txt", "x").close()
assert os.path.getsize("mine.txt") == 0
os.chmod("other.txt", 0o600)
os.rename("other.txt", "moved.txt")
assert pathlib.Path("moved.txt").read_text() == "other" and not os.path.exists("other.txt")

# Folders, one of which was there.
shutil.rmtree("runs")
assert not os.path.exists("runs/old.txt") and fails(os.mkdir, "runs/a") and fails(os.rmdir, "runs")
os.makedirs("runs/a/b")
open("runs/a/b/x", "w").close()
os.rename("runs/a/b", "runs/a/c")
os.symlink("c", "runs/a/latest")
assert [folder for folder, _, _ in os.walk("runs")] == ["runs", "runs/a", "runs/a/c"]
assert os.listdir("runs/a/c") == os.listdir("runs/a/latest") == ["x"]
os.makedirs("new/deep")
assert fails(os.rmdir, "new") and fails(os.mkdir, "new")
shutil.copy2("index.txt", "new/deep/copy")
shutil.move("new/deep/copy", "new/moved")
os.link("new/moved", "new/linked")
os.rmdir("new/deep")
assert sorted(os.listdir("new")) == ["linked", "moved"] and os.path.getsize("new/linked") == 5

assert pickle.loads(pickle.dumps((os.stat, os.remove, open, os.replace))) == (os.stat, os.remove, open, os.replace)

# Temporary files beside the others, as for files that are replaced.
with tempfile.TemporaryDirectory(dir=".") as folder:
    pathlib.Path(folder, "x").touch()
    assert os.listdir(folder) == ["x"]
assert not os.path.exists(folder)


def batches():
    while True:
        with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
            file.write("x")
        os.replace(file.name, "state.json")
        with tempfile.NamedTemporaryFile(dir="."), tempfile.TemporaryFile(dir="."):
            assert os.path.exists("state.json")
        yield [1, 2, 3]


for batch in stoker.watch(batches()):
    pass
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a script once, as the doctor does; returns the result."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def call(source, *arguments, mode="as-is", limit=60, **plan):
        Path("train.py").write_text(source)
        plan = {"mode": mode, "seconds": 1.0, "steps": 8, **plan}
        return runner.run([sys.executable, *arguments, "train.py"], plan, tmp_path / "run", limit)

    return call


def here():
    """Everything below this folder: names, sizes and permissions."""
    return {str(p): (p.stat().st_mode, p.read_text() if p.is_file() else None) for p in Path().rglob("*")}


def test_a_script_finds_its_own_files(run):
    Path("runs").mkdir()
    for name, text in (("mine.txt", "old"), ("other.txt", "other"), ("runs/old.txt", "old"), ("train.py", FILES)):
        Path(name).write_text(text)
    before = here()
    result = run(FILES)
    assert (result.status, result.reason) == ("ok", None), result.stderr
    assert here() == before and result.left == result.new == []
    listed = result.record["disabled"]
    assert any(what.startswith("writing index.txt at train.py:") for what in listed)
    assert any(what.startswith("removing runs at train.py:") for what in listed) and len(listed) < 20


UNCAUGHT = """
import ctypes, os, sqlite3
import stoker

sqlite3.connect("log.db").close()
sqlite3.connect(":memory:").close()
os.system("echo hello >> system.log")
libc = ctypes.CDLL(None)
os.makedirs("out/deep")
os.makedirs("empty/deep")
libc.creat(b"out/deep/by-c", 0o644)
libc.creat(b"by-c", 0o644)
for batch in stoker.watch([[1]] * 20):
    pass
"""


def test_what_is_not_caught_is_listed(run):
    result = run(UNCAUGHT)
    assert result.status == "ok", result.stderr
    cwd = os.getcwd()
    assert result.record["extra"]["not_caught"] == [f"writes {cwd}/log.db", "starts echo hello >> system.log"]
    written = ("by-c", "log.db", "out", "out/deep", "system.log")
    assert sorted(result.left + result.new) == [f"{cwd}/{name}" for name in written]
    assert f"{cwd}/by-c" in result.new  # another program may have made it
    assert not Path("empty").exists()


def test_a_file_that_c_code_does_not_find(run):
    read = "import ctypes\n\nopen('list.txt', 'w').close()\nif ctypes.CDLL(None).open(b'list.txt', 0) < 0:\n"
    result = run(read + "    raise OSError('cannot open list.txt')\n")
    assert result.status == "failed" and "only Python code finds list.txt in the scratch folder" in result.reason


def test_a_script_that_loads_what_it_has_saved(run):
    pytest.importorskip("torch")
    source = "import torch\n\ntorch.save({}, 'best.pt')\ntorch.load('best.pt')\nraise SystemExit('done')\n"
    assert run(source).reason == "done"
    result = run(source, mode="what-if")
    assert "'best.pt' (the script saves best.pt, but functions that save are disabled in this run)" in result.reason


@pytest.mark.parametrize("name", ["HUGGING_FACE", "ACCELERATE", "KERAS", "LIGHTNING"])
def test_checkpoints_are_timed_and_not_kept(run, name):
    """In the scratch folder when the script runs as it is, and not at all in other runs."""
    for package in scripts.NAMES[name][0]:
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    source = getattr(scripts, name)
    for mode, written in (("as-is", True), ("what-if", False)):
        result = run(source, mode=mode, steps=30)
        assert result.status == "ok", result.stderr
        stalls = [stall for stall in result.record["run"]["stalls"] if stall["what"] == "checkpoint"]
        assert bool(stalls) == written
        assert result.record["disabled"] and os.listdir() == ["train.py"]


def test_checkpoints_outside_the_folder(run, tmp_path):
    """Also the files that a trainer writes beside those of torch.save()."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    result = run(scripts.HUGGING_FACE.replace('("out"', f'("{tmp_path}/elsewhere"'), steps=30)
    assert result.status == "ok", result.stderr
    assert [stall for stall in result.record["run"]["stalls"] if stall["what"] == "checkpoint"]
    assert not (tmp_path / "elsewhere").exists()


def test_event_files_of_tensorflow(run):
    pytest.importorskip("tensorflow")
    words = "import tensorflow as tf\n\ntf.summary.create_file_writer('logs').set_as_default()\n"
    result = run(words + scripts.TENSORFLOW)
    assert result.status == "ok", result.stderr
    assert os.listdir() == ["train.py"]
    assert "tensorflow.create_file_writer_v2 at train.py:3" in result.record["disabled"]


TRACKER = """
asked = []


def init(project=None, mode=None):
    asked.append((project, mode))


def begin(project=None):
    asked.append((project, None))
"""
TRACKS = """
import stoker, swanlab, wandb

wandb.init("cats", mode="online")
swanlab.begin("dogs")
assert wandb.asked == [("cats", "disabled")] and swanlab.asked == [("dogs", None)]
for batch in stoker.watch([[1]] * 20):
    pass
"""


def test_a_tracker_that_the_script_sets_online(run):
    """It is listed when it was disabled, and not when it was only imported."""
    Path("wandb.py").write_text(TRACKER)
    Path("swanlab.py").write_text(TRACKER.replace("def init", "def init_of_another_version"))
    result = run(TRACKS)
    assert result.status == "ok", result.stderr
    assert result.record["disabled"] == ["wandb.init at train.py:4"]
    assert result.record["extra"]["not_caught"] == ["uses swanlab.init"]


ENDLESS = """
import os, sys, time
import stoker


def batches():
    while True:
        time.sleep(0.002)
        yield [1, 2, 3]


def train():
    for batch in stoker.watch(batches()):
        pass

"""
LAUNCHER = f"""
import subprocess, sys

subprocess.run([sys.executable, "-c", {ENDLESS + "train()"!r}], check=True)
"""


def test_a_launcher_does_not_hang(run):
    """It takes no batches, but its child does."""
    result = run(LAUNCHER, patience=0.3, seconds=1.5, steps=None)
    assert (result.status, len(result.records)) == ("ok", 1), result.stderr


def test_why_no_batch_was_seen(run):
    assert "-I, -E and -S" in run("print()", "-I").reason
    fork = "\nif not os.fork():\n    train()\nos.wait()\n"
    assert "a process that it forked" in run(ENDLESS.replace("while True", "for _ in range(9)") + fork).reason
    slow = run("import time\n\ntime.sleep(600)\n", limit=1.0)
    assert (slow.status, slow.reason) == ("failed", "it did not end within 1 s")
    long = run(ENDLESS + "train()\n", seconds=600, steps=None, limit=2.0)
    assert long.record["run"]["steps"] > 3 and long.status == "ended"


def test_a_failure_of_the_doctor_itself(run):
    broken = "import importlib\n\nimportlib.import_module('stoker_doctor.record').make = lambda *_: 1 / 0\n"
    result = run(broken + ENDLESS + "train()\n")
    assert (result.status, result.reason) == ("failed", "the doctor itself failed: ZeroDivisionError: division by zero")
    assert "train.py" not in result.stderr.splitlines()[-2]


def alive(words):
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in path.read_bytes():
                return True
        except OSError:
            pass
    return False


def test_a_process_without_the_environment_is_ended(tmp_path):
    words = "import subprocess\n\nsubprocess.Popen(['env', '-i', 'setsid', 'sleep', '604.25'])\nraise ValueError\n"
    (tmp_path / "train.py").write_text(words)
    done = subprocess.run([sys.executable, "-m", "stoker.doctor", "train.py"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1 and not alive("604.25")


def test_a_full_disk_is_said_in_a_sentence(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(main.runner, "adopt_orphans", lambda: None)
    monkeypatch.setattr(main, "ENDS", ())
    monkeypatch.setattr(main.Scratch, "__enter__", full)
    assert main.main([__file__]) == 3
    assert capsys.readouterr().err == "stoker doctor: cannot use the scratch folder: No space left on device\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_a_doctor_that_is_killed_leaves_nothing(tmp_path, number):
    project, temporary, mark = tmp_path / "project", tmp_path / "temporary", f"killed-by-{number}"
    project.mkdir()
    temporary.mkdir()
    (project / "train.py").write_text("import os\n\nos.makedirs('out/a')\n" + ENDLESS + "train()\n")
    command = [sys.executable, "-m", "stoker.doctor", "train.py", mark]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=project, env=environment, stderr=subprocess.PIPE) as process:
        while not list(temporary.glob("*/run/out/beat")):
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
    until = time.monotonic() + 20
    while (list(temporary.iterdir()) or alive(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(temporary.iterdir()) == [] and not alive(mark)
    assert os.listdir(project) == ["train.py"]


def test_an_interrupted_run_counts_if_it_is_long_enough(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS + "open('begun', 'w').close()\ntrain()\n")
    command = [sys.executable, "-m", "stoker.doctor", "--seconds", "600", "--json", "found.json", "train.py"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not list(temporary.glob("*/run/files/**/begun")):
            time.sleep(0.05)
        time.sleep(1)  # some steps
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in error
    runs = json.loads((tmp_path / "found.json").read_text())["runs"]
    assert [(run["name"], run["status"]) for run in runs] == [("as-is", "ok")]


def test_the_scratch_folder_is_on_the_same_storage(tmp_path, monkeypatch):
    devices = {str(tmp_path): 1, str(tmp_path.parent): 1}
    monkeypatch.setattr(scratch.os, "stat", lambda path: SimpleNamespace(st_dev=devices.get(str(path), 2)))
    assert scratch.parent_of_scratch(tmp_path) == str(tmp_path.parent)
    devices[str(tmp_path)] = 3
    assert scratch.parent_of_scratch(tmp_path) == scratch.tempfile.gettempdir()
