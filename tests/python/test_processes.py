# SPDX-License-Identifier: Apache-2.0
"""Loader with worker processes: the same rows for any number of them, and nothing left when one ends."""

import faulthandler
import importlib.util
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import stoker
from stoker._rows import MapFill, RowOp
from stoker._workers import InOrder, Workers
from test_workers import children, gone, nothing_is_left  # noqa: F401 (a fixture that every test here uses)

torch = pytest.importorskip("torch", reason="torch is not installed")

COUNTS = (0, 1, 2, 7)


def draws():
    """Numbers from all generators of the process."""
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]


class Draws:
    """A dataset that draws from everything that draws."""

    def __init__(self):
        self.transform = None
        if importlib.util.find_spec("albumentations"):
            import albumentations

            self.transform = albumentations.Compose([albumentations.RandomBrightnessContrast(p=1)])

    def __len__(self):
        return 20

    def __getitem__(self, i):
        image = np.full((4, 4, 3), 100, np.uint8)
        return {
            "image": self.transform(image=image)["image"] if self.transform else image,
            "drawn": np.array(draws() + [random.gauss(0, 1)], np.float64),
            "which": i,
            "word": str(i),
        }


def flat(batches):
    """Everything in batches, as values that compare."""
    found = []
    for batch in batches:
        values = batch.values() if isinstance(batch, dict) else batch
        found.append([v.tolist() if hasattr(v, "tolist") else v for v in values])
    return found


def noisy(image):
    return image * 0.5 + float(torch.rand(())) + random.random() + float(np.random.rand())


def mix_up(batch):
    return batch._replace(image=batch.image * random.random())


def both(samples):
    return {
        "x": torch.stack([s["drawn"] if torch.is_tensor(s["drawn"]) else torch.tensor(s["drawn"]) for s in samples]),
        "lam": float(np.random.rand()),
        "names": [s["word"] for s in samples],
    }


@pytest.mark.parametrize("kind", ["dataset", "collate", "chain", "loader"])
def test_the_same_rows_for_any_number_of_processes(photos, kind):
    def make(n):
        if kind == "loader":
            torch.manual_seed(3)
            return stoker.DataLoader(Draws(), 3, shuffle=True, num_workers=n)
        if kind == "chain":
            ops = ["RandomResizedCrop(8) | RandomHorizontalFlip", noisy]
            return stoker.Loader(photos, ops, 5, shuffle=True, seed=4, processes=n, batch_fn=mix_up, output="torch")
        collate = both if kind == "collate" else None
        return stoker.Loader(Draws(), batch_size=3, shuffle=True, seed=4, processes=n, collate_fn=collate)

    want = None
    for n in COUNTS:
        loader = make(n)
        first = flat(loader)
        second = flat(loader)
        assert first != second
        want = want or (first, second)
        if kind != "loader":  # its second epoch draws another seed
            assert (first, second) == want
        else:
            assert first == want[0]
        loader.close()

        half, rest = make(n), make(2)
        batches = iter(half)
        begun = flat([next(batches), next(batches)])
        rest.load_state_dict(half.state_dict())
        assert begun + flat(rest) == want[0]
        del batches
        half.close()
        rest.close()


def test_the_trainers_generators_stay(photos):
    def now():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    for n in (None, 0, 2):
        before = now()
        with stoker.Loader(Draws(), batch_size=4, processes=n) as loader:
            for _ in loader:
                assert now() == before
        with stoker.Loader(photos, ["CenterCrop(8)", noisy], batch_size=4, processes=n, batch_fn=mix_up) as loader:
            list(loader)
            loader.peek()
            loader.get([0, 1])
        assert now() == before


class Numbers:
    def __len__(self):
        return 13

    def __getitem__(self, i):
        return np.float32(i)


