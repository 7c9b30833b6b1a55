# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets for detection and segmentation in DataLoader: the same samples as from the datasets
themselves, with images that are read in C where the transforms are separate."""

import gc
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
    coco_tree.people(root / "coco")
    coco_tree.voc(root)
    coco_tree.pets(root)
    return root


def coco(root, kind=datasets.CocoDetection, **k):
    return kind(str(root / "coco/val"), str(root / "coco/annotations/instances_val.json"), **k)


def pairs(rows):
    return tuple(zip(*rows, strict=True))


def equal(a, b, level=0.0):
    """level: how far images may be apart, since torch rounds uint8 tensors differently when it resizes them."""
    if isinstance(a, torch.Tensor):
        same = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        near = max(1e-6, level if a.dim() > 2 else 2e-4)
        return same and torch.allclose(a, b, atol=near) if a.is_floating_point() else same and torch.equal(a, b)
    if isinstance(a, dict):
        return set(a) == set(b) and all(equal(a[k], b[k], level) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(equal(x, y, level) for x, y in zip(a, b, strict=True))
    return a == b


def within_one_level(a, b):
    return equal(a, b, 1.01 / 255)


def same_samples(dataset, native, words="", **k):
    loader = stoker.DataLoader(dataset, batch_size=3, collate_fn=pairs, **k)
    assert loader.native == native, loader.explain()
    assert words in loader.explain()
    got = [row for batch in loader for row in zip(*batch, strict=True)]
    assert len(got) == len(dataset)
    for i, row in enumerate(got):
        assert within_one_level(row, tuple(dataset[i])), i
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


def joint(*steps):
    return v2.Compose(list(steps))


SMALL = joint(v2.ToImage(), v2.Resize((32, 48)), v2.RandomHorizontalFlip(1.0), v2.ToDtype(torch.float32, scale=True))
WHOLE = joint(v2.ToImage(), v2.RandomHorizontalFlip(1.0), v2.CenterCrop((30, 40)), v2.SanitizeBoundingBoxes())
PURE = joint(v2.RandomVerticalFlip(1.0), v2.PILToTensor(), v2.ConvertBoundingBoxFormat("CXCYWH"), v2.ToPureTensor())
MASKS = joint(
    v2.ToImage(),
    v2.CenterCrop(50),
    v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
    v2.ToPureTensor(),
)
wrap = datasets.wrap_dataset_for_transforms_v2


def test_wrapped_coco_is_read_in_c(root):
    words = "made in C with their boxes and masks"
    same_samples(wrap(coco(root, transforms=SMALL)), True, words)
    same_samples(wrap(coco(root, transforms=PURE)), True, words)  # images of different sizes
    for keys in (("boxes", "masks", "labels"), "all", ["area", "iscrowd", "bbox"], {"labels", "image_id"}):
        same_samples(wrap(coco(root, transforms=SMALL), target_keys=keys), True, words)
    same_samples(torch.utils.data.Subset(wrap(coco(root, transforms=SMALL)), [5, 1, 1, 7]), True, words)
    chosen = coco(root, transforms=SMALL)
    chosen.ids = chosen.ids[::-1][:5]
    same_samples(wrap(chosen), True, words)
    same_samples(wrap(coco(root, transforms=SMALL)), True, words, num_workers=2)  # collate_fn runs in processes


def test_sanitized_boxes_take_their_labels_along(root):
    dataset = coco(root, transforms=WHOLE)
    dataset.ids = [i for i in dataset.ids if dataset.coco.getAnnIds(i)]  # torchvision needs boxes
    same_samples(wrap(dataset, target_keys=("boxes", "labels", "masks", "image_id")), True)


def test_wrapped_sets_in_torchs_batches(root):
    """With torch's own collate, and a batch without targets of different sizes."""
    wrapped = wrap(datasets.VOCSegmentation(str(root), transforms=SMALL))
    ours, theirs = stoker.DataLoader(wrapped, batch_size=3), torch.utils.data.DataLoader(wrapped, batch_size=3)
    assert ours.native
    for a, b in zip(ours, theirs, strict=True):
        assert within_one_level(a, b)


def test_wrapped_voc_and_pets_are_read_in_c(root):
    same_samples(wrap(datasets.VOCDetection(str(root), transforms=WHOLE)), True)
    same_samples(wrap(datasets.VOCDetection(str(root), transforms=WHOLE), target_keys="all"), True)
    same_samples(wrap(datasets.VOCSegmentation(str(root), transforms=SMALL)), True)
    same_samples(wrap(datasets.VOCSegmentation(str(root), image_set="val", transforms=MASKS)), True)
    for types in ("segmentation", ["category", "segmentation"]):
        same_samples(wrap(datasets.OxfordIIITPet(str(root), target_types=types, transforms=SMALL)), True)


def test_integer_boxes_stay_integers(root):
    """torchvision cuts fractions off whenever it resizes them."""
    to_float = v2.ToDtype(torch.float32, scale=True)
    sizes = joint(v2.ToImage(), v2.Pad(3), v2.Resize(37, max_size=50), v2.RandomHorizontalFlip(1), to_float)
    for transforms_ in (SMALL, sizes):
        same_samples(wrap(datasets.VOCDetection(str(root), transforms=transforms_)), True, "WholeBoundingBoxes")
        same_samples(with_boxes(root, transforms_, 0.25), True, "WholeBoundingBoxes")
        same_samples(with_boxes(root, transforms_, 0.0), False, "others only floats without a fraction")


