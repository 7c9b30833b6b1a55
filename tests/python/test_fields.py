# SPDX-License-Identifier: Apache-2.0
"""Named fields of containers, in every framework: numbers, text, bytes, JSON, ragged and padded."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest
import stoker
from stoker import Padded, Ragged

FRAMEWORKS = ["numpy", "torch", "jax", "tensorflow"]
N = 10


@pytest.fixture(scope="module")
def shard(tmp_path_factory, photos):
    """A tar of samples with an image, a class, a caption, an object, bytes and arrays of several forms."""
    path = tmp_path_factory.mktemp("fields") / "train.tar"
    source = stoker.Source(photos)
    with tarfile.open(path, "w") as tar:

        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        for i in range(N):
            with open(source.paths[i], "rb") as file:
                add(f"{i:04}.png", file.read())
            add(f"{i:04}.cls", str(i % 3).encode())
            add(f"{i:04}.txt", f"é {'x' * i}".encode())
            add(f"{i:04}.json", json.dumps({"n": i, "tags": ["a"] * i}).encode())
            add(f"{i:04}.blob", bytes(range(i)))
            for name, array in arrays(i).items():
                buffer = io.BytesIO()
                np.save(buffer, array)
                add(f"{i:04}.{name}.npy", buffer.getvalue())
    return str(path)


def arrays(i):
    return {
        "fixed": np.arange(6, dtype=np.float32).reshape(2, 3) + i,
        "ids": np.arange(i, dtype=np.int64),
        "boxes": np.arange(4 * i, dtype=np.float32).reshape(i, 4),
        "grid": np.arange(i * (i + 1), dtype=np.int32).reshape(i, i + 1),
    }


TEXT = (
    "image=png, label, caption=txt:text, about=json, blob:bytes, fixed=fixed.npy:float32(2,3), ids=ids.npy:int64(*), "
    "boxes=boxes.npy:float32(*,4), grid=grid.npy:int32(*,*), padded=ids.npy:int64(*) pad=-1"
)


def opened(shard, output="numpy", fields=TEXT, **options):
    ops = options.pop("ops", "CenterCrop(8)")
    return stoker.Loader(shard, ops, batch_size=4, output=output, fields=fields, **options)


def listed(value):
    return value.tolist() if hasattr(value, "tolist") else value.numpy().tolist()


@pytest.mark.parametrize("output", FRAMEWORKS)
def test_all_kinds(shard, output):
    pytest.importorskip(output)
    n = 0
    for batch in opened(shard, output):
        rows = range(n, n + len(batch.caption))
        assert batch.caption == [f"é {'x' * i}" for i in rows]
        assert batch.about == [{"n": i, "tags": ["a"] * i} for i in rows]
        assert batch.blob == [bytes(range(i)) for i in rows]
        assert listed(batch.label) == [i % 3 for i in rows]
        assert tuple(batch.image.shape) == (len(rows), 3, 8, 8)
        assert listed(batch.fixed) == [arrays(i)["fixed"].tolist() for i in rows]
        for name in ("ids", "boxes", "grid"):
            value = getattr(batch, name)
            assert isinstance(value, Ragged)
            assert len(value) == len(rows)
            assert [np.asarray(listed(row)).size for row in value] == [arrays(i)[name].size for i in rows]
            assert value.to_list() == [arrays(i)[name].tolist() for i in rows]
            assert type(value.values) is type(batch.fixed)
        assert isinstance(batch.padded, Padded)
        lengths = listed(batch.padded.lengths)
        assert lengths == list(rows)
        for k, i in enumerate(rows):
            row = listed(batch.padded.values)[k]
            assert row[:i] == list(range(i))
            assert set(row[i:]) <= {-1}
        n += len(rows)
    assert n == N


def test_rows_are_no_copies(shard):
    batch = next(iter(opened(shard)))
    assert np.shares_memory(batch.ids[2], batch.ids.values)
    assert np.shares_memory(batch.grid[2], batch.grid.values)
    with pytest.raises(IndexError):
        batch.ids[4]
    assert batch.ids[-1].tolist() == [0, 1, 2]


def test_nested(shard):
    torch = pytest.importorskip("torch")
    batch = next(iter(opened(shard, "torch")))
    nested = batch.ids.nested()
    assert nested.is_nested
    assert [t.tolist() for t in nested.unbind()] == batch.ids.to_list()
    assert nested.values().data_ptr() == batch.ids.values.data_ptr()
    assert torch.equal(batch.boxes.nested().values(), batch.boxes.values)
    with pytest.raises(stoker.UsageError):
        batch.grid.nested()


def test_ragged_of_tensorflow(shard):
    tf = pytest.importorskip("tensorflow")
    batch = next(iter(opened(shard, "tensorflow")))
    assert isinstance(batch.ids.nested(), tf.RaggedTensor)
    assert batch.ids.nested().to_list() == batch.ids.to_list()


def test_as_tf_dataset(shard):
    tf = pytest.importorskip("tensorflow")
    text = "image=png, caption=txt:text, blob:bytes, ids=ids.npy:int64(*), padded=ids.npy:int64(*) pad"
    data = opened(shard, fields=text, as_dict=True, layout="NHWC").as_tf_dataset()
    n = 0
    for batch in data:
        rows = range(n, n + len(batch["caption"]))
        assert [c.decode() for c in batch["caption"].numpy()] == [f"é {'x' * i}" for i in rows]
        assert list(batch["blob"].numpy()) == [bytes(range(i)) for i in rows]
        assert isinstance(batch["ids"], tf.RaggedTensor)
        assert batch["ids"].to_list() == [list(range(i)) for i in rows]
        assert batch["padded"][1].numpy().tolist() == list(rows)
        n += len(rows)
    assert n == N
    with pytest.raises(stoker.UsageError, match="fields="):
        opened(shard).as_tf_dataset()


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (("image", "label", "key"), ("image", "label", "key")),
        ({"pixel_values": "png", "labels": "cls:int"}, ("pixel_values", "labels")),
        ({"png": "image", "cls": "int"}, ("png", "cls")),
        ({"png": "image", "ids.npy": "int64(*) pad=-1"}, ("png", "ids.npy")),
        ({"pixel_values": "image", "labels": "label:float"}, ("pixel_values", "labels")),
        ("image, txt, index", ("image", "txt", "index")),
        ("pixels=png", ("pixels",)),
    ],
)
def test_ways_to_say_it(shard, fields, names):
    batch = next(iter(opened(shard, fields=fields, as_dict=True)))
    assert tuple(batch) == names


def test_class_names_and_casts(shard):
    loader = opened(shard, fields=("image", "label:float"))
    assert next(iter(loader)).label.dtype == np.float32


def test_found_by_looking(shard):
    batch = next(iter(opened(shard, fields=None, as_dict=True)))
    assert isinstance(batch["txt"], list)
    assert isinstance(batch["json"][0], dict)
    assert list(batch)[:2] == ["image", "label"]


def test_features_of_tf(tmp_path):
    tf = pytest.importorskip("tensorflow")
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path) as out:
        for i in range(6):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
                "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"n{i}".encode()])),
            }
            if i % 2:
                feature["y"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    features = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.int64, default_value=-7),
        "ids": tf.io.VarLenFeature(tf.int64),
        "name": tf.io.FixedLenFeature([], tf.string),
    }
    (batch,) = stoker.Loader(path, batch_size=6, features=features, output="numpy")
    assert batch.x.tolist() == [[i, i + 0.5] for i in range(6)]
    assert batch.y.tolist() == [i if i % 2 else -7 for i in range(6)]
    assert batch.ids.to_list() == [list(range(i)) for i in range(6)]
    assert batch.name == [f"n{i}" for i in range(6)]
    with pytest.raises(stoker.UsageError, match="pass only one of them"):
        stoker.Loader(path, features=features, fields=("x",))
    with pytest.raises(stoker.UsageError, match="FixedLenFeature"):
        stoker.Loader(path, features={"x": SimpleNamespace(shape=[], dtype="complex")})


def test_peek_get_and_collate(shard):
    loader = opened(shard)
    seen = loader.peek()
    first = next(iter(loader))
    assert seen.ids.to_list() == first.ids.to_list()
    assert not np.shares_memory(seen.ids.values, first.ids.values)
    many = loader.get(range(9))  # more than one batch has
    assert many.ids.to_list() == [list(range(i)) for i in range(9)]
    assert many.caption == [f"é {'x' * i}" for i in range(9)]
    assert many.grid.to_list() == [arrays(i)["grid"].tolist() for i in range(9)]
    assert many.padded.values.shape == (9, 8)
    text = "ids=ids.npy:int64(*), p=ids.npy:int64(*) pad, txt"
    rows = next(iter(opened(shard, fields=text, collate_fn=list, ops=None)))
    assert [row[0].tolist() for row in rows] == [row[1].tolist() for row in rows] == [list(range(i)) for i in range(4)]
    assert rows[2][2] == "é xx"


def test_pickles_and_resumes(shard):
    loader = opened(shard, shuffle=True)
    next(iter(loader))
    other = pickle.loads(pickle.dumps(loader))
    a, b = [list(batch.caption) for batch in loader], [list(batch.caption) for batch in other]
    assert b == a or len(b) == 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("caption=tyt:text", "there is no column tyt"),
        ("txt:txet", "did you mean text"),
        ({"a": "nothing"}, "there is no column nothing"),
        ({"a": 'x"y'}, "cannot be read"),
        ("png, ids=ids.npy:int64(2)", "but its shape needs 2"),
    ],
)
def test_refused(shard, fields, words):
    with pytest.raises(stoker.Error, match=words):
        next(iter(opened(shard, fields=fields)))


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("fields", ["label", "label, txt"])
def test_a_sample_without_a_label_is_bad(tmp_path, fields, joined):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for i in range(6):
            for part in ("txt",) if i == 2 else ("txt", "cls"):
                member = tarfile.TarInfo(f"{i}.{part}")
                member.size = 1
                tar.addfile(member, io.BytesIO(b"%d" % i))
    source = [str(tmp_path / "x.tar")] * 2 if joined else str(tmp_path / "x.tar")
    with pytest.raises(stoker.DataError, match="the label is missing, although other samples have one"):
        list(stoker.Loader(source, batch_size=2, output="numpy", fields=fields))
    filled = stoker.Loader(source, batch_size=2, output="numpy", fields=fields.replace("label", "label:int ? 9"))
    labels = [int(n) for batch in filled for n in batch.label]
    assert labels == [0, 1, 9, 3, 4, 5] * (1 + joined)


def test_a_label_that_is_damaged_is_shown(tmp_path):
    with tarfile.open(tmp_path / "d.tar", "w") as tar:
        for i, word in enumerate((b"1", b"a\x00", b"3")):
            for name, data in ((f"{i}.txt", b"text"), (f"{i}.cls", word)):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    with pytest.raises(stoker.DataError, match=r'the label is invalid: its cls has 2 bytes, "a\\x00"'):
        list(stoker.Loader(tmp_path / "d.tar"))


@pytest.mark.parametrize(("text", "words"), [("x pad=0", r"x:int64\(\*\) pad=0"), ("x:float32(4", "is not closed")])
def test_words_for_fields_that_are_none(text, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(np.zeros((2, 2), np.float32), fields=text)


def test_what_can_be_a_string(shard):
    batch = next(iter(opened(shard, fields=("cls:str", "txt:str"))))
    assert batch[0][:4] == ["0", "1", "2", "0"]
    assert batch[1][1] == "é x"
    for name, what in (("image", "numbers"), ("fixed.npy", "numbers"), ("blob", "bytes"), ("json", "json")):
        with pytest.raises(stoker.UsageError, match=f"{name} is {what}, which cannot be str"):
            opened(shard, fields=(f"{name}:str",))


def rows(source, fields):
    """One row of the field x per sample; the error's reason where it is bad."""
    loader = stoker.Loader(source, fields=fields, output="numpy")
    result = []
    for i in range(len(stoker.Source(source))):
        try:
            x = loader.get([i], epoch=0).x
        except stoker.DataError as error:
            result.append(error.reason)
        else:
            result.append(x[0] if isinstance(x, Ragged) else np.asarray(x)[0])
    return result


