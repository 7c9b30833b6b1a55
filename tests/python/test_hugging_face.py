# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face as people have them: over local files, saved, joined, chosen from."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

pytest.importorskip("pyarrow")
os.environ["HF_HUB_OFFLINE"] = "1"
datasets = pytest.importorskip("datasets")

N = 12
SIZE = "CenterCrop(8)"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def paths(photos):
    return stoker.Source(photos).paths


@pytest.fixture
def over_files(paths):
    """Images by their paths, as cast_column() leaves them: without bytes."""
    rows = {"image": paths, "n": list(range(N)), "label": [i % 2 for i in range(N)]}
    dataset = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    dataset = dataset.cast_column("label", datasets.ClassLabel(names=["cat", "dog"]))
    assert dataset.data.table.column("image")[0].as_py()["bytes"] is None
    return dataset


@pytest.fixture
def pixels(photos):
    return next(iter(stoker.Loader(photos, SIZE, batch_size=N, output="numpy"))).image


def whole(source, **options):
    options = {"batch_size": 64, "output": "numpy", **options}
    (batch,) = stoker.Loader(source, SIZE, **options)
    return batch


def test_images_that_are_paths(over_files, pixels):
    batch = whole(over_files)
    np.testing.assert_array_equal(batch.image, pixels)
    assert batch.n.tolist() == list(range(N))
    assert stoker.Loader(over_files, SIZE).classes == ["cat", "dog"]


def test_imagefolder(photos, tmp_path, pixels):
    shutil.copytree(photos, tmp_path / "photos")
    dataset = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "photos"), split="train")
    batch = whole(dataset)
    np.testing.assert_array_equal(batch.image, pixels)
    assert batch.label.tolist() == [0] * 6 + [1] * 6
    assert stoker.Loader(dataset, SIZE).classes == ["cat", "dog"]


