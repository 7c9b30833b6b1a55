# SPDX-License-Identifier: Apache-2.0
"""Makes the files that other parts measure on, with Pillow; runs in Stoker's environment.

files.py pixels FOLDER OUT N     links to N plain RGB photos, and noise.jpg, which tells who antialiases
files.py convert FOLDER OUT N    N photos as PNG and as WebP, in OUT/png/0 and OUT/webp/0
"""

import sys
from pathlib import Path

import numpy as np
import protocol
from PIL import Image

NOISE = 896  # four times the size of a crop: far enough to see, and no reason for anyone to scale while decoding


def plain(path: str) -> bool:
    """A JPEG that every peer reads alike: three channels, stored upright."""
    try:
        with Image.open(path) as image:
            return image.format == "JPEG" and image.mode == "RGB" and image.getexif().get(274, 1) == 1
    except OSError:
        return False


def chosen(folder: str, n: int) -> list[str]:
    """n plain photos, spread over the folder."""
    paths = [path for path, _ in protocol.list_samples(folder)]
    found = [path for path in paths[:: max(1, len(paths) // (2 * n))] if plain(path)]
    return found[:: max(1, len(found) // n)][:n]


def pixels(folder: str, out: Path, n: int) -> None:
    (out / "0").mkdir(parents=True)
    for i, path in enumerate(chosen(folder, n)):
        (out / "0" / f"{i:04}.jpg").symlink_to(Path(path).resolve())
    grey = np.random.default_rng(0).integers(0, 256, (NOISE, NOISE, 1), np.uint8)
    Image.fromarray(np.repeat(grey, 3, axis=2)).save(out / "0" / "noise.jpg", quality=100, subsampling=0)


def convert(folder: str, out: Path, n: int) -> None:
    for kind, how in (("png", {}), ("webp", {"quality": 90})):
        (out / kind / "0").mkdir(parents=True)
        for i, path in enumerate(chosen(folder, n)):
            Image.open(path).save(out / kind / "0" / f"{i:04}.{kind}", **how)


if __name__ == "__main__":
    what, source, target, count = sys.argv[1:]
    {"pixels": pixels, "convert": convert}[what](source, Path(target), int(count))
