# SPDX-License-Identifier: Apache-2.0
"""Transforms and datasets of torchvision give what torchvision gives."""

import re
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, pillow_images, write_png

torch = pytest.importorskip("torch", reason="torch is not installed")
torchvision = import_torchvision()

from PIL import Image, ImageOps  # noqa: E402
from torchvision import datasets, tv_tensors  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import InterpolationMode, v2  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def both(root, transform, **k):
    ours = next(iter(stoker.Loader(root, transform, batch_size=8, output="torch", **k))).image
    return ours, torch.stack([transform(p) for p in pillow_images(root)])


U8 = [v1.PILToTensor()]
SAME = {
    "v1 eval": [v1.Resize(36), v1.CenterCrop(32), *U8],
    "v1 bicubic": [v1.Resize((30, 41), InterpolationMode.BICUBIC), *U8],
    "v1 nearest": [v1.Resize((30, 41), InterpolationMode.NEAREST), *U8],
    "v1 lanczos": [v1.Resize((30, 41), InterpolationMode.LANCZOS), *U8],
    "v1 list of one": [v1.Resize([36]), v1.CenterCrop([32, 20]), *U8],
    "v1 max_size": [v1.Resize(36, max_size=40), v1.CenterCrop(48), *U8],
    "v1 antialias of Pillow": [v1.Resize((20, 20), antialias=False), *U8],
    "v1 pad": [v1.CenterCrop(30), v1.Pad((1, 2, 3, 4), fill=(9, 8, 7)), *U8],
    "v1 pad reflect": [v1.CenterCrop(30), v1.Pad(5, padding_mode="reflect"), *U8],
    "v1 gray": [v1.CenterCrop(30), v1.Grayscale(), *U8],
    "v1 gray 3": [v1.CenterCrop(30), v1.Grayscale(3), *U8],
    "v1 flips": [v1.CenterCrop(30), v1.RandomHorizontalFlip(1.0), v1.RandomVerticalFlip(p=1.0), *U8],
    "v2 of Pillow": [v2.Resize(36), v2.CenterCrop(32), v2.PILToTensor()],
    "v2 uint8": [v2.PILToTensor(), v2.CenterCrop(32), v2.ToDtype(torch.uint8, scale=True)],
    "nested": [v1.Compose([v1.Resize(36), v1.CenterCrop(32)]), *U8],
}


@pytest.mark.parametrize("name", SAME)
def test_same_bytes(noise, name):
    kind = v2 if name.startswith("v2") else v1
    ours, theirs = both(noise, kind.Compose(SAME[name]))
    assert ours.dtype == torch.uint8 and torch.equal(ours, theirs)


@pytest.mark.parametrize("kind", [Image.Image, tv_tensors.Image, torch.Tensor])
@pytest.mark.parametrize("others", [{}, {"others": 4}])
def test_fills_depend_on_the_kind_of_image(noise, kind, others):
    """A Pillow image has not the fill of a torchvision.tv_tensors.Image."""
    first = {Image.Image: [], tv_tensors.Image: [v2.ToImage()], torch.Tensor: [v2.PILToTensor()]}
    for fill in ({Image.Image: 1, tv_tensors.Image: 2, torch.Tensor: 3, **others}, {tv_tensors.Mask: 9, **others}):
        last = v2.PILToTensor() if kind is Image.Image else v2.Identity()
        transform = v2.Compose([v2.CenterCrop(30), *first[kind], v2.Pad((1, 2, 3, 4), dict(fill)), last])
        assert not isinstance(stoker.convert_transform(transform)[-1], stoker.Lambda)
        assert torch.equal(*both(noise, transform))


@pytest.mark.parametrize("mode, antialias", [("bilinear", True), ("bilinear", False), ("bicubic", False)])
def test_tensors_are_resized_as_torch_does_within_one(noise, mode, antialias):
    for size in ((36, 30), (70, 80)):
        resize = v2.Resize(size, InterpolationMode(mode), antialias=antialias)
        ours, theirs = both(noise, v2.Compose([v2.ToImage(), resize]))
        off = (ours.int() - theirs.int()).abs()
        assert off.max() <= 1 and off.float().mean() < 0.2


