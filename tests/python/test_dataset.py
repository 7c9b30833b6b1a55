# SPDX-License-Identifier: Apache-2.0
"""Datasets and iterables of the user's own."""

import random
import threading
import traceback
from typing import NamedTuple

import numpy as np
import pytest
import stoker


class Squares:
    def __len__(self):
        return 50

    def __getitem__(self, i):
        return np.full((2, 3), i, np.float32), i * i


class Random(Squares):
    def __getitem__(self, i):
        return np.random.rand(3), random.random()


class WithRng(Squares):
    def __getitem__(self, i, rng):
        return rng.random(3)


def loader(source, **k):
    return stoker.Loader(source, output="numpy", **k)


def test_map_style():
    batches = list(loader(Squares(), batch_size=8, shuffle=True))
    assert sorted(int(v) for b in batches for v in b.label) == [i * i for i in range(50)]
    assert batches[0].image.shape == (8, 2, 3)
    for b in batches:
        assert np.array_equal(b.image[:, 0, 0] ** 2, b.label)


@pytest.mark.parametrize("kind", [Random, WithRng])
def test_deterministic(kind):
    runs = []
    for threads in (1, 4):
        made = loader(kind(), batch_size=10, threads=threads)
        runs.append([b.image for _ in range(2) for b in made])
    assert all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))
    assert not np.array_equal(runs[0][0], runs[0][5])  # another epoch, other numbers


class Meeting:
    """A function in which threads wait until there are two of them."""

    def __init__(self):
        self.seen, self.both = set(), threading.Event()

    def __call__(self, x):
        if threading.current_thread() is not threading.main_thread():
            self.seen.add(threading.get_ident())
            if len(self.seen) == 2:
                self.both.set()
            assert self.both.wait(300)
        return x


def test_functions_with_rng_run_in_threads():
    meeting = Meeting()

    class Meetings(Squares):
        def __getitem__(self, i, rng):
            return meeting(np.float32(i))

    made = loader(Meetings(), threads=2, batch_size=50)
    assert next(iter(made)).image.tolist() == list(range(50)) and "in threads" in made.explain()
    assert "in the calling thread" in loader(Squares()).explain()


def test_loaders_side_by_side_do_not_disturb_each_other():
    want = [b.image for b in loader(Random(), batch_size=10)]
    for _ in range(10):
        beside = [iter(loader(Random(), batch_size=10, seed=i)) for i in range(3)]
        assert all(np.array_equal(a, b.image) for a, b in zip(want, loader(Random(), batch_size=10), strict=True))
        del beside


def test_generators_are_left_alone():
    random.seed(1)
    np.random.seed(1)
    want = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    it = iter(loader(Random(), batch_size=50))
    next(it)
    it = None
    assert (random.random(), np.random.rand()) == want


