# SPDX-License-Identifier: Apache-2.0
"""Whole runs of the doctor on real scripts. No time is asserted."""

import importlib
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import doctor_cases as cases
import doctor_scripts as scripts
import pytest
import stoker
from stoker.doctor import __main__ as main
from stoker.doctor import runner, verdict
from stoker.doctor.examine import Examination, Options, duplicates

PLAIN = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


def slow(x):
    for _ in range(5):
        x = x.sort()[0]
    return x


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return slow(torch.randn(2000, generator=torch.Generator().manual_seed(i))), i % 4


loader = DataLoader(Numbers(), batch_size=8, shuffle=True)
model = torch.nn.Linear(2000, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
epochs = int(sys.argv[1])
for epoch in range(epochs):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def line_of(words):
    """file:line of the first line that begins with these words."""
    return f"train.py:{[line.startswith(words) for line in PLAIN.splitlines()].index(True) + 1}"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script; returns a function that makes an examination of it."""
    monkeypatch.chdir(tmp_path)

    def make(source, *arguments, **more):
        (tmp_path / "train.py").write_text(source)
        words = ["train.py", *map(str, arguments)]
        return Examination(Options([sys.executable, *words], words, scratch=tmp_path / "scratch", **more))

    return make


def doctor(*words, **more):
    command = [sys.executable, "-m", "stoker.doctor", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, **more)


def test_from_the_start_to_a_report(tmp_path):
    """As it is, the model, the loader and a what-if, in fresh processes."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PLAIN)
    done = doctor("--seconds", 10, "--try", "stoker", "--json", "found.json", "train.py", 1000, cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    runs = {run["name"]: run for run in found["runs"]}
    assert {runs[name]["status"] for name in ("as-is", "model", "loader", "stoker")} == {"ok"}
    assert found["loader"]["kind"] == "torch.DataLoader" and found["loader"]["at"] == line_of("loader =")
    assert found["loader"]["batch_size"] == 8 and found["loader"]["samples"] == 64
    assert {"name": "slow", "at": line_of("def slow")}.items() <= found["stages"]["transforms"][0].items()
    assert runs["as-is"]["loss"][0] == pytest.approx(runs["stoker"]["loss"][0])
    assert "as it is" in done.stdout and "Stoker's DataLoader" in done.stdout
    assert [name for name in os.listdir(tmp_path) if name not in ("train.py", "found.json")] == []
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    known = set(re.findall(r"`([\w-]+)`", page))
    parts = [found, found["loader"], found["machine"], *runs.values()]
    parts += [run[name] for run in runs.values() for name in ("cpu", "io", "memory") if run.get(name)]
    assert [name for part in parts for name in part if name not in known] == []


def test_the_script_computes_the_same(script, tmp_path):
    pytest.importorskip("torch")
    one = script(PLAIN, 2)
    alone = subprocess.run([sys.executable, "train.py", "2"], capture_output=True, text=True, timeout=300)
    assert one.as_is()
    printed = (Path("scratch") / "run" / "stdout").read_text()
    assert printed == alone.stdout and len(printed.splitlines()) == 16
    losses = one.document["runs"][0]["loss"]
    assert losses == pytest.approx([float(line) for line in printed.splitlines()])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        ("print('nothing')\n", "ended without taking a batch"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "killed by signal SIGKILL"),
    ],
)
def test_a_script_that_cannot_be_measured(script, source, words):
    one = script(source)
    assert not one.as_is()
    run = one.judged()["runs"][0]
    assert run["status"] == "failed" and words in run["reason"]


def test_when_no_other_what_if_is_run(script):
    one = script("")
    runs = [cases.slow(), *cases.CEILINGS]
    for more, settled in (
        ([], False),
        ([cases.run("stoker", 1500)], False),  # 2.5x, and the model alone reaches 3.2x
        ([cases.run("stoker", 1600)], True),
        ([cases.run("model", 9000, kind="ceiling"), cases.run("stoker", 2500)], True),  # 4.2x
        ([{**cases.MODEL, "status": "failed", "samples_per_s": None}, cases.run("stoker", 1600)], False),
    ):
        names = {run["name"] for run in more}
        one.document = cases.measurement(*(run for run in runs if run["name"] not in names), *more)
        assert one._is_settled() == settled


