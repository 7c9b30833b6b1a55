# SPDX-License-Identifier: Apache-2.0
"""Batches of one image each may differ in size: no ops are needed, nor such as settle it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import stoker
from conftest import write_png


def images(source, ops=None, **arguments):
    """Sample -> its image, of one epoch."""
    arguments = {"dtype": "uint8", "layout": "NHWC", "output": "numpy", **arguments}
    with stoker.Loader(source, ops, fields=("image", "index"), **arguments) as loader:
        found = {}
        for batch in loader:
            assert batch.image.shape[0] == len(batch.index) == 1
            found[int(batch.index[0])] = batch.image[0].copy()
        return found


def test_images_keep_their_sizes(noise):
    source = stoker.Source(noise)
    found = images(noise)
    assert len(found) == 8 and len({image.shape for image in found.values()}) == 4
    for i, image in found.items():
        assert np.array_equal(image, source[i])


@pytest.mark.parametrize("arguments", [{"threads": 1}, {"threads": 4}, {"shuffle": True}, {"memory": "80M"}])
def test_how_it_is_run_changes_nothing(noise, arguments):
    plain = images(noise, "RandomHorizontalFlip")
    other = images(noise, "RandomHorizontalFlip", **arguments)
    assert plain.keys() == other.keys()
    assert all(np.array_equal(plain[i], other[i]) for i in plain)


def test_an_op_may_leave_the_size_open(noise):
    for i, image in images(noise, "Resize(30)").items():
        height, width = stoker.Source(noise)[i].shape[:2]
        expected = (30, int(30 * width / height)) if height <= width else (int(30 * height / width), 30)
        assert image.shape == (*expected, 3)


def test_floats_and_layouts(noise):
    whole = images(noise)
    for i, image in images(noise, "Normalize(half)", dtype="float32", layout="NCHW").items():
        expected = (whole[i].astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
        assert np.allclose(image, expected.transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize("cache", ["bytes", "pixels", "auto"])
def test_caches_change_nothing(noise, cache):
    plain = images(noise, "Resize(30) | RandomHorizontalFlip(1)")
    with stoker.Loader(
        noise, "Resize(30) | RandomHorizontalFlip(1)", fields=("image", "index"), dtype="uint8", layout="NHWC",
        output="numpy", cache=cache,
    ) as loader:  # fmt: skip
        for _ in range(3):
            for batch in loader:
                assert np.array_equal(batch.image[0], plain[int(batch.index[0])])
        assert loader.stats().cache_hits > 0


def test_bad_images(noise, tmp_path):
    for i, path in enumerate(sorted(noise.rglob("*.png"))):
        data = path.read_bytes()
        (tmp_path / f"{i}.png").write_bytes(data[: len(data) // 2] if i == 3 else data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sorted(images(tmp_path, on_error="skip", max_bad=1.0)) == [0, 1, 2, 4, 5, 6, 7]
        replaced = stoker.Loader(tmp_path, on_error="replace", max_bad=1.0, output="numpy")
        assert len(list(replaced)) == 8
    with pytest.raises(stoker.DataError, match="3.png"):
        images(tmp_path)


def test_one_row_at_a_time(noise):
    loader = stoker.Loader(noise, output="numpy")
    assert np.array_equal(loader.get(2).image, loader.get([2]).image)
    assert loader.get(2).image.shape == next(b for i, b in enumerate(loader) if i == 2).image.shape
    assert loader.peek().image.ndim == 4
    assert "(3, ?, ?)" in str(loader)
    with pytest.raises(stoker.UsageError, match="one sample at a time"):
        loader.get([0, 1])
    with pytest.raises(stoker.UsageError, match="one size"):
        loader.load_all()


def test_larger_batches_need_one_size(noise):
    for ops in (None, "Resize(30)"):
        with pytest.raises(stoker.UsageError, match=r"CenterCrop.*batch_size"):
            stoker.Loader(noise, ops, batch_size=2)


def test_an_image_too_large_for_memory_is_named(tmp_path):
    write_png(tmp_path / "small.png", np.zeros((8, 8, 3), np.uint8))
    write_png(tmp_path / "vast.png", np.zeros((2000, 2000, 3), np.uint8))
    loader = stoker.Loader(tmp_path, memory="100MiB", threads=1, output="numpy")
    batches = iter(loader)
    assert next(batches).image.shape == (1, 3, 8, 8)
    with pytest.raises(stoker.DataError, match=r"vast.png.*raise memory"):
        next(batches)


def test_own_functions_see_every_size(noise):
    with pytest.raises(stoker.UsageError, match="one size"):
        stoker.Loader(noise, [lambda image: image[:, :8, :8]])


def test_torch(noise):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for layout in ("NCHW", "channels_last"):
        loader = stoker.Loader(noise, output="torch", layout=layout)
        for i, batch in enumerate(loader):
            expected = torch.from_numpy(stoker.Source(noise)[i].copy()).permute(2, 0, 1) / 255
            assert torch.allclose(batch.image[0], expected)