@pytest.mark.parametrize("embedded", [True, False])
def test_to_parquet(over_files, pixels, tmp_path, embedded):
    if embedded:
        over_files.to_parquet(tmp_path / "a.parquet")
    else:
        import pyarrow.parquet as pq

        pq.write_table(over_files.data.table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(whole(str(tmp_path / "a.parquet")).image, pixels)


def test_the_feature_image_is_an_image_whatever_the_first_rows_are(paths, tmp_path):
    (tmp_path / "1.gif").write_bytes(b"GIF89a")
    rows = {"image": [str(tmp_path / "1.gif"), None, *paths]}
    dataset = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    loader = stoker.Loader(dataset, SIZE, batch_size=64, on_error="skip", max_bad=1, output="numpy")
    with pytest.warns(RuntimeWarning, match="2 bad samples"):
        (batch,) = loader
    assert len(batch.image) == N


def test_two_images_a_row(paths, pixels):
    rows = {"image": paths, "mask": paths[::-1]}
    dataset = datasets.Dataset.from_dict(rows, features=datasets.Features(dict.fromkeys(rows, datasets.Image())))
    batch = whole(dataset)
    np.testing.assert_array_equal(batch.image, pixels)
    assert batch.mask == [Path(p).read_bytes() for p in paths[::-1]]


def chosen(dataset):
    return [
        dataset.select([7, 2, 2, 11]),
        dataset.shuffle(seed=5),
        dataset.filter(lambda row: row["n"] % 3 == 0),
        dataset.select(range(3, 9)),
        dataset.shuffle(seed=1).select([4, 0]).sort("n"),
        datasets.concatenate_datasets([dataset.select([3, 1]), dataset]),
    ]


def test_rows_that_were_chosen(over_files, pixels):
    for part in chosen(over_files):
        rows = [row["n"] for row in part]
        batch = whole(part)
        assert batch.n.tolist() == rows
        np.testing.assert_array_equal(batch.image, pixels[rows])
        assert [s["n"].item() for s in stoker.Source(part)] == rows


def test_a_list_of_data_sets(over_files, pixels):
    parts = chosen(over_files)
    rows = [row["n"] for part in parts for row in part]
    for source in (parts, tuple(parts), stoker.Source(*parts)):
        batch = whole(source)
        assert batch.n.tolist() == rows
        np.testing.assert_array_equal(batch.image, pixels[rows])
    with pytest.raises(stoker.UsageError, match="its own transform"):
        stoker.Loader([over_files, over_files.with_transform(lambda rows: rows)])
    with pytest.raises(stoker.UsageError, match="choose one"):
        stoker.Loader([datasets.DatasetDict({"train": over_files})])


@pytest.mark.parametrize("shards", [1, 3])
def test_saved_folders(over_files, pixels, tmp_path, shards):
    part = over_files.shuffle(seed=3)
    part.save_to_disk(tmp_path / "saved", num_shards=shards)
    rows = [row["n"] for row in part]
    for path in (tmp_path / "saved", f"{tmp_path}/saved/"):
        batch = whole(path)
        assert batch.n.tolist() == rows
        np.testing.assert_array_equal(batch.image, pixels[rows])
    loader = stoker.Loader(tmp_path / "saved", SIZE)
    assert loader.classes == ["cat", "dog"]
    assert "Hugging Face dataset" in loader.explain()
    assert f"data-00000-of-0000{shards}.arrow batch 0 row 0" in stoker.Source(tmp_path / "saved").paths[0]
    assert len(stoker.Source(tmp_path / "saved", tmp_path / "saved")) == 2 * N


def test_saved_folders_of_several_splits(over_files, tmp_path):
    datasets.DatasetDict({"train": over_files, "test": over_files.select([1])}).save_to_disk(tmp_path / "saved")
    with pytest.raises(stoker.UsageError, match=f"choose one: {tmp_path}/saved/train, {tmp_path}/saved/test"):
        stoker.Loader(tmp_path / "saved")
    assert len(stoker.Source(tmp_path / "saved" / "train")) == N
    assert len(stoker.Source(tmp_path / "saved" / "test")) == 1


def test_saved_folders_that_are_damaged(over_files, tmp_path):
    folder = tmp_path / "saved"
    over_files.save_to_disk(folder, num_shards=2)
    state = (folder / "state.json").read_text()
    for text in ("", "[]", "{}", '{"_data_files": [{"filename": "../x.arrow"}]}'):
        (folder / "state.json").write_text(text)
        with pytest.raises(stoker.DataError, match="state.json: cannot be read"):
            stoker.Source(folder)
    (folder / "state.json").write_text(state)
    (folder / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(stoker.Error, match="data-00001-of-00002.arrow"):
        stoker.Source(folder)


def test_resuming(over_files, paths, tmp_path):
    def state_of(source):
        loader = stoker.Loader(source, SIZE, batch_size=4, shuffle=True)
        next(iter(loader))
        return loader.state_dict()

    def resumes(source, state):
        try:
            stoker.Loader(source, SIZE, batch_size=4, shuffle=True).load_state_dict(state)
        except stoker.UsageError as error:
            assert "the dataset changed" in str(error)
            return False
        return True

    state = state_of(over_files)
    assert resumes(over_files.with_format("numpy"), state)
    assert not resumes(over_files.map(lambda row: {"n": -row["n"]}), state)
    assert not resumes(over_files.select(range(N - 1, -1, -1)), state)
    over_files.save_to_disk(tmp_path / "a" / "saved")
    state = state_of(tmp_path / "a" / "saved")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert resumes(tmp_path / "b" / "saved", state)
    over_files.select(range(N - 1, -1, -1)).save_to_disk(tmp_path / "c")
    assert not resumes(tmp_path / "c", state)


def prepare(rows):
    """What people pass to set_transform: a function of the columns of some rows."""
    import torch

    images = [np.asarray(image.convert("RGB").resize((16, 8))) for image in rows["image"]]
    return {"x": [torch.tensor(image) / 255 for image in images], "label": rows["label"]}


def changed(dataset, how):
    if how == "set_transform":
        dataset.set_transform(prepare)
        return dataset
    if how == "with_transform":
        return dataset.with_transform(prepare)
    if how == "with_format":
        return dataset.remove_columns("image").with_format("torch")
    return dataset.map(lambda row: {"twice": 2 * row["label"]}).with_transform(prepare)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["set_transform", "with_transform", "with_format", "map"])
def test_data_loader_gives_what_torchs_gives(photos, tmp_path, how, workers):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    shutil.copytree(photos, tmp_path / "photos")
    epochs = []
    for kind in (torch.utils.data.DataLoader, stoker.DataLoader):
        dataset = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "photos"), split="train")
        torch.manual_seed(3)
        loader = kind(changed(dataset, how), batch_size=5, shuffle=True, num_workers=workers)
        epochs.append([batch for _ in range(2) for batch in loader])
    assert len(epochs[0]) == len(epochs[1]) == 6
    for theirs, ours in zip(*epochs, strict=True):
        assert theirs.keys() == ours.keys()
        assert all(torch.equal(theirs[name], ours[name]) for name in theirs)


