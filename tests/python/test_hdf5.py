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


def batches(source: str) -> list[Any]:
    loader = stoker.Loader(source, batch_size=64, output="numpy", as_dict=True, dtype="uint8", layout="NHWC")
    return [field for batch in loader for field in batch.values()]


def rows(source: str) -> list[Any]:
    """The rows of a source with one column, whatever it becomes."""
    return [row for batch in batches(source) for row in batch]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (bytes, str)):
        return ours == (theirs.decode() if isinstance(theirs, bytes) else theirs)
    theirs = np.asarray(theirs)
    if theirs.dtype.kind in "SV":
        data = theirs.tobytes()
        return ours == (data if theirs.dtype.kind == "V" else data.rstrip(b"\0").decode())
    ours = np.asarray(ours)
    if theirs.ndim == 3 and theirs.shape[-1] == 1 and ours.shape[-1] == 3:  # a grey image
        theirs = np.repeat(theirs, 3, -1)
    return ours.shape == theirs.shape and np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind == "f")


def all_same(ours: list[Any], theirs: Any) -> bool:
    """Batches against a dataset: at once where they are arrays of its shape, since some have a million rows."""
    if ours and theirs.dtype.kind in "biuf" and {b.shape[1:] for b in ours} == {theirs.shape[1:]}:
        return same(np.concatenate(ours), theirs[...])
    return all(same(a, b) for a, b in zip((row for batch in ours for row in batch), theirs, strict=True))


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
        "compressed text", data=["x" * i for i in range(300)], dtype=h5py.string_dtype(), chunks=(7,), compression=4
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
    "is a single value; the first dimension must be the samples": 64,
    "has references as elements": 4,
}


def corpus_files() -> Iterator[Path]:
    for folder in ("hdf5-h5py", "hdf5-pyfive", "hdf5-tfds"):
        yield from (p for p in sorted((CORPUS / folder).rglob("*")) if p.suffix in (".h5", ".hdf5", ".nc"))


