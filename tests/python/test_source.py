# SPDX-License-Identifier: Apache-2.0
"""Sources: parts, sums, and what loaders make of them."""

import pickle

import numpy as np
import pytest
import stoker


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
