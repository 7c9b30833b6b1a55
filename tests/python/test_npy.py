# SPDX-License-Identifier: Apache-2.0
"""npy, npz, raw binary and token files: the same numbers as NumPy reads, and clear words where there are none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker

CORPUS = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "corpus")
TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def read(source: str, **keywords: Any) -> dict[str, np.ndarray]:
    """All samples in order, field by field."""
    loader = stoker.Loader(source, batch_size=7, output="numpy", as_dict=True, **keywords)
    batches = list(loader)
    return {name: np.concatenate([np.asarray(b[name]) for b in batches]) for name in batches[0]}


def made(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(20,), (20, 3), (9, 2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_and_order(tmp_path: Path, dtype: str, order: Any, shape: tuple[int, ...]) -> None:
    for mark in "<>":
        array = np.asarray(made(dtype, shape), dtype=np.dtype(dtype).newbyteorder(mark), order=order)
        np.save(tmp_path / "a.npy", array)
        found = read(str(tmp_path / "a.npy"))
        assert list(found) == ["data"]
        assert found["data"].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found["data"], array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    x, y = made("u1", (30, 8, 6, 3)), made("i4", (30,))
    save(tmp_path / "a.npz", extra=np.asfortranarray(made("f4", (30, 5))), y=y, x=x)
    found = read(str(tmp_path / "a.npz"), transform="CenterCrop(6)", dtype="uint8", layout="NHWC")
    assert list(found) == ["image", "label", "extra"]
    np.testing.assert_array_equal(found["image"], x[:, 1:7])
    np.testing.assert_array_equal(found["label"], y)
    np.testing.assert_array_equal(found["extra"], made("f4", (30, 5)))


def test_members_that_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=made("f4", (10, 4)), x_test=made("f4", (3, 4)), y_train=made("i8", (10,)))
    with pytest.raises(stoker.UsageError, match=r"x_test has 3 rows, but x_train has 10; choose arrays.*npz:x"):
        stoker.Loader(str(tmp_path / "a.npz"))
    found = read(f"npz:{tmp_path}/a.npz?x=x_train&label=y_train")
    assert sorted(found) == ["label", "x"]
    np.testing.assert_array_equal(found["label"], made("i8", (10,)))


def test_files_joined_and_labels_beside(tmp_path: Path) -> None:
    x, y = made("f8", (25, 3)), made("u8", (25,))
    for i, part in enumerate(np.split(x, [4, 4, 20])):
        np.save(tmp_path / f"x-{i}.npy", part)
    np.save(tmp_path / "y.npy", y)
    found = read(f"npy:{tmp_path}/x-*.npy?label=y.npy")
    np.testing.assert_array_equal(found["data"], x)
    np.testing.assert_array_equal(found["label"], y.astype(np.int64))


def test_fields_are_cast(tmp_path: Path) -> None:
    x = made("u2", (25, 3))
    np.save(tmp_path / "x.npy", x)
    found = read(str(tmp_path / "x.npy"), fields={"a": "data:float32", "b": "data:int64", "c": "data"})
    assert [found[name].dtype for name in "abc"] == [np.float32, np.int64, np.uint16]
    for name in "abc":
        np.testing.assert_array_equal(found[name], x)


def test_raw(tmp_path: Path) -> None:
    x = made("i2", (12, 2, 5))
    (tmp_path / "x.bin").write_bytes(b"header" + x.astype(">i2").tobytes())
    np.testing.assert_array_equal(read(f"raw:{tmp_path}/x.bin?dtype=>i2&shape=2,5&offset=6")["data"], x)


@pytest.mark.parametrize(("length", "stride"), [(8, 8), (9, 8), (16, 3)])
def test_tokens(tmp_path: Path, length: int, stride: int) -> None:
    parts = [np.arange(100, dtype=np.uint16), np.arange(500, 557, dtype=np.uint16)]
    for i, part in enumerate(parts):
        part.tofile(tmp_path / f"{i}.bin")
    found = read(f"tokens:{tmp_path}/*.bin?length={length}&stride={stride}")["tokens"]
    expected = [p[i : i + length] for p in parts for i in range(0, len(p) - length + 1, stride)]
    np.testing.assert_array_equal(found, np.stack(expected))


def test_a_folder_of_files(tmp_path: Path) -> None:
    x = made("f4", (12, 2, 3))
    for i, row in enumerate(x):
        (tmp_path / f"class{i % 3}").mkdir(exist_ok=True)
        np.save(tmp_path / f"class{i % 3}" / f"{i:02}.npy", row)
    found = read(str(tmp_path))
    assert list(found) == ["data", "label"]
    order = [i for c in range(3) for i in range(12) if i % 3 == c]
    np.testing.assert_array_equal(found["data"], x[order])
    np.testing.assert_array_equal(found["label"], np.array(order) % 3)


def test_a_shuffled_epoch_has_every_row_once(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1000))
    found = read(str(tmp_path / "x.npy"), shuffle=True)["data"]
    assert not np.array_equal(found, np.arange(1000))
    np.testing.assert_array_equal(np.sort(found), np.arange(1000))


# What is not read, and a word of the reason.
REFUSED = {
    "py2-objarr.npy": "objects",
    "py2-np0-objarr.npy": "objects",
    "py3-objarr.npy": "objects",
    "py2-objarr.npz": "objects",
    "py3-objarr.npz": "objects",
    "pneumoniamnist.npz": "1 row, but",  # train, validation and test of different lengths: members are to be named
}


def corpus() -> Iterator[Path]:
    for folder in sorted(CORPUS.glob("npy-*")):
        yield from sorted(p for p in folder.rglob("*.np[yz]"))


def members(path: Path) -> dict[str, np.ndarray]:
    found = np.load(path)
    return dict(found) if path.suffix == ".npz" else {"data": found}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="STOKER_TEST_DATA is not set")
def test_corpus() -> None:
    seen = 0
    for path in corpus():
        seen += 1
        if path.name in REFUSED:
            with pytest.raises(stoker.UsageError, match=REFUSED[path.name]):
                stoker.Loader(str(path))
            continue
        for name, array in members(path).items():
            source = f"npz:{path}?a={name}" if path.suffix == ".npz" else str(path)
            if array.ndim == 0 or len(array) == 0:
                with pytest.raises(stoker.UsageError):
                    stoker.Loader(source)
                continue
            found = next(iter(read(source, dtype="uint8", layout="NHWC").values()))
            if found.ndim == 4 and array.shape[3] == 1:  # images are in colours
                array = array.repeat(3, axis=3)
            np.testing.assert_array_equal(found, array, err_msg=str(path))
    assert seen > 30
