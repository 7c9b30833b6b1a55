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


def loop_of(inside, labels, **more):
    one = inside("probe").Loop(SimpleNamespace(**more), "torch.DataLoader", None)
    one.labels = [np.array(batch) for batch in labels]
    return one


def test_labels_of_tensorflow_are_looked_at(inside):
    """Its tensors have numpy() and no tolist()."""
    checks, one = inside("checks"), loop_of(inside, [])
    one.labels = [SimpleNamespace(dtype="<dtype: 'int32'>", numpy=lambda i=i: np.full(8, i % 4)) for i in range(16)]
    assert checks.make(one, [])["batch_classes"]["seen"] == 1
    assert "not_checked" not in checks.make(one, [])


def test_a_sampler_of_the_script_may_choose_the_classes(inside):
    """Four samples of each of two people, for a triplet loss."""
    torch = pytest.importorskip("torch")
    checks, labels = inside("checks"), [[i % 8] * 4 + [(i + 1) % 8] * 4 for i in range(16)]
    assert checks._shuffle(loop_of(inside, labels))["batch_classes"]["seen"] == 2
    torch_one = torch.utils.data.BatchSampler([0], 1, False)
    assert checks._shuffle(loop_of(inside, labels, batch_sampler=torch_one))
    assert checks._shuffle(loop_of(inside, labels, batch_sampler=SimpleNamespace())) == {}


@pytest.mark.parametrize(
    ("workers", "names", "expected"),
    [
        (2, ["0-0-10-aa-bb", "0-1-11-aa-cc"], True),
        (2, ["0-0-10-aa-bb", "0-1-11-ab-cc"], False),
        (2, ["0-0-10-aa-b1", "0-1-11-aa-b2", "0-0-12-ab-b3", "0-1-13-ab-b4"], True),  # seeded with the epoch
        (1, ["0-0-10-aa-bb", "0-0-11-aa-bb"], None),  # one worker, and two epochs
        (2, ["0-0-10-aa-bb", "1-0-11-aa-bb"], None),  # of two ranks
    ],
)
def test_workers_with_the_same_random_numbers(inside, tmp_path, workers, names, expected):
    for name in names:
        (tmp_path / f"worker-{name}").touch()
    inside("probe").plan["out"] = str(tmp_path)
    found = inside("checks")._workers(loop_of(inside, [], num_workers=workers))
    assert found.get("worker_seeds_equal") == expected


def test_the_loss_of_fp16_is_noted_without_its_scale(inside, monkeypatch):
    torch = pytest.importorskip("torch")
    models, probe = inside("models"), inside("probe")
    monkeypatch.setattr(probe, "losses", [])
    module = SimpleNamespace(backward=lambda loss: probe.losses.append((7, loss.item())))
    monkeypatch.setattr(models, "after", lambda name, change: change(module) if name == "torch.autograd" else None)
    models._loss_scaling()
    module.backward(torch.tensor(2.0))
    assert probe.losses == [(7, 2.0)]


@pytest.mark.parametrize("rows", [[{"text": "a"}] * 4, iter(range(4))])
def test_batches_that_cannot_be_compared_are_not_the_same(inside, rows):
    pytest.importorskip("torch")
    inside("what_ifs")._compare(SimpleNamespace(dataset=rows))
    extra = inside("probe").extra
    assert extra["compared"] and "same_result" not in extra