def test_forms_of_samples():
    class Point(NamedTuple):
        x: float
        name: str

    batch = next(iter(loader([Point(1.5, "a"), Point(2.5, "b")], batch_size=2)))
    assert batch.x.tolist() == [1.5, 2.5] and batch.name == ["a", "b"]
    batch = next(iter(loader([{"v": 1, "w": [1, 2]}] * 3, batch_size=3)))
    assert batch["w"].shape == (3, 2)
    batch = next(iter(loader([np.float32(1)] * 3, batch_size=3)))
    assert batch.image.dtype == np.float32


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ({"a_name_that_is_longer_than_the_engines_own" * 2: 1}, "1 to 63 bytes"),
        ({f"k{i}": i for i in range(20)}, "20 fields"),
        ((np.zeros((1,) * 10), 1), "10 dimensions"),
        ((np.zeros((0, 3)), 1), "is empty: its shape"),
        ({"valid": 1}, "which Stoker uses for its own field"),
    ],
)
def test_samples_that_are_no_rows(sample, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader([sample] * 3)
    assert len(next(iter(stoker.Loader([sample] * 3, collate_fn=list, batch_size=2)))) == 2


def test_a_field_of_the_users_own_is_not_computed():
    samples = [{"path": f"{i}.wav", "key": i} for i in range(3)]
    batch = next(iter(stoker.Loader(samples, batch_size=3, output="numpy")))
    assert batch["path"] == ["0.wav", "1.wav", "2.wav"] and batch["key"].tolist() == [0, 1, 2]


def test_uneven_shapes_name_the_sample():
    data = [np.zeros(3)] * 5 + [np.zeros(4)]
    with pytest.raises(stoker.DataError, match=r"\(4,\).*\(3,\)") as caught:
        list(loader(data, batch_size=2))
    assert caught.value.sample == 5
    sizes = list(loader(data, batch_size=3, collate_fn=lambda rows: [len(r) for r in rows]))
    assert sizes == [[3, 3, 3], [3, 3, 4]]


def test_a_dataset_that_raises():
    class Bad(Squares):
        def __getitem__(self, i):
            if i == 7:
                raise KeyError("seven")
            return super().__getitem__(i)

    with pytest.raises(stoker.DataError, match="KeyError") as caught:
        list(loader(Bad()))
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.sample == 7
    assert "in __getitem__" in "".join(traceback.format_exception(caught.value))  # its own lines are shown
    with pytest.warns(RuntimeWarning):
        assert sum(len(b.label) for b in loader(Bad(), on_error="skip", max_bad=0.5, batch_size=10)) == 49


def test_functions_change_the_first_part():
    made = loader(Squares(), transform=lambda x: x.sum(), batch_size=5)
    batch = next(iter(made))
    assert batch.image.tolist() == [0, 6, 12, 18, 24] and batch.label.tolist() == [0, 1, 4, 9, 16]
    with pytest.raises(stoker.UsageError, match="but Squares makes its samples in Python"):
        loader(Squares(), transform="CenterCrop(8)")
    with pytest.raises(stoker.UsageError, match="ops work on images"):
        loader(Stream(3), transform=[stoker.CenterCrop(8), np.sum])


def test_a_first_sample_that_raises():
    def fail(x):
        raise ZeroDivisionError("by design")

    with pytest.raises(stoker.DataError, match="failed on its first sample: KeyError: 0") as caught:
        loader(_Keyless())
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.sample == 0
    with pytest.raises(stoker.DataError, match="failed on the first sample: ZeroDivisionError") as caught:
        loader(Squares(), transform=fail)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


class _Keyless(Squares):
    def __getitem__(self, i):
        raise KeyError(i)


def test_empty():
    with pytest.raises(stoker.UsageError, match="no samples"):
        loader([])
    with pytest.raises(stoker.UsageError, match="no samples"):
        loader(iter(()))


class Stream:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter((np.float32(i), i) for i in range(self.n))


def test_iterable():
    stream = loader(Stream(10), batch_size=4)
    for _ in range(3):
        assert [b.label.tolist() for b in stream] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [len(b.label) for b in loader(Stream(10), batch_size=4, drop_last=True)] == [4, 4]
    assert [len(b.label) for b in loader(Stream(8), batch_size=4)] == [4, 4]
    with pytest.raises(TypeError):
        len(stream)
    with pytest.raises(stoker.UsageError, match="an iterable has its own order"):
        loader(Stream(3), shuffle=True)


def test_get():
    seen = loader(WithRng(), batch_size=4).get([3, 5], epoch=2)
    for row, values in zip(seen.drawn, seen.image, strict=True):
        (call,) = row["ops"]
        assert call["op"] == "__getitem__"
        assert np.array_equal(np.random.Generator(np.random.Philox(key=call["seed"])).random(3), values)
    with pytest.raises(stoker.UsageError, match="cannot go back to its samples"):
        loader(Stream(3)).get(0)


def test_an_iterator_goes_only_once():
    stream = loader(iter(Stream(10)), batch_size=4)
    assert [len(b.label) for b in stream] == [4, 4, 2]
    with pytest.raises(stoker.UsageError, match="can be read only once"):
        list(stream)


def test_samples_that_are_missing_or_nested():
    with pytest.raises(stoker.DataError, match="sample 1: ValueError: is None"):
        list(loader([(1.0, 2), None]))
    (batch,) = loader([{"boxes": [[1, 2], [3]], "n": 2}] * 2, batch_size=2)
    assert batch["boxes"] == [[[1, 2], [3]]] * 2 and batch["n"].tolist() == [2, 2]


def test_iterable_resumes():
    stream = loader(Stream(10), batch_size=4)
    next(iter(stream))
    other = loader(Stream(10), batch_size=4)
    other.load_state_dict(stream.state_dict())
    assert [b.label.tolist() for b in other] == [[4, 5, 6, 7], [8, 9]]
    assert [b.label.tolist() for b in other][0] == [0, 1, 2, 3]


def test_iterable_that_raises():
    def samples():
        yield np.float32(1)
        raise OSError("gone")

    with pytest.raises(stoker.DataError, match="gone") as caught:
        list(loader(samples()))
    assert isinstance(caught.value.__cause__, OSError)


class BadBatch:
    """Samples 4 to 7 cannot be read: with batches of 4, all of the second one."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        if i // 4 == 1:
            raise OSError("no such row")
        return np.float32(i)


def test_skip_leaves_out_a_batch_without_good_samples():
    loader = stoker.Loader(BadBatch(), batch_size=4, on_error="skip", max_bad=1.0, output="numpy")
    assert len(loader) == 3  # as laid out
    it = iter(loader)
    first, position = next(it), loader.state_dict()["position"]
    state = loader.state_dict()
    assert first[0].tolist() == [0, 1, 2, 3] and position == 4
    assert next(it)[0].tolist() == [8, 9] and loader.state_dict()["position"] == 10
    with pytest.warns(RuntimeWarning, match="4 bad samples were left out"), pytest.raises(StopIteration):
        next(it)
    assert (loader.stats().batches, loader.stats().samples, loader.stats().bad) == (2, 6, 4)
    again = stoker.Loader(BadBatch(), batch_size=4, on_error="skip", max_bad=1.0, output="numpy")
    again.load_state_dict(state)
    assert again.peek()[0].tolist() == [8, 9] and again.state_dict() == state


def test_ranks_get_a_batch_without_good_samples_empty():
    options = {"batch_size": 2, "on_error": "skip", "max_bad": 1.0, "output": "numpy", "world_size": 2}
    for rank in range(2):
        loader = stoker.Loader(BadBatch(), rank=rank, **options)
        with pytest.warns(RuntimeWarning):
            assert [len(batch[0]) for batch in loader] == [2, 0, 2 if rank == 0 else 0]
