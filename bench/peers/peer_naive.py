# SPDX-License-Identifier: Apache-2.0
"""The loop that a beginner writes, bench/naive.py, in one thread. Its --pixels are the reference of all others."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import protocol
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import naive  # noqa: E402


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    samples, _ = naive.list_samples(o.folder)
    job = argparse.Namespace(batch_size=protocol.BATCH, size=protocol.SIZE, layout="NCHW")

    def epoch() -> Iterator[int]:
        return (len(labels) for _, labels in naive.batches(samples, job, naive.Stages()))

    return epoch


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    out = []
    for path in paths:
        image = Image.open(path).convert("RGB")
        x, y, w, h = protocol.square(*image.size)
        image = image.crop((x, y, x + w, y + h)).resize((protocol.SIZE, protocol.SIZE), Image.Resampling.BILINEAR)
        out.append(((np.asarray(image, np.float32) / 255 - naive.MEAN) / naive.STD).transpose(2, 0, 1))
    return np.stack(out)


if __name__ == "__main__":
    protocol.main(["pillow", "numpy"], open_loader, pixels)
