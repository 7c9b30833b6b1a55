# SPDX-License-Identifier: Apache-2.0
"""Progressive JPEGs of which the last scans are missing: libjpeg smooths the blocks of what there is.

libjpeg-turbo 3, which Pillow 13 has, does that otherwise than 2.1 where rows of chroma are halved and in images of two
blocks across. There the pixels are compared only with libjpeg-turbo 3.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
import stoker

PIL = pytest.importorskip("PIL", reason="Pillow is not installed")
from PIL import Image, features  # noqa: E402

if int((features.version("libjpeg_turbo") or "0").split(".")[0]) < 3:
    pytest.skip("the reference is a Pillow with libjpeg-turbo 3", allow_module_level=True)


def photo(width, height):
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([(3 * x + y) % 256, (x + 2 * y) % 256, x * y // 7 % 256], -1)
    return Image.fromarray(pixels.astype(np.uint8))


def scan_ends(data):
    """Where the data of each scan end."""
    for at in [i for i in range(len(data) - 1) if data[i : i + 2] == b"\xff\xda"]:
        end = at + 2
        while data[end] != 0xFF or data[end + 1] == 0 or 0xD0 <= data[end + 1] <= 0xD7:
            end += 1
        yield end


def smooths_alike():
    return stoker.info()["jpeg"].startswith("libjpeg-turbo 3")


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("size", [(64, 48), (97, 65), (16, 40), (200, 130)])
def test_missing_scans_are_smoothed_as_by_pillow(tmp_path, size, subsampling):
    out = io.BytesIO()
    photo(*size).save(out, "JPEG", progressive=True, subsampling=subsampling, quality=80)
    data = out.getvalue()
    ends = list(scan_ends(data))
    assert len(ends) == 10
    for i, end in enumerate(ends):
        (tmp_path / f"{i:02}.jpg").write_bytes(data[:end] + b"\xff\xd9")
    source = stoker.Source(tmp_path)
    assert stoker.verify(source) == []
    exact = smooths_alike() or (subsampling < 2 and size[0] > 16)
    for i in range(len(ends)):
        with Image.open(tmp_path / f"{i:02}.jpg") as image:
            theirs = np.asarray(image.convert("RGB"))
        if exact or i == len(ends) - 1:
            assert np.array_equal(source[i], theirs), i
        else:
            assert source[i].shape == theirs.shape
