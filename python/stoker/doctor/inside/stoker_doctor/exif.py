# SPDX-License-Identifier: Apache-2.0
"""Whether a dataset rotates its images as EXIF says, judged by what it returns: many libraries may do that for it."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from importlib import import_module
from typing import Any

from . import describe, probe

ORIENTATION, TURNED = 0x0112, 6  # the tag, and its value for a quarter turn
TRIED = 3  # files


def check(dataset: Any, files: list[str]) -> None:
    """Notes the share of the files that EXIF rotates and the dataset does not. Notes nothing if that is unknown."""
    try:
        images = import_module("PIL.Image")
        rotated = [path for path in files if _orientation(images, path) not in (0, 1)]
    except Exception:  # no Pillow, or a file that is not an image
        return
    if not files:
        return
    below = describe.inner(dataset)
    each = (is_ignored(images, below, path) for path in rotated[:TRIED])
    ignored = next((found for found in each if found is not None), None) if rotated else False
    if ignored is not None:
        probe.extra["exif_ignored"] = len(rotated) / len(files) if ignored else 0.0
        probe.extra["exif_files"] = len(files)


def _orientation(images: Any, path: str) -> int:
    with images.open(path) as image:
        return int(image.getexif().get(ORIENTATION, 1))


def is_ignored(images: Any, dataset: Any, path: str) -> bool | None:
    """Whether the dataset returns the same for a picture with and without the tag; None if it cannot be compared.

    It must return the same for the same picture, and something else for another one.
    """
    entries, files = describe.path_list(dataset), describe.files_of(dataset)
    if not isinstance(entries, list) or path not in files:
        return None
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, os.path.basename(os.path.dirname(path)))  # labels may be in the path
        os.makedirs(place, exist_ok=True)
        copy = os.path.join(place, os.path.basename(path))
        at = files.index(path)
        before = entries[at]
        entries[at] = (copy, *before[1:]) if isinstance(before, list | tuple) else type(before)(copy)
        try:
            with images.open(path) as image:
                size, form = image.size, "JPEG" if image.format == "MPO" else image.format
            noise = images.effect_noise((8, 8), 100).convert("RGB").resize(size)
            other = noise.transpose(images.Transpose.ROTATE_180)
            tag = images.Exif()
            tag[ORIENTATION] = TURNED
            returned = []
            for picture, more in ((noise, {}), (noise, {}), (other, {}), (noise, {"exif": tag})):
                picture.save(copy, form, **more)
                _seed()
                returned.append(probe.first_array(dataset[at]))
        except Exception:  # a format that cannot be written, or files that are not read so
            return None
        finally:
            entries[at] = before
    first, again, different, turned = returned
    return _equal(first, turned) if _equal(first, again) and not _equal(first, different) else None


def _equal(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a.shape == b.shape and bool((a == b).all())


def _seed() -> None:
    """The same random numbers for every picture. The run ends after this."""
    random.seed(0)
    for name, function in (("numpy", "random.seed"), ("torch", "manual_seed")):
        module: Any = sys.modules.get(name)
        for word in function.split(".") if module else ():
            module = getattr(module, word)
        if module:
            module(0)
