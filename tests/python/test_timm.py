# SPDX-License-Identifier: Apache-2.0
"""timm's transforms, as create_transform makes them, give what timm gives."""

import random

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images

import_torchvision()

import torch  # noqa: E402

try:
    from timm.data import ImageDataset, create_loader, create_transform
except Exception as error:  # whatever it needs itself
    pytest.skip(f"timm cannot be imported: {error}", allow_module_level=True)

from PIL import Image  # noqa: E402
from replay import apart, rare, replay, within_one_unit  # noqa: E402
from torchvision import datasets  # noqa: E402

BASIC = {"is_training": True, "auto_augment": None, "re_prob": 0.0, "color_jitter": None}


def is_native(loader):
    words = loader.explain()
    return "samples from" not in words and "on each image" not in words


EVAL = {
    "default": {},
    "bicubic": {"interpolation": "bicubic"},
    "crop_pct": {"crop_pct": 1.0},
    "squash": {"crop_mode": "squash"},
    "lanczos": {"interpolation": "lanczos"},
    "mean": {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)},
    "no_aug": {"is_training": True, "no_aug": True},
    "prefetcher": {"use_prefetcher": True},  # bytes, which timm normalises on the device
}


@pytest.mark.parametrize("name", EVAL)
def test_evaluation(noise, name):
    transform = create_transform(32, **{"is_training": False} | EVAL[name])
    loader = stoker.Loader(noise, transform, batch_size=8)
    assert is_native(loader)
    ours = next(iter(loader)).image
    assert within_one_unit(ours, torch.stack([transform(p) for p in pillow_images(noise)]))
    folder = datasets.ImageFolder(noise, transform)
    (images, labels), *_ = stoker.DataLoader(folder, batch_size=8)
    assert torch.equal(images, ours) and labels.tolist() == folder.targets


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_basic_training(noise, interpolation):
    more = {"scale": (0.3, 1.0), "hflip": 0.5, "vflip": 0.2, "interpolation": interpolation}
    loader = stoker.Loader(noise, create_transform(24, **BASIC, **more), batch_size=8)
    assert is_native(loader)
    for epoch in range(6):
        seen = loader.get(range(8), epoch=epoch)
        for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
            names = [op["op"] for op in drawn["ops"]]
            assert names[:3] == ["RandomResizedCrop", "RandomHorizontalFlip", "RandomVerticalFlip"]
            assert within_one_unit(replay(image, drawn, interpolation=interpolation), row)


def test_its_crops_are_drawn_alike():
    n, crop = 5000, create_transform(8, **BASIC).transforms[0]
    image = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (n, 60, 80, 3))
    loader = stoker.Loader({"image": image}, crop, sampler=[0])
    rows = [row["ops"][0] for row in loader.drawn(range(n))]
    random.seed(0)
    image = Image.new("RGB", (80, 60))
    theirs = np.array([crop.get_params(image, crop.scale, crop.ratio) for _ in range(n)])
    for i, word in enumerate(("top", "left", "height", "width")):
        assert apart([row[word] for row in rows], theirs[:, i]) < rare(n)


def test_jitter_and_erasing(noise):
    transform = create_transform(
        32, is_training=True, auto_augment=None, color_jitter=0.4, re_prob=0.5, re_mode="pixel"
    )
    loader = stoker.Loader(noise, transform, batch_size=8)
    assert is_native(loader)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    seen = loader.get(range(8))
    for image, row, drawn in zip(pillow_images(noise), seen.image, seen.drawn, strict=True):
        names = [op["op"] for op in drawn["ops"]]
        assert names[2:] == ["ColorJitter", "ToTensor", "Normalize", "RandomErasing"]
        assert within_one_unit(replay(image, drawn, mean=mean, std=std), row)


def loaders(root, **more):
    """The loaders of timm's create_loader: with torch's class, and with Stoker's in its place."""
    for stokers in (False, True):
        torch.manual_seed(5)
        loader = create_loader(ImageDataset(str(root)), 24, batch_size=3, device=torch.device("cpu"), **more)
        yield stoker.DataLoader.from_torch(loader) if stokers else loader


