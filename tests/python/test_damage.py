# SPDX-License-Identifier: Apache-2.0
"""Damaged files: a loader refuses what Pillow refuses, whichever way it reads an image.

Files are scrambled from a fixed seed. Whole images must have Pillow's verdict. A crop must have it where the damage
lies before the end of what the crop needs, and is delivered where all damage lies behind.
"""

from __future__ import annotations

import io
import json
import os
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker

PIL = pytest.importorskip("PIL", reason="Pillow is not installed")
from PIL import Image  # noqa: E402

if int(PIL.__version__.split(".")[0]) != 13:
    pytest.skip("the reference is Pillow 13", allow_module_level=True)

SCRAMBLED = 2000
MARKERS = [0xD9, 0xD0, 0xD3, 0xC0, 0xC2, 0xC4, 0xDA, 0xDB, 0xDC, 0xFE, 0xE1, 0xD8, 0x02, 0xFF, 0xF7]


def photo(width, height, mode):
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(width).integers(-20, 20, (height, width, 3))
    pixels = np.stack([(3 * x + y) % 256, (x + 2 * y) % 256, x * y // 7 % 256], -1) + noise
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).convert(mode)


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpegs():
    """Every sampling, baseline and progressive, with and without restart markers."""
    for width, height in [(48, 40), (97, 65), (33, 120)]:
        for mode, sampling in [("RGB", 0), ("RGB", 1), ("RGB", 2), ("L", -1), ("CMYK", -1)]:
            for progressive in (False, True):
                for restart in ({}, {"restart_marker_rows": 1}, {"restart_marker_blocks": 3}):
                    image = photo(width, height, mode)
                    yield encoded(image, subsampling=sampling, progressive=progressive, quality=85, **restart)


def pngs_and_webps():
    for mode in ("RGB", "L", "P", "RGBA", "1"):
        yield encoded(photo(61, 47, "RGB").convert(mode), "PNG")
    for lossless in (False, True):
        for mode in ("RGB", "RGBA"):
            yield encoded(photo(61, 47, mode), "WEBP", lossless=lossless)


def scrambled(whole, rng):
    """Some bytes changed, a stretch overwritten or missing, or a marker in the middle."""
    data = bytearray(whole)
    first = 2 if rng.random() < 0.3 else len(data) // 3
    at = rng.randrange(first, len(data) - 1)
    kind = rng.randrange(6)
    if kind < 3:
        for _ in range(rng.choice([1, 2, 5, 20, 60])):
            data[rng.randrange(first, len(data))] = rng.randrange(256)
    elif kind == 3:
        stretch = data[at : at + rng.randrange(1, 200)]
        data[at : at + len(stretch)] = rng.randbytes(len(stretch))
    elif kind == 4:
        del data[at : at + rng.randrange(1, 100)]
    else:
        data[at : at + 2] = bytes([0xFF, rng.choice(MARKERS)])
    return bytes(data)


def scramble(folder, wholes, n, seed):
    rng = random.Random(seed)
    for i in range(n):
        (folder / f"{i:04}.img").write_bytes(scrambled(rng.choice(wholes), rng))
    names = folder / "all.jsonl"
    names.write_text("".join(json.dumps({"path": f"{i:04}.img"}) + "\n" for i in range(n)))
    return names


def refuses(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(path, formats=("JPEG", "PNG", "WEBP")) as image:
                image.convert("RGB")
        except Exception:  # noqa: BLE001 -- Pillow raises what it likes
            return True
    return False


class Set:
    """A list of scrambled files, and the numbers of those that Pillow refuses."""

    def __init__(self, names):
        self.names = names
        self.count = len(names.read_text().splitlines())
        self.bad = {i for i in range(self.count) if refuses(names.parent / f"{i:04}.img")}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    return Set(scramble(tmp_path_factory.mktemp("jpegs"), list(jpegs()), SCRAMBLED, 1))


@pytest.fixture(scope="module")
def damaged_others(tmp_path_factory):
    return Set(scramble(tmp_path_factory.mktemp("others"), list(pngs_and_webps()), 400, 2))


def loader_of(names, ops, **arguments):
    arguments = {"on_error": "skip", "max_bad": 1.0, "batch_size": 50, **arguments}
    return stoker.Loader(names, ops, fields=("image", "index"), dtype="uint8", output="numpy", **arguments)


def delivered(loader):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {int(i): row for batch in loader for i, row in zip(batch.index, batch.image, strict=True)}


def bad_of(loader, count):
    return set(range(count)) - set(delivered(loader))


def test_scrambled_files_have_pillows_verdict(damaged):
    assert 500 < len(damaged.bad) < 1000
    assert bad_of(loader_of(damaged.names, "Resize((8, 8))"), damaged.count) == damaged.bad


def test_verify_agrees(damaged):
    assert {e.sample for e in stoker.verify(damaged.names)} == damaged.bad


@pytest.mark.parametrize("cache", ["bytes", "dct", "pixels"])
def test_caches_agree(damaged, cache):
    with loader_of(damaged.names, "Resize((8, 8)) | RandomHorizontalFlip", cache=cache) as loader:
        for _ in range(3):
            assert bad_of(loader, damaged.count) == damaged.bad


def test_every_bad_file_raises_once(damaged):
    raised = set()
    with loader_of(damaged.names, "Resize((8, 8))", on_error="raise", batch_size=1) as loader:
        batches = iter(loader)
        while True:
            try:
                next(batches)
            except StopIteration:
                break
            except stoker.DataError as e:
                raised.add(e.sample)
    assert raised == damaged.bad


def test_get_and_source_agree(damaged):
    source = stoker.Source(damaged.names)
    loader = loader_of(source, "Resize((8, 8))", batch_size=1)
    for i in range(0, damaged.count, 5):
        for read in (lambda: loader.get(i), lambda: source[i]):  # noqa: B023 -- called at once
            if i in damaged.bad:
                with pytest.raises(stoker.DataError):
                    read()
            else:
                read()


def test_pack_agrees(damaged, tmp_path):
    stoker.pack(damaged.names, tmp_path / "pack", resize="short=8", on_error="skip", max_bad=1.0)
    assert len(stoker.Source(tmp_path / "pack")) == damaged.count - len(damaged.bad)


def test_png_and_webp_agree(damaged_others):
    assert 100 < len(damaged_others.bad) < 400
    assert bad_of(loader_of(damaged_others.names, "Resize((8, 8))"), damaged_others.count) == damaged_others.bad
    assert {e.sample for e in stoker.verify(damaged_others.names)} == damaged_others.bad


def test_segments_with_a_wrong_length(tmp_path):
    """libjpeg skips comments and application data whose length is less than its own two bytes."""
    whole = encoded(photo(40, 30, "RGB"))
    kinds = [0xFE, 0xE1, 0xE5, 0xEE, 0xEF, 0xDC, 0x01, 0x02, 0xDB, 0xC4, 0xDD]
    for i, (kind, length) in enumerate((k, n) for k in kinds for n in (0, 1)):
        (tmp_path / f"{i:04}.jpg").write_bytes(whole[:2] + bytes([0xFF, kind, 0, length]) + whole[2:])
    bad = {e.sample for e in stoker.verify(tmp_path)}
    assert bad == {i for i in range(2 * len(kinds)) if refuses(tmp_path / f"{i:04}.jpg")}
    assert 0 not in bad and 2 * len(kinds) - 1 in bad


def test_verify_and_reading_agree_on_the_corpus(tmp_path):
    """Every image of other projects' tests, good or bad."""
    corpus = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "corpus")
    suffixes = {".jpg", ".jpeg", ".png", ".webp", ".crash", ""}
    paths = [p for p in sorted(corpus.rglob("*")) if p.suffix.lower() in suffixes and p.is_file()]
    if not paths:
        pytest.skip("STOKER_TEST_DATA has no corpus")
    names = tmp_path / "all.jsonl"
    names.write_text("".join(json.dumps({"path": str(p)}) + "\n" for p in paths))
    loader = loader_of(names, "Resize((8, 8))", memory="2GiB")
    assert bad_of(loader, len(paths)) == {e.sample for e in stoker.verify(names, memory="2GiB")}


# ---------------------------------------------------------------- crops


def rows_of(whole):
    """Where the scan begins, and where each of its rows of MCUs ends: at a restart marker."""
    start = whole.index(b"\xff\xda")
    start += 2 + int.from_bytes(whole[start + 2 : start + 4])
    ends = [i for i in range(start, len(whole) - 1) if whole[i] == 0xFF and 0xD0 <= whole[i + 1] <= 0xD9]
    return start, ends


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """Copies of an image of 12 rows of MCUs, each with an unknown marker in the middle of one of them."""
    folder = tmp_path_factory.mktemp("marked")
    whole = encoded(photo(40, 96, "RGB"), subsampling=0, restart_marker_rows=1, quality=95)
    start, ends = rows_of(whole)
    assert len(ends) == 12
    for row, (begin, end) in enumerate(zip([start, *ends], ends, strict=False)):
        at = (begin + end) // 2
        (folder / f"{row:04}.img").write_bytes(whole[:at] + b"\xff\xf7" + whole[at + 2 :])
    names = folder / "all.jsonl"
    names.write_text("".join(json.dumps({"path": f"{i:04}.img"}) + "\n" for i in range(12)))
    return names


@pytest.mark.parametrize("ops", ["RandomCrop(16)", "RandomCrop((40, 8)) | RandomHorizontalFlip"])
@pytest.mark.parametrize("cache", [None, "bytes", "dct", "pixels"])
@pytest.mark.parametrize("checkpoints", ["off", "kept"])
def test_a_crop_is_bad_if_the_damage_is_before_its_end(marked, tmp_path, ops, cache, checkpoints):
    """And checkpoints, which come up from the second epoch on, change nothing."""
    folder = {"off": "off", "kept": str(tmp_path)}[checkpoints]
    seen = set()
    with loader_of(marked, ops, cache=cache, cache_dir=folder, batch_size=12) as loader:
        for epoch in range(8):
            good = delivered(loader)
            for i, what in enumerate(loader.drawn(range(12), epoch=epoch)):
                crop = what["ops"][0]
                last = (crop["top"] + crop["height"] - 1) // 8
                assert (i in good) == (last < i), (i, crop)
                seen.add(i in good)
    assert seen == {True, False}
