# SPDX-License-Identifier: Apache-2.0
# expects: few-workers
"""A tf.data pipeline that makes one sample after the other, and none ahead of time."""

import numpy as np
import tensorflow as tf
from meter import FIXED, meter

AUTO = tf.data.AUTOTUNE


def work(i):
    """On one CPU; NumPy releases the GIL."""
    return np.sort(np.random.default_rng(i).random(500_000, np.float32))[:1024]


def sample(i):
    values = tf.numpy_function(work, [i], tf.float32)
    values.set_shape((1024,))
    return values, i % 8


if __name__ == "__main__":
    data = tf.data.Dataset.range(4096).shuffle(4096).map(sample, num_parallel_calls=AUTO if FIXED else None).batch(32)
    data = data.prefetch(AUTO) if FIXED else data
    model = tf.keras.Sequential([tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(8)])
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
        return loss

    while True:
        for x, y in data:
            step(x, y)
            meter.count(len(y))
