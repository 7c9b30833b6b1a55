# SPDX-License-Identifier: Apache-2.0
"""Ops that rotate, distort, blur and add noise: torchvision's pixels with the same draws, and its distributions."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()

import torch  # noqa: E402
from PIL import Image  # noqa: E402
from replay import apart, rare, replay  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

FILTERS = ("nearest", "bilinear", "bicubic")
EXACT = {
    "RandomAffine(0, translate=(0.5, 0.5))": {},
    "RandomAffine((0, 0), scale=(0.3, 3))": {},
    "RandomAffine(40, (0.2, 0.3), (0.5, 2), (-20, 20, -30, 30), fill=(1, 2, 3))": {"fill": (1, 2, 3)},
    "RandomAffine(40, shear=30, center=(0, 0), fill=9)": {"fill": 9, "center": [0, 0]},
    "Grayscale | RandomAffine(90, (0.2, 0.3), interpolation=bilinear, fill=8)": {
        "fill": 8,
        "interpolation": "bilinear",
    },
    "RandomRotation((90, 90), bicubic)": {"interpolation": "bicubic"},
    "RandomRotation((180, 180)) | RandomRotation((-90, -90)) | RandomRotation((270, 270)) | RandomRotation(0)": {},
    "RandomRotation(180, center=(3, 5.5), fill=100)": {"fill": 100, "center": [3, 5.5]},
    "RandomRotation(45, expand=True, fill=7) | CenterCrop(40)": {"fill": 7, "expand": True},
    "RandomRotation((90, 90), expand=True) | CenterCrop((20, 40))": {"expand": True},
    "RandomHorizontalFlip | RandomRotation(180) | RandomVerticalFlip | CenterCrop(20)": {},
    "RandomPerspective(1, p=1) | RandomRotation(20, bilinear)": {"interpolation": "bilinear"},
    "Grayscale | RandomPerspective(0.8)": {},
    "JPEG(30)": {},
    "Grayscale | JPEG((1, 100)) | RandomHorizontalFlip | CenterCrop(20)": {},
    "GaussianNoise": {},
    "GaussianNoise(0.1, 0.5) | RandomHorizontalFlip": {"mean": 0.1, "deviation": 0.5},
    "Grayscale | GaussianNoise(-0.2, 0.2, clip=False)": {"mean": -0.2, "deviation": 0.2, "clip": False},
    "RandomZoomOut(fill=(9, 8, 7), p=0.7) | CenterCrop(50)": {"fill": (9, 8, 7)},
    "ScaleJitter((40, 60)) | CenterCrop(30)": {},
    "ScaleJitter((40, 60), (0.5, 1), bicubic) | CenterCrop(30)": {"interpolation": "bicubic"},
    "RandomShortestSize((20, 25, 30), 40) | CenterCrop(30)": {},
    "RandomResize(10, 60) | CenterCrop(30)": {},
}
for mode in FILTERS:
    EXACT[f"RandomRotation(180, {mode}, fill=(9, 8, 7))"] = {"interpolation": mode, "fill": (9, 8, 7)}
    EXACT[f"RandomAffine(180, (0.2, 0.2), (0.2, 4), 40, {mode})"] = {"interpolation": mode}
    EXACT[f"RandomPerspective(0.7, 1, {mode}, 55)"] = {"interpolation": mode, "fill": 55}
NEAR = {
    "GaussianBlur(5)": {},
    "GaussianBlur((9, 3), (0.5, 4)) | RandomHorizontalFlip | CenterCrop(20)": {"kernel": (9, 3)},
    "Grayscale | GaussianBlur(23, 2)": {"kernel": 23},
    "ElasticTransform(sigma=2)": {"sigma": 2.0},
    "ElasticTransform(200, (1, 2), fill=(200, 100, 50))": {"alpha": 200.0, "sigma": (1.0, 2.0), "fill": [200, 100, 50]},
    "ElasticTransform((30, 60), 0)": {"alpha": (30.0, 60.0), "sigma": 0.0},
    "Grayscale | ElasticTransform(80, 2.4, fill=9)": {"alpha": 80.0, "sigma": 2.4, "fill": [9]},
}


def compared(folder, ops, keywords, bound, epochs):
    loader = stoker.Loader(folder, "CenterCrop((40, 52)) | " + ops, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(epochs):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(folder), seen.image, seen.drawn, strict=True):
            theirs = replay(image, drawn, **keywords)
            assert theirs.shape == row.shape
            assert (theirs.int() - row.int()).abs().max() <= bound, drawn


@pytest.mark.parametrize("ops", EXACT)
def test_the_same_numbers_give_the_same_bytes(noise, ops):
    compared(noise, ops, EXACT[ops], 0, 6)


@pytest.mark.parametrize("ops", NEAR)
def test_the_same_numbers_give_nearly_the_same_bytes(noise, ops):
    compared(noise, ops, NEAR[ops], 1, 3)


@pytest.mark.parametrize("mode", ["nearest", "bicubic"])
def test_other_filters_along_a_field(noise, mode):
    """torch rounds points halfway between pixels by chance, and wraps what is below 0 and above 255."""
    ops = f"CenterCrop(40) | ElasticTransform(60, 2, {mode})"
    loader = stoker.Loader(noise, ops, dtype="uint8", batch_size=8, output="torch")
    seen = loader.get(range(8))
    for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
        theirs = replay(image, drawn, alpha=60.0, sigma=2.0, interpolation=mode)
        far = (theirs.int() - row.int()).abs() > 1
        far &= (row != 0) & (row != 255)
        assert far.float().mean() < (0.003 if mode == "nearest" else 1e-9)


ODD = [(1, 1), (1, 7), (9, 1), (2, 2), (3, 3), (4, 5), (4100, 5), (3, 5001), (64, 65)]


@pytest.mark.parametrize("shape", ODD)
def test_odd_sizes(shape):
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    maps = [f"RandomRotation(180, {f})" for f in FILTERS] + [
        f"RandomAffine(60, (1, 1), (0.3, 3), 50, {f})" for f in FILTERS
    ]
    maps += [f"RandomPerspective(0.3, 1, {f})" for f in FILTERS] if min(shape) > 3 else []
    for ops in [*maps, "GaussianNoise", "JPEG((1, 100))", *(["GaussianBlur(3)"] if min(shape) > 1 else [])]:
        loader = stoker.Loader({"image": pixels}, ops, dtype="uint8", output="torch")
        words = {"interpolation": next((f for f in FILTERS if f in ops), "nearest"), "kernel": 3}
        for epoch in range(2):
            seen = loader.get([0], epoch=epoch)
            theirs = replay(Image.fromarray(pixels[0]), seen.drawn[0], **words)
            assert (theirs.int() - seen.image[0].int()).abs().max() <= ("Blur" in ops), (ops, seen.drawn)


PHOTOS = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "photos")


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="STOKER_TEST_DATA has no photos")
def test_photos(tmp_path):
    """Whole photos, where many values are near a whole number."""
    for path in sorted(PHOTOS.glob("*/*"))[::97][:6]:
        shutil.copy(path, tmp_path)
    for ops, words in {
        "RandomRotation(30, bilinear)": {"interpolation": "bilinear"},
        "RandomPerspective(p=1)": {},
        "RandomAffine(20, scale=(0.8, 1.2), interpolation=bicubic)": {"interpolation": "bicubic"},
    }.items():
        loader = stoker.Loader(tmp_path, ops, dtype="uint8", output="torch", exif=False)
        for i, image in enumerate(pillow_images(tmp_path)):
            seen = loader.get([i])
            assert torch.equal(replay(image, seen.drawn[0], **words), seen.image[0])


@pytest.mark.parametrize(
    ("ops", "shape", "words"),
    [
        ("GaussianBlur(9)", (4, 30), "longer than half of kernel_size"),
        ("ElasticTransform", (20, 30), "longer than 4 times sigma"),
        ("RandomPerspective(p=1)", (1, 30), "corners do not define a perspective"),
        ("ScaleJitter((1, 1), (0.01, 0.02)) | CenterCrop(9)", (30, 30), "one side would become 0"),
    ],
)
def test_images_that_are_too_small(ops, shape, words):
    loader = stoker.Loader({"image": np.zeros((1, *shape, 3), np.uint8)}, ops, dtype="uint8", output="numpy")
    with pytest.raises(stoker.DataError, match=words):
        next(iter(loader))


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ("RandomRotation", "needs its argument degrees"),
        ("RandomRotation(-3)", "not negative"),
        ("RandomRotation((30, 10))", "the smaller number first"),
        ("RandomRotation(30, lanczos)", "nearest, bilinear or bicubic"),
        ("RandomRotation(30, center=5)", "\\(x, y\\) in pixels"),
        ("RandomRotation(30, expand=True)", "can differ in size"),
        ("RandomAffine(3, translate=(0.1, 2))", "from 0 to 1"),
        ("RandomAffine(3, scale=(0, 2))", "above 0"),
        ("RandomAffine(3, shear=(1, 2, 3))", "degrees"),
        ("RandomPerspective(2)", "from 0 to 1"),
        ("GaussianBlur(4)", "an odd number"),
        ("GaussianBlur(5, (2, 1))", "a number above 0"),
        ("JPEG(0)", "from 1 to 100"),
        ("GaussianNoise(sigma=-1)", "from 0 to 10"),
        ("ElasticTransform(sigma=(0, 3))", "sigma has one 0"),
        ("RandomZoomOut(side_range=(0.5, 2))", "from 1 to 1000"),
        ("RandomResize(30, 30)", "must be larger than min_size"),
        ("ScaleJitter(30)", "two whole numbers"),
        ("Grayscale | RandomRotation(3, fill=(1, 2, 3))", "fill has 3 numbers"),
        ("ToTensor | GaussianBlur(3)", "comes after ToTensor"),
    ],
)
def test_arguments_that_are_refused(noise, ops, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(noise, "CenterCrop(30) | " + ops, batch_size=2, dtype=None if "ToTensor" in ops else "uint8")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("ops", "theirs"),
    [
        ("FiveCrop(20)", v1.FiveCrop(20)),
        ("TenCrop((9, 30))", v1.TenCrop((9, 30))),
        ("TenCrop(33, vertical_flip=True)", v1.TenCrop(33, vertical_flip=True)),
    ],
)
def test_five_and_ten_crops(noise, ops, theirs, layout):
    text = f"Resize(40) | {ops} | RandomHorizontalFlip(1)"
    loader = stoker.Loader(noise, text, batch_size=3, dtype="uint8", output="torch", layout=layout)
    images = [v1.Compose([v1.Resize(40), theirs])(image) for image in pillow_images(noise)]
    for k, batch in enumerate(loader):
        for i, row in enumerate(batch.image):
            wanted = torch.stack([v1.functional.pil_to_tensor(v1.functional.hflip(c)) for c in images[3 * k + i]])
            assert torch.equal(row if layout == "NCHW" else row.permute(0, 3, 1, 2), wanted)
    views = loader.get([1]).drawn[0]["views"]
    assert [v["copy"] for v in views] == list(range(len(images[0])))
    assert "flip" in views[0]["ops"][1] or ops.startswith("Five")


def test_crops_that_are_refused(noise):
    for ops, words in {
        "FiveCrop(9) | TenCrop(4)": "already several crops",
        "RandomApply([FiveCrop(9)])": "cannot be inside",
        "FiveCrop(20) | RandomRotation(20, expand=True)": "must have one size|can differ in size",
    }.items():
        with pytest.raises(stoker.UsageError, match=words):
            stoker.Loader(noise, "CenterCrop(30) | " + ops, dtype="uint8")
    with pytest.raises(stoker.DataError, match="fewer than the crop"):
        next(iter(stoker.Loader(noise, "CenterCrop(8) | FiveCrop(9)", dtype="uint8")))


# ---------------------------------------------------------------- distributions

N = 8000


def drawn_here(ops, height=300, width=400):
    blank = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (N, height, width, 3))
    with stoker.Loader({"image": blank}, ops + " | CenterCrop(9)", output="numpy", sampler=[0]) as loader:
        return [row["ops"][0] for row in loader.drawn(range(N), epoch=0)]


def drawn_there(transform, *names, height=300, width=400):
    image = Image.new("RGB", (width, height))
    rows = [transform.make_params([image]) for _ in range(N)]
    return [np.array([row[name] for row in rows]) for name in names]


def alike(ours, theirs):
    ours, theirs = np.asarray(ours, float).reshape(N, -1), np.asarray(theirs, float).reshape(N, -1)
    for a, b in zip(ours.T, theirs.T, strict=True):
        assert apart(a, b) < rare(N)


def test_angles_shifts_scales_and_shears():
    torch.manual_seed(1)
    alike(
        [d["angle"] for d in drawn_here("RandomRotation((-20, 70))")],
        drawn_there(v2.RandomRotation((-20, 70)), "angle")[0],
    )
    names = ("angle", "translate", "scale", "shear")
    rows = drawn_here("RandomAffine(30, (0.1, 0.4), (0.5, 2), (-10, 20, -30, 5))")
    theirs = drawn_there(v2.RandomAffine(30, (0.1, 0.4), (0.5, 2), (-10, 20, -30, 5)), *names)
    for name, column in zip(names, theirs, strict=True):
        alike([d[name] for d in rows], column)


def test_corners_sigmas_and_sizes():
    torch.manual_seed(2)
    rows = drawn_here("RandomPerspective(0.6, p=1)")
    alike([d["coefficients"] for d in rows], drawn_there(v2.RandomPerspective(0.6), "coefficients")[0])
    share = np.mean([d["applied"] for d in drawn_here("RandomPerspective(p=0.3)")])
    assert abs(share - 0.3) < 4 * (0.21 / N) ** 0.5
    alike([d["sigma"] for d in drawn_here("GaussianBlur(5)")], drawn_there(v2.GaussianBlur(5), "sigma")[0][:, 0])
    alike([d["padding"] for d in drawn_here("RandomZoomOut(p=1)")], drawn_there(v2.RandomZoomOut(), "padding")[0])
    for ops, theirs in {
        "ScaleJitter((200, 300))": v2.ScaleJitter((200, 300)),
        "RandomShortestSize((100, 200, 150), 220)": v2.RandomShortestSize([100, 200, 150], 220),
    }.items():
        alike([d["size"] for d in drawn_here(ops)], drawn_there(theirs, "size")[0])
    qualities = np.bincount([d["quality"] for d in drawn_here("JPEG((3, 6))")], minlength=8)
    assert qualities[:3].sum() == 0 and qualities[7:].sum() == 0
    assert ((qualities[3:7] - N / 4) ** 2 / (N / 4)).sum() < 16.3
    sizes = [min(d["size"]) for d in drawn_here("RandomResize(5, 9)")]
    counts = np.bincount(sizes, minlength=10)
    assert counts[:5].sum() == 0 and counts[9:].sum() == 0
    assert ((counts[5:9] - N / 4) ** 2 / (N / 4)).sum() < 16.3  # chi-square, 3 degrees of freedom, one in a thousand


def test_fields_of_noise():
    normal = stoker.noise(3, (100_000,)).astype(float)
    uniform = stoker.noise(3, (100_000,), "uniform")
    expected = np.random.default_rng(1)
    assert apart(normal, expected.normal(size=100_000)) < rare(100_000)
    assert apart(uniform, expected.random(100_000)) < rare(100_000)
    assert abs(np.corrcoef(normal[:-1], normal[1:])[0, 1]) < 0.02
    assert (stoker.noise(3, (5, 4)) == normal[:20].astype(np.float32).reshape(5, 4)).all()
    assert (stoker.noise(4, (20,)) != normal[:20].astype(np.float32)).any()
    with pytest.raises(stoker.UsageError, match="must be"):
        stoker.noise(1, (3,), "pink")


# ---------------------------------------------------------------- conversion

CONVERTED = [
    ("RandomRotation((-30.0, 30.0))", lambda t: t.RandomRotation(30)),
    (
        "RandomRotation((10.0, 20.0), interpolation=bilinear, center=(1.0, 2.0), fill=(1, 2, 3))",
        lambda t: t.RandomRotation((10.0, 20.0), v1.InterpolationMode.BILINEAR, center=(1, 2), fill=(1, 2, 3)),
    ),
    (
        "RandomAffine((-5.0, 5.0), translate=(0.1, 0.2), scale=(0.5, 2), shear=(-3.0, 3.0))",
        lambda t: t.RandomAffine(5, (0.1, 0.2), (0.5, 2), 3),
    ),
    ("RandomPerspective(distortion_scale=0.3, p=0.2, fill=4)", lambda t: t.RandomPerspective(0.3, 0.2, fill=4)),
    ("ElasticTransform(alpha=(20.0, 20.0), sigma=(5.0, 5.0))", lambda t: t.ElasticTransform(20.0)),
    ("GaussianBlur((5, 9), sigma=(1.0, 1.5))", lambda t: t.GaussianBlur((5, 9), (1.0, 1.5))),
]


@pytest.mark.parametrize("library", [v1, v2])
@pytest.mark.parametrize(("text", "make"), CONVERTED)
def test_conversion(library, text, make):
    ops = stoker.convert_transform(library.Compose([make(library)]))
    assert [str(op) for op in ops] == [text]
    stoker.Loader({"image": np.zeros((1, 64, 64, 3), np.uint8)}, make(library), dtype="uint8").peek()


def test_conversion_of_v2_only():
    steps = [
        v2.RandomZoomOut(9, (1, 2)),
        v2.ScaleJitter((50, 60)),
        v2.RandomShortestSize([20, 30], 99),
        v2.RandomResize(9, 20),
    ]
    ops = stoker.convert_transform(v2.Compose([*steps, v2.ToImage(), v2.GaussianNoise(sigma=0.2), v2.JPEG((20, 60))]))
    assert [str(op) for op in ops] == [
        "RandomZoomOut(fill=9, side_range=(1, 2))",
        "ScaleJitter((50, 60))",
        "RandomShortestSize((20, 30), max_size=99)",
        "RandomResize(9, 20)",
        "GaussianNoise(sigma=0.2)",
        "JPEG((20, 60))",
    ]


def test_tensors_follow_torch():
    """torch samples tensors in its own way, which has ops as well; not all of it."""
    bicubic = v2.InterpolationMode.BICUBIC
    steps = (
        v2.RandomRotation(3),
        v2.RandomAffine(3),
        v2.RandomPerspective(),
        v2.GaussianBlur(3),
        v2.ElasticTransform(),
    )
    for step in steps:
        ops = stoker.convert_transform(v2.Compose([v2.ToImage(), step]))
        assert not any(isinstance(op, stoker.Lambda) for op in ops)
    for step in (v2.RandomRotation(3, expand=True), v2.RandomPerspective(interpolation=bicubic)):
        ops = stoker.convert_transform(v2.Compose([v2.ToImage(), step]))
        assert isinstance(ops[-1], stoker.Lambda)
