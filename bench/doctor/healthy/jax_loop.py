# SPDX-License-Identifier: Apache-2.0
"""JAX on Stoker's Loader."""

import jax
import jax.numpy as jnp
import numpy as np
import stoker

if __name__ == "__main__":
    data = np.random.default_rng(0).random((4096, 1024), np.float32), np.arange(4096) % 8
    weights = [np.random.default_rng(i).normal(0, 0.03, (1024, 1024)).astype(np.float32) for i in range(8)]

    def loss_of(weights, x, y):
        for one in weights:
            x = jax.nn.relu(x @ one)
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(len(y)), y])

    @jax.jit
    def step(weights, x, y):
        gradients = jax.grad(loss_of)(weights, x, y)
        return [one - 0.01 * by for one, by in zip(weights, gradients, strict=True)]

    loader = stoker.Loader(data, batch_size=128, shuffle=True, drop_last=True, output="jax")
    while True:
        for x, y in loader:
            weights = jax.block_until_ready(step(weights, x, y))
