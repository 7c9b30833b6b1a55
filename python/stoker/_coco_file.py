# SPDX-License-Identifier: Apache-2.0
"""The annotations of torchvision's CocoDetection as a file that the engine reads.

A CocoDetection contains what its file contained, but not its name. So the annotations are written to a temporary file,
once for each dataset, which is removed when the dataset is gone.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Any

PART = 10_000  # annotations that become text at a time
_written: weakref.WeakKeyDictionary[Any, dict[bool, str]] = weakref.WeakKeyDictionary()


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:  # a forked worker ends earlier
        try:
            os.unlink(path)
        except OSError:
            pass


def annotations_of(coco: Any, image: Any) -> list[dict[str, Any]]:
    """The annotations of an image, in the order in which pycocotools returns them."""
    return [coco.anns[annotation["id"]] for annotation in coco.imgToAnns.get(image, ())]


def _annotations(coco: Any, masks: bool) -> Iterator[dict[str, Any]]:
    for image in coco.imgs:
        for annotation in annotations_of(coco, image):
            yield annotation if masks else {k: v for k, v in annotation.items() if k != "segmentation"}


def _write(file: IO[str], coco: Any, masks: bool) -> None:
    images = [
        {k: image[k] for k in ("id", "file_name", "width", "height") if k in image} for image in coco.imgs.values()
    ]
    categories = json.dumps(coco.dataset.get("categories", []))
    file.write(f'{{"images": {json.dumps(images)}, "categories": {categories}, "annotations": [')
    part: list[dict[str, Any]] = []
    between = ""
    for annotation in _annotations(coco, masks):
        part.append(annotation)
        if len(part) == PART:
            file.write(between + json.dumps(part)[1:-1])
            part, between = [], ", "
    file.write((between if part else "") + json.dumps(part)[1:-1] + "]}")


def path_of(coco: Any, masks: bool) -> str:
    """The file of a pycocotools.coco.COCO; masks: with its segmentations."""
    paths = _written.setdefault(coco, {})
    if masks not in paths:
        number, path = tempfile.mkstemp(prefix="stoker-coco-", suffix=".json")
        weakref.finalize(coco, _remove, path, os.getpid())
        with open(number, "w", encoding="utf-8") as file:
            _write(file, coco, masks)
        paths[masks] = path
    return paths[masks]
