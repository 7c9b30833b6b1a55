# SPDX-License-Identifier: Apache-2.0
"""Ops that change colours, and ops that choose: torchvision's pixels with the same draws, and its distributions."""

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

CROP = "RandomResizedCrop(24) | "
REPLAYED = {
    "ColorJitter(0.4, 0.4, 0.4)": {},
    "ColorJitter(0.8, 0.8, 0.8, 0.5)": {},
    "ColorJitter((2, 3), (0, 5), (0, 4))": {},
    "ColorJitter(hue=(0.1, 0.2))": {},
    "ColorJitter(contrast=0)": {},
    "ColorJitter(1) | ColorJitter(1) | RandomInvert | ColorJitter(contrast=1, saturation=1)": {},
    "RandomPhotometricDistort": {},
    "RandomPhotometricDistort(hue=(-0.5, 0.5), p=1)": {},
    "RandomChannelPermutation": {},
    "RandomChannelPermutation | ColorJitter(0.5) | RandomChannelPermutation": {},
    "RandomGrayscale(0.5) | RandomEqualize": {},
    "RandomAdjustSharpness(2)": {"sharpness": 2},
    "RandomAdjustSharpness(0.3) | RandomHorizontalFlip | RandomVerticalFlip": {"sharpness": 0.3},
    "RandomAdjustSharpness(0)": {"sharpness": 0},
    "RandomAutocontrast | RandomHorizontalFlip": {},
    "ColorJitter(0.9) | RandomAutocontrast | RandomEqualize": {},
    "RandomPosterize(1) | RandomHorizontalFlip": {"bits": 1},
    "RandomPosterize(8)": {"bits": 8},
    "RandomSolarize(128) | RandomInvert | RandomPosterize(3)": {"bits": 3},
    "RandomSolarize(99.5)": {"threshold": 99.5},
    "RandomSolarize(0)": {"threshold": 0},
    "RandomSolarize(256)": {"threshold": 256},
    "Grayscale | RandomInvert | ColorJitter(0.5, 0.5, 0.5, 0.5) | RandomAutocontrast | RGB": {},
    "Grayscale | RandomEqualize | RandomAdjustSharpness(3)": {"sharpness": 3},
    "Grayscale(3) | RandomGrayscale(1)": {"channels": 3},
    "RandomApply([ColorJitter(0.5, 0.5), RandomInvert], p=0.7) | RandomGrayscale": {},
    "RandomChoice([RandomInvert(1), Compose([RandomSolarize(128), RandomEqualize(1)]), Identity], p=(1, 2, 0.5))": {},
    "RandomOrder([RandomInvert, RandomSolarize(128), ColorJitter(0.5, 0.5, 0.5), RandomHorizontalFlip])": {},
    "RandomEqualize | CenterCrop(20) | RandomHorizontalFlip": {},
    "ColorJitter(0.5, 0.5) | RandomCrop(16, padding=4, fill=7) | RandomAutocontrast | RandomHorizontalFlip": {
        "fill": 7
    },
}


@pytest.mark.parametrize("ops", REPLAYED)
@pytest.mark.parametrize("first", [CROP, "CenterCrop((21, 30)) | "])
def test_the_same_numbers_give_the_same_bytes(noise, first, ops):
    loader = stoker.Loader(noise, first + ops, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(4):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            assert torch.equal(replay(image, drawn, **REPLAYED[ops]), row), drawn


EVERY = "ColorJitter(0.5, 0.5, 0.5, 0.2) | RandomAdjustSharpness(2, p=1) | RandomAutocontrast(1) | RandomEqualize(1)"


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (9, 1), (2, 2), (3, 3), (4100, 5), (3, 5001), (64, 65)])
def test_odd_sizes(shape):
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    for ops in EVERY.split(" | "):
        loader = stoker.Loader({"image": pixels}, ops, dtype="uint8", output="torch")
        for epoch in range(3):
            seen = loader.get([0], epoch=epoch)
            theirs = replay(Image.fromarray(pixels[0]), seen.drawn[0], sharpness=2)
            assert torch.equal(theirs, seen.image[0]), (ops, seen.drawn)


