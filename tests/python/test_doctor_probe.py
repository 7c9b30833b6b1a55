# SPDX-License-Identifier: Apache-2.0
"""The part of the doctor inside a script: which loops it tells apart, what a batch has, and what a run records."""

import gc
import importlib
import os
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
import stoker
from stoker.doctor import examine, here, machine, report, runner, trace
from stoker.doctor.machine import History, Sample


@pytest.fixture
def probe(monkeypatch):
    """The module, without what other tests have measured."""
    monkeypatch.syspath_prepend(runner.INSIDE)
    module = importlib.import_module("stoker_doctor.probe")
    device = importlib.import_module("stoker_doctor.device")
    names = ("plan", "loops", "stalls", "running", "extra", "optimizer", "computing", "at_open", "losses")
    for name in names:
        monkeypatch.setattr(module, name, type(getattr(module, name))())
    monkeypatch.setattr(module, "device", device)
    monkeypatch.setattr(module, "updates", 0)
    monkeypatch.setattr(device, "events", {})
    return module


def inside(name):
    return importlib.import_module(f"stoker_doctor.{name}")


# ---------------------------------------------------------------- loops


def numbers(n=4):
    yield from range(n)


def run_epoch(batches):
    for _ in stoker.watch(batches):
        pass


def loops_of(script):
    """The number of epochs of every loop of a script."""
    with stoker.doctor(quiet=True):
        script()
        loops = sys.modules["stoker_doctor.probe"].loops
        return [len(loop.epochs) for loop in loops]


def test_training_and_evaluation_in_one_function():
    def script():
        for _ in range(3):
            run_epoch(numbers())
            run_epoch(numbers())

    assert loops_of(script) == [3, 3]


@pytest.mark.parametrize("make", [lambda: [1, 2, 3], numbers, lambda: zip("ab", "cd", strict=True)])
def test_a_new_iterable_for_every_epoch(make):
    def script():
        for _ in range(3):
            batches = stoker.watch(make())
            for _ in batches:
                pass

    assert loops_of(script) == [3]


def test_two_iterables_on_one_line():
    def script():
        both = numbers(), numbers()
        for batches in both:
            for _ in stoker.watch(batches):
                pass

    assert loops_of(script) == [1, 1]


def test_loaders_of_one_helper():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(8)), torch.utils.data.TensorDataset(torch.arange(8))

    def make(dataset):
        return torch.utils.data.DataLoader(dataset, 4)

    def kept():  # as many batches, at one line, of two datasets
        loaders = [make(dataset) for dataset in data]
        for _ in range(2):
            for loader in loaders:
                for _ in loader:
                    pass

    def anew():
        for _ in range(3):
            for _ in make(data[0]):
                pass

    def same_dataset():
        loaders = [make(data[0]) for _ in range(3)]
        for loader in loaders:
            for _ in loader:
                pass

    assert (loops_of(kept), loops_of(anew), loops_of(same_dataset)) == ([2, 2], [3], [3])


def test_watched_iterators_can_be_asked_for_one_batch():
    with stoker.doctor(quiet=True) as found:
        batches = stoker.watch(numbers(9))
        assert batches and next(batches) == 0 and list(batches) == list(range(1, 9))
    assert found.document["runs"][0]["steps"] > 0


def test_a_second_block_forgets_the_first():
    with stoker.doctor(quiet=True):
        sampler, device = inside("sampler"), inside("device")
        sampler.counts["host"], sampler.hot["f", "a.py:1"], sampler.seen, device.syncs["a.py:2"] = 9, 9, 9, [1.0, 1.0]
    with stoker.doctor(quiet=True):
        assert not sampler.hot and not device.syncs and sampler.seen <= 1


def test_a_block_that_fails_can_be_followed_by_another(monkeypatch):
    """The exception of the block is raised, and not that of the doctor."""
    with stoker.doctor(quiet=True):
        record = inside("record")
    with monkeypatch.context() as patch:
        patch.setattr(record, "make", lambda *_: 1 / 0)
        with pytest.raises(KeyError), stoker.doctor(quiet=True):
            raise KeyError
        with pytest.raises(ZeroDivisionError), stoker.doctor(quiet=True):
            pass
        patch.setattr(here.machine, "History", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError), stoker.doctor(quiet=True):
            pass
    with stoker.doctor(quiet=True):
        pass


