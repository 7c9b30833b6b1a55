# SPDX-License-Identifier: Apache-2.0
"""Values that are not arrays: each row gets its own value, and none stays in memory."""

import warnings

import numpy as np
import pytest
import stoker

BAD = (5, 17, 18)


class Captions:
    """A text, numbers and the sample's number; the numbers of bad samples have a shape of their own."""

    def __init__(self, n=40, bad=()):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"text": f"text {i}", "x": np.zeros(5 if i in self.bad else 4), "n": i}


def open_loader(bad=(), **k):
    return stoker.Loader(Captions(bad=bad), **{"batch_size": 4, "output": "numpy", "threads": 3, "max_bad": 1, **k})


def check(batch):
    assert batch["text"] == [f"text {i}" for i in batch["n"]]


def go_through(loader):
    it = iter(loader)
    while True:
        try:
            check(next(it))
        except stoker.DataError:
            continue
        except StopIteration:
            return


def left_behind(loader):
    """Values of epochs that are over; those of the current one may be prefetched."""
    places = [place for place, _ in list(loader._given.fill.objects._waiting.values())]
    return [place for place in places if place[0] < loader.epoch]


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_bad_samples_leave_nothing(on_error):
    loader = open_loader(BAD, on_error=on_error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            go_through(loader)
    assert left_behind(loader) == []


def test_epochs_that_are_left_leave_nothing():
    loader = open_loader()
    for epoch in range(0, 100, 2):
        check(next(iter(loader)))
        loader.set_epoch(epoch)
        state = loader.state_dict()
        check(next(iter(loader)))
        loader.load_state_dict(state)
    loader.set_epoch(200)
    go_through(loader)
    assert left_behind(loader) == []
    loader.close()
    assert not loader._given.fill.objects._waiting


class Meanwhile:
    """The engine of a loader, where a row of an earlier place is finished during every restart."""

    def __init__(self, loader, place):
        self._handle, self._objects, self._place = loader._handle, loader._given.fill.objects, place
        loader._handle = self

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def set_epoch(self, epoch):
        self._objects.put(self._place, "a row that was being made")
        self._handle.set_epoch(epoch)

    def set_state(self, state):
        self._objects.put(self._place, "a row that was being made")
        self._handle.set_state(state)


def test_rows_made_during_a_restart_leave_nothing():
    loader = open_loader()
    check(next(iter(loader)))
    handle, loader._handle = loader._handle, Meanwhile(loader, (0, 12))
    loader.set_epoch(1)
    assert left_behind(loader) == []
    loader._handle = Meanwhile(loader, (1, 8))
    loader.load_state_dict(loader.state_dict())
    go_through(loader)
    assert left_behind(loader) == []
    loader._handle = handle


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("k", [{}, {"shuffle": True}, {"drop_last": True}])
def test_ranks_leave_nothing(rank, k):
    loader = open_loader(rank=rank, world_size=2, **k)
    for _ in range(3):
        go_through(loader)
    assert left_behind(loader) == []


def test_calls_out_of_turn_leave_nothing():
    loader = open_loader((30,), sampler=[0])  # nothing is prefetched before the first epoch
    check(loader.get([1, 2, 3, 4, 5, 6]))
    for wrong in (lambda: loader.get([1, 2, 30]), loader.load_all):
        with pytest.raises(stoker.DataError, match="sample 30"):
            wrong()
    assert not loader._given.fill.objects._waiting


def test_fields_that_nobody_wants():
    loader = open_loader(fields=("n",))
    for batch in loader:
        places = [place for place, _ in list(loader._given.fill.objects._waiting.values())]
        assert all(place > (0, batch["n"][-1]) for place in places)


def test_one_field_under_two_names():
    loader = open_loader(fields={"a": "text", "b": "text", "text": "text", "n": "n"})
    for batch in (loader.peek(), *loader, loader.get([3, 4])):
        check(batch)
        assert batch["a"] == batch["b"] == batch["text"]


STATE = {"stoker": 1, "data": "0", "samples": 3, "seed": 0, "shuffle": 0, "epoch": 0, "position": 0}


@pytest.mark.parametrize(
    "refused",
    [
        lambda loader: loader.load_state_dict({"stoker": 1}),
        lambda loader: loader.load_state_dict(STATE),
        lambda loader: loader.load_state_dict({**loader.state_dict(), "position": 10**6}),
        lambda loader: loader.load_state_dict({"stoker": {1}}),
        lambda loader: loader.set_epoch(2**60),
        lambda loader: loader.set_epoch(-1),
        lambda loader: loader.set_epoch(1.5),
    ],
)
@pytest.mark.parametrize("peek", [False, True])
def test_refused_calls_change_nothing(refused, peek):
    loader = open_loader()
    it = iter(loader)
    check(next(it))
    if peek:
        check(loader.peek())
    before = loader.state_dict()
    with pytest.raises(stoker.UsageError):
        refused(loader)
    assert loader.state_dict() == before
    rest = list(it)
    for batch in rest:
        check(batch)
    assert [batch["n"][0] for batch in rest] == list(range(4, 40, 4))


def test_get_beside_a_restart():
    """get() keeps what it made, though another call throws away what was prefetched."""
    loader = open_loader()
    state, restart = loader.state_dict(), loader._engine.get

    class Engine:
        def __getattr__(self, name):
            return getattr(handle, name)

        def get(self, *args):
            raw = restart(*args)
            loader.load_state_dict(state)
            return raw

    handle, loader._handle = loader._handle, Engine()
    check(loader.get([1, 2, 3]))
    loader._handle = handle


class Breaks:
    """An iterable that fails once, at its sixth sample."""

    failed = False

    def __iter__(self):
        for i in range(10):
            if i == 5 and not self.failed:
                self.failed = True
                raise OSError("the network is away")
            yield {"text": f"text {i}", "n": i}


def test_iterables_leave_nothing():
    for k in ({}, {"drop_last": True}):
        loader = stoker.Loader(Breaks(), batch_size=4, output="numpy", **k)
        for _ in range(5):
            go_through(loader)
        assert left_behind(loader) == []


def test_an_iterable_is_read_again_after_its_failure():
    loader = stoker.Loader(Breaks(), batch_size=2, output="numpy")
    it = iter(loader)
    got = [next(it), next(it)]
    state = loader.state_dict()
    with pytest.raises(stoker.DataError, match="the network is away"):
        next(it)
    loader.load_state_dict(state)
    got += list(loader)
    assert [n for batch in got for n in batch["n"].tolist()] == list(range(10))


def test_a_generator_cannot_go_back():
    def samples():
        return ({"text": f"text {i}", "n": i} for i in range(100))

    loader = stoker.Loader(samples(), batch_size=2, output="numpy")
    it = iter(loader)
    state = loader.state_dict()
    for n in range(10):
        assert next(it)["n"].tolist() == [2 * n, 2 * n + 1]
    loader.load_state_dict(state)
    with pytest.raises(stoker.UsageError, match="can be read only once"):
        next(iter(loader))
    left = stoker.Loader(samples(), batch_size=2, output="numpy")
    next(iter(left))
    with pytest.raises(stoker.UsageError, match="can be read only once"):
        next(iter(left))
