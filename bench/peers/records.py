# SPDX-License-Identifier: Apache-2.0
"""Makes one file of records without images, by its suffix: records.py FILE RECORDS BYTES TOKENS"""

import io
import os
import sys
import tarfile

import numpy as np


def write_tar(path: str, rows: np.ndarray) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i, row in enumerate(rows):
            about = tarfile.TarInfo(f"{i:07}.bin")
            about.size = len(row)
            tar.addfile(about, io.BytesIO(row.tobytes()))


def write_tfrecord(path: str, rows: np.ndarray) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    with tf.io.TFRecordWriter(path) as file:
        for row in rows:
            feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[row.tobytes()]))
            example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
            file.write(example.SerializeToString())


def main() -> None:
    path, (records, size, tokens) = sys.argv[1], map(int, sys.argv[2:])
    part = f"{path}.part"
    random = np.random.default_rng(0)
    if path.endswith(".bin"):
        random.integers(0, 50_000, tokens, np.uint16).tofile(part)
    else:
        rows = random.integers(0, 256, (records, size), np.uint8)
        if path.endswith(".npy"):
            with open(part, "wb") as file:
                np.save(file, rows)
        else:
            (write_tar if path.endswith(".tar") else write_tfrecord)(part, rows)
    os.rename(part, path)


if __name__ == "__main__":
    main()
