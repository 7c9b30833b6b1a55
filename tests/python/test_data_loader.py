# SPDX-License-Identifier: Apache-2.0
"""DataLoader gives what torch's gives, argument by argument."""

import inspect
import pickle

import numpy as np
import pytest
import stoker

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils import data  # noqa: E402


class Squares(data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.full((2,), float(i)), i * i


class Dicts(Squares):
    def __getitem__(self, i):
        return {"x": np.float32(i), "name": str(i), "index": i}


class Nested(Squares):
    def __getitem__(self, i):
        return torch.ones(3) * i, {"box": torch.zeros(4), "id": i}


class Single(Squares):
    def __getitem__(self, i):
        return torch.ones(3) * i


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(2) * i, i) for i in range(7)])


class Lengthy(Stream):
    def __len__(self):
        return 7


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def double(samples):
    return [torch.stack([x for x, _ in samples]) * 2, [y + 1 for _, y in samples]]


def test_the_signature_is_torchs():
    theirs = inspect.signature(data.DataLoader.__init__).parameters
    ours = inspect.signature(stoker.DataLoader.__init__).parameters
    assert [n for n in ours if n != "unknown"] == list(theirs)
    assert all(ours[n].default == theirs[n].default and ours[n].kind == theirs[n].kind for n in theirs)


CASES = {
    "pairs": (Squares, {"batch_size": 4}),
    "drop_last": (Squares, {"batch_size": 4, "drop_last": True}),
    "dicts": (Dicts, {"batch_size": 4}),
    "nested": (Nested, {"batch_size": 3}),
    "single": (Single, {"batch_size": 3}),
    "collate_fn": (Squares, {"batch_size": 4, "collate_fn": double}),
    "default_collate": (Squares, {"batch_size": 4, "collate_fn": data.default_collate}),
    "sampler": (Squares, {"batch_size": 4, "sampler": [3, 1, 3, 9, 0]}),
    "batch_sampler": (Squares, {"batch_sampler": [[1, 2, 3], [4], [5, 6]]}),
    "no batches": (Squares, {"batch_size": None}),
    "stream": (Stream, {"batch_size": 3}),
    "stream with a length": (Lengthy, {"batch_size": 3}),
    "tensors": (lambda: data.TensorDataset(torch.arange(9.0), torch.arange(9)), {"batch_size": 2}),
    "one tensor": (lambda: data.TensorDataset(torch.arange(9.0)), {"batch_size": 2}),
    "int32 and more": (
        lambda: data.TensorDataset(torch.ones(9, 2, 3), torch.arange(9, dtype=torch.int32), torch.arange(9) > 4),
        {"batch_size": 4},
    ),
    "int32": (lambda: data.TensorDataset(torch.ones(9, 2), torch.arange(9, dtype=torch.int32)), {"batch_size": 4}),
    "bytes": (lambda: data.TensorDataset(torch.ones(9, 3, 4, 4, dtype=torch.uint8), torch.arange(9)), {}),
    "pixels": (lambda: data.TensorDataset(torch.ones(9, 4, 4, 3, dtype=torch.uint8), torch.arange(9)), {}),
    "strides": (lambda: data.TensorDataset(torch.arange(90.0).view(9, 10).T[:, ::2]), {"batch_size": 4}),
    "complex": (lambda: data.TensorDataset(torch.ones(9, dtype=torch.complex64)), {"batch_size": 4}),
    "bfloat16": (lambda: data.TensorDataset(torch.arange(9.0).bfloat16()), {"batch_size": 4}),
    "part of tensors": (
        lambda: data.Subset(data.Subset(data.TensorDataset(torch.arange(9.0), torch.arange(9)), [8, 3, 1, 2]), [3, 0]),
        {"batch_size": 2},
    ),
    "tensors and collate_fn": (
        lambda: data.TensorDataset(torch.arange(9.0), torch.arange(9)),
        {"batch_size": 4, "collate_fn": double},
    ),
    "tensors without batches": (
        lambda: data.TensorDataset(torch.arange(9.0), torch.arange(9)),
        {"batch_size": None},
    ),
}
NATIVE = {n for n, (make, _) in CASES.items() if "tensor" in n or n in ("int32 and more", "int32", "bytes", "strides")}
NATIVE |= {"bfloat16"}


@pytest.mark.parametrize("name", CASES)
def test_same_batches(name):
    make, k = CASES[name]
    loader = stoker.DataLoader(make(), **k)
    theirs, ours = list(data.DataLoader(make(), **k)), list(loader)
    assert len(theirs) == len(ours)
    if make is not Stream:
        assert len(loader) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        assert equal(a, b), (a, b)


def test_tensors_are_read_in_place():
    x, y = torch.randn(1000, 4), torch.arange(1000)
    loader = stoker.DataLoader(data.TensorDataset(x, y), batch_size=10)
    assert "python" not in loader.explain() and loader._given.options["arrays"][0][2].ctypes.data == x.data_ptr()
    x[5] = 7  # seen when it is read, not when the loader was made
    loader.set_epoch(1)
    assert (next(iter(loader))[0][5] == 7).all()
    needs_grad = data.TensorDataset(torch.randn(4, 2, requires_grad=True))
    assert "samples from TensorDataset" in stoker.DataLoader(needs_grad).explain()
    train, val = data.random_split(data.TensorDataset(x, y), [900, 100], torch.Generator().manual_seed(1))
    assert "python" not in stoker.DataLoader(val).explain() and len(stoker.DataLoader(train)) == 900