def test_after_a_block_nothing_is_kept():
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    with stoker.doctor(quiet=True):
        optimizer.step()
    optimizer.step()
    assert len(inside("probe").optimizer) == inside("probe").updates == 1


# ---------------------------------------------------------------- batches


class Array:
    def __init__(self, *shape):
        self.shape = shape


IMAGES = Array(3, 8, 9), Array(3, 7, 5), Array(3, 6, 6), Array(3, 5, 5)


@pytest.mark.parametrize(
    ("batch", "expected", "samples"),
    [
        (Array(16, 3, 8, 8), 16, 16),
        ([Array(16, 3, 8, 8), Array(16)], 0, 16),
        ([Array(5, 3, 8, 8), Array(5)], 16, 5),  # the last of an epoch
        ((IMAGES, ({}, {}, {}, {})), 4, 4),  # tuple(zip(*batch)) of a detector
        ((IMAGES, ({}, {}, {}, {})), 0, 4),
        (({"boxes": Array(7, 4)},) * 2, 2, 2),
        (list(IMAGES), 4, 4),
        ([{"image": image} for image in IMAGES], 0, 4),
        ([(image, 1) for image in IMAGES], 0, 4),
        ({"image": list(IMAGES), "label": Array(4)}, 0, 4),
        ({"input_ids": Array(8, 128), "labels": Array(8)}, 0, 8),
        ([[Array(8, 3, 4, 4), Array(8, 3, 4, 4)], Array(8)], 0, 8),  # two views of every image
        ([1, 2, 3], 0, 3),
    ],
)
def test_samples_of_a_batch(probe, batch, expected, samples):
    assert probe.size_of(batch, expected) == samples


def test_a_batch_that_is_changed_in_place(probe):
    """The model alone gets it as it was at first, in the same memory."""
    torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")
    images, marks = torch.full((2, 3), 255.0), np.array([1.0, 2.0])
    with torch.inference_mode():
        other = torch.ones(2)
    repeated = inside("repeat").Repeated({"images": images, "more": [marks, other], "name": "x"})
    for _ in range(3):
        batch = repeated.again()
        assert batch["images"] is images and images.tolist() == [[255.0] * 3] * 2
        assert marks.tolist() == [1.0, 2.0] and other.tolist() == [1.0, 1.0] and batch.pop("name") == "x"
        images.div_(255)
        marks /= 2
        with torch.inference_mode():
            other.mul_(3)


def test_the_time_for_that_is_no_part_of_a_step(probe):
    loop = loop_of(probe, [(10 * i, 10 * i + 4) for i in range(30)], closed=[300], own={i: 3.0 for i in range(30)})
    found = inside("record").numbers(loop, 301)
    assert found["step_ms"]["mean"] == pytest.approx(7e3) and found["wait_share"] == pytest.approx(1 / 7)


# ---------------------------------------------------------------- the record


def loop_of(probe, times, **more):
    """A loop of batches that were taken from begin to end, in one epoch."""
    loop = probe.Loop(None, "iterable", f"train.py:{len(probe.loops)}")
    loop.begin, loop.end = map(list, zip(*times, strict=True))
    loop.sizes, loop.updates, loop.epochs, loop.at_loop = [4] * len(times), [0] * len(times), [0], loop.at
    for name, value in more.items():
        setattr(loop, name, value)
    probe.loops.append(loop)
    return loop


def test_an_evaluation_that_the_run_does_not_outlast(probe):
    """2 s of training, and an evaluation that goes on when the run ends."""
    training = loop_of(probe, [(0.1 * i, 0.1 * i + 0.01) for i in range(20)], closed=[2.0])
    loop_of(probe, [(2.0 + i, 2.5 + i) for i in range(12)])
    (stall,) = inside("record").numbers(training, 14.6)["stalls"]
    assert (stall["what"], stall["s"]) == ("evaluation", pytest.approx(12.6))
    assert stall["t"] == pytest.approx(2.0 - 0.2)  # on the clock of the steps, the first two of which are left out