def test_flat_images():
    """Statistics of images with one level, or two."""
    for levels in ([0], [255], [7], [3, 250]):
        pixels = np.resize(np.array(levels, np.uint8), (1, 40, 40, 3)).copy()
        for ops in EVERY.split(" | "):
            seen = stoker.Loader({"image": pixels}, ops, dtype="uint8", output="torch").get([0])
            assert torch.equal(replay(Image.fromarray(pixels[0]), seen.drawn[0], sharpness=2), seen.image[0])


# ---------------------------------------------------------------- distributions

N = 8000


def drawn_here(ops):
    image = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (N, 4, 4, 3))
    with stoker.Loader({"image": image}, ops, output="numpy", sampler=[0]) as loader:
        return [row["ops"][0] for row in loader.drawn(range(N), epoch=0)]


def same_share(a, b):
    """Two shares of N draws each, equal but for chance."""
    return abs(a - b) < 4 * (0.5 / N) ** 0.5


def test_jitter_is_drawn_as_torchvision_draws_it():
    rows = drawn_here("ColorJitter(0.4, (0.2, 3), 1.5, 0.3)")
    torch.manual_seed(0)
    jitter = v2.ColorJitter(0.4, (0.2, 3), 1.5, 0.3)
    theirs = [jitter.make_params([]) for _ in range(N)]
    for name in ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor"):
        assert apart([r[name] for r in rows], [t[name] for t in theirs]) < rare(N)
    ours = np.array([r["fn_idx"] for r in rows]) @ [64, 16, 4, 1]
    counts = np.unique(ours, return_counts=True)[1]
    assert len(counts) == 24 and ((counts - N / 24) ** 2 / (N / 24)).sum() < 23 + 4 * 46**0.5


def test_distort_is_drawn_as_torchvision_draws_it():
    rows = drawn_here("RandomPhotometricDistort(p=0.3)")
    torch.manual_seed(0)
    distort = v2.RandomPhotometricDistort(p=0.3)
    image = [Image.new("RGB", (4, 4))]
    theirs = [{k: v for k, v in distort.make_params(image).items() if v is not None} for _ in range(N)]
    for name in ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor"):
        ours, other = ([r[name] for r in some if name in r] for some in (rows, theirs))
        assert same_share(len(ours) / N, len(other) / N) and apart(ours, other) < rare(min(len(ours), len(other)))
    assert same_share(sum("channel_permutation" in r for r in rows) / N, 0.3)
    assert same_share(sum(r["contrast_before"] for r in rows) / N, 0.5)


@pytest.mark.parametrize(
    "ops, p",
    [
        ("RandomInvert", 0.5),
        ("RandomGrayscale", 0.1),
        ("RandomSolarize(3, p=0.25)", 0.25),
        ("RandomEqualize(0.9)", 0.9),
        ("RandomApply(RandomInvert, p=0.7)", 0.7),
    ],
)
def test_ops_are_applied_as_often_as_asked(ops, p):
    assert same_share(np.mean([row["applied"] for row in drawn_here(ops)]), p)


def test_choices_and_orders():
    chosen = np.array([row["idx"] for row in drawn_here("RandomChoice([RGB, Identity, RGB], p=[1, 2, 5])")])
    assert all(same_share((chosen == i).mean(), w / 8) for i, w in enumerate((1, 2, 5)))
    chosen = np.array([row["idx"] for row in drawn_here("RandomChoice([RGB, Identity, RGB])")])
    assert all(same_share((chosen == i).mean(), 1 / 3) for i in range(3))
    order = np.array([row["order"] for row in drawn_here("RandomOrder([RGB, Identity, RGB])")]) @ [9, 3, 1]
    assert all(same_share((order == i).mean(), 1 / 6) for i in np.unique(order)) and len(np.unique(order)) == 6


