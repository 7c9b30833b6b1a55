# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints follow every view of an image, and may have ops of their own."""

import io
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from follow import FIELDS, SIZES, follow, png, samples, write_tar  # noqa: E402
from PIL import Image  # noqa: E402
from test_device import FAKE  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

VIEWS = (
    "global*2: RandomResizedCrop((32, 40)) | RandomHorizontalFlip | SanitizeBoundingBoxes"
    " ; local*3: RandomRotation(30) | Resize((16, 20)) | RandomVerticalFlip ; image: Resize((9, 11))"
)
OWN = (
    "image: RandomResizedCrop((30, 44)) | RandomHorizontalFlip ; mask: Resize((12, 16)) | Pad(2, fill=7)"
    " ; boxes: Resize((15, 22)) | SanitizeBoundingBoxes(2) | ConvertBoundingBoxFormat(CXCYWH) ; points: CenterCrop(20)"
)


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    return write_tar(tmp_path_factory.mktemp("follow") / "samples.tar", samples())


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    sizes = [(20 + i % 13, 30 + i % 7) for i in range(60)]
    rows = [{**r, **{k: r[k][:4] for k in ("boxes", "labels", "points")}} for r in samples(sizes)]
    return write_tar(tmp_path_factory.mktemp("many") / "samples.tar", rows)


def bytes_of(value):
    if isinstance(value, stoker.Ragged):
        return value.values.tobytes() + value.offsets.tobytes()
    return b"".join(np.asarray(v).tobytes() for v in (value if isinstance(value, list) else [value]))


def epoch(loader):
    return [tuple(bytes_of(v) for v in b) for b in loader]


# ---------------------------------------------------------------- views


def opened(source, ops, **k):
    return stoker.Loader(source, ops, fields=FIELDS, batch_size=len(SIZES), dtype="uint8", output="torch", **k)


def test_fields_of_views(tar):
    batch = next(iter(opened(tar, "global*2: CenterCrop((8, 9)) ; small: CenterCrop(5) ; image: CenterCrop(3)")))
    followers = ("mask", "boxes", "labels", "points")
    assert set(batch._fields) == {"image", *followers}  # as fields says
    batch = stoker.Loader(
        tar, "global*2: CenterCrop((8, 9)) ; small: CenterCrop(5)", fields=FIELDS, batch_size=6, output="numpy"
    ).get(range(6))
    assert batch._fields == (
        *("global_", "small", "global_mask", "small_mask", "global_boxes", "small_boxes"),
        *("global_labels", "small_labels", "global_points", "small_points"),
    )
    assert batch.global_mask.shape == (6, 2, 8, 9) and batch.small_mask.shape == (6, 5, 5)
    boxes = batch.global_boxes
    assert len(boxes) == 6 and [[len(b) for b in pair] for pair in boxes] == [[i, i] for i in range(6)]
    assert boxes.offsets.shape == (13,) and boxes.views == 2 and np.array(boxes.to_list()[3]).shape == (2, 3, 4)


def test_every_view_is_as_if_it_were_alone(tar):
    for epoch_ in range(3):
        seen = stoker.Loader(
            tar, VIEWS, fields=["global", "local", "image", *FIELDS.split(", ")[1:], "global.mask", "local.mask",
                                "global.boxes", "local.boxes", "global.labels", "local.labels", "global.points",
                                "local.points"],
            batch_size=6, dtype="uint8", output="torch",
        ).get(range(6), epoch=epoch_)  # fmt: skip
        for i, (row, drawn) in enumerate(zip(samples(), seen.drawn, strict=True)):
            for view in drawn["views"]:
                theirs = follow(row, {"size": drawn["size"], **view})
                name, copy = view["view"], view["copy"]
                prefix = "" if name == "image" else f"{name}_"
                mine = {k: getattr(seen, f"{prefix}{k}")[i] for k in ("mask", "boxes", "labels", "points")}
                if name != "image":
                    mine = {k: v[copy] for k, v in mine.items()}
                assert torch.equal(theirs["mask"], mine["mask"])
                assert theirs["boxes"].shape == mine["boxes"].shape
                assert torch.allclose(theirs["boxes"], mine["boxes"], atol=2e-4)
                assert theirs["labels"].tolist() == mine["labels"].tolist()
                assert torch.allclose(theirs["points"], mine["points"][..., :2], atol=2e-4, rtol=1e-5)


