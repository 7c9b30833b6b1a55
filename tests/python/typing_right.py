# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""Programs that type checkers must accept, with the types that they must find. Not run; test_typing.py checks them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import stoker
import torch
from numpy.typing import NDArray
from stoker import DataLoader
from torch.utils import data


def tensors() -> torch.Tensor:
    ops = [stoker.RandomResizedCrop(224, interpolation="bicubic"), stoker.Normalize("clip")]
    train = stoker.Loader("train/", ops, batch_size=64, shuffle=True, output="torch", layout="channels_last")
    assert_type(train, stoker.Loader[stoker.Batch[torch.Tensor]])
    for images, labels in train:
        assert_type(images, torch.Tensor)
        assert_type(labels, torch.Tensor)
    batch = next(iter(train))
    assert_type(batch.image, torch.Tensor)
    assert_type(train.state_dict(), dict[str, Any])
    train.load_state_dict(train.state_dict())
    with train as same:
        assert_type(same, stoker.Loader[stoker.Batch[torch.Tensor]])
    return batch.image + train.peek().label


def arrays(x: NDArray[np.float32], folder: Path, weights: list[float]) -> float:
    loader = stoker.Loader((x, np.arange(len(x))), output="numpy", batch_size=8, weights=weights, dtype=np.float16)
    assert_type(next(loader.forever()), stoker.Batch[NDArray[Any]])
    stoker.Loader(folder, "CenterCrop(8)", dtype=torch.bfloat16, on_error="skip", cache="auto", rank="slurm")
    return float(loader.load_all().label.sum())


def noisy(image: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    return image + rng.random(image.shape, dtype=np.float32)


def other_batches(folder: os.PathLike[str], as_dict: bool) -> None:
    named = stoker.Loader(folder, "CenterCrop(8)", as_dict=True)
    assert_type(named.peek()["image"], Any)
    chosen = stoker.Loader(folder, ["CenterCrop(8)", noisy], fields=("image", "path"), output="numpy")
    assert_type(chosen.peek().path, list[str])
    made = stoker.Loader(folder, collate_fn=len)
    assert_type(iter(made), Iterator[int])
    changed = stoker.Loader(folder, batch_fn=str, as_dict=True)
    assert_type(changed.get(3), str)
    either = stoker.Loader(folder, as_dict=as_dict)
    for batch in either:
        print(batch)


def train(loader: stoker.Loader) -> None:
    """Any loader, without its parameter."""
    for images, labels in loader:
        print(images.shape, labels.shape)
    print(loader.stats().waited, loader.explain(), loader.classes[0], len(loader), loader.as_keras())


class Pairs(data.Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(3), index


def drop_in() -> None:
    loader = DataLoader(Pairs(), batch_size=4, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
    assert_type(loader, DataLoader[tuple[torch.Tensor, int]])
    torch_loader: data.DataLoader[tuple[torch.Tensor, int]] = loader
    DataLoader([1, 2, 3], on_error="skip", cache="bytes", layout="NHWC", memory="2GiB")
    DataLoader(Pairs(), sampler=data.RandomSampler(Pairs()), generator=torch.Generator())
    print(torch_loader, stoker.compare(loader).native)


def sources() -> None:
    source = stoker.Source("a/", "b.csv", fields={"image": "file", "label": "breed:class"})
    train_part, val_part = source.split(0.9, by="class")
    both = train_part + val_part
    print(len(both), both.classes, both.labels.sum(), source.kfold(5)[0][1], source.select(["cat", 3]).take(5))
    stoker.Loader(stoker.mix({source: 1.0, "c/": 2}), steps_per_epoch=100)
    packed = stoker.pack(source, "out", "Resize(256)", to="tar", as_="jpeg", quality=90, on_error="skip")
    assert_type(packed, stoker.Packed)
    assert_type(stoker.ls("out").formats, dict[str, int])
    assert_type(stoker.verify("out", memory="1GiB"), list[stoker.DataError])
