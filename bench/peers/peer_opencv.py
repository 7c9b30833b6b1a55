# SPDX-License-Identifier: Apache-2.0
"""OpenCV in a pool of threads, as people write it who have left Python's image libraries behind."""

import argparse
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import cv2
import numpy as np
import protocol

AHEAD = 4  # batches that are under way


def load(path: str, out: np.ndarray, crop_of, flip: bool) -> None:
    image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    x, y, w, h = crop_of(image.shape[1], image.shape[0])
    # INTER_AREA averages when it shrinks, as an antialiased filter does; enlarging, it is bilinear.
    image = cv2.resize(image[y : y + h, x : x + w], (protocol.SIZE, protocol.SIZE), interpolation=cv2.INTER_AREA)
    if flip:
        image = cv2.flip(image, 1)
    for c in range(3):
        cv2.LUT(image[:, :, 2 - c], protocol.LEVELS[c], out[c])


def empty(n: int) -> np.ndarray:
    return np.empty((n, 3, protocol.SIZE, protocol.SIZE), np.float32)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    cv2.setNumThreads(1)
    samples = protocol.list_samples(o.folder)
    paths = protocol.endless([p for p, _ in samples])
    pool = ThreadPoolExecutor(o.threads)
    under_way: deque = deque()

    def begin() -> None:
        batch = empty(protocol.BATCH)
        flips = np.random.randint(0, 2, protocol.BATCH)
        rows = [
            pool.submit(load, path, row, protocol.draw_crop, bool(flip))
            for path, row, flip in zip(islice(paths, protocol.BATCH), batch, flips, strict=True)
        ]
        under_way.append((batch, rows))

    def stream() -> Iterator[int]:
        for _ in range(AHEAD):
            begin()
        while True:
            batch, rows = under_way.popleft()
            for row in rows:
                row.result()
            begin()
            yield len(batch)

    return protocol.epochs_of(stream(), len(samples))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    out = empty(len(paths))
    for path, row in zip(paths, out, strict=True):
        load(path, row, protocol.square, flip=False)
    return out


if __name__ == "__main__":
    protocol.main(["opencv-python-headless"], open_loader, pixels)
