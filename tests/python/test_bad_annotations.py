# SPDX-License-Identifier: Apache-2.0
"""Annotations that are wrong: an error, or a bad sample that names the file, the annotation and the reason."""

import json

import coco_tree
import numpy as np
import pytest
import stoker

SIZE = (40, 30)  # width and height
BOX = [4.0, 5.0, 20.0, 10.0]


def write(folder, **changes):
    """An image with two annotations, the second of which has changes; None: without that key."""
    coco_tree.photo(folder / "val" / "a.jpg", *SIZE, 0)
    coco_tree.photo(folder / "val" / "b.jpg", *SIZE, 1)
    images = [{"id": i, "file_name": f"{n}.jpg", "width": SIZE[0], "height": SIZE[1]} for i, n in enumerate("ab")]
    polygon = [[4.0, 5.0, 24.0, 5.0, 24.0, 15.0]]
    notes = [
        {"id": 70 + i, "image_id": i // 2, "category_id": 1, "bbox": BOX, "segmentation": polygon} for i in range(4)
    ]
    notes[1] = {k: v for k, v in {**notes[1], **changes}.items() if v is not None}
    path = folder / "x_val.json"
    path.write_text(json.dumps({"images": images, "annotations": notes, "categories": [{"id": 1, "name": "cat"}]}))
    return path


def runs(counts, size=SIZE[::-1]):
    return {"segmentation": {"size": list(size), "counts": counts}}


SAMPLES = {
    "a box that is not finite": ({"bbox": [1, float("nan"), 2, 3]}, "not a finite number"),
    "a box of infinite size": ({"bbox": [1, 1, float("inf"), 3]}, "not a finite number"),
    "a box far outside": ({"bbox": [1e12, 0, 2, 3]}, "far outside the image"),
    "a negative box": ({"bbox": [9, 9, -2, 3]}, "negative width"),
    "three numbers": ({"bbox": [9, 9, 2]}, "fewer than 4 numbers"),
    "no box": ({"bbox": None}, "has no bbox"),
    "words": ({"bbox": ["a", 9, 2, 3]}, "not a finite number"),
    "an empty segmentation": ({"segmentation": []}, "segmentation is empty"),
    "no segmentation": ({"segmentation": None}, "has no segmentation"),
    "a polygon that is not finite": ({"segmentation": [[1, 2, 3, 4, 5, float("nan")]]}, "not a finite number"),
    "half a point": ({"segmentation": [[1, 2, 3, 4, 5, 6, 7]]}, "odd number of coordinates"),
    "runs that are too long": (runs([5, 2, 40 * 30]), "longer than the image"),
    "runs that are too short": (runs([5, 2]), "shorter than the image"),
    "runs that overflow": (runs([2**62, 2**62, 2**62]), "longer than the image|not a count"),
    "negative runs": (runs([5, -2, 40 * 30 - 3]), "not a count"),
    "compressed runs that end early": (runs("52a"), "damaged"),
    "runs of another size": (runs([100 * 100], (100, 100)), "size of its segmentation differs"),
}


@pytest.mark.parametrize("what", SAMPLES)
def test_a_bad_annotation_is_a_bad_sample(tmp_path, what):
    changes, reason = SAMPLES[what]
    path = write(tmp_path, **changes)
    k = {"fields": "image, boxes, labels, masks", "batch_size": 2}
    with pytest.raises(stoker.DataError, match=f"annotation 71 of .*x_val.json: .*({reason})") as error:
        next(iter(stoker.Loader(path, "Resize((8, 8))", **k)))
    assert error.value.sample == 0 and error.value.path.endswith("a.jpg")
    loader = stoker.Loader(path, "Resize((8, 8))", **k, on_error="skip", max_bad=1.0)
    assert [len(b.image) for b in loader] == [1] and loader.bad_samples()[0].sample == 0


FILES = {
    "a dangling image": ({"image_id": 9}, "annotation 71 refers to image 9, which the file does not list"),
    "a dangling category": ({"category_id": 5}, "annotation 71 has the category 5, which is not among"),
    "the id of another": ({"id": 70}, "70"),
    "no image": ({"image_id": None}, "image_id"),
}


@pytest.mark.parametrize("what", FILES)
def test_ids_are_checked_when_the_file_is_opened(tmp_path, what):
    changes, reason = FILES[what]
    path = write(tmp_path, **changes)
    with pytest.raises(stoker.Error, match=reason) as error:
        stoker.Loader(path, "Resize((8, 8))")
    assert "x_val.json" in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"images": []}', '{"images": [{}], "annotations": []}', "\0"])
def test_files_that_are_empty_or_damaged(tmp_path, text):
    path = tmp_path / "x_val.json"
    path.write_text(text)
    with pytest.raises(stoker.Error) as error:
        stoker.Loader(f"coco:{path}", "Resize((8, 8))")
    assert "x_val.json" in str(error.value)


def test_an_image_without_annotations_has_no_boxes(tmp_path):
    path = write(tmp_path)
    document = json.loads(path.read_text())
    document["annotations"] = document["annotations"][:2]
    path.write_text(json.dumps(document))
    batch = next(iter(stoker.Loader(path, "Resize((8, 8))", fields="boxes, masks, labels, image", batch_size=2)))
    assert [len(b) for b in batch.boxes] == [2, 0] and batch.masks[1].shape == (0, 8, 8)


