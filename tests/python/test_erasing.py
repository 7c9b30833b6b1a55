# SPDX-License-Identifier: Apache-2.0
"""RandomErasing gives torchvision's and timm's floats with the same draws, and draws alike."""

import random

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()

import torch  # noqa: E402
from replay import apart, rare, replay, within_one_unit  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

CROP = "RandomResizedCrop(24) | RandomHorizontalFlip | "
REPLAYED = {
    "ToTensor | RandomErasing(1)": {},
    "ToTensor | Normalize | RandomErasing(0.7)": {},
    "ToTensor | Normalize | RandomErasing(1, value=(0.1, 0.2, -3))": {"value": (0.1, 0.2, -3)},
    "ToTensor | Normalize | RandomErasing(1, value=random)": {},
    "ToTensor | RandomErasing(1, value=random) | Normalize": {},
    "ToTensor | RandomErasing(1, value=0.3) | Normalize": {"value": 0.3},
    "ToTensor | Normalize | RandomErasing(1, value=color, count=(1, 4))": {},
    "Grayscale | ToTensor | RandomErasing(1, value=random)": {},
    "ToTensor | RandomErasing(1, scale=(0.9, 1), ratio=(1, 1))": {},
    "ToTensor | RandomErasing(1, scale=(0, 0))": {},
    "ToTensor | RandomErasing(1) | RandomErasing(1, ratio=(0.1, 0.2))": {},
}


@pytest.mark.parametrize("ops", REPLAYED)
def test_the_same_numbers_give_the_same_floats(noise, ops):
    loader = stoker.Loader(noise, CROP + ops, batch_size=8, output="torch")
    for epoch in range(3):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            assert within_one_unit(replay(image, drawn, **REPLAYED[ops]), row), drawn


@pytest.mark.parametrize("dtype, layout", [("float16", "NCHW"), ("bfloat16", "NHWC"), ("float32", "NHWC")])
def test_types_and_layouts(noise, dtype, layout):
    ops = CROP + "ToTensor | Normalize | RandomErasing(1, value=random)"
    want = stoker.Loader(noise, ops, batch_size=8, output="torch").get(range(8)).image
    rows = stoker.Loader(noise, ops, batch_size=8, output="torch", dtype=dtype, layout=layout).get(range(8)).image
    rows = rows.permute(0, 3, 1, 2) if layout == "NHWC" else rows
    assert torch.equal(want.to(getattr(torch, dtype)), rows)


def test_bytes(noise):
    ops = "CenterCrop(30) | RandomErasing(1, value=(7, 8, 9))"
    seen = stoker.Loader(noise, ops, batch_size=8, output="torch", dtype="uint8").get(range(8))
    for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
        want = v1.functional.pil_to_tensor(v1.functional.center_crop(image, 30))
        (one,) = drawn["ops"][1]["regions"]
        want[:, one["i"] : one["i"] + one["h"], one["j"] : one["j"] + one["w"]] = torch.tensor([7, 8, 9])[:, None, None]
        assert torch.equal(want, row)


@pytest.mark.parametrize(
    "ops, words",
    [
        ("RandomErasing(1, value=random)", "value=random gives floats, but the dtype is uint8"),
        ("RandomErasing(1, value=300)", "value is not from 0 to 255"),
        ("RandomErasing(1) | RandomHorizontalFlip", "comes after RandomErasing"),
        ("RandomErasing(1, value=(1, 2))", "expected a number, one per channel"),
        ("RandomErasing(1, value=noise)", "expected a number, one per channel, random or color"),
        ("RandomErasing(1, count=9)", "expected a whole number from 1 to 8"),
        ("Grayscale | RandomErasing(1, value=(1, 2, 3))", "value has 3 numbers, but the image has 1 channel"),
    ],
)
def test_errors(noise, ops, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(noise, "CenterCrop(8) | " + ops, dtype="uint8")


def test_noise_is_normal():
    field = stoker.noise(3, (4, 500, 500)).ravel()
    n = field.size
    assert abs(field.mean()) < 4 / n**0.5 and abs(field.var() - 1) < 4 * (2 / n) ** 0.5
    torch.manual_seed(0)
    assert apart(field[:200000], torch.empty(200000).normal_().numpy()) < rare(200000)
    for lag in (1, 32, 64, 500, 4096):
        assert abs((field[lag:] * field[:-lag]).mean()) < 4 / n**0.5
        assert abs((field[lag:] ** 2 * field[:-lag] ** 2).mean() - 1) < 4 * 3 / n**0.5
    other = stoker.noise(4, n)
    assert abs((field * other).mean()) < 4 / n**0.5 and abs(field).max() < 6


N = 5000


def regions(ops, height, width):
    blank = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (N, height, width, 3))
    with stoker.Loader({"image": blank}, ops, output="numpy", sampler=[0]) as loader:
        return [row["ops"][-1]["regions"] for row in loader.drawn(range(N), epoch=0)]


