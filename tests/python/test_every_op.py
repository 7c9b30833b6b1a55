# SPDX-License-Identifier: Apache-2.0
"""Every op on images of odd sizes; and what must not change a row of any op: threads, ranks, caches and a resume."""

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, write_png

import_torchvision()

import torch  # noqa: E402
from PIL import Image  # noqa: E402
from replay import apart, rare, replay  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

# Ops that take an image of any size, with what torchvision needs to replay them, and how far apart the pixels may be.
ANY_SIZE = {
    "Resize((5, 9))": {},
    "Resize((7, 3), interpolation=bicubic)": {"interpolation": "bicubic"},
    "CenterCrop((6, 4))": {},
    "RandomCrop((4, 6), padding=3, pad_if_needed=True)": {},
    "RandomResizedCrop((5, 8))": {},
    "Pad((1, 2, 3, 4), fill=9)": {"fill": 9},
    "Pad(2, padding_mode=edge)": {"padding_mode": "edge"},
    "RandomHorizontalFlip(1) | RandomVerticalFlip(1)": {},
    "RandomZoomOut(fill=(1, 2, 3), p=1)": {"fill": (1, 2, 3)},
    "RandomResize(2, 9)": {},
    "RandomShortestSize((2, 5), 20)": {},
    "ScaleJitter((40, 40), (1, 2))": {},
    "RandomRotation(180, bilinear, expand=True)": {"interpolation": "bilinear", "expand": True},
    "RandomGrayscale(1)": {},
    "Grayscale": {},
    "Grayscale | RGB": {},
    "RandomChannelPermutation": {},
    "RandomPhotometricDistort(p=1)": {},
    "RandomInvert(1) | RandomPosterize(3, p=1) | RandomSolarize(100, p=1)": {"bits": 3, "threshold": 100},
    "GaussianNoise(0.1, 0.3)": {"mean": 0.1, "deviation": 0.3},
    "PillowBlur((0, 3), p=0.9)": {},
    "PadIfSmaller((9, 12), fill=7)": {"fill": 7},
    "AutoAugment": {},
    "AutoAugment(svhn, fill=7)": {"fill": 7},
    "RandAugment(3)": {},
    "TrivialAugmentWide": {},
    "RandomApply([ColorJitter(0.5, 0.5, 0.5, 0.1), RandomInvert], p=0.9)": {},
    "RandomChoice([RandomInvert(1), RandomGrayscale(1), Identity])": {},
    "RandomOrder([RandomInvert, RandomSolarize(128), RandomHorizontalFlip])": {},
    "Compose([RandomInvert(1), Identity])": {},
}
ODD = [(1, 1), (1, 7), (9, 1), (2, 3), (4100, 3), (2, 5001)]


@pytest.mark.parametrize("shape", ODD)
@pytest.mark.parametrize("ops", ANY_SIZE)
def test_odd_sizes(tmp_path, ops, shape):
    if ("ScaleJitter" in ops or "Shortest" in ops) and max(shape) > 100 * min(shape):
        pytest.skip("one side would become 0")
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    write_png(tmp_path / "one.png", pixels[0])
    loader = stoker.Loader(tmp_path, ops, dtype="uint8", output="torch")
    for epoch in range(3):
        seen = loader.get([0], epoch=epoch)
        theirs = replay(Image.fromarray(pixels[0]), seen.drawn[0], **ANY_SIZE[ops])
        assert torch.equal(theirs, seen.image[0]), seen.drawn


@pytest.mark.parametrize("shape", [(65, 66), (70, 4300), (4200, 64)])
def test_distortions_of_odd_sizes(shape):
    """ElasticTransform needs more than four times sigma; torch computes it in floats, in another order."""
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    seen = stoker.Loader({"image": pixels}, "ElasticTransform(sigma=3)", dtype="uint8", output="torch").get([0])
    theirs = replay(Image.fromarray(pixels[0]), seen.drawn[0], sigma=3.0)
    assert (theirs.int() - seen.image[0].int()).abs().max() <= 1