LOADERS = {
    "evaluation": {},
    "no prefetcher": {"use_prefetcher": False},
    "training": {"is_training": True, "no_aug": True},
    "training, no prefetcher": {"is_training": True, "no_aug": True, "use_prefetcher": False},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_create_loader(noise, name, workers):
    theirs, ours = (loader for loader in loaders(noise, num_workers=workers, **LOADERS[name]))
    inside = getattr(ours, "loader", ours)
    assert type(inside) is stoker.DataLoader and inside.native and len(theirs) == len(ours)
    kinds = [[(type(batch), *(v.dtype for v in batch)) for batch in getattr(x, "loader", x)] for x in (theirs, ours)]
    assert kinds[0] == kinds[1]
    for _ in range(2):  # epochs
        torch.manual_seed(6)
        expected = list(theirs)
        torch.manual_seed(6)
        found = list(ours)
        assert [y.tolist() for _, y in found] == [y.tolist() for _, y in expected] and found
        for (x, _), (z, _) in zip(expected, found, strict=True):
            assert torch.allclose(x, z, atol=1e-5)


def test_create_loader_with_augmentation(noise):
    """The order is timm's; the images are augmented, the same way for any number of workers."""
    rows = []
    for workers in (0, 1, 2):
        more = {"is_training": True, "re_prob": 0.5, "auto_augment": "rand-m9-mstd0.5", "num_workers": workers}
        theirs, ours = loaders(noise, use_prefetcher=False, **more)
        torch.manual_seed(6)
        labels = [y.tolist() for _, y in theirs]
        torch.manual_seed(6)
        batches = list(ours)
        assert [y.tolist() for _, y in batches] == labels
        rows.append(torch.cat([x for x, _ in batches]))
    assert torch.equal(rows[0], rows[1]) and torch.equal(rows[1], rows[2])


def test_a_loader_of_several_epochs_is_refused(noise):
    loader = create_loader(ImageDataset(str(noise)), 24, 3, use_multi_epochs_loader=True, use_prefetcher=False)
    with pytest.raises(stoker.UsageError, match="MultiEpochsDataLoader changes how torch's loader iterates"):
        stoker.DataLoader.from_torch(loader)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("more", [{}, {"target_transform": lambda y: y + 1}])
def test_image_dataset_is_read_in_c(noise, tmp_path, workers, more):
    """timm sorts files and classes by the numbers in their names."""
    from timm.data import ImageDataset

    for i, path in enumerate(sorted(noise.glob("*/*.png"))):
        to = tmp_path / ("c10" if i % 2 else "c9") / f"{i * 3}.png"
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(path.read_bytes())
    dataset = ImageDataset(str(tmp_path), transform=create_transform(32), **more)
    for source in (dataset, torch.utils.data.Subset(dataset, [5, 0, 6])):
        loader = stoker.DataLoader(source, batch_size=3, num_workers=workers)
        assert loader.native
        theirs = list(torch.utils.data.DataLoader(source, batch_size=3))
        ours = list(loader)
        assert [y.tolist() for _, y in ours] == [y.tolist() for _, y in theirs]
        assert all(within_one_unit(a, b) for (a, _), (b, _) in zip(ours, theirs, strict=True))


TRAINING = {
    "default": {},
    "random interpolation": {"interpolation": "random"},
    "rand": {"auto_augment": "rand-m9-mstd0.5-inc1", "interpolation": "random"},
    "rand, bicubic": {"auto_augment": "rand-m7-n3", "interpolation": "bicubic"},
    "original": {"auto_augment": "original-mstd0.5"},
    "v0": {"auto_augment": "v0"},
    "augmix": {"auto_augment": "augmix-m5-w4-d2"},
    "three_augment": {"auto_augment": "3a", "color_jitter": 0.3},
    "erasing": {"re_prob": 0.5, "re_mode": "pixel", "re_count": 3},
    "erasing with colours": {"re_prob": 0.5, "re_mode": "rand"},
    "erasing with black": {"re_prob": 0.5, "re_mode": "const"},
    "flips": {"hflip": 0.3, "vflip": 0.2, "color_jitter": None},
    "like SimCLR": {"color_jitter": (0.8, 0.8, 0.8, 0.2), "color_jitter_prob": 0.8, "grayscale_prob": 0.2},
    "blur": {"gaussian_blur_prob": 0.5},
    "not normalized": {"normalize": False},
    "prefetcher": {"use_prefetcher": True, "re_prob": 0.5, "auto_augment": "rand-m9"},
    "sides": {"input_size": (3, 24, 32)},
}


@pytest.mark.parametrize("name", TRAINING)
def test_every_argument_of_training(noise, name):
    arguments = {"input_size": 24, "is_training": True, **TRAINING[name]}
    transform = create_transform(**arguments)
    loader = stoker.Loader(noise, transform, batch_size=8, output="torch")
    assert is_native(loader), loader.explain()
    ours, theirs = next(iter(loader)).image, transform(next(pillow_images(noise)))
    assert ours.shape[1:] == theirs.shape and ours.dtype == theirs.dtype
    folder = stoker.DataLoader(datasets.ImageFolder(noise, transform), batch_size=8)
    assert folder.native and next(iter(folder))[0].shape == ours.shape


def test_separate_transforms(noise):
    """The three parts one after the other are the whole."""
    parts = create_transform(24, is_training=True, separate=True, auto_augment="rand-m9-mstd0.5", re_prob=0.5)
    whole = create_transform(24, is_training=True, auto_augment="rand-m9-mstd0.5", re_prob=0.5)
    assert len(parts) == 3
    loaders = [stoker.Loader(noise, t, batch_size=8, output="torch") for t in (parts, whole)]
    assert is_native(loaders[0])
    assert torch.equal(next(iter(loaders[0])).image, next(iter(loaders[1])).image)


@pytest.mark.parametrize("more", [{"train_crop_mode": "rkrc"}, {"train_crop_mode": "rkrr"}])
def test_crop_modes_without_an_op_say_why(noise, more):
    transform = create_transform(24, is_training=True, **more)
    why = stoker.convert_transform(transform)[-1].function.why
    assert why[0] == "ResizeKeepRatio: no op has this name"
    loader = stoker.DataLoader(datasets.ImageFolder(noise, transform), batch_size=4)
    assert not loader.native and next(iter(loader))[0].shape == (4, 3, 24, 24)
