# SPDX-License-Identifier: Apache-2.0
"""Lossless JPEG of 8 bits, as Pillow 13 reads it."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
import stoker
from lossless_jpeg import encode

PIL = pytest.importorskip("PIL", reason="Pillow is not installed")
from PIL import Image  # noqa: E402

if int(PIL.__version__.split(".")[0]) < 13:
    pytest.skip("lossless JPEG is compared with Pillow 13", allow_module_level=True)

ADOBE = {t: b"\xff\xee\x00\x0eAdobe\x00d\x00\x00\x00\x00" + bytes([t]) for t in range(3)}
JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"


def pixels(height, width, channels, seed=0):
    """A ramp with some noise: differences of every size."""
    ramp = np.arange(height * width).reshape(height, width, 1) * np.arange(1, channels + 1)
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, channels))
    return np.where(noise % 7 == 0, noise, ramp % 256).astype(np.uint8)


def theirs(data):
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError):
        return None


def check(tmp_path, files):
    """All files give Pillow's pixels, whole and cropped, or are refused by both."""
    for i, data in enumerate(files):
        (tmp_path / f"{i:04}.jpg").write_bytes(data)
    source = stoker.Source(tmp_path)
    bad = {e.sample for e in stoker.verify(source)}
    read = refused = 0
    for i, data in enumerate(files):
        image = theirs(data)
        assert (i in bad) == (image is None), i
        refused += image is None
        if image is not None:
            read += 1
            assert np.array_equal(source[i], image), i
    return read, refused


def test_one_component(tmp_path):
    files = [
        encode(pixels(13, 17, 1, p), predictor=p, shift=s, restart=r)
        for p, s, r in itertools.product(range(1, 8), (0, 1, 3, 7), (0, 1, 5))
    ]
    assert check(tmp_path, files) == (len(files), 0)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("n", [3, 4])
def test_several_components(tmp_path, n, apart):
    files = [
        encode(pixels(11, 9, n, p), predictor=p, shift=s, restart=r, apart=apart)
        for p, s, r in itertools.product(range(1, 8), (0, 2), (0, 2))
    ]
    assert check(tmp_path, files) == (len(files), 0)


@pytest.mark.parametrize("apart", [False, True])
def test_subsampled_components(tmp_path, apart):
    """Samples are repeated, not interpolated; factors that do not divide the largest are refused."""
    small = [[(2, 1), (1, 1), (1, 1)], [(1, 2), (1, 1), (1, 1)], [(2, 2), (1, 1), (1, 1)], [(2, 2), (2, 1), (1, 2)]]
    large = [[(4, 1), (1, 1), (2, 1)], [(1, 4), (1, 1), (1, 2)], [(1, 1), (2, 2), (1, 1)]]
    files = [
        encode(pixels(height, width, 3, p), predictor=p, restart=r, sampling=sampling, apart=apart)
        for sampling in small + large
        for p, r, (height, width) in itertools.product((1, 4, 7), (0, 1, 2), [(16, 16), (13, 15), (1, 3)])
    ]
    files.append(encode(pixels(12, 12, 3), sampling=[(3, 1), (2, 1), (1, 1)]))
    assert check(tmp_path, files) == (len(files) - 1, 1)


def test_colour_spaces(tmp_path):
    """RGB and CMYK are read; what would have to be converted is refused."""
    three = [b"", JFIF, ADOBE[0], ADOBE[1], ADOBE[2], JFIF + ADOBE[0]]
    files = [encode(pixels(5, 6, 3), ids=ids, before=b) for b in three for ids in (b"RGB", b"\1\2\3", b"\0\1\2")]
    files += [encode(pixels(5, 6, 4), before=b) for b in (b"", ADOBE[0], ADOBE[1], ADOBE[2])]
    files += [encode(pixels(5, 6, 1), before=b) for b in (b"", JFIF, ADOBE[1])]
    read, refused = check(tmp_path, files)
    assert read > 10 and refused > 5


def test_crops(tmp_path):
    whole = encode(pixels(40, 30, 3), predictor=6, sampling=[(2, 2), (1, 1), (1, 1)], restart=2)
    (tmp_path / "a.jpg").write_bytes(whole)
    image = theirs(whole)
    loader = stoker.Loader(tmp_path, "RandomCrop((7, 9))", dtype="uint8", layout="NHWC", output="numpy")
    for epoch in range(20):
        batch = loader.get(0, epoch=epoch)
        crop = batch.drawn[0]["ops"][0]
        top, left = crop["top"], crop["left"]
        assert np.array_equal(batch.image[0], image[top : top + 7, left : left + 9])


@pytest.mark.parametrize("apart", [False, True])
def test_ends_inside_a_marker(tmp_path, apart):
    """A marker that is cut off does no harm to a single scan; several need their end."""
    whole = encode(pixels(4, 5, 3), apart=apart)[:-2]
    markers = b"\x01\x02\xc0\xc3\xc4\xd0\xd8\xd9\xda\xdb\xdc\xdd\xde\xe0\xe1\xee\xef\xf0\xfe"
    files = [whole + bytes([0xFF, m]) + rest for m in markers for rest in (b"", b"\0")]
    files += [whole + bytes([0xFF, m]) + rest for m in b"\xdc\xe1\xfe" for rest in (b"\0\0", b"\0\2", b"\0\x20\0")]
    read, refused = check(tmp_path, files)
    assert read > 0 and refused > 0


def test_a_code_of_ones_is_refused(tmp_path):
    """It is reserved; the file itself never uses it."""
    data = encode(pixels(5, 6, 1))
    at = data.index(b"\xff\xc4")
    files = []
    for codes in (31, 32):
        counts = bytes([codes if length == 5 else 0 for length in range(1, 17)])
        table = b"\0" + counts + bytes(range(17)) + bytes(codes - 17)
        files.append(data[:at] + b"\xff\xc4" + bytes([0, len(table) + 2]) + table + data[at + 2 + 36 :])
    assert check(tmp_path, files) == (1, 1)


@pytest.mark.parametrize("at", [0, 100, 766])
def test_bad_code_in_any_component(tmp_path, at):
    """An invalid code is an error even if valid ones follow in the same pixel. Pillow puts in a zero."""
    grey = encode(np.full((16, 16, 3), 128, np.uint8))
    start = grey.index(b"\xff\xda") + 14
    bits = ["00000"] * (16 * 16 * 3)
    bits[at] = "10101"
    text = "".join(bits)
    data = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
    for name, d in (("good", bytes(len(data))), ("invalid", data)):
        (tmp_path / f"{name}.jpg").write_bytes(grey[:start] + d + bytes(40) + b"\xff\xd9")
    assert [e.sample for e in stoker.verify(tmp_path)] == [1]


def test_damaged_ones_are_refused_or_read(tmp_path):
    """No byte may crash it, and what is cut off is refused."""
    whole = encode(pixels(12, 10, 3), predictor=4, restart=3, apart=True)
    rng = np.random.default_rng(3)
    for i in range(300):
        data = bytearray(whole[: len(whole) * (i + 1) // 300])
        data[rng.integers(2, len(data) + 2) % len(data)] ^= int(rng.integers(1, 256))
        (tmp_path / f"{i:04}.jpg").write_bytes(bytes(data))
    assert len(stoker.verify(tmp_path)) > 200
