# SPDX-License-Identifier: Apache-2.0
"""Stoker, with its defaults: threads follow the cores, nothing is prepared.

--mode plain                untouched files, no cache
--mode cache=dct            any keyword of stoker.Loader; several are joined by commas
--mode fidelity=draft
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import protocol
import stoker

OPS = "RandomResizedCrop({}) | RandomHorizontalFlip | Normalize"


def keywords(mode: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in mode.split(",") if "=" in word)


def loader_of(o: argparse.Namespace, ops: str, **more: object) -> stoker.Loader:
    # A fresh start: nothing that an earlier run has kept is found.
    fresh = Path(o.work or tempfile.gettempdir()) / "stoker-fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    os.environ["STOKER_CACHE_DIR"] = str(fresh)
    try:
        return stoker.Loader(o.folder, ops, batch_size=protocol.BATCH, output="numpy", **more, **keywords(o.mode))
    except stoker.UsageError as error:
        raise protocol.Skip(str(error)) from error


def open_loader(o: argparse.Namespace) -> protocol.Epochs:
    loader = loader_of(o, OPS.format(protocol.SIZE), shuffle=True, drop_last=True)
    return lambda: (len(images) for images, _ in loader)


def pixels(o: argparse.Namespace, paths: list[str]) -> np.ndarray:
    ops = f"RandomResizedCrop({protocol.SIZE}, scale=(1, 1), ratio=(1, 1)) | Normalize"
    return np.concatenate([images for images, _ in loader_of(o, ops)])


if __name__ == "__main__":
    protocol.main(["stoker", "numpy"], open_loader, pixels)
