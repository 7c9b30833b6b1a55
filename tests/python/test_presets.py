# SPDX-License-Identifier: Apache-2.0
"""Transforms of the users' own classes, as reference scripts have them: presets, and classes that return several views.

The classes here are written for these tests, with the interfaces of torchvision's references, DINO and SimCLR.
"""

import random
from collections import defaultdict

import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from PIL import ImageFilter, ImageOps  # noqa: E402
from torchvision import datasets, tv_tensors  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR = v1.InterpolationMode.BILINEAR


class TrainPreset:
    """torchvision/references/classification: the arguments that its recipes use."""

    def __init__(self, kind, backend, policy):
        policies = {
            "ra": lambda: kind.RandAugment(interpolation=BILINEAR, magnitude=9),
            "ta_wide": lambda: kind.TrivialAugmentWide(interpolation=BILINEAR),
            "augmix": lambda: kind.AugMix(interpolation=BILINEAR, severity=3),
            "imagenet": lambda: kind.AutoAugment(kind.AutoAugmentPolicy("imagenet"), BILINEAR),
            None: lambda: kind.RandomHorizontalFlip(0.5),
        }
        steps = [kind.PILToTensor()] if backend == "tensor" else []
        steps += [kind.RandomResizedCrop(24, interpolation=BILINEAR, antialias=True), policies[policy]()]
        steps += [kind.PILToTensor()] if backend == "pil" else []
        steps += [kind.ToDtype(torch.float, scale=True) if kind is v2 else kind.ConvertImageDtype(torch.float)]
        steps += [kind.Normalize(MEAN, STD), kind.RandomErasing(p=0.1)]
        self.transforms = kind.Compose([*steps, kind.ToPureTensor()] if kind is v2 else steps)

    def __call__(self, img):
        return self.transforms(img)


class EvalPreset:
    def __init__(self, kind, backend):
        steps = [kind.PILToTensor()] if backend == "tensor" else []
        steps += [kind.Resize(26, interpolation=BILINEAR, antialias=True), kind.CenterCrop(24)]
        steps += [kind.PILToTensor()] if backend == "pil" else []
        steps += [kind.ToDtype(torch.float, scale=True) if kind is v2 else kind.ConvertImageDtype(torch.float)]
        self.transforms = kind.Compose([*steps, kind.Normalize(MEAN, STD)])

    def __call__(self, img):
        return self.transforms(img)


