# SPDX-License-Identifier: Apache-2.0
"""Every class of torchvision.transforms.v2 is an op or has a reason; recipes leave nothing in Python."""

import inspect

import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CROP, FLIP = v2.RandomResizedCrop(24), v2.RandomHorizontalFlip()
END = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]

NO_TRANSFORMS = {"AutoAugmentPolicy", "InterpolationMode", "Transform"}
BATCHES = {"MixUp": v2.MixUp(num_classes=2), "CutMix": v2.CutMix(num_classes=2)}  # given as batch_fn
IN_PYTHON = {
    "Lambda": (v2.Lambda(len), "a function of your own"),
    "LinearTransformation": (v2.LinearTransformation(torch.eye(12), torch.zeros(12)), "multiplies by a matrix"),
    "SetClampingMode": (v2.SetClampingMode("soft"), "only one mode"),
    "ToPILImage": (v2.ToPILImage(), "Pillow images"),
    "UniformTemporalSubsample": (v2.UniformTemporalSubsample(2), "videos"),
}
ARGUMENTS = {
    "CenterCrop": (8,),
    "Compose": ([v2.RandomInvert()],),
    "ConvertBoundingBoxFormat": ("CXCYWH",),
    "FiveCrop": (8,),
    "GaussianBlur": (3,),
    "JPEG": (50,),
    "Normalize": (MEAN, STD),
    "Pad": (2,),
    "RandomAdjustSharpness": (2,),
    "RandomAffine": (10,),
    "RandomApply": ([v2.RandomInvert()],),
    "RandomChoice": ([v2.RandomInvert(), v2.RandomEqualize()],),
    "RandomCrop": (8,),
    "RandomOrder": ([v2.RandomInvert(), v2.RandomEqualize()],),
    "RandomPosterize": (4,),
    "RandomResize": (8, 12),
    "RandomResizedCrop": (8,),
    "RandomRotation": (10,),
    "RandomShortestSize": (8,),
    "RandomSolarize": (128,),
    "Resize": (8,),
    "ScaleJitter": ((8, 8),),
    "TenCrop": (8,),
    "ToDtype": (torch.float32, True),
}
FORMS = {"GaussianNoise": [v2.ToImage()], "ToDtype": [v2.ToImage()], "ConvertImageDtype": [v2.ToImage()]}
FORMS |= {"Normalize": END[:2], "RandomErasing": END[:2], "ToPureTensor": [v2.ToImage()]}


def classes():
    found = {name for name, thing in vars(v2).items() if inspect.isclass(thing) and not name.startswith("_")}
    return sorted(found - NO_TRANSFORMS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", classes())
def test_every_transform_is_an_op_or_has_a_reason(photos, name):
    if name in BATCHES:
        end = [CROP, FLIP, *END]
        loader = stoker.Loader(photos, v2.Compose(end), batch_size=4, batch_fn=BATCHES[name], output="torch")
        assert name in str(loader) and "python" not in loader.explain()
        return
    transform = IN_PYTHON[name][0] if name in IN_PYTHON else getattr(v2, name)(*ARGUMENTS.get(name, ()))
    ops = stoker.convert_transform(v2.Compose([*FORMS.get(name, []), transform]))
    if name not in IN_PYTHON:
        assert not any(isinstance(op, stoker.Lambda) for op in ops)
        return
    assert IN_PYTHON[name][1] in " ".join(ops[-1].function.why)


def test_reasons_are_explained(photos):
    jitter = v2.ColorJitter(contrast=(0, 5))
    steps = [v2.CenterCrop(20), v2.ToImage(), jitter, v2.Lambda(lambda x: x), v2.RandomErasing(value=3)]
    words = stoker.Loader(photos, v2.Compose(steps), output="torch").explain()
    assert "no op for ColorJitter: with these factors, the result on a tensor would differ by more than one" in words
    assert "no op for Lambda: a function of your own" in words
    assert "no op for RandomErasing: its value would be scaled with the bytes" in words
    inner = v2.RandomApply([v2.Lambda(lambda x: x)])
    words = stoker.Loader(photos, v2.Compose([v2.CenterCrop(20), inner]), output="torch").explain()
    assert "no op for RandomApply: Lambda inside it: a function of your own" in words


# ---------------------------------------------------------------- recipes


def jitter(strength=1.0):
    return v2.RandomApply([v2.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)], p=0.8)


