# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints follow the image: torchvision's v2 functions with the same draws give the same."""

import io
import json
import re
import tarfile

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from follow import FIELDS, SIZES, follow, png, samples, wrapped, write_tar  # noqa: E402
from PIL import Image  # noqa: E402
from replay import apart, rare  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

EXACT = {
    "RandomResizedCrop((30, 40)) | RandomHorizontalFlip | RandomVerticalFlip": {},
    "Resize((7, 90)) | CenterCrop(50)": {},
    "RandomCrop(30, padding=9, fill=7, pad_if_needed=True)": {"fill": 7},
    "RandomZoomOut(fill=9, p=0.7) | Resize((40, 50))": {"fill": 9},
    "RandomShortestSize((20, 25, 30), 40) | CenterCrop(30)": {},
    "RandomResize(10, 60) | CenterCrop(30)": {},
    "Resize((44, 55)) | ScaleJitter((40, 60)) | CenterCrop(30)": {},
    "RandomChoice([RandomHorizontalFlip(1), RandomVerticalFlip(1), Resize((9, 7))]) | CenterCrop(30)": {},
    "RandomZoomOut(fill=9) | RandomIoUCrop | Resize((33, 44)) | RandomHorizontalFlip | SanitizeBoundingBoxes": {
        "fill": 9
    },
    "RandomIoUCrop | Resize((33, 44)) | SanitizeBoundingBoxes(3, 20) | ClampKeyPoints": {
        "min_size": 3.0,
        "min_area": 20.0,
    },
    "CenterCrop((60, 70)) | RandomRotation(180)": {},
    "CenterCrop((60, 70)) | RandomRotation(180, expand=True, fill=3) | CenterCrop(50)": {"fill": 3, "expand": True},
    "CenterCrop((60, 70)) | RandomRotation((90, 90))": {},
    "CenterCrop((61, 70)) | RandomRotation((90, 90), expand=True) | CenterCrop(40)": {"expand": True},
    "CenterCrop((60, 70)) | RandomRotation(50, center=(3, 5.5), fill=100)": {"fill": 100, "center": [3, 5.5]},
    "CenterCrop((60, 71)) | RandomAffine(40, (0.2, 0.3), (0.5, 2), (-20, 20, -30, 30), fill=9)": {"fill": 9},
    "CenterCrop((60, 70)) | RandomPerspective(0.7, 1, fill=5)": {"fill": 5},
    "CenterCrop((60, 70)) | ElasticTransform(fill=5, sigma=2)": {"fill": 5, "sigma": 2.0},
    "CenterCrop((60, 70)) | RandomAffine(40) | RandomHorizontalFlip | RandomPerspective(p=1) | Resize((30, 90))": {},
    "Resize((4100, 3))": {},
    "ColorJitter(0.4, 0.4, 0.4) | RandomHorizontalFlip(1) | CenterCrop((20, 90)) | GaussianBlur(3)": {},
}


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    return write_tar(tmp_path_factory.mktemp("follow") / "samples.tar", samples())


def compared(tar, ops, rows=None, epochs=4, near=2e-4, wrong=0, **k):
    loader = stoker.Loader(tar, ops, fields=FIELDS, batch_size=len(SIZES), dtype="uint8", output="torch")
    for epoch in range(epochs):
        seen = loader.get(range(len(SIZES)), epoch=epoch)
        for i, (row, drawn) in enumerate(zip(rows or samples(), seen.drawn, strict=True)):
            theirs = follow(row, drawn, **k)
            assert theirs["mask"].shape == seen.mask[i].shape == seen.image[i].shape[-2:]
            assert (theirs["mask"] != seen.mask[i]).float().mean() <= wrong, drawn
            assert theirs["boxes"].shape == seen.boxes[i].shape
            assert torch.allclose(theirs["boxes"], seen.boxes[i], atol=near, rtol=1e-5), drawn
            assert theirs["labels"].tolist() == seen.labels[i].tolist()
            assert torch.allclose(theirs["points"], seen.points[i][..., :2], atol=near, rtol=1e-5), drawn


@pytest.mark.parametrize("ops", EXACT)
def test_the_same_draws_give_the_same_masks_boxes_and_points(tar, ops):
    compared(tar, ops, **EXACT[ops])


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (4100, 3), (2, 5001)])
@pytest.mark.parametrize("ops", ("RandomIoUCrop | RandomHorizontalFlip", "RandomResizedCrop(9) | ClampBoundingBoxes"))
def test_odd_sizes(tmp_path, ops, size):
    rows = list(samples([size] * 4))
    tar = write_tar(tmp_path / "a.tar", rows)
    loader = stoker.Loader(tar, ops, fields=FIELDS, dtype="uint8", output="torch")
    for i, row in enumerate(rows):
        seen = loader.get([i], epoch=i)
        theirs = follow(row, seen.drawn[0])
        assert torch.equal(theirs["mask"], seen.mask[0]) and theirs["mask"].shape == seen.image.shape[-2:]
        assert torch.allclose(theirs["boxes"], seen.boxes[0], atol=2e-3, rtol=1e-5)