@pytest.mark.parametrize("kind", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("backend", ["pil", "tensor"])
@pytest.mark.parametrize("policy", ["ra", "ta_wide", "augmix", "imagenet", None])
def test_classification(photos, kind, backend, policy):
    preset = TrainPreset(kind, backend, policy)
    for loader in (
        stoker.Loader(photos, preset, batch_size=4, output="torch"),
        stoker.DataLoader(datasets.ImageFolder(photos, preset), batch_size=4),
    ):
        assert "python" not in loader.explain(), loader.explain()
        images, labels = next(iter(loader))
        assert images.shape == (4, 3, 24, 24) and images.dtype == torch.float32 and len(labels) == 4


@pytest.mark.parametrize("kind", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("backend", ["pil", "tensor"])
def test_classification_is_torchvisions(noise, kind, backend):
    dataset = datasets.ImageFolder(noise, EvalPreset(kind, backend))
    loader = stoker.DataLoader(dataset, batch_size=8)
    assert loader.native and "python" not in loader.explain()
    level = (1.01 if backend == "tensor" else 0) / 255 / min(STD)
    ((ours, labels),) = loader
    ((theirs, wanted),) = torch.utils.data.DataLoader(dataset, batch_size=8)
    torch.testing.assert_close(ours, theirs, rtol=3e-7, atol=level + 3e-7)
    assert torch.equal(labels, wanted)


# ---------------------------------------------------------------- views


def colours(strength=1.0):
    jitter = v1.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    return [v1.RandomHorizontalFlip(), v1.RandomApply([jitter], p=0.8), v1.RandomGrayscale(p=0.2)]


END = [v1.ToTensor(), v1.Normalize(MEAN, STD)]


class TwoViews:
    """SimCLR."""

    def __init__(self, transform, n_views=2):
        self.base_transform, self.n_views = transform, n_views

    def __call__(self, x):
        return [self.base_transform(x) for _ in range(self.n_views)]


class GaussianBlur:
    """As in DINO's utils.py: Pillow's, with a chance."""

    def __init__(self, p=0.5, radius_min=0.1, radius_max=2.0):
        self.prob, self.radius_min, self.radius_max = p, radius_min, radius_max

    def __call__(self, img):
        if not random.random() <= self.prob:
            return img
        return img.filter(ImageFilter.GaussianBlur(radius=random.uniform(self.radius_min, self.radius_max)))


class Solarization:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        return ImageOps.solarize(img) if random.random() < self.p else img


class MultiCrop:
    """DINO: two large crops, and some small ones."""

    def __init__(self, local_crops_number=8):
        flips = v1.Compose(colours(0.5))
        crop = v1.RandomResizedCrop(24, scale=(0.4, 1.0), interpolation=v1.InterpolationMode.BICUBIC)
        self.global_transfo1 = v1.Compose([crop, flips, GaussianBlur(1.0), *END])
        self.global_transfo2 = v1.Compose([crop, flips, GaussianBlur(0.1), Solarization(0.2), *END])
        self.local_crops_number = local_crops_number
        small = v1.RandomResizedCrop(12, scale=(0.05, 0.4), interpolation=v1.InterpolationMode.BICUBIC)
        self.local_transfo = v1.Compose([small, flips, GaussianBlur(p=0.5), *END])

    def __call__(self, image):
        crops = []
        crops.append(self.global_transfo1(image))
        crops.append(self.global_transfo2(image))
        for _ in range(self.local_crops_number):
            crops.append(self.local_transfo(image))
        return crops


def shapes(batch):
    return [[tuple(v.shape) for v in batch[0]], tuple(batch[1].shape)]


@pytest.mark.parametrize("transform", [TwoViews(v1.Compose([v1.RandomResizedCrop(24), *colours(), *END])), MultiCrop()])
def test_views(photos, transform):
    dataset = datasets.ImageFolder(photos, transform)
    loader = stoker.DataLoader(dataset, batch_size=4)
    assert loader.native and "python" not in loader.explain(), loader.explain()
    ours, theirs = next(iter(loader)), next(iter(torch.utils.data.DataLoader(dataset, batch_size=4)))
    assert shapes(ours) == shapes(theirs) and type(ours[0]) is type(theirs[0]) is list
    assert not torch.equal(ours[0][0], ours[0][1])
    rows = stoker.DataLoader(dataset, batch_size=4, collate_fn=lambda rows: rows)
    (views, label), *_ = next(iter(rows))
    assert type(views) is list and type(label) is int and len(views) == len(ours[0])
    batch = next(iter(stoker.Loader(photos, transform, batch_size=4, output="torch")))
    assert batch._fields == (*(f"view{i}" for i in range(len(views))), "label")


class Inverted(GaussianBlur):
    """Uses the same names, but does something else."""

    def __call__(self, img):
        if random.random() <= self.prob:
            return img
        return img.filter(ImageFilter.GaussianBlur(radius=random.uniform(self.radius_min, self.radius_max)))


Inverted.__name__ = "GaussianBlur"


def test_classes_of_scripts_are_recognised_by_what_they_do():
    assert str(stoker.convert_transform(v1.Compose([GaussianBlur(0.3)]))[0]) == "PillowBlur(p=0.3)"
    assert str(stoker.convert_transform(v1.Compose([Solarization(0.2)]))[0]) == "RandomSolarize(128, p=0.2)"
    assert isinstance(stoker.convert_transform(v1.Compose([Inverted(0.3)]))[0], stoker.Lambda)


class Random:
    """Not simple: it draws a number."""

    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return self.transform(image) if torch.rand(1) < 0.5 else self.transform(image.rotate(90))


class Looks:
    """Not simple: it looks at the image."""

    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return self.transform(image.rotate(90))


class Counts:
    """Not simple: it changes itself."""

    def __init__(self, transform):
        self.transform, self.n = transform, 0

    def __call__(self, image):
        self.n += 1
        return self.transform(image)


@pytest.mark.parametrize("kind", [Random, Looks, Counts])
def test_other_code_stays_in_python(photos, kind):
    transform = kind(v1.Compose([v1.RandomResizedCrop(24), *END]))
    loader = stoker.DataLoader(datasets.ImageFolder(photos, transform), batch_size=4)
    assert not loader.native
    assert next(iter(loader))[0].shape == (4, 3, 24, 24)


# ---------------------------------------------------------------- detection and segmentation


class JointPreset:
    def __init__(self, *steps):
        self.transforms = v2.Compose(list(steps))

    def __call__(self, img, target):
        return self.transforms(img, target)


def detection(policy, backend):
    """torchvision/references/detection, with transforms v2."""
    fill = defaultdict(lambda: (123.0, 117.0, 104.0), {tv_tensors.Mask: 0})
    flip = v2.RandomHorizontalFlip(p=0.5)
    policies = {
        "hflip": [flip],
        "multiscale": [v2.RandomShortestSize(min_size=(48, 51, 54), max_size=133), flip],
        "lsj": [v2.ScaleJitter(target_size=(102, 102), antialias=True), flip],
        "ssd": [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=fill), v2.RandomIoUCrop(), flip],
        "ssdlite": [v2.RandomIoUCrop(), flip],
    }
    first = {"tv_tensor": [v2.ToImage()], "tensor": [v2.PILToTensor()], "pil": []}[backend]
    last = [v2.ToImage()] if backend == "pil" else []
    end = [v2.ToDtype(torch.float, scale=True), v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.XYXY)]
    return JointPreset(*first, *policies[policy], *last, *end, v2.SanitizeBoundingBoxes(), v2.ToPureTensor())


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    pytest.importorskip("pycocotools")
    import coco_tree

    root = tmp_path_factory.mktemp("presets")
    coco_tree.coco(root)
    coco_tree.voc(root)
    return root


