# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tar shards, PIL images, torchvision's transforms, a worker a core."""

import argparse
from pathlib import Path

import numpy as np
import protocol
import torch
import torch_parts
import webdataset

SHARDS = 8  # a multiple of the workers, so that none has more to do


def prepare(o: argparse.Namespace) -> None:
    samples = protocol.list_samples(o.folder)
    Path(o.work).mkdir(parents=True, exist_ok=True)
    for s in range(SHARDS):
        with webdataset.TarWriter(f"{o.work}/photos-{s:02}.tar") as shard:
            for i, (path, label) in list(enumerate(samples))[s::SHARDS]:
                shard.write({"__key__": f"{i:07}", "jpg": Path(path).read_bytes(), "cls": label})


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    shards = sorted(map(str, Path(o.work).glob("photos-*.tar")))
    data = (
        webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False)
        .repeat()
        .shuffle(1000)
        .to_tuple("jpg", "cls")
        .map_tuple(torch_parts.decode_bytes, int)
        .map_tuple(torch_parts.from_pil({}, 0.5), lambda label: label)
        .batched(protocol.BATCH, partial=False)
    )
    loader = webdataset.WebLoader(data, batch_size=None, num_workers=o.threads, prefetch_factor=4)
    return protocol.epochs_of(torch_parts.lengths(iter(loader)), len(protocol.list_samples(o.folder)))


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    transform = torch_parts.from_pil(torch_parts.FIXED, 0)
    return torch.stack([transform(torch_parts.decode_bytes(Path(p).read_bytes())) for p in paths]).numpy()


if __name__ == "__main__":
    protocol.main(["webdataset", "torch", "torchvision", "pillow"], open_loader, pixels, prepare)
