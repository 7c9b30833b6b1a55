# SPDX-License-Identifier: Apache-2.0
"""Ops after ToImage or PILToTensor: torchvision's tensor code with the same draws gives the same, within one level."""

import math

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, write_png

import_torchvision()

import torch  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

ADJUST = {
    "brightness_factor": F.adjust_brightness,
    "contrast_factor": F.adjust_contrast,
    "saturation_factor": F.adjust_saturation,
    "hue_factor": F.adjust_hue,
}


def jitter(image, op, order=None, **_):
    for name in [list(ADJUST)[i] for i in op["fn_idx"]] if order is None else order:
        image = ADJUST[name](image, op[name]) if name in op else image
    return image


def distort(image, op, **_):
    b, c, s, h = ADJUST
    image = jitter(image, op, (b, c, s, h) if op["contrast_before"] else (b, s, h, c))
    return image[op["channel_permutation"]] if "channel_permutation" in op else image


def affine(image, op, interpolation="nearest", fill=None, center=None, **_):
    box = op.get("translate", [0, 0]), op.get("scale", 1.0), op.get("shear", [0.0, 0.0])
    return F.affine(image, op.get("angle", 0.0), *box, interpolation=interpolation, fill=fill, center=center)


def sheared(axis):
    def shear(image, op, **k):
        angles = [0.0, 0.0]
        angles[axis] = math.degrees(math.atan(op["magnitude"]))
        return affine(image, {"shear": angles}, **k, center=[0, 0])

    return shear


def translated(axis):
    def translate(image, op, **k):
        move = [0, 0]
        move[axis] = int(op["magnitude"])
        return affine(image, {"translate": move}, **k)

    return translate


def inner(image, op, **k):
    for one in op["ops"]:
        image = FUNCTIONS[one["op"]](image, one, **k)
    return image


def rotate(image, op, interpolation="nearest", fill=None, center=None, **_):
    return F.rotate(image, op.get("angle", op.get("magnitude")), interpolation, center=center, fill=fill)


def perspective(image, op, interpolation="bilinear", fill=None, **_):
    coefficients = op.get("coefficients")
    return F.perspective(image, None, None, interpolation, fill, coefficients) if op["applied"] else image


def chance(function):
    return lambda image, op, **_: function(image) if op["applied"] else image


def factor(function):
    return lambda image, op, **_: function(image, 1.0 + op["magnitude"])


FUNCTIONS = {
    "ToImage": lambda image, op, **_: image,
    "ColorJitter": jitter,
    "RandomPhotometricDistort": distort,
    "RandomApply": inner,
    "RandomGrayscale": chance(lambda image: F.rgb_to_grayscale(image, 3)),
    "Grayscale": lambda image, op, **_: F.rgb_to_grayscale(image),
    "RandomAutocontrast": chance(F.autocontrast),
    "RandomAdjustSharpness": chance(lambda image: F.adjust_sharpness(image, 3)),
    "RandomRotation": rotate,
    "RandomAffine": affine,
    "RandomPerspective": perspective,
    "RandAugment": inner,
    "TrivialAugmentWide": inner,
    "AutoAugment": inner,
    "Identity": lambda image, op, **_: image,
    "ShearX": sheared(0),
    "ShearY": sheared(1),
    "TranslateX": translated(0),
    "TranslateY": translated(1),
    "Rotate": rotate,
    "Brightness": factor(F.adjust_brightness),
    "Color": factor(F.adjust_saturation),
    "Contrast": factor(F.adjust_contrast),
    "Sharpness": factor(F.adjust_sharpness),
    "Posterize": lambda image, op, **_: F.posterize(image, int(op["magnitude"])),
    "Solarize": lambda image, op, **_: F.solarize(image, 255.0 * op["magnitude"]),
    "AutoContrast": lambda image, op, **_: F.autocontrast(image),
    "Equalize": lambda image, op, **_: F.equalize(image),
    "Invert": lambda image, op, **_: F.invert(image),
}