FLOATS = {
    "ToTensor": v1.Compose([v1.CenterCrop(32), v1.ToTensor()]),
    "Normalize": v1.Compose([v1.Resize(36), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
    "flip after Normalize": v1.Compose(
        [v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD), v1.RandomHorizontalFlip(1.0)]
    ),
    "gray": v1.Compose([v1.CenterCrop(32), v1.Grayscale(), v1.ToTensor(), v1.Normalize([0.5], [0.25])]),
    "convert": v1.Compose([v1.CenterCrop(32), v1.PILToTensor(), v1.ConvertImageDtype(torch.float32)]),
    "v2": v2.Compose([v2.ToImage(), v2.CenterCrop(32), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]),
    "v2 unscaled": v2.Compose([v2.ToImage(), v2.CenterCrop(32), v2.ToDtype(torch.float32)]),
    "preset": torchvision.transforms._presets.ImageClassification(crop_size=32, resize_size=36),
}


@pytest.mark.parametrize("name", FLOATS)
def test_same_floats(noise, name):
    ours, theirs = both(noise, FLOATS[name])
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, torch.as_tensor(theirs), rtol=3e-7, atol=3e-7)


def test_weights(noise):
    transform = torchvision.models.ResNet18_Weights.DEFAULT.transforms()
    ours, theirs = both(noise, transform)
    assert ours.shape == (8, 3, 224, 224)
    torch.testing.assert_close(ours, theirs, rtol=3e-7, atol=3e-7)


OUT_OF_RANGE = {
    "bits: found 0": v2.RandomPosterize(0, 1.0),
    "more than 16 numbers": v2.RandomShortestSize(list(range(30, 50))),
    "kernel_size: found": v1.GaussianBlur(601, 100.0),
    "sigma: found": v2.ElasticTransform(50.0, 70.0),
}


@pytest.mark.parametrize("why", OUT_OF_RANGE)
def test_arguments_that_an_op_refuses_stay_in_python(why):
    assert why in " ".join(stoker.convert_transform(v1.Compose([OUT_OF_RANGE[why]]))[-1].function.why)


@pytest.mark.parametrize("threshold", [-5, 300])
def test_thresholds_out_of_range(noise, threshold):
    ours, theirs = both(noise, v1.Compose([v1.CenterCrop(32), v1.RandomSolarize(threshold, 1.0), *U8]))
    assert torch.equal(ours, theirs)


