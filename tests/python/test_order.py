# SPDX-License-Identifier: Apache-2.0
"""DataLoader draws what torch's DataLoader draws, at the same moment: orders, seeds and generators are equal."""

import json

import pytest
import stoker

torch = pytest.importorskip("torch", reason="torch is not installed")

from conftest import import_torchvision  # noqa: E402
from torch.utils import data  # noqa: E402

N = 20
LOADERS = (data.DataLoader, stoker.DataLoader)


class Points(data.Dataset):
    """Read in Python."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.tensor([float(i)]), i


class Draws(Points):
    def __getitem__(self, i):
        return torch.rand(2), i


def tensors():
    """Read in C."""
    return data.TensorDataset(torch.arange(float(N)).view(-1, 1), torch.arange(N))


class Eager(data.Sampler):
    """Draws in iter(), not with the first index; counts its passes."""

    def __init__(self, size):
        self.size, self.passes = size, 0

    def __len__(self):
        return N // self.size if self.size else N

    def __iter__(self):
        self.passes += 1
        order = torch.randperm(N).tolist()
        if not self.size:
            return iter(order)
        return iter([order[i : i + self.size] for i in range(0, N, self.size)])


def generator():
    return torch.Generator().manual_seed(4)


ORDERS = {
    "in turn": lambda: {"batch_size": 3},
    "shuffled": lambda: {"batch_size": 3, "shuffle": True},
    "generator": lambda: {"batch_size": 3, "shuffle": True, "generator": generator()},
    "replacement": lambda: {"batch_size": 3, "sampler": data.RandomSampler(range(N), True, 50)},
    "more than all": lambda: {"batch_size": 3, "sampler": data.RandomSampler(range(N), num_samples=50)},
    "weights": lambda: {"batch_size": 3, "sampler": data.WeightedRandomSampler([1.0] * N, 30)},
    "part": lambda: {"batch_size": 3, "sampler": data.SubsetRandomSampler(range(5, 17))},
    "ranks": lambda: {"batch_size": 3, "sampler": data.DistributedSampler(range(N), 2, 1)},
    "batches of a random sampler": lambda: {"batch_sampler": data.BatchSampler(data.RandomSampler(range(N)), 3, True)},
    "eager batches": lambda: {"batch_sampler": Eager(3)},
    "eager samples": lambda: {"batch_size": None, "sampler": Eager(0)},
}


def labels(batch):
    return batch[1].tolist() if isinstance(batch[1], torch.Tensor) else batch[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Points, tensors])
@pytest.mark.parametrize("name", ORDERS)
def test_the_order_is_torchs(name, make, workers):
    seen = []
    for kind in LOADERS:
        torch.manual_seed(3)
        loader = kind(make(), num_workers=workers, persistent_workers=workers > 0, **ORDERS[name]())
        epochs = [[labels(batch) for batch in loader] for _ in range(2)]
        seen.append((epochs, len(loader), torch.rand(1).item()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Points, tensors])
def test_draws_between_two_loaders(make, workers):
    """The program, and another loader, draw between iter() and the first batch."""
    seen = []
    for kind in LOADERS:
        torch.manual_seed(3)
        one, two = (kind(make(), 3, shuffle=True, num_workers=workers) for _ in range(2))
        pairs = [(labels(a), labels(b)) for a, b in zip(one, two, strict=True)]
        batches = iter(one)
        drawn = torch.rand(1).item()
        seen.append((pairs, drawn, [labels(batch) for batch in batches], torch.rand(1).item()))
    assert seen[0] == seen[1]
    assert [a for a, _ in seen[1][0]] != [b for _, b in seen[1][0]]  # two loaders differ


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Points, tensors])
def test_several_iterators_of_one_loader(make, workers):
    seen = []
    for kind in LOADERS:
        torch.manual_seed(3)
        loader = kind(make(), 3, shuffle=True, num_workers=workers)
        one, two = iter(loader), iter(loader)
        first = [labels(next(one)), labels(next(two)), labels(next(one))]
        seen.append((first, [labels(b) for b in two], [labels(b) for b in one], [labels(b) for b in loader]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [Draws, tensors])
@pytest.mark.parametrize("name", ["shuffled", "generator", "weights", "part", "batches of a random sampler"])
def test_a_state_has_the_order_and_the_seed(name, make, workers):
    torch.manual_seed(1)
    first = stoker.DataLoader(make(), num_workers=workers, **ORDERS[name]())
    batches = iter(first)
    next(batches), next(batches)
    state = json.loads(json.dumps(first.state_dict()))
    rest = [[value.tolist() for value in batch] for batch in batches]
    torch.manual_seed(2)
    again = stoker.DataLoader(make(), num_workers=workers, **ORDERS[name]())
    again.load_state_dict(state)
    assert [[value.tolist() for value in batch] for batch in again] == rest


def test_all_ranks_load_the_state_of_one(monkeypatch):
    """As under Lightning, whose checkpoints are written by rank 0. The ranks have one seed, and draw differently."""

    def loader(rank):
        monkeypatch.setattr("torch.utils.data.dataloader._get_distributed_settings", lambda: (2, rank))
        torch.manual_seed(1)
        return stoker.DataLoader(Draws(), 2, sampler=data.DistributedSampler(range(N), 2, rank))

    first, states = [], []
    for rank in range(2):
        saved = loader(rank)
        batches = iter(saved)
        next(batches), next(batches)
        states.append(json.loads(json.dumps(saved.state_dict())))
        first.append([batch[0].tolist() for batch in batches])
    assert states[0] == states[1] and first[0] != first[1]
    for rank in range(2):
        again = loader(rank)
        torch.manual_seed(2)
        again.load_state_dict(states[0])
        assert [batch[0].tolist() for batch in again] == first[rank]


def test_a_state_before_the_first_batch():
    loader = stoker.DataLoader(Draws(), 3, shuffle=True)
    batches = iter(loader)
    state = loader.state_dict()
    assert state["batches"] == 0
    again = stoker.DataLoader(Draws(), 3, shuffle=True)
    again.load_state_dict(state)
    assert [labels(b) for b in again] == [labels(b) for b in batches]


def test_augmentations_in_c_follow_torchs_seed(photos):
    transforms = import_torchvision().transforms
    steps = [transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    folder = import_torchvision().datasets.ImageFolder(photos, transforms.Compose(steps))

    def images(seed, loader=None):
        if seed is not None:
            torch.manual_seed(seed)
        loader = loader or stoker.DataLoader(folder, batch_size=12)
        assert loader.native
        return next(iter(loader))[0]

    loader = stoker.DataLoader(folder, batch_size=12)
    first = images(7, loader)
    assert torch.equal(first, images(7)) and not torch.equal(first, images(8))
    assert not torch.equal(first, images(None, loader))  # nor is the next epoch the same
    torch.manual_seed(9)
    assert not torch.equal(images(None), images(None))  # two new loaders
