# SPDX-License-Identifier: Apache-2.0
"""TFRecord files that TensorFlow wrote, and those of others, against what TensorFlow reads in them."""

import os
from pathlib import Path

import numpy as np
import pytest
import stoker

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

Feature, Features, Example = tf.train.Feature, tf.train.Features, tf.train.Example
IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")


def ints(*values):
    return Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return Feature(float_list=tf.train.FloatList(value=values))


def strings(*values):
    return Feature(bytes_list=tf.train.BytesList(value=values))


def write(path, records, compression=""):
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as out:
        for record in records:
            out.write(record if isinstance(record, bytes) else record.SerializeToString())
    return path


def rows(source, fields=None, **k):
    """All samples, as dicts."""
    loader = stoker.Loader(source, fields=fields, as_dict=True, output="numpy", **k)
    return [{name: value[0] for name, value in batch.items()} for batch in loader]


def example(i):
    rng = np.random.default_rng(i)
    features = {
        "x": floats(*rng.random(12).tolist()),
        "y": ints(i - 3),
        "ids": ints(*rng.integers(-(2**40), 2**40, i % 5).tolist()),
        "name": strings(f"täg {i}".encode()),
        "raw": strings(rng.integers(0, 1000, 6, dtype=np.uint16).tobytes()),
    }
    if i % 2:
        features["sometimes"] = floats(i / 2)
    return Example(features=Features(feature=features))


EXAMPLES = 9
WANTED = "x:float32(3,4), y, ids, name, raw:uint16(2,3), sometimes:float ? -1"
PARSED = {
    "x": tf.io.FixedLenFeature((3, 4), tf.float32),
    "y": tf.io.FixedLenFeature((), tf.int64),
    "ids": tf.io.VarLenFeature(tf.int64),
    "name": tf.io.FixedLenFeature((), tf.string),
    "raw": tf.io.FixedLenFeature((), tf.string),
    "sometimes": tf.io.FixedLenFeature((), tf.float32, default_value=-1),
}


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_as_parse_single_example(tmp_path, compression):
    path = write(tmp_path / "a.tfrecord", (example(i) for i in range(EXAMPLES)), compression)
    theirs = tf.data.TFRecordDataset(str(path), compression).map(lambda r: tf.io.parse_single_example(r, PARSED))
    ours = rows(path, WANTED)
    assert len(ours) == EXAMPLES
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine["x"], other["x"])
        assert mine["x"].shape == (3, 4) and mine["x"].dtype == np.float32
        assert mine["y"] == other["y"].numpy() and mine["sometimes"] == other["sometimes"].numpy()
        np.testing.assert_array_equal(mine["ids"], tf.sparse.to_dense(other["ids"]))
        assert mine["name"].encode() == other["name"].numpy()
        raw = tf.reshape(tf.io.decode_raw(other["raw"], tf.uint16), (2, 3))
        np.testing.assert_array_equal(mine["raw"], raw)


def test_found_by_looking(tmp_path):
    path = write(tmp_path / "a.tfrecord", (example(i) for i in range(EXAMPLES)))
    for i, row in enumerate(rows(path, 'x, label=y, ids, name, raw, sometimes:float32(*) ? ""')):
        feature = example(i).features.feature
        assert row["x"].tolist() == list(feature["x"].float_list.value) and row["label"] == i - 3
        assert row["ids"].tolist() == list(feature["ids"].int64_list.value)
        assert row["name"] == f"täg {i}" and row["raw"] == feature["raw"].bytes_list.value[0]
        assert row["sometimes"].tolist() == list(feature["sometimes"].float_list.value)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_missing_is_bad(tmp_path):
    """In every kind of field, unless there is a default."""
    features = [{"n": ints(i), "t": strings(b"t"), "ids": ints(1), "x": floats(1)} for i in range(100)]
    for name in ("t", "ids", "x"):
        del features[70][name]
    path = write(tmp_path / "a.tfrecord", [Example(features=Features(feature=f)) for f in features])
    for name, default in (("t", '""'), ("x", "0"), ("ids:int64(*)", '""')):
        short = name.split(":")[0]
        loader = stoker.Loader(path, fields=f"n, {name}", output="numpy", on_error="skip", max_bad=1)
        assert sum(len(batch.n) for batch in loader) == 99
        [bad] = loader.bad_samples()
        assert bad.sample == 70 and f"has no {short}; give it a default ({short} ? {default})" in bad.reason
        assert len(rows(path, f"n, {name} ? {default}")) == 100