@pytest.mark.parametrize(
    "arguments",
    [
        {"drop_last": True},
        {"pad_last": True, "fields": ("image", "valid")},
        {"rank": 1, "world_size": 2, "shuffle": True},
        {"weights": np.arange(13.0)},
        {"steps_per_epoch": 4, "shuffle": True},
        {"sampler": [3, 1, 3, 8, 2]},
        {"batch_sampler": [[1, 2], [3], [4, 5, 6, 7, 8, 9]], "batch_size": 1},
    ],
)
def test_orders(arguments):
    def epochs(n):
        with stoker.Loader(Numbers(), **{"batch_size": 4, **arguments}, processes=n, output="numpy") as loader:
            return [flat(loader) for _ in range(2)] + [len(loader), loader.epoch]

    assert epochs(2) == epochs(0)


@pytest.mark.parametrize("arguments", [{}, {"sampler": [3, 1, 3, 8, 2, 5, 6, 7, 0, 4]}])
def test_a_batch_that_ctrl_c_took_is_made_again(arguments, monkeypatch):
    """It was in the trainer, but not delivered."""
    options = {"batch_size": 2, "processes": 1, "output": "numpy", **arguments}
    with stoker.Loader(Numbers(), **options) as loader:
        want = [[batch.image.tolist() for batch in loader] for _ in range(2)]
    real = InOrder.take

    def interrupted(self):
        real(self)
        monkeypatch.undo()
        raise KeyboardInterrupt

    with stoker.Loader(Numbers(), **options) as loader:
        for epoch in want:
            batches, got = iter(loader), []
            while len(got) < len(epoch):
                if len(got) in (2, len(epoch) - 1):
                    monkeypatch.setattr(InOrder, "take", interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        next(batches)
                got.append(next(batches).image.tolist())
            assert next(batches, None) is None and got == epoch


def test_ctrl_c_before_the_first_task_is_sent(monkeypatch):
    """The next task must have another number: its batch would be delivered in place of the first."""

    def interrupted(self, task):
        monkeypatch.undo()
        raise KeyboardInterrupt

    with stoker.Loader(Numbers(), batch_size=2, processes=1, output="numpy") as loader:
        want = [batch.image.tolist() for batch in loader]
    with stoker.Loader(Numbers(), batch_size=2, processes=1, output="numpy") as loader:
        batches = iter(loader)
        monkeypatch.setattr(Workers, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        assert [batch.image.tolist() for batch in batches] == want


@pytest.mark.parametrize("processes", [None, 0, 1])
def test_ctrl_c_at_the_end_of_an_epoch(processes, monkeypatch):
    """The engine is in the next epoch already; the iterator must not follow, and the next one not leave it out."""

    def interrupted(self):
        monkeypatch.undo()
        raise KeyboardInterrupt

    source = {"x": np.arange(10)} if processes is None else Numbers()
    with stoker.Loader(source, batch_size=4, processes=processes, output="numpy", shuffle=True) as loader:
        want = [[batch[0].tolist() for batch in loader] for _ in range(3)]
    with stoker.Loader(source, batch_size=4, processes=processes, output="numpy", shuffle=True) as loader:
        for epoch in range(3):
            batches = iter(loader)
            assert loader.epoch == epoch
            assert [next(batches)[0].tolist() for _ in want[epoch]] == want[epoch]
            monkeypatch.setattr(stoker.Loader, "_warn", interrupted)
            with pytest.raises(KeyboardInterrupt):
                next(batches)
            assert next(batches, None) is None and next(batches, None) is None


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("kind", ["dataset", "function"])
def test_ctrl_c_before_the_first_line_of_a_hook(photos, kind, on_error, monkeypatch):
    """Python handles a signal that came while C code ran as soon as it calls a function. No sample is to blame."""
    hook = MapFill if kind == "dataset" else RowOp
    source, ops = (Numbers(), None) if kind == "dataset" else (photos, ["CenterCrop(8)", lambda x: x])
    real, calls = hook.__call__, []

    def interrupted(self, about, views):
        calls.append(about)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, about, views)

    with stoker.Loader(source, ops, batch_size=4, processes=0, output="numpy", on_error=on_error) as loader:
        want = [batch[0].tolist() for batch in loader]
    with stoker.Loader(source, ops, batch_size=4, processes=0, output="numpy", on_error=on_error) as loader:
        batches = iter(loader)
        monkeypatch.setattr(hook, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        assert len(calls) == 3 and loader.stats().bad == 0
        assert [batch[0].tolist() for batch in batches] == want


class Interrupted(Numbers):
    """Ctrl-C comes at sample 3, once. Sample 2 may be bad."""

    def __init__(self, bad=False):
        self.bad, self.waits = bad, [3]

    def __getitem__(self, i):
        if i in self.waits:
            self.waits.remove(i)
            raise KeyboardInterrupt
        if i == 2 and self.bad:
            raise ValueError("no luck")
        return np.float32(i)


def test_a_state_after_ctrl_c_does_not_count_the_batch():
    def make(source):
        return stoker.Loader(source, batch_size=4, processes=0, output="numpy", shuffle=True)

    with make(Numbers()) as loader:
        want = [batch.image.tolist() for batch in loader]
    with make(Interrupted()) as loader, make(Numbers()) as resumed:
        batches, got = iter(loader), []
        with pytest.raises(KeyboardInterrupt):
            while True:
                got.append(next(batches).image.tolist())
        assert loader.state_dict()["position"] == 4 * len(got)
        resumed.load_state_dict(loader.state_dict())
        assert got + [batch.image.tolist() for batch in resumed] == want
        assert got + [batch.image.tolist() for batch in batches] == want


def test_a_bad_sample_counts_once_although_its_batch_is_made_twice():
    with stoker.Loader(Interrupted(bad=True), batch_size=4, processes=0, output="numpy", on_error="skip") as loader:
        batches = iter(loader)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        with pytest.warns(RuntimeWarning, match="1 bad sample was left out"):
            assert [batch.image.tolist() for batch in batches][0] == [0, 1, 3]
        assert loader.stats().bad == 1


def test_a_batch_with_a_bad_sample_is_not_made_again():
    with stoker.Loader(BadAt("raise"), batch_size=4, processes=0, output="numpy") as loader:
        batches = iter(loader)
        got = [next(batches).image.tolist()]
        with pytest.raises(stoker.DataError, match="no luck"):
            next(batches)
        assert loader.state_dict()["position"] == 8
        assert got + [batch.image.tolist() for batch in batches] == [[0, 1, 2, 3], [8, 9, 10, 11], [12]]


class Stream:
    """Can be read again and again. Ctrl-C comes at the samples in `waits`, and ends a generator."""

    def __init__(self, waits):
        self.waits = waits

    def __iter__(self):
        for i in range(13):
            if i in self.waits:
                self.waits.remove(i)
                raise KeyboardInterrupt
            yield np.float32(i)


class Once(Stream):
    """Can be read only once."""

    def __init__(self, waits):
        self.waits, self.numbers = waits, iter(range(13))

    def __iter__(self):
        return self

    def __next__(self):
        i = next(self.numbers)
        if i in self.waits:
            self.waits.remove(i)
            raise KeyboardInterrupt
        return np.float32(i)


@pytest.mark.parametrize("at", [4, 6, 12])
@pytest.mark.parametrize("kind", [Stream, Once])
def test_ctrl_c_in_an_iterable(kind, at):
    waits, rows = [], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12]]
    with stoker.Loader(kind(waits), [lambda x: x + 0], batch_size=4, output="numpy") as loader:
        assert loader._way.here
        waits.append(at)
        batches, got = iter(loader), []
        with pytest.raises(KeyboardInterrupt):
            while True:
                got.append(next(batches).image.tolist())
        assert got == rows[: at // 4]
        assert loader.state_dict()["position"] == 4 * (at // 4 + (kind is Once))
        got += [batch.image.tolist() for batch in batches]
        assert got == [row for row in rows if kind is Stream or at not in row]


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_ctrl_c_ends_a_batch(photos, on_error, monkeypatch):
    """Its other images are not read and decoded any more."""
    real, calls = RowOp.__call__, []

    def interrupted(self, about, views):
        calls.append(about)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, about, views)

    ops = ["CenterCrop(8)", lambda x: x]
    with stoker.Loader(photos, ops, batch_size=12, processes=0, output="numpy", on_error=on_error) as loader:
        before = loader._engine.stats()["read_bytes"]
        monkeypatch.setattr(RowOp, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(iter(loader))
        sizes = [os.path.getsize(path) for path in stoker.Source(photos).paths]
        assert loader._engine.stats()["read_bytes"] - before == sum(sizes[:3])


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("kind", ["dataset", "function"])
def test_a_signal_handler_may_exit(kind, on_error):
    """Clusters send SIGTERM before they end a job, and its handler calls sys.exit(). No sample is to blame."""
    arguments = {"processes": 0, "on_error": on_error}
    loader = chain("SIGTERM", **arguments) if kind == "function" else stoker.Loader(BadAt("SIGTERM"), **arguments)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    try:
        with loader:
            with pytest.raises(SystemExit) as info:
                list(loader)
            assert info.value.code == 5 and loader.stats().bad == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_function_that_exits_in_a_thread(photos):
    def function(x, rng):
        if threading.current_thread() is not threading.main_thread():  # which tries it at first
            sys.exit(3)
        return x

    with stoker.Loader(photos, ["CenterCrop(8)", function], output="numpy") as loader:
        assert not loader._way.here and not loader._way.processes
        with pytest.raises(stoker.DataError, match="SystemExit: 3"):
            list(loader)


def test_set_epoch_moves_an_iterator():
    with stoker.Loader({"x": np.arange(8)}, batch_size=4, output="numpy", shuffle=True) as loader:
        want = [[batch[0].tolist() for batch in loader] for _ in range(2)]
        loader.set_epoch(0)
        batches = iter(loader)
        assert next(batches)[0].tolist() == want[0][0]
        loader.set_epoch(1)
        assert [batch[0].tolist() for batch in batches] == want[1]


@pytest.mark.parametrize("output", ["numpy", "torch", "jax", "tensorflow"])
def test_outputs(photos, output):
    if output in ("jax", "tensorflow"):
        pytest.importorskip(output, reason=f"{output} is not installed")

    def batches(n):
        ops = ["CenterCrop(8)", lambda x: x * 2]
        with stoker.Loader(photos, ops, 5, processes=n, output=output, batch_fn=lambda b: (b.image, b.label)) as loader:
            found = [[type(v), np.asarray(v).tolist()] for batch in loader for v in batch]
            peeked = loader.peek()
            assert np.asarray(peeked[1]).tolist() == found[1][1]
            return found

    assert batches(2) == batches(0)


def where(batch):
    return os.getpid(), os.getpid() != PARENT


PARENT = os.getpid()


def test_functions_on_batches_run_in_the_processes(photos):
    with stoker.Loader(photos, "CenterCrop(8)", 4, processes=2, batch_fn=where) as loader:
        assert all(elsewhere for _, elsewhere in loader)
    with stoker.Loader(photos, "CenterCrop(8)", 4, processes=2) as loader:
        assert "process" not in loader.explain().replace("processes", "") or loader._way.processes == 0
        assert not any(children())


def test_batches_can_be_pickled(photos):
    import pickle

    batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", 4, output="numpy")))
    again = pickle.loads(pickle.dumps(batch))
    assert type(again) is type(batch) and np.array_equal(again.image, batch.image)


def test_as_many_as_pay_off(photos, monkeypatch):
    monkeypatch.setattr(stoker._processes, "WORTH_S", 0)
    monkeypatch.setattr(stoker._processes, "EACH_S", 1e-9)
    with stoker.Loader(Numbers(), threads=3) as loader:
        assert loader._way.processes == 3 and "ms a sample" in loader.explain()
    monkeypatch.setattr(stoker._processes, "EACH_S", 1e9)
    with stoker.Loader(Numbers(), threads=3) as loader:
        assert loader._way.processes == 1
    monkeypatch.setattr(stoker._processes, "WORTH_S", 1e9)
    with stoker.Loader(Numbers()) as loader:
        assert loader._way.here and "too little for processes" in loader.explain()
    with stoker.Loader(photos, "CenterCrop(8)") as loader:
        assert not loader._way.processes and not loader._way.here


# ---------------------------------------------------------------- bad samples and faults


class BadAt(Numbers):
    """Something happens at sample 7."""

    def __init__(self, what):
        self.what = what

    def __getitem__(self, i):
        happen(self.what, i == 7)
        return np.float32(i)


def happen(what, now):
    if not now:
        return
    if what == "raise":
        raise ValueError("no luck")
    if what == "exit":
        os._exit(3)
    if what == "sys.exit":
        sys.exit(3)
    if what == "hang":
        time.sleep(600)
    faulthandler.disable()  # it would print the trace
    os.kill(os.getpid(), getattr(signal, what))


def chain(what, **arguments):
    """Native ops, then a function that something happens to at sample 7."""
    images = np.arange(13, dtype=np.uint8).repeat(8 * 8 * 3).reshape(13, 8, 8, 3)

    def function(x):
        happen(what, round(float(x[0, 0, 0]) * 255) == 7)
        return x

    return stoker.Loader(images, ["CenterCrop(8)", function], 2, fields=("image", "index"), output="numpy", **arguments)


@pytest.mark.parametrize("kind", ["dataset", "chain"])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("raise", "no luck"),
        ("SIGSEGV", "made sample 7 .*killed by SIGSEGV"),
        ("SIGKILL", "made sample 7 .*killed by SIGKILL .*memory"),
        ("exit", "made sample 7 .*ended with exit code 3"),
        ("sys.exit", "made sample 7 .*ended with exit code 3"),
    ],
)
def test_faults(kind, what, words):
    def make(**arguments):
        if kind == "chain":
            return chain(what, processes=2, **arguments)
        return stoker.Loader(BadAt(what), batch_size=2, processes=2, fields=("image", "index"), **arguments)

    with make() as loader:
        batches = iter(loader)
        got = [next(batches).index.tolist() for _ in range(3)]
        with pytest.raises(stoker.DataError, match=words) as info:
            next(batches)
        assert info.value.sample == 7
        if what == "raise":
            assert "no luck" in str(info.value.__cause__) and "happen" in "".join(info.value.__cause__.__notes__)
        got += [b.index.tolist() for b in batches]
        assert got[:3] == [[0, 1], [2, 3], [4, 5]] and got[3][0] == 8
        assert loader.state_dict()["epoch"] == 1
    with make(on_error="skip", max_bad=0.1) as loader, pytest.warns(RuntimeWarning, match="left out"):
        assert [b.index.tolist() for b in loader][3] == [6]
        assert [bad.sample for bad in loader.bad_samples()] == [7] and loader.stats().bad == 1
    if what != "raise":
        return
    with make(on_error="replace", max_bad=0.1) as loader, pytest.warns(RuntimeWarning, match="replaced"):
        replaced = [b.index.tolist() for b in loader]
    with make(on_error="replace", max_bad=0.1) as loader:
        loader._way = loader._way._replace(processes=0, here=True)
        with pytest.warns(RuntimeWarning, match="replaced"):
            assert [b.index.tolist() for b in loader] == replaced
    with make(on_error="skip", max_bad=-1) as loader, pytest.raises(stoker.DataError, match="max_bad allows"):
        list(loader)


