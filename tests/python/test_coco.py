# SPDX-License-Identifier: Apache-2.0
"""Annotations in COCO's format, beside pycocotools: the same boxes, and the same masks bit for bit."""

import json

import coco_tree
import numpy as np
import pytest
import stoker

coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")

NAMES = ["person", "car", "dog"]  # in the order of their ids


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return coco_tree.coco(tmp_path_factory.mktemp("coco"), n=60, seed=5, most=9)


def rows(source, fields):
    loader = stoker.Loader(source, fields=fields, batch_size=7, output="numpy", as_dict=True)
    for batch in loader:
        yield from ({k: v[i] for k, v in batch.items()} for i in range(len(batch["image_id"])))


def test_every_annotation_is_as_pycocotools_has_it(path):
    theirs = coco.COCO(str(path))
    ours = list(rows(path, "image_id, boxes, labels, category_id, area, iscrowd, id, masks"))
    assert [int(row["image_id"]) for row in ours] == sorted(theirs.imgs)
    seen = 0
    for row in ours:
        number = int(row["image_id"])
        notes = theirs.loadAnns(theirs.getAnnIds(imgIds=[number]))
        assert row["id"].tolist() == [n["id"] for n in notes]
        assert row["category_id"].tolist() == [n["category_id"] for n in notes]
        assert [NAMES[i] for i in row["labels"]] == [theirs.cats[n["category_id"]]["name"] for n in notes]
        assert np.array_equal(row["boxes"], np.array([n["bbox"] for n in notes], np.float32).reshape(-1, 4))
        assert np.array_equal(row["area"], np.array([n["area"] for n in notes], np.float32))
        assert row["iscrowd"].tolist() == [n["iscrowd"] for n in notes]
        assert row["masks"].shape == (len(notes), theirs.imgs[number]["height"], theirs.imgs[number]["width"])
        for mask, note in zip(row["masks"], notes, strict=True):
            assert np.array_equal(mask, theirs.annToMask(note)), note["id"]
            seen += 1
    assert seen == len(theirs.anns) > 100


def test_hard_polygons(tmp_path):
    """Degenerate, self-crossing, tiny and far-reaching polygons, in small and odd images."""
    rng = np.random.default_rng(0)
    images, notes = [], []
    for w, h in ((1, 1), (1, 40), (37, 1), (5, 4), (64, 48)):
        coco_tree.photo(tmp_path / "val" / f"{w}x{h}.png", w, h, 0)
        images.append({"id": len(images), "file_name": f"{w}x{h}.png", "width": w, "height": h})
        for _ in range(60):
            n, spread = int(rng.integers(3, 12)), float(rng.choice([0.3, 1, 3]))
            points = (rng.uniform(0.5 - spread, 0.5 + spread, (n, 2)) * (w, h)).astype(float)
            if rng.random() < 0.3:
                points = points.round()
            if rng.random() < 0.3:
                points[rng.integers(0, n)] = points[0]
            shape = [points.reshape(-1).round(3).tolist()]
            note = {"id": len(notes), "image_id": images[-1]["id"], "category_id": 1, "bbox": [0, 0, 1, 1]}
            notes.append({**note, "segmentation": shape})
    path = tmp_path / "x_val.json"
    path.write_text(json.dumps({"images": images, "annotations": notes, "categories": [{"id": 1, "name": "a"}]}))
    theirs = coco.COCO(str(path))
    for row in rows(path, "image_id, masks"):
        for mask, note in zip(row["masks"], theirs.imgToAnns[int(row["image_id"])], strict=True):
            assert np.array_equal(mask, theirs.annToMask(note)), note


def test_bad_annotations_are_bad_samples(tmp_path):
    path = coco_tree.coco(tmp_path, n=4, most=3)
    document = json.loads(path.read_text())
    bad = document["annotations"][0]
    bad["segmentation"] = {"size": [1, 1], "counts": [1]}
    path.write_text(json.dumps(document))
    loader = stoker.Loader(path, "Resize((32, 32))", fields="image, masks", batch_size=4, on_error="skip", max_bad=1.0)
    assert sum(len(batch.image) for batch in loader) == 3
    (sample,) = loader.bad_samples()
    assert f"annotation {bad['id']} of " in sample.reason
    assert "size of its segmentation differs" in sample.reason


def test_captions_and_keypoints(tmp_path):
    coco_tree.photo(tmp_path / "val" / "a.jpg", 40, 30, 0)
    image = {"id": 7, "file_name": "a.jpg", "width": 40, "height": 30}
    notes = [{"id": i, "image_id": 7, "caption": text} for i, text in enumerate(["a cat", 'a "dog"\n'])]
    path = tmp_path / "captions_val.json"
    path.write_text(json.dumps({"images": [image], "annotations": notes}))
    (batch,) = stoker.Loader(path, output="numpy")
    assert batch.captions == [["a cat", 'a "dog"\n']]
    points = list(range(51))
    note = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [0, 0, 9, 9], "keypoints": points}
    path.write_text(json.dumps({"images": [image], "annotations": [note], "categories": [{"id": 1, "name": "person"}]}))
    (batch,) = stoker.Loader(path, "RandomHorizontalFlip(1)", output="numpy")
    assert batch.keypoints[0].shape == (1, 17, 3)
    assert batch.keypoints[0][0, 1].tolist() == [40 - 1 - 3, 4, 5]
