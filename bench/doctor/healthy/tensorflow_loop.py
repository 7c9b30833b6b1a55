# SPDX-License-Identifier: Apache-2.0
"""A loop of one's own with TensorFlow."""

import numpy as np
import tensorflow as tf

if __name__ == "__main__":
    data = np.random.default_rng(0).random((4096, 1024), np.float32), np.arange(4096) % 8
    train = tf.data.Dataset.from_tensor_slices(data).shuffle(4096).batch(128).prefetch(2)
    model = tf.keras.Sequential([*(tf.keras.layers.Dense(1024, "relu") for _ in range(8)), tf.keras.layers.Dense(8)])
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
        return loss

    while True:
        for x, y in train:
            step(x, y)
