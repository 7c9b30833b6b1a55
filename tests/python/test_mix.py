# SPDX-License-Identifier: Apache-2.0
"""Mixed sources: shares, passes, resuming, ranks."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections import Counter

import numpy as np
import pytest
import stoker
from PIL import Image


@pytest.fixture
def two(photos):
    src = stoker.Source(photos)
    return src.select(classes=["cat"]), src.select(classes=["dog"])


def indices(loader):
    return [int(i) for batch in loader for i in batch.index]


def opened(source, **options):
    defaults = {"batch_size": 4, "shuffle": True, "output": "numpy", "fields": ("index", "label"), "seed": 5}
    return stoker.Loader(source, "CenterCrop(8)", **{**defaults, **options})


def test_shares_and_passes(two):
    loader = opened(stoker.mix({two[0]: 3, two[1]: 1}), steps_per_epoch=64)
    seen, times = indices(loader), Counter()
    assert len(seen) == 256
    had = [0, 0]
    for i in seen:
        source = int(i >= 6)
        assert times[i] == had[source] // 6  # none again before all came
        times[i] += 1
        had[source] += 1
    seen += [i for _ in range(3) for i in indices(loader)]
    assert sum(i < 6 for i in seen) == 768  # a block has 1024 places


def test_an_epoch_is_all_samples_and_the_next_goes_on(two):
    loader = opened(stoker.mix([(two[0], 1), (two[1], 1)]))
    assert len(loader) == 3
    first, second = indices(loader), indices(loader)
    assert len(first) == len(second) == 12
    assert first != second
    both = Counter(i for i in first + second)
    assert max(both.values()) - min(both.values()) <= 1 or max(both.values()) <= 3


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_resumes_exactly(two, shuffle, ranks, threads):
    mixed = stoker.mix({two[0]: 0.6, two[1]: 0.4})
    whole = opened(mixed, shuffle=shuffle, steps_per_epoch=12)
    state, seen = None, []
    for n, batch in enumerate(whole, 1):
        if n > 6:
            seen += batch.index.tolist()
        elif n == 6:
            state = whole.state_dict()
    assert len(str(state)) < 300
    rest: dict[int, list[int]] = {}
    for rank in range(ranks):
        # 24 positions are left: the batch size that divides them among the ranks
        size = 4 // ranks if 4 % ranks == 0 else 4
        loader = opened(
            mixed,
            shuffle=shuffle,
            steps_per_epoch=48 // size // ranks,
            batch_size=size,
            rank=rank,
            world_size=ranks,
            threads=threads,
            fields=("index", "position"),
        )
        loader.load_state_dict(state)
        for batch in loader:
            for i, p in zip(batch.index.tolist(), batch.position.tolist(), strict=True):
                rest[p] = i
    assert [rest[p] for p in sorted(rest)] == seen


def test_a_list_with_weights_is_the_same(two, photos):
    assert indices(opened(list(two), mix=(0.7, 0.3))) == indices(opened(stoker.mix({two[0]: 0.7, two[1]: 0.3})))
    assert len(indices(opened([photos, photos], mix=(0.5, 0.5)))) == 24


def test_draws_differ_when_a_sample_comes_again(two):
    loader = stoker.Loader(
        stoker.mix({two[0]: 1, two[1]: 0}),
        "RandomCrop(8)",
        batch_size=24,
        output="numpy",
        steps_per_epoch=1,
        fields=("image", "index", "position"),
    )
    (batch,) = loader
    rows = [batch.image[k] for k in range(24) if batch.index[k] == 0]
    assert len(rows) == 4
    assert any((rows[0] != r).any() for r in rows[1:])
    again = loader.get(positions=batch.position, epoch=0)
    np.testing.assert_array_equal(again.image, batch.image)


def test_explain_and_print(two):
    loader = opened(stoker.mix({two[0]: 0.75, two[1]: 0.25}))
    next(iter(loader))
    text = loader.explain()
    assert "source 0: 75 % of the positions, " in text
    sources = loader.stats().sources
    assert [s.share for s in sources] == [0.75, 0.25]
    assert sum(s.samples for s in sources) == 4
    assert "source 1: " in repr(loader.stats())
    assert stoker.Loader(two[0], "CenterCrop(8)").stats().sources == ()
    assert "sources mixed" in repr(loader)


def test_pickles(two):
    loader = opened(stoker.mix({two[0]: 0.75, two[1]: 0.25}))
    assert indices(pickle.loads(pickle.dumps(loader))) == indices(loader)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mix": (1, 2, 3)}, "3 weights for 2 sources"),
        ({"mix": (1, "x")}, "is not a number"),
        ({"mix": (1, -1)}, "not negative"),
        ({"mix": (0, 0)}, "greater than 0"),
        ({"mix": (1, 1), "weights": np.ones(12)}, "cannot be combined"),
        ({"mix": (1, 1), "sampler": [1, 2], "shuffle": False}, "cannot be combined"),
        ({"mix": 3}, "several sources"),
    ],
)
def test_refused(two, arguments, words):
    with pytest.raises(stoker.UsageError, match=words):
        opened(list(two), **arguments)


def test_a_state_of_other_weights_is_refused(two):
    state = opened(list(two), mix=(0.7, 0.3)).state_dict()
    with pytest.raises(stoker.Error, match="weights of mixed sources differ"):
        opened(list(two), mix=(0.6, 0.4)).load_state_dict(state)


# ---------------------------------------------------------------- sources of several kinds


def _png(value: int, size: tuple[int, int] = (24, 32)) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((*size, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def kinds(photos, tmp_path):
    """A folder of cats and dogs, a tar of dogs and eels, pixels, and encoded images in HDF5."""
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i in range(5):
            word = b"eel" if i % 2 else b"dog"
            for suffix, data in (("png", _png(100 + i)), ("cls", word), ("txt", b"caption %d" % i)):
                member = tarfile.TarInfo(f"{i:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    rows = np.stack([np.full((20, 18, 3), 200 + i, np.uint8) for i in range(4)])
    np.savez(tmp_path / "px.npz", image=rows, label=np.arange(4))
    np.savez(tmp_path / "other.npz", photos=rows[:3], number=np.arange(3, dtype=np.float32))
    np.savez(tmp_path / "numbers.npz", number=np.arange(3))
    return {name: str(tmp_path / name) for name in ("t.tar", "px.npz", "other.npz", "numbers.npz")} | {"folder": photos}


def shown(source, **options):
    """The first pixel's value and the label of every sample, by its number."""
    loader = stoker.Loader(source, "CenterCrop(8)", batch_size=4, dtype="uint8", output="numpy", **options)
    return loader, [row for batch in loader for row in zip(*(v.tolist() for v in batch[1:]), strict=True)]