def test_the_reference_of_torchvision(photos):
    steps = [CROP, FLIP, v2.RandAugment(), *END, v2.RandomErasing(0.1)]
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=2), v2.CutMix(alpha=1.0, num_classes=2)])
    loader = stoker.Loader(photos, v2.Compose(steps), batch_size=4, batch_fn=mix, output="torch")
    assert "python" not in loader.explain()
    images, labels = next(iter(loader))
    assert images.shape == (4, 3, 24, 24) and labels.shape == (4, 2)


def test_two_views_of_simclr(photos):
    view = v2.Compose([CROP, FLIP, jitter(), v2.RandomGrayscale(0.2), v2.GaussianBlur(3), *END])
    loader = stoker.Loader(photos, {"a": view, "b": view}, batch_size=4, output="torch")
    assert "python" not in loader.explain()
    a, b, labels = next(iter(loader))
    assert a.shape == b.shape == (4, 3, 24, 24) and len(labels) == 4 and not torch.equal(a, b)


def test_crops_of_dino(photos):
    colour = [FLIP, jitter(0.5), v2.RandomGrayscale(0.2)]
    first = v2.Compose([v2.RandomResizedCrop(24, (0.4, 1.0), interpolation=3), *colour, v2.GaussianBlur(3), *END])
    second = v2.Compose(
        [v2.RandomResizedCrop(24, (0.4, 1.0), interpolation=3), *colour]
        + [v2.RandomApply([v2.GaussianBlur(3)], 0.1), v2.RandomSolarize(128, 0.2), *END]
    )
    local = v2.Compose(
        [v2.RandomResizedCrop(12, (0.05, 0.4), interpolation=3), *colour]
        + [v2.RandomApply([v2.GaussianBlur(3)], 0.5), *END]
    )
    loader = stoker.Loader(photos, {"one": first, "two": second, "local*8": local}, batch_size=4, output="torch")
    assert "python" not in loader.explain()
    batch = next(iter(loader))
    assert batch.one.shape == batch.two.shape == (4, 3, 24, 24) and batch.local.shape == (4, 8, 3, 12, 12)


def test_views_that_are_refused(photos):
    with pytest.raises(stoker.UsageError, match="the view b needs Python.*no op for Lambda: a function of your own"):
        stoker.Loader(photos, {"a": CROP, "b": v2.Compose([CROP, v2.Lambda(len)])})
    with pytest.raises(stoker.UsageError, match="different types"):
        stoker.Loader(photos, {"a": v2.Compose([CROP, *END]), "b": v2.Compose([CROP, v2.PILToTensor()])})


def test_repeated_augmentation(photos):
    """timm's sampler gives every sample three times, to three ranks or to one."""
    timm = pytest.importorskip("timm.data.distributed_sampler", reason="timm is not installed")
    source, rows = stoker.Source(photos), {}
    for rank in range(2):
        sampler = timm.RepeatAugSampler(source, num_replicas=2, rank=rank, num_repeats=3, selected_round=0)
        loader = stoker.Loader(
            source, "RandomCrop(9)", sampler=sampler, batch_size=4, dtype="uint8", fields=("image", "index")
        )
        for epoch in range(2):
            sampler.set_epoch(epoch)
            wanted = list(sampler)
            seen = [(int(i), x.numpy().tobytes()) for b in loader for x, i in zip(*b, strict=True)]
            assert [i for i, _ in seen] == wanted
            for i, pixels in seen:
                rows.setdefault((epoch, i), []).append(pixels)
    assert any(len(some) > 1 for some in rows.values())
    assert all(len(set(some)) == len(some) for some in rows.values())  # each time with other draws
