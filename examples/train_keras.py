# SPDX-License-Identifier: Apache-2.0
"""Train a small network with Keras, with any backend, on a folder of class folders; a few seconds on two cores.

python examples/train_keras.py [FOLDER]         without a folder, `stoker synth` makes one
"""

import argparse
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import keras
import stoker
from keras import layers

EPOCHS, BATCH, SIDE = 4, 32, 64


def synthetic(folder: Path) -> Path:
    """Make 1,200 photo-like images in 4 classes."""
    command = Path(sysconfig.get_path("scripts")) / "stoker"  # installed with the wheel
    subprocess.run([command, "synth", folder, "--samples", "1200", "--classes", "4", "--size", "96"], check=True)
    return folder


def network(classes: int) -> keras.Model:
    stack: list[layers.Layer] = [keras.Input((SIDE, SIDE, 3))]
    for filters in (16, 32, 64):
        stack += [layers.Conv2D(filters, 3, strides=2, padding="same")]
        stack += [layers.BatchNormalization(momentum=0.8), layers.ReLU()]
    return keras.Sequential([*stack, layers.GlobalAveragePooling2D(), layers.Dense(classes)])


class Report(keras.callbacks.Callback):
    """Prints a line per epoch, with the time waited for data. It could also save `loader.state_dict()`."""

    def __init__(self, loader: stoker.Loader) -> None:
        super().__init__()
        self.loader = loader

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        stats = self.loader.stats()
        print(
            f"epoch {epoch}: loss {logs['loss']:.3f}, accuracy {logs['val_accuracy']:.2f}, "
            f"waited {stats.waited_s:.2f} s of {stats.seconds:.1f} s for data"
        )


def train(folder: Path) -> list[float]:
    keras.utils.set_random_seed(0)
    learn, check = stoker.Source(folder).split(0.85, by="class")
    ops = f"RandomResizedCrop({SIDE}, scale=(0.5, 1)) | RandomHorizontalFlip | Normalize"
    train = stoker.Loader(learn, ops, batch_size=BATCH, shuffle=True, drop_last=True, layout="NHWC")
    val = stoker.Loader(check, f"Resize({SIDE + 8}) | CenterCrop({SIDE}) | Normalize", batch_size=BATCH, layout="NHWC")
    model = network(len(train.classes))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(3e-3), loss, metrics=["accuracy"])
    history = model.fit(
        train.as_keras(),
        validation_data=val.as_keras(),
        epochs=EPOCHS,
        shuffle=False,  # the loader shuffles; without this, Keras warns that it cannot
        callbacks=[Report(train)],
        verbose=0,
    )
    losses: list[float] = history.history["loss"]
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