PYTHON = {
    "ColorJitter": [v1.CenterCrop(32), v1.PILToTensor(), v1.ColorJitter(contrast=(3.0, 3.0))],
    "GaussianBlur": [v1.CenterCrop(32), v1.ToTensor(), v1.GaussianBlur(3, (1.0, 1.0))],
    "Lambda": [v1.CenterCrop(32), v1.PILToTensor(), v1.Lambda(lambda x: x // 2)],
    "invert": [v1.CenterCrop(32), v1.Grayscale(), v1.ToTensor(), v1.RandomInvert(1.0)],
    "resize floats": [v1.CenterCrop(32), v1.ToTensor(), v1.Resize(20)],
    "tensor nearest": [v1.CenterCrop(32), v1.PILToTensor(), v1.Resize(20, InterpolationMode.NEAREST)],
    "tensor bicubic": [v1.CenterCrop(32), v1.PILToTensor(), v1.Resize(20, InterpolationMode.BICUBIC)],
    "half": [v1.CenterCrop(32), v1.PILToTensor(), v1.ConvertImageDtype(torch.float16)],
}


@pytest.mark.parametrize("name", PYTHON)
def test_the_rest_runs_in_python(noise, name):
    transform = v1.Compose(PYTHON[name])
    ours, theirs = both(noise, transform)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=3e-7, atol=3e-7)
    words = stoker.Loader(noise, transform).explain()
    assert "CenterCrop(size=(32, 32))" in words and "on each image" in words
    assert type(PYTHON[name][-1]).__name__ in words


def test_explain_says_what_the_rest_costs(noise):
    loader = stoker.Loader(noise, v1.Compose([v1.CenterCrop(32), v1.ToTensor(), v1.RandomInvert()]), batch_size=2)
    list(loader)
    assert re.search(r"RandomInvert on each image: .*\n +no op for .*\n +[0-9.]+ ms per image", loader.explain())


def test_random_ops_keep_their_arguments(noise):
    from stoker._convert import transform

    def text(*ops):
        return " | ".join(map(str, transform(v1.Compose(list(ops))).ops))

    assert text(v1.RandomResizedCrop(224, scale=(0.5, 1.0))) == "RandomResizedCrop((224, 224), scale=(0.5, 1.0))"
    assert text(v1.RandomCrop(32, padding=4)) == "RandomCrop((32, 32), padding=4)"
    assert text(v2.RandomCrop(32, padding=(1, 2, 3, 4))) == "RandomCrop((32, 32), padding=(1, 2, 3, 4))"
    assert text(v1.RandomHorizontalFlip(0.25)) == "RandomHorizontalFlip(p=0.25)"
    assert transform(v1.RandomCrop(32, padding=4, pad_if_needed=True)).rest  # v1 pads twice
    assert transform(v1.RandomCrop(32, padding=4, pad_if_needed=True)).random
    assert transform(v2.RandomCrop(32, padding=4, pad_if_needed=True)).rest is None


def test_random_crops_are_crops(noise):
    transform = v1.Compose([v1.RandomCrop(16, padding=2), v1.PILToTensor()])
    ours = next(iter(stoker.Loader(noise, transform, batch_size=8, output="torch"))).image
    for image, crop in zip(pillow_images(noise), ours, strict=True):
        padded = v1.functional.pil_to_tensor(v1.functional.pad(image, [2]))
        windows = padded.unfold(1, 16, 1).unfold(2, 16, 1).permute(1, 2, 0, 3, 4).flatten(0, 1)
        assert (windows == crop).flatten(1).all(1).any()


def test_one_op_alone_and_what_has_no_size(noise):
    assert next(iter(stoker.Loader(noise, v1.CenterCrop(8)))).image.shape == (1, 3, 8, 8)
    with pytest.raises(stoker.UsageError, match="Stoker has no op Lambda"):
        stoker.Loader(noise, v1.Compose([v1.Resize(8), v1.Lambda(lambda x: x), v1.CenterCrop(8)]))
    with pytest.raises(stoker.UsageError, match="runs in Python"):
        stoker.Loader(noise, v1.Compose([v1.CenterCrop(8), v1.Lambda(lambda x: x)]), dtype="float32")


NORMALIZE = v1.Normalize(MEAN, STD)
STACKED = {
    "to tensor": [v1.FiveCrop(12), v1.Lambda(lambda crops: torch.stack([v1.ToTensor()(c) for c in crops]))],
    "bytes": [v1.Resize(30), v1.TenCrop(12), v1.Lambda(lambda cs: torch.stack([v1.PILToTensor()(c) for c in cs]))],
    "normalized": [
        v1.TenCrop(12, True),
        v1.Lambda(lambda crops: torch.stack([NORMALIZE(v1.ToTensor()(crop)) for crop in crops])),
    ],
    "normalized later": [
        v1.FiveCrop((12, 9)),
        v1.Lambda(lambda crops: torch.stack([v1.functional.to_tensor(crop) for crop in crops])),
        NORMALIZE,
    ],
}


@pytest.mark.parametrize("name", STACKED)
def test_stacked_crops(noise, name):
    dataset = datasets.ImageFolder(noise, v1.Compose(STACKED[name]))
    loader = stoker.DataLoader(dataset, batch_size=4)
    assert loader.native and "python" not in loader.explain()
    for ours, theirs in zip(loader, torch.utils.data.DataLoader(dataset, batch_size=4), strict=True):
        assert ours[0].dtype == theirs[0].dtype and torch.equal(ours[1], theirs[1])
        torch.testing.assert_close(ours[0], theirs[0], rtol=3e-7, atol=3e-7)
    images = next(iter(stoker.Loader(noise, v1.Compose(STACKED[name]), batch_size=4, output="torch"))).image
    assert torch.equal(images, next(iter(loader))[0])


def test_crops_that_are_not_stacked(noise):
    """Another function gets the crops themselves, in Python."""
    doubled = v1.Lambda(lambda crops: torch.stack([v1.ToTensor()(c) * 2 for c in crops]))
    dataset = datasets.ImageFolder(noise, v1.Compose([v1.FiveCrop(12), doubled]))
    loader = stoker.DataLoader(dataset, batch_size=4)
    assert not loader.native
    torch.testing.assert_close(next(iter(loader))[0], next(iter(torch.utils.data.DataLoader(dataset, batch_size=4)))[0])
    why = stoker.convert_transform(dataset.transform)[-1].function.why
    assert why[0].startswith("FiveCrop: it returns several images, and what follows it runs in Python")
    apart = v2.Compose([v2.ToImage(), v2.FiveCrop(12), v2.ToDtype(torch.float32, scale=True)])
    images = next(iter(stoker.Loader(noise, apart, batch_size=3, output="torch"))).image
    assert images.shape == (3, 5, 3, 12, 12)
    loader = stoker.DataLoader(datasets.ImageFolder(noise, apart), batch_size=3)
    assert not loader.native and "tuples of crops" in loader.explain()
    for i, crop in enumerate(next(iter(loader))[0]):
        assert torch.allclose(crop, images[:, i])


def is_native(loader):
    return "samples from" not in loader.explain()


def same(loader, dataset):
    images, labels = (torch.cat(v) for v in zip(*[tuple(b) for b in loader], strict=True))
    assert labels.tolist() == [dataset[i][1] for i in range(len(dataset))]
    torch.testing.assert_close(images, torch.stack([dataset[i][0] for i in range(len(dataset))]), rtol=3e-7, atol=3e-7)


EVAL = v1.Compose([v1.Resize(36), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)])


