# SPDX-License-Identifier: Apache-2.0
"""Sources: parts, sums, and what loaders make of them."""

import pickle

import numpy as np
import pytest
import stoker
from stoker import _split


def labels(source, **k):
    loader = stoker.Loader(source, "CenterCrop(8)", output="numpy", batch_size=100, **k)
    return next(iter(loader)).label.tolist()


def test_looking(photos):
    src = stoker.Source(photos)
    assert len(src) == 12 and src.classes == ["cat", "dog"] and src.labels.tolist() == [0] * 6 + [1] * 6
    assert src[7].shape == (24, 32, 3) and src[-1].dtype == np.uint8
    assert src.keys[6] == "dog/00.png" and "12 samples" in repr(src)
    with pytest.raises(IndexError):
        src[12]
    with pytest.raises(TypeError, match="slice"):
        src[1:3]


def test_parts(photos):
    src = stoker.Source(photos)
    assert labels(src.select(classes=["dog"])) == [1] * 6
    assert labels(src.take(3)) == [0] * 3
    assert labels(src.subset([11, 0, 11])) == [1, 0, 1]
    assert len(src.subset(src.labels == 1).take(2)) == 2
    with pytest.raises(stoker.UsageError, match="did you mean dog"):
        src.select(classes=["dgo"])
    with pytest.raises(stoker.UsageError):
        src.subset([12])


def test_split_is_stable_under_growth(make, tmp_path):
    before = stoker.Source(make(30))
    train, val = before.split(0.7)
    assert 0 < len(val) < len(train) < 60
    after = stoker.Source(make(40))
    train2, val2 = after.split(0.7)
    assert set(train.keys) <= set(train2.keys) and set(val.keys) <= set(val2.keys)
    a, b = after.split(0.75, by="class")
    assert np.bincount(a.labels).tolist() == [30, 30]
    assert set(a.keys).isdisjoint(b.keys)


def counts(parts):
    return [np.bincount(part.labels).tolist() for part in parts]


def check_parts(whole, parts):
    """Each sample is in one of them, in its old order."""
    assert sorted(key for part in parts for key in part.keys) == sorted(whole.keys)
    for part in parts:
        assert part.keys == sorted(part.keys)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "all.csv"
    path.write_text("name,score\n" + "".join(f"n{i},{i}\n" for i in range(5000)))
    return stoker.Source(path)


def test_split_into_three(make):
    before = stoker.Source(make(50))
    parts = before.split(0.8, 0.1, 0.1)
    check_parts(before, parts)
    assert [part.keys for part in parts] == [part.keys for part in before.split(0.8, 0.1)]  # the rest is a part
    assert parts[0].keys == before.split(0.8)[0].keys
    after = stoker.Source(make(80)).split(0.8, 0.1, 0.1)
    for one, grown in zip(parts, after, strict=True):
        assert set(one.keys) <= set(grown.keys)
    assert counts(before.split(0.8, 0.1, 0.1, by="class")) == [[40, 40], [5, 5], [5, 5]]
    assert [part.keys for part in before.split(0.5, 0.3, 0.2, seed=1)] != [
        part.keys for part in before.split(0.5, 0.3, 0.2, seed=2)
    ]


def test_shares_are_kept(lines):
    """Also of a part of a part, which is divided by hashes of its own."""

    def near(parts, *shares):
        n = sum(len(part) for part in parts)
        for part, share in zip(parts, shares, strict=True):
            assert abs(len(part) - share * n) < 5 * (n * share * (1 - share)) ** 0.5

    near(lines.split(0.8, 0.1, 0.1), 0.8, 0.1, 0.1)
    train, rest = lines.split(0.8)
    near((train, rest), 0.8, 0.2)
    near(rest.split(0.5), 0.5, 0.5)
    near(train.split(0.5), 0.5, 0.5)
    near(train.take(2000).split(0.5)[1].split(0.5), 0.5, 0.5)
    near(pickle.loads(pickle.dumps(rest)).split(0.5), 0.5, 0.5)
    near((rest.take(500) + rest.subset(range(500, len(rest)))).split(0.5), 0.5, 0.5)
    near([val for _, val in train.kfold(4)], *[0.25] * 4)
    near(train.kfold(4)[3][0].split(0.5), 0.5, 0.5)


def test_kfold(make):
    before = stoker.Source(make(50))
    pairs = before.kfold(5)
    assert len(pairs) == 5
    check_parts(before, [val for _, val in pairs])
    for train, val in pairs:
        check_parts(before, (train, val))
    after = stoker.Source(make(80)).kfold(5)
    for (train, val), (train2, val2) in zip(pairs, after, strict=True):
        assert set(train.keys) <= set(train2.keys) and set(val.keys) <= set(val2.keys)
    assert [val.keys for _, val in before.kfold(5, seed=3)] != [val.keys for _, val in pairs]


def test_kfold_of_few(lines):
    """No fold is empty, for any seed; only the samples that fill one are not where their hashes put them."""
    for n in (2, 3, 7, 40):
        few = lines.take(n)
        for seed in range(200):
            for k in {2, n // 4 + 2, n}:
                hashes = few._hashes(seed)
                plain = _split.by_share(hashes, [i / k for i in range(1, k)])
                folds = _split.by_fold(hashes, k)
                assert np.bincount(folds, minlength=k).min() >= 1
                assert (folds != plain).sum() == k - len(np.unique(plain))
    for seed in range(20):
        vals = [val for _, val in lines.take(40).kfold(10, seed=seed)]
        assert len(vals) == 10 and sorted(sum((val.keys for val in vals), [])) == sorted(lines.take(40).keys)


def test_kfold_by_class(make, lines):
    src = stoker.Source(make(10))
    assert counts(val for _, val in src.kfold(5, by="class")) == [[2, 2]] * 5
    assert [len(val) for _, val in src.kfold(3, by="class")] == [7, 7, 6]
    few = src.subset([0, 1, 10, 11])  # two of each class
    assert [len(val) for _, val in few.kfold(4, by="class")] == [1, 1, 1, 1]


def test_masks(photos):
    src = stoker.Source(photos)
    with pytest.raises(stoker.UsageError, match="the mask has 6 values for 12 samples"):
        src.subset(np.ones(6, bool))


def test_sum(photos, tmp_path):
    from conftest import make_photos

    other = stoker.Source(make_photos(tmp_path / "other", 2, classes=("bird", "dog")))
    both = stoker.Source(photos).take(2) + other
    assert both.classes == ["bird", "cat", "dog"]
    assert both.labels.tolist() == [1, 1, 0, 0, 2, 2] == labels(both)
    assert labels([photos, photos]) == ([0] * 6 + [1] * 6) * 2


def test_pickle(photos):
    src = stoker.Source(photos).take(3)
    assert len(pickle.loads(pickle.dumps(src))) == 3
    assert labels(pickle.loads(pickle.dumps(src))) == [0, 0, 0]


def test_classes_are_fixed(photos):
    assert labels(photos, classes=["dog", "cat"]) == [1] * 6 + [0] * 6