def test_inserting_an_op_leaves_the_other_draws():
    def drawn(ops, place):
        loader = stoker.Loader({"image": np.zeros((1, 9, 9, 3), np.uint8)}, ops)
        return [loader.drawn(0, epoch=e)[0]["ops"][place] for e in range(20)]

    jitter = "ColorJitter(0.5, 0.5)"
    assert drawn(jitter, 0) == drawn(f"RandomInvert | {jitter}", 1) == drawn(f"RandomSolarize(9) | {jitter} | RGB", 1)
    assert drawn(jitter, 0) == [r["ops"][0] for r in drawn(f"RandomApply({jitter}, p=1)", 0)]
    assert drawn(f"{jitter} | {jitter}", 0) != drawn(f"{jitter} | {jitter}", 1)


# ---------------------------------------------------------------- torchvision's objects

OBJECTS = {
    "ColorJitter(brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.6, 1.4), hue=(-0.1, 0.1))": [
        m.ColorJitter(0.4, 0.4, 0.4, 0.1) for m in (v1, v2)
    ],
    "ColorJitter": [m.ColorJitter() for m in (v1, v2)],
    "RandomPhotometricDistort(p=0.2)": [v2.RandomPhotometricDistort(p=0.2)],
    "RandomChannelPermutation": [v2.RandomChannelPermutation()],
    "RandomGrayscale(p=0.2)": [m.RandomGrayscale(0.2) for m in (v1, v2)],
    "RGB": [v2.RGB()],
    "RandomAdjustSharpness(2, p=0.3)": [m.RandomAdjustSharpness(2, 0.3) for m in (v1, v2)],
    "RandomAutocontrast": [m.RandomAutocontrast() for m in (v1, v2)],
    "RandomEqualize": [m.RandomEqualize() for m in (v1, v2)],
    "RandomPosterize(4)": [m.RandomPosterize(4) for m in (v1, v2)],
    "RandomSolarize(128, p=0.2)": [m.RandomSolarize(128, 0.2) for m in (v1, v2)],
    "RandomInvert": [m.RandomInvert() for m in (v1, v2)],
    "RandomApply([RandomInvert, RandomGrayscale], p=0.3)": [
        m.RandomApply([m.RandomInvert(), m.RandomGrayscale()], 0.3) for m in (v1, v2)
    ],
    "RandomChoice([RandomInvert, Compose([RandomInvert, RandomEqualize])], p=(0.5, 0.5))": [
        v2.RandomChoice([v2.RandomInvert(), v2.Compose([v2.RandomInvert(), v2.RandomEqualize()])], p=[1, 1])
    ],
    "RandomChoice([RandomInvert, RandomEqualize])": [v1.RandomChoice([v1.RandomInvert(), v1.RandomEqualize()])],
    "RandomOrder([RandomInvert, RandomEqualize])": [
        m.RandomOrder([m.RandomInvert(), m.RandomEqualize()]) for m in (v1, v2)
    ],
}


@pytest.mark.parametrize("text", OBJECTS)
def test_objects_become_ops(noise, text):
    for thing in OBJECTS[text]:
        assert stoker.convert_transform(thing) == [text] or str(stoker.convert_transform(thing)[0]) == text
        crop = v2.Compose([v2.CenterCrop(20), thing, v2.PILToTensor()])
        loader = stoker.Loader(noise, crop, batch_size=8)
        assert "on each image" not in loader.explain()
        assert next(iter(loader)).image.shape == (8, 3, 20, 20)


def test_what_has_no_op_stays_in_python():
    for thing in (
        v1.RandomApply([v1.ToTensor()]),
        v1.RandomChoice([v1.RandomInvert(), v1.Lambda(lambda x: x)]),
        v2.Compose([v2.ToImage(), v2.ColorJitter(contrast=(0.5, 3))]),
    ):
        assert isinstance(stoker.convert_transform(thing)[-1], stoker.Lambda)
