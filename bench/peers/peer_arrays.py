# SPDX-License-Identifier: Apache-2.0
"""Stoker on what is no photo.

--mode memory   images of 256 x 256 as arrays in memory; --prepare makes them of photos, as npy and as PNG files
--mode rows     FOLDER is a source of rows, which become float32
"""

import argparse
from pathlib import Path

import numpy as np
import peer_stoker
import protocol
import stoker
from PIL import Image

SIDE = 256


def prepare(o: argparse.Namespace) -> None:
    ops = f"Resize({SIDE}) | CenterCrop({SIDE})"
    loader = stoker.Loader(o.folder, ops, batch_size=protocol.BATCH, dtype="uint8", layout="NHWC", output="numpy")
    batches = list(loader)
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    np.save(f"{o.work}/images.npy", images)
    np.save(f"{o.work}/labels.npy", labels)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        file = Path(o.work, "png", f"{label:04}", f"{i:07}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file, compress_level=1)


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    common = {"batch_size": protocol.BATCH, "shuffle": True, "drop_last": True, "output": "numpy"}
    if o.mode == "rows":
        rows = stoker.Loader(o.folder, fields={"x": "data:float32"}, **common)
        return lambda: (len(batch[0]) for batch in rows)
    arrays = {"image": np.load(f"{o.work}/images.npy"), "label": np.load(f"{o.work}/labels.npy")}
    loader = stoker.Loader(arrays, peer_stoker.OPS.format(protocol.SIZE), **common)
    return lambda: (len(images) for images, _ in loader)


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    raise protocol.Skip("it reads no photos")


if __name__ == "__main__":
    protocol.main(["stoker", "numpy"], open_loader, pixels, prepare)
