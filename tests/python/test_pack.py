# SPDX-License-Identifier: Apache-2.0
"""Packs are read by those whose formats they are: tarfile, webdataset, TensorFlow, h5py, NumPy, Pillow."""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import stoker

OPS = "Resize(24) | CenterCrop(24)"


def loaded(source, **options):
    loader = stoker.Loader(source, OPS, batch_size=64, dtype="uint8", output="numpy", **options)
    return next(iter(loader))


def test_tarfile_and_classes(photos, tmp_path):
    packed = stoker.pack(photos, tmp_path / "p", shard_size="4K")
    assert packed.complete and packed.shards > 1
    note = json.loads((tmp_path / "p/stoker.json").read_text())
    assert note["classes"] == stoker.Source(photos).classes == stoker.Source(tmp_path / "p").classes
    names = []
    for shard in note["shards"]:
        with tarfile.open(tmp_path / "p" / shard["name"]) as tar:
            for member in tar:
                data = tar.extractfile(member).read()
                names.append(member.name)
                if member.name.endswith(".png"):
                    assert data == (Path(photos) / member.name).read_bytes()
                else:
                    assert note["classes"][int(data)] == member.name.split("/")[0]
    assert len(names) == 2 * packed.samples
    for a, b in zip(loaded(photos), loaded(tmp_path / "p"), strict=True):
        assert np.array_equal(a, b)


def test_webdataset(photos, tmp_path):
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
    stoker.pack(photos, tmp_path / "p", shard_size="4K")
    urls = sorted(str(p) for p in (tmp_path / "p").glob("*.tar"))
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    samples = list(wds.WebDataset(urls, shardshuffle=False, empty_check=False).decode("rgb8"))
    source = stoker.Source(photos)
    assert [s["cls"] for s in samples] == list(source.labels)
    for sample, path in zip(samples, source.paths, strict=True):
        assert np.array_equal(sample["png"], np.asarray(Image.open(path).convert("RGB")))


def test_shuffled_and_stopped(photos, tmp_path):
    stoker.pack(photos, tmp_path / "a", shuffle=True, seed=3, shard_size="2K")
    after = 1
    while not (tmp_path / "b/stoker.json").exists():
        stoker.pack(
            photos, tmp_path / "b", shuffle=True, seed=3, shard_size="2K", progress=lambda r, n=after: r.samples < n
        )
        after += 16
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    with pytest.raises(stoker.UsageError, match="seed=3"):
        stoker.pack(photos, tmp_path / "b", shuffle=True, seed=4, shard_size="2K")


def test_killed(noise, tmp_path):
    code = f"import stoker; stoker.pack({str(noise)!r}, {str(tmp_path / 'k')!r}, resize='short=20', shard_size='8K')"
    for i in range(10):
        child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        while not (tmp_path / "k").exists() and child.poll() is None:
            time.sleep(0.001)
        time.sleep(0.002 * i)
        child.kill()
        child.wait()
    stoker.pack(noise, tmp_path / "k", resize="short=20", shard_size="8K")
    stoker.pack(noise, tmp_path / "w", resize="short=20", shard_size="8K")
    assert sorted(os.listdir(tmp_path / "k")) == sorted(os.listdir(tmp_path / "w"))
    for file in (tmp_path / "w").iterdir():
        assert file.read_bytes() == (tmp_path / "k" / file.name).read_bytes()


@pytest.mark.parametrize(("as_", "suffix"), [("png", "png"), ("webp", "webp"), ("jpeg", "jpg"), ("raw", "npy")])
def test_forms(photos, tmp_path, as_, suffix):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    stoker.pack(photos, tmp_path / "p", OPS, as_=as_, quality=100)
    want = loaded(photos).image.transpose(0, 2, 3, 1)
    with tarfile.open(tmp_path / "p/shard-000000.tar") as tar:
        members = [m for m in tar if m.name.endswith("." + suffix)]
        assert len(members) == len(want)
        for member, pixels in zip(members, want, strict=True):
            data = io.BytesIO(tar.extractfile(member).read())
            got = np.load(data) if as_ == "raw" else np.asarray(Image.open(data).convert("RGB"))
            if as_ == "jpeg":
                assert got.shape == pixels.shape
            else:
                assert np.array_equal(got, pixels)
    if as_ != "jpeg":
        assert np.array_equal(loaded(tmp_path / "p").image.transpose(0, 2, 3, 1), want)


