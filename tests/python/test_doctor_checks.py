# SPDX-License-Identifier: Apache-2.0
"""What the alarms look at, inside the process of the script."""

import importlib
from types import SimpleNamespace

import pytest
from stoker.doctor import runner

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
from PIL.ImageOps import exif_transpose  # noqa: E402 -- by name, as scripts do


@pytest.fixture
def inside(monkeypatch):
    """Imports a module of the probe; what it measures is forgotten after the test."""
    monkeypatch.syspath_prepend(runner.INSIDE)
    probe = importlib.import_module("stoker_doctor.probe")
    for name, value in (("extra", {}), ("plan", {}), ("loops", [])):
        monkeypatch.setattr(probe, name, value)
    return lambda name: importlib.import_module(f"stoker_doctor.{name}")


class Photos:
    """A dataset that keeps its files in a list."""

    def __init__(self, files, change):
        self.samples, self.change = [(str(path), 0) for path in files], change

    def __getitem__(self, i):
        with Image.open(self.samples[i][0]) as image:
            return np.asarray(self.change(image).resize((32, 32))), 0


def photos(folder, orientations):
    tag = Image.Exif()
    for i, value in enumerate(orientations):
        tag[0x0112] = value
        Image.new("RGB", (60, 40), (i, 0, 0)).save(folder / f"{i}.jpg", exif=tag)
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda image: image, 0.5),
        (exif_transpose, 0.0),
        (lambda image: image.crop((0, 0, *np.random.randint(9, 30, 2))), 0.5),  # random, with a seed
        (lambda image: image.rotate(next(TURNS)), None),  # random, without one
        (lambda image: Image.new("RGB", (9, 9)), None),  # not what is in the file
    ],
)
def test_exif_is_judged_by_what_the_dataset_returns(inside, tmp_path, change, expected):
    files = photos(tmp_path, [1, 6, 8, 1])
    data = Photos(files, change)
    inside("exif").check(SimpleNamespace(dataset=data), [str(path) for path in files])
    assert inside("probe").extra.get("exif_ignored") == expected
    assert [path for path, _ in data.samples] == [str(path) for path in files]  # as it was


TURNS = iter(range(1000))


def test_exif_of_a_dataset_that_keeps_its_samples(inside, tmp_path):
    files = photos(tmp_path, [6])
    data = Photos(files, lambda image: image)
    kept = [data[0]]
    data.__class__ = type("Kept", (Photos,), {"__getitem__": lambda self, i: kept[i]})
    inside("exif").check(data, [str(files[0])])
    assert "exif_ignored" not in inside("probe").extra


def test_without_rotated_files_nothing_is_ignored(inside, tmp_path):
    files = photos(tmp_path, [1, 1])
    inside("exif").check(Photos(files, lambda image: image), [str(path) for path in files])
    assert inside("probe").extra["exif_ignored"] == 0.0