def test_a_cache_is_shared(photos):
    for source, kind in ((photos, "pixels"), (photos, "bytes")):
        with stoker.Loader(source, ["CenterCrop(8)", noisy], 4, cache=kind, processes=2, output="numpy") as loader:
            first = flat(loader)
            for _ in range(2):
                list(loader)
            stats = loader.stats()
            # A worker may begin the second epoch before another one has ended the first, but not the third.
            assert stats.cache_hits >= 12 and stats.cache_misses <= 24 and stats.samples == 36
        with stoker.Loader(source, ["CenterCrop(8)", noisy], 4, processes=0, output="numpy") as loader:
            assert flat(loader) == first


SCRIPT = """
import os, sys, time, stoker
class Slow:
    def __len__(self): return 100
    def __getitem__(self, i):
        if i >= 8: time.sleep(600)
        return float(i)
if __name__ == "__main__":
    loader = stoker.Loader(Slow(), batch_size=2, processes=2)
    batches = iter(loader)
    next(batches)
    print(*[w.process.pid for w in loader._stream.workers.processes], flush=True)
    {then}
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_processes_end_with_the_trainer(number):
    code = textwrap.dedent(SCRIPT).format(then="list(batches)")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert gone(pids)
    assert number != signal.SIGINT or "KeyboardInterrupt" in errors


def test_ctrl_c_in_the_calling_thread():
    class Interrupted(Numbers):
        def __getitem__(self, i):
            if i == 3:
                signal.raise_signal(signal.SIGINT)
            return np.float32(i)

    loader = stoker.Loader(Interrupted(), batch_size=2, processes=0, on_error="skip")
    batches = iter(loader)
    next(batches)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert not loader.bad_samples() and loader.stats().bad == 0


FAILS = """
import sys, stoker
def collate(samples):
    raise KeyError("no luck")