def test_a_stall_that_the_run_does_not_outlast(probe, monkeypatch):
    training = loop_of(probe, [(0.1 * i, 0.1 * i + 0.01) for i in range(20)], closed=[2.0])
    monkeypatch.setattr(probe, "clock", lambda: 2.0)
    probe.begin_stall("checkpoint", "train.py:9")
    found = inside("record").numbers(training, 9.0)["stalls"]
    assert [(one["what"], one["s"]) for one in found] == [("checkpoint", 7.0)]
    probe.end_stall("evaluation")  # another one
    probe.end_stall("checkpoint")
    assert probe.running == [] and probe.stalls == [("checkpoint", "train.py:9", 2.0, 2.0)]


def test_no_more_evaluations_than_epochs(probe):
    """Steps after the last whole epoch are left out, and so is the evaluation after them."""
    times = [(epoch * 30 + i, epoch * 30 + i + 0.5) for epoch in range(3) for i in range(10)]
    training = loop_of(probe, times, epochs=[0, 10, 20], closed=[10, 40, 70])
    check = [(epoch * 30 + 10 + i, epoch * 30 + 11 + i) for epoch in range(3) for i in range(20)]
    loop_of(probe, check, epochs=[0, 20, 40], closed=[30, 60])
    found = inside("record").numbers(training, 75)
    assert (found["steps"], len(found["stalls"])) == (20, 2)


@pytest.mark.parametrize(
    ("imported", "computing", "expected"),
    [
        (("torch", "jax"), {"torch"}, "torch"),
        (("torch", "jax"), set(), "jax"),
        (("tensorflow", "jax"), set(), "jax"),
        (("tensorflow", "jax"), {"tensorflow"}, "tensorflow"),
        (("torch",), set(), "torch"),
        (("tensorflow",), set(), "tensorflow"),
        ((), set(), None),
    ],
)
def test_the_framework_is_what_computes(probe, monkeypatch, imported, computing, expected):
    for name in ("torch", "tensorflow", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in imported:
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    probe.computing |= computing
    assert inside("record").framework() == expected


def test_an_empty_rank(probe, monkeypatch):
    monkeypatch.setenv("RANK", "")
    assert inside("record").make("ok", 1.0)["rank"] == 0


def test_memory_and_cpus_are_on_the_clock_of_the_steps():
    """The first look was before the first step."""
    history = History(os.getpid())
    for i, t in enumerate((99.7, 100.2, 100.7)):
        history.moments.append((t, {1: Sample(1, 0.5 * i, 1000 + i, 1, 0, 0, 0, 0.0)}, 0.0))
    found = history.summary(100.0, 100.8, 1)
    assert found["memory"]["rss"] == [[0.0, 1000], [0.2, 1001], [0.7, 1002]]
    assert [t for t, _ in found["cpu"]["timeline"]] == [0.0, 0.2]


def test_shared_memory_is_asked_for_rarely(monkeypatch):
    """The kernel locks the memory of the script meanwhile."""
    asked = []
    monkeypatch.setattr(machine, "_own_memory", lambda pid: asked.append(pid) or 700)
    monkeypatch.setattr(machine, "LOCKED", 1e-12)
    history, known = History(os.getpid()), threading.active_count()
    for _ in range(3):
        history.look()
        while threading.active_count() > known:
            time.sleep(0.01)
    assert asked.count(os.getpid()) == 1 and history.taken > 0
    history.moments = [(t, {1: Sample(1, 0.0, 1000, 1, 0, 0, 0, 0.0)}, 0.0) for t in (0.5, 1.0)]
    history._ask([history.moments[0][1][1]])
    assert history.summary(0.5, 1.0, 1)["memory"]["rss"] == [[0.0, 700], [0.5, 700]]


def test_evaluations_are_in_the_trace():
    stalls = [{"what": "evaluation", "t": 2.0, "s": 3.0}]
    run = {"name": "as-is", "timeline": [{"t": 0.0, "wait": 1.0}], "stalls": stalls, "epochs": [{"start_s": -0.2}]}
    found = {one["name"]: one for one in trace.events({"runs": [run]})}
    assert (found["evaluation"]["ts"], found["evaluation"]["dur"]) == (2e6, 3e6)
    assert found["epoch 0"]["ts"] == 0


# ---------------------------------------------------------------- what-ifs


@pytest.mark.filterwarnings("ignore:torch")
def test_int8_is_compared_with_float32_inference(probe, monkeypatch):
    torch = pytest.importorskip("torch")
    models = inside("models")
    monkeypatch.setattr(models, "INFERENCE_SECONDS", 0.0)
    monkeypatch.setattr(probe, "deadline", float("inf"))
    monkeypatch.setattr(probe, "started", 0.0)
    model, call = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Dropout()), torch.nn.Module.__call__
    probe.extra["applied"] = True
    models._int8(call, torch.nn.ReLU(), (torch.ones(2, 8),), {})  # a model that has no linear layer
    assert "applied" not in probe.extra and "no linear layer" in probe.extra["not_possible"]
    probe.extra["applied"] = True
    loss = models._int8(call, model, (torch.ones(2, 8),), {}).sum()
    loss.backward()  # training goes on
    assert model.training and model[0].weight.grad is not None
    assert "applied" in probe.extra and "not_possible" not in probe.extra
    assert probe.extra["inference"]["gain"] > 0 and probe.deadline < float("inf")


