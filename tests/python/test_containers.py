# SPDX-License-Identifier: Apache-2.0
"""What holds for every container: the batches of the folder that it was made of, a true shuffle, exact resume.

A container is a function that writes the images of a folder into another folder and gives the source's name.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
from conftest import make_photos, pillow_images

OPS = "RandomCrop(16) | RandomHorizontalFlip"
PHOTOS = 30  # of each of two classes
COMMAND = os.path.join(os.path.dirname(sys.executable), "stoker")


def command(*words: object) -> str:
    if not os.path.exists(COMMAND):
        pytest.skip("the command is not beside this Python")
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def decoded(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([np.asarray(p) for p in pillow_images(folder)]), np.asarray(stoker.Source(folder).labels)


def write_npy(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    np.save(out / "x.npy", images)
    np.save(out / "y.npy", labels)
    return f"npy:{out}/x.npy?label=y.npy"


def write_several_npy(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    for i, part in enumerate(np.array_split(images, 7)):
        np.save(out / f"x-{i}.npy", part)
    np.save(out / "y.npy", labels)
    return f"npy:{out}/x-*.npy?label=y.npy"


def write_npz(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    np.savez_compressed(out / "a.npz", images=images, labels=labels)
    return f"{out}/a.npz"


def write_raw(folder: Path, out: Path) -> str:
    """Pixels without a header, and labels beside them."""
    images, labels = decoded(folder)
    images.tofile(out / "x.bin")
    np.save(out / "y.npy", labels)
    return f"raw:{out}/x.bin?dtype=uint8&shape={','.join(map(str, images.shape[1:]))}&label=y.npy"


def write_list(folder: Path, out: Path) -> str:
    with open(out / "a.csv", "w") as file:
        for path, label in zip(files_of(folder), stoker.Source(folder).labels, strict=True):
            file.write(f"{path},{label}\n")
    return f"{out}/a.csv"


def files_of(folder: Path) -> list[Path]:
    return [Path(path) for path in stoker.Source(folder).paths]


def write_tar(folder: Path, out: Path) -> str:
    """The class folders as they are."""
    with tarfile.open(out / "a.tar", "w") as tar:
        for path in files_of(folder):
            tar.add(path, path.relative_to(folder))
    return f"{out}/a.tar"


def write_groups(folder: Path, out: Path) -> str:
    """Images and labels, in several shards."""
    labels = stoker.Source(folder).labels
    for i, path in enumerate(files_of(folder)):
        with tarfile.open(out / f"a-{i // 13:02}.tar", "a") as tar:
            tar.add(path, f"{i:04}.png")
            label = tarfile.TarInfo(f"{i:04}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(str(labels[i]).encode()))
    return f"{out}/a-{{00..04}}.tar"


def write_zip(folder: Path, out: Path) -> str:
    with zipfile.ZipFile(out / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files_of(folder):
            archive.write(path, path.relative_to(folder))
    return f"{out}/a.zip"


def write_tfrecord(folder: Path, out: Path, compression: str = "") -> str:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    source = stoker.Source(folder)
    samples = list(zip(source.paths, source.labels, strict=True))
    for shard in range(3):
        with tf.io.TFRecordWriter(f"{out}/x.tfrecord-{shard:05}-of-00003", compression) as file:
            for path, label in samples[shard * 20 : shard * 20 + 20]:
                image = tf.train.BytesList(value=[Path(path).read_bytes()])
                number = tf.train.Int64List(value=[int(label)])
                features = {
                    "image/encoded": tf.train.Feature(bytes_list=image),
                    "image/class/label": tf.train.Feature(int64_list=number),
                }
                file.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return f"{out}/x.tfrecord-*"


def write_hdf5(folder: Path, out: Path) -> str:
    """Pixels, compressed in chunks of several rows."""
    h5py = pytest.importorskip("h5py")
    images, labels = decoded(folder)
    with h5py.File(out / "a.h5", "w") as h:
        h.create_dataset("images", data=images, chunks=(7, *images.shape[1:]), compression="gzip", shuffle=True)
        h["labels"] = labels
    return f"{out}/a.h5"


def write_several_hdf5(folder: Path, out: Path) -> str:
    """Files as elements of variable length."""
    h5py = pytest.importorskip("h5py")
    labels = stoker.Source(folder).labels
    paths = files_of(folder)
    for part in range(3):
        some = range(part * 20, part * 20 + 20)
        with h5py.File(out / f"a{part}.h5", "w") as h:
            data = h.create_dataset("photo", (20,), dtype=h5py.vlen_dtype(np.uint8))
            for i in some:
                data[i - part * 20] = np.frombuffer(paths[i].read_bytes(), np.uint8)
            h["y"] = [labels[i] for i in some]
    return f"hdf5:{out}/a*.h5?image=photo&label=y"


def write_padded_hdf5(folder: Path, out: Path) -> str:
    """Files as rows of bytes that are as long as the longest."""
    h5py = pytest.importorskip("h5py")
    files = [path.read_bytes() for path in files_of(folder)]
    most = max(map(len, files))
    rows = np.stack([np.frombuffer(file.ljust(most, b"\0"), np.uint8) for file in files])
    with h5py.File(out / "a.h5", "w") as h:
        h.create_dataset("image", data=rows, chunks=(1, most))
        h["label"] = stoker.Source(folder).labels
    return f"{out}/a.h5"


def write_groups_of_hdf5(folder: Path, out: Path) -> str:
    """A group for each sample."""
    h5py = pytest.importorskip("h5py")
    labels = stoker.Source(folder).labels
    with h5py.File(out / "a.h5", "w") as h:
        for i, path in enumerate(files_of(folder)):
            h[f"{i:04}/image"] = np.frombuffer(path.read_bytes(), np.uint8)
            h[f"{i:04}/label"] = labels[i]
    return f"{out}/a.h5"


def write_pack(folder: Path, out: Path) -> str:
    """By the command, as the files are."""
    command("pack", folder, out / "pack", "--shard-size", "20K")
    return f"{out}/pack/*.tar"


def write_pack_of_records(folder: Path, out: Path) -> str:
    command("pack", folder, out / "pack", "--to", "tfrecord", "--shard-size", "20K")
    return f"{out}/pack"


def write_pack_of_hdf5(folder: Path, out: Path) -> str:
    command("pack", folder, out / "pack", "--to", "hdf5")
    return f"{out}/pack"


def write_parquet(folder: Path, out: Path) -> str:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    images = [{"bytes": path.read_bytes(), "path": path.name} for path in files_of(folder)]
    pq.write_table(
        pa.table({"image": images, "label": stoker.Source(folder).labels}), out / "a.parquet", row_group_size=7
    )
    return f"{out}/a.parquet"


# What comes in the folder's order, with its labels.
CONTAINERS: dict[str, Callable[[Path, Path], str]] = {
    "list": write_list,
    "npy": write_npy,
    "raw": write_raw,
    "tar": write_tar,
    "tar groups": write_groups,
    "zip": write_zip,
    "hdf5": write_hdf5,
    "several hdf5": write_several_hdf5,
    "several npy": write_several_npy,
    "npz": write_npz,
    "tfrecord": write_tfrecord,
    "padded hdf5": write_padded_hdf5,
    "groups of hdf5": write_groups_of_hdf5,
    "pack": write_pack,
    "pack of records": write_pack_of_records,
    "pack of hdf5": write_pack_of_hdf5,
    "parquet": write_parquet,
}


def write_compressed(folder: Path, out: Path) -> str:
    """Compressed shards."""
    write_groups(folder, out)
    for path in out.glob("*.tar"):
        path.with_suffix(".tar.gz").write_bytes(gzip.compress(path.read_bytes()))
    return f"{out}/a-*.tar.gz"


def write_zstd(folder: Path, out: Path) -> str:
    write_groups(folder, out)
    for path in out.glob("*.tar"):
        try:
            subprocess.run(["zstd", "-q", path, "-o", path.with_suffix(".tar.zst")], check=True)
        except FileNotFoundError:
            pytest.skip("there is no zstd command here")
    return f"{out}/a-*.tar.zst"


def write_compressed_tfrecord(folder: Path, out: Path) -> str:
    return write_tfrecord(folder, out, "GZIP")


# What is shuffled by blocks, and else the same.
COMPRESSED: dict[str, Callable[[Path, Path], str]] = {
    "compressed tar": write_compressed,
    "tar.zst": write_zstd,
    "compressed tfrecord": write_compressed_tfrecord,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("photos"), PHOTOS)


@pytest.fixture(scope="module")
def jpegs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images as JPEG: the cache of coefficients is of these alone."""
    out = tmp_path_factory.mktemp("jpegs")
    for path, image in zip(files_of(folder), pillow_images(folder), strict=True):
        file = out / path.relative_to(folder).with_suffix(".jpg")
        file.parent.mkdir(exist_ok=True)
        image.save(file, quality=95)
    return out


