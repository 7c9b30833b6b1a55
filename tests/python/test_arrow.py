# SPDX-License-Identifier: Apache-2.0
"""Parquet, Arrow and Hugging Face: values as pyarrow gives them, shuffled, resumed, in every framework."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
import stoker
from stoker import _arrow
from stoker._arrow_types import is_image

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 60
FRAMEWORKS = ["numpy", "torch", "jax", "tensorflow"]


def png(photos, i):
    return Path(stoker.Source(photos).paths[i % 12]).read_bytes()


@pytest.fixture(scope="module")
def table(photos):
    return pa.table(
        {
            "image": pa.array([{"bytes": png(photos, i), "path": f"{i}.png"} for i in range(N)]),
            "label": pa.array([i % 7 for i in range(N)], pa.int32()),
            "x": pa.array([float(i) / 3 for i in range(N)]),
            "flag": pa.array([i % 3 == 0 for i in range(N)]),
            "text": pa.array([f"é{i}" for i in range(N)]),
            "blob": pa.array([bytes(range(i)) for i in range(N)]),
            "ids": pa.array([list(range(i % 5)) for i in range(N)]),
            "pair": pa.array([[i, -i] for i in range(N)], pa.list_(pa.float32(), 2)),
            "grid": pa.array([[[i, 1, 2]] * (i % 4) for i in range(N)], pa.list_(pa.list_(pa.int16()))),
            "words": pa.array([["a"] * (i % 3) for i in range(N)]),
            "about": pa.array([{"n": i, "s": "q"} for i in range(N)]),
            "day": pa.array([datetime.date(2020, 1, 1 + i % 28) for i in range(N)]),
            "price": pa.array([decimal.Decimal(i) / 4 for i in range(N)], pa.decimal128(10, 2)),
            "colour": pa.array([["red", "blue"][i % 2] for i in range(N)]).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def parquet(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "train.parquet"
    pq.write_table(table, path, row_group_size=7)
    return str(path)


def sources(table, parquet, tmp_path):
    batches = pa.Table.from_batches(table.to_batches(max_chunksize=11))
    file = tmp_path / "x.arrow"
    with pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=13)
    stream = tmp_path / "y.arrow"
    with pa.ipc.new_stream(stream, table.schema) as out:
        out.write_table(table)
    return {
        "table": table,
        "batches": batches,
        "slice": pa.concat_tables([table.slice(0, 17), table.slice(17)]),
        "parquet": parquet,
        "arrow": str(file),
        "stream": str(stream),
    }


def listed(value):
    if isinstance(value, list):
        return value
    return value.to_list() if hasattr(value, "to_list") else np.asarray(value).tolist()


def check_rows(batch, rows, table):
    want = {name: table.column(name).to_pylist() for name in table.column_names}
    assert listed(batch["label"]) == [want["label"][i] for i in rows]
    np.testing.assert_allclose(np.asarray(batch["x"]), [want["x"][i] for i in rows], rtol=1e-6)
    for name in ("flag", "text", "blob", "ids", "pair", "words", "about", "colour"):
        assert listed(batch[name]) == [want[name][i] for i in rows], name
    for k, i in enumerate(rows):
        if len(want["grid"][i]):
            assert listed(batch["grid"][k]) == want["grid"][i]
    assert listed(batch["price"]) == [str(want["price"][i]) for i in rows]
    assert listed(batch["day"]) == [(want["day"][i] - datetime.date(1970, 1, 1)).days for i in rows]
    assert tuple(batch["image"].shape) == (len(rows), 3, 8, 8)


@pytest.mark.parametrize("kind", ["table", "batches", "slice", "parquet", "arrow", "stream"])
def test_all_values(table, parquet, tmp_path, kind):
    source = sources(table, parquet, tmp_path)[kind]
    loader = stoker.Loader(source, "CenterCrop(8)", batch_size=16, as_dict=True, output="numpy", threads=3)
    n = 0
    for batch in loader:
        rows = range(n, n + len(batch["text"]))
        check_rows(batch, rows, table)
        n += len(rows)
    assert n == N


@pytest.mark.parametrize("output", FRAMEWORKS)
def test_frameworks(parquet, table, output):
    pytest.importorskip(output)
    loader = stoker.Loader(parquet, "CenterCrop(8)", batch_size=16, as_dict=True, output=output)
    check_rows(next(iter(loader)), range(16), table)


def test_images_are_those_of_the_folder(photos, table):
    from_table = stoker.Loader(table, "Resize(16) | CenterCrop(12)", batch_size=12, fields=("image",), output="numpy")
    from_folder = stoker.Loader(photos, "Resize(16) | CenterCrop(12)", batch_size=12, output="numpy")
    np.testing.assert_array_equal(next(iter(from_table)).image, next(iter(from_folder)).image)


def test_shuffle_resume_ranks(parquet):
    def opened(**options):
        arguments = {"fields": ("text", "index"), "batch_size": 4, "shuffle": True, "seed": 3, "output": "numpy"}
        return stoker.Loader(parquet, **{**arguments, **options})

    loader = opened()
    whole = []
    for n, batch in enumerate(loader):
        whole += batch.index.tolist()
        if n == 4:
            state, at = loader.state_dict(), len(whole)
    assert sorted(whole) == list(range(N))
    for threads in (1, 4):
        other = opened(threads=threads)
        other.load_state_dict(state)
        assert [i for batch in other for i in batch.index.tolist()] == whole[at:]
    parts: list[int] = []
    for rank in (0, 1):
        parts += [i for b in opened(rank=rank, world_size=2) for i in b.index.tolist()]
    assert sorted(parts) == list(range(N))


def test_row_groups_beyond_the_limit_are_dropped(tmp_path):
    path = tmp_path / "big.parquet"
    rows = np.random.default_rng(0).integers(0, 255, (400, 1000), np.uint8)
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 1000)
    pq.write_table(pa.table({"v": values, "i": list(range(400))}), path, row_group_size=20)
    source = stoker.Source(str(path))
    handle = source.table.opened(None, 100_000)
    loader = stoker._stoker.Loader({"arrow": handle, "batch_size": 8, "threads": 3, "shuffle": 1})
    loader.select(("v", "i"))
    seen = 0
    while (batch := loader.next()) is not None:
        values, numbers = (np.asarray(m) for m in batch)
        np.testing.assert_array_equal(values, rows[numbers])
        seen += len(numbers)
        assert handle.held < 300_000
    assert seen == 400
    loader.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """More than the row groups that a loader of 64 MiB keeps: 20 MiB, in groups of half a MiB."""
    rows = np.random.default_rng(1).integers(0, 255, (5000, 4096), np.uint8)
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 4096), "i": list(range(5000))})
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    pq.write_table(table, path, row_group_size=125)
    return str(path)


def loader_of_large(path, **options):
    arguments = {"batch_size": 50, "shuffle": True, "seed": 3, "memory": "64MiB", "output": "numpy"}
    return stoker.Loader(path, **{**arguments, **options})


def test_a_table_beyond_memory_reads_each_row_group_once(large, monkeypatch):
    loads: list[int] = []
    load = stoker._arrow.Reader.__call__
    monkeypatch.setattr(stoker._arrow.Reader, "__call__", lambda *a: loads.append(a[2]) or load(*a))
    loader = loader_of_large(large)
    assert "windows of" in loader.explain() and "40 blocks" in loader.explain()
    order = [i for batch in loader for i in batch.i.tolist()]
    assert sorted(order) == list(range(5000))
    assert len(loads) <= 45
    jumps = np.abs(np.diff(order))
    assert np.median(jumps) > 500, "rows of many row groups are mixed"
    assert order != [i for batch in loader for i in batch.i.tolist()]


def test_a_table_beyond_memory_resumes(large):
    loader = loader_of_large(large)
    whole = []
    for n, batch in enumerate(loader):
        whole += batch.i.tolist()
        if n == 30:
            state, at = loader.state_dict(), len(whole)
    other = loader_of_large(large, threads=1)
    other.load_state_dict(state)
    assert [i for batch in other for i in batch.i.tolist()] == whole[at:]
    parts = [loader_of_large(large, batch_size=25, rank=rank, world_size=2) for rank in (0, 1)]
    for part in parts:
        part.load_state_dict(state)
    together = [i for both in zip(*parts, strict=True) for batch in both for i in batch.i.tolist()]
    assert together == whole[at:]
    with pytest.raises(stoker.UsageError, match="windows of"):
        loader_of_large(large, memory="256MiB").load_state_dict(state)


def test_columns_that_fit_are_shuffled_as_a_whole(large):
    assert "windows of" not in loader_of_large(large, fields=("i",)).explain()
    assert "windows of" not in loader_of_large(large, memory="256MiB").explain()


def test_nulls(tmp_path):
    path = str(tmp_path / "n.parquet")
    pq.write_table(pa.table({"x": [1, None, 3], "t": ["a", None, "c"]}), path)
    with pytest.raises(stoker.DataError, match="row group 0 row 1"):
        list(stoker.Loader(path, batch_size=3, output="numpy"))
    (batch,) = stoker.Loader(path, batch_size=3, fields='x ? -1, t:text ? ""', output="numpy")
    assert batch.x.tolist() == [1, -1, 3]
    assert batch.t == ["a", "", "c"]
    (batch,) = stoker.Loader(path, batch_size=3, on_error="skip", max_bad=1, output="numpy")
    assert batch.x.tolist() == [1, 3]


def test_a_column_of_nulls_needs_a_default(tmp_path):
    path = str(tmp_path / "n.parquet")
    pq.write_table(pa.table({"x": [1, 2, 3], "n": pa.nulls(3)}), path)
    (batch,) = stoker.Loader(path, batch_size=3, fields="x, n:int ? -1", output="numpy")
    assert batch.n.dtype == np.int64 and batch.n.tolist() == [-1, -1, -1]
    (batch,) = stoker.Loader(path, batch_size=3, fields="a=n ? 7, b=n:float ? 0.5, x", output="numpy")
    assert batch.a.tolist() == [7, 7, 7] and batch.b.tolist() == [0.5, 0.5, 0.5]
    (batch,) = stoker.Loader(path, batch_size=3, fields={"n": 'text ? ""'}, output="numpy")
    assert batch.n == ["", "", ""]
    with pytest.raises(stoker.UsageError, match=r"n: it has no values; give it a default \(x:int \? 0\)"):
        stoker.Loader(path, fields="n")


def test_several_files(table, tmp_path):
    for i in range(3):
        pq.write_table(table.slice(20 * i, 20), tmp_path / f"part-{i}.parquet", row_group_size=8)
    for name in (
        str(tmp_path),
        f"{tmp_path}/part-*.parquet",
        f"{tmp_path}/part-{{0..2}}.parquet",
        f"parquet:{tmp_path}",
    ):
        loader = stoker.Loader(name, fields=("text",), batch_size=N, output="numpy")
        assert next(iter(loader)).text == table.column("text").to_pylist()
    assert "part-1.parquet row group 2 row 3" in stoker.Source(str(tmp_path)).paths[39]
    pq.write_table(table.select(["x"]), tmp_path / "part-3.parquet")
    with pytest.raises(stoker.UsageError, match="no column txet; the columns are image, .*did you mean text"):
        stoker.Loader(table, fields=("image", "txet"))
    with pytest.raises(stoker.UsageError, match="differ from the first part"):
        stoker.Loader(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        stoker.Loader(str(tmp_path / "none.parquet"))


def test_source(parquet, table, photos):
    source = stoker.Source(parquet)
    assert len(source) == N
    assert source.labels.tolist() == table.column("label").to_pylist()
    sample = source[5]
    assert sample["text"] == "é5"
    assert sample["image"].shape == (24, 32, 3)
    assert sample["ids"].tolist() == []
    assert source[7]["ids"].tolist() == [0, 1]
    part = source.subset([3, 1])
    assert [s["text"] for s in part] == ["é3", "é1"]
    loader = stoker.Loader(part, fields=("text",), batch_size=2)
    assert next(iter(loader)).text == ["é3", "é1"]
    assert pickle.loads(pickle.dumps(source))[2]["text"] == "é2"
    both = source + stoker.Source(table)
    assert len(both) == 2 * N
    assert both[N + 4]["text"] == "é4"
    with pytest.raises(stoker.UsageError, match="tables"):
        source + stoker.Source(photos)
    first, second = source.split(0.5, by="class")
    assert len(first) + len(second) == N


def test_mixed(table):
    a, b = stoker.Source(table.slice(0, 20)), stoker.Source(table.slice(20))
    loader = stoker.Loader(
        stoker.mix({a: 0.5, b: 0.5}), fields=("index", "text"), batch_size=4, output="numpy", shuffle=True
    )
    seen = [i for batch in loader for i in batch.index.tolist()]
    assert 20 <= sum(i < 20 for i in seen) <= 40


def test_a_loader_pickles(parquet):
    loader = stoker.Loader(parquet, fields=("text",), batch_size=8, shuffle=True)
    other = pickle.loads(pickle.dumps(loader))
    assert [b.text for b in other] == [b.text for b in loader]


def test_files_named_by_paths(photos, tmp_path):
    paths = stoker.Source(photos).paths
    table = pa.table(
        {"image": pa.array([{"bytes": None if i else png(photos, 0), "path": p} for i, p in enumerate(paths)])}
    )
    a = next(iter(stoker.Loader(table, "CenterCrop(8)", batch_size=12, output="numpy"))).image
    b = next(iter(stoker.Loader(photos, "CenterCrop(8)", batch_size=12, output="numpy"))).image
    np.testing.assert_array_equal(a, b)


def test_tables_in_memory_are_not_copied(table):
    big = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(10**6, dtype=np.float32)), 1000)})
    before = pa.total_allocated_bytes()
    loader = stoker.Loader(big, batch_size=10, output="numpy")
    assert pa.total_allocated_bytes() - before < 10**5
    np.testing.assert_array_equal(next(iter(loader)).v[3], np.arange(3000, 4000, dtype=np.float32))


def test_objects_of_other_libraries(table):
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert len(next(iter(stoker.Loader(Stream(), fields=("text",), batch_size=N))).text) == N


# ---------------------------------------------------------------- Hugging Face


@pytest.fixture(scope="module")
def dataset(photos, tmp_path_factory):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog", "cow"]),
            "caption": datasets.Value("string"),
            "grid": datasets.Array2D(shape=(2, 3), dtype="float32"),
            "ids": datasets.Sequence(datasets.Value("int64")),
        }
    )

    def rows():
        for i in range(30):
            yield {
                "image": {"bytes": png(photos, i), "path": None},
                "label": i % 3,
                "caption": f"c{i}",
                "grid": np.full((2, 3), i, np.float32),
                "ids": list(range(i % 4)),
            }

    folder = tmp_path_factory.mktemp("hf")
    return datasets.Dataset.from_generator(rows, features=features, cache_dir=str(folder))


def test_dataset(dataset):
    loader = stoker.Loader(dataset, "CenterCrop(8)", batch_size=10, output="numpy")
    assert loader.classes == ["cat", "dog", "cow"]
    batch = next(iter(loader))
    assert batch.label.tolist() == [i % 3 for i in range(10)]
    assert batch.caption == [f"c{i}" for i in range(10)]
    assert batch.grid.shape == (10, 2, 3)
    assert batch.grid[4].tolist() == np.full((2, 3), 4).tolist()
    assert batch.ids.to_list() == [list(range(i % 4)) for i in range(10)]
    np.testing.assert_array_equal(stoker.Source(dataset)[3]["image"], np.asarray(dataset[3]["image"].convert("RGB")))
    assert "Hugging Face" in loader.explain()


def test_a_dataset_that_was_shuffled_or_cut(dataset):
    for part in (
        dataset.shuffle(seed=1),
        dataset.select(range(5, 25, 3)),
        dataset.filter(lambda row: row["label"] == 1),
    ):
        loader = stoker.Loader(part, fields=("caption", "label"), batch_size=len(part), output="numpy")
        assert next(iter(loader)).caption == list(part["caption"])


def test_a_dataset_in_parquet_keeps_its_classes(dataset, tmp_path):
    dataset.to_parquet(tmp_path / "d.parquet")
    loader = stoker.Loader(str(tmp_path / "d.parquet"), "CenterCrop(8)", batch_size=4, output="numpy")
    assert loader.classes == ["cat", "dog", "cow"]
    assert next(iter(loader)).grid.shape == (4, 2, 3)


def test_a_dataset_with_a_transform_of_its_own_runs_in_python(dataset):
    part = dataset.with_transform(lambda rows: {"n": [len(c) for c in rows["caption"]]})
    assert next(iter(stoker.Loader(part, batch_size=3, output="numpy")))["n"].tolist() == [2, 2, 2]


def test_sound_is_not_an_image():
    """WAV and WebP are both RIFF files."""
    riff = b"RIFF\x24\0\0\0"
    for start, image in ((riff + b"WAVEfmt ", False), (riff + b"WEBPVP8 ", True), (b"RIFF", False)):
        for value in (start, {"bytes": start, "path": None}):
            assert is_image(value) is image
    loader = stoker.Loader(pa.table({"sound": [riff + b"WAVEfmt "] * 3}), batch_size=3, output="numpy")
    assert [bytes(b) for b in next(iter(loader)).sound] == [riff + b"WAVEfmt "] * 3


def test_several_splits_are_refused(dataset):
    import datasets

    with pytest.raises(stoker.UsageError, match="choose one"):
        stoker.Loader(datasets.DatasetDict({"train": dataset}))


# ---------------------------------------------------------------- what others wrote

CORPUS = Path(os.environ.get("STOKER_TEST_DATA", "/nowhere")) / "corpus" / "parquet-testing"

# What pyarrow reads and we do not compare, with the reason.
LEFT_OUT = {
    "large_string_map.brotli.parquet": "one value has 2 GiB, more than max_bytes",
    "nested_structs.rust.parquet": "it has dates in structs that Python's datetime does not reach",
}
MOST = 30  # columns at a time: ragged ones need two arrays, and a batch has 64


def corpus_files():
    found = sorted(CORPUS.glob("**/*.parquet")) if CORPUS.is_dir() else []
    variants = [p for p in found if p.parent.name == "shredded_variant"]
    return [p for p in found if p not in variants or variants.index(p) % 12 == 0]  # they are all alike to us


@pytest.mark.skipif(not corpus_files(), reason="STOKER_TEST_DATA has no parquet-testing")
@pytest.mark.parametrize("path", corpus_files(), ids=lambda p: p.name)
def test_corpus(path):
    if path.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[path.name])
    try:
        table = pq.ParquetFile(path).read(use_threads=False)
    except Exception:  # what pyarrow does not read is refused, or a bad sample, in words
        with pytest.raises(stoker.Error, match="cannot be read|cannot read|no samples|no column"):
            plans = stoker.Source(str(path)).table.plans
            text = ", ".join(f'v{k}="{name}"' for k, name in enumerate(list(plans)[:MOST]))
            list(stoker.Loader(str(path), batch_size=64, fields=text, output="numpy", memory="256M"))
        return
    if table.num_rows == 0 or not table.column_names:
        with pytest.raises(stoker.UsageError, match="no samples|no column"):
            stoker.Loader(str(path))
        return
    plans = stoker.Source(str(path)).table.plans
    readable = [n for n, plan in plans.items() if not plan.refused]
    assert readable or any(plan.refused for plan in plans.values())
    for k in range(0, len(readable), MOST):
        compare(path, table, {n: plans[n] for n in readable[k : k + MOST]})


def said(k, name, plan):
    if plan.kind == "image":
        return f'v{k}="{name}":bytes ? ""'
    if plan.dtype == "float16":  # of which no default is made
        return f'v{k}="{name}"'
    return f'v{k}="{name}" ? ' + ("0" if plan.storage in ("numbers", "bits") and not plan.levels else '""')


def compare(path, table, plans):
    text = ", ".join(said(k, name, plan) for k, (name, plan) in enumerate(plans.items()))
    options = {"batch_size": 64, "fields": text, "output": "numpy", "as_dict": True, "memory": "512M"}
    got = {f"v{k}": [] for k in range(len(plans))}
    try:
        for batch in stoker.Loader(str(path), **options):
            for name, values in batch.items():
                got[name] += listed(values)
    except stoker.DataError as error:
        assert any(words in str(error) for words in ("contains a null", "differ in length", "has no")), error
        return
    for k, (name, plan) in enumerate(plans.items()):
        for g, w in zip(got[f"v{k}"], table.column(name).to_pylist(), strict=True):
            assert same(g, w, plan), (name, g, w)


def same(got, want, plan):
    if want is None:
        return got in (0, False, "", b"", None) or got == []
    if plan.kind == "json":
        from stoker._arrow_types import _json_of

        return got == json.loads(json.dumps(want, default=_json_of))
    if plan.kind == "text":
        return got == str(want)
    if isinstance(want, (datetime.date, datetime.time, datetime.timedelta)):
        return isinstance(got, int)
    return got == want or (got != got and want != want)


def test_tables_of_other_classes_are_not_joined():
    def table(names):
        noted = {"info": {"features": {"label": {"_type": "ClassLabel", "names": names}}}}
        plain = pa.table({"x": [1, 2, 3], "label": [0, 0, 1]})
        return plain.replace_schema_metadata({"huggingface": json.dumps(noted)})

    one, other = table(["cat", "dog"]), table(["dog", "cat"])
    assert len(stoker.Source(one) + stoker.Source(table(["cat", "dog"]))) == 6
    with pytest.raises(stoker.UsageError, match="part 1 has the classes dog, cat, but the first part has"):
        stoker.Source(one, other)
    with pytest.raises(stoker.UsageError, match="are integers for its classes dog, cat"):
        stoker.Source(one) + stoker.Source(other)


@pytest.mark.parametrize("call", ["source", "drawn", "get"])
def test_ctrl_c_while_a_chunk_is_loaded(photos, tmp_path, call, monkeypatch):
    """The calling thread loads the last chunk: threads of the loader are not there yet."""
    images = [{"bytes": png(photos, i), "path": None} for i in range(N)]
    pq.write_table(pa.table({"image": images}), tmp_path / "a.parquet", row_group_size=1)
    source = stoker.Source(tmp_path / "a.parquet")
    loader = stoker.Loader(source, "RandomCrop(8)", batch_size=1, threads=1, output="numpy")
    calls = {
        "source": lambda: source[N - 1],
        "drawn": lambda: loader.drawn(N - 1),
        "get": lambda: loader.get(N - 1),
    }
    real, main = _arrow.Reader.__call__, threading.get_ident()

    def interrupted(self, thread, i):
        if threading.get_ident() == main:
            raise KeyboardInterrupt
        return real(self, thread, i)

    monkeypatch.setattr(_arrow.Reader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    monkeypatch.undo()
    calls[call]()
