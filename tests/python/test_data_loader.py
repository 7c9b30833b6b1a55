# SPDX-License-Identifier: Apache-2.0
"""DataLoader gives what torch's gives, argument by argument."""

import copy
import inspect
import itertools
import json
import os
import pickle
import random
import signal

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, write_png

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
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


def double(samples):
    return [torch.stack([x for x, _ in samples]) * 2, [y + 1 for _, y in samples]]


def test_the_signature_is_torchs():
    theirs = inspect.signature(data.DataLoader.__init__).parameters
    ours = inspect.signature(stoker.DataLoader.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
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
    assert "in Python" not in loader.explain()
    assert loader._engine._given.options["arrays"][0][2].ctypes.data == x.data_ptr()
    x[5] = 7  # seen when it is read, not when the loader was made
    assert (next(iter(loader))[0][5] == 7).all()
    needs_grad = data.TensorDataset(torch.randn(4, 2, requires_grad=True))
    assert "in Python" in stoker.DataLoader(needs_grad).explain()
    train, val = data.random_split(data.TensorDataset(x, y), [900, 100], torch.Generator().manual_seed(1))
    assert "in Python" not in stoker.DataLoader(val).explain() and len(stoker.DataLoader(train)) == 900


def labels_of(loader):
    return [int(y) for batch in loader for y in batch[1]]


def tensors():
    return data.TensorDataset(torch.arange(40.0).view(20, 2), torch.arange(20))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Squares, tensors])
@pytest.mark.parametrize("given", [False, True])
def test_shuffle_is_torchs_index_for_index(make, workers, given):
    orders = []
    for kind in (data.DataLoader, stoker.DataLoader):
        torch.manual_seed(3)
        generator = torch.Generator().manual_seed(4) if given else None
        loader = kind(make(), batch_size=3, shuffle=True, num_workers=workers, generator=generator)
        orders.append([labels_of(loader) for _ in range(3)])
        orders[-1].append(torch.randint(1000, (3,)).tolist())  # and the generator has drawn as often
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]


@pytest.mark.parametrize("make", [Squares, tensors])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_that_is_not_used_draws_what_torchs_draws(make, workers):
    def order(kind):
        torch.manual_seed(7)
        loader = kind(make(), batch_size=3, shuffle=True, num_workers=workers)
        unused = iter(loader)
        found = labels_of(loader)
        del unused
        return found

    assert order(stoker.DataLoader) == order(data.DataLoader)


def test_construction_draws_nothing():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    stoker.DataLoader(Squares(), shuffle=True)
    assert torch.equal(before, torch.get_rng_state())


class Draws(Squares):
    """Random numbers of every generator that people use."""

    def __len__(self):
        return 30

    def __getitem__(self, i):
        return i, torch.rand(3), random.random(), np.random.rand(2), random.gauss(0, 1)


def all_of(loader):
    return [[v.tolist() for v in batch] for batch in loader]


def test_rows_are_the_same_for_any_number_of_workers():
    rows = []
    for workers in (0, 1, 2, 7):
        torch.manual_seed(11)
        loader = stoker.DataLoader(Draws(), batch_size=4, shuffle=True, num_workers=workers)
        rows.append(all_of(loader))
    assert rows[0] == rows[1] == rows[2] == rows[3]
    drawn = [v for batch in rows[0] for v in batch[2]]
    assert len(set(drawn)) == 30
    assert all_of(loader) != rows[0]  # the next epoch has other numbers


@pytest.mark.parametrize("workers", [0, 2])
def test_the_trainers_generators_are_not_touched(workers):
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    sequence = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    loader = stoker.DataLoader(Draws(), 4, num_workers=workers, generator=torch.Generator())
    next(iter(loader))
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == sequence


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("shuffle", ["no", "yes", "generator", "weights"])
@pytest.mark.parametrize("make", [Draws, tensors])
def test_resume_in_the_middle(make, workers, shuffle):
    def loader():
        order = {}
        if shuffle == "weights":
            order["sampler"] = data.WeightedRandomSampler([1.0] * 20, 20)
        elif shuffle == "generator":
            order.update(shuffle=True, generator=torch.Generator().manual_seed(5))
        elif shuffle == "yes":
            order["shuffle"] = True
        return stoker.DataLoader(make(), batch_size=3, num_workers=workers, **order)

    first = loader()
    batches = iter(first)
    for _ in range(2):
        next(batches)
    state = json.loads(json.dumps(first.state_dict()))
    rest = all_of(batches)
    second = loader()
    torch.manual_seed(99)
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert all_of(second) == rest
    assert len(all_of(second)) == len(second)  # the next epoch is whole


