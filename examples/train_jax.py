# SPDX-License-Identifier: Apache-2.0
"""Train a small network with plain JAX on a folder of class folders; a few seconds on two cores.

python examples/train_jax.py [FOLDER]           without a folder, `stoker synth` makes one
"""

import argparse
import subprocess
import sysconfig
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import stoker

EPOCHS, BATCH, SIDE, RATE = 4, 32, 64, 3e-3
CHANNELS = (3, 16, 32, 64)
Parameters = dict[str, jax.Array]


def synthetic(folder: Path) -> Path:
    """Make 1,200 photo-like images in 4 classes."""
    command = Path(sysconfig.get_path("scripts")) / "stoker"  # installed with the wheel
    subprocess.run([command, "synth", folder, "--samples", "1200", "--classes", "4", "--size", "96"], check=True)
    return folder


def network(classes: int) -> Parameters:
    keys = jax.random.split(jax.random.key(0), len(CHANNELS))
    p = {"weight": jax.random.normal(keys[-1], (CHANNELS[-1], classes)) / 8, "bias": jnp.zeros(classes)}
    for i, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:], strict=False)):
        p[f"kernel{i}"] = jax.random.normal(keys[i], (3, 3, before, after)) * (2 / (9 * before)) ** 0.5
        p[f"scale{i}"], p[f"shift{i}"] = jnp.ones(after), jnp.zeros(after)
    return p


def logits(p: Parameters, x: jax.Array) -> jax.Array:
    for i in range(len(CHANNELS) - 1):
        x = jax.lax.conv_general_dilated(x, p[f"kernel{i}"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
        x = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"scale{i}"] + p[f"shift{i}"])
    return x.mean((1, 2)) @ p["weight"] + p["bias"]


def loss_of(p: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(p, images)), labels[:, None], axis=1)
    return -chosen.mean()


@partial(jax.jit, donate_argnums=0)
def step(state: Any, images: jax.Array, labels: jax.Array) -> tuple[Any, jax.Array]:
    """One step of Adam. The state: step count, parameters, means of the gradients and of their squares."""
    n, p, m, v = state
    loss, g = jax.value_and_grad(loss_of)(p, images, labels)
    n += 1
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    rate = RATE * jnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
    p = jax.tree.map(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), p, m, v)
    return (n, p, m, v), loss


@jax.jit
def right(p: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    return (logits(p, images).argmax(1) == labels).sum()


def train(folder: Path) -> list[float]:
    learn, check = stoker.Source(folder).split(0.85, by="class")
    ops = f"RandomResizedCrop({SIDE}, scale=(0.5, 1)) | RandomHorizontalFlip | Normalize"
    here = {"batch_size": BATCH, "layout": "NHWC", "output": "jax"}
    train = stoker.Loader(learn, ops, shuffle=True, drop_last=True, **here)
    val = stoker.Loader(check, f"Resize({SIDE + 8}) | CenterCrop({SIDE}) | Normalize", **here)
    p = network(len(train.classes))
    state = (jnp.zeros(()), p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p))
    losses = []
    for epoch in range(EPOCHS):
        total = jnp.zeros(())
        for images, labels in train:
            state, loss = step(state, images, labels)
            total += loss
        losses.append(float(total) / len(train))
        accuracy = float(sum(right(state[1], *batch) for batch in val)) / len(check)
        stats = train.stats()
        print(
            f"epoch {epoch}: loss {losses[-1]:.3f}, accuracy {accuracy:.2f}, "
            f"waited {stats.waited_s:.2f} s of {stats.seconds:.1f} s for data"
        )
    return losses


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, help="photos in class folders; without it, photos are made")
    folder = arguments.parse_args().folder
    if folder:
        train(folder)
    else:
        with tempfile.TemporaryDirectory() as place:
            train(synthetic(Path(place) / "photos"))