def test_a_view_does_not_depend_on_others(many):
    one, two = "a: RandomResizedCrop(24)", "b*2: RandomCrop(16) | RandomHorizontalFlip"
    k = {"fields": FIELDS, "batch_size": 7, "shuffle": True, "output": "numpy"}
    for both, first, second in zip(
        *(stoker.Loader(many, ops, **k) for ops in (f"{one} ; {two}", one, two)), strict=True
    ):
        for alone in (first, second):
            for name in alone._fields:
                assert bytes_of(getattr(both, name)) == bytes_of(getattr(alone, name)), name


def test_views_of_a_folder_of_pairs_and_chosen_fields(tmp_path):
    for i, row in enumerate(samples([(20, 30), (31, 22), (40, 40)])):
        for folder, pixels in (("images", row["image"]), ("masks", row["mask"])):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / folder / f"{i}.png")
    ops = "a: RandomCrop(16) ; b: RandomCrop(16)"
    whole = next(iter(stoker.Loader(tmp_path, ops, batch_size=3, output="numpy")))
    assert whole._fields == ("a", "b", "a_mask", "b_mask") and not np.array_equal(whole.a_mask, whole.b_mask)
    some = next(iter(stoker.Loader(tmp_path, ops, batch_size=3, output="numpy", fields=("b.mask", "index"))))
    assert some._fields == ("b_mask", "index") and np.array_equal(some.b_mask, whole.b_mask)
    both = next(iter(stoker.Loader(tmp_path, f"{ops} ; mask: Resize(4)", batch_size=3, fields=("a", "mask"))))
    assert both._fields == ("a", "a_mask", "b_mask") and both.b_mask.shape == (3, 4, 4)
    rows = next(iter(stoker.Loader(tmp_path, "a*2: RandomCrop(16)", batch_size=3, collate_fn=list, output="numpy")))
    assert [m.shape for _, m in rows] == [(2, 16, 16)] * 3


def test_arrays_in_memory_have_views(tmp_path):
    rng = np.random.default_rng(0)
    images, masks = rng.integers(0, 256, (6, 20, 30, 3), np.uint8), rng.integers(0, 9, (6, 20, 30), np.uint8)
    fields = "image, mask:mask, label"
    source = {"label": np.arange(6), "mask": masks, "image": images}
    batch = next(iter(stoker.Loader(source, "a: CenterCrop(8) ; b: CenterCrop(4)", fields=fields, output="numpy")))
    assert batch.a_mask.shape == (1, 8, 8) and np.array_equal(batch.b_mask, batch.a_mask[:, 2:6, 2:6])


@pytest.mark.parametrize("ops", (VIEWS, OWN))
@pytest.mark.parametrize("cache", ("none", "bytes", "pixels"))
@pytest.mark.parametrize("threads", (1, 3))
def test_threads_and_caches_change_nothing(many, tmp_path, ops, cache, threads):
    k = {"fields": FIELDS, "batch_size": 7, "shuffle": True, "output": "numpy"}
    plain = stoker.Loader(many, ops, **k, threads=2)
    other = stoker.Loader(many, ops, **k, threads=threads, cache=cache, cache_dir=tmp_path)
    for _ in range(2):
        assert epoch(plain) == epoch(other)


@pytest.mark.parametrize("ops", (VIEWS, OWN))
def test_a_resumed_loader_and_ranks_have_the_same_rows(many, ops):
    k = {"fields": FIELDS, "shuffle": True, "output": "numpy"}
    whole, first, rest = (stoker.Loader(many, ops, **k, batch_size=7) for _ in range(3))
    wanted = epoch(whole)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    rest.load_state_dict(first.state_dict())
    assert epoch(rest) == wanted[3:]
    rows = epoch(stoker.Loader(many, ops, **k, batch_size=1))
    ranks = [epoch(stoker.Loader(many, ops, **k, batch_size=1, rank=r, world_size=2)) for r in range(2)]
    assert [row for step in zip(*ranks, strict=True) for row in step] == rows