TEXTS = {"good": "[[10, 20, 30, 400], [0.5, 1, 2, 3]]", "empty": "[]", "short": "[[1, 2, 3]]", "words": '["a", "dog!"]'}


def check_boxes(got):
    good, empty, short, words = got
    np.testing.assert_array_equal(good, np.array([[10, 20, 30, 400], [0.5, 1, 2, 3]], np.float32))
    assert good.dtype == np.float32 and empty.shape == (0, 4)
    assert "x has 3 numbers" in short and 'x is "["a", "dog!"]"' in words


def test_text_is_never_binary(tmp_path):
    """Numbers that a container has as text are parsed, or the sample is bad; their letters are never numbers."""
    lines = [f'{{"id": "{name}", "x": {text}}}\n' for name, text in TEXTS.items()]
    (tmp_path / "x.jsonl").write_text("".join(lines))
    check_boxes(rows(tmp_path / "x.jsonl", "x:float32(*,4)"))
    quoted = [text.replace('"', '""') for text in TEXTS.values()]
    (tmp_path / "x.csv").write_text("id,x\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(quoted)))
    check_boxes(rows(tmp_path / "x.csv", "x:float32(*,4)"))
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, text in TEXTS.items():
            for suffix in ("json", "txt"):
                info = tarfile.TarInfo(f"{name}.{suffix}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    check_boxes(rows(tmp_path / "x.tar", "x=json:float32(*,4)"))
    check_boxes(rows(tmp_path / "x.tar", "x=txt:float32(*,4)"))
    assert bytes(rows(tmp_path / "x.tar", "x=txt:uint8(*)")[1]) == b"[]"  # the bytes of a text
    assert rows(tmp_path / "x.csv", "x=id:float32(1)")[2] == [2.0]


def test_text_of_tables_is_never_binary(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": list(TEXTS.values())}), tmp_path / "x.parquet")
    check_boxes(rows(tmp_path / "x.parquet", "x:float32(*,4)"))


def test_a_long_column_name_is_cut(tmp_path):
    column = "n" * 70
    (tmp_path / "l.jsonl").write_text(f'{{"{column}": 1}}\n{{"{column}": 2}}\n')
    for fields in (None, column, [column], f"{column}:int"):
        [batch] = stoker.Loader(tmp_path / "l.jsonl", fields=fields, batch_size=2)
        assert getattr(batch, "n" * 63).tolist() == [1, 2]
    with pytest.raises(stoker.UsageError, match="at most 63 bytes"):
        stoker.Loader(tmp_path / "l.jsonl", fields={"m" * 70: f"{column}:int"})
