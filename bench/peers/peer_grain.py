# SPDX-License-Identifier: Apache-2.0
"""Grain with Pillow: shuffled and repeated by Grain, a worker process a core that makes whole batches."""

import argparse
from collections.abc import Iterator

import grain
import numpy as np
import protocol
from PIL import Image


def load(path: str, crop_of, flip: bool) -> np.ndarray:
    with open(path, "rb") as file:
        image = Image.open(file).convert("RGB")
    x, y, w, h = crop_of(*image.size)
    image = image.crop((x, y, x + w, y + h)).resize((protocol.SIZE, protocol.SIZE), Image.Resampling.BILINEAR)
    if flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = np.asarray(image)
    out = np.empty((3, protocol.SIZE, protocol.SIZE), np.float32)
    for c in range(3):
        np.take(protocol.LEVELS[c], pixels[:, :, c], out=out[c], mode="clip")
    return out


def augment(sample: tuple[str, int], rng: np.random.Generator) -> tuple[np.ndarray, int]:
    return load(sample[0], protocol.draw_crop, bool(rng.random() < 0.5)), sample[1]


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    samples = protocol.list_samples(o.folder)
    data = grain.MapDataset.source(samples).seed(0).shuffle().repeat().random_map(augment)
    batches = data.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=protocol.BATCH)).batch(
        protocol.BATCH, drop_remainder=True
    )
    workers = grain.multiprocessing.MultiprocessingOptions(num_workers=o.threads, per_worker_buffer_size=3)

    def stream() -> Iterator[int]:
        for images, _ in batches.mp_prefetch(workers):
            yield len(images)

    return protocol.epochs_of(stream(), len(samples))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    return np.stack([load(path, protocol.square, flip=False) for path in paths])


if __name__ == "__main__":
    protocol.main(["grain", "pillow"], open_loader, pixels)
