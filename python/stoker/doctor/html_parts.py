# SPDX-License-Identifier: Apache-2.0
"""Pieces of the HTML report: tags that escape what they contain, charts as SVG, images as data.

Shapes are SVG that stretches to the width of the page; words beside them are HTML, so that they keep their size on a
phone. Every chart has a text alternative.
"""

from __future__ import annotations

import base64
import html
import math
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

# Characters that a file name may contain and that would reorder or break the text around them.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
VOID = ("meta", "img", "rect", "line", "path", "br")
Point = tuple[float, float]


class Html(str):
    """Text that is markup already."""


def escaped(text: object) -> Html:
    """
    >>> escaped("<a.jpg>\\u202e")
    '&lt;a.jpg&gt;\\ufffd'
    """
    return text if isinstance(text, Html) else Html(html.escape(HIDDEN.sub("\ufffd", str(text))))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; None and False attributes are left out, `class_` is class, and `aria_label` is aria-label.

    >>> tag("a", "1 < 2", href='"')
    '<a href="&quot;">1 &lt; 2</a>'
    """
    words = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{words}>") if name in ("meta", "img", "br") else Html(f"<{name}{words}/>")
    return Html(f"<{name}{words}>{''.join(escaped(child) for child in children)}</{name}>")


def joined(*parts: object) -> Html:
    return Html("".join(escaped(part) for part in parts))


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], class_: str = "") -> Html:
    """The first column names the row, the others are numbers. A row may have a class: a dictionary as its last cell."""
    lines = []
    for row in rows:
        more = row[-1] if isinstance(row[-1], dict) else {}
        cells = [cell for cell in row if not isinstance(cell, dict)]
        first, *rest = cells
        lines.append(tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest), **more))
    head = tag("tr", *(tag("th", word, scope="col") for word in heads))
    inside = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *lines), class_=class_ or None)
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def bar(share: float, kind: str, start: float = 0.0) -> Html:
    """A bar of a share of the width; the number is beside it as text, so screen readers skip the bar."""
    left, width = (100 * min(1.0, max(0.0, x)) for x in (start, share))
    style = f"margin-left:{left:.2f}%;width:{max(width, 0.4):.2f}%"
    return tag("span", tag("span", class_=f"fill {kind}", style=style), class_="bar", aria_hidden="true")


def legend(parts: Sequence[tuple[str, str]]) -> Html:
    """Colours and their words: (kind, words)."""
    return tag(
        "ul",
        *(tag("li", tag("span", class_=f"dot {kind}", aria_hidden="true"), words) for kind, words in parts),
        class_="legend",
    )


def strip(pieces: Sequence[tuple[float, float, str]], words: str) -> Html:
    """A band of time from 0 to 1: (start, width, kind)."""
    shapes = [
        tag("rect", x=f"{1000 * x:.2f}", y="0", width=f"{max(1000 * w, 0.01):.2f}", height="20", class_=kind)
        for x, w, kind in pieces
    ]
    return tag("svg", *shapes, viewBox="0 0 1000 20", preserveAspectRatio="none", role="img", aria_label=words)


def nice_ticks(most: float, count: int = 4, least: float = 0.0) -> list[float]:
    """Round numbers from 0 or below `least` to at least `most`.

    >>> nice_ticks(9.3), nice_ticks(0.0, least=-9.3)
    ([0.0, 2.5, 5.0, 7.5, 10.0], [-10.0, -7.5, -5.0, -2.5, 0.0])
    """
    if not most > least or not math.isfinite(most - least):
        return [0.0, 1.0]
    rough = (most - least) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * 0.999)
    first, last = math.floor(least / step * 0.999), math.ceil(most / step * 0.999)
    return [round(i * step, 12) for i in range(first, last + 1)]


def axes(shapes: Sequence[Html], y: list[tuple[float, str]], x: list[tuple[float, str]], words: str) -> Html:
    """Shapes in a square of 1000 x 1000, stretched; ticks are (place from 0 to 1, text)."""
    grid = [
        tag("line", x1="0", x2="1000", y1=f"{1000 - 1000 * at:.1f}", y2=f"{1000 - 1000 * at:.1f}", class_="grid")
        for at, _ in y
    ]
    chart = tag(
        "svg", *grid, *shapes, viewBox="0 0 1000 1000", preserveAspectRatio="none", role="img", aria_label=words
    )
    left = [tag("span", text, style=f"bottom:{100 * at:.2f}%") for at, text in y]
    below = [tag("span", text, style=f"left:{100 * at:.2f}%") for at, text in x]
    return tag(
        "div",
        tag("div", *left, class_="y", aria_hidden="true"),
        tag("div", chart, class_="area"),
        tag("div", *below, class_="x", aria_hidden="true"),
        class_="plot",
    )


def lines(
    series: Sequence[tuple[str, Sequence[Point]]], y_text: Callable[[float], str], x_unit: str, words: str
) -> Html:
    """Curves over time or steps: (kind, points). The axis begins at 0, or below the smallest negative value."""
    points = [point for _, curve in series for point in curve]
    y = nice_ticks(max(0.0, *(p[1] for p in points)), least=min(0.0, *(p[1] for p in points)))
    x, height = nice_ticks(max(p[0] for p in points), 5), y[-1] - y[0]
    end = max(p[0] for p in points) or 1.0
    shapes = []
    for kind, curve in series:
        place = [(1000 * px / end, 1000 - 1000 * (py - y[0]) / height) for px, py in curve]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in place)
        under = f"M {place[0][0]:.1f},1000 L {path} L {place[-1][0]:.1f},1000 Z"
        shapes += [tag("path", d=under, class_=f"under {kind}"), tag("path", d=f"M {path}", class_=f"curve {kind}")]
    ticks = [(value / end, f"{value:g}{x_unit if i == 0 else ''}") for i, value in enumerate(x) if value <= end]
    return axes(shapes, [((value - y[0]) / height, y_text(value)) for value in y], ticks, words)


def png(pixels: Any) -> bytes:
    """An array of rows x columns x 3 bytes as a PNG file."""
    height, width, _ = pixels.shape
    raw = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(raw, 9))]
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, data in [*chunks, (b"IEND", b"")]:
        parts.append(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
    return b"".join(parts)


def thumbnail(path: str, side: int) -> str | None:
    """An image file as a small image in a data: address; None if it cannot be decoded."""
    from .. import Loader

    try:
        ops = f"Resize({side}) | CenterCrop({side})"
        with Loader(path, ops, dtype="uint8", layout="NHWC", output="numpy", threads=1, fidelity="draft") as loader:
            file = png(next(iter(loader))[0][0])
    except Exception:  # it may be anything that the script has read
        return None
    return "data:image/png;base64," + base64.b64encode(file).decode()
