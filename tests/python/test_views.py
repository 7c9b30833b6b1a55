# SPDX-License-Identifier: Apache-2.0
"""Several views of one image: each as if it were made alone, with draws of its own, read and decoded once."""

from __future__ import annotations

import numpy as np
import pytest
import stoker
from conftest import import_torchvision
from PIL import Image

pytest.importorskip("torch")
import_torchvision()
from replay import replay  # noqa: E402

TWO = "a: RandomResizedCrop(24) | RandomHorizontalFlip ; b: RandomResizedCrop(24) | RandomHorizontalFlip"
DINO = "global*2: RandomResizedCrop(32, scale=(0.4, 1)) | Normalize ; local*5: RandomResizedCrop(16) | Normalize"


def rows(source: object, ops: str, **options: object) -> list:
    return list(stoker.Loader(source, ops, batch_size=4, shuffle=True, seed=2, output="numpy", **options))


def test_fields_of_views(photos: str) -> None:
    batch = rows(photos, DINO)[0]
    assert batch._fields == ("global_", "local", "label")
    assert batch.local.shape == (4, 5, 3, 16, 16) and batch[0].shape == (4, 2, 3, 32, 32)
    chosen = rows(photos, DINO, fields=("local", "index"))[0]
    assert chosen._fields == ("local", "index")
    np.testing.assert_array_equal(chosen.local, batch.local)
    last = rows(photos, DINO, layout="channels_last")[0]
    np.testing.assert_array_equal(last.local, batch.local)
    assert last.local.strides[-3] == 4


def test_a_view_does_not_depend_on_the_others(photos: str) -> None:
    alone = [rows(photos, part) for part in DINO.split(";")]
    for both, first, second in zip(rows(photos, DINO), *alone, strict=True):
        np.testing.assert_array_equal(both[0], first[0])
        np.testing.assert_array_equal(both.local, second.local)
    plain = rows(photos, "RandomResizedCrop(24)")
    for named, image in zip(rows(photos, "image: RandomResizedCrop(24); b*2: CenterCrop(8)"), plain, strict=True):
        np.testing.assert_array_equal(named.image, image.image)


def test_views_are_drawn_separately(photos: str) -> None:
    batch = rows(photos, DINO)[0]
    views = np.moveaxis(batch.local, 1, 0)
    assert all(not np.array_equal(views[0], other) for other in views[1:])
    two = rows(photos, TWO)[0]
    assert not np.array_equal(two.a, two.b)


@pytest.mark.parametrize("cache", ["bytes", "dct", "pixels"])
def test_caches_and_threads_change_nothing(photos: str, cache: str, tmp_path) -> None:
    options = {"batch_size": 4, "shuffle": True, "seed": 2, "output": "numpy"}
    plain = stoker.Loader(photos, DINO, threads=1, **options)
    kept = stoker.Loader(photos, DINO, threads=3, cache=cache, cache_dir=str(tmp_path), **options)
    for _ in range(3):
        for a, b in zip(plain, kept, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def test_what_was_drawn_can_be_replayed(photos: str) -> None:
    loader = stoker.Loader(photos, TWO, dtype="uint8", output="numpy", batch_size=2)
    batch = loader.get([1, 3], epoch=5)
    paths = stoker.Source(photos).paths
    for row, about in enumerate(batch.drawn):
        image = Image.open(paths[about["index"]]).convert("RGB")
        assert [v["view"] for v in about["views"]] == ["a", "b"]
        for view in about["views"]:
            wanted = replay(image, {"size": about["size"], **view})
            np.testing.assert_array_equal(getattr(batch, view["view"])[row], wanted)


def test_arrays_have_views(tmp_path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (9, 20, 20, 3), np.uint8)
    batch = rows({"label": np.arange(9), "image": images}, "x: CenterCrop(8); y*2: RandomCrop(4)")[0]
    assert batch._fields == ("label", "x", "y") and batch.y.shape == (4, 2, 3, 4, 4)


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ("a: CenterCrop(8); a: CenterCrop(4)", "two pipelines are named a"),
        ("a: CenterCrop(8); label: CenterCrop(4)", "label is a field of the source"),
        ("a*65: CenterCrop(8)", "expected a number of views from 1 to 64"),
        ("a*40: CenterCrop(8); b*40: CenterCrop(8)", "80 views in all"),
        ("a: CenterCrop(8); b: CenterCorp(8)", "column 22: unknown op"),
        ("a: CenterCrop(8); b: Resize(8)", "a batch needs one size"),
        ("a: CenterCrop(8) | MixUp; b: CenterCrop(8)", "not views"),
    ],
)
def test_mistakes(photos: str, ops: str, words: str) -> None:
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(photos, ops, batch_size=2)


def test_functions_cannot_follow(photos: str) -> None:
    with pytest.raises(stoker.UsageError, match="cannot be combined with several views"):
        stoker.Loader(photos, [TWO, stoker.Lambda(lambda x: x)], batch_size=2)