def test_bad_samples_are_left_out_of_every_view(tmp_path):
    rows = list(samples([(20, 30)] * 9))
    three = {"labels": np.arange(3), "boxes": np.tile(np.float32([1, 2, 9, 12]), (3, 1))}
    rows = [{**r, **three, "points": r["points"][:0]} for r in rows]
    rows[4]["boxes"] = np.float32([[np.nan, 0, 1, 1]])
    fields = FIELDS.partition(", points")[0]
    k = {"fields": fields, "batch_size": 9, "output": "numpy", "max_bad": 1.0}
    ops = "a*2: RandomCrop(16) ; b: RandomCrop(8) | SanitizeBoundingBoxes"
    tar = write_tar(tmp_path / "bad.tar", rows)
    skipped = next(iter(stoker.Loader(tar, ops, **k, on_error="skip")))
    good = write_tar(tmp_path / "good.tar", rows[:4] + [rows[5]] + rows[5:])
    whole = next(iter(stoker.Loader(good, ops, **k)))
    for name in whole._fields:
        mine, theirs = getattr(skipped, name), getattr(whole, name)
        for i in (*range(4), *range(5, 9)):
            assert bytes_of(list(mine[i - (i > 4)])) == bytes_of(list(theirs[i])), (name, i)


MISTAKES = {
    "a: CenterCrop(8) ; mask*2: Resize(8)": "mask is a field of the source, so \\*2 is not possible",
    "a: CenterCrop(8) ; mask: Resize(8) ; mask: Resize(9)": "two pipelines are named mask",
    "CenterCrop(8) ; mask: RandomCrop(4)": "mask: RandomCrop is not possible here",
    "CenterCrop(8) ; mask: Grayscale": "mask: Grayscale is not possible here",
    "CenterCrop(8) ; mask: Resize(4) | Normalize": "mask: Normalize is not possible here",
    "CenterCrop(8) ; mask: Resize(4) | ToTensor": "mask: ToTensor is not possible here",
    "CenterCrop(8) ; mask: Resize(4) | RandomErasing": "mask: RandomErasing is not possible here",
    "CenterCrop(8) ; mask: FiveCrop(4)": "mask: FiveCrop is not possible here",
    "CenterCrop(8) ; mask: SanitizeBoundingBoxes": "mask: SanitizeBoundingBoxes is not possible here",
    "CenterCrop(8) ; boxes: ClampKeyPoints": "boxes: ClampKeyPoints is not possible here",
    "CenterCrop(8) ; labels: Resize(4)": "labels has numbers for each box",
    "CenterCrop(8) ; mask: Resiez(4)": "column 23: unknown op",
}


@pytest.mark.parametrize("ops", MISTAKES)
def test_mistakes(tar, ops):
    with pytest.raises(stoker.UsageError, match=MISTAKES[ops]):
        stoker.Loader(tar, ops, fields=FIELDS, batch_size=2)


# ---------------------------------------------------------------- ops of their own


def test_a_field_goes_through_the_ops_of_the_image_and_then_its_own(tar):
    loader = opened(tar, OWN)
    for e in range(4):
        seen = loader.get(range(len(SIZES)), epoch=e)
        assert seen.mask.shape[1:] == (16, 20)
        for i, (row, drawn) in enumerate(zip(samples(), seen.drawn, strict=True)):
            after = follow(row, drawn)
            mask = F.pad(F.resize(after["mask"], [12, 16], F.InterpolationMode.NEAREST), [2], 7)
            assert torch.equal(mask, seen.mask[i])
            boxes, kept = F.sanitize_bounding_boxes(F.resize(after["boxes"], [15, 22]), min_size=2)
            boxes = F.convert_bounding_box_format(boxes, new_format="CXCYWH")
            assert boxes.shape == seen.boxes[i].shape and torch.allclose(boxes, seen.boxes[i], atol=2e-4)
            assert row["labels"][kept.numpy()].tolist() == seen.labels[i].tolist()
            points = F.center_crop(after["points"], [20])[kept]
            assert torch.allclose(points, seen.points[i][..., :2], atol=2e-4, rtol=1e-5)


def test_the_image_does_not_depend_on_ops_of_fields(many, tmp_path):
    k = {"fields": FIELDS, "batch_size": 7, "shuffle": True, "output": "numpy"}
    image = OWN.partition(";")[0]
    for a, b in zip(stoker.Loader(many, OWN, **k), stoker.Loader(many, image, **k), strict=True):
        assert np.array_equal(a.image, b.image) and not np.array_equal(a.mask.shape, b.mask.shape)
    kept = stoker.Loader(many, "Resize((20, 20)) ; mask: Resize(8)", **k, cache="pixels", cache_dir=tmp_path)
    assert "mask: then Resize(size=8" in kept.explain()
    list(kept)
    list(kept)
    assert kept.stats().cache_hits > 0