def test_classes_of_other_names(kinds):
    loader, rows = shown([kinds["folder"], kinds["t.tar"]])
    assert loader.classes == ["cat", "dog", "eel"]
    assert [label for (label,) in rows] == [0] * 6 + [1] * 6 + [1, 2, 1, 2, 1]
    assert "txt (not in " in loader.explain()
    both = stoker.Source(kinds["folder"]) + stoker.Source(kinds["t.tar"])
    assert both.classes == loader.classes
    assert both.labels.tolist() == [label for (label,) in rows]


def test_images_of_every_kind(kinds):
    everything = [kinds["folder"], kinds["t.tar"], kinds["px.npz"]]
    loader = stoker.Loader(everything, "CenterCrop(8)", batch_size=21, dtype="uint8", output="numpy", fields="image")
    (batch,) = loader
    assert batch._fields == ("image",)
    assert batch.image[12:, 0, 0, 0].tolist() == [100, 101, 102, 103, 104, 200, 201, 202, 203]
    assert loader.classes == []
    one = next(iter(stoker.Loader(kinds["folder"], "CenterCrop(8)", batch_size=12, dtype="uint8", output="numpy")))
    np.testing.assert_array_equal(batch.image[:12], one.image)
    both = stoker.Source.joined(everything[1:])
    with pytest.raises(stoker.UsageError, match="have no class names"):
        len(both)
    assert stoker.Loader(both, "CenterCrop(8)", fields="image").get(5).image.shape == (1, 3, 8, 8)


