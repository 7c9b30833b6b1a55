# SPDX-License-Identifier: Apache-2.0
"""Samples with masks, boxes and keypoints, and torchvision's v2 functions on them with the numbers that were drawn."""

import io
import json
import tarfile

import numpy as np
import stoker
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

SIZES = ((37, 53), (64, 40), (1, 1), (1, 9), (9, 1), (80, 81))
FIELDS = (
    "image=png, mask=mask.png:mask, boxes=boxes.json:boxes, labels=labels.json:each:int64, "
    "points=points.json:keypoints(3,3)"
)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def boxes_in(rng, n, h, w):
    x, y = np.sort(rng.uniform(0, w, (n, 2)), 1), np.sort(rng.uniform(0, h, (n, 2)), 1)
    return np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1).astype(np.float32)


def samples(sizes=SIZES, seed=0):
    rng = np.random.default_rng(seed)
    for i, (h, w) in enumerate(sizes):
        points = np.concatenate([rng.uniform(0, (w, h), (i, 3, 2)), rng.integers(0, 3, (i, 3, 1))], 2)
        yield {
            "image": rng.integers(0, 256, (h, w, 3), dtype=np.uint8),
            "mask": rng.integers(0, 256, (h, w), dtype=np.uint8),
            "boxes": boxes_in(rng, i, h, w),
            "labels": rng.integers(0, 9, i),
            "points": points.astype(np.float32),
        }


