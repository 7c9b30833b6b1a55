# SPDX-License-Identifier: Apache-2.0
"""get() and drawn() report what every op drew; noise can be made again from its seed."""

import inspect

import numpy as np
import pytest
import stoker

# For every op: how it is written, and what it reports. Ops that draw nothing report their name at the least.
DRAWN = {
    "AugMix": ("AugMix", {"weights", "chains"}),
    "AutoAugment": ("AutoAugment", {"ops"}),
    "CenterCrop": ("CenterCrop(9)", {"top", "left", "height", "width"}),
    "ColorJitter": (
        "ColorJitter(0.4, 0.4, 0.4, 0.1)",
        {"fn_idx", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor"},
    ),
    "Compose": ("Compose([RandomInvert])", {"ops"}),
    "ElasticTransform": ("ElasticTransform(sigma=1)", {"seed"}),
    "FiveCrop": ("FiveCrop(9)", {"top", "left", "height", "width"}),
    "GaussianBlur": ("GaussianBlur(3)", {"sigma"}),
    "GaussianNoise": ("GaussianNoise", {"seed"}),
    "Grayscale": ("Grayscale", set()),
    "Identity": ("Identity", set()),
    "JPEG": ("JPEG((20, 90))", {"quality"}),
    "Normalize": ("Normalize", set()),
    "PILToTensor": ("PILToTensor", set()),
    "Pad": ("Pad(2)", {"padding"}),
    "PadIfSmaller": ("PadIfSmaller(40)", {"padding"}),
    "PillowBlur": ("PillowBlur(p=1)", {"applied", "radius"}),
    "RGB": ("RGB", set()),
    "RandAugment": ("RandAugment", {"ops"}),
    "RandomAdjustSharpness": ("RandomAdjustSharpness(2)", {"applied"}),
    "RandomAffine": ("RandomAffine(9, (0.1, 0.1), (0.9, 1.1), 5)", {"angle", "translate", "scale", "shear"}),
    "RandomApply": ("RandomApply([RandomInvert(1)], p=1)", {"ops"}),
    "RandomAutocontrast": ("RandomAutocontrast", {"applied"}),
    "RandomChannelPermutation": ("RandomChannelPermutation", {"permutation"}),
    "RandomChoice": ("RandomChoice([RandomInvert, Identity])", {"ops"}),
    "RandomCrop": ("RandomCrop(9)", {"padding", "top", "left", "height", "width"}),
    "RandomEqualize": ("RandomEqualize", {"applied"}),
    "RandomErasing": ("RandomErasing(1, value=random)", {"regions"}),
    "RandomGrayscale": ("RandomGrayscale", {"applied"}),
    "RandomHorizontalFlip": ("RandomHorizontalFlip", {"flip"}),
    "RandomInvert": ("RandomInvert", {"applied"}),
    "RandomOrder": ("RandomOrder([RandomInvert, Identity])", {"ops"}),
    "RandomPerspective": ("RandomPerspective(p=1)", {"applied", "coefficients"}),
    "RandomPhotometricDistort": ("RandomPhotometricDistort(p=1)", {"contrast_before", "channel_permutation"}),
    "RandomPosterize": ("RandomPosterize(4)", {"applied"}),
    "RandomResize": ("RandomResize(8, 12)", {"size"}),
    "RandomResizedCrop": ("RandomResizedCrop(9)", {"top", "left", "height", "width", "size"}),
    "RandomRotation": ("RandomRotation(30)", {"angle"}),
    "RandomShortestSize": ("RandomShortestSize((8, 12))", {"size"}),
    "RandomSolarize": ("RandomSolarize(128)", {"applied"}),
    "RandomVerticalFlip": ("RandomVerticalFlip", {"flip"}),
    "RandomZoomOut": ("RandomZoomOut(p=1)", {"applied", "padding"}),
    "Resize": ("Resize((9, 8))", {"size"}),
    "ScaleJitter": ("ScaleJitter((30, 30), (0.5, 1))", {"size"}),
    "TenCrop": ("TenCrop(9)", {"flip", "top", "left", "height", "width"}),
    "TimmAugment": ('TimmAugment("rand-m9-mstd0.5-inc1")', {"ops"}),
    "ToDtype": ("ToDtype(float32, scale=True)", set()),
    "ToImage": ("ToImage", set()),
    "ToTensor": ("ToTensor", set()),
    "TrivialAugmentWide": ("TrivialAugmentWide", {"ops"}),
}
WITH_BOXES = {"RandomIoUCrop", "SanitizeBoundingBoxes", "ClampBoundingBoxes", "ConvertBoundingBoxFormat"}
WITH_BOXES |= {"ClampKeyPoints", "SanitizeKeyPoints", "WholeBoundingBoxes"}
OF_BATCHES = {"MixUp", "CutMix", "Mixup"}  # which combine finished rows; get() returns the rows before that
PYTHON = {"Lambda", "Op"}


def test_no_op_is_missing():
    ops = {name for name, thing in vars(stoker).items() if inspect.isclass(thing) and issubclass(thing, stoker.Op)}
    assert ops - WITH_BOXES - OF_BATCHES - PYTHON == set(DRAWN)


@pytest.mark.parametrize("name", DRAWN)
def test_what_was_drawn_is_reported(photos, name):
    text, keys = DRAWN[name]
    loader = stoker.Loader(photos, text, output="numpy")
    for sample in range(2):
        seen = loader.get(sample, epoch=2)
        assert seen.drawn == loader.drawn(sample, epoch=2)
        (row,) = seen.drawn
        ops = row["views"][0]["ops"] if "views" in row else row["ops"]
        assert ops[0]["op"] == name and keys <= set(ops[0]), row


def test_ops_on_boxes_report_what_they_drew(tmp_path):
    pytest.importorskip("pycocotools")
    import coco_tree

    path = coco_tree.coco(tmp_path, n=3)
    loader = stoker.Loader(path, "RandomIoUCrop | SanitizeBoundingBoxes", sizes="list", output="numpy")
    for row in loader.drawn(range(3)):
        crop, sanitized = row["ops"]
        assert crop["op"] == "RandomIoUCrop" and ("top" in crop) == crop.get("applied", "top" in crop)
        assert sanitized == {"op": "SanitizeBoundingBoxes"}


def test_noise_is_made_again(photos):
    loader = stoker.Loader(photos, "GaussianNoise(sigma=0.1)", dtype="uint8", layout="NHWC", output="numpy")
    plain = stoker.Loader(photos, "Identity", dtype="uint8", layout="NHWC", output="numpy")
    seen, before = loader.get(3), plain.get(3).image[0]
    field = stoker.noise(seen.drawn[0]["ops"][0]["seed"], before.shape)
    shifted = before.astype(int) + (field * np.float32(0.1 * 255)).astype(int)
    assert np.array_equal(seen.image[0], shifted.clip(0, 255))