@pytest.mark.filterwarnings("ignore:.*left out")
def test_empty_list_is_missing(tmp_path):
    """Where the others have one value; it does not make lists of them."""
    features = [{"t": strings(b"hi"), "x": floats(2), "y": ints(3)} for _ in range(40)]
    features[7] = {"t": strings(), "x": floats(), "y": ints()}
    path = write(tmp_path / "a.tfrecord", [Example(features=Features(feature=f)) for f in features])
    for name, default, usual, given in (("t:text", '""', "hi", ""), ("x", "0", 2, 0), ("y", "-1", 3, -1)):
        short = name.split(":")[0]
        loader = stoker.Loader(path, fields=name, output="numpy", on_error="skip", max_bad=1)
        assert sum(len(batch[0]) for batch in loader) == 39
        assert [bad.sample for bad in loader.bad_samples()] == [7]
        got = [row[short] for row in rows(path, f"{name} ? {default}", shuffle=False)]
        assert got == [given if i == 7 else usual for i in range(40)]


def test_kinds_of_all_examples(tmp_path):
    """Of 10,000 examples one has more values than all the others."""
    features = [{"ids": ints(*range(3 if i == 7777 else 1)), "t": strings(b"a dog")} for i in range(10000)]
    path = write(tmp_path / "a.tfrecord", [Example(features=Features(feature=f)) for f in features])
    everything = stoker.Loader(path, output="numpy").load_all()
    assert [len(ids) for ids in everything.ids.to_list()] == [3 if i == 7777 else 1 for i in range(10000)]


def test_padded(tmp_path):
    path = write(tmp_path / "a.tfrecord", (example(i) for i in range(EXAMPLES)))
    batch = next(iter(stoker.Loader(path, fields="ids:int64(*) pad=-7", batch_size=EXAMPLES, output="numpy")))
    theirs = tf.data.TFRecordDataset(str(path)).map(lambda r: tf.io.parse_single_example(r, PARSED)["ids"])
    dense = [tf.sparse.to_dense(ids).numpy() for ids in theirs]
    for mine, length, other in zip(batch.ids.values, batch.ids.lengths, dense, strict=True):
        assert length == len(other) and mine[:length].tolist() == other.tolist() and set(mine[length:]) <= {-7}


def test_sequences(tmp_path):
    def sequence(i):
        lists = {
            "tokens": tf.train.FeatureList(feature=[ints(k * i) for k in range(i)]),
            "pairs": tf.train.FeatureList(feature=[floats(k, -k) for k in range(i)]),
            "words": tf.train.FeatureList(feature=[strings(b"w%d" % k) for k in range(i)]),
        }
        context = Features(feature={"label": ints(i)})
        return tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists))

    path = write(tmp_path / "s.tfrecord", (sequence(i) for i in range(1, 6)))
    steps = {
        "tokens": tf.io.FixedLenSequenceFeature((), tf.int64),
        "pairs": tf.io.FixedLenSequenceFeature((2,), tf.float32),
        "words": tf.io.FixedLenSequenceFeature((), tf.string),
    }
    context = {"label": tf.io.FixedLenFeature((), tf.int64)}
    theirs = tf.data.TFRecordDataset(str(path)).map(lambda r: tf.io.parse_single_sequence_example(r, context, steps))
    for mine, (c, s) in zip(rows(path), theirs, strict=True):
        assert mine["label"] == c["label"].numpy()
        np.testing.assert_array_equal(mine["tokens"], s["tokens"])
        np.testing.assert_array_equal(mine["pairs"], s["pairs"])
        assert [w.encode() for w in mine["words"]] == s["words"].numpy().tolist()


def test_other_records(tmp_path):
    path = write(tmp_path / "r.tfrecord", [b"\xff first", b"", b"\xff\x00 third"])
    assert [row["data"] for row in rows(path)] == [b"\xff first", b"", b"\xff\x00 third"]


def test_features_that_few_examples_have(tmp_path):
    """What no example has that is looked at is read all the same, as by TensorFlow; without a default it is refused."""
    features = [{"x": ints(i), **({"rare": ints(7), "ids": ints(1, 2)} if i == 501 else {})} for i in range(1000)]
    path = write(tmp_path / "a.tfrecord", [Example(features=Features(feature=f)) for f in features])
    spec = {
        "x": tf.io.FixedLenFeature((), tf.int64),
        "rare": tf.io.FixedLenFeature((), tf.int64, default_value=-1),
        "never": tf.io.FixedLenFeature((2,), tf.float32, default_value=[0.5, 0.5]),
        "ids": tf.io.VarLenFeature(tf.int64),
    }
    got = stoker.Loader(path, features=spec, output="numpy").load_all()
    want = tf.io.parse_example(list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()), spec)
    for name in ("x", "rare", "never"):
        np.testing.assert_array_equal(getattr(got, name), want[name].numpy())
    assert [len(ids) for ids in got.ids.to_list()] == [2 if i == 501 else 0 for i in range(1000)]
    with pytest.raises(stoker.UsageError, match="there is no column rear"):
        stoker.Loader(path, fields="x, rear:int")