def test_a_transform_that_changes_between_epochs(over_files):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for workers in (0, 1):
        over_files.set_transform(prepare)
        loader = stoker.DataLoader(over_files, batch_size=4, num_workers=workers)
        assert next(iter(loader))["x"].shape == (4, 8, 16, 3)
        over_files.set_transform(lambda rows: {"n": torch.tensor(rows["n"])})
        assert next(iter(loader))["n"].tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- transforms that become ops


@pytest.fixture
def vision():
    return import_torchvision()


def augment_of(vision):
    t = vision.transforms
    return t.Compose([t.Resize(20), t.CenterCrop(16), t.ToTensor(), t.Normalize((0.5,) * 3, (0.2,) * 3)])


@pytest.fixture
def odd_images(tmp_path):
    """Grey, transparent, with a palette, and turned by EXIF; by path and as bytes."""
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    turned = Image.Exif()
    turned[0x0112] = 6
    images, files = [Image.fromarray(pixels).convert(mode) for mode in ("L", "RGBA", "P", "RGB", "LA")], []
    for i, image in enumerate(images):
        image.save(tmp_path / f"{i}.png")
        files.append(str(tmp_path / f"{i}.png"))
    images[3].save(tmp_path / "turned.jpg", exif=turned)
    rows = {"image": [*files, str(tmp_path / "turned.jpg")] * 2, "label": list(range(12))}
    by_path = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    contents = [{"bytes": Path(p).read_bytes(), "path": None} for p in rows["image"]]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return by_path, datasets.Dataset.from_dict({**rows, "image": contents}, features=features)


def same(theirs, ours):
    import torch

    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(same(theirs[k], ours[k]) for k in theirs)
    if isinstance(theirs, (list, tuple)):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if torch.is_tensor(theirs):
        return theirs.dtype == ours.dtype and torch.allclose(theirs, ours, rtol=3e-7, atol=3e-7)
    return theirs == ours


def spellings(augment):
    """Functions as people write them."""

    def new_columns(rows):
        return {"x": [augment(image.convert("RGB")) for image in rows["image"]], "y": rows["label"]}

    def same_columns(rows):
        rows["pixel_values"] = [augment(image.convert("RGB")) for image in rows["image"]]
        del rows["image"]
        return rows

    def images_first(rows):
        images = [image.convert("RGB") for image in rows["image"]]
        return {"x": [augment(image) for image in images], "pair": list(zip(rows["label"], rows["label"], strict=True))}

    return new_columns, same_columns, images_first


