# SPDX-License-Identifier: Apache-2.0
"""Contact sheets of what training sees: rows of an epoch, with Normalize undone."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _stoker
from ._converted import is_known
from ._errors import DataError, usage
from ._ragged import row_of
from ._rows import IterableFill, as_array, parts_of
from ._types import counted, whole

Array = np.ndarray[Any, Any]
Marks = tuple[bytes, bytes, bytes, bytes, bytes]  # a mask, masks of boxes, boxes, labels, keypoints
Row = tuple[Array, str, Marks]  # an image, rows x columns x channels, its caption, and what belongs to it
KINDS = ("mask", "masks", "boxes", "keypoints")
NORMALIZE = re.compile(r"Normalize\(mean=(\([^)]*\)|[^,]*), std=(\([^)]*\)|[^)]*)\)")


@dataclass
class Sheet:
    """A contact sheet. Notebooks show it; `save` writes it as PNG.

    >>> stoker.Loader(photos, "CenterCrop(16)").show(photos + ".png", n=2).labels
    ['cat', 'cat']
    """

    png: bytes  #: the file
    labels: list[str]  #: the captions of the images
    width: int  #: in pixels
    height: int  #: in pixels
    path: str | None = None  #: where it was saved

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        n = len(self.labels)
        where = f"in {self.path}" if self.path else "not saved yet: save(path)"
        return f"Sheet of {counted(n, 'image')}, {self.width} x {self.height} pixels, {where}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the sheet as PNG.

        >>> sheet = stoker.Loader(photos, "CenterCrop(16)").show(photos + ".png")
        >>> sheet.save(photos + ".copy.png")
        """
        with open(path, "wb") as f:
            f.write(self.png)
        self.path = os.fspath(path)


# ---------------------------------------------------------------- rows


def _places(loader: Any, n: int, epoch: int) -> Iterator[tuple[int | None, int | None]]:
    """Samples and positions of the rows of an epoch, in order; one of the two may be None."""
    if loader._sampled:
        order = loader._order_of(epoch)
        yield from ((int(order[i]), i) for i in range(len(order)))
        return
    options = loader._options
    total = len(options["subset"]) if "subset" in options else loader._engine.count()
    if "steps_per_epoch" in options:
        total = options["steps_per_epoch"] * options["batch_size"] * options["world_size"]
    yield from ((None, i) for i in range(total))


@dataclass
class _Rows:
    """Where rows come from: the loader's engine, or one that makes corners of boxes."""

    loader: Any
    engine: Any
    form: Any

    @classmethod
    def of(cls, loader: Any) -> _Rows:
        kinds = {kind for _, _, kind, _ in loader._form.about.values()}
        if "boxes" not in kinds:
            return cls(loader, loader._engine, loader._form)
        ops = " | ".join(text for text in (loader._transform.text, "ConvertBoundingBoxFormat(XYXY)") if text)
        options = {k: v for k, v in loader._options.items() if k not in ("device", "allocator")}
        engine = _stoker.Loader({**options, "ops": ops, "idle": 1})
        return cls(loader, engine, loader._form_of(engine, loader._given.fill))

    def close(self) -> None:
        if self.engine is not self.loader._engine:
            self.engine.close()

    def marks(self, values: dict[str, Any]) -> Marks:
        """Masks, boxes and keypoints of a row, as bytes."""
        columns = [c for c in self.form.columns if c.called in values]
        found = {c.kind: np.asarray(values[c.called]) for c in columns if c.kind in KINDS}
        labels = next((values[c.called] for c in columns if c.name == "labels"), None)
        parts = dict.fromkeys((*KINDS, "labels"), b"")
        for kind, value in found.items():
            dtype = "float32" if kind in ("boxes", "keypoints") else "uint8" if kind == "masks" else value.dtype
            parts[kind] = np.ascontiguousarray(value, dtype).tobytes()
        if found and labels is not None:
            parts["labels"] = np.ascontiguousarray(labels, np.int64).tobytes()
        return parts["mask"], parts["masks"], parts["boxes"], parts["labels"], parts["keypoints"]

    def sizes(self) -> tuple[int, int]:
        """Bytes of a mask's value, and numbers of a keypoint."""
        about = {kind: (dtype, shape) for dtype, shape, kind, _ in self.form.about.values()}
        points = about["keypoints"][1] if "keypoints" in about else (0,)
        return np.dtype(about["mask"][0] if "mask" in about else "uint8").itemsize, int(points[-1])


def _raws(of: _Rows, n: int, epoch: int) -> Iterator[tuple[_stoker.Memory, ...]]:
    """The first n rows. Bad samples are skipped if training skips or replaces them."""
    got, loader = 0, of.loader
    for sample, position in _places(loader, n, epoch):
        if got == n:
            return
        which = [None if v is None else np.array([v], np.int64) for v in (sample, position)]
        try:
            yield of.engine.get(*which, epoch)
            got += 1
        except DataError:
            if loader._arguments["on_error"] == "raise":
                raise


def _caption(loader: Any, label: Any, sample: int | None) -> str:
    names = loader.classes
    if isinstance(label, str):
        return label
    if label is not None and np.ndim(label) == 0:
        number = np.asarray(label).item()
        return names[number] if isinstance(number, int) and 0 <= number < len(names) else f"label {number}"
    if sample is None:
        return ""
    return os.path.basename(loader._engine.path(sample)) or f"sample {sample}"