def test_an_image_of_another_size_than_its_masks(tmp_path):
    path = write(tmp_path)
    coco_tree.photo(tmp_path / "val" / "a.jpg", 60, 50, 0)
    with pytest.raises(stoker.DataError, match="masks has 40 x 30 pixels, but the image has 60 x 50") as error:
        stoker.Loader(path, "Resize((8, 8))", fields="image, masks").get([0])
    assert error.value.path.endswith("a.jpg")


def test_boxes_that_leave_the_image_are_clamped_by_crops(tmp_path):
    path = write(tmp_path, bbox=[-10, -10, 25, 100])
    ops = "CenterCrop((30, 40)) | ClampBoundingBoxes | ConvertBoundingBoxFormat(XYXY)"
    batch = stoker.Loader(path, ops, fields="image, boxes", output="numpy").get([0])
    assert batch.boxes[0].tolist() == [[4, 5, 24, 15], [0, 0, 15, 30]]


def test_a_hundred_thousand_boxes_in_one_image(tmp_path):
    path = write(tmp_path)
    document = json.loads(path.read_text())
    boxes = np.random.default_rng(0).uniform(0, 15, (100_000, 4)).round(2)
    note = document["annotations"][0]
    document["annotations"] = [{**note, "id": i, "bbox": b} for i, b in enumerate(boxes.tolist())]
    path.write_text(json.dumps(document))
    ops = "Resize((60, 80)) | RandomHorizontalFlip(1) | SanitizeBoundingBoxes | ConvertBoundingBoxFormat(XYXY)"
    batch = stoker.Loader(path, ops, fields="image, boxes, labels", output="numpy", batch_size=2).get([0, 1])
    x, y, w, h = 2 * boxes.T
    theirs = np.stack([80 - x - w, y, 80 - x, y + h], 1)
    keep = (w >= 1) & (h >= 1) & (w * h >= 1)
    assert abs(len(batch.boxes[0]) - keep.sum()) <= 5 and len(batch.labels[0]) == len(batch.boxes[0])
    plain = stoker.Loader(path, ops.replace("SanitizeBoundingBoxes | ", ""), fields="image, boxes", output="numpy")
    np.testing.assert_allclose(plain.get([0]).boxes[0], theirs, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0.5 0.5 nan 0.1\n", "line 1 of .*0.txt: .*not a finite number"),
        ("0 0.5 0.5 0.1 0.1\n0 0.5 7 0.1 0.1\n", "line 2 of .*0.txt: .*outside the image"),
        ("0 5 5 20 20\n", "line 1 of .*0.txt: .*shares of the image"),
        ("5 0.5 0.5 0.1 0.1\n", "its class is 5"),
        ("0 0.5\n", "line 1 of .*0.txt"),
    ],
)
def test_labels_of_yolo(tmp_path, text, words):
    coco_tree.yolo(tmp_path, n=2)
    (tmp_path / "labels" / "train" / "0.txt").write_text(text)
    loader = stoker.Loader(f"yolo:{tmp_path}/data.yaml?set=train", "Resize((8, 8))")
    with pytest.raises(stoker.DataError, match=words) as error:
        loader.get([0])
    assert error.value.path.endswith("0.jpg")


def test_boxes_outside_the_image_in_a_column(tmp_path):
    rows = [{"image": "a.jpg", "boxes": [[1, 2, 30, 9], [-9, -9, 3, 4]]}, {"image": "a.jpg", "boxes": [[50, 2, 60, 9]]}]
    coco_tree.photo(tmp_path / "a.jpg", *SIZE, 0)
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    loader = stoker.Loader(tmp_path / "x.jsonl", "Resize((30, 40))", fields="image, boxes:boxes", output="numpy")
    assert loader.get([0]).boxes[0].tolist() == rows[0]["boxes"]
    with pytest.raises(stoker.DataError, match=r"box 0 goes from \(50, 2\) to \(60, 9\), outside the image of 40 x 30"):
        loader.get([1])


@pytest.mark.parametrize("damage", [b"", b"hello", "cut"])
def test_a_damaged_mask_is_not_taken_for_a_damaged_image(tmp_path, damage):
    coco_tree.photo(tmp_path / "images" / "a.jpg", *SIZE, 0)
    coco_tree.mask(tmp_path / "masks" / "a.png", *SIZE, 0)
    path = tmp_path / "masks" / "a.png"
    path.write_bytes(path.read_bytes()[:-200] if damage == "cut" else damage)
    with pytest.raises(stoker.DataError, match=r"a.jpg: mask: ") as error:
        stoker.Loader(f"pairs:{tmp_path}", "Resize((8, 8))").get([0])
    assert error.value.stage == "decode"


@pytest.mark.parametrize(
    "ops",
    ["RandomRotation(-5)", "RandomResizedCrop(0)", "ColorJitter(-1)", "GaussianBlur(4)", "RandomErasing(1.5)",
     "RandomPosterize(9)", "JPEG(0)", "RandAugment(2, 99)", "RandomIoUCrop(min_scale=2)", "ElasticTransform(sigma=-1)",
     "SanitizeBoundingBoxes(0)", "RandomZoomOut(side_range=(0.5, 2))", "RandomAffine(10, (2, 0))", "MixUp(-1)"],
)  # fmt: skip
def test_arguments_out_of_range(tmp_path, ops):
    path = write(tmp_path)
    with pytest.raises(stoker.UsageError, match=ops.partition("(")[0]):
        stoker.Loader(path, f"Resize((8, 8)) | {ops}" if ops != "RandomResizedCrop(0)" else ops, fields="image, boxes")
