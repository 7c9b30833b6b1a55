# SPDX-License-Identifier: Apache-2.0
"""tf.data.TFRecordDataset: Examples parsed, JPEG decoded, resized, as TensorFlow's own recipes have it.

The files are TensorFlow's, too: image/encoded and image/class/label.
"""

import argparse
from pathlib import Path

import numpy as np
import peer_tf
import protocol
import tensorflow as tf

SHARDS = 4


def example(path: str, label: int) -> bytes:
    features = {
        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[Path(path).read_bytes()])),
        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def prepare(o: argparse.Namespace) -> None:
    samples = protocol.list_samples(o.folder)
    for s in range(SHARDS):
        with tf.io.TFRecordWriter(f"{o.work}/photos-{s:02}.tfrecord") as file:
            for path, label in samples[s::SHARDS]:
                file.write(example(path, label))


def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    found = tf.io.parse_single_example(record, features)
    data = found["image/encoded"]
    return peer_tf.finish(data, peer_tf.draw(data), antialias=False, flip=True), found["image/class/label"]


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    files = sorted(map(str, Path(o.work).glob("*.tfrecord")))
    data = tf.data.TFRecordDataset(files, num_parallel_reads=o.threads).shuffle(1000)
    return protocol.epochs_of(peer_tf.endless(data, parse, o.threads), len(protocol.list_samples(o.folder)))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    raise protocol.Skip("its pixels are those of tf.data")


if __name__ == "__main__":
    protocol.main(["tensorflow-cpu"], open_loader, pixels, prepare)