def test_a_dict_has_the_pipelines(many):
    k = {"fields": FIELDS, "batch_size": 7, "output": "numpy"}
    ops = {"image": [stoker.RandomResizedCrop(24), stoker.Normalize()], "mask": stoker.Resize(6)}
    for a, b in zip(
        stoker.Loader(many, ops, **k),
        stoker.Loader(many, "image: RandomResizedCrop(24) | Normalize ; mask: Resize(6)", **k),
        strict=True,
    ):
        assert np.array_equal(a.mask, b.mask) and a.mask.shape[1:] == (6, 6) and np.array_equal(a.image, b.image)


def test_a_field_may_have_the_only_pipeline(tmp_path):
    rng = np.random.default_rng(0)
    masks = rng.integers(0, 9, (4, 20, 30), np.uint8)
    source = {"image": rng.integers(0, 256, (4, 20, 30, 3), np.uint8), "mask": masks}
    batch = next(iter(stoker.Loader(source, "mask: CenterCrop(10)", fields="image, mask:mask", output="numpy")))
    assert batch.image.shape == (1, 3, 20, 30) and np.array_equal(batch.mask[0], masks[0, 5:15, 10:20])


@pytest.mark.parametrize("sizes", ("pad", "list"))
def test_images_of_different_sizes(tar, sizes):
    k = {"batch_size": 3, "sizes": sizes, "output": "numpy", "fields": "image=png, mask=mask.png:mask"}
    fixed = [b for b in stoker.Loader(tar, "RandomHorizontalFlip ; mask: Resize((5, 6))", **k)]
    assert [b.mask.shape for b in fixed] == [(3, 5, 6), (3, 5, 6)]
    more = [b for b in stoker.Loader(tar, "RandomHorizontalFlip ; mask: Pad(2)", **k)]
    plain = [b for b in stoker.Loader(tar, "RandomHorizontalFlip", **k)]
    for a, b in zip(more, plain, strict=True):
        for i in range(3):
            mine, theirs = a.mask[i], b.mask[i]
            if sizes == "pad":
                assert np.array_equal(a.mask_sizes[i], b.sizes[i] + 4)
                mine = mine[: a.mask_sizes[i][0], : a.mask_sizes[i][1]]
                theirs = theirs[: b.sizes[i][0], : b.sizes[i][1]]
            assert np.array_equal(mine, np.pad(theirs, 2))


# ---------------------------------------------------------------- masks by path


def write_list(folder, form, bits=8):
    """A list whose column seg has the path of a mask; returns its path and the masks."""
    folder.mkdir()
    (folder / "seg").mkdir()
    masks, lines = [], []
    for i, row in enumerate(samples([(20, 30), (31, 22), (40, 40)])):
        Image.fromarray(row["image"]).save(folder / f"{i}.png")
        mask = row["mask"].astype(np.uint16) * 257 if bits == 16 else row["mask"]
        image = Image.fromarray(mask)
        if bits == 4:
            mask = mask % 16
            image = Image.fromarray(mask).convert("P")
            image.putdata(mask.flatten().tolist())
            image.putpalette(np.random.default_rng(0).integers(0, 256, 48, dtype=np.uint8).tobytes())
        image.save(folder / "seg" / f"{i} a.png", **({"bits": 4} if bits == 4 else {}))
        masks.append(mask)
        lines.append((f"{i}.png", f"seg/{i} a.png", i))
    path = folder / f"list.{form}"
    if form == "jsonl":
        path.write_text("".join(f'{{"image": "{a}", "seg": "{b}", "label": {c}}}\n' for a, b, c in lines))
    else:
        mark = "," if form == "csv" else "\t"
        path.write_text("\n".join(mark.join(map(str, r)) for r in [("image", "seg", "label"), *lines]) + "\n")
    return path, masks