def test_int8_is_not_a_speed_of_training(tmp_path):
    one = examine.Examination(examine.Options([], [], scratch=tmp_path))
    speed = {"float32_ms": 3.8, "int8_ms": 2.0, "gain": 1.9}
    record = {
        "run": {"steps": 20, "samples_per_s": 500.0, "loss": [1.0] * 20},
        "extra": {"inference": speed, "applied": True},
    }
    run = one._as_run("int8", "what-if", runner.Result("ended", None, [record], History(1), 1.0, ""))
    assert (run["status"], run["inference"]) == ("ok", speed) and "samples_per_s" not in run
    one.document["runs"] = [run]
    assert report.table(one.document).endswith("int8 quantisation\n    int8 inference 1.90x against float32 inference")
    assert examine.progress_words("int8", run) == "int8 quantisation: measured"


@pytest.mark.parametrize("name", ["workers=4", "fetch", "collate", "skip-slowest", "draft", "stoker", "threads=1"])
def test_what_ifs_for_other_loaders_say_so(probe, monkeypatch, name):
    what_ifs = inside("what_ifs")
    monkeypatch.setattr(what_ifs, "after", lambda *_: None)  # other tests use torch's loader as it is
    what_ifs.install({"what_if": name})
    (check,) = probe.at_open
    for kind, words in (("stoker", "stoker.Loader"), ("iterable", "stoker.watch()")):
        with pytest.raises(what_ifs.NotPossible, match="not supported for .*" + words.replace("(", r"\(")[:-1]):
            check(probe.Loop([], kind, "train.py:3"))
    check(probe.Loop(SimpleNamespace(_doctor_at="train.py:3"), "torch.DataLoader", "train.py:3"))
    probe.extra["applied"] = True  # torch's loader is iterated through Stoker's
    check(probe.Loop([], "stoker", "train.py:3"))


def slow_words(batch):
    return [batch]


def test_a_function_is_left_out_whatever_the_loader(probe, monkeypatch):
    original, code = slow_words, slow_words.__code__
    monkeypatch.setitem(globals(), "slow_words", original)
    monkeypatch.setattr(probe, "is_library", lambda path: path != __file__)
    monkeypatch.setattr(inside("what_ifs"), "after", lambda *_: None)
    inside("what_ifs").install({"what_if": "without=slow_words"})
    monkeypatch.setattr(probe, "plan", {"target": 0})
    loop = probe.Loop([], "iterable", "train.py:3")
    loop.open()
    left_out = slow_words("a"), original("b")
    original.__code__ = code
    assert left_out == ("a", "b") and probe.extra["applied"]