def test_image_folder(noise):
    dataset = datasets.ImageFolder(noise, EVAL)
    loader = stoker.Loader(dataset, batch_size=3)
    assert is_native(loader) and loader.classes == dataset.classes and loader.dataset is dataset
    same(loader, dataset)
    dataset = datasets.DatasetFolder(str(noise), datasets.folder.default_loader, (".png",), transform=EVAL)
    loader = stoker.Loader(dataset)
    assert is_native(loader)
    same(loader, dataset)


def test_parts_and_sums(noise, tmp_path):
    whole = datasets.ImageFolder(noise, EVAL)
    part = torch.utils.data.Subset(whole, [5, 2, 2, 7])
    loader = stoker.Loader(part, batch_size=2)
    assert is_native(loader) and len(loader) == 2
    same(loader, part)
    both = torch.utils.data.ConcatDataset([whole, torch.utils.data.Subset(part, [3, 0]), whole])
    loader = stoker.Loader(both, batch_size=4)
    assert is_native(loader)
    same(loader, both)
    write_png(tmp_path / "b" / "1.png", np.full((40, 40, 3), 7, np.uint8))  # there b is class 0
    both = torch.utils.data.ConcatDataset([whole, datasets.ImageFolder(tmp_path, EVAL)])
    loader = stoker.Loader(both, batch_size=4)
    assert not is_native(loader)
    same(loader, both)


def test_a_changed_list_of_samples(noise):
    dataset = datasets.ImageFolder(noise, EVAL)
    dataset.samples = dataset.samples[::-1][:5]
    loader = stoker.Loader(dataset, batch_size=4)
    assert is_native(loader)
    same(loader, dataset)


