# SPDX-License-Identifier: Apache-2.0
"""SPDL: FFmpeg in a pipeline of threads. Crop, resize and flip are FFmpeg's filters, drawn for every image."""

import argparse
import math
import random
from collections.abc import Iterator

import numpy as np
import protocol
import spdl.io
from spdl.pipeline import PipelineBuilder

END = f"scale={protocol.SIZE}:{protocol.SIZE}:flags=bilinear,format=rgb24"


def random_filter() -> str:
    """RandomResizedCrop in FFmpeg's words. The size is known to the filter alone, so what is too large is cut off."""
    area = random.uniform(0.08, 1)
    ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
    w, h = f"min(iw\\,sqrt(iw*ih*{area * ratio:.4f}))", f"min(ih\\,sqrt(iw*ih*{area / ratio:.4f}))"
    x, y = f"(iw-ow)*{random.random():.4f}", f"(ih-oh)*{random.random():.4f}"
    flip = "hflip," if random.random() < 0.5 else ""
    return f"crop=w={w}:h={h}:x={x}:y={y},{flip}{END}"


def load(path: str, out: np.ndarray, words: str) -> None:
    frames = spdl.io.decode_packets(spdl.io.demux_image(path), filter_desc=words)
    image = spdl.io.to_numpy(spdl.io.convert_frames(frames))
    for c in range(3):
        np.take(protocol.LEVELS[c], image[:, :, c], out=out[c], mode="clip")


def empty(n: int) -> np.ndarray:
    return np.empty((n, 3, protocol.SIZE, protocol.SIZE), np.float32)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    samples = protocol.list_samples(o.folder)

    def rows() -> Iterator[tuple[str, np.ndarray, int]]:
        for i, path in enumerate(protocol.endless([p for p, _ in samples])):
            if i % protocol.BATCH == 0:
                batch = empty(protocol.BATCH)
            yield path, batch, i % protocol.BATCH

    def work(row: tuple[str, np.ndarray, int]) -> np.ndarray:
        path, batch, i = row
        load(path, batch[i], random_filter())
        return batch

    pipeline = (
        PipelineBuilder()
        .add_source(rows())
        .pipe(work, concurrency=o.threads, output_order="input")
        .aggregate(protocol.BATCH)
        .add_sink(3)
        .build(num_threads=o.threads)
    )
    pipeline.start()
    return protocol.epochs_of((len(batch) for batch in pipeline.get_iterator()), len(samples))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    words = "crop=w=min(iw\\,ih):h=min(iw\\,ih):x=floor((iw-ow)/2):y=floor((ih-oh)/2):exact=1," + END
    out = empty(len(paths))
    for path, row in zip(paths, out, strict=True):
        load(path, row, words)
    return out


if __name__ == "__main__":
    protocol.main(["spdl"], open_loader, pixels)
