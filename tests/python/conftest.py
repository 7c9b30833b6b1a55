# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the installed package: small datasets of generated images."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

os.environ["STOKER_CACHE_DIR"] = "off"
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in what runs in the background

collect_ignore = ["test_pillow.py", "stk.py"]  # a program of its own, for the library as built

stoker = pytest.importorskip("stoker", reason="the package is not installed")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path: Path, pixels: np.ndarray) -> None:
    """8 bits, grey or in colours, without filters."""
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


def make_photos(
    root: Path, n: int, classes: tuple[str, ...] = ("cat", "dog"), size: tuple[int, int] = (24, 32)
) -> Path:
    """n images of each class; image i of class c is a ramp that encodes i and c."""
    ramp = np.arange(size[0] * size[1], dtype=np.int64).reshape(*size, 1)
    for c, name in enumerate(classes):
        for i in range(n):
            pixels = (ramp + np.array([i * 7, c * 50, i * 13])) % 256
            write_png(root / name / f"{i:02}.png", pixels.astype(np.uint8))
    return root


def pillow_images(root: Path) -> Iterator[Any]:
    """The images of a folder as Pillow reads them."""
    from PIL import Image

    for path in stoker.Source(root).paths:
        with Image.open(path) as image:
            yield image.convert("RGB")


def import_torchvision() -> ModuleType:
    """Its compiled ops do not load beside a CPU torch of another build; the names are enough for what is used here."""
    for needed in ("torch", "PIL"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    try:
        import torchvision
    except ImportError:
        pytest.skip("torchvision is not installed", allow_module_level=True)
    except (RuntimeError, AttributeError):
        import torch

        for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        lib = torch.library.Library("torchvision", "DEF")
        for op in ("nms", "qnms"):
            lib.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(lib)
        import torchvision
    return torchvision


def run_on_two_ranks(what: str, folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """What the ranks of trainers.py report, by kind and rank.

    Rarely, a child that CPython 3.11 forks for torch's own loader hangs inside os.fork(), because another thread
    held the lock on the list of threads. Ranks that hang print where, and are started once more.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = str(Path(__file__).with_name("trainers.py"))
    for _ in range(2):
        done = subprocess.run([*command, script, what, str(folder)], capture_output=True, text=True, env=environment)
        if "Timeout (" not in done.stderr:
            break
        warnings.warn(f"the ranks hung: {done.stderr[-4000:]}", stacklevel=2)
        for file in folder.glob("*.jsonl"):
            file.unlink()
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {(line["kind"], line["rank"]): line for line in lines}


_kept: list[object] = []  # what is defined lives as long as this


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say where functions run: time that was measured would move them into processes on a busy machine."""
    monkeypatch.setattr(stoker._processes, "WORTH_S", 1e9)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images in two classes."""
    return make_photos(tmp_path_factory.mktemp("photos"), 6)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    return lambda n, **k: make_photos(tmp_path / "set", n, **k)


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight images of noise, of different sizes, in two classes."""
    root = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(7)
    for i in range(8):
        height, width = [(40, 50), (61, 33), (47, 47), (90, 70)][i % 4]
        write_png(root / "ab"[i // 4] / f"{i}.png", rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    return root