def test_fields_of_their_own(kinds):
    renamed = stoker.Source(kinds["other.npz"], fields="image=photos, label=number:int")
    assert renamed[1].shape == (20, 18, 3)
    _, rows = shown([kinds["px.npz"], renamed])
    assert [label for (label,) in rows] == [0, 1, 2, 3, 0, 1, 2]
    tar = stoker.Source(kinds["t.tar"], fields={"image": "png", "text": "txt"})
    mixture = stoker.mix({tar: 0.5, stoker.Source(kinds["other.npz"], fields="image=photos"): 0.5})
    loader = stoker.Loader(pickle.loads(pickle.dumps(mixture)), "CenterCrop(8)", batch_size=4, fields=("image", "path"))
    assert sorted(name.rpartition("/")[2] for batch in loader for name in batch.path)[0] == "000"
    with pytest.raises(stoker.UsageError, match="no column pic"):
        stoker.Loader([tar], "CenterCrop(8)", fields="pic")
    with pytest.raises(stoker.UsageError, match="only a loader has"):
        stoker.Source(kinds["t.tar"], fields="path")


@pytest.mark.parametrize(
    ("names", "fields", "words"),
    [
        (("folder", "px.npz"), None, "have no class names, but .* has 2 classes; pass all class names in classes"),
        (("folder", "numbers.npz"), None, "no field in common: .* has image:image, label:int; .* has number:int64"),
        (("folder", "t.tar"), "txt", "there is no column txt"),
    ],
)
def test_what_does_not_go_together(kinds, names, fields, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader([kinds[n] for n in names], fields=fields)


def test_numbers_get_names(kinds):
    loader, rows = shown([kinds["folder"], kinds["px.npz"]], classes=["cat", "dog", "eel", "fox"])
    assert loader.classes == ["cat", "dog", "eel", "fox"]
    assert [label for (label,) in rows][-4:] == [0, 1, 2, 3]


def test_numbers_of_other_classes_are_not_joined(photos, tmp_path):
    """What was given names counts by number: joined under other names it would be another class."""
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2), np.float32), label=[0, 0, 1])
    one, other, more = (stoker.Source(tmp_path / "x.npz", classes=c) for c in (["a", "b"], ["b", "a"], ["a", "b", "c"]))
    with pytest.raises(stoker.UsageError, match="are integers for its classes b, a"):
        one + other
    with pytest.raises(stoker.UsageError, match="are integers"):
        stoker.mix({one: 1, other: 1})
    assert (one + more).labels.tolist() == [0, 0, 1] * 2
    folder = stoker.Source(photos, classes=["dog", "cat"]) + stoker.Source(photos, classes=["cat", "dog", "ant"])
    names = [folder.classes[i] for i in folder.labels]
    assert names == (["cat"] * 6 + ["dog"] * 6) * 2


@pytest.mark.parametrize(("ranks", "threads"), [(1, 2), (2, 1)])
def test_a_mixture_of_kinds_resumes(kinds, ranks, threads):
    sources = [kinds[n] for n in ("folder", "t.tar", "px.npz")]
    options = {
        "mix": (1, 2, 1),
        "fields": ("image", "index", "position"),
        "shuffle": True,
        "seed": 3,
        "output": "numpy",
    }

    def load(**more):
        return stoker.Loader(sources, "RandomCrop(8)", **{**options, **more})

    whole = load(batch_size=4, steps_per_epoch=12)
    seen, state = {}, None
    for n, batch in enumerate(whole, 1):
        state = whole.state_dict() if n == 5 else state
        for k, p in enumerate(batch.position.tolist()):
            seen[p] = (int(batch.index[k]), batch.image[k].tobytes())
    for rank in range(ranks):
        more = {"rank": rank, "world_size": ranks, "threads": threads, "batch_size": 4 // ranks}
        part = load(steps_per_epoch=12, **more)
        part.load_state_dict(state)
        for batch in part:
            for k, p in enumerate(batch.position.tolist()):
                assert p >= 20
                assert seen[p] == (int(batch.index[k]), batch.image[k].tobytes())


@pytest.mark.parametrize("to", ["tar", "hdf5", "tfrecord"])
def test_images_of_every_kind_are_packed_as_one(kinds, tmp_path, to):
    source = stoker.Source(kinds["folder"], kinds["px.npz"], fields="image")
    stoker.pack(source, tmp_path / "out", to=to, fields="image")
    packed = stoker.Loader(tmp_path / "out", "CenterCrop(8)", fields=["image"], output="numpy", batch_size=len(source))
    whole = stoker.Loader(source, "CenterCrop(8)", fields=["image"], output="numpy", batch_size=len(source))
    assert (next(iter(packed)).image == next(iter(whole)).image).all()
