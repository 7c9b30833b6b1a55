# SPDX-License-Identifier: Apache-2.0
"""timm's policies: its pixels with the same draws, and its distributions."""

import random

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()


try:
    from timm.data import auto_augment as timm
    from timm.data import create_transform
except Exception as error:  # whatever it needs itself
    pytest.skip(f"timm cannot be imported: {error}", allow_module_level=True)

from PIL import Image  # noqa: E402
from replay import FUNCTIONS, apart, rare  # noqa: E402

FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}


def replay(image, ops, fill):
    """What was drawn, done by timm's functions."""
    for one in ops:
        name, v = one["op"].replace("GaussianBlurRand", "GaussianBlur"), one["argument"]
        if "Posterize" in name and v == 0:  # which newer versions of Pillow refuse
            image = Image.new(image.mode, image.size)
            continue
        arguments = (
            []
            if name in ("AutoContrast", "Equalize", "Invert")
            else [int(v) if "oster" in name or "olar" in name else v]
        )
        image = timm.NAME_TO_OP[name](image, *arguments, fillcolor=fill, resample=FILTERS[one["interpolation"]])
    return image


POLICIES = [
    "rand-m9-mstd0.5-inc1",
    "rand-m7-n4-p0.9",
    "rand-mstd101",
    "rand-t3a-p1",
    "rand-t3aw-n3-p1-m4",
    "rand-tweights-inc1-m5-mmax15",
]
POLICIES += ["original-mstd0.5", "originalr", "v0", "v0r", "3a"]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_numbers_give_the_same_bytes(noise, policy):
    ops = f'RandomResizedCrop((41, 30)) | TimmAugment("{policy}", fill=(9, 8, 7))'
    loader = stoker.Loader(noise, ops, dtype="uint8", batch_size=8, output="torch")
    for epoch in range(8):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            cropped = FUNCTIONS["RandomResizedCrop"](image, drawn["ops"][0])
            want = replay(cropped, drawn["ops"][1]["ops"], (9, 8, 7))
            assert np.array_equal(np.asarray(want), row.permute(1, 2, 0).numpy()), drawn


@pytest.mark.parametrize("policy", ["augmix", "augmix-m9-w4-d2-mstd1", "augmix-w1-a0.3"])
def test_mixtures(noise, policy):
    loader = stoker.Loader(noise, f'CenterCrop((41, 30)) | TimmAugment("{policy}")', dtype="uint8", batch_size=8)
    for epoch in range(6):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            image, op = FUNCTIONS["CenterCrop"](image, drawn["ops"][0]), drawn["ops"][1]
            mixed = np.zeros_like(image, dtype=np.float32)
            for weight, chain in zip(op["weights"], op["chains"], strict=True):
                mixed += np.float32(weight) * np.asarray(replay(image, chain, (128, 128, 128)), np.float32)
            np.clip(mixed, 0, 255.0, out=mixed)
            want = Image.blend(image, Image.fromarray(mixed.astype(np.uint8)), np.float32(op["m"]))
            assert np.array_equal(np.asarray(want), np.moveaxis(np.asarray(row), 0, -1)), drawn


N = 4000
IMAGE = np.zeros((1, 60, 80, 3), np.uint8)


def counted(rows):
    names, n = np.unique([name for row in rows for name, _ in row], return_counts=True)
    return dict(zip(names, n, strict=True))


@pytest.mark.parametrize(
    "policy", ["rand-m9-mstd0.5-inc1", "rand-m9-mstd101", "rand-t3aw-n3-p1-m4", "original-mstd0.5", "3a"]
)
def test_policies_are_drawn_as_timm_draws_them(policy, monkeypatch):
    images = np.broadcast_to(IMAGE, (N, *IMAGE.shape[1:]))
    with stoker.Loader({"image": images}, f'TimmAugment("{policy}")', output="numpy", sampler=[0]) as loader:
        ours = [[(one["op"], one["argument"]) for one in row["ops"][0]["ops"]] for row in loader.drawn(range(N))]
    calls, theirs = [], []
    for name in timm.NAME_TO_OP:
        function = lambda image, *v, name=name, **_: calls.append((name, float(v[0]) if v else 0.0)) or image  # noqa: E731
        monkeypatch.setitem(timm.NAME_TO_OP, name, function)
    make = timm.rand_augment_transform if policy.startswith("rand") else timm.auto_augment_transform
    transform, image = make(policy, {}), Image.fromarray(IMAGE[0])
    random.seed(0), np.random.seed(0)
    for _ in range(N):
        transform(image)
        theirs.append(calls[:])
        calls.clear()
    a, b = counted(ours), counted(theirs)
    assert set(a) == set(b)
    assert sum((a[k] - b[k]) ** 2 / (a[k] + b[k]) for k in a) < len(a) + 4 * (2 * len(a)) ** 0.5
    for name in set(a) - {"GaussianBlurRand"}:
        x, y = ([v for row in rows for n, v in row if n == name] for rows in (ours, theirs))
        assert apart(x, y) < 2 * rare(min(len(x), len(y)))


@pytest.mark.parametrize("policy", [*POLICIES, "augmix-m5-w4-d2", "augmix-mstd1"])
def test_transforms_of_timm_become_ops(noise, policy):
    loader = stoker.Loader(
        noise, create_transform(32, is_training=True, auto_augment=policy, re_prob=0.2), batch_size=8
    )
    words = loader.explain()
    assert "on each image" not in words and 'TimmAugment(policy="' in words and "fill=(124, 116, 104)" in words
    assert next(iter(loader)).image.shape == (8, 3, 32, 32)


def test_errors(noise):
    for policy in ("rand-x9", "best", "original-m9", "rand-n99", "rand-mx"):
        with pytest.raises(stoker.UsageError, match="TimmAugment: policy: found .*, expected"):
            stoker.Loader(noise, f'CenterCrop(8) | TimmAugment("{policy}")')