def test_several_iterators_are_alive():
    loader = stoker.DataLoader(tensors(), batch_size=5)
    pairs = list(zip(loader, loader, strict=True))
    assert all(equal(a, b) for a, b in pairs) and len(pairs) == 4
    one, two = iter(loader), iter(loader)
    next(one)
    assert labels_of(two) == list(range(20)) and labels_of(one) == list(range(5, 20))


def test_it_is_a_loader_of_torchs():
    dataset = Squares()
    loader = stoker.DataLoader(dataset, 4, num_workers=2, persistent_workers=True, prefetch_factor=4)
    assert isinstance(loader, data.DataLoader) and stoker.DataLoader[int]
    assert loader.dataset is dataset and loader.batch_size == 4 and not loader.drop_last and len(loader) == 3
    assert type(loader.sampler) is data.SequentialSampler and type(loader.batch_sampler) is data.BatchSampler
    assert loader.collate_fn is data.default_collate and loader.generator is None
    with pytest.raises(ValueError, match="should not be set"):
        loader.batch_size = 3
    assert labels_of(loader) == labels_of(loader) == [i * i for i in range(10)]
    loader.close()


class Never(Squares):
    def __getitem__(self, i):
        raise RuntimeError("was called")


def test_construction_asks_for_no_sample():
    assert len(stoker.DataLoader(Never(), 4)) == 3


class Unsized:
    """A dataset without a length."""

    def __getitem__(self, i):
        return i


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_without_a_length(workers):
    loader = stoker.DataLoader(Unsized(), 4, sampler=range(10), num_workers=workers)
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert loader.explain().startswith("dataset    Unsized, in Python: ")


class Twice(data.TensorDataset):
    def __getitems__(self, indices):
        return [(2 * self[i][0],) for i in indices]


def test_getitems_of_a_tensor_dataset():
    assert [b[0].tolist() for b in stoker.DataLoader(Twice(torch.arange(3)), 2)] == [[0, 2], [4]]


def test_changes_between_epochs_are_seen():
    class Counted(Squares):
        n = 0

        def __getitem__(self, i):
            return self.n

    loader = stoker.DataLoader(Counted(), 10, num_workers=1)
    assert next(iter(loader)).tolist() == [0] * 10
    loader.dataset.n = 5
    assert next(iter(loader)).tolist() == [5] * 10


def test_distributed_sampler():
    parts = []
    for rank in range(2):
        sampler = data.DistributedSampler(Squares(), num_replicas=2, rank=rank, shuffle=True)
        loader = stoker.DataLoader(Squares(), batch_size=2, sampler=sampler)
        parts += labels_of(loader)
        assert len(loader) == 3
    assert sorted(parts) == [i * i for i in range(10)]


def test_the_script_tells_the_sampler_its_epoch():
    orders = []
    for kind in (data.DataLoader, stoker.DataLoader):
        sampler = data.DistributedSampler(Squares(), num_replicas=2, rank=0, shuffle=True)
        loader = kind(Squares(), batch_size=2, sampler=sampler)
        for epoch in (5, 6, 6):  # a run that goes on where another ended
            sampler.set_epoch(epoch)
            orders.append(labels_of(loader))
    assert orders[:3] == orders[3:] and orders[0] != orders[1] == orders[2]


@pytest.mark.parametrize("make", [Squares, tensors])
@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_forked_child(make, workers):
    loader = stoker.DataLoader(make(), batch_size=3, num_workers=workers)
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        os._exit(0 if labels_of(loader) == [int(make()[i][1]) for i in range(len(make()))] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(batches)) == len(loader) - 1


def test_persistent_workers_in_a_forked_child():
    loader = stoker.DataLoader(Squares(), batch_size=3, num_workers=2, persistent_workers=True)
    expected = labels_of(loader)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if labels_of(loader) == expected else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert labels_of(loader) == expected


def test_close_ends_all_iterators():
    loader = stoker.DataLoader(Squares(), batch_size=3, num_workers=1)
    iterators = [iter(loader), iter(loader)]
    processes = [one.process for it in iterators for one in it._workers.processes]
    loader.close()
    assert len(processes) == 2 and not any(process.is_alive() for process in processes)


class Refusing:
    def __iter__(self):
        raise ValueError("not today")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [Squares, tensors])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_that_fails(make, workers):
    loader = stoker.DataLoader(make(), batch_sampler=Refusing(), num_workers=workers)
    with pytest.raises(ValueError, match="not today"):
        iter(loader)


