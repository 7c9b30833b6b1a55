# SPDX-License-Identifier: Apache-2.0
"""Policies: torchvision's pixels with the same draws, and its distributions."""

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()

import torch  # noqa: E402
from PIL import Image  # noqa: E402
from replay import FUNCTIONS, apart, rare, replay  # noqa: E402
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
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            assert torch.equal(replay(image, drawn, **REPLAYED[ops]), row), drawn


MIXED = {
    "AugMix": {"sampling": "bilinear"},
    "AugMix(10, 8, 3)": {"sampling": "bilinear"},
    "AugMix(5, 2, all_ops=False, interpolation=nearest, fill=(9, 8, 7), alpha=0.5)": {"fill": (9, 8, 7)},
    "Grayscale(3) | AugMix(mixture_width=1)": {"sampling": "bilinear"},
}


def mixture(image, op, **k):
    """The mixture of Pillow's images, in torchvision's order of operations."""
    total = np.float32(op["weight"]) * np.asarray(image, np.float32)
    for weight, chain in zip(op["weights"], op["chains"], strict=True):
        one = image
        for step in chain:
            zero = step["op"] == "Posterize" and step["magnitude"] < 1  # which Pillow refuses
            one = one.point(lambda v: 0) if zero else FUNCTIONS[step["op"]](one, step, **k)
        total += np.float32(weight) * np.asarray(one, np.float32)
    return total.astype(np.uint8)


@pytest.mark.parametrize("ops", MIXED)
def test_mixtures(noise, ops):
    loader = stoker.Loader(noise, "CenterCrop((40, 31)) | " + ops, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(6):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            before = {**drawn, "ops": drawn["ops"][:-1]}
            image = Image.fromarray(replay(image, before, channels=3).permute(1, 2, 0).numpy())
            want = mixture(image, drawn["ops"][-1], **MIXED[ops])
            assert np.array_equal(want, row.permute(1, 2, 0).numpy()), drawn


def test_mixtures_are_near_those_of_tensors(noise):
    """torchvision mixes tensors, whose augmentations round differently."""
    loader = stoker.Loader(noise, "CenterCrop(64) | AugMix", dtype="uint8", batch_size=8, output="torch")
    mix, apart_by = v2.AugMix(), []
    for epoch in range(6):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            op = drawn["ops"][-1]
            one = v1.functional.pil_to_tensor(v1.functional.center_crop(image, 64))
            total = np.float32(op["weight"]) * one
            for weight, chain in zip(op["weights"], op["chains"], strict=True):
                aug = one
                for step in chain:
                    aug = mix._apply_image_or_video_transform(aug, step["op"], step["magnitude"], "bilinear", mix._fill)
                total += np.float32(weight) * aug
            apart_by.append((total.to(torch.uint8).int() - row.int()).abs().float())
    apart_by = torch.stack(apart_by)
    assert apart_by.mean() < 0.2 and (apart_by <= 1).float().mean() > 0.99


N = 4000
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


def test_mixtures_are_drawn_as_torchvision_draws_them():
    images = np.broadcast_to(IMAGE, (N, *IMAGE.shape[1:]))
    with stoker.Loader({"image": images}, "AugMix(alpha=0.7)", output="numpy", sampler=[0]) as loader:
        rows = [row["ops"][0] for row in loader.drawn(range(N))]
    torch.manual_seed(0)
    m = torch._sample_dirichlet(torch.full((N, 2), 0.7))
    weights = torch._sample_dirichlet(torch.full((N, 3), 0.7)) * m[:, 1:]
    assert apart([row["weight"] for row in rows], m[:, 0].numpy()) < rare(N)
    assert all(apart([row["weights"][i] for row in rows], weights[:, i].numpy()) < rare(N) for i in range(3))
    theirs = [step for row in drawn_there(v2.AugMix(alpha=0.7)) for step in row]
    ours = [(step["op"], step["magnitude"]) for row in rows for chain in row["chains"] for step in chain]
    assert abs(len(ours) - len(theirs)) < 4 * (2 * 3 * N) ** 0.5
    assert {(name, m + 0.0) for name, m in ours} == {(name, float(m) + 0.0) for name, m in theirs}


OBJECTS = {
    "AugMix(severity=5, all_ops=False)": [m.AugMix(5, all_ops=False) for m in (v1, v2)],
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