def members(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The columns of a dataset: itself, or the members of its structures."""
    if data.dtype.kind == "c":
        x = data[...]
        yield from [(f"{name}.r", x.real), (f"{name}.i", x.imag)]
    elif data.dtype.names:
        for part in data.dtype.names:
            yield from members(data[part], f"{name}.{part}")
    else:
        yield name, data


@pytest.mark.skipif(not CORPUS.is_dir(), reason="STOKER_TEST_DATA is not set")
def test_corpora() -> None:
    """Every dataset as h5py reads it, or refused for a reason of the list."""
    refused: Counter[str] = Counter()
    read = 0
    for path in corpus_files():
        with h5py.File(path) as h:
            for name in datasets(h):
                for member, theirs in members(h[name]):
                    try:
                        ours = batches(f"hdf5:{path}?samples=rows&x={name}{member}")
                    except stoker.Error as e:
                        refused[next((why for why in REFUSED if why in str(e)), str(e))] += 1
                        continue
                    assert all_same(ours, theirs), (path, name, member)
                    read += 1
    assert refused == REFUSED
    assert read == 896


def write(path: Path, **sets: Any) -> str:
    with h5py.File(path, "w") as h:
        for name, data in sets.items():
            h[name] = data
    return str(path)


def first(source: str, **keywords: Any) -> Any:
    return next(iter(stoker.Loader(source, batch_size=4, output="numpy", **keywords)))


def test_columns_are_found(tmp_path: Path) -> None:
    """Datasets of as many rows as the images are columns; the others are left out."""
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
    images = [Path(p).read_bytes() for p in stoker.Source(photos).paths]
    for part in range(2):
        with h5py.File(tmp_path / f"x{part}.h5", "w") as h:
            for i in range(3 * part, 3 * part + 3):
                h[f"s{i}/image"] = np.frombuffer(images[i], np.uint8)
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
    with pytest.raises(stoker.UsageError, match="the label zebra is not one of the 3 given classes"):
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
    words = r"has no dataset skore; the datasets are score, x; did you mean score\?"
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Source(f"hdf5:{path}?x=x&y=skore")


def test_datasets_that_are_there_are_told(tmp_path: Path) -> None:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as h:
        h["train/photos"] = made("u1", (4, 8, 8, 3))
        h["train/y"] = np.arange(4)
    words = r"has no dataset train/photo; the datasets are train/photos, train/y; did you mean train/photos\?"
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
        assert bad.sample == 2 and "label: is missing" in bad.reason
    [batch] = stoker.Loader(path, fields="label:int ? 7", batch_size=6, output="numpy")
    assert batch.label.tolist() == [0, 1, 7, 1, 0, 1]


def test_unknown_filters_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as h:
        made_by = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made_by.set_chunk((5,))
        made_by.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        h5py.h5d.create(h.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((20,)), made_by)
    words = r"x: is compressed with filter 32001 \(.*\), which Stoker does not read; write it with gzip"
    with pytest.raises(stoker.DataError, match=words):
        stoker.Loader(str(tmp_path / "x.h5"))


def test_damaged_descriptions_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as h:
        h["dset1"] = np.arange(6)
        at = h5py.h5o.get_info(h["dset1"].id).addr
    data = bytearray(path.read_bytes())
    place = data.index(b"\x10\x08\0\0\x08\0\0\0\0\0\x40\0", at)  # the type: signed, 8 bytes, of 64 bits
    data[place + 4] = 0
    path.write_bytes(data)
    words = (
        r"x\.h5: dset1: its description in the file is damaged; replace the file, or name the datasets to read \(\?x="
    )
    with pytest.raises(stoker.DataError, match=words):
        stoker.Loader(str(path))


def test_unwritten_rows_are_skipped(tmp_path: Path) -> None:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as h:
        h.create_dataset("x", (2**31, 4), "u1", chunks=(65536, 4), compression=9)[70000] = 1
        h.create_dataset("labels", (2**31,), "u1", chunks=(65536,), compression=9)[70000] = 3
    assert stoker.verify(path) == []
    assert stoker.ls(path).samples == 2**31


@pytest.mark.parametrize("how", ["external", "virtual"])
def test_values_in_other_files_are_refused(tmp_path: Path, how: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as h:
        if how == "external":
            h.create_dataset("x", (6,), "i4", external=str(tmp_path / "x.bin"))
        else:
            layout = h5py.VirtualLayout((6,), "i4")
            layout[:] = h5py.VirtualSource(str(tmp_path / "y.h5"), "y", (6,))
            h.create_virtual_dataset("x", layout)
        h["y"] = np.arange(6)
    with pytest.raises(stoker.DataError, match="x: has its values in other files; give those files instead"):
        stoker.Loader(str(tmp_path / "x.h5"))


def create(h: Any, name: str, data: np.ndarray, kind: Any, set_up: Any, chunks: Any = None) -> None:
    """A dataset of a type and with filters that h5py only has below its usual functions."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        plist.set_chunk(chunks)
    set_up(plist)
    made_set = h5py.h5d.create(h.id, name.encode(), kind, h5py.h5s.create_simple(data.shape), plist)
    made_set.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data))