def test_a_cache_outlives_a_change_of_the_dataset(tmp_path):
    transforms = import_torchvision().transforms
    steps = [transforms.CenterCrop(4), transforms.ToTensor(), shade]
    root = some_bad_images(tmp_path)
    dataset = import_torchvision().datasets.ImageFolder(root, transforms.Compose(steps))
    loader = stoker.DataLoader(dataset, num_workers=1, cache="pixels", on_error="skip", max_bad=1.0)
    batches = iter(loader)
    cache = batches._workers.samples.cache.fd
    before = os.fstat(cache)
    dataset.transform = transforms.Compose([transforms.CenterCrop(2), *steps[1:]])
    assert loader.native and loader._shared is None
    assert os.path.samestat(os.fstat(cache), before)
    loader.close()


def test_state_at_the_end_of_an_epoch():
    loader = stoker.DataLoader(Squares(), batch_size=3, shuffle=True)
    assert loader.state_dict() == {"epoch": 0}
    for _ in loader:
        break
    assert loader.state_dict()["batches"] == 1  # though the iterator is gone
    list(loader)
    assert loader.state_dict() == {"epoch": 2}
    again = stoker.DataLoader(Squares(), batch_size=3, shuffle=True)
    again.load_state_dict(loader.state_dict())
    assert len(list(again)) == 4 and again.state_dict() == {"epoch": 3}


class SomeBad(Squares):
    def __getitem__(self, i):
        if i in (1, 2, 4, 8):
            raise ValueError("bad")
        return i


def some_bad_images(root):
    """The same as images, whose pixels are their index."""
    for i in range(10):
        path = root / "class" / f"{i}.png"
        write_png(path, np.full((4, 4, 3), i, np.uint8))
        if i in (1, 2, 4, 8):
            path.write_bytes(path.read_bytes()[:35])
    return root


def shade(image):
    return image[0, 0, 0]


def whatever_comes(batches):
    """The next batch, after any number that fail."""
    while True:
        try:
            batch = next(batches)
        except (ValueError, stoker.DataError):
            continue
        except StopIteration:
            return None
        values = batch[0] if isinstance(batch, list) else batch
        return round(float(values.flatten()[0]) * (255 if values.is_floating_point() else 1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("on_error", ["skip", "raise"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["python", "engine", "mixed"])
def test_resume_after_bad_batches(kind, workers, on_error, tmp_path, monkeypatch):
    """The state is where the sampler was, not how many batches were good."""
    monkeypatch.setattr("stoker._torch_iter.CHUNK", 4)
    dataset = SomeBad()
    if kind != "python":
        torchvision = import_torchvision()
        steps = [torchvision.transforms.CenterCrop(4), torchvision.transforms.ToTensor()]
        transform = torchvision.transforms.Compose([*steps, *([shade] if kind == "mixed" else [])])
        dataset = torchvision.datasets.ImageFolder(some_bad_images(tmp_path), transform)

    def loader():
        return stoker.DataLoader(dataset, num_workers=workers, on_error=on_error, max_bad=1.0)

    assert loader().native == (kind != "python")
    for n in range(1, 7):
        first, second = loader(), loader()
        batches = iter(first)
        assert [whatever_comes(batches) for _ in range(n)] == [0, 3, 5, 6, 7, 9][:n]
        second.load_state_dict(first.state_dict())
        rest = iter(second)
        assert [whatever_comes(rest) for _ in range(6 - n)] == [0, 3, 5, 6, 7, 9][n:]
        for one in (first, second):
            one.close()


def test_a_batch_that_failed_is_tried_again_after_a_resume():
    loader = stoker.DataLoader(OneBad(), 8)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="unlucky"):
        next(batches)
    assert loader.state_dict()["batches"] == 1
    next(batches)
    assert loader.state_dict()["batches"] == 3


def test_no_state_without_order():
    loader = stoker.DataLoader(Squares(), 2, num_workers=2, in_order=False)
    batches = iter(loader)
    assert loader.state_dict()["batches"] == 0
    next(batches)
    with pytest.raises(stoker.UsageError, match="leave in_order=False out"):
        loader.state_dict()
    assert len(list(pickle.loads(pickle.dumps(loader)))) == 5
    list(batches)
    assert loader.state_dict() == {"epoch": 1}
    here = stoker.DataLoader(Squares(), 2, in_order=False)
    next(iter(here))
    assert here.state_dict()["batches"] == 1


class Endless(data.Sampler):
    def __iter__(self):
        return itertools.cycle(range(20))


@pytest.mark.parametrize("make", [Draws, tensors])
def test_a_sampler_without_an_end(make, monkeypatch):
    monkeypatch.setattr("stoker._torch_iter.CHUNK", 8)  # the engine gets it piece by piece
    loader = stoker.DataLoader(make(), batch_size=3, sampler=Endless())
    got = [batch[0 if make is Draws else 1].tolist() for batch in itertools.islice(loader, 40)]
    assert [i for batch in got for i in batch] == [i % 20 for i in range(120)]


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


def test_explain():
    loader = stoker.DataLoader(Squares(), 4, num_workers=2)
    assert "Squares, 10 samples, in Python" in loader.explain() and "2 processes" in loader.explain()
    assert "in the calling thread" in stoker.DataLoader(Squares()).explain()
    native = stoker.DataLoader(tensors(), 4, num_workers=2, persistent_workers=True)
    assert "2 threads" in native.explain() and "not used   persistent_workers=True:" in native.explain()
    assert native.stats().threads == 2
    list(loader)
    assert loader.stats().samples == 10 and loader.stats().batches == 3 and loader.stats().processes == 2
    assert "workers    2 processes" in repr(loader.stats())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Draws, tensors])
