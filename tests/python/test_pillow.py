# SPDX-License-Identifier: Apache-2.0
"""Compares what comes out of a loader with the installed Pillow: every filter, up and down, odd sizes.

    test_pillow.py libstoker.so [case]

All photos and all images of the corpus go from their files to batches, through stoker.h. uint8 must be equal bit for
bit, float32 within one unit in the last place of torchvision's arithmetic. Exceptions are those of decode_parity.py.
"""

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

try:
    import numpy as np
    import PIL
    from PIL import Image, ImageFile, ImageOps
except ImportError as e:
    print(f"skipped: pillow: {e.name} is not installed (tools/setup.sh python)")
    sys.exit(77)

import stk

sys.path.insert(0, str(Path(__file__).parent.parent / "corpus"))
from decode_parity import DIFFERENT, DIFFERENT_BEFORE, ONLY_PILLOW, SMOOTHED  # noqa: E402

DATA = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent")
PHOTOS = DATA / "photos"
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
# Height and width: down, up, odd, one side only, a line.
SIZES = [(224, 224), (97, 131), (517, 703), (333, 77), (61, 900), (1, 50), (700, 3)]
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)

Image.MAX_IMAGE_PIXELS = None
ImageFile.LOAD_TRUNCATED_IMAGES = False
PILLOW_13 = int(PIL.__version__.split(".")[0]) >= 13

failures = 0


class Skip(Exception):
    pass


def check(good: bool, words: str) -> None:
    global failures
    if not good:
        failures += 1
        if failures <= 50:
            print(words)


# ---------------------------------------------------------------- the reference


def reference(path: str | Path) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert("RGB")


def resize(image: Image.Image, size: tuple[int, int], filter_name: str) -> Image.Image:
    """Pillow 13's resize to (height, width), with an older Pillow as well: its order of passes, one by one."""
    height, width = size
    filter_ = FILTERS[filter_name]
    shrinks = image.height - height
    if not PILLOW_13 and filter_name != "nearest" and shrinks > 0 and shrinks > 2 * (image.width - width):
        image = image.resize((image.width, height), filter_)
    return image.resize((width, height), filter_)


# ---------------------------------------------------------------- resizing


def resized(lib: object, source: Path, subset: list[int] | None, ops: str, **options: object) -> dict[int, np.ndarray]:
    """Sample -> its row."""
    options = {"dtype": stk.UINT8, "layout": stk.NHWC, **options}
    with stk.Loader(lib, subset, source=str(source), ops=ops, batch_size=25, **options) as loader:
        rows = {}
        for batch in loader.epoch(("image", "index")):
            rows.update(zip(batch["index"].tolist(), batch["image"], strict=True))
        return rows


def every_filter(lib: object) -> None:
    """All photos with all filters, each photo in one of the sizes."""
    names = photo_names(lib)
    for s, size in enumerate(SIZES):
        subset = list(range(s, len(names), len(SIZES)))
        images = {i: reference(names[i]) for i in subset}
        for name in FILTERS:
            rows = resized(lib, PHOTOS, subset, f"Resize({size}, interpolation={name})")
            for i, image in images.items():
                theirs = np.asarray(resize(image, size, name))
                check(np.array_equal(rows[i], theirs), f"{names[i]}: {name} to {size} differs")


def photo_names(lib: object) -> list[str]:
    if not PHOTOS.is_dir():
        raise Skip("STOKER_TEST_DATA has no photos")
    with stk.Loader(lib, source=str(PHOTOS), ops="Resize((8, 8))") as loader:
        return [os.fsdecode(loader.path(i)) for i in range(len(loader))]


