# SPDX-License-Identifier: Apache-2.0
"""What the peers on top of torch share: torchvision that imports with any torch, readers, transforms."""

import importlib.util
import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import protocol
import torch

# torchvision asks for two operators when it is imported. Beside a torch for the CPU its compiled part may not load;
# then the names alone are enough, as nothing here calls them.
try:
    torch.ops.load_library(str(next(Path(importlib.util.find_spec("torchvision").origin).parent.glob("_C*.so"))))
except (OSError, StopIteration):
    names = torch.library.Library("torchvision", "DEF")
    names.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    names.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from PIL import Image  # noqa: E402
from torchvision import transforms  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

FIXED = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)}  # the largest square in the middle


def from_pil(crop: dict[str, Any], flip: float) -> Callable:
    """Transforms on a PIL image, as the ImageNet example of torch has them."""
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(protocol.SIZE, **crop),
            transforms.RandomHorizontalFlip(flip),
            transforms.ToTensor(),
            transforms.Normalize(protocol.MEAN, protocol.STD),
        ]
    )


def from_tensor(crop: dict[str, Any], flip: float) -> Callable:
    """transforms.v2 on uint8 tensors, whose resize has vector kernels."""
    return v2.Compose(
        [
            v2.RandomResizedCrop(protocol.SIZE, antialias=True, **crop),
            v2.RandomHorizontalFlip(flip),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(protocol.MEAN, protocol.STD),
        ]
    )


def read_pil(path: str) -> Image.Image:
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def read_tensor(path: str) -> torch.Tensor:
    return v2.functional.pil_to_tensor(read_pil(path))


def read_tensor_directly(path: str) -> torch.Tensor:
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


def best_reader() -> Callable[[str], torch.Tensor]:
    """torchvision's own JPEG decoder where its compiled part loads, else Pillow's."""
    from torchvision.io import decode_jpeg, encode_jpeg

    try:
        decode_jpeg(encode_jpeg(torch.zeros(3, 8, 8, dtype=torch.uint8)))
    except (RuntimeError, AttributeError, OSError):
        return read_tensor
    return read_tensor_directly


def decode_bytes(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def endless(dataset: torch.utils.data.Dataset, threads: int) -> Iterator:
    """Batches of a DataLoader as its guide has it, epoch after epoch, with a worker a core that stays."""
    loader = torch.utils.data.DataLoader(
        dataset,
        protocol.BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=threads,
        persistent_workers=True,
        prefetch_factor=4,
    )
    return itertools.chain.from_iterable(itertools.repeat(loader))


def lengths(batches: Iterator) -> Iterator[int]:
    for images, _ in batches:
        yield len(images)
