# SPDX-License-Identifier: Apache-2.0
"""show() draws masks, boxes and keypoints; torchvision's transforms of boxes become ops."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from follow import FIELDS, write_tar  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

LEFT, TOP = 36, 36 + 66  # where the first image lies: see sheet/grid.h


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    """Grey images with a mask in the left half, a box and a keypoint."""
    mask = np.zeros((112, 112), np.uint8)
    mask[:, :56] = 1
    row = {
        "image": np.full((112, 112, 3), 128, np.uint8),
        "mask": mask,
        "boxes": np.array([[20, 30, 100, 90]], np.float32),
        "labels": np.array([4]),
        "points": np.array([[[80, 60, 2], [10, 10, 0], [90, 70, 1]]], np.float32),
    }
    return write_tar(tmp_path_factory.mktemp("marks") / "marks.tar", [row] * 2)


def page(tar, fields, tmp_path, ops=""):
    loader = stoker.Loader(tar, ops or None, fields=fields, dtype="uint8", output="numpy")
    folder = tmp_path / "look"
    folder.mkdir(exist_ok=True)
    loader.show(folder / "sheet.png", n=2)
    return stoker.Source(folder)[0].astype(int)


def test_masks_boxes_and_points_are_drawn(tar, tmp_path):
    plain = page(tar, "image=png", tmp_path)
    at = {"mask": (40, 40), "boxes": (60 * 2, 20 * 2), "points": (60 * 2, 80 * 2)}  # rows and columns, twice as large
    for name, (y, x) in at.items():
        text = next(part for part in FIELDS.split(", ") if part.startswith(name))
        marked = page(tar, f"image=png, {text}", tmp_path)
        cell = (slice(TOP, TOP + 224), slice(LEFT, LEFT + 224))
        changed = np.abs(marked[cell] - plain[cell]).sum(2) > 20
        assert changed[y, x] and not changed[220, 220], name
    tall = page(tar, "image=png, boxes=boxes.json:boxes, labels=labels.json:each:int64", tmp_path)
    assert tall.shape[0] > plain.shape[0]  # with a legend


def draws(path, index, fields, folder):
    """The sheet of a sample under two draws, while the size of images is open."""
    folder.mkdir(exist_ok=True)
    command = [Path(sys.executable).with_name("stoker"), "show", path, "--index", str(index), "--draws", "2"]
    command += ["--ops", "RandomHorizontalFlip(1)", "--fields", fields, "-o", folder / "sheet.png"]
    subprocess.run(command, check=True)
    return stoker.Source(folder)[0].astype(int)


def test_draws_show_masks_of_boxes_and_a_legend(tmp_path):
    pytest.importorskip("pycocotools")
    import coco_tree

    path = coco_tree.coco(tmp_path / "coco")
    one = max(range(12), key=lambda i: len(stoker.Loader(path, "CenterCrop(9)", fields="image, boxes").get(i).boxes[0]))
    boxes = draws(path, one, "image, boxes, labels", tmp_path / "a")
    masks = draws(path, one, "image, boxes, labels, masks", tmp_path / "b")
    assert boxes.shape == masks.shape
    changed = np.abs(boxes - masks).sum(2) > 20
    left, right = changed[:, : changed.shape[1] // 3], changed[:, changed.shape[1] // 3 :]
    assert left.mean() > 0.01 and right.mean() > 0.01  # the image as stored, and those after the op
    plain = draws(path, one, "image, boxes", tmp_path / "c")  # without labels, there is no legend
    at = slice(min(len(plain), len(boxes)) - 80, min(len(plain), len(boxes)))
    assert (np.abs(boxes[at, :200] - plain[at, :200]).sum(2) > 20).any()


def test_boxes_of_any_format(tar, tmp_path):
    fields = "image=png, boxes=boxes.json:boxes"
    first = page(tar, fields, tmp_path)
    for word in ("XYWH", "CXCYWH"):
        assert np.array_equal(first[TOP:], page(tar, fields, tmp_path, f"ConvertBoundingBoxFormat({word})")[TOP:])


def test_transforms_of_boxes_become_ops():
    steps = [
        v2.RandomPhotometricDistort(),
        v2.RandomZoomOut(fill={Image.Image: (1, 2, 3), tv_tensors.Image: 9, "others": 0}),
        v2.RandomIoUCrop(trials=9),
        v2.RandomHorizontalFlip(),
        v2.Resize((32, 32)),
        v2.PILToTensor(),
        v2.ToDtype(torch.float32, scale=True),
        v2.ConvertBoundingBoxFormat("CXCYWH"),
        v2.ClampBoundingBoxes(),
        v2.SanitizeBoundingBoxes(min_size=3),
        v2.ToPureTensor(),
    ]
    assert [str(op) for op in stoker.convert_transform(v2.Compose(steps))] == [
        "RandomPhotometricDistort",
        "RandomZoomOut(fill=(1, 2, 3))",
        "RandomIoUCrop(trials=9)",
        "RandomHorizontalFlip",
        "Resize((32, 32))",
        "ConvertBoundingBoxFormat(CXCYWH)",
        "ClampBoundingBoxes",
        "SanitizeBoundingBoxes(min_size=3)",
        "ToDtype(float32, scale=True)",
    ]


def test_a_recipe_for_detection(tar):
    steps = [v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.Resize((32, 32)), v2.SanitizeBoundingBoxes()]
    loader = stoker.Loader(
        tar,
        v2.Compose([*steps, v2.PILToTensor()]),
        fields="image=png, boxes=boxes.json:boxes, labels=labels.json:each:int64",
        batch_size=2,
        output="torch",
    )
    assert "python" not in loader.explain()
    batch = next(iter(loader))
    assert batch.image.shape == (2, 3, 32, 32) and all(
        0 <= float(v) <= 32 for box in batch.boxes for v in box.flatten()
    )


def test_a_recipe_for_segmentation(tar):
    steps = [v2.RandomResize(40, 80), v2.RandomHorizontalFlip(), v2.RandomCrop(32, pad_if_needed=True)]
    loader = stoker.Loader(
        tar,
        v2.Compose([*steps, v2.PILToTensor()]),
        fields="image=png, mask=mask.png:mask",
        batch_size=2,
        output="torch",
    )
    assert "python" not in loader.explain()
    batch = next(iter(loader))
    assert batch.mask.shape == (2, 32, 32) and set(batch.mask.unique().tolist()) <= {0, 1}
