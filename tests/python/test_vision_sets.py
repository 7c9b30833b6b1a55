# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets for detection and segmentation in DataLoader: the same samples as from the datasets
themselves, with images that are read in C where the transforms are separate."""

import warnings

import coco_tree
import pytest
from conftest import import_torchvision

torchvision = import_torchvision()
pytest.importorskip("pycocotools")

import stoker  # noqa: E402
import torch  # noqa: E402
from torchvision import datasets, transforms, tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

SIZED = transforms.Compose([transforms.Resize((32, 48)), transforms.ToTensor()])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("vision")
    coco_tree.coco(root / "coco")
    coco_tree.voc(root)
    coco_tree.pets(root)
    return root


def coco(root, kind=datasets.CocoDetection, **k):
    return kind(str(root / "coco/val"), str(root / "coco/annotations/instances_val.json"), **k)


def pairs(rows):
    return tuple(zip(*rows, strict=True))


def equal(a, b):
    if isinstance(a, torch.Tensor):
        same = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return same and torch.allclose(a, b, atol=1e-6) if a.is_floating_point() else same and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


def same_samples(dataset, native, words="", **k):
    loader = stoker.DataLoader(dataset, batch_size=3, collate_fn=pairs, **k)
    assert loader.native == native, loader.explain()
    assert words in loader.explain()
    got = [row for batch in loader for row in zip(*batch, strict=True)]
    assert len(got) == len(dataset)
    for i, row in enumerate(got):
        assert equal(row, tuple(dataset[i])), i
    loader.close()


class Own(datasets.CocoDetection):
    """Adds nothing to reading."""


class More(datasets.CocoDetection):
    def __getitem__(self, index):
        image, target = super().__getitem__(index)
        return image, {"n": len(target)}


def test_coco_is_read_in_c_with_the_same_targets(root):
    same_samples(coco(root, transform=SIZED), True)
    same_samples(coco(root, Own, transform=SIZED, target_transform=len), False)  # target_transform in Python
    same_samples(torch.utils.data.Subset(coco(root, transform=SIZED), [5, 1, 7]), True)
    same_samples(torch.utils.data.Subset(coco(root, transform=SIZED), [5, 1, 1]), False, "decoded in C")
    shuffled = stoker.DataLoader(coco(root, transform=SIZED), batch_size=2, collate_fn=pairs, shuffle=True, seed=3)
    seen = [t[0]["image_id"] for _, targets in shuffled for t in targets if t]
    assert len(seen) == len(set(seen))


def test_voc_and_pets(root):
    same_samples(datasets.VOCDetection(str(root), transform=SIZED), True)
    same_samples(datasets.VOCDetection(str(root), image_set="val", transform=SIZED), True)
    to_mask = transforms.Compose(
        [transforms.Resize((32, 48), transforms.InterpolationMode.NEAREST), transforms.PILToTensor()]
    )
    same_samples(datasets.VOCSegmentation(str(root), transform=SIZED, target_transform=to_mask), False, "decoded in C")
    same_samples(datasets.OxfordIIITPet(str(root), transform=SIZED), True)
    both = ["category", "binary-category"]
    same_samples(datasets.OxfordIIITPet(str(root), target_types=both, transform=SIZED), True)


def test_what_runs_in_python_says_why(root):
    same_samples(coco(root, More, transform=SIZED), False, "it has a __getitem__ or __len__ of its own")
    joint = v2.Compose([v2.ToImage(), v2.Resize((32, 48)), v2.ToDtype(torch.float32, scale=True)])
    same_samples(coco(root, transforms=joint), False, "its transforms take image and target")
    for dataset in (
        coco(root, transforms=joint),
        datasets.VOCDetection(str(root), transforms=joint),
        datasets.VOCSegmentation(str(root), transforms=joint),
    ):
        wrapped = datasets.wrap_dataset_for_transforms_v2(dataset)
        same_samples(wrapped, False, "wrap_dataset_for_transforms_v2 makes tv_tensors")
    wrapped = datasets.wrap_dataset_for_transforms_v2(coco(root, transforms=joint), target_keys=("boxes", "masks"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = stoker.DataLoader(wrapped, batch_size=4, collate_fn=pairs, num_workers=2)
        targets = [t for _, batch in loader for t in batch]
    assert any(type(t.get("boxes")) is tv_tensors.BoundingBoxes for t in targets)
    loader.close()


def test_loader_reads_annotations_in_c(root):
    """Loader has them as fields, with joint transforms converted to ops."""
    joint = v2.Compose([v2.ToImage(), v2.Resize((32, 48)), v2.RandomHorizontalFlip(1.0)])
    boxes = datasets.wrap_dataset_for_transforms_v2(datasets.VOCDetection(str(root), transforms=joint))
    loader = stoker.Loader(boxes, batch_size=4, output="torch", dtype="uint8")
    assert "Pascal VOC" in loader.explain()
    assert "RandomHorizontalFlip" in loader.explain()
    (batch,) = loader
    for i, (_, target) in enumerate(boxes):
        assert torch.allclose(batch.boxes[i], target["boxes"].float(), atol=1.0)  # torchvision's are integers
        assert batch.labels[i].tolist() == [y - 1 for y in target["labels"].tolist()]  # it counts the background
    assert loader.classes[11] == "dog"
    masks = datasets.wrap_dataset_for_transforms_v2(datasets.VOCSegmentation(str(root), transforms=joint))
    (batch,) = stoker.Loader(masks, batch_size=4, output="torch", dtype="uint8")
    for i, (_, mask) in enumerate(masks):
        assert torch.equal(batch.mask[i], mask[0].to(batch.mask.dtype))
    pets = datasets.OxfordIIITPet(str(root), target_types="segmentation")
    (batch,) = stoker.Loader(pets, "CenterCrop(50)", batch_size=6, output="torch", dtype="uint8")
    for i, (_, mask) in enumerate(pets):
        assert torch.equal(batch.mask[i], v2.functional.center_crop(v2.functional.pil_to_tensor(mask), [50])[0])