try:
    next(iter(stoker.Loader([1, 2, 3], batch_size=2, processes=1, collate_fn=collate)))
except KeyError as error:
    print(error, "in collate" in error.__notes__[-1], "torch" in sys.modules)
"""


def test_exceptions_need_no_torch():
    done = subprocess.run([sys.executable, "-c", FAILS], capture_output=True, text=True, timeout=300)
    assert done.stdout == "'no luck' True False\n", done.stderr


def test_stats_of_datasets_in_python():
    with stoker.DataLoader(Draws(), 4, num_workers=2) as loader:
        list(loader)
        assert (loader.stats().batches, loader.stats().samples, loader.stats().processes) == (5, 20, 2)
        assert loader.state_dict() == {"epoch": 1}
    loader = stoker.DataLoader(BadAt("raise"), 4, on_error="skip", max_bad=0.1)
    list(loader)
    assert (loader.stats().samples, loader.stats().bad) == (12, 1)


class Values(Numbers):
    """Arrays whose bytes differ from those of the row."""

    def __init__(self, first, other):
        self.first, self.other = first, other

    def __getitem__(self, i):
        return self.other if i % 2 else self.first


@pytest.mark.parametrize(
    "other",
    [np.arange(6, dtype=">f4"), np.arange(6, dtype=np.float64), np.arange(12, dtype=np.float32)[::2] // 2],
    ids=["big-endian", "double", "strided"],
)
def test_values_of_rows(other):
    first = np.arange(6, dtype=np.float32)
    for batch in stoker.Loader(Values(first, other), batch_size=4, processes=0, output="numpy"):
        assert (batch.image == np.arange(6)).all() and batch.image.dtype == first.dtype


def test_masked_values_are_refused():
    masked = np.ma.masked_equal(np.arange(6, dtype=np.float32), 3)
    with pytest.raises(stoker.DataError, match="masked"):
        list(stoker.Loader(Values(np.arange(6, dtype=np.float32), masked), batch_size=4, processes=0))