def test_presets_of_integer_boxes_are_made_in_c(root):
    """As in torchvision/references/detection: ssd, ssdlite, multiscale."""
    jitter = v2.RandomApply([v2.ColorJitter(0.3)])
    ends = [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()]
    for steps in (
        [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=[123, 117, 104]), v2.RandomIoUCrop(), v2.Resize(40)],
        [jitter, v2.RandomShortestSize([30, 40], max_size=60)],
        [v2.ScaleJitter((40, 40)), v2.RandomCrop(20, pad_if_needed=True)],
    ):
        dataset = datasets.VOCDetection(str(root), transforms=joint(v2.ToImage(), *steps, *ends))
        loader = stoker.DataLoader(wrap(dataset), batch_size=3, collate_fn=pairs)
        assert loader.native, loader.explain()
        _, targets = next(iter(loader))
        assert targets[0]["boxes"].dtype == torch.int64


def with_boxes(root, transforms_, fraction):
    """Every other image has integers."""
    some = coco(root, transforms=transforms_)
    for one in some.coco.anns.values():
        one["bbox"] = [int(v) if one["image_id"] % 2 else int(v) + fraction for v in one["bbox"]]
    return wrap(some)


def test_transforms_v2_of_plain_targets(root):
    """They change the image only: numbers and text are passed on."""
    same_samples(coco(root, transforms=SMALL), True)
    same_samples(datasets.VOCDetection(str(root), transforms=SMALL), True)
    same_samples(datasets.OxfordIIITPet(str(root), transforms=SMALL), True)


def test_temporary_files_are_removed(root, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    loader = stoker.DataLoader(wrap(coco(root, transforms=SMALL)), batch_size=3, collate_fn=pairs)
    assert loader.native and len(list(tmp_path.iterdir())) == 1
    list(loader)
    loader.close()
    del loader
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_what_runs_in_python_says_why(root):
    same_samples(coco(root, More, transform=SIZED), False, "it has a __getitem__ or __len__ of its own")
    same_samples(
        datasets.VOCSegmentation(str(root), transforms=SMALL), False, "its transforms change image and target together"
    )
    turned = joint(v2.ToImage(), v2.RandomRotation((9, 9)), v2.Resize((32, 48)))
    same_samples(wrap(datasets.VOCDetection(str(root), transforms=turned)), False, "some boxes are integers")
    own = joint(v2.ToImage(), v2.Lambda(lambda x: x), v2.Resize((32, 48)))
    same_samples(wrap(coco(root, transforms=own)), False, "no op for Lambda: a function of your own")
    wrapped = wrap(coco(root, transforms=own), target_keys=("boxes", "masks"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = stoker.DataLoader(wrapped, batch_size=4, collate_fn=pairs, num_workers=2)
        targets = [t for _, batch in loader for t in batch]
    assert any(type(t.get("boxes")) is tv_tensors.BoundingBoxes for t in targets)
    loader.close()


def test_loader_reads_coco_objects_in_c(root):
    loader = stoker.Loader(coco(root), "Resize((32, 48))", batch_size=12, output="torch", dtype="uint8")
    assert "COCO annotations" in loader.explain() and "python" not in loader.explain()
    files = stoker.Loader(
        root / "coco/annotations/instances_val.json", "Resize((32, 48))", batch_size=12, output="torch", dtype="uint8"
    )
    (batch,), (wanted,) = loader, files
    assert batch._fields == wanted._fields and loader.classes == files.classes == ["person", "car", "dog"]
    assert torch.equal(batch.image, wanted.image) and torch.equal(batch.boxes.values, wanted.boxes.values)
    wrapped = wrap(coco(root, transforms=SMALL), target_keys=("boxes", "masks", "image_id"))
    (batch,) = stoker.Loader(wrapped, fields="image, boxes, masks, image_id", batch_size=12, output="torch")
    for i, (_, target) in enumerate(wrapped):
        assert int(batch.image_id[i]) == target["image_id"]
        if "boxes" in target:
            assert torch.allclose(batch.boxes[i], target["boxes"].float(), atol=1e-3)  # left, top, right, bottom
            assert torch.equal(batch.masks[i], target["masks"])
    plain = stoker.Loader(wrap(coco(root)), "Resize((32, 48))", batch_size=12, output="torch", fields="boxes, image")
    x, y, w, h = wanted.boxes.values.T
    torch.testing.assert_close(next(iter(plain)).boxes.values, torch.stack([x, y, x + w, y + h], 1))
    people = str(root / "coco/annotations/person_keypoints_val.json")
    points = datasets.CocoDetection(str(root / "coco/val"), people)
    points.ids = points.ids[::-1]
    (batch,) = stoker.Loader(points, "RandomHorizontalFlip(1)", sizes="list", batch_size=4, output="torch")
    assert batch.keypoints[0].shape == (1, 17, 3) and batch.image_id.tolist() == points.ids


def test_loader_reads_images_of_different_sizes_in_c(root, photos):
    def boxes():
        return wrap(datasets.VOCDetection(str(root), transforms=joint(v2.ToImage(), v2.Resize(30))))

    (batch,) = stoker.Loader(boxes(), batch_size=4, output="torch", dtype="uint8", sizes="list")
    assert [image.shape for image in batch.image] == [image.shape for image, _ in boxes()]
    folder = stoker.Loader(datasets.ImageFolder(photos, v2.Resize(30)), batch_size=4, sizes="pad")
    assert "python" not in folder.explain()
    assert 'set sizes="pad" or sizes="list"' in stoker.Loader(boxes(), batch_size=4).explain()


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
