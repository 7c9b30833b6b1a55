# SPDX-License-Identifier: Apache-2.0
"""Datasets that DataLoader reads in C, or partly in C: whole epochs are those of torch's DataLoader."""

import os
import pickle
import random

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from PIL import ImageFilter, ImageOps  # noqa: E402
from torch.utils import data  # noqa: E402
from torchvision import datasets  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

END = [v1.ToTensor(), v1.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.25))]
EVAL = v1.Compose([v1.Resize(36), v1.CenterCrop(32), *END])


def rotate(image):
    return image.rotate(9)


def turn(image):
    return image.rotate(random.uniform(-20, 20))


def blur(image):
    return image.filter(ImageFilter.BoxBlur(1))


def negative(pixels):
    return 255 - pixels


INVERT, ROTATE, TURN, BLUR = (v1.Lambda(f) for f in (ImageOps.invert, rotate, turn, blur))


class WithPath(datasets.ImageFolder):
    def __getitem__(self, index):
        original_tuple = super().__getitem__(index)
        path = self.imgs[index][0]
        return original_tuple + (path,)


class WithIndex(datasets.ImageFolder):
    def __getitem__(self, index):
        image, label = super(WithIndex, self).__getitem__(index)  # noqa: UP008
        return {"image": image, "label": label, "index": index}


class Spelled(datasets.ImageFolder):
    def __getitem__(self, i):
        path, target = self.samples[i]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return (*(sample, target), path)


class TransformedSubset(data.Dataset):
    def __init__(self, subset, transform=None):
        self.subset = subset
        self.transform = transform

    def __getitem__(self, index):
        x, y = self.subset[index]
        if self.transform:
            x = self.transform(x)
        return x, y

    def __len__(self):
        return len(self.subset)


class Indexed(TransformedSubset):
    def __getitem__(self, index):
        return super().__getitem__(index), index


def noisy(label):
    return random.choice([label, 7])


def split(root, n=5):
    return data.random_split(datasets.ImageFolder(root), [n, 8 - n], generator=torch.Generator().manual_seed(1))


NATIVE = {
    "path": lambda root: WithPath(root, EVAL),
    "index": lambda root: WithIndex(root, EVAL),
    "spelled out": lambda root: Spelled(root, EVAL),
    "part of a subclass": lambda root: data.Subset(WithPath(root, EVAL), [3, 1, 7]),
    "sum of subclasses": lambda root: data.ConcatDataset([WithPath(root, EVAL)] * 2),
    "target_transform": lambda root: datasets.ImageFolder(root, EVAL, target_transform=lambda y: y + 10),
    "a dict of labels": lambda root: datasets.ImageFolder(root, EVAL, target_transform={0: 5, 1: 3}.get),
    "labels become floats": lambda root: datasets.ImageFolder(root, EVAL, target_transform=float),
    "random_split with a transform": lambda root: TransformedSubset(split(root)[0], EVAL),
    "folder with a transform": lambda root: TransformedSubset(datasets.ImageFolder(root), EVAL),
    "two wrappers": lambda root: Indexed(split(root)[1], EVAL),
    "two transforms": lambda root: TransformedSubset(
        datasets.ImageFolder(root, v1.Resize(36)), v1.Compose([v1.CenterCrop(32), *END])
    ),
    "ops after Python": lambda root: WithPath(root, v1.Compose([v1.CenterCrop(32), INVERT, *END])),
}
PARTLY = {
    "Python first": lambda root: datasets.ImageFolder(
        root, v1.Compose([ROTATE, v1.Resize(36), v1.CenterCrop(32), *END])
    ),
    "Python before the crop": lambda root: datasets.ImageFolder(
        root, v1.Compose([v1.Resize(40), BLUR, v1.CenterCrop(32), v1.PILToTensor()])
    ),
    "twice": lambda root: WithPath(
        root,
        v1.Compose([INVERT, v1.Resize((33, 32)), BLUR, v1.CenterCrop(32), *END]),
    ),
    "v2": lambda root: TransformedSubset(
        split(root)[0],
        v2.Compose(
            [
                v2.Lambda(ImageOps.invert),
                v2.Resize((36, 36)),
                v2.ToImage(),
                v2.Lambda(negative),
                v2.CenterCrop(32),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize((0.5,) * 3, (0.3,) * 3),
            ]
        ),
    ),
    "labels by a function": lambda root: datasets.ImageFolder(root, EVAL, target_transform=lambda y: sorted([y, 5])[0]),
    "the same sample twice": lambda root: Indexed(data.Subset(datasets.ImageFolder(root), [2, 2, 1]), EVAL),
}


