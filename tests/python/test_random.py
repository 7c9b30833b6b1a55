# SPDX-License-Identifier: Apache-2.0
"""Random ops against torchvision: the same numbers give the same pixels, and the numbers are drawn alike."""

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()

import torch  # noqa: E402
from replay import apart, rare, replay, within_one_unit  # noqa: E402
from torchvision import transforms as v1  # noqa: E402

REPLAYED = {
    "RandomCrop(20)": {},
    "RandomCrop((30, 12), padding=3)": {},
    "RandomCrop(64, padding=(1, 2, 3, 4), pad_if_needed=True, fill=(9, 8, 7))": {"fill": (9, 8, 7)},
    "RandomHorizontalFlip | RandomVerticalFlip | CenterCrop(30)": {},
    "RandomHorizontalFlip(0.2) | RandomResizedCrop(16) | RandomVerticalFlip(0.7) | RandomHorizontalFlip": {},
    "Resize(40) | RandomCrop(40) | Pad(2, fill=5) | RandomCrop(32) | RandomHorizontalFlip": {"fill": 5},
    "RandomResizedCrop(16, scale=(0.5, 0.5), ratio=(1, 1)) | Grayscale(3)": {"channels": 3},
    "RandomResizedCrop((9, 40), ratio=(0.1, 10)) | Grayscale": {},
    "RandomResizedCrop(100, scale=(0.01, 0.02))": {},
    "RandomResizedCrop(8, scale=(0.99, 1))": {},
    "CenterCrop(70) | RandomVerticalFlip | RandomCrop(30) | CenterCrop(34)": {},
}
for mode in ("edge", "reflect", "symmetric"):
    REPLAYED[f"RandomCrop(40, padding=8, padding_mode={mode}, pad_if_needed=True)"] = {"padding_mode": mode}
for mode in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"):
    REPLAYED[f"RandomResizedCrop(24, interpolation={mode})"] = {"interpolation": mode}


@pytest.mark.parametrize("ops", REPLAYED)
def test_the_same_numbers_give_the_same_bytes(noise, ops):
    loader = stoker.Loader(noise, ops, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(12):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            assert torch.equal(replay(image, drawn, **REPLAYED[ops]), row), drawn


NORMALIZE = {
    "Normalize": {},
    "Normalize(half)": {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
    "Normalize(mean=(0.1, 0.2, 0.3), std=(1, 2, 3))": {"mean": (0.1, 0.2, 0.3), "std": (1, 2, 3)},
}


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_the_same_numbers_give_the_same_floats(noise, normalize):
    ops = f"RandomResizedCrop(24) | RandomHorizontalFlip | RandomVerticalFlip(0.3) | ToTensor | {normalize}"
    loader = stoker.Loader(noise, ops, batch_size=8, output="torch")
    for epoch in range(8):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            assert within_one_unit(replay(image, drawn, **NORMALIZE[normalize]), row)


# ---------------------------------------------------------------- distributions

N = 20000


def drawn_here(ops, height, width):
    """N draws, each for a sample of its own; the images are one and the same."""
    image = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (N, height, width, 3))
    with stoker.Loader({"image": image}, ops, output="numpy", sampler=[0]) as loader:
        return [row["ops"] for row in loader.drawn(range(N), epoch=0)]


def column(rows, name, number=0):
    return np.array([row[number][name] for row in rows])


SHAPES = {
    "usual": (375, 500, (0.08, 1.0), (3 / 4, 4 / 3)),
    "small": (9, 14, (0.08, 1.0), (3 / 4, 4 / 3)),
    "never fits": (500, 100, (0.9, 1.0), (3 / 4, 4 / 3)),
    "narrow": (40, 400, (0.2, 0.6), (0.5, 3.0)),
    "large": (1200, 1600, (0.5, 1.0), (1.0, 1.0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_resized_crops_are_drawn_as_torchvision_draws_them(name):
    height, width, scale, ratio = SHAPES[name]
    rows = drawn_here(f"RandomResizedCrop(8, scale={scale}, ratio={ratio})", height, width)
    ours = np.array([column(rows, word) for word in ("top", "left", "height", "width")])
    torch.manual_seed(0)
    image = torch.empty(1, height, width)
    theirs = np.array([v1.RandomResizedCrop.get_params(image, scale, ratio) for _ in range(N)]).T

    def looks(top, left, high, wide):
        yield from (top, left, high, wide, high * wide, wide / high)
        yield from (top / (height - high + 1), left / (width - wide + 1))

    assert all(apart(a, b) < rare(N) for a, b in zip(looks(*ours), looks(*theirs), strict=True))
    top, left, high, wide = ours
    assert (top >= 0).all() and (left >= 0).all() and (top + high <= height).all() and (left + wide <= width).all()


def test_crops_are_drawn_as_torchvision_draws_them():
    rows = drawn_here("RandomCrop((20, 30), padding=4)", 26, 40)
    top, left = column(rows, "top"), column(rows, "left")
    torch.manual_seed(0)
    theirs = np.array([v1.RandomCrop.get_params(torch.empty(1, 34, 48), (20, 30)) for _ in range(N)])
    assert apart(top, theirs[:, 0]) < rare(N) and apart(left, theirs[:, 1]) < rare(N)
    counts = np.zeros((15, 19))
    np.add.at(counts, (top, left), 1)
    even, freedom = N / counts.size, counts.size - 1
    assert (
        abs(((counts - even) ** 2 / even).sum() - freedom) < 4 * (2 * freedom) ** 0.5
    )  # every place alike: chi-square


@pytest.mark.parametrize("p", [0.5, 0.1, 0.0, 1.0])
def test_flips_come_as_often_as_asked(p):
    rows = drawn_here(f"RandomHorizontalFlip({p}) | RandomVerticalFlip({p})", 4, 4)
    across, down = column(rows, "flip", 0), column(rows, "flip", 1)
    far = 4 * (p * (1 - p) / N) ** 0.5
    assert abs(across.mean() - p) <= far and abs(down.mean() - p) <= far
    both = p * p
    assert abs((across & down).mean() - both) <= 4 * (both * (1 - both) / N) ** 0.5  # neither knows of the other


def test_epochs_are_as_good_as_samples():
    loader = stoker.Loader({"image": np.zeros((1, 60, 80, 3), np.uint8)}, "RandomResizedCrop(8) | RandomHorizontalFlip")
    rows = [loader.drawn(0, epoch=e)[0]["ops"] for e in range(N)]
    flips, far = column(rows, "flip", 1), 4 * (0.25 / N) ** 0.5
    assert abs(flips.mean() - 0.5) < far
    assert abs((flips[1:] == flips[:-1]).mean() - 0.5) < far  # an epoch knows nothing of the one before
    torch.manual_seed(0)
    theirs = [v1.RandomResizedCrop.get_params(torch.empty(1, 60, 80), (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(N)]
    assert apart(column(rows, "width"), np.array(theirs)[:, 3]) < rare(N)