def _parts(of: _Rows, raw: tuple[_stoker.Memory, ...], row: int) -> tuple[Any, Any, int | None, Marks]:
    """The image, the label and the index of one row; None for those that the batch lacks; and its marks."""
    fill = of.loader._given.fill
    values = {name: row_of(column, row) for name, column in of.form.look(raw).items()}
    sample = values.get("index")
    if fill and fill.whole:
        _, parts = parts_of(values["sample"])
        return as_array(parts[0]), parts[1] if len(parts) == 2 else None, sample, (b"", b"", b"", b"", b"")
    images = [v for name, v in values.items() if name == "image" or np.ndim(v) >= 2]
    if not images:
        raise usage("show() needs images, but no field is one; name one in fields")
    return values.get("image", images[0]), values.get("label", values.get("y")), sample, of.marks(values)


def _rows(of: _Rows, n: int, epoch: int) -> Iterator[Row]:
    loader = of.loader
    if isinstance(loader._given.fill, IterableFill):
        loader.peek()
        raw = loader._pending[-1][1].raw
        raws = [(raw, i) for i in range(min(n, raw[0].shape[0]))]
    else:
        raws = ((raw, 0) for raw in _raws(of, n, epoch))  # type: ignore[assignment]
    for place, (raw, row) in enumerate(raws):
        image, label, sample, marks = _parts(of, raw, row)
        if label is None and sample is None and not loader._given.fill and not loader._sampled:
            sample = json.loads(loader._engine.drawn(None, place, epoch))["sample"]
        yield _upright(loader, image), _caption(loader, label, sample), marks


# ---------------------------------------------------------------- pixels


def _upright(loader: Any, image: Array) -> Array:
    """The image as rows x columns x channels."""
    image = np.asarray(image)
    if image.ndim == 2:
        return image[:, :, None]
    first = image.ndim == 3 and image.shape[0] in (1, 3)
    if not loader._given.fill and not loader._transform.functions:
        first = first and loader._arguments["layout"] == "NCHW"
    if image.ndim != 3 or image.shape[0 if first else 2] not in (1, 3):
        raise usage(f"show() needs images with 1 or 3 channels, but the rows have the shape {image.shape}")
    return np.moveaxis(image, 0, -1) if first else image


def _normalization(loader: Any) -> tuple[Array, Array] | None:
    """Mean and standard deviation of Normalize, in the ops or in a transform that runs in Python."""
    found = NORMALIZE.search(loader._engine.explain())
    if found:
        return tuple(np.array([float(v) for v in text.strip("()").split(",")]) for text in found.groups())  # type: ignore[return-value]
    for caller in loader._callers():
        steps = getattr(caller.function, "transforms", [caller.function])
        for step in steps if isinstance(steps, list) else []:
            if type(step).__name__ == "Normalize" and is_known(step):
                return np.array(step.mean, float), np.array(step.std, float)
    return None


def _bytes(loader: Any, images: Array) -> Array:
    """Images of any dtype as uint8."""
    if images.dtype == np.uint8:
        return images
    values = images.astype(np.float64)
    normalization = _normalization(loader)
    low, high = values.min(initial=0.0), values.max(initial=1.0)
    if normalization:
        values = values * normalization[1] + normalization[0]
    elif low < 0 or high > 255:
        values = (values - low) / (high - low)  # unknown range: use all of it
    elif high > 1:
        values = values / 255
    colours: Array = np.rint(values.clip(0, 1) * 255).astype(np.uint8)
    return colours


def _page(of: _Rows, rows: list[Row], epoch: int, columns: int) -> tuple[bytes, int, int]:
    loader = of.loader
    if len({image.shape for image, *_ in rows}) != 1:
        sizes = ", ".join(str(image.shape[:2]) for image, *_ in rows[:4])
        raise usage(f"show() needs images of one size, but they have {sizes}; end the ops with CenterCrop(224)")
    images = np.ascontiguousarray(_bytes(loader, np.stack([image for image, *_ in rows])))
    _, height, width, channels = images.shape
    source, classes = loader.dataset, len(loader.classes)
    title = os.fspath(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    samples = "" if isinstance(loader._given.fill, IterableFill) else counted(loader._engine.count(), "sample")
    words = [
        samples + (f", {counted(classes, 'class')}" if classes else ""),
        f"epoch {epoch}",
        f"seed {loader._options['seed']}",
    ]
    under = "  \u00b7  ".join(word for word in [*words, loader._transform.text] if word)
    title, under, *captions = (t.encode(errors="replace").decode() for t in (title, under, *(c for _, c, _ in rows)))
    marks = [m for *_, m in rows] if any(any(m) for *_, m in rows) else []
    names = [str(c).encode(errors="replace").decode() for c in loader.classes]
    return _stoker.sheet(images, width, height, channels, columns, title, under, captions, marks, *of.sizes(), names)


def _in_notebook() -> bool:
    """Whether a notebook shows the value of an expression as an image."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def sheet(loader: Any, path: str | os.PathLike[str] | None, n: int, epoch: int, columns: int | None) -> Sheet:
    """Implements Loader.show()."""
    n = whole("n", n, 1, 1000)
    across = whole("columns", columns, 1, 100) if columns is not None else min(n, 8, max(4, round(n**0.5)))
    of = _Rows.of(loader)
    try:
        rows = list(_rows(of, n, epoch))
        if not rows:
            raise usage("show(): there is no image to show")
        png, width, height = _page(of, rows, epoch, min(across, len(rows)))
    finally:
        of.close()
    result = Sheet(png, [caption for _, caption, _ in rows], width, height)
    if path is None and not _in_notebook():
        handle, path = tempfile.mkstemp(".png", "stoker-sheet-")
        os.close(handle)
    if path is not None:
        result.save(path)
    return result
