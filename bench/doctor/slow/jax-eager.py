# SPDX-License-Identifier: Apache-2.0
# expects: model
"""A step of JAX that is not compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import stoker
from meter import FIXED, meter


def loss_of(weights, x, y):
    for one in weights:
        x = jax.nn.gelu(x @ one)
    return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(len(y)), y])


def step(weights, x, y):
    gradients = jax.grad(loss_of)(weights, x, y)
    return [one - 0.01 * by for one, by in zip(weights, gradients, strict=True)]


if __name__ == "__main__":
    data = np.random.default_rng(0).random((4096, 256), np.float32), np.arange(4096) % 8
    weights = [np.random.default_rng(i).normal(0, 0.1, (256, 256)).astype(np.float32) for i in range(16)]
    step = jax.jit(step) if FIXED else step
    loader = stoker.Loader(data, batch_size=64, shuffle=True, drop_last=True, output="jax")
    while True:
        for x, y in loader:
            weights = jax.block_until_ready(step(weights, x, y))
            meter.count(len(y))