def test_a_larger_cause_that_was_put_off_is_tried_too(script):
    """Few reads of values come before the many launches that are only inferred."""
    one = script("")
    base = cases.busy(gpu={"busy": 0.15}, syncs=[{"at": "train.py:16", "ms": 5.0, "calls": 98}])
    runs = [base, cases.OK_MODEL, cases.FAST_LOADER]
    for more, settled in (
        ([cases.run("no-sync", 1180)], False),
        ([cases.run("no-sync", 1180), cases.run("compile", 1020)], True),
        ([cases.run("no-sync", 4100)], True),
    ):
        one.document = cases.measurement(*runs, *more, machine=cases.GPU)
        assert one._is_settled() == settled, more


def test_pauses_between_epochs_count_as_often_as_epochs(monkeypatch):
    monkeypatch.syspath_prepend(runner.INSIDE)
    whole = importlib.import_module("stoker_doctor.record").whole_epochs
    for steps, starts, kept in ((50, [0, 20, 40], 40), (35, [0, 20], 35), (9, [0], 9), (0, [], 0)):
        assert len(whole([{}] * steps, starts)) == kept


def loop_of(module, number, times, **more):
    """A loop of batches that were taken from begin to end, in one epoch."""
    loop = module.Loop(None, "iterable", f"train.py:{number}")
    loop.begin, loop.end = map(list, zip(*times, strict=True))
    loop.sizes, loop.updates, loop.epochs, loop.at_loop = [4] * len(times), [0] * len(times), [0], loop.at
    for name, value in more.items():
        setattr(loop, name, value)
    return loop


@pytest.fixture
def record(monkeypatch):
    """The module that makes the record of a run, with its own list of loops."""
    monkeypatch.syspath_prepend(runner.INSIDE)
    module = importlib.import_module("stoker_doctor.record")
    monkeypatch.setattr(module.probe, "loops", [])
    monkeypatch.setattr(module.probe, "plan", {})
    monkeypatch.setattr(module.probe, "optimizer", [])
    return module


def test_loaders_that_take_turns(record, monkeypatch):
    """As in the training of a GAN: the second loader is waited for, and it is no evaluation."""
    probe = record.probe
    first = loop_of(probe, 1, [(10 * i, 10 * i + 1) for i in range(6)], closed=[60], updates=[2 * i for i in range(6)])
    second = loop_of(probe, 2, [(10 * i + 2, 10 * i + 7) for i in range(6)], updates=first.updates)
    probe.loops += [first, second]
    monkeypatch.setattr(probe, "updates", 12)
    assert record.training_loop() is second  # it takes longer
    evaluations, turns = record.other_loaders(first, 60)
    assert evaluations == [] and turns == list(zip(second.begin, second.end, strict=True))
    steps = record.finished_steps(first)
    record.add_turns(steps, turns)
    assert [step["wait"] for step in steps] == [6] * 6


def test_an_evaluation_that_is_left_early(record):
    """It ends with its last batch, not when a later evaluation ends."""
    probe = record.probe
    training = loop_of(probe, 1, [(10 * i, 10 * i + 1) for i in range(6)], closed=[90])
    check = loop_of(probe, 2, [(-9, -8), (-7, -6), (61, 62), (63, 64)], epochs=[0, 2], closed=[70])
    probe.loops += [training, check]
    evaluations, turns = record.other_loaders(training, 90)
    assert [span[2:] for span in evaluations] == [(-9, -6), (61, 70)] and turns == []
    assert record.overhead([]) == record.overhead([{"all": 0.0}]) == {"us_per_step": 0.0, "share": 0.0}


