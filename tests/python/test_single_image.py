# SPDX-License-Identifier: Apache-2.0
"""A single image file as a source of one sample."""

from __future__ import annotations

import numpy as np
import stoker
from conftest import make_photos


def test_one_image_is_a_source_of_one_sample(photos):
    path = sorted(photos.rglob("*.png"))[3]
    source = stoker.Source(path)
    assert len(source) == 1 and source.paths == [str(path)]
    assert np.array_equal(source[0], stoker.Source(photos)[3])
    (batch,) = stoker.Loader(path, "Resize((8, 8))", output="numpy")
    assert batch.image.shape == (1, 3, 8, 8)


def test_verify_names_one_bad_image(tmp_path):
    good = next(iter(make_photos(tmp_path, 1).rglob("*.png")))
    assert stoker.verify(good) == []
    data = good.read_bytes()
    for name, damaged in {"cut.png": data[:60], "other.png": b"\x89PNG\n\x1a\n" + data[8:], "empty.jpg": b""}.items():
        bad = tmp_path / name
        bad.write_bytes(damaged)
        (error,) = stoker.verify(bad)
        assert error.path == str(bad) and error.sample == 0


def test_images_of_several_places_are_joined(photos):
    paths = sorted(photos.rglob("*.png"))
    assert len(stoker.Source(paths[0], paths[-1])) == 2


def test_the_fingerprint_is_that_of_name_and_size(photos, tmp_path):
    path = sorted(photos.rglob("*.png"))[0]
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    fingerprints = {stoker.ls(p).fingerprint for p in (path, copy)}
    assert len(fingerprints) == 1
