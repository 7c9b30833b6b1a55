# SPDX-License-Identifier: Apache-2.0
"""What the doctor makes of a device's clock. The events are made up, so that this needs no GPU."""

import importlib
import sys
from types import SimpleNamespace

import pytest
from stoker.doctor import machine, runner


class Event:
    """A moment on the device's clock, in milliseconds."""

    def __init__(self, ms):
        self.ms = ms

    def elapsed_time(self, other):
        return other.ms - self.ms


@pytest.fixture
def device(monkeypatch):
    """The module, on a machine that seems to have a GPU, and without what other tests have measured."""
    monkeypatch.syspath_prepend(runner.INSIDE)
    module = importlib.import_module("stoker_doctor.device")
    cuda = SimpleNamespace(
        synchronize=lambda: None,
        current_device=lambda: 0,
        device_count=lambda: 1,
        get_device_properties=lambda i: SimpleNamespace(name="NVIDIA H200", total_memory=141e9),
        max_memory_allocated=lambda i: 2e9,
        is_initialized=lambda: True,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(module, "events", {})
    monkeypatch.setattr(module, "copied", [])
    monkeypatch.setattr(module, "places", set())
    monkeypatch.setattr(module, "syncs", {})
    monkeypatch.setattr(module, "optimizing", [])
    values = (("plan", {}), ("extra", {}), ("loops", []), ("optimizer", []), ("started", 0.0), ("device", module))
    for name, value in values:
        monkeypatch.setattr(module.probe, name, value)
    return module


def loop_of(device, seconds, count):
    """A loop whose steps take so long, of which the first tenth is next()."""
    loop = device.probe.Loop(None, "iterable", "train.py:1")
    loop.begin = [seconds * i for i in range(count)]
    loop.end = [seconds * (i + 0.1) for i in range(count)]
    loop.sizes, loop.updates, loop.epochs = [4] * count, list(range(count)), [0]
    loop.closed = [seconds * count]
    return loop


def steps_of(loop):
    ends = [*loop.begin[1:], *loop.closed]
    return [
        {"begin": a, "got": b, "end": c, "all": c - a, "wait": b - a, "index": i}
        for i, (a, b, c) in enumerate(zip(loop.begin, loop.end, ends, strict=True))
    ]


def test_the_device_says_how_long_it_waited(device):
    """In even steps it was still busy when the batch arrived."""
    loop = loop_of(device, 0.01, 4)
    for i in range(4):
        device.events[0, i] = (Event(10 * i), Event(10 * i + (0.9 if i % 2 else 0.0)))
        device.copied.append(
            (0.01 * i + 0.002, Event(10 * i + 1), Event(10 * i + 3), 4096, False, False, "torch.uint8")
        )
    steps = steps_of(loop)
    device.correct(loop, steps)
    assert [step["wait"] for step in steps] == pytest.approx([0, 0.0009, 0, 0.0009])
    assert [step["copy"] for step in steps] == pytest.approx([0.002] * 4)
    assert [step["compute"] for step in steps] == pytest.approx([0.008, 0.0071, 0.008, 0.0071])
    assert device.probe.extra["copies"] == {
        "bytes": 4096,
        "pinned": False,
        "non_blocking": False,
        "dtype": "torch.uint8",
        "at": [],
    }


def test_the_device_says_how_long_the_optimizer_takes(device, monkeypatch):
    """The host only launches its kernels, unless its parameters are in memory."""
    torch, now = sys.modules["torch"], [0.0]
    torch.compiler = SimpleNamespace(is_compiling=lambda: False)
    torch.cuda.is_current_stream_capturing = lambda: now[0] > 100
    monkeypatch.setattr(device, "event", lambda: Event(now[0]))

    def step(kind):
        parameter = SimpleNamespace(device=SimpleNamespace(type=kind))
        mark = device.begin_optimizer(SimpleNamespace(param_groups=[{"params": []}, {"params": [parameter]}]))
        now[0] += 5.0
        device.end_optimizer(0.002, mark)

    step("cpu")
    assert device.optimizing == []
    step("cuda")
    loop = loop_of(device, 0.01, 4)
    device.events[0, 0] = (Event(0), Event(0))
    device.probe.optimizer += [(0.002, 0.0001)]
    device.correct(loop, steps_of(loop))
    assert device.probe.optimizer == [(0.002, 0.005)]
    now[0] = 101.0
    step("cuda")  # while a CUDA graph is recorded
    assert len(device.optimizing) == 1


def test_reads_are_counted_per_step_of_the_run(device):
    """Not per step that is kept, which are fewer."""
    loop = loop_of(device, 0.01, 40)
    device.events[0, 0] = (Event(0), Event(0))
    device.syncs["train.py:9"] = [0.2, 80.0]
    device.correct(loop, steps_of(loop)[20:])
    assert device.probe.extra["syncs"] == [{"at": "train.py:9", "ms": pytest.approx(5.0), "calls": 2.0}]


def test_kernels_are_counted_once(device):
    """They may overlap, and ranges with a name contain them."""

    def one(kind, begin, end, named=False):
        return SimpleNamespace(
            device_type=f"DeviceType.{kind}",
            time_range=SimpleNamespace(start=begin, end=end),
            is_user_annotation=named,
        )

    found = [one("CUDA", 0, 100), one("CUDA", 50, 150), one("CUDA", 300, 400), one("CPU", 0, 900)]
    device._count([*found, one("CUDA", 0, 500, True)], 0.0005)
    expected = {"kernels": 3 / device.PROFILED, "kernel_ms": 0.25 / device.PROFILED, "busy": 0.5}
    assert device.probe.extra["gpu"] == pytest.approx(expected)


def test_steps_under_the_profiler_are_left_out(device, monkeypatch):
    """To start it takes seconds."""
    record = importlib.import_module("stoker_doctor.record")
    loop = loop_of(device, 0.01, 40)
    loop.begin += [0.4, 5.0]
    loop.end += [4.9, 5.1]
    loop.sizes, loop.updates, loop.closed = [4] * 42, list(range(42)), [5.2]
    monkeypatch.setattr(device, "profiled_from", 0.4)
    assert record.numbers(loop, 6.0)["step_ms"]["mean"] == pytest.approx(10.0)


def test_a_profiler_that_fails_leaves_the_rest(device, monkeypatch):
    monkeypatch.setitem(device.probe.plan, "mode", "model")
    monkeypatch.setattr(device, "_profile", None)
    monkeypatch.setattr(device, "profiled_from", float("inf"))
    assert device.profiles(None, 3.0) is False
    assert "torch.profiler" in device.probe.extra["hooks"][0]


def test_waiting_for_the_device_is_no_python_code(device, monkeypatch):
    sampler = importlib.import_module("stoker_doctor.sampler")
    for name in ("counts", "hot", "loading"):
        monkeypatch.setattr(sampler, name, type(getattr(sampler, name))())
    monkeypatch.setattr(device, "_reads", 1)
    sampler._look()
    assert sampler.counts == {"compute": 1} and not sampler.hot


def test_a_function_that_trains_is_not_a_cause(device, monkeypatch):
    """Without it, nothing would be left to measure."""
    sampler = importlib.import_module("stoker_doctor.sampler")
    monkeypatch.setattr(sampler, "training", set())

    def train_step():
        return sampler.classify(sys._getframe())

    assert train_step()[1][0] == "train_step"
    sampler.training.add(train_step.__code__)
    assert train_step() == ("host", None)


def test_idle_cpus_that_are_not_counted(monkeypatch):
    monkeypatch.setattr(machine, "_text", lambda path: "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0")
    assert machine.idle() is None
    monkeypatch.setattr(machine, "_text", lambda path: f"cpu  1 0 1 {machine.TICKS} 0 0 0 0 0 0\n")
    assert machine.idle() == 1.0


def test_the_record_has_what_the_device_knows(device, monkeypatch):
    """Which is known only after the steps were looked at."""
    record = importlib.import_module("stoker_doctor.record")
    loop = loop_of(device, 0.01, 40)
    device.events[0, 30] = (Event(0), Event(0))
    device.copied.append((0.302, Event(1), Event(3), 4096, True, False, "torch.float32"))
    monkeypatch.setattr(device.probe, "loops", [loop])
    monkeypatch.setattr(device.probe, "updates", 40)
    made = record.make("ok", 1.0)
    assert made["extra"]["gpus"] == [{"name": "NVIDIA H200", "memory": 141e9}]
    assert made["extra"]["copies"]["dtype"] == "torch.float32" and made["updates"] == 40


@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [(("meta",), {}, False), (("meta",), {"non_blocking": True}, True), (("meta", None, True), {}, True)],
)
def test_copies_are_timed(device, monkeypatch, arguments, keywords, expected):
    monkeypatch.undo()
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device, "copied", [])
    monkeypatch.setattr(device, "places", set())
    monkeypatch.setattr(device, "is_used", lambda: True)
    monkeypatch.setattr(device, "event", lambda: Event(float(device.is_waited_for())))
    monkeypatch.setattr(device.probe, "loops", [None])
    monkeypatch.setattr(device.probe, "is_watching", lambda: True)
    to = device._copying(torch.Tensor.to)
    assert to(torch.ones(3), torch.float64).dtype == torch.float64 and not device.copied  # stays in memory
    to(torch.ones(3), *arguments, **keywords)
    ((_, before, after, *more),) = device.copied
    assert {place.split(":")[0].endswith("test_doctor_device.py") for place in device.places} == ({True} - {expected})
    assert more == [12, False, expected, "torch.float32"] and (before.ms, after.ms) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        (("cuda",), {}, (("cuda",), {"non_blocking": True})),
        (("cuda",), {"non_blocking": False}, (("cuda",), {"non_blocking": True})),
        (("cuda", None, False, True), {}, (("cuda", None, True, True), {})),  # the last is `copy`
    ],
)
@pytest.mark.parametrize("pinned", [True, False])
def test_copies_that_do_not_block(device, pinned, arguments, keywords, expected):
    """Also those that the script asks to block; without pinned memory, all of them stay as they are."""
    what_ifs = importlib.import_module("stoker_doctor.what_ifs")

    class Tensor:
        is_cuda = False

        def is_pinned(self):
            return pinned

        def to(self, *args, **keywords):
            return args, keywords

        cuda = to

    what_ifs._non_blocking(SimpleNamespace(Tensor=Tensor))
    assert Tensor().to(*arguments, **keywords) == (expected if pinned else (arguments, keywords))
