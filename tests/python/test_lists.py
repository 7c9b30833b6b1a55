# SPDX-License-Identifier: Apache-2.0
"""Lists with more than a path and a label, against what csv and json read in them."""

import csv
import json

import numpy as np
import pytest
import stoker
from conftest import make_photos


@pytest.fixture
def folder(tmp_path):
    return make_photos(tmp_path, 4)


def lines(folder):
    return [
        {
            "file_name": str(path.relative_to(folder)),
            "label": path.parent.name,
            "caption": f'{path.stem}: "ä", and\nmore',
            "score": i / 4,
            "count": i - 3,
            "meta": {"author": f"me {i}", "box": [i, i + 1, 2.5]},
            "ids": list(range(i)),
        }
        for i, path in enumerate(sorted(folder.rglob("*.png")))
    ]


def test_csv(folder):
    rows = [{k: v for k, v in row.items() if k not in ("meta", "ids")} for row in lines(folder)]
    with open(folder / "l.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    fields = ("image", "label", "caption", "score", "count")
    loader = stoker.Loader(folder / "l.csv", "CenterCrop(8)", batch_size=3, fields=fields, output="numpy")
    listing = stoker.ls(folder / "l.csv")
    assert listing.fields == "image:image, label:int" and listing.columns == "caption, score, count"
    assert "columns    available with fields=: caption, score, count" in repr(listing)
    batches = list(loader)
    plain = list(stoker.Loader(folder / "l.csv", "CenterCrop(8)", batch_size=3, output="numpy"))
    assert [len(batch) for batch in plain] == [2, 2, 2]  # as ever, unless they are asked for
    for one, other in zip(batches, plain, strict=True):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_array_equal(one.label, other.label)
    assert sum((batch.caption for batch in batches), []) == [row["caption"] for row in rows]
    assert np.concatenate([batch.score for batch in batches]).tolist() == [row["score"] for row in rows]
    assert np.concatenate([batch.count for batch in batches]).tolist() == [row["count"] for row in rows]


def test_nested_json(folder):
    rows = lines(folder)
    (folder / "l.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    fields = {"by": "meta.author", "box": "meta.box", "ids": "ids", "word": "label:text"}
    loader = stoker.Loader(folder / "l.jsonl", batch_size=len(rows), fields=fields, output="numpy")
    [batch] = list(loader)
    assert batch.by == [row["meta"]["author"] for row in rows]
    assert batch.box.tolist() == [row["meta"]["box"] for row in rows]
    assert batch.ids.to_list() == [row["ids"] for row in rows]
    assert batch.word == [row["label"] for row in rows]


def test_values_alone(tmp_path):
    (tmp_path / "v.csv").write_text("age,height,name\n3,0.9,Anna\n41,1.8,Bert\n7,1.25,Zoë\n")
    loader = stoker.Loader(tmp_path / "v.csv", batch_size=3, shuffle=True, output="numpy")
    [batch] = list(loader)
    assert sorted(zip(batch.age.tolist(), batch.height.round(2).tolist(), batch.name, strict=True)) == sorted(
        [(3, np.float32(0.9).round(2), "Anna"), (41, np.float32(1.8).round(2), "Bert"), (7, 1.25, "Zoë")]
    )
    with pytest.raises(stoker.UsageError, match="did you mean height"):
        stoker.Loader(tmp_path / "v.csv", fields=("heigth",))


def test_bad_line(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": }\n{"n": "x"}\n')
    loader = stoker.Loader(tmp_path / "v.jsonl", fields="n:int", output="numpy", on_error="skip", max_bad=1)
    with pytest.warns(RuntimeWarning, match="2 bad samples"):
        assert [int(batch.n[0]) for batch in loader if len(batch.n)] == [1, 2]
    assert [bad.sample for bad in loader.bad_samples()] == [2, 3]


def test_words_as_classes(tmp_path):
    (tmp_path / "x.csv").write_text("x,breed\n1,pug\n2,corgi\n3,pug\n")
    loader = stoker.Loader(tmp_path / "x.csv", fields="x, breed:class", batch_size=3, output="numpy")
    assert loader.classes == ["corgi", "pug"]
    [batch] = loader
    assert batch.breed.tolist() == [1, 0, 1] and batch.breed.dtype == np.int64
    loader = stoker.Loader(
        tmp_path / "x.csv", fields={"y": "breed:class"}, classes=["pug", "corgi"], batch_size=3, output="numpy"
    )
    assert next(iter(loader)).y.tolist() == [0, 1, 0]
    assert next(iter(stoker.Loader(tmp_path / "x.csv", fields="breed", output="numpy"))).breed == ["pug"]
