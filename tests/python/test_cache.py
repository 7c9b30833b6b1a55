# SPDX-License-Identifier: Apache-2.0
"""What a loader keeps: the same batches with and without, in memory and in a folder."""

import time

import numpy as np
import pytest
import stoker

OPS = ["Resize(20) | RandomCrop(16) | Normalize", "RandomResizedCrop(16)", "Resize(20) | CenterCrop(16)"]


@pytest.fixture
def settled(photos):
    time.sleep(0.1)  # a file that changes this very moment is not kept in a folder
    return photos


def epochs(source, ops, n=3, **arguments):
    with stoker.Loader(source, ops, batch_size=5, shuffle=True, output="numpy", **arguments) as loader:
        batches = [(images.copy(), labels.copy()) for _ in range(n) for images, labels in loader]
        return batches, loader.stats(), loader.explain()


def assert_same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert np.array_equal(x[0], y[0]) and np.array_equal(x[1], y[1])


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("cache", ["bytes", "pixels", "auto"])
def test_caches_change_nothing(settled, tmp_path, ops, cache):
    plain, _, _ = epochs(settled, ops)
    kept, stats, words = epochs(settled, ops, cache=cache)
    assert_same(plain, kept)
    assert stats.cache_entries == 12 and stats.cache_hits >= 20 and 0 < stats.cache_bytes < stats.memory_bytes
    assert "in memory" in words and "found" in str(stats) + words
    for _ in range(2):
        kept, stats, words = epochs(settled, ops, cache=cache, cache_dir=str(tmp_path / "cache"))
        assert_same(plain, kept)
        assert stats.cache_disk_bytes > 0 and "in the cache folder" in words
    assert stats.cache_misses == 0


def test_a_function_comes_after_what_is_kept(settled):
    plain, _, _ = epochs(settled, ["CenterCrop(8)", lambda image: image[:, ::2]])
    kept, stats, _ = epochs(settled, ["CenterCrop(8)", lambda image: image[:, ::2]], cache="pixels")
    assert_same(plain, kept)
    assert stats.cache_hits > 0


def test_only_pictures_are_kept():
    loader = stoker.Loader(np.zeros((6, 2)), cache="auto", output="numpy")
    assert "cache      none (there are no encoded pictures" in loader.explain()


def test_no_room_is_no_error(settled, tmp_path):
    plain, _, _ = epochs(settled, OPS[0])
    (tmp_path / "taken").write_text("a file")
    kept, stats, words = epochs(settled, OPS[0], cache="pixels", cache_dir=str(tmp_path / "taken"))
    assert_same(plain, kept)
    assert stats.cache_entries == 0 and "nothing more is kept" in words
    kept, stats, _ = epochs(settled, OPS[0], cache="pixels", cache_dir=str(tmp_path / "small"), cache_size="10K")
    assert_same(plain, kept)
    assert stats.cache_disk_bytes <= 10 << 10
