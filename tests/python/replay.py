# SPDX-License-Identifier: Apache-2.0
"""Ops with the numbers that were drawn, done by torchvision's own functions on Pillow's images."""

import math

import numpy as np
import stoker
import torch
from PIL import Image, ImageFilter
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F
from torchvision.transforms.v2 import functional as F2


def _crop(image, op):
    return F.crop(image, op["top"], op["left"], op["height"], op["width"])


def random_crop(image, op, padding_mode="constant", fill=0, **_):
    return _crop(F.pad(image, op["padding"], fill, padding_mode) if any(op["padding"]) else image, op)


def random_resized_crop(image, op, interpolation="bilinear", **_):
    box = op["top"], op["left"], op["height"], op["width"]
    return F.resized_crop(image, *box, op["size"], InterpolationMode(interpolation))


def resize(image, op, interpolation="bilinear", **_):
    return F.resize(image, op["size"], InterpolationMode(interpolation))


def pad(image, op, padding_mode="constant", fill=0, **_):
    return F.pad(image, op["padding"], fill, padding_mode)


def normalize(image, op, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), **_):
    return F.normalize(image if isinstance(image, torch.Tensor) else F.to_tensor(image), mean, std)


ADJUST = (
    ("brightness_factor", F.adjust_brightness),
    ("contrast_factor", F.adjust_contrast),
    ("saturation_factor", F.adjust_saturation),
    ("hue_factor", F.adjust_hue),
)


def color_jitter(image, op, **_):
    for i in op["fn_idx"]:
        name, adjust = ADJUST[i]
        image = adjust(image, op[name]) if name in op else image
    return image


def permute(image, order):
    bands = image.split()
    return Image.merge(image.mode, [bands[i] for i in order])


def photometric_distort(image, op, **_):
    order = (0, 1, 2, 3) if op["contrast_before"] else (0, 2, 3, 1)
    image = color_jitter(image, {**op, "fn_idx": order})
    return permute(image, op["channel_permutation"]) if "channel_permutation" in op else image


def chance(function):
    return lambda image, op, **k: function(image, **k) if op["applied"] else image


def rotation(image, op, interpolation="nearest", expand=False, center=None, fill=0, **_):
    return F.rotate(image, op["angle"], InterpolationMode(interpolation), expand, center, fill)


def affine(image, op, interpolation="nearest", center=None, fill=0, **_):
    box = op["translate"], op["scale"], op["shear"]
    return F.affine(image, op["angle"], *box, InterpolationMode(interpolation), fill, center)


def perspective(image, op, interpolation="bilinear", fill=0, **_):
    if not op["applied"]:
        return image
    return F2.perspective(image, None, None, interpolation, fill, coefficients=op["coefficients"])


def elastic(image, op, alpha=50.0, sigma=5.0, interpolation="bilinear", fill=0, **_):
    """torchvision's own field, from our noise."""
    alpha, sigma = np.broadcast_to(alpha, 2).tolist(), np.broadcast_to(sigma, 2).tolist()
    field = torch.from_numpy(stoker.noise(op["seed"], (2, image.height, image.width), "uniform")) * 2 - 1
    shifts = []
    for i, side in enumerate((image.width, image.height)):
        size = int(8 * sigma[i] + 1) | 1
        shift = (
            F2.gaussian_blur(field[None, i : i + 1], [size, size], sigma) if sigma[i] > 0 else field[None, i : i + 1]
        )
        shifts.append(shift * alpha[i] / side)
    return F2.elastic(image, torch.concat(shifts, 1).permute(0, 2, 3, 1), interpolation, fill)


def noise(image, op, mean=0.0, deviation=0.1, clip=True, **_):
    """torchvision's gaussian_noise on uint8, with our numbers in place of torch's."""
    pixels = F.pil_to_tensor(image)
    field = torch.from_numpy(stoker.noise(op["seed"], (image.height, image.width, len(pixels)))).permute(2, 0, 1)
    out = pixels + ((mean * 255) + field * (deviation * 255)).to(torch.int16)
    return F.to_pil_image((out.clamp(0, 255) if clip else out).to(torch.uint8), image.mode)


def inner(image, op, **k):
    for one in op["ops"]:
        image = FUNCTIONS[one["op"]](image, one, **k)
    return image


def erase(image, op, value=0, **_):
    image = image if isinstance(image, torch.Tensor) else F.to_tensor(image)
    for one in op["regions"]:
        v = torch.tensor(value, dtype=torch.float32).reshape(-1, 1, 1)
        if "seed" in one:
            v = torch.from_numpy(stoker.noise(one["seed"], (image.shape[0], one["h"], one["w"])))
        elif "v" in one:
            v = torch.tensor(one["v"]).reshape(-1, 1, 1)
        image = F.erase(image, one["i"], one["j"], one["h"], one["w"], v)
    return image


def _affine(image, sampling="nearest", fill=0, **k):
    k = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0], **k}
    return F.affine(image, **k, interpolation=InterpolationMode(sampling), fill=fill)


