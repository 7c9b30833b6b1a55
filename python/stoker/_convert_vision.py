# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets for detection and segmentation: CocoDetection, CocoCaptions, VOCDetection, VOCSegmentation and
OxfordIIITPet, and classes of the user that inherit their `__getitem__`.

The engine reads their images. The target is made by the dataset's own code, so that it has the same structure. This is
possible if nothing changes image and target together. In the result of wrap_dataset_for_transforms_v2, boxes and masks
follow the image; the engine reads these, too (`_joint`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _coco_file
from ._convert import flat
from ._deferred import Deferred, made_by
from ._output import framework


class Kind(NamedTuple):
    module: str
    files: Callable[[Any], list[str]]  # the images of a dataset, in its order
    target: Callable[[Any, int], Any]  # what its code returns besides the image, before target_transform
    heavy: Callable[[Any], bool]  # whether the target takes long to make


def _coco_files(dataset: Any) -> list[str]:
    return [os.path.join(dataset.root, dataset.coco.loadImgs(i)[0]["file_name"]) for i in dataset.ids]


def _voc_target(dataset: Any, i: int) -> Any:
    module = sys.modules["torchvision.datasets.voc"]
    return dataset.parse_voc_xml(module.ET_parse(dataset.annotations[i]).getroot())


def _mask(path: Any) -> Any:
    return framework("PIL.Image").open(path)


def _pet_target(dataset: Any, i: int) -> Any:
    values = {"category": dataset._labels, "binary-category": dataset._bin_labels}
    found = [_mask(dataset._segs[i]) if t == "segmentation" else values[t][i] for t in dataset._target_types]
    return None if not found else found[0] if len(found) == 1 else tuple(found)


def _never(dataset: Any) -> bool:
    return False


_COCO = Kind("torchvision.datasets.coco", _coco_files, lambda d, i: d._load_target(d.ids[i]), _never)
_VOC = "torchvision.datasets.voc"
KINDS = {
    "CocoDetection": _COCO,
    "VOCDetection": Kind(_VOC, lambda d: list(d.images), _voc_target, _never),
    "VOCSegmentation": Kind(_VOC, lambda d: list(d.images), lambda d, i: _mask(d.masks[i]), lambda d: True),
    "OxfordIIITPet": Kind(
        "torchvision.datasets.oxford_iiit_pet",
        lambda d: [os.fspath(p) for p in d._images],
        _pet_target,
        lambda d: "segmentation" in d._target_types,
    ),
}


BOX_STEPS = {"ClampBoundingBoxes", "ConvertBoundingBoxFormat", "RandomIoUCrop", "SanitizeBoundingBoxes"}


def name_of(dataset: Any) -> str:
    """The class of torchvision that a dataset inherits its `__getitem__` from; "": none of these."""
    getitem, length = getattr(type(dataset), "__getitem__", None), getattr(type(dataset), "__len__", None)
    for name, kind in KINDS.items():
        of = "_VOCBase" if name.startswith("VOC") else name
        if made_by(getitem, f"{name}.__getitem__", kind.module) and made_by(length, f"{of}.__len__", kind.module):
            return name
    return ""


def is_wrapped(dataset: Any) -> bool:
    """Whether a dataset comes from wrap_dataset_for_transforms_v2."""
    module = "torchvision.tv_tensors._dataset_wrapper"
    return made_by(getattr(type(dataset), "__getitem__", None), "VisionDatasetTVTensorWrapper.__getitem__", module)


def _transforms(dataset: Any) -> tuple[Any, Any] | None:
    """The transforms of image and target; None: they are not separate."""
    joint = dataset.transforms
    if joint is None:
        return None, None
    if made_by(type(joint), "StandardTransform", "torchvision.datasets.vision"):
        return joint.transform, joint.target_transform
    v2 = type(joint).__module__.startswith("torchvision.transforms.v2")
    plain = not KINDS[name_of(dataset)].heavy(dataset)  # numbers and text, which transforms v2 leave as they are
    boxes = {type(step).__name__ for step in flat(joint)} & BOX_STEPS if v2 else set()
    return (joint, None) if v2 and plain and not boxes else None


def is_one(dataset: Any) -> bool:
    """Whether a dataset is one of these, or inherits from one.

    >>> is_one([1, 2, 3])
    False
    """
    return any(
        kind.__name__ in KINDS and kind.__module__ == KINDS[kind.__name__].module for kind in type(dataset).__mro__
    )


def why_not(dataset: Any) -> str:
    """Why such a dataset runs in Python; "": it need not.

    >>> why_not([1, 2, 3])
    ''
    """
    if not is_one(dataset):
        return ""
    if not (name := name_of(dataset)):
        return "it has a __getitem__ or __len__ of its own"
    if name == "CocoDetection" and not made_by(
        type(dataset)._load_image, "CocoDetection._load_image", "torchvision.datasets.coco"
    ):
        return "it has a _load_image of its own"
    if _transforms(dataset) is None:
        return "its transforms change image and target together; wrap it with wrap_dataset_for_transforms_v2"
    return ""


class Samples:
    """What such a dataset returns, with placeholders for its images."""

    def __init__(self, dataset: Any, paths: list[str], labels: bool) -> None:
        """labels: make the target, and call the target_transform."""
        self.dataset, self.paths, self.labels = dataset, paths, labels
        self.kind = KINDS[name_of(dataset)]
        transforms: tuple[Any, Any] = _transforms(dataset) or (None, None)
        transform, self.target_transform = transforms
        self.steps: tuple[Any, ...] = () if transform is None else (transform,)

    def __getitem__(self, i: int) -> Any:
        target = self.kind.target(self.dataset, i) if self.labels else None
        if self.labels and self.target_transform is not None:
            target = self.target_transform(target)
        return Deferred(self.paths[i], self.steps), target


def files_of(dataset: Any) -> tuple[list[str], Any] | None:
    """The images of a dataset and their transform; None: it runs in Python.

    >>> files_of([1, 2, 3]) is None
    True
    """
    if not is_one(dataset) or why_not(dataset):
        return None
    transforms = _transforms(dataset)
    return None if transforms is None else (KINDS[name_of(dataset)].files(dataset), transforms[0])


def _coco_source(dataset: Any, masks: bool) -> tuple[str, list[int] | None] | None:
    """The annotations of a CocoDetection as a source, and its samples in order."""
    module, coco = "torchvision.datasets.coco", dataset.coco
    own = made_by(type(dataset)._load_image, "CocoDetection._load_image", module)
    target = type(dataset)._load_target
    known = any(made_by(target, f"{name}._load_target", module) for name in ("CocoDetection", "CocoCaptions"))
    root = os.fspath(dataset.root)
    if not (own and known) or "&" in root or not all(type(i) is int for i in coco.imgs):
        return None
    numbers = {image: i for i, image in enumerate(sorted(coco.imgs))}
    wanted = [numbers[i] for i in dataset.ids]
    name = f"coco:{_coco_file.path_of(coco, masks)}?images={root or '.'}"
    return name, None if wanted == list(range(len(numbers))) else wanted


def source_of(dataset: Any, masks: bool = True) -> tuple[str, list[str] | list[int] | None] | None:
    """The name of a source with the annotations of a dataset, and the keys or indices of its samples in order (None:
    all). None: the annotations are not where Stoker would look. masks: also those of single objects.

    >>> source_of([1, 2, 3]) is None
    True
    """
    name = name_of(dataset) if is_one(dataset) else ""
    if name == "CocoDetection":
        return _coco_source(dataset, masks)
    if name in ("VOCDetection", "VOCSegmentation"):
        base = os.path.dirname(os.path.dirname(dataset.images[0])) if dataset.images else ""
        task = "segmentation" if name == "VOCSegmentation" else "detection"
        return f"voc:{base}?set={dataset.image_set}&task={task}", None
    if name == "OxfordIIITPet" and "segmentation" in dataset._target_types:
        keys = [path.name for path in dataset._images]
        return f"pairs:{dataset._base_folder}?images=images&masks=annotations/trimaps", keys
    return None


def fields_of(dataset: Any) -> tuple[str, list[str] | list[int] | None, Any] | None:
    """How `Loader` reads a dataset with its annotations: as in source_of(), and the joint transform.

    Masks and boxes are fields then, which follow the image; so the transforms must be joint, as those of a dataset from
    wrap_dataset_for_transforms_v2 are, or absent.

    >>> fields_of([1, 2, 3]) is None
    True
    """
    inner = dataset._dataset if is_wrapped(dataset) else dataset
    if not is_one(inner) or not name_of(inner):
        return None
    joint = dataset.transforms
    if joint is not None and not is_wrapped(dataset):
        return None
    if name_of(inner) == "OxfordIIITPet" and inner._target_types != ["segmentation"]:
        return None
    found = source_of(inner)
    return None if found is None else (*found, joint)


def target_of(dataset: Any, i: int) -> Any:
    """What the dataset's own code returns besides the image."""
    return KINDS[name_of(dataset)].target(dataset, i)


def samples(dataset: Any, labels: bool) -> Samples | None:
    """A copy of such a dataset with placeholders for its images; None: it is another dataset.

    >>> samples([1, 2, 3], True) is None
    True
    """
    found = files_of(dataset)
    return None if found is None else Samples(dataset, found[0], labels)


def is_heavy(dataset: Any) -> bool:
    """Whether the targets of a dataset, or of one that it contains, take long to make: masks are images, too.

    >>> is_heavy([1, 2, 3])
    False
    """
    if (name := name_of(dataset)) and is_one(dataset):
        return KINDS[name].heavy(dataset)
    below = getattr(dataset, "__dict__", {})
    inner = [v for k, v in below.items() if k in ("dataset", "datasets")]
    return any(is_heavy(d) for v in inner for d in (v if type(v) is list else [v]))
