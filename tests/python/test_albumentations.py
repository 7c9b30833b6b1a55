# SPDX-License-Identifier: Apache-2.0
"""Pipelines of albumentations in datasets and in loaders: each sample has its own seed."""

import os

import numpy as np
import pytest
import stoker

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask its server
torch = pytest.importorskip("torch", reason="torch is not installed")
A = pytest.importorskip("albumentations", reason="albumentations is not installed")

PIPELINE = [A.RandomBrightnessContrast(p=1), A.GaussNoise(p=0.5), A.CoarseDropout(p=0.5)]


class Grey(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = A.Compose(PIPELINE)

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return self.transform(image=np.full((8, 8, 3), 9 * i + 60, np.uint8))["image"], i


def rows(loader, epochs=2):
    """The samples by index and epoch, whatever their order."""
    pairs = [(e, batch) for e in range(epochs) for batch in loader]
    return {(e, int(i)): x.numpy().tobytes() for e, (xs, ys) in pairs for x, i in zip(xs, ys, strict=True)}


def test_rows_of_a_dataset_do_not_depend_on_workers():
    found = []
    for workers in (0, 1, 3):
        torch.manual_seed(3)
        found.append(rows(stoker.DataLoader(Grey(), batch_size=4, num_workers=workers)))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0].values())) == 24  # other draws for each sample and epoch


def loader_of(photos, *transform, **k):
    options = {"batch_size": 4, "layout": "NHWC", "dtype": "uint8", "output": "torch", **k}
    return stoker.Loader(photos, ["CenterCrop(16)", *transform], **options)


def images_of(loader, epochs=2):
    return [x.tobytes() for _ in range(epochs) for xs, _ in loader for x in np.asarray(xs)]


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_a_pipeline_follows_ops(photos, output):
    first = images_of(loader_of(photos, A.Compose(PIPELINE), output=output))
    again = images_of(loader_of(photos, A.Compose(PIPELINE), output=output, batch_size=3, threads=2))
    assert first == again and len(set(first)) == 24
    plain = images_of(loader_of(photos, A.Compose([A.HorizontalFlip(p=1)]), output=output), 1)
    expected = [x[:, ::-1].tobytes() for xs, _ in loader_of(photos, output="numpy") for x in xs]
    assert plain == expected


def test_a_single_transform_and_another_shape(photos):
    from albumentations.pytorch import ToTensorV2

    batch = next(iter(loader_of(photos, A.Compose([A.Normalize(), ToTensorV2()]))))
    assert batch.image.shape == (4, 3, 16, 16) and batch.image.dtype == torch.float32
    native = stoker.Loader(photos, "CenterCrop(16) | Normalize", batch_size=4, output="torch")
    assert torch.allclose(batch.image, next(iter(native)).image, atol=1e-5)
    assert next(iter(loader_of(photos, A.VerticalFlip(p=1)))).image.shape == (4, 16, 16, 3)


def test_the_other_layout_is_refused(photos):
    with pytest.raises(stoker.Error, match="layout='NHWC'"):
        loader_of(photos, A.Compose(PIPELINE), layout="NCHW")


# ---------------------------------------------------------------- pipelines that become ops