def _shear(image, op, axis, sampling="nearest", fill=0, **_):
    shear = [0.0, 0.0]
    shear[axis] = math.degrees(math.atan(op["magnitude"]))
    return _affine(image, sampling, fill, shear=shear, center=[0, 0])


def _translate(image, op, axis, sampling="nearest", fill=0, **_):
    translate = [0, 0]
    translate[axis] = int(op["magnitude"])
    return _affine(image, sampling, fill, translate=translate)


def _rotate(image, op, sampling="nearest", fill=0, **_):
    return F.rotate(image, op["magnitude"], InterpolationMode(sampling), fill=fill)


def _factor(function):
    return lambda image, op, **_: function(image, 1.0 + op["magnitude"])


FUNCTIONS = {
    "AutoAugment": inner,
    "RandAugment": inner,
    "TrivialAugmentWide": inner,
    "ShearX": lambda image, op, **k: _shear(image, op, 0, **k),
    "ShearY": lambda image, op, **k: _shear(image, op, 1, **k),
    "TranslateX": lambda image, op, **k: _translate(image, op, 0, **k),
    "TranslateY": lambda image, op, **k: _translate(image, op, 1, **k),
    "Rotate": _rotate,
    "Brightness": _factor(F.adjust_brightness),
    "Color": _factor(F.adjust_saturation),
    "Contrast": _factor(F.adjust_contrast),
    "Sharpness": _factor(F.adjust_sharpness),
    "Posterize": lambda image, op, **_: F.posterize(image, int(op["magnitude"])),
    "Solarize": lambda image, op, **_: F.solarize(image, 255.0 * op["magnitude"]),
    "AutoContrast": lambda image, op, **_: F.autocontrast(image),
    "Equalize": lambda image, op, **_: F.equalize(image),
    "Invert": lambda image, op, **_: F.invert(image),
    "RandomErasing": erase,
    "ColorJitter": color_jitter,
    "ElasticTransform": elastic,
    "GaussianBlur": lambda image, op, kernel=5, **_: F.gaussian_blur(image, kernel, [op["sigma"]] * 2),
    "GaussianNoise": noise,
    "PillowBlur": lambda image, op, **_: (
        image.filter(ImageFilter.GaussianBlur(op["radius"])) if op["applied"] else image
    ),
    "JPEG": lambda image, op, **_: F2.jpeg(image, op["quality"]),
    "RandomAffine": affine,
    "RandomPerspective": perspective,
    "RandomResize": resize,
    "RandomRotation": rotation,
    "RandomShortestSize": resize,
    "RandomZoomOut": lambda image, op, fill=0, **_: F.pad(image, op["padding"], fill) if op["applied"] else image,
    "ScaleJitter": resize,
    "Compose": inner,
    "Identity": lambda image, op, **_: image,
    "RGB": lambda image, op, **_: image.convert("RGB"),
    "RandomAdjustSharpness": chance(lambda image, sharpness=2, **_: F.adjust_sharpness(image, sharpness)),
    "RandomApply": inner,
    "RandomAutocontrast": chance(lambda image, **_: F.autocontrast(image)),
    "RandomChannelPermutation": lambda image, op, **_: permute(image, op["permutation"]),
    "RandomChoice": inner,
    "RandomEqualize": chance(lambda image, **_: F.equalize(image)),
    "RandomGrayscale": chance(lambda image, **_: F.to_grayscale(image, len(image.getbands()))),
    "RandomInvert": chance(lambda image, **_: F.invert(image)),
    "RandomOrder": inner,
    "RandomPhotometricDistort": photometric_distort,
    "RandomPosterize": chance(lambda image, bits=4, **_: F.posterize(image, bits)),
    "RandomSolarize": chance(lambda image, threshold=128, **_: F.solarize(image, threshold)),
    "CenterCrop": lambda image, op, **_: _crop(image, op),
    "Grayscale": lambda image, op, channels=1, **_: F.to_grayscale(image, channels),
    "Normalize": normalize,
    "Pad": pad,
    "PadIfSmaller": pad,
    "RandomCrop": random_crop,
    "RandomHorizontalFlip": lambda image, op, **_: F.hflip(image) if op["flip"] else image,
    "RandomResizedCrop": random_resized_crop,
    "RandomVerticalFlip": lambda image, op, **_: F.vflip(image) if op["flip"] else image,
    "Resize": resize,
    "ToTensor": lambda image, op, **_: image,
}


def replay(image, drawn, **k):
    """Applies the drawn ops to an image; k: arguments of the ops that are not drawn."""
    assert drawn["size"] == [image.height, image.width]
    for op in drawn["ops"]:
        image = FUNCTIONS[op["op"]](image, op, **k)
    return image if isinstance(image, torch.Tensor) else F.pil_to_tensor(image)


def within_one_unit(a, b):
    """Floats that differ by one unit in the last place at the most."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return bool((np.abs(a - b) <= np.spacing(np.maximum(np.abs(a), np.abs(b)))).all())


def apart(a, b):
    """The statistic of Kolmogorov and Smirnov: the largest difference of two distribution functions."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()


def rare(n):
    """Two samples of n from one distribution are further apart in one case of a thousand."""
    return 1.95 * (2 / n) ** 0.5