@pytest.mark.parametrize("height, width", [(224, 224), (40, 100), (7, 9)])
def test_rectangles_are_drawn_as_torchvision_draws_them(height, width):
    ours = [one[0] for one in regions("RandomErasing(1)", height, width) if one]
    torch.manual_seed(0)
    theirs = [
        v1.RandomErasing.get_params(torch.empty(3, height, width), (0.02, 0.33), (0.3, 3.3), [0.0]) for _ in range(N)
    ]
    theirs = np.array([t[:4] for t in theirs if t[2:4] != (height, width)]).T
    assert abs(len(ours) - theirs.shape[1]) < 4 * N**0.5
    for name, other in zip("ijhw", theirs, strict=True):
        assert apart([one[name] for one in ours], other) < rare(min(len(ours), len(other)))


def test_timm(noise):
    timm = pytest.importorskip("timm.data.random_erasing", reason="timm is not installed")
    erasing = timm.RandomErasing(0.6, mode="pixel", min_count=1, max_count=3, device="cpu")
    rows = regions(v1.Compose([v1.ToTensor(), erasing]), 60, 80)
    counts = np.array([len(one) for one in rows])
    assert abs((counts > 0).mean() - 0.6) < 4 * (0.25 / N) ** 0.5
    random.seed(0)
    erased = []
    for _ in range(1000):
        image = torch.full((3, 60, 80), 9.0)
        erased.append(float((erasing(image) != 9).float().mean()))
    ours = []
    for one in rows[:1000]:
        image = np.zeros((60, 80))
        for r in one:
            image[r["i"] : r["i"] + r["h"], r["j"] : r["j"] + r["w"]] = 1
        ours.append(image.mean())
    assert apart(ours, erased) < rare(1000)
    for mode, value in (("const", None), ("rand", "color"), ("pixel", "random")):
        (op,) = stoker.convert_transform(v2.Compose([v1.ToTensor(), timm.RandomErasing(0.5, mode=mode)]))[1:]
        assert str(op).startswith("RandomErasing(") and (value is None or f"value={value}" in str(op))


def test_objects_become_ops(noise):
    for m in (v1, v2):
        end = [m.ToTensor() if m is v1 else v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])]
        for t in (
            m.Compose(
                [m.CenterCrop(20), *end, m.Normalize((0.5,) * 3, (0.2,) * 3), m.RandomErasing(0.5, value="random")]
            ),
            m.Compose(
                [m.CenterCrop(20), *end, m.RandomErasing(value=(1.0, 2.0, 3.0)), m.Normalize((0.5,) * 3, (0.2,) * 3)]
            ),
        ):
            loader = stoker.Loader(noise, t, batch_size=8)
            assert "on each image" not in loader.explain() and next(iter(loader)).image.shape == (8, 3, 20, 20)
    rest = stoker.convert_transform(v2.Compose([v2.ToImage(), v2.RandomErasing(value=9), v2.ToDtype(torch.float32)]))
    assert isinstance(rest[-1], stoker.Lambda)
    rest = stoker.convert_transform(v2.Compose([v1.ToTensor(), v2.RandomErasing(), v2.RandomHorizontalFlip()]))
    assert isinstance(rest[-1], stoker.Lambda)
