# SPDX-License-Identifier: Apache-2.0
"""What holds for every container: the batches of the folder that it was made of, a true shuffle, exact resume.

A container is a function that writes the pictures of a folder into another folder and gives the source's name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stoker
from conftest import make_photos, pictures

OPS = "RandomCrop(16) | RandomHorizontalFlip"
PHOTOS = 30  # of each of two classes


def decoded(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([np.asarray(p) for p in pictures(folder)]), np.asarray(stoker.Source(folder).labels)


def write_npy(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    np.save(out / "x.npy", images)
    np.save(out / "y.npy", labels)
    return f"npy:{out}/x.npy?label=y.npy"


def write_several_npy(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    for i, part in enumerate(np.array_split(images, 7)):
        np.save(out / f"x-{i}.npy", part)
    np.save(out / "y.npy", labels)
    return f"npy:{out}/x-*.npy?label=y.npy"


def write_npz(folder: Path, out: Path) -> str:
    images, labels = decoded(folder)
    np.savez_compressed(out / "a.npz", images=images, labels=labels)
    return f"{out}/a.npz"


# What comes in the folder's order, with its labels.
CONTAINERS: dict[str, Callable[[Path, Path], str]] = {
    "npy": write_npy,
    "several npy": write_several_npy,
    "npz": write_npz,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("photos"), PHOTOS)


@pytest.fixture(scope="module", params=CONTAINERS)
def source(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return CONTAINERS[request.param](folder, tmp_path_factory.mktemp("container"))


def loader(source: object, **keywords: Any) -> stoker.Loader:
    common: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 3, "dtype": "uint8", "output": "numpy"}
    return stoker.Loader(source, OPS, **{**common, **keywords})


def samples(batches: Any) -> list[bytes]:
    """Every sample of some batches, picture and label, as bytes."""
    return [
        image.tobytes() + bytes([label])
        for images, labels in batches
        for image, label in zip(images, labels, strict=True)
    ]


def test_the_same_batches_as_the_folder(source: str, folder: Path) -> None:
    for shuffle in (False, True):
        ours, theirs = loader(source, shuffle=shuffle), loader(folder, shuffle=shuffle)
        for _ in range(2):
            assert samples(ours) == samples(theirs)


def test_the_shuffle_is_uniform(source: str) -> None:
    """Every sample comes to every place: 60 samples, 4 quarters, 200 epochs; 5 standard deviations."""
    epochs, n = 200, 2 * PHOTOS
    counts = np.zeros((n, 4))
    chosen = loader(source, fields=("index",), batch_size=n)
    for _ in range(epochs):
        index = np.concatenate([batch[0] for batch in chosen])
        assert sorted(index) == list(range(n))
        counts[index, np.arange(n) * 4 // n] += 1
    expected = epochs / 4
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected * 3 / 4)


@pytest.mark.parametrize("ranks", [1, 2])
def test_resume_is_exact(source: str, ranks: int) -> None:
    """Stopped in the middle on one rank, gone on with by another number of ranks and threads."""
    whole = loader(source, threads=2, batch_size=4)
    expected = samples(whole)
    first = loader(source, threads=1, batch_size=4)
    batches = iter(first)
    begun = samples([next(batches) for _ in range(3)])
    state = first.state_dict()
    rest = []
    for rank in range(ranks):
        other = loader(source, threads=2, batch_size=4 // ranks, rank=rank, world_size=ranks)
        other.load_state_dict(state)
        rest.append([samples([batch]) for batch in other])
    together = [s for step in zip(*rest, strict=True) for part in step for s in part]
    assert begun + together == expected
