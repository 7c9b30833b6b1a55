# SPDX-License-Identifier: Apache-2.0
"""Fields and file names survive every target, and the way back."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import stoker

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

TARGETS = ["tar", "tfrecord", "hdf5", "npy", "folder"]
OPS = "Resize(24) | CenterCrop(24)"
#: Case twins, equal stems, dots, non-ASCII, and what WebDataset reserves.
NAMES = [
    "__background__/__x__.png",
    "cat/1.JPG",
    "cat/1.jpg",
    "cat/ü ñ.jpg",
    "dog/1.jpg",
    "dog/1.png",
    "dog/a.b.jpeg",
    "dog/50%.webp",
    "dog/n.1/x.jpg",
]


def encoded(seed, suffix):
    data = io.BytesIO()
    form = {"jpg": "JPEG", "jpeg": "JPEG"}.get(suffix.lower(), suffix.upper())
    pixels = np.random.default_rng(seed).integers(0, 255, (26, 30, 3), np.uint8)
    Image.fromarray(pixels).save(data, form, quality=95)
    return data.getvalue()


def row(i):
    return {
        "caption": "" if i == 3 else f"é, sample {i}",
        "Score": i + 0.25,
        "tags": [f"t{k}" for k in range(i % 3)] + ["x"],
        "emb": [i + 0.5, 1.5, -2.25],
    }


@pytest.fixture
def listed(tmp_path):
    """A list of files with a field of every kind."""
    root = tmp_path / "listed"
    with open(tmp_path / "all.jsonl", "w") as lines:
        for i, name in enumerate(NAMES):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(i, path.suffix[1:]))
            lines.write(json.dumps({"path": name, "label": name.split("/")[0], **row(i)}) + "\n")
    (tmp_path / "all.jsonl").rename(root / "all.jsonl")
    return root / "all.jsonl"


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture
def grouped(tmp_path):
    """WebDataset's groups; the fields are renamed."""
    with tarfile.open(tmp_path / "grouped.tar", "w") as tar:
        for i in range(7):
            fields = {"png": encoded(i, "png"), "cls": str(i % 3).encode(), "txt": f"é {i}".encode()}
            fields["json"] = json.dumps(row(i)["tags"]).encode()
            fields["emb.npy"] = npy(np.array(row(i)["emb"], np.float32))
            fields["boxes.npy"] = npy(np.arange(4.0 * (i % 3)).reshape(-1, 4))
            for name, data in fields.items():
                member = tarfile.TarInfo(f"a/{i:03d}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return tmp_path / "grouped.tar"


RENAMED = "image, label, caption=txt, Tags=json, emb=emb.npy, boxes=boxes.npy"


def everything(source, fields=None):
    """Every field of every sample, in plain Python; labels by the name of their class where they have one."""
    source = stoker.Source(source)
    loader = stoker.Loader(source, OPS, batch_size=64, dtype="uint8", output="numpy", fields=fields)
    [batch] = loader
    rows = [{} for _ in range(len(source))]
    for name in batch._fields:
        value = getattr(batch, name)
        value = value.to_list() if isinstance(value, stoker.Ragged) else value
        for i, one in enumerate(value):
            one = np.asarray(one).tolist() if not isinstance(one, str | bytes | list) else one
            rows[i][name] = source.classes[one] if name == "label" and source.classes else one
    return rows


def by_image(rows):
    return sorted(rows, key=lambda r: r["image"])


@pytest.fixture(params=["listed", "grouped"])
def case(request):
    path = request.getfixturevalue(request.param)
    fields = RENAMED if request.param == "grouped" else "image, label, caption, Score, tags, emb"
    return path, fields


@pytest.mark.parametrize("to", TARGETS)
def test_every_field_survives(case, tmp_path, to):
    path, fields = case
    stoker.pack(path, tmp_path / "p", OPS if to == "npy" else None, to=to, fields=fields)
    want, got = everything(path, fields), everything(tmp_path / "p")
    assert [list(r) for r in got] == [list(r) for r in want]
    assert (by_image(got) == by_image(want)) if to == "folder" else (got == want)


@pytest.mark.parametrize("to", TARGETS)
def test_every_field_survives_the_way_back(case, tmp_path, to):
    """Through the target and from there to a tar, and to a folder."""
    path, fields = case
    stoker.pack(path, tmp_path / "p", OPS if to == "npy" else None, to=to, fields=fields)
    want = by_image(everything(path, fields))
    for back in ["tar", "folder"]:
        stoker.pack(tmp_path / "p", tmp_path / back, to=back)
        assert by_image(everything(tmp_path / back)) == want


def files_below(folder):
    """Images by the names of their files."""
    found = {}
    for path in Path(folder).rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"):
            found[name] = path.read_bytes()
    return found


@pytest.mark.parametrize("to", ["tfrecord", "hdf5", "npy"])
def test_keys_are_those_of_the_source(case, tmp_path, to):
    path, fields = case
    stoker.pack(path, tmp_path / "p", OPS if to == "npy" else None, to=to, fields=fields)
    assert stoker.Source(tmp_path / "p").keys == stoker.Source(path).keys


@pytest.mark.parametrize("to", TARGETS)
def test_file_names_survive_the_way_back(listed, tmp_path, to):
    want = files_below(listed.parent)
    assert set(want) == set(NAMES)
    if to == "npy":
        stoker.pack(listed, tmp_path / "p", OPS, to="npy")
        stoker.pack(tmp_path / "p", tmp_path / "back", to="folder")
        names = {str(Path(n).with_suffix(".png")) for n in NAMES if n not in ("cat/1.jpg", "dog/1.png")}
        assert set(files_below(tmp_path / "back")) == names | {"cat/1-2.png", "dog/1-5.png"}
        return
    stoker.pack(listed, tmp_path / "p", to=to)
    if to == "tar":
        stoker.unpack(tmp_path / "p", tmp_path / "back")
    elif to == "folder":
        (tmp_path / "p").rename(tmp_path / "back")
    else:
        stoker.pack(tmp_path / "p", tmp_path / "back", to="folder")
    assert files_below(tmp_path / "back") == want


@pytest.mark.parametrize(("as_", "resize"), [("keep", "short=20"), ("png", None), ("jpeg", "long=20"), ("dct", None)])
@pytest.mark.parametrize("force", [False, True])
def test_no_file_takes_the_place_of_another(listed, tmp_path, as_, resize, force):
    """In a folder, and in what is unpacked; also where the format of an image changes."""
    options = {"as_": as_, "resize": resize, "force": force}
    packed = stoker.pack(listed, tmp_path / "p", **options)
    stoker.unpack(tmp_path / "p", tmp_path / "files", force=force)
    found = files_below(tmp_path / "files")
    assert packed.samples == len(found) == len(NAMES)
    if as_ == "dct":
        assert set(found) == set(NAMES)
        return
    stoker.pack(listed, tmp_path / "f", to="folder", **options)
    assert len(files_below(tmp_path / "f")) == len(NAMES) == len(stoker.Source(tmp_path / "f"))
    stoker.pack(tmp_path / "p", tmp_path / "again", to="folder", force=force)
    assert len(files_below(tmp_path / "again")) == len(NAMES)
    for name, data in files_below(tmp_path / "f").items():
        suffix = {".jpg": "JPEG", ".jpeg": "JPEG"}.get(Path(name).suffix.lower(), Path(name).suffix[1:].upper())
        assert Image.open(io.BytesIO(data)).format == suffix, name


def jpegs(folder):
    """JPEGs of every sampling and orientation, grey, progressive, of odd sizes; and images without coefficients."""
    rng = np.random.default_rng(5)
    (folder / "a").mkdir(parents=True)

    def save(name, size, mode="RGB", form="JPEG", **options):
        blocks = rng.integers(0, 256, (size[1] // 7 + 1, size[0] // 7 + 1, 3), np.uint8)
        pixels = np.kron(blocks, np.ones((7, 7, 1), np.uint8))[: size[1], : size[0]]
        Image.fromarray(pixels).convert(mode).save(folder / "a" / name, form, **options)

    for subsampling in range(3):
        for progressive in [False, True]:
            for size in [(64, 48), (37, 51), (129, 17), (5, 3)]:
                name = f"{subsampling}-{progressive}-{size[0]}.jpg"
                save(name, size, quality=88, subsampling=subsampling, progressive=progressive)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"o{orientation}.JPG", (41, 30), exif=exif, subsampling=2)
    save("grey.jpeg", (33, 9), "L")
    save("progressive.jpeg", (17, 40), "L", progressive=True)
    save("inks.jpg", (20, 20), "CMYK")
    save("other.png", (20, 20), form="PNG")


def test_dct_turns_back_into_jpeg_without_loss(tmp_path):
    jpegs(tmp_path / "photos")
    want = list(stoker.Source(tmp_path / "photos"))
    stoker.pack(tmp_path / "photos", tmp_path / "dct", as_="dct")
    stoker.unpack(tmp_path / "dct", tmp_path / "unpacked")
    names = sorted(files_below(tmp_path / "photos"))
    assert sorted(files_below(tmp_path / "unpacked")) == names
    stoker.pack(tmp_path / "unpacked", tmp_path / "again", as_="dct")
    for made in ["dct", "unpacked", "again"]:
        for name, one, other in zip(names, want, stoker.Source(tmp_path / made), strict=True):
            assert np.array_equal(one[0], other[0]), (made, name)
    for name, data in files_below(tmp_path / "unpacked").items():
        image = Image.open(io.BytesIO(data))
        assert image.format == ("PNG" if name.endswith("png") else "JPEG")
        assert image.size == Image.open(tmp_path / "photos" / name).size


def test_webdataset_reads_them(listed, tmp_path):
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
    stoker.pack(listed, tmp_path / "p")
    urls = sorted(str(p) for p in (tmp_path / "p").glob("*.tar"))
    samples = list(wds.WebDataset(urls, shardshuffle=False, empty_check=False).decode())
    assert [s["__key__"] for s in samples][:3] == ["%5F_background__/__x__", "cat/1", "cat/1%2Ejpg%"]
    assert [s["caption.txt"] for s in samples] == [row(i)["caption"] for i in range(len(NAMES))]
    assert [s["tags.json"] for s in samples] == [row(i)["tags"] for i in range(len(NAMES))]
    assert [s["emb.npy"].tolist() for s in samples] == [row(i)["emb"] for i in range(len(NAMES))]


def test_tensorflow_finds_the_names(listed, tmp_path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    stoker.pack(listed, tmp_path / "p", to="tfrecord")
    feature = {"image/filename": tf.io.FixedLenFeature([], tf.string)}
    files = sorted(str(p) for p in (tmp_path / "p").glob("*.tfrecord"))
    records = [tf.io.parse_single_example(r, feature) for r in tf.data.TFRecordDataset(files)]
    assert [r["image/filename"].numpy().decode() for r in records] == NAMES


def test_reserved_names_of_fields(tmp_path):
    """What WebDataset keeps for itself, what a folder hides, what an HDF5 path means."""
    names = ["__key__", "__url__", ".", "..", ".x", "a/b", "A", "a", "images", "keys", "cls", "png", "seg.png", "é"]
    arrays = {name: np.arange(3) + i for i, name in enumerate(names)}
    arrays["n" * 63] = np.arange(3)
    arrays["n" * 62 + "m"] = np.arange(3) + 1
    images = np.arange(3 * 8 * 6 * 3, dtype=np.uint8).reshape(3, 8, 6, 3)
    np.savez(tmp_path / "all.npz", image=images, label=np.array([2, 0, 1]), **arrays)
    for to in TARGETS:
        stoker.pack(tmp_path / "all.npz", tmp_path / to, to=to)
        [batch] = stoker.Loader(tmp_path / to, "CenterCrop((8, 6))", batch_size=3, dtype="uint8", output="numpy")
        assert batch.label.tolist() == [2, 0, 1]
        for (name, value), got in zip(arrays.items(), batch[2:], strict=True):
            assert got.tolist() == value.tolist(), (to, name)
        chosen = {"x": "__key__", "y": "a/b", "z": "A"}
        [batch] = stoker.Loader(tmp_path / to, batch_size=3, output="numpy", fields=chosen)
        assert [v.tolist() for v in batch] == [arrays[name].tolist() for name in ("__key__", "a/b", "A")], to


@pytest.mark.parametrize("name", [".", "..", "a/b", ".hidden", "Thumbs.db"])
def test_classes_that_cannot_be_folders(tmp_path, name):
    (tmp_path / "1.png").write_bytes(encoded(1, "png"))
    (tmp_path / "2.png").write_bytes(encoded(2, "png"))
    lines = [{"path": "1.png", "label": name}, {"path": "2.png", "label": "cat"}]
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    classes = [name, "cat"]
    for to in TARGETS[:-1]:
        stoker.pack(stoker.Source(tmp_path / "l.jsonl", classes=classes), tmp_path / to, to=to)
        assert stoker.Source(tmp_path / to).classes == classes
        assert list(stoker.Source(tmp_path / to).labels) == [0, 1]
    with pytest.raises(stoker.UsageError, match="cannot be the name of a folder"):
        stoker.pack(stoker.Source(tmp_path / "l.jsonl", classes=classes), tmp_path / "folder", to="folder")
    assert not (tmp_path / "folder").exists()


def test_a_field_that_no_sample_has(tmp_path):
    """The pack opens, and has the others."""
    with tarfile.open(tmp_path / "s.tar", "w") as tar:
        for name, data in {"1.png": encoded(1, "png"), "2.png": encoded(2, "png"), "2.txt": b"two"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    stoker.pack(stoker.Source(tmp_path / "s.tar").take(1), tmp_path / "p")
    [batch] = stoker.Loader(tmp_path / "p", OPS, fields=["image"], output="numpy")
    assert batch.image.shape == (1, 3, 24, 24)