def test_the_time_of_several_optimizers(record):
    record.probe.optimizer += [(0.5, 0.001), (1.5, 0.002), (1.7, 0.003), (5.0, 9.0)]
    steps = [{"begin": 0.0, "end": 1.0}, {"begin": 1.0, "end": 2.0}]
    assert record.optimizer_times(steps) == pytest.approx([1.0, 5.0])


def test_a_closure_is_not_the_optimizer(record, monkeypatch):
    """Lightning runs the model inside optimizer.step()."""
    torch = pytest.importorskip("torch")
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    now = [0.0]

    def closure():
        now[0] += 5.0
        return (weight * 2).sum()

    with stoker.doctor(quiet=True):
        monkeypatch.setattr(record.probe, "clock", lambda: now[0])
        assert float(optimizer.step(closure)) == float(optimizer.step(closure=closure)) == 2.0
        optimizer.step()
        assert [took for _, took in record.probe.optimizer] == [0.0, 0.0, 0.0]
        monkeypatch.undo()


def test_the_function_that_makes_batches(capsys):
    sampler, found = [], []

    def batches():
        for i in range(4):
            found.append(sampler[0].loader_function(sys._getframe(), True))
            yield i

    with stoker.doctor(quiet=True):
        sampler.append(importlib.import_module("stoker_doctor.sampler"))
        for _ in stoker.watch(batches()):
            assert sampler[0].loader_function(sys._getframe(), True) is None
    assert [name for name, _ in found] == ["batches"] * 4


def test_arguments():
    for words, said in (
        ((), "usage: stoker doctor"),
        (("--help",), "usage: stoker doctor"),
        (("gone.py",), "gone.py: file not found"),
        (("--secnds", "3", "x.py"), "unknown option --secnds"),
        (("--seconds", "nan", __file__), "a number above 0"),
        (("--html", "gone/x.html", __file__), "there is no folder gone"),
        (("--", "no-such-command"), "no-such-command: command not found; check PATH"),
    ):
        done = doctor(*words)
        assert said in done.stdout + done.stderr
        assert done.returncode == (0 if "usage" in said else 2)


def test_values_of_options():
    for given in ("-1", "0", "nan", "inf", "x"):
        with pytest.raises(main.UsageError, match="above 0"):
            main.positive({"seconds": given}, "seconds", float)
    for given in ("without", "without=", "workers=x", "al"):
        with pytest.raises(main.UsageError, match="unknown what-if"):
            main.names_of(given)
    assert main.names_of("without=blur,workers=2") == ["without=blur", "workers=2"]


def test_files_are_checked_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doctor.patch").touch()
    (tmp_path / "file").touch()
    for options, words in (
        ({"json": "gone/x.json"}, "there is no folder gone"),
        ({"trace": "."}, "this is a folder"),
        ({"tensorboard": "file/logs"}, "there is no folder"),
        ({"apply": True}, "doctor.patch exists"),
    ):
        with pytest.raises(main.UsageError, match=words):
            main.check_files(options)
    main.check_files({"json": "-", "html": "x.html", "trace": "file", "tensorboard": "new/logs"})


def test_what_is_printed_can_always_be_printed(tmp_path, monkeypatch):
    """JSON has no NaN, and names of files may not be UTF-8."""
    document = {**cases.measurement(cases.busy(loss=[1.0, float("nan")])), "command": ["train\udcff.py"]}
    monkeypatch.chdir(tmp_path)
    files = {"json": "x.json", "html": "x.html", "trace": "x.trace", "tensorboard": "logs"}
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    main.print_any_name()
    main.write(verdict.judge(document), files)
    assert json.loads((tmp_path / "x.json").read_text())["runs"][0]["loss"] == [1.0, None]
    assert "NaN" not in (tmp_path / "x.json").read_text()


def test_the_document_is_alone_on_stdout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main.report, "patch", lambda document: "")
    main.write(cases.measurement(cases.busy()), {"json": "-", "apply": True})
    out, error = capsys.readouterr()
    assert json.loads(out) and "wrote doctor.patch" in error


