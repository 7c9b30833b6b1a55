# SPDX-License-Identifier: Apache-2.0
"""Samples of wrap_dataset_for_transforms_v2 whose image, boxes and masks the engine makes.

The engine delivers them as fields of a batch. `Joint` builds from each row the sample that the wrapped dataset returns:
the same keys, and the same types of torchvision.tv_tensors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import _convert_vision
from ._coco_file import annotations_of
from ._converted import PIL, Converted
from ._output import framework

# Ops that move integer boxes to integers, and those after which torchvision cuts fractions off: WholeBoundingBoxes does
# so, too. After other ops, results may differ.
WHOLE = {"CenterCrop", "ClampBoundingBoxes", "ConvertBoundingBoxFormat", "Normalize", "Pad", "RandomCrop"}
WHOLE |= {"RandomHorizontalFlip", "RandomIoUCrop", "RandomVerticalFlip", "RandomZoomOut", "SanitizeBoundingBoxes"}
WHOLE |= {"ToDtype", "ToTensor", "ColorJitter", "GaussianBlur", "GaussianNoise", "Grayscale", "Identity", "JPEG"}
WHOLE |= {"RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize"}
WHOLE |= {"RandomGrayscale", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize", "RGB"}
WHOLE |= {"Compose", "PILToTensor", "RandomApply", "RandomChoice", "RandomErasing", "RandomOrder", "ToImage"}
WORDS = {"CXCYWH", "False", "None", "True", "XYWH", "XYXY"}  # in arguments
RESIZES = {"RandomResize", "RandomResizedCrop", "RandomShortestSize", "Resize", "ScaleJitter"}

COCO = {"segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "boxes", "masks", "labels"}


class Shape:
    """Which types torchvision's transforms give to image, boxes and masks."""

    def __init__(self, steps: list[Any], box_format: str = "XYXY") -> None:
        self.image, self.pure, self.box_format, self.mask_dtype = "", False, box_format, "uint8"
        self.sanitized = False
        for step in steps:
            name = type(step).__name__
            if name in ("ToImage", "PILToTensor"):
                self.image = "Image" if name == "ToImage" else ""
            elif name == "ToPureTensor":
                self.pure, self.image = True, ""
            elif name == "ConvertBoundingBoxFormat":
                self.box_format = str(getattr(step.format, "value", step.format)).upper()
            elif name == "SanitizeBoundingBoxes":
                self.sanitized = True
            elif name == "ToDtype" and isinstance(step.dtype, dict):
                kinds = {getattr(k, "__name__", k): v for k, v in step.dtype.items()}
                self.mask_dtype = str(kinds.get("Mask") or "uint8").removeprefix("torch.")

    def image_of(self, tensor: Any) -> Any:
        return framework("torchvision.tv_tensors").Image(tensor) if self.image else tensor

    def boxes_of(self, tensor: Any, size: tuple[int, int]) -> Any:
        if self.pure:
            return tensor
        return framework("torchvision.tv_tensors").BoundingBoxes(tensor, format=self.box_format, canvas_size=size)

    def mask_of(self, tensor: Any) -> Any:
        torch = framework("torch")
        tensor = tensor.to(getattr(torch, self.mask_dtype))
        return tensor if self.pure else framework("torchvision.tv_tensors").Mask(tensor)


def _dtypes_fit(steps: list[Any]) -> bool:
    """Whether ToDtype changes only images, or images and masks."""
    for step in steps:
        if type(step).__name__ == "ToDtype" and isinstance(step.dtype, dict):
            kinds = {getattr(k, "__name__", k): v for k, v in step.dtype.items()}
            others = {k: v for k, v in kinds.items() if k not in ("Image", "Tensor", "Mask") and v is not None}
            mask = str(kinds.get("Mask") or kinds.get("others") or "torch.uint8").removeprefix("torch.")
            if others or mask not in ("uint8", "int32", "int64", "float32"):
                return False
    return True


def _names_in(op: str) -> list[str]:
    """The names of an op and of the ops in it.

    >>> _names_in("RandomApply([ColorJitter(hue=0.1), RGB, Pad(3, mask_fill=None)], p=0.8)")
    ['RandomApply', 'ColorJitter', 'RGB', 'Pad']
    """
    return [name for name in re.findall(r"\b[A-Z]\w+", op) if name not in WORDS]


