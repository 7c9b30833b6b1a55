# SPDX-License-Identifier: Apache-2.0
"""Keras on tf.data."""

import numpy as np
import tensorflow as tf

if __name__ == "__main__":
    data = np.random.default_rng(0).random((4096, 1024), np.float32), np.arange(4096) % 8
    layers = [tf.keras.layers.Dense(1024, "relu") for _ in range(8)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(8)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    train = tf.data.Dataset.from_tensor_slices(data).shuffle(4096).batch(128).prefetch(2)
    model.fit(train, epochs=1_000_000, verbose=0)