def test_resize_never_enlarges(photos, tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    stoker.pack(photos, tmp_path / "small", resize="long=16")
    stoker.pack(photos, tmp_path / "same", resize="short=1000")
    with tarfile.open(tmp_path / "small/shard-000000.tar") as tar:
        sizes = {Image.open(io.BytesIO(tar.extractfile(m).read())).size for m in tar if m.name.endswith(".png")}
    assert sizes == {(16, 12)}
    stoker.pack(photos, tmp_path / "kept")
    assert (tmp_path / "same/shard-000000.tar").read_bytes() == (tmp_path / "kept/shard-000000.tar").read_bytes()


def test_baseline_keeps_pixels_and_markers(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    (tmp_path / "set").mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (50, 70, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    for i, mode in enumerate(["RGB", "L", "CMYK"]):
        Image.fromarray(pixels).convert(mode).save(tmp_path / f"set/{i}.jpg", progressive=True, exif=exif)
    stoker.pack(tmp_path / "set", tmp_path / "p", baseline=True)
    stoker.unpack(tmp_path / "p", tmp_path / "files")
    for i in range(3):
        a, b = Image.open(tmp_path / f"set/{i}.jpg"), Image.open(tmp_path / f"files/{i}.jpg")
        assert "progressive" in a.info and "progressive" not in b.info
        assert b.getexif()[0x0112] == 6
        assert np.array_equal(np.asarray(a), np.asarray(b))


def test_tensorflow(photos, tmp_path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    stoker.pack(photos, tmp_path / "p", to="tfrecord", shard_size="4K")
    files = sorted(str(p) for p in (tmp_path / "p").glob("*.tfrecord"))
    assert len(files) > 1
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/format": tf.io.FixedLenFeature([], tf.string),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/width": tf.io.FixedLenFeature([], tf.int64),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/text": tf.io.FixedLenFeature([], tf.string),
    }
    source = stoker.Source(photos)
    records = [tf.io.parse_single_example(r, features) for r in tf.data.TFRecordDataset(files)]
    assert [int(r["image/class/label"]) for r in records] == list(source.labels)
    for record, path in zip(records, source.paths, strict=True):
        assert record["image/encoded"].numpy() == Path(path).read_bytes()
        assert record["image/format"].numpy() == b"png"
        assert tf.io.decode_png(record["image/encoded"]).shape[:2] == (record["image/height"], record["image/width"])
    for a, b in zip(loaded(photos), loaded(tmp_path / "p", fields=("image", "label")), strict=True):
        assert np.array_equal(a, b)


def test_numpy(photos, tmp_path):
    stoker.pack(photos, tmp_path / "p", OPS, to="npy")
    want = loaded(photos)
    images = np.load(tmp_path / "p/images.npy", mmap_mode="r")
    assert np.array_equal(images, want.image.transpose(0, 2, 3, 1))
    assert np.array_equal(np.load(tmp_path / "p/labels.npy"), want.label)
    for a, b in zip(want, loaded(tmp_path / "p"), strict=True):
        assert np.array_equal(a, b)
    with pytest.raises(stoker.UsageError, match="bad samples cannot be skipped"):
        stoker.pack(photos, tmp_path / "x", to="npy", on_error="skip")


@pytest.mark.parametrize("raw", [False, True])
def test_h5py(photos, tmp_path, raw):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    stoker.pack(photos, tmp_path / "p", OPS if raw else None, to="hdf5", as_="raw" if raw else "keep")
    source, want = stoker.Source(photos), loaded(photos)
    with h5py.File(tmp_path / "p/data.h5") as file:
        assert list(file["labels"]) == list(source.labels)
        assert list(file["labels"].attrs["classes"]) == source.classes
        if raw:
            assert np.array_equal(file["images"], want.image.transpose(0, 2, 3, 1))
        else:
            assert [bytes(b) for b in file["images"]] == [Path(p).read_bytes() for p in source.paths]
    for a, b in zip(want, loaded(tmp_path / "p"), strict=True):
        assert np.array_equal(a, b)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture
def rich(tmp_path):
    """A tar whose samples have a field of every kind; some have no label."""
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(2)
    with tarfile.open(tmp_path / "rich.tar", "w") as tar:
        for i in range(12):
            image = io.BytesIO()
            Image.fromarray(rng.integers(0, 255, (26, 30, 3), np.uint8)).save(image, "png")
            fields = {
                "png": image.getvalue(),
                "cls": str(i % 3).encode() if i % 4 else None,
                "txt": ("ein Satz, é " * i).encode(),
                "json": json.dumps({"id": i, "tags": ["a"] * (i % 3)}).encode(),
                "emb.npy": npy(rng.normal(size=(2, 3)).astype(np.float32)),
                "boxes.npy": npy(rng.normal(size=(i % 4, 4))),
                "ids.npy": npy(rng.integers(-9, 9, i % 5 + 1)),
                "flag.npy": npy(np.array([bool(i % 2)])),
                "raw.bin": bytes(rng.integers(0, 255, i, np.uint8)),
            }
            for name, data in fields.items():
                if data is not None:
                    member = tarfile.TarInfo(f"a/{i:03d}.{name}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return tmp_path / "rich.tar"


def everything(source, fields=None):
    """Every field of every sample, in plain Python."""
    loader = stoker.Loader(source, OPS, batch_size=64, dtype="uint8", output="numpy", fields=fields)
    batch = next(iter(loader))
    plain = {}
    for name in batch._fields:
        value = getattr(batch, name)
        plain[name] = value.to_list() if isinstance(value, stoker.Ragged) else value
        if not isinstance(value, list):
            plain[name] = [np.asarray(v).tolist() for v in plain[name]]
    return plain


FIELDS = (
    "image, label=cls:int ? -1, txt, json, emb=emb.npy, boxes=boxes.npy, ids=ids.npy, flag=flag.npy, raw=raw.bin:bytes"
)


@pytest.mark.parametrize("to", ["tfrecord", "hdf5", "npy"])
def test_every_field_comes_back(rich, tmp_path, to):
    stoker.pack(rich, tmp_path / "p", OPS if to == "npy" else None, to=to, fields=FIELDS)
    want = everything(rich, FIELDS)
    assert len(want["label"]) == 12 and want["label"].count(-1) == 3
    got = everything(tmp_path / "p")
    if to == "tfrecord":
        [names] = stoker.Loader(tmp_path / "p", fields={"name": "image/filename"}, batch_size=12, output="numpy")
        assert names.name == [f"a/{i:03d}" for i in range(12)]
    assert list(got) == list(want)
    for name in want:
        assert got[name] == want[name], name
    if to != "tfrecord":
        assert stoker.Source(tmp_path / "p").keys == stoker.Source(rich).keys
        stoker.pack(tmp_path / "p", tmp_path / "again", OPS if to == "npy" else None, to=to)
        assert everything(tmp_path / "again") == want


def test_other_fields_are_read_by_h5py(rich, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    stoker.pack(rich, tmp_path / "p", to="hdf5", fields=FIELDS)
    want = everything(rich, FIELDS)
    with h5py.File(tmp_path / "p/data.h5") as file:
        assert set(file) == {"images", "labels", "txt", "json", "emb", "boxes", "ids", "flag", "raw", "keys"}
        assert file["labels"][:].tolist() == want["label"]
        assert [t for t in file["txt"].asstr()] == want["txt"]
        assert [json.loads(t) for t in file["json"].asstr()] == want["json"]
        assert file["emb"].dtype == np.float32 and file["emb"][:].tolist() == want["emb"]
        assert [b.reshape(-1, 4).tolist() for b in file["boxes"]] == want["boxes"]
        assert [b.tolist() for b in file["ids"]] == want["ids"]
        assert file["flag"].dtype == bool and file["flag"][:].tolist() == want["flag"]
        assert [b.tobytes() for b in file["raw"]] == want["raw"]
        assert list(file["keys"].asstr()) == [f"a/{i:03d}" for i in range(12)]


def test_other_fields_are_read_by_numpy(rich, tmp_path):
    stoker.pack(rich, tmp_path / "p", OPS, to="npy", fields=FIELDS)
    want = everything(rich, FIELDS)

    def rows(name):
        values, ends = (np.load(tmp_path / "p" / f"{name}{suffix}.npy") for suffix in ("", ".offsets"))
        assert ends[0] == 0 and ends[-1] == len(values)
        return [values[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

    assert np.load(tmp_path / "p/labels.npy").tolist() == want["label"]
    assert np.load(tmp_path / "p/emb.npy").tolist() == want["emb"]
    assert [r.tobytes().decode() for r in rows("txt")] == want["txt"]
    assert [r.tolist() for r in rows("boxes")] == want["boxes"]
    assert [r.tobytes() for r in rows("raw")] == want["raw"]
    assert [r.tobytes().decode() for r in rows("keys")] == [f"a/{i:03d}" for i in range(12)]


def test_names_that_would_be_one(tmp_path):
    arrays = {
        "image": np.arange(3 * 8 * 6 * 3, dtype=np.uint8).reshape(3, 8, 6, 3),
        "label": np.array([2, -1, 0]),
        "a/b": np.arange(3.0),
        "a b": np.arange(3, 6),
        "a_b": np.arange(6, 9, dtype=np.uint16),
        "keys": np.arange(3),
        "x.offsets": np.arange(3),
    }
    np.savez(tmp_path / "arrays.npz", **arrays)
    for to in ["tar", "hdf5", "npy", "tfrecord", "folder"]:
        stoker.pack(tmp_path / "arrays.npz", tmp_path / to, to=to, as_="raw" if to == "npy" else "png")
        if to == "folder":
            assert len(list((tmp_path / to).iterdir())) == 3 * 7 + 2  # stoker.json and the list of files
            continue
        batch = next(
            iter(
                stoker.Loader(
                    tmp_path / to, "CenterCrop((8, 6))", batch_size=3, dtype="uint8", layout="NHWC", output="numpy"
                )
            )
        )
        assert np.array_equal(batch.image, arrays["image"])
        assert batch.label.tolist() == [2, -1, 0]
        for name, got in zip(list(arrays)[2:], batch[2:], strict=True):
            assert got.ravel().tolist() == arrays[name].tolist(), (to, name)
    with tarfile.open(tmp_path / "tar/shard-000000.tar") as tar:
        names = [m.name for m in tar if m.name.startswith("000000001")]
    fields = ["png", "cls", "a_b.npy", "a_b_2.npy", "a_b_3.npy", "keys.npy", "x.offsets.npy"]
    assert names == ["000000001." + name for name in fields]


def test_what_has_no_place_is_refused_before_the_start(tmp_path):
    with tarfile.open(tmp_path / "s.tar", "w") as tar:
        for i in range(1, 5):
            for name, data in {"txt": b"x", "grid.npy": npy(np.zeros((i, i + 1)))}.items():
                member = tarfile.TarInfo(f"{i}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    for to in ["hdf5", "npy", "tfrecord"]:
        with pytest.raises(stoker.UsageError, match=r"grid\.npy varies .* pack to tar"):
            stoker.pack(tmp_path / "s.tar", tmp_path / "p", to=to)
    assert not (tmp_path / "p").exists()
    stoker.pack(tmp_path / "s.tar", tmp_path / "p", to="hdf5", fields=["txt"])
    assert next(iter(stoker.Loader(tmp_path / "p", batch_size=4, output="numpy"))).txt == ["x"] * 4


def test_folder(photos, tmp_path):
    stoker.pack(photos, tmp_path / "p", to="folder")
    assert stoker.ls(tmp_path / "p").fingerprint == stoker.ls(photos).fingerprint


def test_a_random_op_is_named(photos, tmp_path):
    with pytest.raises(stoker.UsageError, match="RandomCrop is random"):
        stoker.pack(photos, tmp_path / "p", [stoker.RandomCrop(8)])
    with pytest.raises(stoker.UsageError, match="short=256"):
        stoker.pack(photos, tmp_path / "p", resize="256")
    with pytest.raises(ZeroDivisionError):
        stoker.pack(photos, tmp_path / "p", begin=lambda r: 1 / 0)
    assert not (tmp_path / "p").exists()


def test_columns_of_a_list(photos, tmp_path):
    """All of them, though a loader has the image and the label alone unless it is asked."""
    paths = sorted(photos.rglob("*.png"))
    with open(tmp_path / "l.csv", "w") as file:
        file.write("path,label,score,caption\n")
        file.writelines(f'{path},{path.parent.name},{i / 4},"c, {i}"\n' for i, path in enumerate(paths))
    stoker.pack(tmp_path / "l.csv", tmp_path / "p", to="tfrecord")
    fields = ("label", "score", "caption")
    [batch] = stoker.Loader(tmp_path / "p", batch_size=len(paths), fields=fields, output="numpy")
    assert batch.score.tolist() == [i / 4 for i in range(len(paths))]
    assert batch.caption == [f"c, {i}" for i in range(len(paths))]
    assert stoker.Source(tmp_path / "p").classes == stoker.Source(photos).classes