@pytest.fixture(scope="module", params=CONTAINERS | COMPRESSED)
def source_of_jpegs(request: pytest.FixtureRequest, jpegs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return (CONTAINERS | COMPRESSED)[request.param](jpegs, tmp_path_factory.mktemp("container"))


@pytest.fixture(scope="module", params=CONTAINERS)
def source(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return CONTAINERS[request.param](folder, tmp_path_factory.mktemp("container"))


@pytest.fixture(scope="module", params=CONTAINERS | COMPRESSED)
def any_source(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return (CONTAINERS | COMPRESSED)[request.param](folder, tmp_path_factory.mktemp("container"))


def loader(source: object, **keywords: Any) -> stoker.Loader:
    common: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 3, "dtype": "uint8", "output": "numpy"}
    return stoker.Loader(source, OPS, **{**common, **keywords})


def samples(batches: Any) -> list[bytes]:
    """Every sample of some batches, image and label, as bytes."""
    return [
        image.tobytes() + bytes([label])
        for images, labels in batches
        for image, label in zip(images, labels, strict=True)
    ]


def test_the_same_batches_as_the_folder(source: str, folder: Path) -> None:
    for shuffle in (False, True):
        ours, theirs = loader(source, shuffle=shuffle), loader(folder, shuffle=shuffle)
        for _ in range(2):
            assert samples(ours) == samples(theirs)


def test_the_same_checksum_as_the_folder(any_source: str, folder: Path) -> None:
    """By the command; compressed shards have an order of their own when shuffled."""
    if any_source.endswith(".parquet"):
        pytest.skip("the command does not read Parquet")
    words = ("--ops", OPS, "--seed", 3)
    assert command("checksum", any_source, *words) == command("checksum", folder, *words)
    shuffled = command("checksum", any_source, *words, "--shuffle")
    assert shuffled == command("checksum", any_source, *words, "--shuffle", "--threads", 1, "--batch-size", 7)
    if "compressed" not in stoker.Loader(any_source, OPS).explain():
        assert shuffled == command("checksum", folder, *words, "--shuffle")


@pytest.mark.parametrize("cache", ["bytes", "dct", "pixels"])
def test_a_cache_changes_nothing(source_of_jpegs: str, cache: str) -> None:
    plain, kept = loader(source_of_jpegs), loader(source_of_jpegs, cache=cache)
    for _ in range(3):
        assert samples(kept) == samples(plain)
    stats = kept.stats()
    assert stats.cache_entries == 2 * PHOTOS and stats.cache_hits > 3 * PHOTOS


def test_the_shuffle_is_uniform(any_source: str) -> None:
    """Every sample comes to every place: 60 samples, 4 quarters, 200 epochs; 5 standard deviations.

    That holds for a window of compressed shards, and these are smaller than one.
    """
    epochs, n = 200, 2 * PHOTOS
    counts = np.zeros((n, 4))
    chosen = loader(any_source, fields=("index",), batch_size=n)
    for _ in range(epochs):
        index = np.concatenate([batch[0] for batch in chosen])
        assert sorted(index) == list(range(n))
        counts[index, np.arange(n) * 4 // n] += 1
    expected = epochs / 4
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected * 3 / 4)


@pytest.mark.parametrize("ranks", [1, 2])
def test_resume_is_exact(any_source: str, ranks: int) -> None:
    """Stopped in the middle on one rank, gone on with by another number of ranks and threads."""
    whole = loader(any_source, threads=2, batch_size=4)
    expected = samples(whole)
    first = loader(any_source, threads=1, batch_size=4)
    batches = iter(first)
    begun = samples([next(batches) for _ in range(3)])
    state = first.state_dict()
    rest = []
    for rank in range(ranks):
        other = loader(any_source, threads=2, batch_size=4 // ranks, rank=rank, world_size=ranks)
        other.load_state_dict(state)
        rest.append([samples([batch]) for batch in other])
    together = [s for step in zip(*rest, strict=True) for part in step for s in part]
    assert begun + together == expected


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_shards(name: str, folder: Path, tmp_path: Path) -> None:
    """Unshuffled as the folder; shuffled all of it in every epoch, in orders of their own."""
    source = COMPRESSED[name](folder, tmp_path)
    assert samples(loader(source, shuffle=False)) == samples(loader(folder, shuffle=False))
    chosen = loader(source, fields=("index",), batch_size=2 * PHOTOS)
    epochs = [np.concatenate([batch[0] for batch in chosen]).tolist() for _ in range(4)]
    assert all(sorted(epoch) == list(range(2 * PHOTOS)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert "compressed" in chosen.explain()  # and its window, where that is smaller than the set
