# SPDX-License-Identifier: Apache-2.0
"""A measurement as TensorBoard scalars: a folder per run, a file of events in each.

An event file is a TFRecord file of Event messages. Both formats are small, so TensorFlow is not needed to write them:

    record  = length (8 bytes), crc(length), data, crc(data)
    Event   = 1: wall time (double), 2: step (varint), 3: "brain.Event:2" in the first record, 5: Summary
    Summary = 1: Value, Value = 1: tag, 2: simple_value (float)
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from .facts import PARTS, Measurement, Run, gain_of, items, number, section
from .trace import points

Scalar = tuple[str, int, float, float]  # tag, step, seconds since the start of the run, value


def _crc_table() -> list[int]:
    """Of CRC-32C (Castagnoli), bits reversed."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """The checksum of a TFRecord.

    >>> hex(masked_crc(b"123456789"))
    '0xc78ab0e5'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join([length, struct.pack("<I", masked_crc(length)), data, struct.pack("<I", masked_crc(data))])


def varint(value: int) -> bytes:
    """
    >>> varint(300)
    b'\\xac\\x02'
    """
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def _event(wall_time: float, step: int, rest: bytes) -> bytes:
    return record(b"\x09" + struct.pack("<d", wall_time) + b"\x10" + varint(step) + rest)


def _scalar(wall_time: float, step: int, tag: str, value: float) -> bytes:
    single = ctypes.c_float(value).value  # infinity where struct raises OverflowError
    one = _message(1, tag.encode(errors="replace")) + b"\x15" + struct.pack("<f", single)
    return _event(wall_time, step, _message(5, _message(1, one)))


def scalars(m: Measurement, run: Run) -> Iterator[Scalar]:
    """Every step, every sample of memory and CPU, and one value each for the run as a whole."""
    loss = run.get("loss")
    for step, one in enumerate(items(run, "timeline")):
        parts = {part: number(one, part) for part in PARTS}
        yield "step/all_ms", step, number(one, "t"), sum(parts.values())
        for part, ms in parts.items():
            yield f"step/{part}_ms", step, number(one, "t"), ms
    for step, value in enumerate(loss if isinstance(loss, list) else []):
        if isinstance(value, int | float):
            yield "loss", step, 0.0, float(value)
    for step, (seconds, rss) in enumerate(points(section(run, "memory").get("rss"))):
        yield "machine/memory_mb", step, seconds, rss / 1e6
    for step, (seconds, cpus) in enumerate(points(section(run, "cpu").get("timeline"))):
        yield "machine/cpus", step, seconds, cpus
    yield "run/samples_per_s", 0, 0.0, number(run, "samples_per_s")
    yield "run/wait_share", 0, 0.0, number(run, "wait_share")
    if gain := gain_of(m, run):
        yield "run/gain", 0, 0.0, gain


def write(m: Measurement, folder: str | os.PathLike[str]) -> None:
    """Writes the files. The name of a run becomes the name of a folder."""
    try:
        start = datetime.fromisoformat(str(m.get("started"))).timestamp()
    except ValueError:
        start = 0.0
    for run in items(m, "runs"):
        if run.get("status", "ok") != "ok":
            continue
        place = Path(folder) / re.sub(r"[^\w=.-]", "_", str(run.get("name"))).lstrip(".")
        place.mkdir(parents=True, exist_ok=True)
        version = _event(start, 0, _message(3, b"brain.Event:2"))
        body = (_scalar(start + seconds, step, tag, value) for tag, step, seconds, value in scalars(m, run))
        (place / f"events.out.tfevents.{int(start):010d}.doctor").write_bytes(version + b"".join(body))