def test_what_was_asked_for_runs_in_addition(script):
    """The what-if that proves the cause runs first, and again none that has run."""
    one = script("", tries=["stoker", "workers=4"])
    one.document = cases.measurement(cases.slow(), *cases.CEILINGS, stages=cases.CASES["transform"]["stages"])
    ran = []
    one.what_if = lambda name: (ran.append(name), one.document["runs"].append(cases.run(name, 1800)))
    one.what_ifs()
    assert ran == ["without=blur", "stoker", "workers=4"]


@pytest.mark.parametrize("name", scripts.NAMES)
def test_frameworks(script, tmp_path, name):
    """The loop of every framework is recognised, and nothing is left behind."""
    packages, kind, batch = scripts.NAMES[name]
    for package in packages:
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    one = script(getattr(scripts, name), steps=12)
    assert one.as_is(), one.stderr
    run = one.document["runs"][0]
    assert run["steps"] >= 5 and run["samples_per_s"] > 0
    assert (one.document["loader"]["kind"], one.document["loader"]["batch_size"]) == (kind, batch)
    assert one.document["loader"]["at"].startswith("train.py:")
    assert sorted(os.listdir(tmp_path)) == ["scratch", "train.py"]
    if name in ("LIGHTNING", "ACCELERATE", "HUGGING_FACE", "KERAS"):
        assert run["loss"] and one.document["disabled"]


IMAGES = (
    scripts.SHIM
    + """
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

ops = transforms.Compose([transforms.Resize((24, 24)), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder("photos", ops), batch_size=4, shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)
JOIN = """
def join(rows):
    return torch.ones(len(rows), 2000), torch.tensor([row["n"] % 4 for row in rows])


loader = """
TEXTS = (
    PLAIN.replace("slow(torch.randn(2000, generator=torch.Generator().manual_seed(i))), i % 4", "{'n': i}")
    .replace("loader = ", JOIN)
    .replace("shuffle=True)", "shuffle=True, collate_fn=join)")
    .replace("range(epochs)", "range(10**6)")
)
LENGTHS = scripts.JAX.replace("size=(8, 16))", "size=(8, rng.integers(4, 20), 16))").replace(
    "x @ w)", "(x @ w).mean(1))"
)
COMPILED = """
import tensorflow as tf

w = tf.Variable(tf.zeros((16, 4)))
data = tf.data.Dataset.from_tensor_slices((tf.random.normal((64, 16)), tf.zeros((64,), tf.int32))).batch(8)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ w))
    w.assign_sub(0.1 * tape.gradient(loss, w))


while True:
    for x, y in data:
        step(x, y)
