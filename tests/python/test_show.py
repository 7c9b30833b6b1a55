# SPDX-License-Identifier: Apache-2.0
"""Contact sheets: what training sees, with its labels, as colours."""

import sys
import types

import numpy as np
import pytest
import stoker

OPS = "RandomResizedCrop(32) | RandomHorizontalFlip"
# Where the first image of a sheet lies, and how much larger than 32 pixels: see sheet/grid.h.
LEFT, TOP, TIMES = 36, 36 + 66, 7


def pixels_of(sheet, tmp_path):
    (tmp_path / "look").mkdir(exist_ok=True)
    sheet.save(tmp_path / "look" / "sheet.png")
    return stoker.Source(tmp_path / "look")[0]


def first_image(sheet, tmp_path, side=32):
    """The pixels of the first image, read back from the sheet; its border is drawn over."""
    page = pixels_of(sheet, tmp_path)
    middle = page[TOP + TIMES // 2 :: TIMES, LEFT + TIMES // 2 :: TIMES]
    return middle[1 : side - 1, 1 : side - 1]


def seen(loader, **k):
    return loader.get(positions=[0], **k).image[0][:, 1:-1, 1:-1].transpose(1, 2, 0)


@pytest.mark.parametrize(
    "more, k",
    [
        ("", {}),
        ("| Normalize", {}),
        ("| Normalize(clip)", {"layout": "NHWC"}),
        ("| ToTensor | Normalize(mean=0.5, std=0.25)", {"layout": "channels_last"}),
        ("| ToDtype(float32)", {}),
        ("", {"dtype": "uint8"}),
        ("", {"shuffle": True, "epoch": 3}),
        ("", {"weights": np.arange(12.0)}),
        ("", {"shuffle": True, "steps_per_epoch": 30, "epoch": 7}),
        ("", {"sampler": [7, 3]}),
    ],
)
def test_the_very_pixels(photos, tmp_path, more, k):
    epoch = k.pop("epoch", 0)
    sheet = stoker.Loader(photos, OPS + more, output="numpy", **k).show(tmp_path / "s.png", n=3, epoch=epoch)
    order = {n: k[n] for n in ("shuffle", "weights", "steps_per_epoch") if n in k}
    plain = stoker.Loader(photos, OPS, dtype="uint8", output="numpy", **order)
    if "sampler" in k:
        plain = stoker.Loader(photos, OPS, dtype="uint8", output="numpy", sampler=k["sampler"])
        want = plain.get(7, epoch=epoch, positions=0).image[0][:, 1:-1, 1:-1].transpose(1, 2, 0)
    else:
        want = seen(plain, epoch=epoch)
    assert np.array_equal(first_image(sheet, tmp_path), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types_of_few_bits(photos, tmp_path, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    want = seen(stoker.Loader(photos, OPS, dtype="uint8", output="numpy"), epoch=0).astype(int)
    loader = stoker.Loader(photos, OPS + "| Normalize", dtype=dtype, output="numpy")
    assert abs(first_image(loader.show(tmp_path / "s.png", n=1), tmp_path) - want).max() <= 2


def test_labels(photos, tmp_path):
    show = lambda source, **k: stoker.Loader(source, OPS, output="numpy", **k).show(tmp_path / "s.png", n=5)  # noqa: E731
    assert show(photos).labels == ["cat"] * 5
    assert set(show(photos, shuffle=True).labels) == {"cat", "dog"}
    assert show(photos / "cat").labels == [f"{i:02}.png" for i in range(5)]
    assert show(photos, fields=("image",)).labels == [f"{i:02}.png" for i in range(5)]
    images = np.zeros((5, 32, 32, 3), np.uint8)
    assert show((images, np.arange(5) + 7)).labels == [f"label {i + 7}" for i in range(5)]
    assert show(images).labels == [f"sample {i}" for i in range(5)]
    with_words, without = (pixels_of(show(p), tmp_path) for p in (photos, images))
    assert with_words.shape == without.shape
    under = slice(TOP + 224, TOP + 224 + 26)
    assert (with_words[under] != without[under]).any()  # they are drawn


def test_functions_and_data_sets(photos, tmp_path):
    class Images:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return np.full((3, 32, 32), i / 2, np.float32), ["a", "b", "c"][i]

    dark = stoker.Loader(photos, [OPS, lambda x: x * 0], output="numpy")
    assert not first_image(dark.show(tmp_path / "s.png", n=1), tmp_path).any()
    loader = stoker.Loader(Images(), output="numpy")
    sheet = loader.show(tmp_path / "s.png")
    assert sheet.labels == ["a", "b", "c"] and len(list(loader)) == 3
    stream = stoker.Loader(iter([Images()[i] for i in range(3)]), output="numpy", batch_size=2)
    assert stream.show(tmp_path / "s.png").labels == ["a", "b"]
    assert [b.label for b in stream] == [["a", "b"], ["c"]]  # none is lost
    whole = stoker.Loader(Images(), output="numpy", collate_fn=len)
    assert whole.show(tmp_path / "s.png").labels == ["a", "b", "c"]


def test_bad_samples_are_left_out_where_training_leaves_them_out(make, tmp_path):
    root = make(6)
    (root / "cat" / "01.png").write_bytes(b"not an image")
    with pytest.raises(stoker.DataError, match="01.png"):
        stoker.Loader(root, OPS).show(tmp_path / "s.png")
    sheet = stoker.Loader(root, OPS, on_error="skip").show(tmp_path / "s.png", n=20)
    assert sheet.labels == ["cat"] * 5 + ["dog"] * 6


def test_where_it_goes(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    loader = stoker.Loader(photos, OPS)
    sheet = loader.show(n=2)
    assert sheet.path.startswith(str(tmp_path)) and sheet.path in repr(sheet) and "2 images" in repr(sheet)
    with open(sheet.path, "rb") as f:
        assert f.read() == sheet.png == sheet._repr_png_() and sheet.png[1:4] == b"PNG"
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", kernel)  # in a notebook nothing is written
    assert loader.show(n=2).path is None and "not saved" in repr(loader.show(n=2))


def test_what_cannot_be_shown(photos, tmp_path):
    for loader, words in (
        (stoker.Loader(np.zeros((5, 3))), "no field is one"),
        (stoker.Loader(photos, OPS, fields=("label",)), "no field is one"),
        (stoker.Loader(np.zeros((5, 3, 4, 5, 6))), "shape"),
        (stoker.Loader([np.zeros((4, 4)), np.zeros((5, 5))], collate_fn=len), "one size"),
    ):
        with pytest.raises(stoker.UsageError, match=words):
            loader.show(tmp_path / "s.png")
    for k, words in (({"n": 0}, "1 or more"), ({"columns": 0}, "1 or more"), ({"epoch": -1}, "0 or more")):
        with pytest.raises(stoker.UsageError, match=words):
            stoker.Loader(photos, OPS).show(tmp_path / "s.png", **k)
    with pytest.raises(stoker.UsageError, match="only gave that of epoch 0"):
        stoker.Loader(photos, OPS, sampler=[1]).show(tmp_path / "s.png", epoch=4)
    with pytest.raises(FileNotFoundError):
        stoker.Loader(photos, OPS).show(tmp_path / "nowhere" / "s.png")
