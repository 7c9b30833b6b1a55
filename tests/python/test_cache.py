# SPDX-License-Identifier: Apache-2.0
"""What a loader keeps: the same batches with and without, in memory and in a folder."""

import io
import tarfile
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


def test_only_images_are_kept():
    loader = stoker.Loader(np.zeros((6, 2)), cache="auto", output="numpy")
    assert "cache      none (the samples are already in memory" in loader.explain()


def test_no_room_is_no_error(settled, tmp_path):
    plain, _, _ = epochs(settled, OPS[0])
    (tmp_path / "taken").write_text("a file")
    kept, stats, words = epochs(settled, OPS[0], cache="pixels", cache_dir=str(tmp_path / "taken"))
    assert_same(plain, kept)
    assert stats.cache_entries == 0 and "nothing more is kept" in words
    kept, stats, _ = epochs(settled, OPS[0], cache="pixels", cache_dir=str(tmp_path / "small"), cache_size="10K")
    assert_same(plain, kept)
    assert stats.cache_disk_bytes <= 10 << 10


def write_npy(out, x, y):
    np.save(out / "x.npy", x)
    np.save(out / "y.npy", y)
    return f"npy:{out}/x.npy?label=y.npy"


def write_tar(out, x, y):
    with tarfile.open(out / "a.tar", "w") as tar:
        for i, row in enumerate(x):
            for suffix, data in (("bin", row.tobytes()), ("cls", str(y[i]).encode())):
                member = tarfile.TarInfo(f"{i:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return f"{out}/a.tar"


def write_hdf5(out, x, y):
    with pytest.importorskip("h5py").File(out / "a.h5", "w") as h:
        h.create_dataset("x", data=x, chunks=(5, x.shape[1]), compression="gzip")
        h["label"] = y
    return f"{out}/a.h5"


def write_parquet(out, x, y):
    pa = pytest.importorskip("pyarrow")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"x": rows, "label": y}), out / "a.parquet")
    return f"{out}/a.parquet"


@pytest.mark.parametrize("write", [write_npy, write_tar, write_hdf5, write_parquet])
@pytest.mark.parametrize("cache", ["bytes", "pixels"])
def test_records_without_an_image(tmp_path, write, cache):
    x = np.arange(40 * 6, dtype=np.float32).reshape(40, 6)
    source = write(tmp_path, x, np.arange(40) % 7)
    fields = "x=bin:float32(6), label=cls:int" if write is write_tar else None
    plain, kept = (
        stoker.Loader(source, fields=fields, batch_size=8, shuffle=True, output="numpy", cache=c) for c in (None, cache)
    )
    for _ in range(3):
        for ours, theirs in zip(kept, plain, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert kept.stats().cache_entries == 40 and kept.stats().cache_hits > 60
    assert "bytes in memory (rows as the source returns them" in kept.explain()
