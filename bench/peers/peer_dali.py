# SPDX-License-Identifier: Apache-2.0
"""DALI's CPU pipeline: only the crop is decoded, the resize is antialiased."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import protocol
from nvidia.dali import fn, pipeline_def, types


def finish(image, mirror):
    image = fn.resize(image, size=(protocol.SIZE, protocol.SIZE), interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(
        image,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=protocol.MEAN_LEVELS,
        std=protocol.STD_LEVELS,
        mirror=mirror,
    )


@pipeline_def(batch_size=protocol.BATCH, device_id=None, prefetch_queue_depth=3)
def training(samples):
    paths, labels = [p for p, _ in samples], [label for _, label in samples]
    data, label = fn.readers.file(files=paths, labels=labels, random_shuffle=True, name="reader")
    image = fn.decoders.image_random_crop(
        data, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10
    )
    return finish(image, fn.random.coin_flip()), label


@pipeline_def(batch_size=1, device_id=None, num_threads=1)
def fixed(feed):
    data, anchor, shape = fn.external_source(source=feed, num_outputs=3, batch=False)
    image = fn.decoders.image_slice(data, anchor, shape, device="cpu", axis_names="WH")
    return finish(image, 0)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    samples = protocol.list_samples(o.folder)
    pipe = training(samples, num_threads=o.threads)
    pipe.build()

    def stream() -> Iterator[int]:
        while True:
            images, _ = pipe.run()
            yield np.asarray(images.as_tensor()).shape[0]  # a view, as a trainer would take it

    return protocol.epochs_of(stream(), len(samples))


def size_of(data: np.ndarray) -> tuple[int, int]:
    import nvidia.dali.types as dali_types
    from nvidia.dali import Pipeline

    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.peek_image_shape(fn.external_source(source=lambda: [data]), dtype=dali_types.INT32))
    height, width = np.asarray(pipe.run()[0].as_tensor())[0][:2]
    return int(width), int(height)


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    def feed():
        for path in paths:
            data = np.frombuffer(Path(path).read_bytes(), np.uint8)
            x, y, w, h = protocol.square(*size_of(data))
            yield data, np.array([x, y], np.int32), np.array([w, h], np.int32)

    pipe = fixed(feed())
    pipe.build()
    return np.concatenate([np.array(pipe.run()[0].as_tensor()) for _ in paths])


if __name__ == "__main__":
    protocol.main(["nvidia-dali-cuda120"], open_loader, pixels)