def rows_of(samples):
    return {"rows": samples}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_transforms_become_ops(odd_images, vision, which, workers):
    from torch.utils import data

    function = spellings(augment_of(vision))[which]
    for dataset in odd_images:
        for part in (dataset, dataset.shuffle(seed=1), dataset.select([7, 2, 11])):
            changed = part.with_transform(function)
            for more in ({}, {"collate_fn": rows_of}, {"batch_size": None}):
                options = {"batch_size": 5, "num_workers": workers, **more}
                with stoker.DataLoader(changed, **options) as loader:
                    assert loader.native and f"{function.__name__} (" in loader.explain()
                    assert same(list(data.DataLoader(changed, **options)), list(loader))
        assert loader.explain().count("in Python") == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_class_around_a_dataset(odd_images, vision, workers):
    from torch.utils import data

    class Images(data.Dataset):
        def __init__(self, rows, transform):
            self.rows, self.transform = rows, transform

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            row = self.rows[i]
            return self.transform(row["image"].convert("RGB")), row["label"]

    for dataset in odd_images:
        images = Images(dataset.shuffle(seed=2), augment_of(vision))
        with stoker.DataLoader(images, 5, num_workers=workers) as loader:
            assert loader.native and same(list(data.DataLoader(images, 5)), list(loader))


def test_transforms_that_stay_in_python(over_files, vision):
    from torch.utils import data

    augment, calls = augment_of(vision), []

    def as_it_is(rows):  # a grey image would have one channel
        return {"x": [augment(image) for image in rows["image"]]}

    def counted(rows):
        calls.append(1)
        return {"x": [augment(image.convert("RGB")) for image in rows["image"]]}

    def turned(rows):
        return {"x": [augment(image.convert("RGB").rotate(90)) for image in rows["image"]]}

    def twice(rows):
        return {"x": [augment(i.convert("RGB")) for i in rows["image"]], "y": [augment(i) for i in rows["image"]]}

    for function in (as_it_is, counted, turned, twice, partial(as_it_is)):
        changed = over_files.with_transform(function)
        loader = stoker.DataLoader(changed, 5)
        assert not loader.native and loader._partly is None
        assert "in Python: " in loader.explain()
        assert "2 processes" in stoker.DataLoader(changed, num_workers=2).explain()
        assert same(list(data.DataLoader(changed, 5)), list(loader))


@pytest.mark.parametrize("workers", [0, 2])
def test_without_a_transform(over_files, workers):
    from torch.utils import data

    def sizes(samples):
        return [(row["image"].mode, row["image"].size, row["label"]) for row in samples]

    for rows, options in (
        (over_files, {"batch_size": 5, "collate_fn": sizes}),
        (over_files.with_format("torch"), {}),
        (over_files.cast_column("image", datasets.Image(mode="RGB")).with_format("torch"), {}),
    ):
        loader = stoker.DataLoader(rows, num_workers=workers, **options)
        assert not loader.native and "in Python: " in loader.explain()
        assert same(list(data.DataLoader(rows, **options)), list(loader))


def test_changes_of_a_transform_are_seen(over_files, vision):
    t = vision.transforms
    augment = t.Compose([t.CenterCrop(8), t.ToTensor()])

    def prepare(rows):
        return {"x": [augment(image.convert("RGB")) for image in rows["image"]]}

    loader = stoker.DataLoader(over_files.with_transform(prepare), 4)
    assert loader.native and next(iter(loader))["x"].shape == (4, 3, 8, 8)
    augment.transforms[0] = t.CenterCrop(6)
    assert loader.native and next(iter(loader))["x"].shape == (4, 3, 6, 6)


def test_augmentations_do_not_depend_on_workers(over_files, vision):
    import torch

    t = vision.transforms
    augment = t.Compose([t.RandomResizedCrop(8), t.RandomHorizontalFlip(), t.ToTensor()])
    function, runs = spellings(augment)[0], []
    for workers in (0, 1, 3):
        torch.manual_seed(1)
        loader = stoker.DataLoader(over_files.with_transform(function), 5, shuffle=True, num_workers=workers)
        runs.append([[batch["x"].tolist(), batch["y"].tolist()] for _ in range(2) for batch in loader])
        assert loader.native
    assert runs[0] == runs[1] == runs[2] and runs[0][:3] != runs[0][3:]
