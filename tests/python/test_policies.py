# SPDX-License-Identifier: Apache-2.0
"""Policies: torchvision's pixels with the same draws, and its distributions."""

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pictures

import_torchvision()

import torch  # noqa: E402
from replay import replay  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import InterpolationMode, v2  # noqa: E402

REPLAYED = {
    "RandAugment": {},
    "RandAugment(4, 30)": {},
    "RandAugment(interpolation=bilinear, fill=(9, 8, 7))": {"sampling": "bilinear", "fill": (9, 8, 7)},
    "TrivialAugmentWide": {},
    "TrivialAugmentWide(8, interpolation=bicubic, fill=200)": {"sampling": "bicubic", "fill": 200},
    "AutoAugment": {},
    "AutoAugment(cifar10, interpolation=bilinear)": {"sampling": "bilinear"},
    "AutoAugment(svhn, fill=128)": {"fill": 128},
    "Grayscale | RandAugment(3)": {},
    "TrivialAugmentWide | RandAugment | AutoAugment": {},
}


@pytest.mark.parametrize("ops", REPLAYED)
def test_the_same_numbers_give_the_same_bytes(noise, ops):
    text = "RandomResizedCrop((40, 31)) | RandomHorizontalFlip | " + ops
    loader = stoker.Loader(noise, text, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(6):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pictures(noise), seen.image, seen.drawn, strict=True):
            assert torch.equal(replay(image, drawn, **REPLAYED[ops]), row), drawn


N = 6000
IMAGE = np.zeros((1, 300, 201, 3), np.uint8)


def drawn_here(ops):
    images = np.broadcast_to(IMAGE, (N, *IMAGE.shape[1:]))
    with stoker.Loader({"image": images}, ops, output="numpy", sampler=[0]) as loader:
        return [[(one["op"], one["magnitude"]) for one in row["ops"][0]["ops"]] for row in loader.drawn(range(N))]


def drawn_there(transform):
    rows, calls = [], []
    transform._apply_image_or_video_transform = lambda image, name, magnitude, **_: (
        calls.append((name, magnitude)) or image
    )
    image = torch.from_numpy(IMAGE[0]).permute(2, 0, 1)
    torch.manual_seed(0)
    for _ in range(N):
        transform(image)
        rows.append(calls[:])
        calls.clear()
    return rows


@pytest.mark.parametrize(
    "ops, transform",
    [
        ("RandAugment", v2.RandAugment()),
        ("RandAugment(3, 7, 10)", v2.RandAugment(3, 7, 10)),
        ("TrivialAugmentWide", v2.TrivialAugmentWide()),
        ("AutoAugment", v2.AutoAugment()),
        ("AutoAugment(cifar10)", v2.AutoAugment(v1.AutoAugmentPolicy.CIFAR10)),
        ("AutoAugment(svhn)", v2.AutoAugment(v1.AutoAugmentPolicy.SVHN)),
    ],
)
def test_policies_are_drawn_as_torchvision_draws_them(ops, transform):
    """The same augmentations with the same magnitudes, equally often: chi-square over all of them."""
    ours, theirs = drawn_here(ops), drawn_there(transform)
    lengths = [np.bincount([len(row) for row in rows], minlength=5) for rows in (ours, theirs)]
    assert all(abs(a - b) < 4 * (2 * max(a, b, 1)) ** 0.5 for a, b in zip(*lengths, strict=True))
    counts = []
    for rows in (ours, theirs):
        names, n = np.unique([repr((name, float(m) + 0.0)) for row in rows for name, m in row], return_counts=True)
        counts.append(dict(zip(names, n, strict=True)))
    names = set(counts[0]) | set(counts[1])
    a, b = (np.array([c.get(name, 0) for name in names]) for c in counts)
    if "Trivial" not in ops:  # which has magnitudes that are drawn seldom
        assert set(counts[0]) == set(counts[1])
    assert ((a - b) ** 2 / (a + b)).sum() < len(names) + 4 * (2 * len(names)) ** 0.5


OBJECTS = {
    "RandAugment": [v1.RandAugment(), v2.RandAugment()],
    "RandAugment(num_ops=1, magnitude=5, interpolation=bilinear)": [
        m.RandAugment(1, 5, interpolation=InterpolationMode.BILINEAR) for m in (v1, v2)
    ],
    "TrivialAugmentWide(fill=(1, 2, 3))": [m.TrivialAugmentWide(fill=[1, 2, 3]) for m in (v1, v2)],
    "AutoAugment(policy=svhn)": [m.AutoAugment(v1.AutoAugmentPolicy.SVHN) for m in (v1, v2)],
}


@pytest.mark.parametrize("text", OBJECTS)
def test_objects_become_ops(noise, text):
    for thing in OBJECTS[text]:
        assert [str(op) for op in stoker.convert_transform(thing)] == [text]
        loader = stoker.Loader(noise, v2.Compose([v2.CenterCrop(20), thing, v2.PILToTensor()]), batch_size=8)
        assert "on each image" not in loader.explain() and next(iter(loader)).image.shape == (8, 3, 20, 20)


def test_the_reference_recipe_of_torchvision(noise):
    """As its training script has it: crop, flip, policy, tensor, normalisation, erasing."""
    recipe = v1.Compose(
        [
            v1.RandomResizedCrop(32, interpolation=InterpolationMode.BILINEAR, antialias=True),
            v1.RandomHorizontalFlip(0.5),
            v1.TrivialAugmentWide(interpolation=InterpolationMode.BILINEAR),
            v1.PILToTensor(),
            v1.ConvertImageDtype(torch.float),
            v1.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            v1.RandomErasing(p=0.1),
        ]
    )
    loader = stoker.Loader(noise, recipe, batch_size=8)
    assert "on each image" not in loader.explain() and next(iter(loader)).image.shape == (8, 3, 32, 32)


def test_errors(noise):
    for ops, words in (
        ("RandAugment(2, 31)", "magnitude 31 must be less than num_magnitude_bins 31"),
        ("AutoAugment(imagenette)", "did you mean imagenet"),
        ("RandAugment(interpolation=lanczos)", "nearest, bilinear or bicubic"),
        ("TrivialAugmentWide(1)", "at least 2"),
    ):
        with pytest.raises(stoker.UsageError, match=words):
            stoker.Loader(noise, "CenterCrop(8) | " + ops)