def test_shuffle():
    torch.manual_seed(3)
    loader = stoker.DataLoader(Squares(), batch_size=5, shuffle=True)
    first, second = ([int(y) for _, ys in loader for y in ys] for _ in range(2))
    assert sorted(first) == sorted(second) == [i * i for i in range(10)] and first != second
    again = stoker.DataLoader(Squares(), batch_size=5, shuffle=True)
    assert [int(y) for _, ys in again for y in ys] == first
    other = stoker.DataLoader(Squares(), batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(4))
    assert [int(y) for _, ys in other for y in ys] != first


def test_attributes_and_what_is_not_used():
    dataset = Squares()
    loader = stoker.DataLoader(dataset, 4, num_workers=2, pin_memory=True, persistent_workers=True, prefetch_factor=4)
    assert loader.dataset is dataset and loader.batch_size == 4 and not loader.drop_last and len(loader) == 3
    assert len(loader.sampler) == 10 and loader.num_workers == 2 and loader.pin_memory
    words = loader.explain()
    assert "workers    num_workers=2: 2 threads" in words and loader.stats().threads == 2
    for name in ("pin_memory=True", "persistent_workers=True", "prefetch_factor=4"):
        assert f"not used   {name}:" in words
    assert "timeout" not in words


def test_distributed_sampler():
    parts = []
    for rank in range(2):
        sampler = data.DistributedSampler(Squares(), num_replicas=2, rank=rank, shuffle=True)
        loader = stoker.DataLoader(Squares(), batch_size=2, sampler=sampler)
        parts += [int(y) for _, ys in loader for y in ys]
        assert len(loader) == 3
    assert sorted(parts) == [i * i for i in range(10)]


def test_the_script_tells_the_sampler_its_epoch():
    orders = []
    for kind in (data.DataLoader, stoker.DataLoader):
        sampler = data.DistributedSampler(Squares(), num_replicas=2, rank=0, shuffle=True)
        loader = kind(Squares(), batch_size=2, sampler=sampler)
        for epoch in (5, 6, 6):  # a run that goes on where another ended
            sampler.set_epoch(epoch)
            orders.append([int(y) for _, ys in loader for y in ys])
    assert orders[:3] == orders[3:] and orders[0] != orders[1] == orders[2]


SAMPLES = {
    "long names": {"a_name_that_is_longer_than_the_engines_own": torch.zeros(2), "y": 1},
    "names that are computed": {"path": "here", "key": 3.0},
    "names that are no text": {0: torch.zeros(2), 1: 2},
    "many fields": {f"k{i}": i for i in range(20)},
    "many dimensions": (torch.zeros((1,) * 10), 1),
    "nothing in it": (torch.zeros(0, 3), 1),
    "a single one of nothing": torch.zeros(0),
    "complex numbers": (torch.ones(2, dtype=torch.complex64), 1),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_odd_forms(name):
    samples = [SAMPLES[name]] * 5
    ours, theirs = (list(kind(samples, batch_size=2)) for kind in (stoker.DataLoader, data.DataLoader))
    assert equal(theirs, ours)


def test_ranks_are_left_to_the_sampler(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert len(stoker.DataLoader(Squares(), batch_size=2)) == 5


def test_parallel():
    assert "seeded, one at a time" in stoker.DataLoader(Squares()).explain()
    loader = stoker.DataLoader(Squares(), batch_size=4, parallel=True, num_workers=3)
    assert "in parallel, not seeded" in loader.explain()
    assert [int(y) for _, ys in loader for y in ys] == [i * i for i in range(10)]
    assert "in parallel" in pickle.loads(pickle.dumps(loader)).explain()


def test_mistakes():
    for workers in (-1, 2.5, "2", True):
        with pytest.raises(ValueError, match="num_workers is"):
            stoker.DataLoader(Squares(), num_workers=workers)
    with pytest.raises(ValueError, match="sampler excludes shuffle"):
        stoker.DataLoader(Squares(), shuffle=True, sampler=[1])
    with pytest.raises(stoker.UsageError, match="did you mean num_workers"):
        stoker.DataLoader(Squares(), num_worker=1)


def test_pickle_and_state():
    loader = stoker.DataLoader(Squares(), batch_size=3, num_workers=1)
    next(iter(loader))
    again = pickle.loads(pickle.dumps(loader))
    assert isinstance(again, stoker.DataLoader) and again.num_workers == 1
    assert [len(y) for _, y in again] == [3, 3, 1]


@pytest.mark.parametrize("name", CASES)
def test_compare(name):
    make, k = CASES[name]
    found = stoker.compare(data.DataLoader(make(), **k), seconds=0.02)
    assert found.ours > 0 and found.theirs > 0 and found.native == (name in NATIVE)
    assert not found.pixels and not found.labels


def test_compare_takes_loaders_of_torch():
    with pytest.raises(stoker.UsageError, match="takes a torch.utils.data.DataLoader"):
        stoker.compare([1, 2])