class Brighter(datasets.ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image * 2, label


class Counted(datasets.ImageFolder):
    calls = 0

    def __getitem__(self, index):
        self.calls += 1
        return super().__getitem__(index)


class Shifted(TransformedSubset):
    def __getitem__(self, index):
        return super().__getitem__((index + 1) % len(self))


class Mapped(TransformedSubset):
    def __getitem__(self, index):
        return super().__getitem__(self.order[index])


class Labelled(TransformedSubset):
    def __getitem__(self, index):
        x, y = self.subset[index]
        if y == 1:
            x = self.transform(x)
        else:
            x = self.transform(self.transform.transforms[0](x))
        return x, y


class Named(TransformedSubset):
    @property
    def path(self):
        return "a property"

    def __getitem__(self, index):
        return (*super().__getitem__(index), self.path)


class Together(TransformedSubset):
    def __getitems__(self, indices):
        return [self[7 - i] for i in indices]


class Loose(TransformedSubset):
    def __getitem__(self, index):
        x, y = self.subset[index]
        return self.own(x), y


def mapped(root):
    dataset = Mapped(datasets.ImageFolder(root), EVAL)
    dataset.order = [1, 0, *range(2, 8)]
    return dataset


def loose(root):
    dataset = Loose(datasets.ImageFolder(root), EVAL)
    dataset.own = lambda x: EVAL(x.rotate(90))
    return dataset


class Doubled(data.Subset):
    """Other samples than those of __getitem__."""

    def __getitems__(self, indices):
        return [(2 * image, label) for image, label in (self[i] for i in indices)]


def padded(root, mode):
    """Crops that contain the whole padding; the repr of RandomCrop leaves padding_mode out."""
    return datasets.ImageFolder(root, v1.Compose([v1.CenterCrop(8), v1.RandomCrop(16, 4, padding_mode=mode), *END]))


PYTHON = {
    "changed pixels": lambda root: Brighter(root, EVAL),
    "a counter": lambda root: Counted(root, EVAL),
    "another index": lambda root: Shifted(datasets.ImageFolder(root), EVAL),
    "an order of its own": mapped,
    "transforms by label": lambda root: Labelled(datasets.ImageFolder(root), EVAL),
    "a property": lambda root: Named(datasets.ImageFolder(root), EVAL),
    "__getitems__": lambda root: Together(datasets.ImageFolder(root), EVAL),
    "__getitems__ of a Subset": lambda root: Doubled(datasets.ImageFolder(root, EVAL), range(8)),
    "different transforms": lambda root: data.ConcatDataset([padded(root, "constant"), padded(root, "reflect")]),
    "a function": loose,
    "a function as the transform": lambda root: datasets.ImageFolder(root, lambda image: EVAL(image.rotate(90))),
    "two images": lambda root: data.StackDataset(datasets.ImageFolder(root, EVAL), datasets.ImageFolder(root, EVAL)),
}


def equal(a, b):
    if isinstance(a, torch.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape
        floats = same and a.is_floating_point()
        return same and (torch.allclose(a, b, rtol=3e-7, atol=3e-7) if floats else torch.equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


FORMS = {"batches": {}, "lists": {"collate_fn": list}, "samples": {"batch_size": None}}


def check(dataset, workers):
    for k in FORMS.values():
        k = {"batch_size": 3, **k}
        with stoker.DataLoader(dataset, num_workers=workers, **k) as loader:
            assert equal(list(data.DataLoader(dataset, **k)), list(loader))
    order = [1, 0, 2, 2, 1]
    with stoker.DataLoader(dataset, batch_size=2, sampler=order, num_workers=workers) as loader:
        assert equal(list(data.DataLoader(dataset, batch_size=2, sampler=order)), list(loader))
    return loader


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", NATIVE)
def test_read_in_c(noise, name, workers):
    loader = check(NATIVE[name](noise), workers)
    assert loader.native and "in Python: " not in loader.explain()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", PARTLY)
def test_partly_in_c(noise, name, workers):
    loader = check(PARTLY[name](noise), workers)
    assert not loader.native and loader._partly is not None and "read and decoded in C" in loader.explain()


@pytest.mark.parametrize("name", PYTHON)
def test_in_python(noise, name):
    loader = check(PYTHON[name](noise), 0)
    assert not loader.native and loader._partly is None and "decoded in C" not in loader.explain()


def test_random_labels_have_a_seed_for_each_sample(noise):
    dataset = datasets.ImageFolder(noise, EVAL, target_transform=noisy)
    runs = []
    for workers in (0, 2):
        torch.manual_seed(3)
        before = random.getstate()
        with stoker.DataLoader(dataset, batch_size=3, shuffle=True, num_workers=workers) as loader:
            runs.append([y.tolist() for _ in range(3) for _, y in loader])
        assert random.getstate() == before
    assert runs[0] == runs[1] and 7 in np.concatenate(runs[0])


def test_random_ops_after_python_have_a_seed_for_each_sample(noise):
    transform = v1.Compose([TURN, v1.RandomCrop(24), v1.RandomHorizontalFlip(), v1.ToTensor()])
    dataset = datasets.ImageFolder(noise, transform)
    runs = []
    for workers in (0, 1, 3):
        torch.manual_seed(3)
        with stoker.DataLoader(dataset, batch_size=3, num_workers=workers) as loader:
            runs.append([[x.tolist() for x, _ in loader] for _ in range(2)])
            assert loader._partly is not None
    assert runs[0] == runs[1] == runs[2] and runs[0][0] != runs[0][1]


def test_arguments_of_stoker_act(noise, tmp_path):
    dataset = WithPath(noise, EVAL)
    for k in ({"dtype": "float16"}, {"layout": "channels_last"}, {"layout": "NHWC"}):
        images, _, paths = next(iter(stoker.DataLoader(dataset, batch_size=4, **k)))
        assert images.dtype == (torch.float16 if "dtype" in k else torch.float32) and len(paths) == 4
        assert images.stride()[-1] == (1 if k.get("layout") != "channels_last" else 3)
    loader = stoker.DataLoader(dataset, batch_size=4, cache="pixels", cache_dir=str(tmp_path), memory="256M")
    assert equal(list(loader), list(loader)) and loader.stats().cache_hits > 0
    assert loader.stats().memory_limit == 256 << 20 and any(tmp_path.iterdir())


def test_processes_that_do_not_fork_get_a_pickle(noise):
    dataset = PARTLY["twice"](noise)
    rows = pickle.loads(pickle.dumps(stoker.DataLoader(dataset)._rows))
    assert equal([dataset[i] for i in range(8)], [rows[i] for i in range(8)])
    assembled = stoker.DataLoader(NATIVE["path"](noise), batch_size=2)
    assert assembled.native
    finish = pickle.loads(pickle.dumps(assembled._finish()[1]))
    assert finish((torch.zeros(2, 3), torch.tensor([0, 7])))[1].tolist() == [0, 1]


def test_a_function_that_returns_something_else(noise):
    """Ops that follow expect an image as before; with anything else, torchvision's own transforms run."""
    for function in (lambda x: x.convert("L"), lambda x: v1.functional.to_tensor(x), lambda x: x.convert("RGBA")):
        transform = v1.Compose([v1.CenterCrop(32), v1.Lambda(function), v1.CenterCrop(16)])
        end = v1.Compose([transform, v2.ToImage()])
        check(datasets.ImageFolder(noise, end), 0)


def test_changes_are_seen(noise):
    dataset = TransformedSubset(data.Subset(datasets.ImageFolder(noise), [0, 1, 2]), EVAL)
    loader = stoker.DataLoader(dataset, batch_size=8)
    assert next(iter(loader))[0].shape == (3, 3, 32, 32)
    dataset.transform = v1.Compose([v1.CenterCrop(8), *END])
    assert next(iter(loader))[0].shape == (3, 3, 8, 8)
    dataset.transform.transforms[0] = v1.CenterCrop(9)
    assert next(iter(loader))[0].shape == (3, 3, 9, 9)
    dataset.transform.transforms[0] = v1.RandomCrop(9)
    next(iter(loader))
    dataset.transform.transforms[0].size = (7, 7)
    assert next(iter(loader))[0].shape == (3, 3, 7, 7)
    dataset.transform = v1.Compose([v1.CenterCrop(9), *END])
    dataset.subset.indices[1] = 7
    assert equal(list(data.DataLoader(dataset, batch_size=8)), list(loader))
    dataset.subset.dataset.samples[7] = dataset.subset.dataset.samples[3]
    assert equal(list(data.DataLoader(dataset, batch_size=8)), list(loader))


class Level:
    """A transform that the program changes."""

    level = 0

    def __call__(self, image):
        return torch.full_like(image, self.level)


@pytest.mark.parametrize("workers", [0, 1])
def test_changes_of_functions_are_seen(noise, workers):
    level = Level()
    dataset = datasets.ImageFolder(noise, v1.Compose([v1.CenterCrop(8), v1.ToTensor(), level]))
    loader = stoker.DataLoader(dataset, batch_size=8, num_workers=workers)
    for level.level in (1, 2):
        assert loader.native and next(iter(loader))[0].unique().tolist() == [level.level]
    dataset.transform.transforms[2] = v1.Lambda(lambda image: 0 * image + 3)
    assert next(iter(loader))[0].unique().tolist() == [3]
    dataset.transform.transforms[2] = v1.Lambda(lambda image: 0 * image + 4)
    assert next(iter(loader))[0].unique().tolist() == [4]


def test_skipped_and_replaced_samples_keep_what_is_beside_them(tmp_path, noise):
    for path in sorted(noise.glob("*/*.png")):
        to = tmp_path / path.parent.name / path.name
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(path.read_bytes()[:99] if path.name == "2.png" else path.read_bytes())
    dataset = WithPath(tmp_path, EVAL)
    for on_error in ("skip", "replace"):
        loader = stoker.DataLoader(dataset, batch_size=4, on_error=on_error, max_bad=0.5)
        assert loader.native
        with pytest.warns(RuntimeWarning, match="1 bad sample"):
            batches = list(loader)
        paths = [p for _, _, some in batches for p in some]
        assert len(paths) == (7 if on_error == "skip" else 8) and not any(p.endswith("2.png") for p in paths)
        for images, labels, some in batches:
            for image, label, path in zip(images, labels, some, strict=True):
                expected = dataset[[p for p, _ in dataset.samples].index(path)]
                assert equal(expected[0], image) and expected[1] == label


# ---------------------------------------------------------------- what it says


def words_of(dataset, **k):
    with stoker.DataLoader(dataset, batch_size=3, **k) as loader:
        list(loader)
        return loader.explain(), repr(loader.stats())


def test_words_about_what_is_read_in_c(noise):
    part = data.Subset(datasets.ImageFolder(noise, EVAL), [3, 1, 7])
    explained, stats = words_of(part, num_workers=2, shuffle=True)
    assert "3 of 8 samples" in explained and "order      shuffled, as torch's RandomSampler does, 1 batch" in explained
    assert "python" not in explained and "samples    3 in 1 batch" in stats
    weighted = data.WeightedRandomSampler([1.0] * 8, 20)
    explained, stats = words_of(datasets.ImageFolder(noise, EVAL), sampler=weighted)
    assert "given by the WeightedRandomSampler, 7 batches per epoch" in explained and "20 in 7 batches" in stats
    explained, _ = words_of(WithPath(noise, EVAL))
    assert "the other code of WithPath (" in explained and "test_recognised.py:" in explained


def test_words_about_functions(noise):
    mixed = datasets.ImageFolder(noise, v1.Compose([v1.CenterCrop(32), TURN, *END]))
    for workers in (0, 2):
        explained, stats = words_of(mixed, num_workers=workers)
        assert "Lambda on each image" in explained and "followed by ToTensor | Normalize" in explained
        assert ("threads" in explained) == (workers == 0) and ("workers    2 processes" in explained) == (workers == 2)
        assert "samples    8 in 3 batches" in stats
    assert "workers    2 processes" in stats
    explained, stats = words_of(PARTLY["Python first"](noise))
    assert "images are read and decoded in C" in explained and "Resize(36) | CenterCrop((32, 32))" in explained
    assert "then" in explained and "test_recognised.py:" in explained and "in the calling thread" in stats


def test_words_about_what_limits(noise):
    for dataset, name in ((PARTLY["Python first"](noise), "Lambda"), (Brighter(noise, EVAL), "Brighter.__getitem__")):
        with stoker.DataLoader(dataset, batch_size=3) as loader:
            list(loader)
            loader._counted.began, loader._counted.ended, loader._counted.waited = 0.0, 10.0, 2.1
            words = repr(loader.stats())
            assert f"limited by your Python function {name} (" in words and ", one at a time" in words
            loader._counted.waited = 1.9
            assert "limited by the program" in repr(loader.stats())


def test_words_about_datasets_in_python(noise):
    explained, stats = words_of(Brighter(noise, EVAL))
    assert "Brighter, 8 samples, in Python: its __getitem__ does more than add to torchvision's sample" in explained
    assert "in C" not in explained


def test_compare_advises_only_what_is_faster(noise):
    from stoker._compare import Comparison

    faster = Comparison(100.0, 99.0, None, None, 0, False, "samples made in Python")
    assert "to paste   nothing: your loader is faster" in str(faster) and "decoded in C" not in str(faster)
    assert "samples differ" in Comparison(1.0, 2.0, 0.5, 0, 16, True, "").line
    for name, words in (("path", "decoded and transformed in C"), ("ops after Python", "in C, Lambda in Python")):
        assert words in str(stoker.compare(data.DataLoader(NATIVE[name](noise), 4), seconds=0.02))
    found = stoker.compare(data.DataLoader(PARTLY["Python first"](noise), 4), seconds=0.02)
    assert found.pixels < 1e-6 and not found.native and "read and decoded in C, the rest in Python" in found.how
    state = random.getstate(), torch.get_rng_state()
    stoker.compare(data.DataLoader(PYTHON["a counter"](noise), 4), seconds=0.02)
    assert random.getstate() == state[0]


# ---------------------------------------------------------------- collate_fn


def with_process(samples):
    return torch.stack([image for image, _ in samples]), [y for _, y in samples], os.getpid()


def tensors_and_labels(_):
    return data.TensorDataset(torch.arange(24.0).view(8, 3), torch.arange(8))


@pytest.mark.parametrize("make", [lambda root: datasets.ImageFolder(root, EVAL), NATIVE["index"], tensors_and_labels])
def test_collate_fn_runs_in_the_workers(noise, make):
    dataset = make(noise)
    collate = with_process if not isinstance(dataset, WithIndex) else lambda samples: (samples, os.getpid())
    theirs = list(data.DataLoader(dataset, 3, collate_fn=collate))
    for workers in (0, 2):
        with stoker.DataLoader(dataset, 3, collate_fn=collate, num_workers=workers) as loader:
            ours = list(loader)
            assert loader.native and "collate_fn" in loader.explain()
        assert all(equal(a[:-1], b[:-1]) for a, b in zip(theirs, ours, strict=True))
        assert {batch[-1] == os.getpid() for batch in ours} == {workers == 0}
