# SPDX-License-Identifier: Apache-2.0
"""tf.data: decode_and_crop_jpeg, so that only the crop is decoded; order, epochs and threads are tf.data's own.

--mode plain       tf.image.resize as everybody calls it: bilinear, not antialiased
--mode antialias   the same with antialias=True, which is what the other peers do
"""

import argparse
import os
from collections.abc import Callable, Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import protocol  # noqa: E402
import tensorflow as tf  # noqa: E402


def draw(data: tf.Tensor) -> tf.Tensor:
    """A random crop: top, left, height, width."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data),
        tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4]),
        min_object_covered=0.0,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.stack([begin[0], begin[1], size[0], size[1]])


def finish(data: tf.Tensor, crop: tf.Tensor, antialias: bool, flip: bool) -> tf.Tensor:
    image = tf.image.decode_and_crop_jpeg(data, crop, channels=3)
    image = tf.image.resize(image, [protocol.SIZE, protocol.SIZE], antialias=antialias)
    image.set_shape([protocol.SIZE, protocol.SIZE, 3])
    if flip:
        image = tf.image.random_flip_left_right(image)
    scale = tf.constant([1 / s for s in protocol.STD_LEVELS])
    image = image * scale - tf.constant(protocol.MEAN_LEVELS) * scale
    return tf.transpose(image, [2, 0, 1])


def endless(data: tf.data.Dataset, load: Callable, threads: int) -> Iterator[int]:
    """The lengths of batches, epoch after epoch. The dataset is shuffled, and load makes the batches."""
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = threads
    batches = (
        data.repeat()
        .map(load, num_parallel_calls=threads)
        .batch(protocol.BATCH, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
        .with_options(options)
    )
    for images, _ in batches:
        yield len(images)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    samples = protocol.list_samples(o.folder)
    antialias = o.mode == "antialias"

    def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        data = tf.io.read_file(path)
        return finish(data, draw(data), antialias, flip=True), label

    data = tf.data.Dataset.from_tensor_slices(([p for p, _ in samples], [label for _, label in samples]))
    return protocol.epochs_of(endless(data.shuffle(len(samples)), load, o.threads), len(samples))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    out = []
    for path in paths:
        data = tf.io.read_file(path)
        height, width, _ = tf.image.extract_jpeg_shape(data).numpy()
        x, y, w, h = protocol.square(int(width), int(height))
        out.append(finish(data, tf.constant([y, x, h, w]), o.mode == "antialias", flip=False).numpy())
    return np.stack(out)


if __name__ == "__main__":
    protocol.main(["tensorflow-cpu"], open_loader, pixels)