def write_tar(path, rows):
    with tarfile.open(path, "w") as tar:
        for i, row in enumerate(rows):
            parts = {
                "png": png(row["image"]),
                "mask.png": png(row["mask"]),
                "boxes.json": json.dumps(row["boxes"].tolist()).encode(),
                "labels.json": json.dumps(row["labels"].tolist()).encode(),
                "points.json": json.dumps(row["points"].tolist()).encode(),
            }
            for name, data in parts.items():
                info = tarfile.TarInfo(f"{i:04}.{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def wrapped(row, box_format="XYXY"):
    """The row as torchvision's tensors."""
    size = row["mask"].shape
    return {
        "mask": tv_tensors.Mask(torch.from_numpy(row["mask"])),
        "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(row["boxes"]), format=box_format, canvas_size=size),
        "points": tv_tensors.KeyPoints(torch.from_numpy(row["points"][..., :2].copy()), canvas_size=size),
        "labels": torch.from_numpy(row["labels"]),
    }


def _every(function):
    """Applies a function to what follows the image."""

    def on_all(row, op, **k):
        return {name: value if name == "labels" else function(value, op, **k) for name, value in row.items()}

    return on_all


def _crop(value, op):
    return F.crop(value, op["top"], op["left"], op["height"], op["width"])


def _random_crop(value, op, fill=0, padding_mode="constant", **_):
    return _crop(F.pad(value, op["padding"], fill, padding_mode) if any(op["padding"]) else value, op)


def _resized_crop(value, op, **_):
    return F.resized_crop(value, op["top"], op["left"], op["height"], op["width"], op["size"])


def _elastic(value, op, alpha=50.0, sigma=5.0, fill=0, **_):
    h, w = value.canvas_size if hasattr(value, "canvas_size") else value.shape[-2:]
    field = torch.from_numpy(stoker.noise(op["seed"], (2, h, w), "uniform")) * 2 - 1
    size = int(8 * sigma + 1) | 1
    shifts = [
        F.gaussian_blur(field[None, i : i + 1], [size, size], [sigma, sigma]) * alpha / side
        for i, side in enumerate((w, h))
    ]
    shift = torch.concat(shifts, 1).permute(0, 2, 3, 1)
    return F.elastic(value, shift, fill=fill) if value.numel() else value


def _iou_crop(row, op, **_):
    if not op["applied"]:
        return row
    b = F.convert_bounding_box_format(row["boxes"], new_format="XYXY")
    x, y = 0.5 * (b[:, 0] + b[:, 2]), 0.5 * (b[:, 1] + b[:, 3])
    left, top = op["left"], op["top"]
    inside = (left < x) & (x < left + op["width"]) & (top < y) & (y < top + op["height"])
    row = _every(lambda value, op: _crop(value, op))(row, op)
    row["boxes"][~inside] = 0
    return row


def _sanitize(row, op, min_size=1.0, min_area=1.0, **_):
    boxes, valid = F.sanitize_bounding_boxes(row["boxes"], min_size=min_size, min_area=min_area)
    row = {**row, "boxes": boxes, "labels": row["labels"][valid]}
    return {**row, "points": tv_tensors.wrap(row["points"][valid], like=row["points"])}


def _rotate(value, op, expand=False, center=None, fill=0, **_):
    return F.rotate(value, op["angle"], expand=expand, center=center, fill=fill)


def _affine(value, op, center=None, fill=0, **_):
    return F.affine(value, op["angle"], op["translate"], op["scale"], op["shear"], center=center, fill=fill)


def _perspective(value, op, fill=0, **_):
    return F.perspective(value, None, None, fill=fill, coefficients=op["coefficients"]) if op["applied"] else value


FUNCTIONS = {
    "CenterCrop": _every(lambda value, op, **_: _crop(value, op)),
    "ClampBoundingBoxes": lambda row, op, **_: {**row, "boxes": F.clamp_bounding_boxes(row["boxes"])},
    "ClampKeyPoints": lambda row, op, **_: {**row, "points": F.clamp_keypoints(row["points"])},
    "ConvertBoundingBoxFormat": lambda row, op, to="XYXY", **_: {
        **row,
        "boxes": F.convert_bounding_box_format(row["boxes"], new_format=to),
    },
    "ElasticTransform": _every(_elastic),
    "Pad": _every(
        lambda value, op, fill=0, padding_mode="constant", **_: F.pad(value, op["padding"], fill, padding_mode)
    ),
    "RandomAffine": _every(_affine),
    "RandomCrop": _every(_random_crop),
    "RandomHorizontalFlip": _every(lambda value, op, **_: F.horizontal_flip(value) if op["flip"] else value),
    "RandomIoUCrop": _iou_crop,
    "RandomPerspective": _every(_perspective),
    "RandomResize": _every(lambda value, op, **_: F.resize(value, op["size"])),
    "RandomResizedCrop": _every(_resized_crop),
    "RandomRotation": _every(_rotate),
    "RandomShortestSize": _every(lambda value, op, **_: F.resize(value, op["size"])),
    "RandomVerticalFlip": _every(lambda value, op, **_: F.vertical_flip(value) if op["flip"] else value),
    "RandomZoomOut": _every(
        lambda value, op, fill=0, **_: F.pad(value, op["padding"], fill) if op["applied"] else value
    ),
    "Resize": _every(lambda value, op, **_: F.resize(value, op["size"])),
    "SanitizeBoundingBoxes": _sanitize,
    "SanitizeKeyPoints": lambda row, op, **_: {**row, "points": F.sanitize_keypoints(row["points"])[0]},
    "ScaleJitter": _every(lambda value, op, **_: F.resize(value, op["size"])),
}


def follow(row, drawn, box_format="XYXY", **k):
    """Takes what follows the image through the drawn ops; ops that only change colours are left out."""
    row = wrapped(row, box_format)
    for op in drawn["ops"]:
        if op["op"] in FUNCTIONS:
            row = FUNCTIONS[op["op"]](row, op, **k)
        elif op["op"] in ("RandomApply", "RandomChoice", "RandomOrder"):
            row = follow_inner(row, op, **k)
    return row


def follow_inner(row, op, **k):
    for one in op["ops"]:
        row = FUNCTIONS[one["op"]](row, one, **k) if one["op"] in FUNCTIONS else row
    return row
