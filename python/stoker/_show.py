# SPDX-License-Identifier: Apache-2.0
"""Contact sheets."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _stoker
from ._errors import usage
from ._types import NUMBERS

# Ops that only change numbers: a picture is looked at before them.
NUMERIC = ("Normalize", "ToTensor", "ToImage", "PILToTensor", "ToDtype")
GAP = 2


@dataclass
class Sheet:
    """A contact sheet: shown by notebooks, saved by `save`.

    >>> stoker.Loader(photos, "CenterCrop(16)").show(n=2)
    Sheet of 2 pictures: cat, cat
    """

    png: bytes
    labels: list[str]
    n: int

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Sheet of {self.n} picture{'s' * (self.n != 1)}: {', '.join(self.labels) or 'without labels'}"

    def save(self, path: str) -> None:
        """Writes the PNG.

        >>> stoker.Loader(photos, "CenterCrop(16)").show().save(photos + ".png")
        """
        with open(path, "wb") as f:
            f.write(self.png)


def _split(text: str) -> list[str]:
    """
    >>> _split("Resize((8, 8)) | Normalize(mean=(1, 2))")
    ['Resize((8, 8))', 'Normalize(mean=(1, 2))']
    """
    return [op.strip() for op in re.split(r"\|(?![^(]*\))", text) if op.strip()]


def _sheet(pictures: np.ndarray[Any, Any]) -> bytes:
    n, height, width, channels = pictures.shape
    if channels == 1:
        pictures = np.repeat(pictures, 3, axis=3)
    across = math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    page = np.full((down * (height + GAP) + GAP, across * (width + GAP) + GAP, 3), 255, np.uint8)
    for i, picture in enumerate(pictures):
        y, x = GAP + i // across * (height + GAP), GAP + i % across * (width + GAP)
        page[y : y + height, x : x + width] = picture
    return _stoker.encode(page, page.shape[1], page.shape[0], 3)


def sheet(loader: Any, path: str | None, n: int, epoch: int) -> Sheet:
    options = dict(loader._options)
    if loader._given.fill:
        raise usage("show() is for pictures; this source has samples of its own kind")
    for name in ("op", "weights", "steps_per_epoch"):
        options.pop(name, None)
    ops = [op for op in _split(options["ops"]) if not op.startswith(NUMERIC)]
    options.update(ops=" | ".join(ops), dtype=NUMBERS["uint8"], layout=2, sampled=1, shuffle=0, batch_size=n, threads=1)
    handle = _stoker.Loader(options)
    try:
        columns = [name for name, _, _ in handle.fields()]
        if "image" not in columns:
            raise usage("show() is for pictures, and this source has none")
        chosen = options["subset"] if "subset" in options else np.arange(handle.count(), dtype=np.int64)
        raw = handle.get(np.ascontiguousarray(chosen[:n]), None, epoch)
        pictures = np.asarray(raw[columns.index("image")])
        numbers = np.asarray(raw[columns.index("label")]) if "label" in columns else np.zeros(0, np.int64)
        names = handle.classes()
    finally:
        handle.close()
    labels = [names[i] if 0 <= i < len(names) else str(i) for i in numbers.tolist()]
    result = Sheet(_sheet(pictures), labels, len(pictures))
    if path is not None:
        result.save(path)
    return result
