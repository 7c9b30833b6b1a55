# SPDX-License-Identifier: Apache-2.0
"""HDF5 files: the same values as h5py reads, in every version of the format, and clear words where there are none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
from conftest import make_photos

h5py = pytest.importorskip("h5py")

CORPUS = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "corpus")
VERSIONS = [("earliest", 0), ("v108", 0), ("v110", 0), ("latest", 1024)]  # and what the user put in front


def rows(source: str, name: str = "x") -> list[Any]:
    """The rows of a source with one column, whatever it becomes."""
    loader = stoker.Loader(source, batch_size=64, output="numpy", as_dict=True, dtype="uint8", layout="NHWC")
    return [row for batch in loader for field in batch.values() for row in field]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (bytes, str)):
        return ours == (theirs.decode() if isinstance(theirs, bytes) else theirs)
    theirs = np.asarray(theirs)
    if theirs.dtype.kind in "SV":
        data = theirs.tobytes()
        return ours == (data if theirs.dtype.kind == "V" else data.rstrip(b"\0").decode())
    ours = np.asarray(ours)
    if theirs.ndim == 3 and theirs.shape[-1] == 1 and ours.shape[-1] == 3:  # a grey picture
        theirs = np.repeat(theirs, 3, -1)
    return ours.shape == theirs.shape and np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind == "f")


def made(dtype: Any, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


def types(h: Any) -> None:
    for t in ["?", "u1", "i1", "<u2", ">u2", "<i4", ">i4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]:
        h[f"type {t.replace('?', 'bool')}"] = made(t, (7, 3))
    h.create_dataset("enum", data=made("i2", (9,)) % 3, dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, "i2"))
    h.create_dataset("array", (5,), dtype=np.dtype(("i4", (2, 3))), chunks=(2,))[:] = np.arange(30).reshape(5, 2, 3)
    h["named"] = np.dtype(">f4")
    h.create_dataset("of a named type", data=np.arange(6.0), dtype=h["named"])
    h["opaque"] = np.array([b"abcd", b"e\0gh"]).astype("V4")
    h["fixed text"] = np.array([b"ab", b"", b"xyz"], "S5")
    h.create_dataset("text", data=["héllo", "", "wörld" * 100], dtype=h5py.string_dtype())
    h.create_dataset(
        "packed text", data=["x" * i for i in range(300)], dtype=h5py.string_dtype(), chunks=(7,), compression=4
    )
    for t in ("u1", "i4", "f4"):
        data = h.create_dataset(f"sequences {t}", (40,), dtype=h5py.vlen_dtype(np.dtype(t)))
        for i in range(40):
            data[i] = made(t, (i * 37 % 200,), i)


def layouts(h: Any) -> None:
    x = made("i4", (50, 7, 5))
    for chunks in [(1, 7, 5), (8, 7, 5), (8, 3, 2), (50, 7, 5), (50, 2, 5), (3, 7, 1)]:
        for packing in (None, "gzip", "lzf"):
            for shuffle in (False, True):
                name = f"chunks {chunks} {packing} {shuffle}"
                h.create_dataset(name, data=x, chunks=chunks, compression=packing, shuffle=shuffle, fletcher32=shuffle)
    for most in [(None, 7, 5), (None, None, 5), (100, 7, 5), (50, None, 5), (50, 7, None), (100, 9, 9)]:
        for packing in (None, "gzip"):
            grown = h.create_dataset(
                f"grown {most} {packing}", data=x, maxshape=most, chunks=(3, 4, 2), compression=packing
            )
            if most[0] is None:
                grown.resize(80, 0)
                grown[70:] = 5
            shrunk = h.create_dataset(
                f"shrunk {most} {packing}", data=x, maxshape=most, chunks=(3, 4, 2), compression=packing
            )
            shrunk.resize(20, 0)
    long = made("u2", (9000,))
    h.create_dataset("many chunks", data=long, chunks=(5,), compression=1)
    h.create_dataset("many plain chunks", data=long, chunks=(5,))
    h.create_dataset("many chunks that grow", data=long, chunks=(5,), maxshape=(None,), compression="lzf")
    h.create_dataset("many that grow both ways", data=long.reshape(300, 30), chunks=(7, 4), maxshape=(None, None))
    h.create_dataset("holes", (100, 4), chunks=(9, 3), dtype="f4", fillvalue=2.5, compression=1)[40:45] = 1
    h.create_dataset("never written", (10, 2), dtype=">i4", fillvalue=7)
    h.create_dataset("never written in chunks", (10, 2), dtype="u1", chunks=(3, 2))
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((4, 3))
    made_compact = h5py.h5d.create(h.id, b"compact", h5py.h5t.STD_I32BE, space, compact)
    made_compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(12, dtype="i4").reshape(4, 3))
    h["deep/er/est"] = np.arange(5)
    h["deep/er/circle"] = h["deep"]
    h["soft"] = h5py.SoftLink("/deep/er/est")
    h["dangling"] = h5py.SoftLink("/nowhere")
    for i in range(40):
        h[f"many names/{i * 17 % 40:03}"] = np.arange(i + 1)


def datasets(h: Any) -> list[str]:
    names: list[str] = []
    h.visititems(lambda name, o: names.append(name) if isinstance(o, h5py.Dataset) else None)
    return names


@pytest.mark.parametrize(("version", "user_block"), VERSIONS)
@pytest.mark.parametrize("fill", [types, layouts])
def test_every_version(tmp_path: Path, version: str, user_block: int, fill: Any) -> None:
    with h5py.File(tmp_path / "x.h5", "w", libver=(version, "latest"), userblock_size=user_block) as h:
        fill(h)
    with h5py.File(tmp_path / "x.h5") as h:
        for name in [*datasets(h), *(["soft"] if "soft" in h else [])]:
            ours = rows(f"hdf5:{tmp_path}/x.h5?samples=rows&x={name}")
            assert len(ours) == len(h[name]), name
            assert all(same(a, b) for a, b in zip(ours, h[name], strict=True)), name


# Why datasets of the corpora are not read, and how many.
REFUSED = {
    "is a single value; its first dimension would be the samples": 64,
    "has compound elements (structures); give each member a dataset of its own": 6,
    "has references as elements": 4,
}


def corpus_files() -> Iterator[Path]:
    for folder in ("hdf5-h5py", "hdf5-pyfive", "hdf5-tfds"):
        yield from (p for p in sorted((CORPUS / folder).rglob("*")) if p.suffix in (".h5", ".hdf5", ".nc"))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="STOKER_TEST_DATA is not set")
def test_corpora() -> None:
    """Every dataset as h5py reads it, or refused for a reason of the list."""
    refused: Counter[str] = Counter()
    read = 0
    for path in corpus_files():
        with h5py.File(path) as h:
            for name in datasets(h):
                try:
                    ours = rows(f"hdf5:{path}?samples=rows&x={name}")
                except stoker.Error as e:
                    refused[next((why for why in REFUSED if why in str(e)), str(e))] += 1
                    continue
                assert all(same(a, b) for a, b in zip(ours, h[name], strict=True)), (path, name)
                read += 1
    assert refused == REFUSED
    assert read == 884


def write(path: Path, **sets: Any) -> str:
    with h5py.File(path, "w") as h:
        for name, data in sets.items():
            h[name] = data
    return str(path)


def first(source: str, **keywords: Any) -> Any:
    return next(iter(stoker.Loader(source, batch_size=4, output="numpy", **keywords)))


def test_columns_are_found(tmp_path: Path) -> None:
    """Datasets of as many rows as the pictures are columns; the others are left out."""
    x, y = made("u1", (10, 8, 6, 3)), made("u2", (10,))
    path = write(
        tmp_path / "x.h5", pixels=x, labels=y, weights=made("f8", (10, 2)), classes=made("f4", (3,)), **{"g/extra": y}
    )
    batch = first(path, transform="CenterCrop(6)", dtype="uint8", layout="NHWC", as_dict=True)
    assert list(batch) == ["image", "label", "weights", "g/extra"]
    np.testing.assert_array_equal(batch["image"], x[:4, 1:7])
    assert batch["label"].dtype == np.int64
    np.testing.assert_array_equal(batch["weights"], made("f8", (10, 2))[:4])
    assert list(first(path, fields=["classes"], as_dict=True)) == ["classes"]
    batch = first(f"hdf5:{path}?image=pixels&target=g/extra", dtype="uint8", as_dict=True)
    assert list(batch) == ["image", "label"]


def test_groups_and_files(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", 3)
    pictures = [Path(p).read_bytes() for p in stoker.Source(photos).paths]
    for part in range(2):
        with h5py.File(tmp_path / f"x{part}.h5", "w") as h:
            for i in range(3 * part, 3 * part + 3):
                h[f"s{i}/image"] = np.frombuffer(pictures[i], np.uint8)
                h[f"s{i}/label"] = i
                h[f"s{i}/words"] = "w" * i
    source = f"hdf5:{tmp_path}/x*.h5"
    wanted = ["image", "label", "words", "key"]
    loader = stoker.Loader(
        source, "CenterCrop(16)", batch_size=6, output="numpy", dtype="uint8", as_dict=True, fields=wanted
    )
    batch = next(iter(loader))
    whole = next(iter(stoker.Loader(photos, "CenterCrop(16)", batch_size=6, output="numpy", dtype="uint8")))
    np.testing.assert_array_equal(batch["image"], whole.image)
    assert batch["label"].tolist() == list(range(6))
    assert batch["words"] == ["w" * i for i in range(6)]
    assert list(batch["key"]) == [f"s{i}" for i in range(6)]


@pytest.mark.parametrize("fixed", [False, True])
def test_labels_of_text_are_classes(tmp_path: Path, fixed: bool) -> None:
    words = ["dog", "cat", "dog", "ant", "zebra"]
    text = np.array(words, "S5") if fixed else np.array(words, object)
    path = write(tmp_path / "x.h5", x=made("f4", (5, 2)), **{"class": text})
    source = stoker.Source(path)
    assert source.classes == ["ant", "cat", "dog", "zebra"]
    assert list(source.labels) == [2, 1, 2, 0, 3]
    loader = stoker.Loader(path, batch_size=5, output="numpy", as_dict=True, classes=["zebra", "ant", "cat", "dog"])
    assert next(iter(loader))["label"].tolist() == [3, 2, 3, 1, 0]
    with pytest.raises(stoker.UsageError, match="the label zebra is not among the 3 classes"):
        stoker.Loader(path, classes=["ant", "cat", "dog"])
    loader = stoker.Loader(path, batch_size=5, output="numpy", as_dict=True, fields={"class": "text"})
    assert next(iter(loader))["class"] == words
    numbers = write(
        tmp_path / "n.h5", x=made("f4", (3, 2)), label=np.array(["7", "-1", "20"], "S2"), y=made("i4", (3,))
    )
    assert list(stoker.Source(f"hdf5:{numbers}?x=x&label=label").labels) == [7, -1, 20]
    assert list(stoker.Source(numbers).labels) == made("i4", (3,)).tolist()  # numbers before text


def test_many_soft_links(tmp_path: Path) -> None:
    """As fast as the groups themselves: each is found in one look at where they lie."""
    with h5py.File(tmp_path / "x.h5", "w") as h:
        for i in range(3000):
            h[f"real/{i:04}/x"] = np.float32([i])
            h[f"links/{2999 - i:04}"] = h5py.SoftLink(f"/real/{i:04}")
    loader = stoker.Loader(
        f"hdf5:{tmp_path}/x.h5?group=links&samples=groups", batch_size=3000, output="numpy", as_dict=True
    )
    assert next(iter(loader))["x"].ravel().tolist() == list(range(2999, -1, -1))


def test_groups_in_doubt(tmp_path: Path) -> None:
    parts = {f"{g}/{n}": made("f4", (5 + len(g), 2)) for g in ("train", "test") for n in "ab"}
    path = write(tmp_path / "x.h5", **parts)
    with pytest.raises(stoker.UsageError, match=r"\?group=test"):
        stoker.Loader(path)
    assert len(stoker.Source(f"hdf5:{path}?group=train")) == 10
    assert len(stoker.Source(f"hdf5:{path}?samples=groups")) == 2


def test_a_group_may_lack_a_dataset(tmp_path: Path) -> None:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as h:
        for i in range(6):
            h[f"s{i}/x"] = np.arange(3)
            if i != 2:
                h[f"s{i}/score"] = i
    loader = stoker.Loader(path, batch_size=1, on_error="skip", max_bad=1.0, output="numpy", fields=["index", "score"])
    assert sorted(int(i) for batch in loader for i in batch[0]) == [0, 1, 3, 4, 5]
    assert [bad.sample for bad in loader.bad_samples()] == [2]
    words = r"has no dataset skore \(is score meant\?\); the datasets are score, x"
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Source(f"hdf5:{path}?x=x&y=skore")


def test_datasets_that_are_there_are_told(tmp_path: Path) -> None:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as h:
        h["train/photos"] = made("u1", (4, 8, 8, 3))
        h["train/y"] = np.arange(4)
    words = r"has no dataset train/photo \(is train/photos meant\?\); the datasets are train/photos, train/y"
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Source(f"hdf5:{path}?image=train/photo")


def test_damage_is_a_bad_sample(tmp_path: Path) -> None:
    x = made("u1", (20, 30, 3))
    with h5py.File(tmp_path / "x.h5", "w") as h:
        data = h.create_dataset("x", data=x, chunks=(5, 30, 3), fletcher32=True)
        place = data.id.get_chunk_info(2).byte_offset
    with open(tmp_path / "x.h5", "r+b") as file:
        file.seek(place + 7)
        byte = file.read(1)[0]
        file.seek(place + 7)
        file.write(bytes([byte ^ 1]))
    loader = stoker.Loader(
        str(tmp_path / "x.h5"), batch_size=1, on_error="skip", max_bad=1.0, output="numpy", fields=["index", "x"]
    )
    assert sorted(int(i) for batch in loader for i in batch[0]) == [i for i in range(20) if not 10 <= i < 15]
    reasons = {bad.reason for bad in loader.bad_samples()}
    assert reasons == {"x: its checksum (fletcher32) is wrong"}


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("words", [False, True])
def test_a_label_that_cannot_be_read_costs_one_sample(tmp_path: Path, words: bool) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as h:
        for i in range(6):
            h[f"{i}/x"] = np.full(3, i)
            if i != 2:
                h[f"{i}/label"] = f"class {i % 2}" if words else i % 2
    for fields in ("label", "x, label"):
        loader = stoker.Loader(path, fields=fields, on_error="skip", max_bad=1, output="numpy")
        assert np.concatenate([batch.label for batch in loader]).tolist() == [0, 1, 1, 0, 1]
        [bad] = loader.bad_samples()
        assert bad.sample == 2 and "label: there is none" in bad.reason
    [batch] = stoker.Loader(path, fields="label:int ? 7", batch_size=6, output="numpy")
    assert batch.label.tolist() == [0, 1, 7, 1, 0, 1]


def test_unknown_filters_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as h:
        made_by = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made_by.set_chunk((5,))
        made_by.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        h5py.h5d.create(h.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((20,)), made_by)
    with pytest.raises(stoker.DataError, match="filter 32001"):
        stoker.Loader(str(tmp_path / "x.h5"))