def test_crops_by_boxes_are_drawn_as_torchvision_draws_them(tmp_path):
    n, size = 3000, (60, 90)
    boxes = np.float32([[10, 12, 40, 50], [50, 5, 85, 30]])
    row = {**next(iter(samples([size]))), "boxes": boxes, "labels": np.arange(2), "points": np.zeros((2, 3, 3))}
    loader = stoker.Loader(write_tar(tmp_path / "a.tar", [row]), "RandomIoUCrop | Resize((9, 9))", fields=FIELDS)
    ours = [loader.drawn([0], epoch=e)[0]["ops"][0] for e in range(n)]
    torch.manual_seed(1)
    transform, inputs = v2.RandomIoUCrop(), [torch.zeros(3, *size), wrapped(row)["boxes"]]
    theirs = [transform.make_params(inputs) for _ in range(n)]
    shares = [np.mean([d["applied"] for d in ours]), np.mean([bool(p) for p in theirs])]
    assert abs(shares[0] - shares[1]) < 4 * (2 * 0.25 / n) ** 0.5
    ours, theirs = [d for d in ours if d["applied"]], [p for p in theirs if p]
    for name in ("top", "left", "height", "width"):
        assert apart([d[name] for d in ours], [p[name] for p in theirs]) < rare(min(len(ours), len(theirs))), name


FORMATS = {"XYXY": "xyxy", "XYWH": "xywh", "CXCYWH": "cxcywh"}


@pytest.mark.parametrize("written", FORMATS)
def test_boxes_keep_the_format_of_their_column(tmp_path, written):
    rows = []
    for row in samples():
        boxes = F.convert_bounding_box_format(torch.from_numpy(row["boxes"]), "XYXY", written)
        rows.append({**row, "boxes": boxes.numpy()})
    tar = write_tar(tmp_path / "a.tar", rows)
    fields = FIELDS.replace(":boxes", f":boxes({FORMATS[written]})")
    ops = "RandomResizedCrop((30, 40)) | RandomHorizontalFlip"
    loader = stoker.Loader(tar, ops, fields=fields, batch_size=len(SIZES), output="torch")
    other = stoker.Loader(tar, ops + " | ConvertBoundingBoxFormat(XYXY)", fields=fields, batch_size=8, output="torch")
    seen, corners = loader.get(range(len(SIZES))), other.get(range(len(SIZES)))
    for i, (row, drawn) in enumerate(zip(rows, seen.drawn, strict=True)):
        theirs = follow(row, drawn, box_format=written)["boxes"]
        assert torch.allclose(theirs, seen.boxes[i], atol=2e-4)
        assert torch.allclose(F.convert_bounding_box_format(theirs, new_format="XYXY"), corners.boxes[i], atol=2e-4)


def test_relative_boxes_become_pixels(tmp_path):
    rows = list(samples())
    shares = [{**r, "boxes": r["boxes"] / np.float32([*r["mask"].shape[::-1]] * 2)} for r in rows]
    tar = write_tar(tmp_path / "a.tar", shares)
    fields = FIELDS.replace(":boxes", ":boxes(xyxy, relative)")
    loader = stoker.Loader(tar, "Resize((30, 40))", fields=fields, batch_size=len(SIZES), output="torch")
    for row, drawn, boxes in zip(rows, (seen := loader.get(range(len(SIZES)))).drawn, seen.boxes, strict=True):
        assert torch.allclose(follow(row, drawn)["boxes"], boxes, atol=1e-3)