def test_seed(make, workers):
    def run(seed):
        return [all_of(loader) for loader in [stoker.DataLoader(make(), 3, True, num_workers=workers, seed=seed)] * 2]

    torch.manual_seed(1)
    first, before = run(5), torch.get_rng_state()
    torch.manual_seed(2)
    assert equal(run(5), first) and not equal(run(6), first) and not equal(first[0], first[1])
    loader = stoker.DataLoader(make(), 3, True, num_workers=workers, seed=5)
    all_of(loader)
    again = pickle.loads(pickle.dumps(loader))
    assert again.seed == 5 and equal(all_of(again), first[1])
    assert "seed=5" in loader.explain()
    torch.manual_seed(1)
    assert torch.equal(before, torch.get_rng_state())


def test_mistakes():
    with pytest.raises(ValueError, match="num_workers"):
        stoker.DataLoader(Squares(), num_workers=-1)
    with pytest.raises(ValueError, match="mutually exclusive with shuffle"):
        stoker.DataLoader(Squares(), shuffle=True, sampler=[1])
    with pytest.raises(stoker.UsageError, match="did you mean num_workers"):
        stoker.DataLoader(Squares(), num_worker=1)
    with pytest.raises(stoker.UsageError, match="on_error is 'ignore'"):
        stoker.DataLoader(Squares(), on_error="ignore")
    for k in ({"cache": "dct"}, {"memory": "1G"}, {"dtype": "uint8"}, {"layout": "NHWC"}, {"cache_dir": "x"}):
        with pytest.raises(stoker.UsageError, match=f"{next(iter(k))}='.*' needs a dataset that Stoker reads"):
            iter(stoker.DataLoader(Squares(), **k))
    with pytest.raises(stoker.UsageError, match="on_error='skip' needs a dataset"):
        iter(stoker.DataLoader(Stream(), on_error="skip"))
    for k in ({"dtype": "float16"}, {"layout": "channels_last"}):
        with pytest.raises(stoker.UsageError, match="is for images"):
            iter(stoker.DataLoader(tensors(), **k))
    with pytest.raises(stoker.UsageError, match="seed and generator"):
        stoker.DataLoader(Squares(), seed=1, generator=torch.Generator())
    with pytest.raises(stoker.UsageError, match="not a state"):
        stoker.DataLoader(Squares()).load_state_dict({})


@pytest.mark.parametrize("make", [Squares, tensors, Stream])
def test_pickle_and_state(make):
    loader = stoker.DataLoader(make(), batch_size=3, num_workers=1)
    batches = iter(loader)
    next(batches)
    again = pickle.loads(pickle.dumps(loader))
    assert isinstance(again, stoker.DataLoader) and again.num_workers == 1
    if make is not Stream:
        assert equal(list(again), list(batches))


class Named(stoker.DataLoader):
    def __init__(self, dataset, name, **k):
        super().__init__(dataset, **k)
        self.name = name


def test_a_subclass_is_pickled():
    loader = Named(Squares(), "mine", batch_size=4, on_error="skip")
    next(iter(loader))
    for again in (pickle.loads(pickle.dumps(loader)), copy.copy(loader)):
        assert type(again) is Named and again.name == "mine" and again.on_error == "skip" and len(list(again)) == 2


class Repeated:
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class Unending(stoker.DataLoader):
    """Keeps one iterator for all epochs, as loaders of YOLO and timm do."""

    def __init__(self, *args, **k):
        super().__init__(*args, **k)
        object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        return (next(self.iterator) for _ in range(len(self)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Squares, tensors])