class Slow:
    """Tells which threads have started an epoch."""

    def __init__(self):
        self.threads = []

    def __iter__(self):
        self.threads.append(threading.current_thread() is threading.main_thread())
        yield from range(3)


def test_the_next_epoch_is_made_ready(probe, monkeypatch):
    monkeypatch.setattr(probe, "pid", os.getpid())
    monkeypatch.setattr(probe, "plan", {"what_if": "next-epoch", "target": 0})
    slow = Slow()
    batches = stoker.watch(slow)
    assert [list(batches) for _ in range(3)] == [[0, 1, 2]] * 3
    probe.loops[0].ahead.join()
    assert sorted(slow.threads) == [False, False, False, True] and probe.extra["applied"]
    assert len(probe.loops[0].epochs) == 3
    monkeypatch.setattr(probe, "loops", [])
    with pytest.raises(inside("what_ifs").NotPossible, match="cannot be started again"):
        list(stoker.watch(numbers()))


class Thing:
    """Something that a weak reference can point to."""


def looked_at(sampler):
    thing = Thing()
    looker = threading.Thread(target=sampler._look)
    looker.start()
    looker.join()
    return weakref.ref(thing)


def test_looking_at_functions_keeps_none_of_their_variables(probe):
    """They would be destroyed later, and in the thread that looks."""
    gc.disable()
    try:
        assert looked_at(inside("sampler"))() is None
    finally:
        gc.enable()


# ---------------------------------------------------------------- the parts of a loader


def test_a_decoder_that_sleeps_reads(probe):
    """A file system in user space: the decoder reads the file, and waits for it."""
    stages = inside("stages")
    stages.timers.clear(), stages.cpu.clear()
    stages.timer("decode", lambda: time.sleep(0.2))()
    found = stages._decoding(1, [])
    assert found["read_us"] > 150_000 > found["decode_us"]
    assert found["cold_read_us"] == found["read_us"]
    stages.timers["decode"], stages.cpu["decode"] = 0.004, 0.003
    assert stages._decoding(1, []) == {"decode_us": 4000.0, "read_us": 0.0, "cold_read_us": 0.0}


class Listed:
    """A dataset that keeps a list of its files."""

    def __init__(self, *paths):
        self.samples = [(path, 0) for path in paths]

    def __len__(self):
        return len(self.samples)


def test_a_sample_has_its_own_file(probe):
    """Also in a part of a dataset, and in several that were put together."""
    data = pytest.importorskip("torch.utils.data")
    describe, some, more = inside("describe"), Listed("a", "b", "c"), Listed("d", "e")
    assert describe.paths_of(some) == ["a", "b", "c"]
    assert describe.paths_of(data.Subset(some, [2, 0])) == ["c", "a"]
    both = data.ConcatDataset([some, data.Subset(more, [1])])
    assert describe.paths_of(both) == ["a", "b", "c", "e"]
    assert describe.paths_of(data.Subset(both, [3, 1])) == ["e", "b"]
    assert describe.files_of(both) == ["a", "b", "c", "d", "e"]
    some.__class__ = type("Clips", (Listed,), {"__len__": lambda self: 7})
    assert describe.paths_of(some) == [] and describe.files_of(some) == ["a", "b", "c"]


class Records:
    """Reads a part of one file for each sample."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 100

    def __getitem__(self, i):
        with open(self.path, "rb") as file:
            file.seek(64 * i)
            return file.read(64)


def test_parts_of_a_file_are_not_timed_as_whole_files(probe, tmp_path, monkeypatch):
    stages = inside("stages")
    (tmp_path / "records").write_bytes(bytes(6400))
    monkeypatch.setattr(stages, "_one_thread", lambda: None)
    timed = []
    monkeypatch.setattr(stages, "_read_us", lambda files, cold=False: timed.append(files) or 0.0)
    loop = probe.Loop(SimpleNamespace(dataset=Records(tmp_path / "records")), "torch.DataLoader", None)
    stages.measure(loop, None)
    assert "stages_failed" not in probe.extra and timed == [[], []]
