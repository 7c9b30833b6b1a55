# SPDX-License-Identifier: Apache-2.0
"""print(loader), explain(), stats() and progress."""

import io
import re
import sys
import types

import numpy as np
import pytest
import stoker
from conftest import make_photos


def test_a_loader_prints_as_a_table(photos):
    loader = stoker.Loader(photos, "CenterCrop(8) | Normalize", batch_size=5, shuffle=True, output="numpy")
    assert str(loader).splitlines() == [
        f"Loader     {photos}: folder of classes, 12 samples, 2 classes",
        "ops        CenterCrop(8) | Normalize",
        "batches    3 per epoch, each of 5 samples, shuffled; in epoch 0",
        "fields     image float32 (3, 8, 8), label int64; as numpy",
        "ranks      0 of 1: no launcher found",
    ]
    next(iter(loader))
    assert str(loader).splitlines()[2].endswith("in epoch 0, after 5 samples")
    list(loader)
    assert str(loader).splitlines()[2].endswith("in epoch 2")
    loader.close()
    assert str(loader).endswith("closed")


def test_other_orders(photos):
    x = np.zeros((6, 2))
    assert "drawn by weight" in str(stoker.Loader(x, weights=np.ones(6)))
    assert "in the sampler's order" in str(stoker.Loader(x, sampler=[3, 1]))
    assert "path" in str(stoker.Loader(photos, "CenterCrop(8)", fields=("image", "path")))


def test_a_data_set_is_named(photos):
    squares = Squares()
    assert str(stoker.Loader(squares, batch_size=2)).startswith("Loader     dataset Squares, 4 samples\n")
    assert "in the calling thread" in stoker.Loader(squares).explain()
    assert "in 2 processes" in stoker.Loader(squares, processes=2).explain()
    assert re.search(r"^Squares.__getitem__ \(.*:\d+\), one at a time$", stoker.Loader(squares).stats().python)
    assert str(stoker.Loader(np.zeros((6, 2)))).startswith("Loader     arrays, 6 samples\n")
    assert "classes" not in repr(stoker.Source(photos / "cat"))


class Squares:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.float32(i * i)


def test_draft_is_told(photos):
    k = {"transform": "Resize(8) | CenterCrop(8)", "output": "numpy"}
    assert "draft: JPEGs" in stoker.Loader(photos, fidelity="draft", **k).explain()
    assert "fidelity" not in stoker.Loader(photos, **k).explain()


def test_a_notebook_shows_what_print_does(photos):
    loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=5, output="numpy")
    assert repr(loader.explain()) == str(loader.explain()) and not loader.explain().endswith("\n")
    assert repr(loader.stats()).startswith("samples    0 in 0 batches")
    assert repr(stoker.ls(photos)).startswith("source     folder of classes, 12 samples, 2 classes")


def test_one_is_not_called_many(tmp_path):
    make_photos(tmp_path, 1)
    loader = stoker.Loader(tmp_path / "cat", "CenterCrop(8)", batch_size=1, output="numpy")
    [_] = list(loader)
    told = f"{loader}\n{loader.explain()}\n{loader.stats()!r}\n{stoker.ls(tmp_path / 'cat')}"
    assert "1 sample" in told and "each of 1 sample," in told and "1 batch" in told
    assert not re.search(r"\b1 (samples|classes|batches)", told)


def test_samplers_without_a_length():
    x = np.zeros((10, 2))
    assert "each of 2 samples, in the sampler's order" in str(stoker.Loader(x, sampler=iter(range(5)), batch_size=2))
    assert "batches    in the sampler's" in str(stoker.Loader(x, batch_sampler=iter([[1, 2]])))


def test_an_iterable_is_not_counted():
    loader = stoker.Loader((np.float32(i) for i in range(5)), batch_size=2, output="numpy")
    for words in (str(loader), loader.explain()):
        assert "iterable generator" in words and "1099511627776" not in words
        assert "in order, one at a time" in words


def test_stats_before_and_after(photos):
    loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=5, output="numpy")
    assert "no work yet" in str(loader.stats()) and "limited" not in str(loader.stats())
    kept = list(loader)
    words = str(loader.stats())
    assert "no work yet" not in words
    assert len(kept) == 3 and "12 in 3 batches" in words and "limited by" in words and "program holds" in words


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr("stoker._iterate.EVERY", -1)
    monkeypatch.setattr(sys, "stderr", Terminal())
    loader = stoker.Loader(np.zeros((6, 2)), batch_size=2, output="numpy", progress=True)
    assert len(list(loader)) == 3
    words = sys.stderr.getvalue()
    assert words.startswith("\repoch 0: 1/3 batches") and words.endswith("\n") and words.count("\n") == 1
    assert "epoch 0: 3/3 batches" in words.splitlines()[-1]
    for _ in loader:
        break
    assert sys.stderr.getvalue().endswith("\n")


def test_progress_is_silent_in_a_file(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(list(stoker.Loader(np.zeros((6, 2)), batch_size=2, output="numpy", progress=True))) == 3
    assert capsys.readouterr().err == ""


class Bar:
    """As much of tqdm's as is used."""

    def __init__(self, **k):
        self.k, self.done, self.closed = k, 0, False
        bars.append(self)

    def update(self):
        self.done += 1

    def close(self):
        self.closed = True


bars: list[Bar] = []


def test_progress_with_tqdm(monkeypatch):
    module = types.SimpleNamespace(tqdm=Bar)
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    loader = stoker.Loader(np.zeros((6, 2)), batch_size=2, output="numpy", progress=True)
    assert len(list(loader)) == 3
    assert bars[-1].k == {"total": 3, "desc": "epoch 0", "unit": "batch"}
    assert bars[-1].done == 3 and bars[-1].closed
    for _ in loader:
        break
    assert bars[-1].done == 1 and bars[-1].closed and bars[-1].k["desc"] == "epoch 1"


def test_progress_goes_on_after_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", Terminal())

    def picky(x):
        return 1 / x

    it = iter(stoker.Loader(list(map(float, [1, 0, 2, 3])), picky, batch_size=2, output="numpy", progress=True))
    with pytest.raises(stoker.DataError):
        next(it)
    assert len(next(it)[0]) == 2