def corpus_reference(path: Path, turbo_3: bool) -> Image.Image | None:
    """An image of the corpus as Pillow decodes it; None if it cannot, or is known to differ."""
    if turbo_3 and DIFFERENT.get(path.name) == SMOOTHED:
        return reference(path)
    if path.name in DIFFERENT or path.name in ONLY_PILLOW or (not PILLOW_13 and path.name in DIFFERENT_BEFORE):
        return None
    try:
        with Image.open(path, formats=("JPEG", "PNG", "WEBP")) as image:
            deep_grey = image.mode.startswith("I")  # Pillow clips it, Stoker scales it
        return None if deep_grey else reference(path)
    except Exception:  # noqa: BLE001 -- Pillow raises what it likes
        return None


def corpus(lib: object) -> None:
    """Every image that Pillow can decode comes out, resized as by Pillow."""
    files = (p for p in (DATA / "corpus").rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    paths = sorted(p for p in files if "zune-fuzz" not in p.parts)
    if not paths:
        raise Skip("STOKER_TEST_DATA has no corpus")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"path": str(path)}) + "\n" for path in paths)
        file.flush()
        ops = f"Resize({SIZES[1]}, interpolation=bicubic)"
        rows = resized(lib, Path(file.name), None, ops, on_error=stk.SKIP, max_bad=1.0)
    compared = 0
    turbo_3 = stk.jpeg_version(lib).startswith("libjpeg-turbo 3")
    for i, path in enumerate(paths):
        image = corpus_reference(path, turbo_3)
        if image is None:
            continue
        compared += 1
        check(i in rows, f"{path}: Pillow decodes it, Stoker does not")
        if i in rows:
            check(np.array_equal(rows[i], resize(image, SIZES[1], "bicubic")), f"{path}: differs")
    print(f"{compared} images of the corpus compared")


def shorter_side(lib: object) -> None:
    """Resize(256) | CenterCrop(224), as torchvision computes the sizes."""
    names = photo_names(lib)
    subset = list(range(0, len(names), 5))
    rows = resized(lib, PHOTOS, subset, "Resize(256) | CenterCrop(224)")
    for i in subset:
        image = reference(names[i])
        w, h = image.size
        size = (256, int(256 * w / h)) if h <= w else (int(256 * h / w), 256)
        image = resize(image, size, "bilinear")
        left, top = round((image.width - 224) / 2), round((image.height - 224) / 2)
        theirs = np.asarray(image.crop((left, top, left + 224, top + 224)))
        check(np.array_equal(rows[i], theirs), f"{names[i]}: Resize(256) | CenterCrop(224) differs")


def normalized(lib: object) -> None:
    """float32 in CHW: within one unit in the last place of ToTensor and Normalize."""
    names = photo_names(lib)
    subset = list(range(0, len(names), 10))
    rows = resized(lib, PHOTOS, subset, "Resize((96, 80)) | Normalize", dtype=stk.FLOAT32, layout=stk.NCHW)
    for i in subset:
        pixels = np.asarray(resize(reference(names[i]), (96, 80), "bilinear"))
        theirs = ((pixels.astype(np.float32) / np.float32(255) - MEAN) / STD).transpose(2, 0, 1)
        ulps = np.abs(rows[i].view(np.int32).astype(np.int64) - np.ascontiguousarray(theirs).view(np.int32))
        # Beside zero a unit in the last place is no measure: there the difference itself is.
        off = (ulps > 1) & (np.abs(rows[i] - theirs) > 1e-7)
        check(not off.any(), f"{names[i]}: {np.count_nonzero(off)} floats are off by {ulps[off].max(initial=0)} units")


# ---------------------------------------------------------------- cases

CASES: list[Callable[[object], None]] = [every_filter, corpus, shorter_side, normalized]


def main() -> int:
    lib = stk.load(sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    ran = skipped = 0
    for case in CASES:
        if only not in case.__name__:
            continue
        before = failures
        ran += 1
        try:
            case(lib)
        except Skip as words:
            skipped += 1
            print(f"skipped: {case.__name__}: {words}")
        print(f"{'ok    ' if failures == before else 'FAILED'} {case.__name__}", flush=True)
    if failures:
        return 1
    return 77 if ran == skipped else 0


if __name__ == "__main__":
    sys.exit(main())