@pytest.mark.parametrize("shape", ODD)
@pytest.mark.parametrize("policy", ["rand-m9-mstd0.5-inc1", "original", "v0r", "3a", "augmix-m5-w4-d2"])
def test_policies_of_timm_on_odd_sizes(shape, policy):
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    loader = stoker.Loader({"image": pixels}, f'TimmAugment("{policy}")', dtype="uint8", output="numpy")
    assert all(loader.get([0], epoch=e).image.shape == (1, 3, *shape) for e in range(6))


def test_mixtures_and_erasing_of_odd_sizes():
    for shape in ODD:
        pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
        for ops in ("AugMix", "RandomErasing(1)", "RandomErasing(1, scale=(0.9, 1), value=(1, 2, 3))"):
            loader = stoker.Loader({"image": pixels}, ops, dtype="uint8", output="numpy")
            assert loader.get([0]).image.shape == (1, 3, *shape)


@pytest.mark.parametrize("shape", ODD)
def test_crops_of_odd_sizes(shape):
    pixels = np.random.default_rng(5).integers(0, 256, (1, *shape, 3), dtype=np.uint8)
    image = v2.functional.to_image(Image.fromarray(pixels[0]))
    for ops, function in (("FiveCrop", v2.functional.five_crop), ("TenCrop", v2.functional.ten_crop)):
        for size in {(1, 1), (min(shape), min(shape)), shape}:
            loader = stoker.Loader({"image": pixels}, f"{ops}({size})", dtype="uint8", output="torch")
            assert torch.equal(torch.stack(function(image, size)), loader.get([0]).image[0])


# ---------------------------------------------------------------- how often

N = 6000
CHANCES = ["RandomAutocontrast", "RandomEqualize", "RandomInvert", "RandomGrayscale", "RandomHorizontalFlip"]
CHANCES += ["RandomVerticalFlip", "RandomPosterize(4, p=0.5)", "RandomSolarize(9, p=0.5)", "RandomZoomOut"]
CHANCES += ["RandomAdjustSharpness(2, p=0.5)", "RandomPerspective", "RandomApply([RandomInvert])"]


def drawn_here(ops, side=9):
    image = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (N, side, side, 3))
    with stoker.Loader({"image": image}, f"{ops} | CenterCrop(4)", output="numpy", sampler=[0]) as loader:
        return [row["ops"][0] for row in loader.drawn(range(N), epoch=0)]


@pytest.mark.parametrize("ops", CHANCES)
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_chances(ops, p):
    text = ops.replace("p=0.5", f"p={p}") if "p=0.5" in ops else ops.rstrip(")") + (", " if "(" in ops else "(")
    text = text if "p=" in text else f"{text}p={p})"
    rows = drawn_here(text, 40)
    share = np.mean([row.get("applied", row.get("flip")) for row in rows])
    assert abs(share - p) <= 4 * (p * (1 - p) / N) ** 0.5


def test_permutations_of_channels():
    orders = np.array([row["permutation"] for row in drawn_here("RandomChannelPermutation")]) @ [9, 3, 1]
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 6 and ((counts - N / 6) ** 2 / (N / 6)).sum() < 20.5  # chi-square, one in a thousand


def test_boxes_of_cutmix():
    """Read from the rows: white images over black ones show the box."""
    side, n = 32, 3000
    values = np.where(np.arange(2 * n) % 2, 255, 0).astype(np.uint8)
    images = np.broadcast_to(values[:, None, None, None], (2 * n, side, side, 3))
    loader = stoker.Loader(
        {"image": images, "label": np.zeros(2 * n, int)}, "CutMix(num_classes=2)", dtype="uint8", batch_size=2
    )
    ours = [(batch.image[0, 0] == 255) for batch in loader]
    torch.manual_seed(1)
    theirs, cut = [], v2.CutMix(num_classes=2)
    pair = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 3, side, side)
    for _ in range(n):
        theirs.append(cut(pair, torch.tensor([0, 1]))[0][0, 0] == 1)

    def looks(masks):
        masks = torch.stack([torch.as_tensor(m) for m in masks]).float()
        yield from (masks.mean((1, 2)), masks.amax(2).mean(1), masks.amax(1).mean(1))  # area, height, width
        yield from (masks.amax(2).argmax(1), masks.amax(1).argmax(1))  # place

    for a, b in zip(looks(ours), looks(theirs), strict=True):
        assert apart(a.numpy(), b.numpy()) < rare(n)