class Joint:
    """Makes samples of a wrapped dataset from rows of the engine's batch."""

    words = "made in C with their boxes and masks; put together as wrap_dataset_for_transforms_v2 does"

    def __init__(self, dataset: Any, name: str, converted: Converted) -> None:
        """dataset: wrapped; name: the class of torchvision."""
        self.dataset, self.name, self.inner = dataset, name, dataset._dataset
        self.shape = Shape(converted.steps)
        self.ops = {name for op in converted.ops for name in _names_in(repr(op))}
        self.indices: Any = None  # of the dataset, for the indices of the engine
        self.keys = _keys_of(dataset, name)
        self.whole = False  # some boxes are integers, and an op resizes them
        self.fields = tuple(FIELDS[name](self))

    # ------------------------------------------------------------ what it cannot do

    def why_not(self, converted: Converted) -> str:
        """Why this module cannot make the samples; "": it can."""
        if converted.rest is not None:
            return f"no op for {converted.rest.why[0]}"
        if converted.form == PIL:
            return "its images stay Pillow images; end its transforms with ToImage or PILToTensor"
        if not _dtypes_fit(converted.steps):
            return "ToDtype changes the type of boxes or labels"
        if self.shape.sanitized and not {"boxes", "labels"} <= set(self.keys):
            return "SanitizeBoundingBoxes needs the keys boxes and labels"
        if "boxes" in self.keys and not self.ops <= WHOLE and self._has_whole_boxes():
            self.whole = True
            if not self.ops <= WHOLE | RESIZES:
                return "some boxes are integers, which torchvision rounds after every op that rotates or distorts"
            if self._has_whole_floats():
                return "some images have boxes of integers, and others only floats without a fraction"
        return ""

    def agrees(self, source: Any) -> bool:
        """Whether the source has the files of the dataset."""
        if self.name == "CocoDetection":
            return True  # it was made from the dataset
        files = _convert_vision.KINDS[self.name].files(self.inner)
        return [os.path.realpath(path) for path in files] == [os.path.realpath(path) for path in source.paths]

    def _has_whole_boxes(self) -> bool:
        if self.name == "VOCDetection":
            return True
        return any(row and all(type(v) is int for v in row) for row in self._coordinates())

    def _has_whole_floats(self) -> bool:
        """Whether the numbers of an image are all whole, but not all of them integers."""
        if self.name == "VOCDetection":
            return False
        return any(
            any(type(v) is float for v in row) and all(float(v).is_integer() for v in row)
            for row in self._coordinates()
        )

    def _coordinates(self) -> Iterator[list[Any]]:
        """All numbers of the boxes of each image."""
        for image in self.inner.ids:
            yield [v for one in annotations_of(self.inner.coco, image) for v in one.get("bbox", ())]

    # ------------------------------------------------------------ samples

    def _coco(self, i: int, row: dict[str, Any]) -> tuple[Any, Any]:
        image, number = self.shape.image_of(row["image"]), self.inner.ids[i]
        annotations = annotations_of(self.inner.coco, number)
        if not annotations:
            return image, {"image_id": number}
        target: dict[str, Any] = {"image_id": number} if "image_id" in self.keys else {}
        if "boxes" in self.keys:
            boxes = row["boxes"]
            if all(type(v) is int for annotation in annotations for v in annotation["bbox"]):
                boxes = boxes.to(framework("torch").int64)
            target["boxes"] = self.shape.boxes_of(boxes, tuple(image.shape[-2:]))
        if "masks" in self.keys:
            target["masks"] = self.shape.mask_of(row["masks"])
        if "labels" in self.keys:
            target["labels"] = row["category_id"]
        for key in sorted(self.keys - {"image_id", "boxes", "masks", "labels"}):
            target[key] = [annotation[key] for annotation in annotations if key in annotation]
        return image, target

    def _voc(self, i: int, row: dict[str, Any]) -> tuple[Any, Any]:
        image = self.shape.image_of(row["image"])
        target = _convert_vision.target_of(self.inner, i) if "annotation" in self.keys else {}
        if "boxes" in self.keys:
            boxes = row["boxes"].to(framework("torch").int64)
            target["boxes"] = self.shape.boxes_of(boxes, tuple(image.shape[-2:]))
        if "labels" in self.keys:
            target["labels"] = row["labels"] + 1  # torchvision counts the background
        return image, target

    def _segmentation(self, i: int, row: dict[str, Any]) -> tuple[Any, Any]:
        return self.shape.image_of(row["image"]), self.shape.mask_of(row["mask"].unsqueeze(0))

    def _pet(self, i: int, row: dict[str, Any]) -> tuple[Any, Any]:
        image, mask = self._segmentation(i, row)
        labels = {"category": self.inner._labels, "binary-category": self.inner._bin_labels}
        found = [mask if t == "segmentation" else labels[t][i] for t in self.inner._target_types]
        return image, found[0] if len(found) == 1 else tuple(found)

    def rows(self, batch: Any) -> list[Any]:
        """The samples of a batch."""
        make = SAMPLES[self.name]
        values = {name: getattr(batch, name) for name in self.fields if name != "index"}
        places = [int(self.indices[i]) for i in batch.index.tolist()]
        return [make(self, i, {name: v[k] for name, v in values.items()}) for k, i in enumerate(places)]

    def assembled(self, collate: Callable[[Any], Any] | None, batched: bool) -> Callable[[Any], Any]:
        return _Collated(self, collate, batched)


class _Collated:
    """Batches of such samples. collate: the user's; None: torch's."""

    def __init__(self, joint: Joint, collate: Callable[[Any], Any] | None, batched: bool) -> None:
        self.joint, self.collate, self.batched = joint, collate, batched

    def __call__(self, batch: Any) -> Any:
        rows = self.joint.rows(batch)
        collate = self.collate or framework("torch.utils.data").default_collate
        return collate(rows if self.batched else rows[0])


def _keys_of(dataset: Any, name: str) -> set[str]:
    """The keys of its targets."""
    every, usual = (COCO, {"image_id", "boxes", "labels"}) if name == "CocoDetection" else ({"annotation"}, set())
    if name == "VOCDetection":
        usual = {"boxes", "labels"}
        every |= usual
    given = dataset._target_keys
    return set(every if given == "all" else usual if given is None else given)


def _coco_fields(joint: Joint) -> list[str]:
    columns = {"boxes": "boxes", "masks": "masks", "labels": "category_id"}
    return ["image", "index", *(column for key, column in columns.items() if key in joint.keys)]


FIELDS: dict[str, Callable[[Joint], list[str]]] = {
    "CocoDetection": _coco_fields,
    "OxfordIIITPet": lambda joint: ["image", "index", "mask"],
    "VOCDetection": lambda joint: ["image", "index", *(k for k in ("boxes", "labels") if k in joint.keys)],
    "VOCSegmentation": lambda joint: ["image", "index", "mask"],
}
SAMPLES: dict[str, Callable[[Joint, int, dict[str, Any]], tuple[Any, Any]]] = {
    "CocoDetection": Joint._coco,
    "OxfordIIITPet": Joint._pet,
    "VOCDetection": Joint._voc,
    "VOCSegmentation": Joint._segmentation,
}