"""
WHAT_IFS = {  # a script and the packages that it needs
    "fetch": (PLAIN.replace("range(epochs)", "range(10**6)"), "torch"),
    "collate": (TEXTS, "torch"),  # whose samples torch would stack to something else
    "pack": (IMAGES, "torchvision"),
    "draft": (IMAGES, "torchvision"),
    "fixed-shapes": (LENGTHS, "jax"),
    "jit": (scripts.JAX.replace("@jax.jit\n", ""), "jax"),
    "compile": (COMPILED, "tensorflow"),
    "parallel": (scripts.TENSORFLOW.replace(".batch(8)", ".map(lambda x, y: (2 * x, y)).batch(8)"), "tensorflow"),
}


@pytest.mark.parametrize("name", WHAT_IFS)
def test_what_ifs_that_replace_data_or_steps(script, tmp_path, name):
    source, package = WHAT_IFS[name]
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    if source is IMAGES:
        images = pytest.importorskip("PIL.Image")
        for i in range(16):
            path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            images.new("RGB", (40, 30), (i, 2 * i, 3 * i)).save(path)
    one = script(source, 1, steps=12)
    assert one.as_is(), one.stderr
    run = one.what_if(name)
    assert (run["status"], run["reason"]) == ("ok", None), one.last.stderr
    assert run["change"] and run["steps"] >= 5
    if name == "fixed-shapes":
        assert one.document["runs"][0]["shapes"] > run["shapes"] == 1
    if name == "jit":
        assert not one.document["runs"][0].get("jitted")


def test_in_a_running_program(capsys):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(torch.arange(64.0), batch_size=4)
    with stoker.doctor() as found:
        for batch in loader:
            batch.sum()
    assert found.document["runs"][0]["steps"] == 14 and found.document["loader"]["batch_size"] == 4
    assert "as it is" in capsys.readouterr().out
    with stoker.doctor(quiet=True) as other:
        for _ in stoker.watch([1, 2, 3, 4, 5]):
            pass
    assert other.document["loader"]["kind"] == "iterable"
    assert list(stoker.watch([1, 2])) == [1, 2]  # outside a block it does nothing


def test_a_function_that_trains_cannot_be_left_out(script):
    """A run without it would be fast."""
    loop = PLAIN.replace("        loss = torch", "        step(x, y)\n\n", 1)
    body = "def step(x, y):\n    loss = torch.nn.functional.cross_entropy(model(x), y)\n    loss.backward()\n"
    source = loop[: loop.index("        step(x, y)")] + "        step(x, y)\n"
    source = source.replace("epochs = ", body + "    optimizer.step()\n\n\nepochs = ")
    one = script(source, 4, steps=8)
    assert one.as_is()
    left_out = one.what_if("without=step")
    assert (left_out["status"], left_out["reason"]) == ("failed", "without it, the script does not train")


SPAWNED = """
import torch
from torch.utils.data import DataLoader, Dataset


def add(x):
    return x + 1