SAME = {  # at most one level apart, for every photo
    "Resize((31, 40), antialias=False)": A.Resize(31, 40),
    "Resize((9, 5), interpolation=nearest)": A.Resize(9, 5, interpolation=6),
    "CenterCrop((20, 20))": A.Compose([A.Resize(24, 32), A.CenterCrop(20, 20)]),
    "Pad((1, 2, 3, 4), fill=7)": A.Compose([A.Resize(24, 32), A.Pad((1, 2, 3, 4), fill=7)]),
    "Pad(3, padding_mode=reflect)": A.Compose([A.Resize(24, 32), A.Pad(3, border_mode=4)]),
    "RandomHorizontalFlip(p=1.0)": A.HorizontalFlip(p=1),
    "RandomVerticalFlip(p=1.0)": A.VerticalFlip(p=1),
    "RandomGrayscale(p=1.0)": A.ToGray(p=1),
    "RandomInvert(p=1.0)": A.InvertImg(p=1),
    "RandomPosterize(3, p=1.0)": A.Posterize(3, p=1),
    "RandomSolarize(128, p=1.0)": A.Solarize((0.5, 0.5), p=1),
    "GaussianBlur(5, sigma=(1.5, 1.5))": A.GaussianBlur((5, 5), (1.5, 1.5), p=1),
    "ColorJitter(brightness=(1.3, 1.3)": A.ColorJitter((1.3, 1.3), (1, 1), (1, 1), (0, 0), p=1),
    "contrast=(0.7, 0.7)": A.ColorJitter((1, 1), (0.7, 0.7), (1, 1), (0, 0), p=1),
    "saturation=(1.5, 1.5)": A.ColorJitter((1, 1), (1, 1), (1.5, 1.5), (0, 0), p=1),
}


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(4).integers(0, 256, (6, 24, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("text", SAME)
def test_pixels_are_the_same_within_one_level(images, text):
    loader = stoker.Loader({"image": images}, SAME[text], batch_size=6, output="numpy")
    assert text in str(loader) and "on each image" not in loader.explain()
    for image, row in zip(images, next(iter(loader)).image, strict=True):
        assert np.abs(SAME[text](image=image)["image"].astype(int) - row).max() <= 1


def test_a_whole_recipe_becomes_ops(photos):
    from albumentations.pytorch import ToTensorV2

    steps = [A.RandomResizedCrop((16, 16)), A.HorizontalFlip(), A.ColorJitter(hue=(0, 0)), A.Normalize(), ToTensorV2()]
    loader = stoker.Loader(photos, A.Compose(steps), batch_size=4, output="torch")
    assert "on each image" not in loader.explain() and "RandomApply([ColorJitter" in str(loader)
    batch = next(iter(loader)).image
    assert batch.shape == (4, 3, 16, 16) and batch.dtype == torch.float32
    again = stoker.Loader(photos, A.Compose(steps[:3]), batch_size=4, output="torch")
    assert next(iter(again)).image.shape == (4, 16, 16, 3) and next(iter(again)).image.dtype == torch.uint8


def test_choices_keep_their_chances(images):
    one_of = A.OneOf([A.InvertImg(p=0.9), A.ToGray(p=0.3)])
    text = str(stoker.Loader({"image": images}, one_of))
    assert "RandomApply([RandomChoice([RandomInvert(p=1.0), RandomGrayscale(p=1.0)], p=(0.75, 0.25))])" in text


def test_the_rest_runs_in_python_and_says_why(images):
    drop = A.Compose([A.HorizontalFlip(p=1), A.CoarseDropout(p=1), A.Normalize()])
    sized = A.Compose([A.Resize(20, 20), *drop.transforms])
    loader = stoker.Loader({"image": images}, sized, batch_size=6, output="numpy")
    words = f"{loader}\n{loader.explain()}"
    assert "Resize((20, 20), antialias=False) | RandomHorizontalFlip(p=1.0)" in words
    assert "no op for CoarseDropout: no op has the same result" in words
    assert next(iter(loader)).image.dtype == np.float32
    for step, why in {
        A.ColorJitter(p=1): "only 180 hues",
        A.CenterCrop(9, 9): "the size before it is not fixed",
        A.Resize(9, 9, interpolation=2): "INTER_LINEAR",
        A.Posterize((2, 5)): "no op draws this argument",
        A.GaussianBlur((601, 601), p=1): "kernel_size: found 601",
    }.items():
        assert why in stoker.Loader({"image": images}, step, layout="NHWC", dtype="uint8", output="numpy").explain()


# ---------------------------------------------------------------- boxes and keypoints

MOVES = [
    [A.HorizontalFlip(p=1)],
    [A.VerticalFlip(p=1), A.Resize(40, 60)],
    [A.Resize(64, 64), A.CenterCrop(32, 40), A.InvertImg(p=1)],
    [A.Pad(7), A.Resize(30, 50), A.HorizontalFlip(p=1)],
]
FORMATS = ["pascal_voc", "coco", "yolo", "albumentations"]


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    pytest.importorskip("pycocotools")
    import coco_tree

    path = coco_tree.coco(tmp_path_factory.mktemp("boxes"))
    coco_tree.people(path.parent.parent)
    return path


def in_format(boxes, form, w, h):
    """Boxes of COCO's file in another format."""
    x, y, wide, high = boxes.T
    if form == "coco":
        return boxes
    if form == "yolo":
        return np.stack([(x + wide / 2) / w, (y + high / 2) / h, wide / w, high / h], 1)
    corners = np.stack([x, y, x + wide, y + high], 1)
    return corners if form == "pascal_voc" else corners / [w, h, w, h]


def compare_boxes(coco, steps, form, **k):
    """Returns how many boxes are left."""
    pipeline = A.Compose(steps, bbox_params=A.BboxParams(form, label_fields=["labels"], **k))
    loader = stoker.Loader(coco, pipeline, sizes="list", batch_size=12, output="numpy")
    assert "on each image" not in loader.explain()
    (batch,) = loader
    (plain,) = stoker.Loader(coco, sizes="list", batch_size=12, layout="NHWC", dtype="uint8", output="numpy")
    for i, image in enumerate(plain.image):
        h, w = image.shape[:2]
        boxes = in_format(np.asarray(plain.boxes[i], np.float64), form, w, h)
        theirs = pipeline(image=image, bboxes=boxes, labels=plain.labels[i])
        assert np.abs(theirs["image"].astype(int) - batch.image[i]).max() <= 1
        assert np.asarray(theirs["labels"]).astype(int).tolist() == batch.labels[i].tolist()
        wanted = np.asarray(theirs["bboxes"], np.float64).reshape(-1, 4)
        assert np.allclose(wanted, batch.boxes[i], atol=1e-3 if form in FORMATS[:2] else 1e-5), (wanted, batch.boxes[i])
    return len(batch.boxes.values)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("n", range(len(MOVES)))
@pytest.mark.parametrize("least", [{}, {"min_area": 300, "min_width": 9, "min_height": 9}])
def test_boxes_are_albumentations(coco, form, n, least):
    compare_boxes(coco, MOVES[n], form, **least)


CROPS = [A.Resize(64, 64), A.CenterCrop(48, 56), A.CenterCrop(32, 32), A.HorizontalFlip(p=1)]


def test_boxes_that_are_cut_too_much_are_removed(coco):
    """After each step, of what the step before left; or after the last one, of the whole box."""
    left = [compare_boxes(coco, CROPS, "coco", min_visibility=v) for v in (0.0, 0.3, 0.6, 0.9)]
    assert left[0] > left[1] > left[2] > left[3] > 0
    k = {"check_each_transform": False}
    at_the_end = [compare_boxes(coco, CROPS, "yolo", min_visibility=v, **k) for v in (0.3, 0.6, 0.9)]
    assert sum(at_the_end) < sum(left[1:])
    compare_boxes(coco, CROPS, "coco", min_visibility=0.6, clip=True, filter_invalid_bboxes=True)


def test_small_boxes_are_removed_without_a_step_that_moves_them(coco):
    assert compare_boxes(coco, [A.InvertImg(p=1)], "coco", min_area=300) < compare_boxes(coco, [A.NoOp()], "coco")


def test_keypoints_follow(coco):
    people = coco.with_name("person_keypoints_val.json")
    steps = [A.HorizontalFlip(p=1), A.Resize(30, 50)]
    pipeline = A.Compose(steps, keypoint_params=A.KeypointParams("xy", remove_invisible=False))
    (batch,) = stoker.Loader(people, pipeline, batch_size=4, output="numpy", fields="image, keypoints")
    (plain,) = stoker.Loader(people, sizes="list", batch_size=4, layout="NHWC", dtype="uint8", output="numpy")
    for i, image in enumerate(plain.image):
        theirs = pipeline(image=image, keypoints=plain.keypoints[i][0, :, :2])["keypoints"]
        assert np.allclose(theirs, batch.keypoints[i][0, :, :2], atol=1e-3)


@pytest.mark.parametrize(
    "pipeline, why",
    [
        (A.Compose([A.HorizontalFlip()], bbox_params=A.BboxParams("coco", max_accept_ratio=3)), "max_accept_ratio"),
        (A.Compose([A.Pad(9)], bbox_params=A.BboxParams("coco", check_each_transform=False)), "check_each_transform"),
        (A.Compose([A.HorizontalFlip()], keypoint_params=A.KeypointParams("xya")), "x and y"),
        (A.Compose([A.Rotate()], bbox_params=A.BboxParams("coco")), "Rotate"),
    ],
)
def test_boxes_that_cannot_follow(coco, pipeline, why):
    with pytest.raises(stoker.UsageError, match=why):
        stoker.Loader(coco, pipeline, sizes="list")


def test_images_of_different_sizes_need_a_crop_first(photos):
    with pytest.raises(stoker.UsageError, match=r"no op for SmallestMaxSize: .*needs images of one size"):
        stoker.Loader(photos, A.Compose([A.SmallestMaxSize(30), A.CenterCrop(20, 20)]))