def test_labels_of_records(tmp_path):
    """The samples alone tell them: they are read, so that a source can be divided and weighted by them."""
    records = [Example(features=Features(feature={"label": ints(i % 3), "x": floats(i)})) for i in range(30)]
    source = stoker.Source(write(tmp_path / "a.tfrecord", records), classes=["a", "b", "c"])
    np.testing.assert_array_equal(source.labels, np.arange(30) % 3)
    assert len(source.select(["b"])) == 10
    assert [np.bincount(part.labels).tolist() for part in source.split(0.5, by="class")] == [[5, 5, 5]] * 2
    both = source + stoker.Source(write(tmp_path / "b.tfrecord", records[:2]), classes=["a", "b", "c"])
    np.testing.assert_array_equal(both.labels[-3:], [2, 0, 1])


@pytest.mark.filterwarnings("ignore:.*left out")
def test_damage_costs_one_sample(tmp_path):
    path = write(tmp_path / "d.tfrecord", (example(i) for i in range(EXAMPLES)))
    whole = path.read_bytes()
    starts = [0]
    while starts[-1] < len(whole):
        starts.append(starts[-1] + 16 + int.from_bytes(whole[starts[-1] : starts[-1] + 8], "little"))
    for place, why in ((starts[4] + 1, "length"), (starts[4] + 9, "length"), (starts[4] + 40, "data")):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        loader = stoker.Loader(path, fields="y", batch_size=EXAMPLES, output="numpy", on_error="skip", max_bad=1)
        assert np.concatenate([b.y for b in loader]).tolist() == [i - 3 for i in range(EXAMPLES) if i != 4]
        [bad] = loader.bad_samples()
        assert bad.sample == 4 and why in bad.reason
        with pytest.raises(stoker.DataError, match=why):
            list(stoker.Loader(path, fields="y"))
    path.write_bytes(whole[: starts[6] + 20])
    loader = stoker.Loader(path, fields="y", batch_size=EXAMPLES, output="numpy", on_error="skip", max_bad=1)
    assert np.concatenate([b.y for b in loader]).tolist() == [i - 3 for i in range(6)]


# ---------------------------------------------------------------- those of others

CORPUS = Path(os.environ.get("STOKER_TEST_DATA", "/nowhere")) / "corpus"
FOLDERS = ("tfrecord-tfds", "grain-testdata", "torchdata-fakedata")
FILES = [p for d in FOLDERS for p in sorted((CORPUS / d).rglob("*tfrec*")) if p.is_file()]
FIELDS_MOST = 40  # of a file at a time


def values(feature):
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


def sequence_of(record):
    """A SequenceExample as dicts of values, those of the lists step by step."""
    parsed = tf.train.SequenceExample.FromString(record)
    lists = parsed.feature_lists.feature_list
    context = {name: values(f) for name, f in parsed.context.feature.items()}
    return context | {name: [values(f) for f in lists[name].feature] for name in lists}


def columns_of(examples):
    """Those that have a form: lists of byte strings that are no text have none."""
    for name in sorted({name for e in examples for name in e.features.feature}):
        seen = [values(e.features.feature[name]) for e in examples if name in e.features.feature]
        texts = [v for row in seen for v in row if isinstance(v, bytes)]
        several = any(len(row) != 1 for row in seen)
        if not texts or not several or all(t.decode(errors="ignore").encode() == t for t in texts):
            yield name, ":bytes" if texts and not several and texts[0].startswith(IMAGES) else ""


def plain(value):
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, list):
        return [v.encode() for v in value]
    return np.atleast_1d(value).tolist()


def leaves(value):
    """All values of nested lists, texts as their bytes."""
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, (list, np.ndarray)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


@pytest.mark.skipif(not FILES, reason="STOKER_TEST_DATA has no TFRecord files")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_of_others(path):
    packed = "GZIP" if path.read_bytes()[:2] == b"\x1f\x8b" else ""
    records = [r.numpy() for r in tf.data.TFRecordDataset(str(path), packed)]
    source = f"tfrecord:{path}"
    if path.name.startswith("morris"):
        assert [row["data"] for row in rows(source)] == records
        return
    if path.name.startswith("sequence"):
        for mine, wanted in zip(rows(source), map(sequence_of, records), strict=True):
            assert mine.keys() == wanted.keys()
            assert all(leaves(mine[name]) == leaves(wanted[name]) for name in wanted)
        return
    examples = [Example.FromString(r) for r in records]
    columns = list(columns_of(examples))
    for at in range(0, len(columns), FIELDS_MOST):
        some = columns[at : at + FIELDS_MOST]
        ours = rows(source, ", ".join(f'f{i} = "{name}"{kind}' for i, (name, kind) in enumerate(some)))
        assert len(ours) == len(examples)
        for mine, e in zip(ours, examples, strict=True):
            for i, (name, _) in enumerate(some):
                value, wanted = mine[f"f{i}"], values(e.features.feature[name])
                assert plain(value) == wanted if wanted else len(value) == 0, name
