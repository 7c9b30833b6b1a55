# SPDX-License-Identifier: Apache-2.0
# expects: shapes
"""Sequences of many lengths: JAX compiles a step for each of them."""

import jax
import jax.numpy as jnp
import numpy as np
import stoker
from meter import FIXED, meter


def batches():
    draws = np.random.default_rng(0)
    while True:
        length = 512 if FIXED else int(draws.integers(64, 512))
        yield draws.random((32, length, 64), np.float32), draws.integers(0, 8, 32)


def loss_of(weights, x, y):
    for one in weights:
        x = jax.nn.relu(x @ one)
    return -jnp.mean(jax.nn.log_softmax(x.mean(1))[jnp.arange(len(y)), y])


@jax.jit
def step(weights, x, y):
    gradients = jax.grad(loss_of)(weights, x, y)
    return [one - 0.01 * by for one, by in zip(weights, gradients, strict=True)]


if __name__ == "__main__":
    weights = [np.random.default_rng(i).normal(0, 0.1, (64, 64)).astype(np.float32) for i in range(4)]
    for x, y in stoker.watch(batches()):
        weights = jax.block_until_ready(step(weights, x, y))
        meter.count(len(y))