SZIP = {"nearest neighbour": 32, "entropy": 4}
NUMBERS = ["i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u4", "<i8", ">u8", "<f4", ">f4", "<f8"]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small steps, runs of one value, and some of the largest and smallest values."""
    rng = np.random.default_rng(3)
    n = int(np.prod(shape))
    t = np.dtype(dtype)
    if t.kind == "f":
        return (np.cumsum(rng.normal(size=n)) * 3).round(2).astype(t).reshape(shape)
    steps = np.cumsum(rng.integers(-2, 3, n)) + 60
    steps[n // 4 : n // 2] = 7
    out = steps.astype(np.int64)
    out[-n // 8 :: 3] = rng.integers(0, 100, len(out[-n // 8 :: 3]))
    out = out.astype(t)
    out[1], out[-3] = np.iinfo(t).max, np.iinfo(t).min
    return out.reshape(shape)


def szip(h: Any) -> None:
    for t in NUMBERS:
        for how, mask in SZIP.items():
            for chunks, block in [((8, 7, 5), 8), ((3, 7, 1), 16), ((50, 7, 5), 32), ((9, 4, 3), 2), ((20, 3, 5), 10)]:
                x = numbers(t, (50, 7, 5))
                name = f"szip {t} {how} {chunks} {block}"
                create(h, name, x, h5py.h5t.py_create(np.dtype(t)), lambda p, m=mask, b=block: p.set_szip(m, b), chunks)
    zeros = np.zeros((40, 300), "i2")
    zeros[11, 5] = 1
    for how, mask in SZIP.items():
        create(h, f"szip zeros {how}", zeros, h5py.h5t.STD_I16LE, lambda p, m=mask: p.set_szip(m, 8), (20, 300))


def scale_offset(h: Any) -> dict[str, np.ndarray]:
    """Returns what libhdf5 1.14.6 writes and cannot read: chunks whose values need all their bits."""
    written = {}
    for t in NUMBERS:
        for chunks in [(8, 7, 5), (3, 7, 1), (50, 7, 5)]:
            for fill in (None, 7):
                for bits in (0, 3, 7, 8 * np.dtype(t).itemsize) if np.dtype(t).kind != "f" else (0, 1, 4):
                    x = numbers(t, (50, 7, 5))
                    if bits and np.dtype(t).kind != "f":
                        x = np.clip(x, 0, 5).astype(t)
                    name = f"scaleoffset {t} {chunks} {fill} {bits}"
                    h.create_dataset(name, data=x, chunks=chunks, scaleoffset=bits, fillvalue=fill)
                    written[name] = x
        h.create_dataset(f"scaleoffset {t} of one value", data=np.full((9, 4), 5, t), chunks=(3, 4), scaleoffset=1)
        h.create_dataset(
            f"scaleoffset {t} gzip", data=numbers(t, (50, 7)), chunks=(9, 7), scaleoffset=2, compression=1, shuffle=True
        )
    return written


def n_bit(h: Any) -> None:
    nbit = h5py.h5z.FILTER_NBIT
    for base, size in [("STD_I32LE", 4), ("STD_I32BE", 4), ("STD_U16BE", 2), ("STD_I64LE", 8), ("STD_U8LE", 1)]:
        for bits, first in [(7, 0), (5, 3), (8 * size - 1, 1), (8 * size, 0), (1, 0)]:
            kind = getattr(h5py.h5t, base).copy()
            kind.set_precision(bits)
            kind.set_offset(first)
            native = np.dtype(f"{'u' if 'U' in base else 'i'}{size}")
            for packed in (True, False):
                x = numbers(native.str, (50, 7))
                create(
                    h,
                    f"nbit {base} {bits} {first} {packed}",
                    x & ((1 << (bits - 1 if "I" in base and bits > 1 else bits)) - 1).__int__() if bits < 63 else x,
                    kind,
                    (lambda p: p.set_filter(nbit)) if packed else (lambda p: None),
                    (9, 3) if packed else None,
                )
    short = h5py.h5t.IEEE_F32LE.copy()
    short.set_fields(26, 20, 6, 7, 13)
    short.set_offset(7)
    short.set_precision(20)
    short.set_ebias(31)
    x = np.linspace(-100, 100, 350, dtype="f4").reshape(50, 7)
    x[3, 3], x[4, 4], x[5, 5], x[6, 6] = np.inf, -np.inf, 0, 2.0**-33
    create(h, "nbit float", x, short, lambda p: p.set_filter(nbit), (9, 7))
    create(h, "short float", x, short, lambda p: None)


def odd_types(h: Any) -> None:
    for i, base in enumerate(["STD_B8LE", "STD_B16BE", "STD_B32LE", "STD_B64BE"]):
        kind = getattr(h5py.h5t, base)
        bits = h5py.h5d.create(h.id, f"bits {base}".encode(), kind, h5py.h5s.create_simple((20, 3)))
        order = ">" if "BE" in base else "<"
        bits.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers(f"{order}u{2**i}", (20, 3)), kind)
    inner = h5py.h5t.array_create(h5py.h5t.STD_I16BE, (3,))
    nested = h5py.h5t.array_create(inner, (2,))
    arrays = h5py.h5d.create(h.id, b"arrays of arrays", nested, h5py.h5s.create_simple((8,)))
    arrays.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers(">i2", (8, 2, 3)), nested)


@pytest.mark.parametrize("version", ["v108", "latest"])
@pytest.mark.parametrize("fill", [szip, scale_offset, n_bit, odd_types])
def test_filters_and_types(tmp_path: Path, version: str, fill: Any) -> None:
    with h5py.File(tmp_path / "x.h5", "w", libver=(version, "latest")) as h:
        written = fill(h) or {}
    with h5py.File(tmp_path / "x.h5") as h:
        names = datasets(h)
        assert names
        for name in names:
            try:
                theirs = h[name][...]
            except OSError:
                theirs = written[name]
            ours = rows(f"hdf5:{tmp_path}/x.h5?samples=rows&x={name}")
            assert len(ours) == len(theirs), name
            assert all(same(a, b) for a, b in zip(ours, theirs, strict=True)), name


def test_floats_beyond_float32(tmp_path: Path) -> None:
    """With a small bias, the exponents of 32 bits go beyond those of float32."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(27)
    x = np.array([[1, 2], [1e38, -1e60], [4, 1e-6]])
    with h5py.File(tmp_path / "x.h5", "w") as h:
        create(h, "x", x, kind, lambda p: None)
    with h5py.File(tmp_path / "x.h5") as h:
        theirs = np.empty(x.shape)
        h["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, theirs)
    ours = np.stack(rows(f"hdf5:{tmp_path}/x.h5?samples=rows&x=x"))
    assert ours.dtype == np.float64
    np.testing.assert_array_equal(ours, theirs)


def test_integers_of_any_size(tmp_path: Path) -> None:
    """h5py has no dtype for them: libhdf5 converts to 64 bits."""
    with h5py.File(tmp_path / "x.h5", "w") as h:
        for size in (3, 5, 6, 7):
            for base in ("STD_I64LE", "STD_U64BE"):
                kind = getattr(h5py.h5t, base).copy()
                kind.set_size(size)
                x = np.arange(-20 if "I" in base else 0, 60, dtype="i8").reshape(-1, 4) << (8 * size - 9)
                create(h, f"{base} {size}", x if "I" in base else x.astype("u8"), kind, lambda p: None)
    with h5py.File(tmp_path / "x.h5") as h:
        for name in h:
            native = np.empty(h[name].shape, "i8" if "I64" in name else "u8")
            h[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, native)
            ours = np.stack(rows(f"hdf5:{tmp_path}/x.h5?samples=rows&x={name}"))
            assert ours.itemsize == (4 if "3" in name else 8) and ours.dtype.kind == native.dtype.kind
            np.testing.assert_array_equal(ours, native)


POINT = np.dtype(
    [
        ("x", ">f4"),
        ("v", "<i2"),
        ("box", "<u2", (2, 2)),
        ("inner", [("a", "u1"), ("b", "<f8", (3,))]),
        ("word", "S5"),
        ("label", "i8"),
    ]
)


def points(n: int) -> np.ndarray:
    p = np.zeros(n, POINT)
    p["x"], p["v"], p["label"] = np.arange(n) / 4, -np.arange(n), np.arange(n) % 3
    p["box"] = np.arange(4 * n).reshape(n, 2, 2)
    p["inner"]["a"], p["inner"]["b"] = np.arange(n), np.arange(3 * n).reshape(n, 3)
    p["word"] = [b"w%d" % i for i in range(n)]
    return p


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("how", [{}, {"chunks": (4,)}, {"chunks": (4,), "compression": 1, "shuffle": True}])
def test_members_of_structures_are_columns(tmp_path: Path, version: str, how: Any) -> None:
    p = points(10)
    path = f"{tmp_path}/x.h5"
    with h5py.File(path, "w", libver=version) as h:
        h.create_dataset("g/d", data=p, **how)
        h["z"] = np.arange(10)
    batch = next(iter(stoker.Loader(path, batch_size=10, output="numpy", as_dict=True)))
    names = ["g/d.x", "g/d.v", "g/d.box", "g/d.inner.a", "g/d.inner.b", "g/d.word", "z"]
    assert sorted(batch) == sorted([*names, "label"])
    for name in names[:-1]:
        theirs = p
        for part in name[4:].split("."):
            theirs = theirs[part]
        assert all(same(a, b) for a, b in zip(batch[name], theirs, strict=True)), name
    assert batch["label"].tolist() == p["label"].tolist()
    batch = next(iter(stoker.Loader(f"hdf5:{path}?v=g/d.inner.b", batch_size=10, output="numpy", as_dict=True)))
    np.testing.assert_array_equal(batch["v"], p["inner"]["b"])
    with pytest.raises(stoker.DataError, match=r"g/d: .*MEMBER: x, v, box, inner\.a, inner\.b, word, label"):
        stoker.Loader(f"hdf5:{path}?v=g/d")
    with pytest.raises(stoker.UsageError, match=r"has no dataset g/d\.inner\.c; .*did you mean g/d\.inner\.[ab]"):
        stoker.Loader(f"hdf5:{path}?v=g/d.inner.c")


def test_more_structures(tmp_path: Path) -> None:
    """Several in a row, in arrays, with text of variable length, under names with dots, as samples that are groups."""
    path = f"{tmp_path}/x.h5"
    words = np.dtype([("n", "i4"), ("t", h5py.string_dtype()), ("c", "c8")])
    with h5py.File(path, "w") as h:
        rows_of = np.zeros((6, 2), [("a", "i2"), ("b", "f4", (3,))])
        rows_of["a"] = np.arange(12).reshape(6, 2)
        rows_of["b"] = np.arange(36).reshape(6, 2, 3)
        h["d.b"] = rows_of
        h.create_dataset("arrays", (6,), np.dtype((rows_of.dtype, (2,))))[...] = rows_of
        text = np.array([(i, "t" * i, i + 2j) for i in range(6)], words)
        h.create_dataset("text", data=text, dtype=words)
    batch = next(iter(stoker.Loader(path, batch_size=6, output="numpy", as_dict=True)))
    for name in ("d.b", "arrays"):
        np.testing.assert_array_equal(batch[f"{name}.a"], rows_of["a"])
        np.testing.assert_array_equal(batch[f"{name}.b"], rows_of["b"])
    assert batch["text.t"] == ["t" * i for i in range(6)] and batch["text.n"].tolist() == list(range(6))
    assert batch["text.c.r"].tolist() == list(range(6)) and set(batch["text.c.i"].tolist()) == {2.0}
    with h5py.File(path, "w") as h:
        for i in range(5):
            h[f"s{i}/d"] = points(10)[i]
    batch = next(iter(stoker.Loader(path, batch_size=5, output="numpy", as_dict=True)))
    np.testing.assert_array_equal(batch["d.box"], points(5)["box"])
    assert batch["label"].tolist() == points(5)["label"].tolist()


def test_nbit_of_structures(tmp_path: Path) -> None:
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
    small = h5py.h5t.STD_I32BE.copy()
    small.set_precision(11)
    small.set_offset(4)
    kind.insert(b"a", 0, small)
    kind.insert(b"b", 4, h5py.h5t.array_create(h5py.h5t.STD_U16LE, (2,)))
    text = h5py.h5t.C_S1.copy()
    text.set_size(3)
    kind.insert(b"t", 9, text)
    p = np.zeros(
        20,
        np.dtype({"names": ["a", "b", "t"], "formats": ["i4", ("u2", 2), "S3"], "offsets": [0, 4, 9], "itemsize": 16}),
    )
    p["a"], p["b"], p["t"] = np.arange(20) - 9, np.arange(40).reshape(20, 2), [b"%d" % i for i in range(20)]
    with h5py.File(tmp_path / "x.h5", "w") as h:
        create(h, "d", p, kind, lambda pl: pl.set_filter(h5py.h5z.FILTER_NBIT), (6,))
        assert h["d"].id.get_storage_size() < 20 * 16
    batch = next(iter(stoker.Loader(str(tmp_path / "x.h5"), batch_size=20, output="numpy", as_dict=True)))
    for name in "ab":
        np.testing.assert_array_equal(batch[f"d.{name}"], p[name])
    assert batch["d.t"] == [str(i) for i in range(20)]