class Zeros(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return add(torch.zeros(1))


if __name__ == "__main__":
    loader = DataLoader(Zeros(), 4, num_workers=1, multiprocessing_context="spawn", persistent_workers=True)
    weight = torch.ones(1, requires_grad=True)
    for epoch in range(10):
        for x in loader:
            (x * weight).sum().backward()
"""


def test_a_function_is_left_out_of_workers_that_are_not_forked(script):
    pytest.importorskip("torch")
    one = script(SPAWNED, steps=8)
    assert one.as_is() and set(one.document["runs"][0]["loss"]) == {4.0}
    left_out = one.what_if("without=add")
    assert left_out["status"] == "ok" and set(left_out["loss"]) == {0.0}


def test_what_is_kept_does_not_fragment_the_memory():
    """No small block per step stays in between what the script frees."""
    torch = pytest.importorskip("torch")
    weight = torch.ones(1, requires_grad=True)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64), torch.arange(64)), 4)
    with stoker.doctor(quiet=True):
        for x, _ in loader:
            (x * weight).sum().backward()
        probe = importlib.import_module("stoker_doctor.probe")
        labels, losses = probe.loops[0].labels, probe.losses
        assert [x for row in labels for x in row.tolist()] == list(range(64))
        assert len({row.untyped_storage().data_ptr() for row in labels}) == 1
        assert [loss for _, loss in losses] == [4.0] * 16


ENDLESS = """
import subprocess, sys, time
import stoker

if "--leave" in sys.argv:  # a process that outlives its parent
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


def batches():
    while True:
        time.sleep(0.002)
        yield [1, 2, 3]


for batch in stoker.watch(batches()):
    pass
"""


def processes_with(words):
    """Command lines of running processes that contain these words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in line and int(pid) != os.getpid():
            found.append(line)
    return found


def test_nothing_is_left_running(script):
    one = script(ENDLESS.replace("600", "601.25"), "--leave", steps=20)
    assert one.as_is(), one.stderr
    assert processes_with("time.sleep(601.25)") == []


FORKS = ENDLESS.replace("if ", "import os\n\nif not os.fork():\n    time.sleep(602.25)\n\nif ", 1)


def test_a_script_that_forks(script):
    """The child takes no part in the measurement, and does not outlive it."""
    one = script(FORKS, "forked-602.25", steps=20)
    assert one.as_is(), one.stderr
    assert len(one.last.records) == 1
    assert processes_with("forked-602.25") == []


def test_a_script_that_fails_after_some_batches(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS + "    raise ValueError('no such class')\n")
    done = doctor("train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "The script failed: ValueError: no such class." in done.stdout
    assert 'File "' in done.stderr and "train.py" in done.stderr


def test_a_script_that_ends_too_soon(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS.replace("while True:", "for _ in range(4):"))
    done = doctor("train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "which is too few; give it more epochs" in " ".join(done.stdout.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_what_is_known(tmp_path, number):
    (tmp_path / "train.py").write_text(ENDLESS.replace("600", "603.25"))
    command = [sys.executable, "-m", "stoker.doctor", "--json", "found.json", "--steps", "200", "train.py", "--leave"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert "as it is" in process.stderr.readline()  # the first run has ended
        process.send_signal(number)
        out, error = process.communicate(timeout=200)
    assert "interrupted" in error and "as it is" in out
    assert process.returncode == 130
    assert json.loads((tmp_path / "found.json").read_text())["runs"][0]["status"] == "ok"
    assert processes_with("time.sleep(603.25)") == []


def test_a_script_that_hangs(script, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 2.0)
    one = script("import time\n\n\ndef stuck_here():\n    time.sleep(500)\n\n\nstuck_here()\n")
    assert not one.as_is()
    assert "it took no batch" in one.document["runs"][0]["reason"]
    assert "stuck_here" in one.stderr


def test_a_loss_that_is_nan(script):
    pytest.importorskip("torch")
    source = PLAIN.replace("loss = ", "loss = (1.0 if epoch == 0 else float('nan')) * ")
    one = script(source, 2)
    assert one.as_is(), one.stderr
    assert one.document["checks"]["loss_nan_step"] == 8
    assert "loss-nan" in [alarm["id"] for alarm in one.judged()["alarms"]]


def test_a_failure_that_a_change_removes(script):
    """Workers that run out of shared memory: the what-ifs run all the same."""
    pytest.importorskip("torch")
    words = "DataLoader worker is killed by signal: Bus error. It is out of shared memory"
    source = PLAIN.replace("shuffle=True)", "shuffle=True, num_workers=1)").replace(
        "        loss = ", f"        if loader.num_workers:\n            raise RuntimeError({words!r})\n        loss = "
    )
    found = script(source, 2, tries=["workers=0"]).all()
    assert found["verdict"] and (found["verdict"]["id"], found["verdict"]["run"]) == ("shared-memory", "workers=0")


def test_what_ifs_read_from_storage_as_the_script_did(monkeypatch):
    """Once per loader: the script's first run has left its files in memory."""
    monkeypatch.syspath_prepend(runner.INSIDE)
    what_ifs = importlib.import_module("stoker_doctor.what_ifs")
    evicted = []
    monkeypatch.setattr(what_ifs.alone, "evict", evicted.append)
    loader = SimpleNamespace(dataset=SimpleNamespace(paths=["a.jpg", "b.jpg"]))
    what_ifs.read_from_storage(loader)
    assert evicted == []  # the run as it is found them in memory
    monkeypatch.setitem(what_ifs.probe.plan, "reads_disk", True)
    what_ifs.read_from_storage(loader)
    what_ifs.read_from_storage(loader)
    assert evicted == [["a.jpg", "b.jpg"]]


def test_an_exit_status_without_a_message(tmp_path):
    failed = runner._result(SimpleNamespace(returncode=3), tmp_path, runner.History(0), 1.0, "\n", False, 9.0)
    assert (failed.status, failed.reason) == ("failed", "it ended with exit status 3 and no message")


RANK_FAILED = """
[rank0]: Traceback (most recent call last):
[rank0]: RuntimeError: Connection closed by peer
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
  train.py FAILED
"""


def test_a_rank_that_is_done_first(tmp_path):
    """The other rank loses its connection; that is no failure of the script, unless no rank was done."""
    process = SimpleNamespace(returncode=1)
    ended = {"rank": 0, "status": "ended", "run": {"steps": 40}}
    (tmp_path / "0.json").write_text(json.dumps(ended))
    failed = runner._result(process, tmp_path, runner.History(0), 1.0, RANK_FAILED, False, 9.0)
    assert (failed.status, failed.reason) == ("failed", "RuntimeError: Connection closed by peer")
    (tmp_path / "1.json").write_text(json.dumps({**ended, "rank": 1, "status": "ok"}))
    assert runner._result(process, tmp_path, runner.History(0), 1.0, RANK_FAILED, False, 9.0).status == "ok"


def test_ranks(script, tmp_path):
    """torchrun: a record per rank, and ranks that read the same samples are noticed."""
    pytest.importorskip("torch")
    one = script(PLAIN, 3)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    one.options.command = [*launcher, "train.py", "3"]
    assert one.as_is(), one.stderr
    assert [rank["rank"] for rank in one.document["runs"][0]["ranks"]] == [0, 1]
    assert one.document["checks"]["rank_duplicates"] == 1.0
    assert one.document["checks"]["rank_compared"] == "indices" and "taken" not in one.document["checks"]


def test_ranks_that_take_the_same_samples():
    def share(what, *ranks):
        return duplicates([{"what": what, "batches": batches} for batches in ranks]).get("rank_duplicates")

    assert share("indices", [["0", "1"], ["2", "3"]], [["0", "1"], ["2", "3"]]) == 1.0
    assert share("indices", [["0", "1"], ["2", "3"]], [["2", "3"], ["0", "1"]]) == 0.0  # another order
    assert share("indices", [["0", "1"]], [["0", "2"]], [["0", "1"]]) == pytest.approx(5 / 6)
    labels = [[0, 1, 2, 3] * 8]
    assert share("labels", labels, labels) == 1.0
    assert share("labels", labels, [labels[0][::-1]]) == 0.0
    assert share("labels", [[0, 1] * 16], [[0, 1] * 16]) is None  # too few classes
    assert share("indices", [["0"]]) is None and share("labels", [], []) is None
    assert duplicates([{"what": "labels", "batches": labels}, {"what": "indices", "batches": [["0"]]}]) == {}


def test_collate_is_not_called_after_two_batches(monkeypatch):
    """From the third batch on, unless torch stacks the samples to the same batch."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(runner.INSIDE)
    cheap = importlib.import_module("stoker_doctor.what_ifs").CheapCollate
    calls = []

    def join(rows):
        calls.append(rows)
        return torch.tensor([len(row) for row in rows])

    collate = cheap(join)
    batches = [collate(["a", "bc"]) for _ in range(6)]
    assert len(calls) == 2 and all(batch.tolist() == [1, 2] for batch in batches)
    stacks = cheap(lambda rows: calls.append(rows) or torch.stack(rows))
    assert all(stacks([torch.ones(3)] * 2).shape == (2, 3) for _ in range(6)) and len(calls) == 3


@pytest.mark.parametrize(("rate", "kept"), [(1200, 1200), (500, 600)])
def test_the_faster_run_of_the_script_counts(script, monkeypatch, rate, kept):
    """What other runs have told of the first one stays known."""
    one = script("")
    first = cases.slow(600, gpu={"kernels": 3.0}, comm_ms={"mean": 2.0})
    again = cases.slow(rate)
    one.document.update(cases.measurement(first, *cases.CEILINGS, cases.STOKER))
    monkeypatch.setattr(one, "run", lambda *_, **more: one.document["runs"].append(again) or again)
    one._as_is_again()
    runs = one.document["runs"]
    assert [run["name"] for run in runs] == ["as-is", "model", "loader", "stoker"]
    assert (runs[0]["samples_per_s"], one.document["as_is_again"]) == (kept, 600 + rate - kept)
    assert runs[0]["gpu"] == {"kernels": 3.0} and runs[0]["comm_ms"] == {"mean": 2.0}