def test_the_rest_of_a_folders_transform(noise):
    dataset = datasets.ImageFolder(noise, v1.Compose([v1.CenterCrop(32), v1.Lambda(ImageOps.invert), v1.ToTensor()]))
    loader = stoker.Loader(dataset, batch_size=4)
    assert is_native(loader) and "Lambda on each image" in loader.explain()
    same(loader, dataset)


def test_what_stays_in_python(noise):
    class Own(datasets.ImageFolder):
        def __getitem__(self, i):
            return super().__getitem__(i)

    class Doubled(datasets.ImageFolder):
        def __getitem__(self, i):
            image, label = super().__getitem__(i)
            return image * 2, label

    def load(path):
        return Image.open(path).convert("RGB")

    own = v1.Compose([v1.Resize(40), v1.Lambda(ImageOps.mirror), v1.CenterCrop(32), v1.ToTensor()])
    for dataset, why in (
        (Own(noise, EVAL), ""),
        (Doubled(noise, EVAL), "its __getitem__ does more"),
        (datasets.ImageFolder(noise, EVAL, loader=load), "its loader"),
        (datasets.ImageFolder(noise, EVAL, target_transform=lambda y: y + 1), ""),
        (datasets.ImageFolder(noise, own), "before all images have one size"),
    ):
        loader = stoker.Loader(dataset, batch_size=4)
        assert not is_native(loader) and why in loader.explain()
        same(loader, dataset)


def test_a_transform_on_samples_of_python(noise):
    bare = datasets.ImageFolder(noise, loader=lambda path: Image.open(path).convert("RGB"))
    loader = stoker.Loader(bare, EVAL, batch_size=4)
    assert not is_native(loader)
    same(loader, datasets.ImageFolder(noise, EVAL))


def test_exif_is_left_alone(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "a").mkdir()
    pixels = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a" / "1.png", exif=exif)
    transform = v1.Compose([v1.CenterCrop(32), v1.PILToTensor()])
    dataset = datasets.ImageFolder(tmp_path, transform)
    for source, given in ((dataset, None), (tmp_path, transform)):
        same(stoker.Loader(source, given), dataset)


def test_data_loader(noise):
    dataset = datasets.ImageFolder(noise, EVAL)
    loader = stoker.DataLoader(dataset, batch_size=3, num_workers=2)
    assert is_native(loader) and len(loader.sampler) == 8
    same(loader, dataset)
    theirs = list(torch.utils.data.DataLoader(dataset, batch_size=3))
    assert [y.tolist() for _, y in loader] == [y.tolist() for _, y in theirs]


def test_collate_fn_gets_what_the_folder_gives(noise):
    dataset = datasets.ImageFolder(noise, EVAL)

    def collate(samples):
        assert all(type(y) is int and x.shape == (3, 32, 32) for x, y in samples)
        return torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])

    loader = stoker.DataLoader(dataset, batch_size=3, collate_fn=collate)
    assert is_native(loader)
    same(loader, dataset)


def test_a_script_changes_one_line(noise, tmp_path, monkeypatch):
    """The one in docs/migrate.md."""
    text = (Path(__file__).parents[2] / "docs/migrate.md").read_text()
    lines = re.search(r"^```diff\n(.*?)^```", text, flags=re.S | re.M)[1].splitlines()
    assert [line[0] for line in lines if line[:1] in "+-" and line] == ["-", "+"]
    (tmp_path / "train").symlink_to(noise)
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more of them only wait for each other here
    for sign in "-+":
        script = "\n".join(line[1:] for line in lines if line[:1] in ("", " ", sign))
        names = {}
        exec(script.replace("num_workers=2", "num_workers=0" if sign == "-" else "num_workers=2"), names)
        assert torch.isfinite(names["loss"])
    assert isinstance(names["loader"], stoker.DataLoader) and is_native(names["loader"])
    assert names["loader"].state_dict() == {"epoch": 2}
    torch.set_num_threads(threads)