def test_one_iterator_for_all_epochs(make, workers):
    loader = Unending(make(), batch_size=3, shuffle=True, num_workers=workers)
    for _ in range(3):
        assert sorted(labels_of(loader)) == [int(make()[i][1]) for i in range(len(make()))]
    loader.close()


class Sizes(Squares):
    def __getitem__(self, i):
        return torch.ones(2, i + 1), i


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_different_shapes(workers):
    ours, theirs = (list(kind(Sizes(), 1, num_workers=workers)) for kind in (stoker.DataLoader, data.DataLoader))
    assert equal(ours, theirs)
    for kind in (stoker.DataLoader, data.DataLoader):
        with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
            list(kind(Sizes(), 4, num_workers=workers))


@pytest.mark.parametrize("name", CASES)
def test_compare(name):
    make, k = CASES[name]
    found = stoker.compare(data.DataLoader(make(), **k), seconds=0.02)
    assert found.ours > 0 and found.theirs > 0 and found.native == (name in NATIVE)
    assert not found.pixels and not found.labels


class RandomLabels(data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.full((2,), float(i)), random.random()


def test_compare_does_not_compare_random_labels():
    found = stoker.compare(data.DataLoader(RandomLabels(), 4), seconds=0.02)
    assert found.pixels == 0 and found.labels is None and "differ" not in found.line


def test_compare_takes_loaders_of_torch():
    with pytest.raises(stoker.UsageError, match="takes a torch.utils.data.DataLoader"):
        stoker.compare([1, 2])


class OneBad(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> int:
        if i == 13:
            raise ValueError("unlucky")
        return i


@pytest.mark.parametrize("workers", [0, 2])
def test_a_skipped_sample_is_reported(workers: int) -> None:
    with pytest.warns(RuntimeWarning, match="sample 13 is bad and was left out: .*unlucky"):
        batches = list(stoker.DataLoader(OneBad(), 8, num_workers=workers, on_error="skip"))
    assert [len(b) for b in batches] == [8, 7, 8, 8, 8]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_bad_sample_is_allowed() -> None:
    with pytest.raises(stoker.DataError, match="max_bad allows 0"):
        list(stoker.DataLoader(OneBad(), 8, on_error="skip", max_bad=0))
    with pytest.raises(stoker.DataError, match="more than the 0"):
        list(stoker.Loader(OneBad(), batch_size=8, on_error="skip", max_bad=0.0))


@pytest.mark.parametrize("workers", [0, 2])
def test_collate_fn_is_set_afterwards(workers):
    numbers = torch.utils.data.TensorDataset(torch.arange(8.0))
    for kind in (torch.utils.data.DataLoader, stoker.DataLoader):
        loader = kind(numbers, batch_size=4, num_workers=workers)
        loader.collate_fn = len
        assert list(loader) == [4, 4]
        loader.collate_fn = torch.utils.data.default_collate
        assert [batch[0].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_ctrl_c_at_the_end_of_tensors(monkeypatch):
    """The engine is behind the last batch already."""

    def interrupted(self):
        monkeypatch.undo()
        raise KeyboardInterrupt

    loader = stoker.DataLoader(data.TensorDataset(torch.arange(10)), 4)
    for _ in range(2):
        batches = iter(loader)
        assert [next(batches)[0].tolist() for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        monkeypatch.setattr(stoker.Loader, "_warn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        assert next(batches, None) is None


def test_an_iterator_that_has_ended():
    """Its engine is closed, or another iterator has it."""
    loader = stoker.DataLoader(data.TensorDataset(torch.arange(8)), 4)
    one, other = iter(loader), iter(loader)
    assert len(list(one)) == len(list(other)) == 2
    assert next(one, None) is None and next(other, None) is None
    for _ in range(20):  # engines count on from a number that is drawn
        ended = iter(loader)
        assert len(list(ended)) == 2
        under_way = iter(loader)
        next(under_way)
        assert next(ended, None) is None
        assert len(list(under_way)) == 1


@pytest.mark.parametrize("dataset", [Squares(), data.TensorDataset(torch.arange(10))])
def test_ctrl_c_while_an_iterator_begins(dataset, monkeypatch):
    """Some of the sampler's batches are lost: it must not look like an epoch without them."""

    loader = stoker.DataLoader(dataset, 4)
    batches = iter(loader)
    with monkeypatch.context() as patch:
        patch.setattr(type(batches), "_start", lambda self: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    with pytest.raises(stoker.Error, match="interrupted or failed before its first batch"):
        next(batches)
    assert len(list(loader)) == len(loader)
