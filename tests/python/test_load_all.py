# SPDX-License-Identifier: Apache-2.0
"""load_all(), and what is kept of samples of every container."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import stoker

OPS = "Resize(16) | CenterCrop(12)"


@pytest.fixture(scope="module")
def containers(photos, tmp_path_factory):
    """The same images in every container that can be made here."""
    folder = tmp_path_factory.mktemp("containers")
    source = stoker.Source(photos)
    files = [Path(p).read_bytes() for p in source.paths]
    with tarfile.open(folder / "x.tar", "w") as tar:
        for i, data in enumerate(files):
            for suffix, content in (("png", data), ("cls", str(source.labels[i]).encode())):
                info = tarfile.TarInfo(f"{i:04}.{suffix}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        for i, data in enumerate(files):
            archive.writestr(f"{i:04}.png", data)
            archive.writestr(f"{i:04}.cls", str(source.labels[i]))
    found = {"folder": photos, "tar": str(folder / "x.tar"), "zip": str(folder / "x.zip")}
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return found
    table = pa.table({"image": files, "label": source.labels})
    pq.write_table(table, folder / "x.parquet", row_group_size=5)
    return {**found, "parquet": str(folder / "x.parquet"), "table": table}


def images_of(loader):
    return np.concatenate([batch.image for batch in loader])


@pytest.mark.parametrize("name", ["folder", "tar", "zip", "parquet", "table"])
@pytest.mark.parametrize("cache", ["bytes", "dct", "pixels", "auto"])
def test_caches(containers, name, cache):
    if name not in containers:
        pytest.skip("pyarrow is not there")
    want = images_of(stoker.Loader(containers["folder"], OPS, batch_size=5, output="numpy"))
    loader = stoker.Loader(containers[name], OPS, batch_size=5, output="numpy", cache=cache, fields=("image", "label"))
    for _ in range(3):
        labels = []
        images = []
        for batch in loader:
            images.append(batch.image)
            labels += batch.label.tolist()
        np.testing.assert_array_equal(np.concatenate(images), want)
        assert labels == [0] * 6 + [1] * 6
    if cache in ("bytes", "pixels"):
        assert loader.stats().cache_hits > 0


@pytest.mark.parametrize("name", ["folder", "tar", "zip", "parquet", "table"])
@pytest.mark.parametrize("output", ["numpy", "torch", "jax", "tensorflow"])
def test_load_all(containers, name, output):
    pytest.importorskip(output)
    if name not in containers:
        pytest.skip("pyarrow is not there")
    want = images_of(stoker.Loader(containers["folder"], OPS, batch_size=5, output="numpy"))
    loader = stoker.Loader(containers[name], OPS, batch_size=5, output=output, shuffle=True, rank=1, world_size=2)
    batch = loader.load_all()
    np.testing.assert_array_equal(np.asarray(batch.image), want)
    assert np.asarray(batch.label).tolist() == [0] * 6 + [1] * 6
    assert loader.state_dict()["position"] == 0


def test_it_says_what_it_needs(photos):
    loader = stoker.Loader(photos, "Resize((512, 512))")
    with pytest.raises(stoker.UsageError, match=r"12 samples of \d+ bytes need 37 MiB, but the limit is 10 MiB"):
        loader.load_all(memory="10M")
    with pytest.raises(stoker.UsageError, match="iterable"):
        stoker.Loader(iter([1, 2])).load_all()


def test_parts_arrays_ragged_and_errors(photos, tmp_path):
    part = stoker.Source(photos).subset([7, 2])
    assert stoker.Loader(part, OPS, output="numpy", fields=("index",)).load_all().index.tolist() == [7, 2]
    values = np.arange(30.0).reshape(10, 3)
    np.testing.assert_array_equal(stoker.Loader(values, output="numpy", batch_size=4).load_all()[0], values)
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i in range(9):
            info = tarfile.TarInfo(f"{i}.txt")
            info.size = i + 1
            tar.addfile(info, io.BytesIO(b"x" * (i + 1)))
    assert stoker.Loader(str(tmp_path / "t.tar")).load_all()[0] == ["x" * (i + 1) for i in range(9)]

    class Bad:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 2:
                raise KeyError("gone")
            return i

    with pytest.raises(stoker.DataError, match="gone"):
        stoker.Loader(Bad()).load_all()


def test_a_function_of_the_loader_cannot_load_all():
    """It would wait for rows that wait for this function."""
    found = []

    def load_all(x):
        if loader:
            with pytest.raises(stoker.UsageError, match=r"load_all\(\) was called by a function"):
                loader[0].load_all()
            found.append(True)
        return x

    loader = []
    loader.append(stoker.Loader(np.zeros((8, 4, 4, 3), np.uint8), [stoker.CenterCrop(4), load_all], sampler=range(8)))
    assert len(list(loader[0])) == 8 and found