@pytest.mark.parametrize("bits", (1, 4, 8, 16))
@pytest.mark.parametrize("dtype", ("uint8", "int32", "int64"))
def test_masks_are_numbers_as_stored(tmp_path, bits, dtype):
    mask = np.random.default_rng(bits).integers(0, min(2**bits, 256), (20, 31)).astype(np.uint8)
    if bits == 16:
        image = Image.fromarray(wide := mask.astype(np.uint16) * (1 if dtype == "uint8" else 257))
    else:
        wide, image = mask, Image.fromarray(mask).convert("P")
        image.putdata(mask.flatten().tolist())
        image.putpalette(np.random.default_rng(0).integers(0, 256, 768, dtype=np.uint8).tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", **({"bits": bits} if bits < 8 else {}))
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in {"a.png": png(np.zeros((20, 31, 3), np.uint8)), "a.mask.png": file.getvalue()}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    fields = f"image=png, mask=mask.png:mask({dtype})"
    seen = next(iter(stoker.Loader(path, "RandomHorizontalFlip(1)", fields=fields, output="numpy"))).mask
    assert seen.dtype == dtype and np.array_equal(seen[0], wide[:, ::-1])


def test_a_list_has_numbers_in_its_lines(tmp_path):
    row = list(samples())[1]
    Image.fromarray(row["image"]).save(tmp_path / "a.png")
    line = {name: row[name].tolist() for name in ("mask", "boxes", "labels")}
    (tmp_path / "list.jsonl").write_text(json.dumps({"image": "a.png", **line}) + "\n")
    fields = "image:image, mask:mask(int64), boxes:boxes, labels:each:int64"
    ops = "RandomCrop(30) | RandomHorizontalFlip | SanitizeBoundingBoxes"
    seen = stoker.Loader(tmp_path / "list.jsonl", ops, fields=fields, output="torch").get([0])
    theirs = follow(row, seen.drawn[0])
    assert torch.equal(theirs["mask"].long(), seen.mask[0]) and torch.allclose(
        theirs["boxes"], seen.boxes[0], atol=1e-4
    )
    assert theirs["labels"].tolist() == seen.labels[0].tolist()


def test_arrays_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    images, masks = rng.integers(0, 256, (6, 20, 30, 3), np.uint8), rng.integers(0, 9, (6, 20, 30), np.uint8)
    loader = stoker.Loader(
        {"image": images, "mask": masks, "points": rng.uniform(0, 20, (6, 5, 2)).astype(np.float32)},
        "RandomCrop(16) | RandomHorizontalFlip",
        fields="image, mask:mask, points:keypoints(2)",
        batch_size=6,
        output="numpy",
    )
    seen = loader.get(range(6))
    for i, drawn in enumerate(seen.drawn):
        o, flip = drawn["ops"]
        theirs = masks[i, o["top"] : o["top"] + 16, o["left"] : o["left"] + 16]
        assert np.array_equal(seen.mask[i], theirs[:, ::-1] if flip["flip"] else theirs)


BAD = {
    "mask of another size": ({"mask": np.zeros((5, 6), np.uint8)}, "mask has 6 x 5 pixels, but the image has 53 x 37"),
    "mask with colours": ({"mask": np.zeros((37, 53, 3), np.uint8)}, "3 channels; a mask is a PNG with one channel"),
    "not finite": ({"boxes": np.float32([[0, 0, np.inf, 1]])}, "box 0 has a number that is not finite"),
    "negative": ({"boxes": np.float32([[5, 0, 2, 1]])}, "its size is negative"),
    "three numbers": ({"boxes": np.float32([[5, 0, 2]])}, "do not fit its shape"),
    "labels": ({"labels": np.array([1, 2])}, "labels has 2 entries, but the sample has 0 boxes"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_samples_are_named(tmp_path, what):
    changes, words = BAD[what]
    tar = write_tar(tmp_path / "a.tar", [{**next(iter(samples())), **changes}])
    loader = stoker.Loader(tar, "CenterCrop(8)", fields=FIELDS)
    with pytest.raises(stoker.DataError, match=re.escape(words)) as error:
        next(iter(loader))
    assert error.value.path.endswith("a.tar/0000")


def test_boxes_outside_of_the_image_and_many_boxes(tmp_path):
    row = next(iter(samples()))
    boxes = np.concatenate(
        [np.float32([[40, 30, 200, 200], [-5, -5, 60, 40]]), np.tile(np.float32([1, 2, 9, 12]), (100_000, 1))]
    )
    n = len(boxes)
    row = {**row, "boxes": boxes, "labels": np.arange(n), "points": np.zeros((n, 3, 3), np.float32)}
    tar = write_tar(tmp_path / "a.tar", [row])
    loader = stoker.Loader(tar, "RandomCrop(30) | SanitizeBoundingBoxes", fields=FIELDS, output="torch")
    seen = loader.get([0])
    theirs = follow(row, seen.drawn[0])
    assert torch.allclose(theirs["boxes"], seen.boxes[0]) and theirs["labels"].tolist() == seen.labels[0].tolist()


@pytest.mark.parametrize(
    "ops, words",
    {
        "CenterCrop(20) | AugMix": "AugMix cannot be combined",
        "FiveCrop(20)": "FiveCrop cannot be combined",
        "a: CenterCrop(20) ; b: CenterCrop(20) | AugMix": "AugMix cannot be combined",
        "CenterCrop(20) | MixUp(num_classes=3)": "MixUp cannot be combined",
    }.items(),
)
def test_ops_that_nothing_can_follow(tar, ops, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(tar, ops, fields=FIELDS, batch_size=2)


def test_ops_that_need_boxes_or_keypoints(tar):
    with pytest.raises(stoker.UsageError, match="SanitizeBoundingBoxes needs boxes"):
        stoker.Loader(tar, "CenterCrop(20) | SanitizeBoundingBoxes", fields="image=png")
    with pytest.raises(stoker.UsageError, match="ClampKeyPoints needs keypoints"):
        stoker.Loader(tar, "CenterCrop(20) | ClampKeyPoints", fields="image=png")


OPS = (
    "RandomPhotometricDistort | RandomZoomOut | RandomIoUCrop | Resize((24, 32)) | RandomHorizontalFlip"
    " | SanitizeBoundingBoxes"
)


def epoch(loader):
    """Hashes, since pytest would describe the differences of long bytes for minutes."""
    return [
        tuple(
            hash(np.asarray(a).tobytes()) for v in b for a in (v if isinstance(v, list) else [getattr(v, "values", v)])
        )
        for b in loader
    ]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    sizes = [(20 + i % 13, 30 + i % 7) for i in range(60)]
    rows = [{**r, **{k: r[k][:4] for k in ("boxes", "labels", "points")}} for r in samples(sizes)]
    return write_tar(tmp_path_factory.mktemp("many") / "samples.tar", rows)


BEGINNINGS = ("", "Resize((30, 28)) | ", "CenterCrop(24) | Grayscale(3) | ")  # without draws, so that caches keep them


@pytest.mark.parametrize("cache", ("none", "bytes", "pixels"))
@pytest.mark.parametrize("threads", (1, 2, 7))
@pytest.mark.parametrize("first", BEGINNINGS)
@pytest.mark.parametrize("rest", (OPS, OPS.partition("RandomIoUCrop | ")[2], OPS.partition("Out | ")[2]))
def test_threads_and_caches_change_nothing(many, tmp_path, cache, threads, first, rest):
    k = {"fields": FIELDS, "batch_size": 7, "shuffle": True, "output": "numpy"}
    plain, other = (
        stoker.Loader(many, first + rest, **k, threads=2),
        stoker.Loader(many, first + rest, **k, threads=threads, cache=cache, cache_dir=tmp_path),
    )
    for _ in range(2):
        assert epoch(plain) == epoch(other)


def test_a_resumed_loader_continues_with_the_same_rows(many):
    k = {"fields": FIELDS, "batch_size": 7, "shuffle": True, "output": "numpy"}
    whole, first, rest = (stoker.Loader(many, OPS, **k) for _ in range(3))
    wanted = epoch(whole)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    rest.load_state_dict(first.state_dict())
    assert epoch(rest) == wanted[3:]


def test_ranks_divide_the_rows(many):
    k = {"fields": FIELDS, "output": "numpy"}
    whole = [b.mask[0] for b in stoker.Loader(many, OPS, **k, batch_size=1)]
    ranks = [[b.mask for b in stoker.Loader(many, OPS, **k, batch_size=5, rank=r, world_size=2)] for r in range(2)]
    rows = [m for step in zip(*ranks, strict=True) for batch in step for m in batch]
    assert np.array_equal(rows, whole)


@pytest.mark.parametrize("batch_size", (1, 4))
def test_images_of_different_sizes(tar, batch_size):
    k = {"fields": FIELDS, "batch_size": batch_size, "output": "torch", "dtype": "uint8"}
    listed = [b for b in stoker.Loader(tar, "RandomHorizontalFlip", **k, sizes="list")]
    padded = [b for b in stoker.Loader(tar, "RandomHorizontalFlip", **k, sizes="pad")]
    assert [tuple(m.shape) for b in listed for m in b.mask] == [tuple(s) for s in SIZES]
    for some, b in zip(listed, padded, strict=True):
        assert b.image.shape == (len(some.image), 3, *b.sizes.max(0).values) and b.mask.shape == b.image[:, 0].shape
        for image, mask, whole, whole_mask, (h, w) in zip(some.image, some.mask, b.image, b.mask, b.sizes, strict=True):
            assert torch.equal(image, whole[:, :h, :w]) and torch.equal(mask, whole_mask[:h, :w])
            assert not whole[:, h:].any() and not whole[:, :, w:].any() and not whole_mask[h:].any()


def test_sizes_need_an_engine_that_joins_rows(tar):
    with pytest.raises(stoker.UsageError, match="one size"):
        stoker.Loader(tar, "Resize(20)", fields=FIELDS, batch_size=4)
    with pytest.raises(stoker.UsageError, match="sizes"):
        stoker.Loader(tar, "CenterCrop(20) | MixUp(num_classes=3)", fields="image=png", batch_size=2, sizes="pad")