# A transform, arguments for replaying it, and how many levels it may be off. A second op may double a difference.
CASES = {
    "brightness": (v2.ColorJitter(brightness=0.8), {}, 0),
    "contrast": (v2.ColorJitter(contrast=0.9), {}, 1),
    "saturation": (v2.ColorJitter(saturation=0.9), {}, 1),
    "hue": (v2.ColorJitter(hue=0.5), {}, 1),
    "grey": (v2.RandomGrayscale(1.0), {}, 1),
    "one channel": (v2.Grayscale(), {}, 1),
    "autocontrast": (v2.RandomAutocontrast(1.0), {}, 1),
    "sharpness": (v2.RandomAdjustSharpness(3, 1.0), {}, 0),
    "rotation": (v2.RandomRotation(180), {"fill": 0}, 0),
    "rotation, bilinear": (v2.RandomRotation(180, "bilinear", fill=99), {"interpolation": "bilinear", "fill": 99}, 1),
    "rotation, fill 0": (v2.RandomRotation(180, "bilinear"), {"interpolation": "bilinear", "fill": 0}, 1),
    "rotation, center": (
        v2.RandomRotation(90, center=(3, 9), fill=(9, 8, 7)),
        {"center": (3, 9), "fill": (9, 8, 7)},
        0,
    ),
    "affine": (v2.RandomAffine(40, (0.2, 0.1), (0.5, 2), (-20, 20, -9, 9)), {"fill": 0}, 0),
    "affine, bilinear": (
        v2.RandomAffine(40, (0.2, 0.1), (0.5, 2), 20, "bilinear", fill=(255, 0, 7)),
        {"interpolation": "bilinear", "fill": (255, 0, 7)},
        1,
    ),
    "perspective": (v2.RandomPerspective(0.6, 1.0), {"fill": 0}, 1),
    "perspective, nearest": (v2.RandomPerspective(0.6, 1.0, "nearest"), {"interpolation": "nearest", "fill": 0}, 0),
    "RandAugment, one op": (v2.RandAugment(1), {}, 1),
    "RandAugment, bilinear": (v2.RandAugment(1, interpolation="bilinear"), {"interpolation": "bilinear"}, 1),
    "TrivialAugmentWide": (v2.TrivialAugmentWide(interpolation="bilinear"), {"interpolation": "bilinear"}, 1),
}
COLOURS = list(CASES)[:8]
SIZES = [(40, 50), (61, 33), (1, 1), (2, 9), (3, 3), (224, 224)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Noise, and ramps that are more like photos, of several sizes."""
    root, rng = tmp_path_factory.mktemp("tensors"), np.random.default_rng(3)
    for i, (h, w) in enumerate(SIZES):
        write_png(root / f"{i}a.png", rng.integers(0, 256, (h, w, 3), dtype=np.uint8))
        y, x = np.mgrid[:h, :w]
        ramp = np.stack([x * 3 + y, 255 - x * 2, y * 5], 2) % 256
        write_png(root / f"{i}b.png", ramp.astype(np.uint8))
    return root


def tensors(root):
    from PIL import Image

    return [v1.functional.pil_to_tensor(Image.open(path)) for path in stoker.Source(root).paths]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("first", [v2.ToImage, v2.PILToTensor])
def test_tensors_are_torchs_within_one_level(pictures, name, first):
    transform, arguments, most = CASES[name]
    source = stoker.Source(pictures)
    chosen = [i for i in range(len(source)) if "perspective" not in name or i // 2 != SIZES.index((1, 1))]
    loader = stoker.Loader(
        source.subset(chosen), v2.Compose([first(), transform]), sizes="list", batch_size=12, output="torch"
    )
    assert "python" not in loader.explain(), loader.explain()
    far = total = 0
    for epoch in range(6):
        seen = loader.get(chosen, epoch=epoch)
        images = tensors(pictures)
        for image, row, drawn in zip([images[i] for i in chosen], seen.image, seen.drawn, strict=True):
            for op in drawn["ops"]:
                image = FUNCTIONS[op["op"]](image, op, **arguments)
            off = (image.int() - row.int()).abs()
            far, total = far + int((off > most).sum()), total + off.numel()
    print(name, most, far / total)
    # A point that is halfway between two pixels may go to either, as sums of floats depend on their order.
    assert far <= (0 if name in COLOURS else 0.0005 * total), (far, total)


@pytest.mark.filterwarnings("ignore")
def test_augmix_on_tensors(pictures):
    loader = stoker.Loader(
        pictures, v2.Compose([v2.ToImage(), v2.AugMix()]), sizes="list", batch_size=12, output="torch"
    )
    assert "python" not in loader.explain() and len(next(iter(loader)).image) == 12


@pytest.mark.parametrize(
    "transform, why",
    [
        (v2.ColorJitter(contrast=(0, 5)), "would differ by more than one level"),
        (v2.RandomRotation(30, expand=True), "torch rounds differently"),
        (v2.Resize((9, 9), "nearest"), "torch rounds differently"),
        (v2.RandAugment(fill=0), "no op has this fill"),
    ],
)
def test_what_stays_in_python_on_tensors(transform, why):
    last = stoker.convert_transform(v2.Compose([v2.ToImage(), transform]))[-1]
    assert isinstance(last, stoker.Lambda) and why in last.function.why[0]


def test_pillow_is_not_changed(pictures):
    """Before ToImage, and without it, ops have Pillow's arithmetic."""
    transform = v2.Compose([v2.RandomRotation(90), v2.ToImage(), v2.ColorJitter(hue=0.3)])
    assert [str(op) for op in stoker.convert_transform(transform)][1] == "ToImage"
    one = stoker.Loader(pictures, "RandomRotation(90, bilinear)", sizes="list", dtype="uint8", batch_size=12)
    two = stoker.Loader(pictures, "ToImage | RandomRotation(90, bilinear)", sizes="list", dtype="uint8", batch_size=12)
    three = stoker.Loader(
        pictures, "RandomRotation(90, bilinear) | ToImage", sizes="list", dtype="uint8", batch_size=12
    )
    a, b, c = (next(iter(loader)).image for loader in (one, two, three))
    assert all(torch.equal(x, y) for x, y in zip(a, c, strict=True))
    assert not all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
