# SPDX-License-Identifier: Apache-2.0
"""Tar shards and zip archives beside Python's tarfile and zipfile and the real WebDataset: every value equal."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stoker

DATA = os.environ.get("STOKER_TEST_DATA")
Sample = tuple[str, dict[str, bytes]]  # key and parts


def ours(source: str | Path) -> list[Sample]:
    """All that can be read, part by part; a part that a sample lacks is left out."""
    paths = stoker.Source(str(source)).paths
    names = columns(source)
    fields = ", ".join(f'p{i}={name}:bytes ? ""' for i, name in enumerate(names))
    loader = stoker.Loader(str(source), batch_size=1, fields=fields + ", index", on_error="skip", output="numpy")
    samples = []
    for batch in loader:
        i = int(batch.index[0])
        parts = {name: getattr(batch, f"p{k}")[0] for k, name in enumerate(names)}
        samples.append((key_of(paths[i]), {name: value for name, value in parts.items() if value}))
    return samples


def columns(source: str | Path) -> list[str]:
    """As a usage error lists them."""
    with pytest.raises(stoker.UsageError) as caught:
        stoker.Loader(str(source), fields="no such column")
    named = re.split("the columns are |the column is ", str(caught.value))[1].split(", ")
    return [name for name in named if name != "label"]  # which is no part of it, but its folders


def key_of(path: str) -> str:
    for suffix in (".tar/", ".gz/", ".tgz/", ".zst/", ".zip/"):
        path = path.split(suffix, 1)[-1]
    return path


def theirs(files: Iterator[tuple[str, bytes]]) -> list[Sample]:
    """Files of an archive, put together by the real WebDataset; parts without bytes are left out, as in ours()."""
    tariterators = pytest.importorskip("webdataset.tariterators", reason="webdataset is not installed")
    data = ({"fname": name, "data": value, "__url__": ""} for name, value in files)
    return [
        (sample["__key__"], {k: v for k, v in sample.items() if not k.startswith("__") and v})
        for sample in tariterators.group_by_keys(data)
    ]


def members(path: Path | io.BytesIO) -> Iterator[tuple[str, bytes]]:
    """The files of a tar archive as tarfile has them."""
    with tarfile.open(path) if isinstance(path, Path) else tarfile.open(fileobj=path) as tar:
        for info in tar:
            if info.isreg():
                file = tar.extractfile(info)
                assert file is not None
                yield info.name, file.read()


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


NAMES = ["short", "with space", "ümläut", "d" * 90 + "/" + "n" * 60, "x" * 200, "very/" * 60 + "deep", "../../up"]


@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_layout_that_tarfile_writes(tmp_path: Path, layout: int) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=layout, pax_headers={"comment": "of all"}) as tar:
        for i, name in enumerate(NAMES):
            if layout == tarfile.USTAR_FORMAT and len(name) > 160:
                continue
            add(tar, f"{name}.jpg", b"a photo" * (i + 1) * 100)
            add(tar, f"{name}.Seg.PNG", bytes([i]) * (512 * i))
            add(tar, f"{name}.cls", str(i).encode())
    assert ours(path) == theirs(members(path))


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_compressed_shards_have_the_same_samples(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(200):
            add(tar, f"{i:04}.bin", os.urandom(20000) if i % 3 else bytes(20000))
            add(tar, f"{i:04}.cls", str(i).encode())
    compressed = tmp_path / f"a.tar.{compression}"
    if compression == "gz":  # in two members
        whole = path.read_bytes()
        compressed.write_bytes(gzip.compress(whole[:1000000], 1) + gzip.compress(whole[1000000:], 1))
    else:
        try:
            subprocess.run(["zstd", "-q", str(path), "-o", str(compressed)], check=True)
        except FileNotFoundError:
            pytest.skip("there is no zstd command here")
    assert ours(compressed) == ours(path) == theirs(members(path))
    assert list(stoker.Source(str(compressed)).labels) == list(range(200))


def test_what_the_shard_writer_writes(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    pattern = str(tmp_path / "w-%02d.tar")
    with webdataset.ShardWriter(pattern, maxcount=7, verbose=0) as writer:
        for i in range(20):
            parts = {"txt": f"text {i}", "cls": i % 5, "json": {"n": i}, "pth.bin": b"x" * i}
            writer.write({"__key__": f"k/{i:03}", **parts})
    source = str(tmp_path / "w-*.tar")
    expected = [s for k in range(3) for s in theirs(members(tmp_path / f"w-{k:02}.tar"))]
    assert ours(source) == expected
    assert list(stoker.Source(source).labels) == [i % 5 for i in range(20)]
    batch = next(iter(stoker.Loader(source, batch_size=20, output="numpy", fields="txt, json, label")))
    assert batch.txt == [f"text {i}" for i in range(20)]
    assert [b["n"] for b in batch.json] == list(range(20))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_archives(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    files = [
        (f"{name}.{part}", bytes([i]) * (i * 1000 + len(part)))
        for i, name in enumerate(n for n in NAMES if n.isascii())
        for part in ("jpg", "seg.png", "cls2")
    ]
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.comment = b"of all"
        archive.mkdir("folder") if hasattr(archive, "mkdir") else None
        for name, data in files:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=len(data) % 2 == 0) as file:
                file.write(data)
    assert ours(path) == theirs(iter(files))


# What is read otherwise than Python's tarfile does, or not at all, and why.
OTHERWISE = {
    "gnu-incremental.tar": "times lie where tarfile looks for a prefix",
    "gnu-nil-sparse-data.tar": "sparse files are refused",
    "gnu-nil-sparse-hole.tar": "sparse files are refused",
    "pax-nil-sparse-data.tar": "sparse files are refused",
    "pax-nil-sparse-hole.tar": "sparse files are refused",
    "sparse-formats.tar": "sparse files are refused",
    "gnu-sparse-big.tar.base64": "sparse files are refused",
    "pax-sparse-big.tar.base64": "sparse files are refused",
    "gnu-sparse-many-zeros.tar.bz2": "sparse files are refused",
    "pax-nul-path.tar": "a zero byte in a name",
    "pax-path-hdr.tar": "it ends after an extended header",
    "pax-bad-hdr-file.tar": "its extended header is damaged",
    "pax-bad-hdr-large.tar.bz2": "its extended header is damaged",
    "neg-size.tar.base64": "a size below zero",
    "issue10968.tar": "damaged",
    "issue11169.tar": "damaged",
    "issue12435.tar": "damaged",
    "writer-big.tar": "cut: only its header is there",
    "writer-big-long.tar.base64": "cut: only its headers are there",
}


def corpus() -> list[Path]:
    if not DATA:
        return []
    root = Path(DATA) / "corpus"
    found = [p for name in ("tar-go", "webdataset-testdata", "torchdata-fakedata") for p in (root / name).rglob("*.t*")]
    return sorted(p for p in found if ".tar" in p.name or p.suffix == ".tgz")


def unwrapped(path: Path, folder: Path) -> Path:
    """Some files of the corpus are wrapped in a way that is none of tar's."""
    if path.suffix == ".base64":
        data = base64.b64decode(path.read_bytes())
    elif path.suffix == ".bz2":
        data = bz2.decompress(path.read_bytes())
    else:
        return path
    plain = folder / path.stem
    plain.write_bytes(data)
    return plain


@pytest.mark.filterwarnings("ignore:.*bad sample")
@pytest.mark.skipif(not DATA, reason="STOKER_TEST_DATA is not set")
@pytest.mark.parametrize("path", corpus(), ids=lambda p: p.name)
def test_the_corpus_is_read_as_tarfile_reads_it(path: Path, tmp_path: Path) -> None:
    archive = unwrapped(path, tmp_path)
    if path.name in OTHERWISE:
        read_or_refused(archive)
        return
    expected = theirs(members(archive))
    if expected:
        assert ours(archive) == expected
    else:
        with pytest.raises(stoker.Error, match="no samples"):
            stoker.Source(str(archive))


def read_or_refused(archive: Path) -> None:
    """Nothing else than words come of it."""
    try:
        source = stoker.Source(str(archive))
        loader: Any = stoker.Loader(str(archive), fields="index", on_error="skip", output="numpy")
        assert sum(len(b.index) for b in loader) <= len(source)
    except stoker.Error as e:
        assert e.reason