def rows_of(loader):
    return [[v.tolist() for v in batch] for batch in loader]


@pytest.mark.parametrize("last", ["ColorJitter", "RandomInvert"])
def test_python_after_ops_runs_in_processes(noise, last):
    first = [v1.RandomCrop(16), v1.RandomHorizontalFlip()]
    end = [v1.ToTensor(), v1.Normalize((0.5,) * 3, (0.2,) * 3)]
    jitter = [v1.Lambda(lambda image: image), v1.ColorJitter(0.4, 0.4), *end]
    python = jitter if last == "ColorJitter" else [*end, v1.RandomInvert()]
    dataset = datasets.ImageFolder(noise, v1.Compose([*first, *python]))
    runs = []
    for workers in (0, 1, 3):
        torch.manual_seed(4)
        loader = stoker.DataLoader(dataset, batch_size=3, shuffle=True, num_workers=workers)
        assert ("before and after the functions" in loader.explain()) == (workers > 0)
        runs.append([rows_of(loader), rows_of(loader)])
    assert runs[0] == runs[1] == runs[2] and runs[0][0] != runs[0][1]
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), rows_of(batches)
    other = stoker.DataLoader(dataset, batch_size=3, shuffle=True, num_workers=2)
    other.load_state_dict(state)
    assert rows_of(other) == rest
    dataset.transform = v1.Compose([v1.CenterCrop(8), *end])
    assert next(iter(other))[0].shape == (3, 3, 8, 8)
    loader.close(), other.close()


def test_python_after_ops_fails(noise):
    def fail(image):
        raise ValueError("no luck")

    transform = v1.Compose([v1.CenterCrop(16), v1.ToTensor(), v1.Lambda(fail)])
    with pytest.raises(Exception, match="no luck"):
        next(iter(stoker.DataLoader(datasets.ImageFolder(noise, transform), batch_size=3, num_workers=2)))


def test_convert_transform():
    ops = stoker.convert_transform(v1.Compose([v1.Resize(36), v1.CenterCrop(32), v1.Lambda(len), v1.ToTensor()]))
    assert [str(o) for o in ops] == ["Resize(36)", "CenterCrop((32, 32))", "Lambda(Lambda)"]


def test_compare(noise, capsys):
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(noise, EVAL), batch_size=4)
    found = stoker.compare(loader, seconds=0.1)
    assert found.native and found.pixels < 1e-6 and found.labels == 0 and found.samples == 8
    assert found.ours > 0 and found.theirs > 0 and str(found) == capsys.readouterr().out.strip()
    train = v1.Compose([v1.RandomCrop(16), v1.ToTensor()])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(noise, train), batch_size=4, shuffle=True, drop_last=True)
    found = stoker.compare(loader, seconds=0.1)
    assert found.pixels is None and found.labels == 0 and "not compared" in str(found)


def test_names_of_timm(noise):
    """timm is not needed for it: its transforms are known by name and attributes."""
    from stoker._convert import transform

    def of_timm(name, **attributes):
        return type(name, (), {"__module__": "timm.data.transforms", "__call__": lambda self, x: x} | attributes)()

    crop = {"size": (32, 32), "scale": (0.5, 1.0), "ratio": (0.75, 4 / 3)}
    one = of_timm("RandomResizedCropAndInterpolation", interpolation=InterpolationMode.BICUBIC, **crop)
    made = transform(v1.Compose([one, v1.RandomHorizontalFlip(), of_timm("MaybeToTensor"), v1.Normalize(MEAN, STD)]))
    assert made.rest is None and made.dtype == "float32"
    assert str(made.ops[0]) == "RandomResizedCrop((32, 32), scale=(0.5, 1.0), interpolation=bicubic)"
    several = (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)  # one of them at random
    one = transform(of_timm("RandomResizedCropAndInterpolation", interpolation=several, **crop))
    assert one.rest is None and one.sized and str(one.ops[0]).startswith("RandomChoice([RandomResizedCrop(")
