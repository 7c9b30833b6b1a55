# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow: files of every state, what a state resumes with, and the words for what cannot be read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import stoker

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pc = pytest.importorskip("pyarrow.compute")

N = 40


def values(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return pa.table({"label": rng.permutation(n) % 5, "x": rng.permutation(n), "text": [f"w{i:02d}" for i in range(n)]})


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=10, compression="none")


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as out:
        out.write_table(table, max_chunksize=10)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=10)


WRITERS = {"a.parquet": write_parquet, "a.arrow": write_arrow, "a.feather": write_stream}
each_format = pytest.mark.parametrize("name", WRITERS)


def loader_of(source, **options):
    return stoker.Loader(source, **{"batch_size": 4, "shuffle": True, "output": "numpy", **options})


def state_of(source):
    loader = loader_of(source)
    next(iter(loader))
    return loader.state_dict()


def refused(source, state):
    with pytest.raises(stoker.UsageError, match="the dataset changed"):
        loader_of(source).load_state_dict(state)


# ---------------------------------------------------------------- fingerprints


@each_format
def test_the_same_file_by_another_path_resumes(tmp_path, monkeypatch, name):
    WRITERS[name](values(), tmp_path / name)
    state = state_of(str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    shutil.copy(name, tmp_path / "sub" / name)
    for other in (name, f"./{name}", f"sub/../{name}", f"sub/{name}", f"sub/*{name[1:]}"):
        loader_of(other).load_state_dict(state)


@pytest.mark.parametrize("made", [str, lambda folder: f"{folder}/", lambda folder: f"parquet:{folder}"])
def test_a_folder_by_another_path_resumes(tmp_path, made):
    (tmp_path / "one" / "part").mkdir(parents=True)
    write_parquet(values(0), tmp_path / "one" / "a.parquet")
    write_parquet(values(1), tmp_path / "one" / "part" / "b.parquet")
    state = state_of(str(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    loader_of(made(tmp_path / "two")).load_state_dict(state)
    os.rename(tmp_path / "two" / "part", tmp_path / "two" / "other")
    refused(str(tmp_path / "two"), state)


@each_format
def test_another_file_of_equal_counts_is_refused(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](values(), path)
    state, size = state_of(str(path)), path.stat().st_size
    other = values()
    label = other.column("label").to_numpy()[::-1]
    WRITERS[name](other.set_column(0, "label", pa.array(label)), path)
    assert path.stat().st_size == size
    refused(str(path), state)
    WRITERS[name](other.set_column(2, "text", pa.array([f"a longer text, of row {i}" for i in range(N)])), path)
    refused(str(path), state)
    loader_of(str(path)).load_state_dict(state_of(str(path)))


def test_another_table_of_equal_counts_is_refused():
    state = state_of(values())
    loader_of(pa.Table.from_batches(values().to_batches(max_chunksize=7))).load_state_dict(state)
    refused(values(1), state)
    refused(values().set_column(2, "text", pa.array(["same"] * N)), state)


def test_splits_are_those_of_the_file_by_another_path(tmp_path, monkeypatch):
    write_parquet(values(), tmp_path / "a.parquet")
    first = stoker.Source(str(tmp_path / "a.parquet"))
    monkeypatch.chdir(tmp_path)
    second = stoker.Source("./a.parquet")
    assert first.keys == second.keys
    assert first.keys[13] == "a.parquet row group 1 row 3"
    assert first.paths[13] == f"{tmp_path}/a.parquet row group 1 row 3"
    assert [s["x"] for s in first.split(0.5)[0]] == [s["x"] for s in second.split(0.5)[0]]


# ---------------------------------------------------------------- types of columns


def column_of(array, fields=None):
    loader = stoker.Loader(pa.table({"r": array}), batch_size=len(array), fields=fields, output="numpy")
    values = next(iter(loader)).r
    return values if isinstance(values, list) else values.to_list() if hasattr(values, "to_list") else values.tolist()


@pytest.mark.parametrize(
    "rows",
    [[1, 1, 1, 2, 2, 3], [True, True, False, False, True, True], ["a", "a", "b", "b", "b", ""], [[1], [1], [2, 3]]],
    ids=["numbers", "bits", "text", "lists"],
)
def test_run_end_encoded(rows):
    plain = pa.array(rows)
    if pa.types.is_list(plain.type):
        encoded = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([[1], [2, 3]]))
    else:
        encoded = pc.run_end_encode(plain)
    assert column_of(encoded) == rows
    assert column_of(encoded[1:]) == rows[1:]


def test_run_end_encoded_nulls_are_missing_values():
    encoded = pc.run_end_encode(pa.array(["a", None, None, "b"]))
    assert column_of(encoded, 'r ? ""') == ["a", "", "", "b"]
    with pytest.raises(stoker.DataError, match=r"row 1: .*no r\b"):
        column_of(encoded)


def test_intervals_are_months_days_nanoseconds():
    rows = pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())
    assert column_of(rows) == [[1, 2, 3], [4, 5, 6]]


def test_several_texts_a_row():
    assert column_of(pa.array([["a", "b"], [], ["c"]])) == [["a", "b"], [], ["c"]]


def test_columns_without_values_are_named():
    table = pa.table({"x": [1, 2, 3], "none": pa.nulls(3)})
    with pytest.raises(stoker.UsageError, match="none: it has no values"):
        stoker.Loader(table, fields="x, none")
    loader = stoker.Loader(table, batch_size=3, output="numpy")
    assert next(iter(loader))._fields == ("x",)
    assert "left out   none: it has no values" in loader.explain()
    with pytest.raises(stoker.UsageError, match="none: it has no values"):
        stoker.Loader(table.select(["none"]))


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_no_field_has(tmp_path, name):
    pq.write_table(pa.table({name: [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(stoker.UsageError, match="its name is empty or contains a null byte"):
        stoker.Loader(str(tmp_path / "a.parquet"))


# ---------------------------------------------------------------- what cannot be read


def failure(function):
    """The error, which is one of Stoker's and names the file."""
    with pytest.raises(stoker.Error) as caught:
        function()
    return caught.value


@each_format
def test_damaged_files_are_named(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](values(), path)
    whole = path.read_bytes()
    other = tmp_path / f"0{name}"
    other.write_bytes(whole)
    rng = np.random.default_rng(1)
    for n in [*range(0, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        path.write_bytes(whole[:n])
        try:
            list(loader_of([str(other), str(path)], fields="x, text, label"))
        except stoker.Error as error:
            assert name in str(error) and f"0{name}" not in str(error)
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        damaged = bytearray(whole)
        damaged[at : at + 64] = rng.bytes(len(damaged[at : at + 64]))
        path.write_bytes(damaged)
        try:
            source = stoker.Source(str(path))
            assert len(source.labels) == len(source)
            list(loader_of(source))
            source.split(0.5, by="class")
        except stoker.Error as error:
            assert str(path) in str(error)


def test_labels_of_damaged_files_are_errors_with_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(values(), path)
    whole = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(0).column(0).dictionary_page_offset
    whole[at : at + 40] = b"\xff" * 40
    path.write_bytes(whole)
    error = failure(lambda: stoker.Source(str(path)).labels)
    assert str(path) in str(error) and "label" in str(error)
    assert isinstance(error.__cause__, OSError)


def test_folders_among_parquet_files(tmp_path):
    write_parquet(values(), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").mkdir()
    write_parquet(values(), tmp_path / "b.parquet" / "part.parquet")
    assert len(stoker.Source(str(tmp_path))) == 2 * N


def test_folders_of_arrow_files(tmp_path):
    write_arrow(values(0), tmp_path / "a.arrow")
    write_stream(values(1), tmp_path / "b.arrow")
    for source in (str(tmp_path), f"arrow:{tmp_path}", f"{tmp_path}/*.arrow"):
        rows = [x for batch in loader_of(source, shuffle=False) for x in batch.x.tolist()]
        assert rows == [*values(0).column("x").to_pylist(), *values(1).column("x").to_pylist()]


def test_streams_with_dictionaries(tmp_path):
    column = pa.array([f"w{i % 3}" for i in range(N)]).dictionary_encode()
    write_stream(pa.table({"w": column, "n": list(range(N))}), tmp_path / "a.arrow")
    (batch,) = loader_of(str(tmp_path / "a.arrow"), batch_size=N, shuffle=False)
    assert batch.w == column.to_pylist() and batch.n.tolist() == list(range(N))
    assert len(set(stoker.Source(str(tmp_path / "a.arrow")).keys)) == N


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    os.mkfifo(tmp_path / "pipe.arrow")
    script = f"""
        import stoker
        for name in ("pipe.parquet", "pipe.arrow"):
            try:
                stoker.Loader({str(tmp_path)!r} + "/" + name)
            except stoker.DataError as error:
                print(error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.count("is not a regular file") == 2, run


def test_streams_that_fail_are_usage_errors():
    class Raises:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("no rows today")

    class Wrong:
        def __arrow_c_stream__(self, requested_schema=None):
            return 3

    for source, words in ((Raises(), "no rows today"), (Wrong(), "PyCapsule")):
        error = failure(lambda source=source: stoker.Loader(source))
        assert isinstance(error, stoker.UsageError) and words in str(error) and error.__cause__ is not None


@pytest.mark.parametrize(
    "function",
    [
        lambda text: stoker.Loader(text),
        lambda text: stoker.Loader([text]),
        lambda text: stoker.Source(text),
        lambda text: stoker.ls(text),
        lambda text: stoker.verify(text),
        lambda text: stoker.pack(text, "out"),
        lambda text: stoker.pack(values(), text),
        lambda text: stoker.unpack(text, "out"),
        lambda text: stoker.Loader(values(), cache_dir=text),
        lambda text: stoker.Loader(values(), classes=[text]),
        lambda text: stoker.Loader(values(), text),
    ],
)
def test_null_bytes_in_texts_are_usage_errors(function):
    error = failure(lambda: function("a\0b"))
    assert isinstance(error, stoker.UsageError)
    assert "a\\x00b" in str(error)


# ---------------------------------------------------------------- images in files of their own


def images(paths):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([{"bytes": None, "path": str(p)} for p in paths], kind)


def test_images_by_path(photos):
    paths = stoker.Source(photos).paths
    table = pa.table({"image": images(paths), "mask": images(paths[::-1])})
    batch = next(iter(stoker.Loader(table, "CenterCrop(8)", batch_size=12, output="numpy")))
    folder = next(iter(stoker.Loader(photos, "CenterCrop(8)", batch_size=12, output="numpy")))
    np.testing.assert_array_equal(batch.image, folder.image)
    assert batch.mask == [Path(p).read_bytes() for p in paths[::-1]]


def test_pipes_and_huge_files_as_images_are_bad_samples(photos, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "huge.png").touch()
    os.truncate(tmp_path / "huge.png", 1 << 40)
    paths = [stoker.Source(photos).paths[0], tmp_path / "pipe.png", tmp_path / "huge.png", tmp_path / "none.png"]
    pq.write_table(pa.table({"image": images(paths)}), tmp_path / "a.parquet")
    script = f"""
        import stoker
        loader = stoker.Loader({str(tmp_path / "a.parquet")!r}, "CenterCrop(8)")
        it = iter(loader)
        next(it)
        for _ in range(3):
            try:
                next(it)
            except stoker.DataError as error:
                print(error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=True
    )
    pipe, huge, none = run.stdout.splitlines()
    assert f"a.parquet row group 0 row 1: image: {tmp_path}/pipe.png is a pipe, not a file" in pipe
    assert f"row 2: image: {tmp_path}/huge.png has 1099511627776 bytes, more than the" in huge
    assert f"row 3: image: {tmp_path}/none.png cannot be opened: No such file" in none


# ---------------------------------------------------------------- which columns are images


def images_in(source, **options):
    options = {"batch_size": 64, "on_error": "skip", "max_bad": 1, "output": "numpy", **options}
    with pytest.warns(RuntimeWarning, match="bad sample"):
        batches = list(stoker.Loader(source, "CenterCrop(8)", **options))
    (name,) = options.get("fields", ["image"])
    return np.concatenate([getattr(batch, name) for batch in batches])


def pairs(stored, path=None):
    return [{"bytes": b, "path": path} for b in stored]


BROKEN = {
    "a structure of nulls": lambda stored: pairs([None, *stored]),
    "no structure": lambda stored: [None, *pairs(stored)],
    "a damaged structure": lambda stored: pairs([b"xx", *stored], ""),
    "damaged bytes": lambda stored: [b"xx", *stored],
    "no bytes": lambda stored: [None, *stored],
}


@pytest.fixture
def stored(photos):
    return [Path(p).read_bytes() for p in stoker.Source(photos).paths[:4]]


@pytest.mark.parametrize("rows", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("fields", [None, {"image": "image"}, {"x": "image:image"}])
def test_the_first_row_does_not_decide_what_a_column_is(photos, stored, tmp_path, rows, fields):
    pq.write_table(pa.table({"image": rows(stored)}), tmp_path / "a.parquet", row_group_size=2)
    found = images_in(str(tmp_path / "a.parquet"), **({"fields": fields} if fields else {}))
    folder = next(iter(stoker.Loader(photos, "CenterCrop(8)", batch_size=4, output="numpy")))
    np.testing.assert_array_equal(found, folder.image)


def test_images_after_many_rows_without_one(stored):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [None] * 100 + pairs(stored)
    assert len(images_in(pa.table({"image": pa.array(rows, kind)}))) == 4


def test_columns_said_to_be_images_are_read_row_by_row(stored):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = pa.array(pairs([b"xx"] * 80 + stored), kind)
    assert len(images_in(pa.table({"x": rows}), fields={"x": "image"})) == 4
    assert len(images_in(pa.table({"x": [b"xx"] * 3 + stored[:2]}), fields={"x": "image"})) == 2


def test_bytes_that_are_seldom_images_are_bytes(stored):
    table = pa.table({"x": [*stored[:1], b"xx", b"yy"], "n": [1, 2, 3]})
    assert next(iter(stoker.Loader(table, batch_size=3, output="numpy"))).x == [stored[0], b"xx", b"yy"]
    with pytest.raises(stoker.UsageError, match=r'its columns: x, n; fields="x:image" reads x as images'):
        stoker.Loader(table, "CenterCrop(8)")
