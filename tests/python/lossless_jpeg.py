# SPDX-License-Identifier: Apache-2.0
"""A small encoder of lossless JPEG (ITU T.81, annex H), which Pillow can read but not write.

    encode(pixels, predictor=4, shift=1, restart=2, sampling=[(2, 2), (1, 1), (1, 1)], apart=True)

Differences are coded in 17 categories of five bits each, so that the Huffman table is always the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

CATEGORIES = 17
CODE_BITS = 5


def _segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def _predicted(plane: np.ndarray, predictor: int, restart: int, middle: int) -> np.ndarray:
    """What each sample is predicted to be."""
    plane = plane.astype(np.int64)
    out = np.empty_like(plane)
    for y in range(plane.shape[0]):
        fresh = y == 0 or (restart and y % restart == 0)
        left = np.concatenate([[0], plane[y, :-1]])
        if fresh:
            out[y] = left
            out[y, 0] = middle
            continue
        above = plane[y - 1]
        corner = np.concatenate([[0], above[:-1]])
        out[y] = {
            1: left,
            2: above,
            3: corner,
            4: left + above - corner,
            5: left + ((above - corner) >> 1),
            6: above + ((left - corner) >> 1),
            7: (left + above) >> 1,
        }[predictor]
        out[y, 0] = above[0]
    return out


class _Bits:
    def __init__(self) -> None:
        self.text: list[str] = []

    def difference(self, value: int) -> None:
        value = (value + 32768) % 65536 - 32768
        size = 16 if value == -32768 else abs(value).bit_length()
        self.text.append(f"{size:0{CODE_BITS}b}")
        if 0 < size < 16:
            self.text.append(f"{value if value > 0 else value + (1 << size) - 1:0{size}b}")

    def take(self) -> bytes:
        text = "".join(self.text)
        self.text = []
        text += "1" * (-len(text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\x00")


def _scan(differences: list[np.ndarray], factors: list[tuple[int, int]], restart: int) -> bytes:
    """One scan; a component by itself is coded row by row, several in MCUs."""
    if len(differences) == 1:
        factors = [(1, 1)]
    rows = max(-(-d.shape[0] // v) for d, (_, v) in zip(differences, factors, strict=True))
    columns = max(-(-d.shape[1] // h) for d, (h, _) in zip(differences, factors, strict=True))
    out, bits = b"", _Bits()
    for row in range(rows):
        if restart and row > 0 and row % restart == 0:
            out += bits.take() + bytes([0xFF, 0xD0 + (row // restart - 1) % 8])
        for column in range(columns):
            for d, (h, v) in zip(differences, factors, strict=True):
                for y in range(row * v, row * v + v):
                    for x in range(column * h, column * h + h):
                        inside = y < d.shape[0] and x < d.shape[1]
                        bits.difference(int(d[y, x]) if inside else 0)
    return out + bits.take()


def encode(
    pixels: np.ndarray,
    predictor: int = 1,
    shift: int = 0,
    restart: int = 0,
    sampling: Sequence[tuple[int, int]] | None = None,
    apart: bool = False,
    ids: bytes = b"RGBK",
    before: bytes = b"",
) -> bytes:
    """Of uint8 rows x columns x components; `restart` counts rows of MCUs, `before` goes in front of the frame."""
    height, width, n = pixels.shape
    factors = list(sampling or [(1, 1)] * n)
    most_h, most_v = max(h for h, _ in factors), max(v for _, v in factors)
    differences = []
    for i, (h, v) in enumerate(factors):
        plane = pixels[:: most_v // v, :: most_h // h, i].astype(np.int64) >> shift
        rows = restart * (1 if apart or n == 1 else v)
        differences.append(plane - _predicted(plane, predictor, rows, 1 << (7 - shift)))
    frame = struct.pack(">BHHB", 8, height, width, n)
    frame += b"".join(bytes([ids[i], h << 4 | v, 0]) for i, (h, v) in enumerate(factors))
    counts = bytes([CATEGORIES if length == CODE_BITS else 0 for length in range(1, 17)])
    out = b"\xff\xd8" + before + _segment(0xC3, frame) + _segment(0xC4, b"\0" + counts + bytes(range(CATEGORIES)))
    for scan in [[i] for i in range(n)] if apart else [list(range(n))]:
        if restart:
            columns = differences[scan[0]].shape[1] if len(scan) == 1 else -(-width // most_h)
            out += _segment(0xDD, struct.pack(">H", restart * columns))
        head = bytes([len(scan)]) + b"".join(bytes([ids[i], 0]) for i in scan) + bytes([predictor, 0, shift])
        out += _segment(0xDA, head) + _scan([differences[i] for i in scan], [factors[i] for i in scan], restart)
    return out + b"\xff\xd9"
