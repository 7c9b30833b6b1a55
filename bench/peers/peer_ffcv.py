# SPDX-License-Identifier: Apache-2.0
"""FFCV, which reads files of its own: images of at most 500 pixels, as its ImageNet recipe makes them.

--mode jpg   re-encoded with quality 90
--mode raw   as pixels

Batches are NCHW by shape and channels-last in memory: FFCV's own step to plain NCHW doubles the work on raw pixels.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
import protocol
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter


class Photos:
    def __init__(self, samples: list[tuple[str, int]]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        path, label = self.samples[i]
        return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB), label


def write_pack(samples: list[tuple[str, int]], file: Path, mode: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    image = RGBImageField(write_mode=mode, max_resolution=500, jpeg_quality=90)
    DatasetWriter(str(file), {"image": image, "label": IntField()}, num_workers=2).from_indexed_dataset(Photos(samples))


def pack_of(o: argparse.Namespace) -> Path:
    return Path(o.work) / f"photos-{o.mode}.beton"


def prepare(o: argparse.Namespace) -> None:
    write_pack(protocol.list_samples(o.folder), pack_of(o), o.mode)


def finish() -> list:
    mean, std = np.array(protocol.MEAN_LEVELS), np.array(protocol.STD_LEVELS)
    return [NormalizeImage(mean, std, np.float32), ToTensor(), ToTorchImage(channels_last=True)]


def loader_of(o: argparse.Namespace, file: Path, order: OrderOption, image: list, drop_last: bool) -> Loader:
    return Loader(
        str(file),
        batch_size=protocol.BATCH,
        num_workers=o.threads,
        order=order,
        os_cache=True,
        drop_last=drop_last,
        pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
    )


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    crop = RandomResizedCropRGBImageDecoder((protocol.SIZE, protocol.SIZE))
    pipeline = [crop, RandomHorizontalFlip(), *finish()]
    loader = loader_of(o, pack_of(o), OrderOption.RANDOM, pipeline, drop_last=True)
    return lambda: (len(images) for images, _ in loader)


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    file = Path(o.pixels).with_suffix(f".{o.mode}.beton")
    write_pack([(path, 0) for path in paths], file, o.mode)
    pipeline = [CenterCropRGBImageDecoder((protocol.SIZE, protocol.SIZE), ratio=1), *finish()]
    loader = loader_of(o, file, OrderOption.SEQUENTIAL, pipeline, drop_last=False)
    return np.concatenate([np.array(images) for images, _ in loader])


if __name__ == "__main__":
    protocol.main(["ffcv", "torch", "opencv-python-headless"], open_loader, pixels, prepare)