@pytest.mark.parametrize("form", ("csv", "tsv", "jsonl"))
@pytest.mark.parametrize("bits", (4, 8, 16))
def test_a_column_of_a_list_names_the_file_of_a_mask(tmp_path, form, bits):
    path, masks = write_list(tmp_path / "set", form, bits)
    kind = "mask(int32)" if bits == 16 else "mask"
    k = {"fields": f"image, mask=seg:{kind}, label", "sizes": "list", "batch_size": 2, "output": "numpy"}
    for threads, cache in ((1, "none"), (3, "pixels"), (2, "bytes")):
        loader = stoker.Loader(path, "RandomHorizontalFlip(1)", **k, threads=threads, cache=cache, cache_dir=tmp_path)
        for _ in range(2):
            seen = [m for b in loader for m in b.mask]
            assert all(np.array_equal(m, theirs[:, ::-1]) for m, theirs in zip(seen, masks, strict=True))


def test_a_column_of_a_container_names_the_file_of_a_mask(tmp_path):
    pa = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    path, masks = write_list(tmp_path / "set", "csv")
    images = [(path.parent / f"{i}.png").read_bytes() for i in range(3)]
    names = [f"seg/{i} a.png" for i in range(3)]
    with tarfile.open(path.parent / "a.tar", "w") as tar:
        for i in range(3):
            for name, data in ((f"{i}.png", images[i]), (f"{i}.seg.txt", names[i].encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    pa.write_table(pyarrow.table({"image": images, "seg": names}), path.parent / "a.parquet")
    k = {"sizes": "list", "batch_size": 3, "output": "numpy"}
    for source, fields in (
        (path.parent / "a.tar", "image=png, mask=seg.txt:mask"),
        (path.parent / "a.parquet", "image:image, mask=seg:mask"),
    ):
        seen = next(iter(stoker.Loader(source, **k, fields=fields))).mask
        assert all(np.array_equal(m, theirs) for m, theirs in zip(seen, masks, strict=True))


def test_bad_masks_by_path(tmp_path):
    path, _ = write_list(tmp_path / "set", "csv")
    k = {"fields": "image, mask=seg:mask", "sizes": "list"}
    (path.parent / "seg" / "1 a.png").unlink()
    (path.parent / "seg" / "2 a.png").write_bytes(png(np.zeros((4, 4), np.uint8)))
    loader = stoker.Loader(path, **k)
    with pytest.raises(stoker.DataError, match="its mask .*set/seg/1 a.png does not exist") as error:
        loader.get([1])
    assert error.value.sample == 1 and error.value.path.endswith("1.png")
    with pytest.raises(stoker.DataError, match="mask has 4 x 4 pixels, but the image has 40 x 40"):
        loader.get([2])
    path.write_text("image,seg\n0.png,\n1.png,seg\n2.png,a\n")
    loader = stoker.Loader(path, **k)
    with pytest.raises(stoker.DataError, match="the path of a file|no mask"):
        loader.get([0])
    with pytest.raises(stoker.DataError, match="seg"):
        loader.get([1])


# ---------------------------------------------------------------- sizes on a device

SIZED = """
import sys, numpy as np
from stoker import _stoker
path, fields, ops, sizes = sys.argv[1:]
def opened(**more):
    return _stoker.Loader({"source": path, "fields": fields, "ops": ops, "sizes": int(sizes), "batch_size": 4,
                           "threads": 2, **more})
host, there = opened(), opened(device="cuda")
names = [(name, *(f"{name}.{word}" for word in beside)) for name, _, _, _, beside in host.fields()]
for l in (host, there):
    l.select(tuple(n for group in names for n in group))
n = 0
for _ in range(2):
    while (a := host.next()) is not None:
        b = there.next()
        for x, y in zip(a, b, strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            assert np.array_equal(np.asarray(x), np.asarray(y))
            n += y.__dlpack_device__() == (2, 0)
    assert there.next() is None
print(n)
"""


@pytest.mark.skipif(FAKE is None, reason="built without nvcc, so there is no fake driver")
@pytest.mark.parametrize("sizes", (2, 3))
def test_images_of_different_sizes_on_a_device(tar, sizes):
    ops = "RandomHorizontalFlip | Normalize"
    words = [sys.executable, "-c", SIZED, str(tar), FIELDS, ops, str(sizes)]
    env = {**os.environ, "LD_LIBRARY_PATH": str(FAKE.parent)}
    made = subprocess.run(words, env=env, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert int(made.stdout) > 20
