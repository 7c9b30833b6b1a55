# SPDX-License-Identifier: Apache-2.0
"""The loop that a beginner writes: Pillow and NumPy, one image after the other.

    naive.py photos/                  images/s, and the time of every stage
    naive.py photos/ --take 400 --epochs 3 --json
    naive.py photos/ --serve --size 64 --batch-size 32   feeds examples/train.c, a batch when it asks

The job is RandomResizedCrop, RandomHorizontalFlip and Normalize into float32 batches, drawn as
torchvision draws them. It is what `stoker bench` does by default.
"""

import argparse
import io
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")

Sample = tuple[str, int]


class Stages:
    """Seconds and bytes of every stage."""

    def __init__(self) -> None:
        self.seconds = {"read": 0.0, "decode": 0.0, "transform": 0.0, "batch": 0.0}
        self.bytes = 0
        self.since = 0.0

    def begin(self) -> None:
        self.since = time.perf_counter()

    def end(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self.since
        self.since = now


def list_samples(folder: str) -> tuple[list[Sample], int]:
    """Paths with their class, and the number of classes: a folder is a class."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    samples = []
    for label, name in enumerate(classes):
        for root, _, files in sorted(os.walk(os.path.join(folder, name))):
            samples += [(os.path.join(root, f), label) for f in sorted(files) if f.lower().endswith(SUFFIXES)]
    return samples, len(classes)


def draw_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right, bottom, as torchvision's RandomResizedCrop chooses them."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    x, y = (width - w) // 2, (height - h) // 2
    return x, y, x + w, y + h


def load(path: str, size: int, layout: str, stages: Stages) -> np.ndarray:
    stages.begin()
    with open(path, "rb") as file:
        data = file.read()
    stages.bytes += len(data)
    stages.end("read")
    image = Image.open(io.BytesIO(data)).convert("RGB")
    stages.end("decode")
    image = image.crop(draw_crop(*image.size)).resize((size, size), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = (np.asarray(image, np.float32) / 255 - MEAN) / STD
    if layout == "NCHW":
        pixels = pixels.transpose(2, 0, 1)
    stages.end("transform")
    return pixels


def batches(samples: list[Sample], o: argparse.Namespace, stages: Stages) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One epoch, shuffled."""
    order = random.sample(samples, len(samples))
    for i in range(0, len(order), o.batch_size):
        part = order[i : i + o.batch_size]
        images = [load(path, o.size, o.layout, stages) for path, _ in part]
        stages.begin()
        batch = np.stack(images), np.array([label for _, label in part], np.int64)
        stages.end("batch")
        yield batch


def serve(samples: list[Sample], n_classes: int, o: argparse.Namespace) -> None:
    """Answers every byte on stdin with a batch on stdout, as examples/train.c wants them."""
    o.layout = "NHWC"
    out = sys.stdout.buffer
    out.write(np.int64(n_classes).tobytes())
    out.flush()
    while True:
        epoch = batches(samples, o, Stages())
        more = True
        while more:
            if not os.read(0, 1):
                return
            images, labels = next(epoch, (np.empty(0, np.float32), np.empty(0, np.int64)))
            out.write(np.int64(len(labels)).tobytes() + labels.tobytes())
            out.write(np.ascontiguousarray(images).data)
            out.flush()
            more = len(labels) > 0


def measure(samples: list[Sample], o: argparse.Namespace) -> dict:
    stages = Stages()
    epochs = []
    for epoch in range(o.epochs):
        begun = time.perf_counter()
        n = sum(len(labels) for _, labels in batches(samples, o, stages))
        took = time.perf_counter() - begun
        epochs.append({"epoch": epoch, "images": n, "seconds": took, "images_per_s": n / took})
    return {
        "source": o.folder,
        "samples": len(samples),
        "threads": 1,
        "ops": f"RandomResizedCrop({o.size}) | RandomHorizontalFlip | Normalize",
        "batch_size": o.batch_size,
        "epochs": epochs,
        "stages": {name: {"s": s} for name, s in stages.seconds.items()},
        "read_bytes": stages.bytes,
        "pillow": Image.__version__,
    }


def report(result: dict) -> None:
    for e in result["epochs"]:
        print(f"epoch {e['epoch']}: {e['images']} images in {e['seconds']:.2f} s, {e['images_per_s']:.0f} images/s")
    n = sum(e["images"] for e in result["epochs"])
    for name, stage in result["stages"].items():
        print(f"  {name:10} {1e6 * stage['s'] / n:8.0f} us per image")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--take", type=int, default=0, help="only so many images, spread over the folder")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--layout", choices=["NCHW", "NHWC"], default="NCHW")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true")
    o = parser.parse_args()
    random.seed(o.seed)
    samples, n_classes = list_samples(o.folder)
    if not samples:
        print(f"{o.folder}: no images in class folders", file=sys.stderr)
        return 2
    if o.take:
        samples = samples[:: max(1, len(samples) // o.take)][: o.take]
    if o.serve:
        serve(samples, n_classes, o)
    else:
        result = measure(samples, o)
        print(json.dumps(result)) if o.json else report(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