# ---------------------------------------------------------------- what changes nothing

END = "RandomResizedCrop(24) | Normalize"
PIPELINES = {
    "colours": "ColorJitter(0.4, 0.4, 0.4, 0.1) | RandomPhotometricDistort | RandomEqualize | " + END,
    "maps": "RandomAffine(20, (0.1, 0.1), interpolation=bilinear) | RandomPerspective | " + END,
    "filters": "GaussianBlur(5) | GaussianNoise | JPEG((20, 90)) | " + END,
    "after a crop": "CenterCrop(20) | RandomRotation(30) | ElasticTransform(20, 2) | Normalize",
    "policies": "RandAugment | AugMix | TrivialAugmentWide | " + END,
    "timm": END.replace(" |", ' | TimmAugment("rand-m9-mstd0.5-inc1") |') + " | RandomErasing(0.9, value=random)",
    "choices": "RandomApply([ColorJitter(0.5)]) | RandomChoice([RandomInvert, RandomSolarize(99)]) | " + END,
    "crops": "Resize(22) | FiveCrop(16) | RandomErasing(0.5)",
    "sizes": "ScaleJitter((30, 30), (0.8, 1.2)) | RandomZoomOut | " + END,
}
MIXES = {"MixUp": "MixUp(num_classes=2)", "CutMix": "CutMix", "Mixup": "Mixup(0.8, 1, mode=elem, num_classes=2)"}


def epochs(photos, ops, n=2, **options):
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "output": "numpy", **options}
    loader = stoker.Loader(photos, ops, fields=("image", "label", "index"), **options)
    return [list(loader) for _ in range(n)]


def rows_of(epoch):
    return {int(i): (x.tobytes(), y.tobytes()) for batch in epoch for x, y, i in zip(*batch, strict=True)}


def same(first, other):
    return all(a.tobytes() == b.tobytes() for p, q in zip(first, other, strict=True) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("name", [*PIPELINES, *MIXES])
def test_threads_and_two_runs(photos, name):
    ops = PIPELINES.get(name) or f"{END} | {MIXES[name]}"
    first = epochs(photos, ops, threads=1)
    for threads in (1, 3):
        assert all(same(a, b) for a, b in zip(first, epochs(photos, ops, threads=threads), strict=True))
    assert not same(*first)  # epochs differ


@pytest.mark.parametrize("name", PIPELINES)
def test_ranks_and_batch_sizes(photos, name):
    alone = [rows_of(e) for e in epochs(photos, PIPELINES[name])]
    assert alone == [rows_of(e) for e in epochs(photos, PIPELINES[name], batch_size=5)]
    ranks = [epochs(photos, PIPELINES[name], rank=r, world_size=2) for r in range(2)]
    assert alone == [rows_of([*a, *b]) for a, b in zip(*ranks, strict=True)]


@pytest.mark.parametrize("name", [*PIPELINES, *MIXES])
def test_a_resume(photos, name):
    ops = PIPELINES.get(name) or f"{END} | {MIXES[name]}"
    options = {"batch_size": 4, "shuffle": True, "seed": 5, "output": "numpy", "fields": ("image", "label", "index")}
    loader = stoker.Loader(photos, ops, **options)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = stoker.Loader(photos, ops, **options)
    again.load_state_dict(state)
    assert same(list(iterator), list(again))


@pytest.mark.parametrize("name", [*PIPELINES, *MIXES])
@pytest.mark.parametrize("cache", ["bytes", "pixels"])
def test_caches(photos, tmp_path, name, cache):
    ops = PIPELINES.get(name) or f"{END} | {MIXES[name]}"
    plain = epochs(photos, ops, 3)
    for folder in (None, str(tmp_path)):
        kept = epochs(photos, ops, 3, cache=cache, cache_dir=folder)
        assert all(same(a, b) for a, b in zip(plain, kept, strict=True))