@pytest.mark.parametrize("backend", ["pil", "tv_tensor", "tensor"])
@pytest.mark.parametrize("policy", ["hflip", "multiscale", "lsj", "ssd", "ssdlite"])
def test_detection(coco, policy, backend):
    annotations = str(coco / "annotations/instances_val.json")
    dataset = datasets.CocoDetection(str(coco / "val"), annotations, transforms=detection(policy, backend))
    dataset.ids = [i for i in dataset.ids if dataset.coco.getAnnIds(i)]
    wrapped = datasets.wrap_dataset_for_transforms_v2(dataset, target_keys=("boxes", "labels", "masks"))
    loader = stoker.DataLoader(wrapped, batch_size=3, collate_fn=lambda rows: tuple(zip(*rows, strict=True)))
    assert loader.native and "\npython" not in loader.explain(), loader.explain()
    for images, targets in loader:
        for image, target in zip(images, targets, strict=True):
            n = len(target["labels"])
            assert type(image) is torch.Tensor and image.dtype == torch.float32
            assert target["boxes"].shape == (n, 4) and type(target["boxes"]) is torch.Tensor
            assert target["masks"].shape == (n, *image.shape[1:])


@pytest.mark.parametrize("backend", ["pil", "tv_tensor", "tensor"])
def test_segmentation(coco, backend):
    """torchvision/references/segmentation, with transforms v2."""
    first = {"tv_tensor": [v2.ToImage()], "tensor": [v2.PILToTensor()], "pil": []}[backend]
    image = tv_tensors.Image if backend == "tv_tensor" else torch.Tensor
    steps = [*first, v2.RandomResize(min_size=80, max_size=120), v2.RandomHorizontalFlip(0.5)]
    steps += [v2.RandomCrop(64, pad_if_needed=True), *([v2.PILToTensor()] if backend == "pil" else [])]
    dtypes = {image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    preset = JointPreset(*steps, v2.ToDtype(dtypes, scale=True), v2.Normalize(MEAN, STD), v2.ToPureTensor())
    wrapped = datasets.wrap_dataset_for_transforms_v2(datasets.VOCSegmentation(str(coco), transforms=preset))
    loader = stoker.DataLoader(wrapped, batch_size=2)
    assert loader.native and "python" not in loader.explain(), loader.explain()
    ours, theirs = next(iter(loader)), next(iter(torch.utils.data.DataLoader(wrapped, batch_size=2)))
    assert [(type(v), v.dtype, v.shape) for v in ours] == [(type(v), v.dtype, v.shape) for v in theirs]


FILL = {tv_tensors.Image: 7, tv_tensors.Mask: 255, "others": 0}
FILLED = [
    v2.Pad((3, 4, 5, 6), FILL),
    v2.RandomRotation((30, 30), fill=FILL),
    v2.RandomAffine((20, 20), None, (0.5, 0.5), (10, 10, 5, 5), fill=FILL),
]


@pytest.mark.parametrize("transform", FILLED)
def test_fills_of_masks(coco, transform):
    joint = v2.Compose([v2.ToImage(), v2.Resize((60, 64)), transform])
    wrapped = datasets.wrap_dataset_for_transforms_v2(datasets.VOCSegmentation(str(coco), transforms=joint))
    loader = stoker.DataLoader(wrapped, batch_size=2)
    assert loader.native and "python" not in loader.explain(), loader.explain()
    theirs = torch.utils.data.DataLoader(wrapped, batch_size=2)
    for (images, masks), (wanted, right) in zip(loader, theirs, strict=True):
        assert torch.equal(masks, right) and (masks == 255).any()
        assert (images.int() - wanted.int()).abs().max() <= 1


def test_fills_of_masks_that_move_at_random():
    for transform in (v2.RandomPerspective(fill=FILL), v2.ElasticTransform(fill=FILL), v2.RandomZoomOut(FILL)):
        op = stoker.convert_transform(v2.Compose([v2.ToImage(), transform]))[-1]
        assert "fill=7, " in str(op) and "mask_fill=255" in str(op)
