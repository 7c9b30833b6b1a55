# SPDX-License-Identifier: Apache-2.0
"""PNG and WebP: decoding against Pillow's, image by image in turn, on files made of a folder's photos.

    decode.py build photos/ [--take 100] [--rounds 5]

Both sides decode from memory to RGB, once to be warm; the least CPU time of the rounds counts, which neighbours on the
machine disturb least. "crop" is what RandomResizedCrop(224) draws: Pillow cannot decode a part, so that its time is
the whole image's.
"""

import argparse
import io
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, features

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "PNG, RGB": ("RGB", "png", {}),
    "PNG, RGBA": ("RGBA", "png", {}),
    "PNG, grey": ("L", "png", {}),
    "PNG, palette": ("P", "png", {}),
    "WebP, quality 80": ("RGB", "webp", {"quality": 80}),
    "WebP, lossless": ("RGB", "webp", {"lossless": True, "method": 2}),
}


def convert(photo: Path, mode: str, **options: Any) -> bytes:
    with Image.open(photo) as image:
        rgb = image.convert("RGB")
    out = io.BytesIO()
    (rgb.quantize() if mode == "P" else rgb.convert(mode)).save(out, **options)
    return out.getvalue()


def make(build: Path, photos: list[Path], kind: str) -> Iterator[tuple[Path, bytes]]:
    mode, suffix, options = KINDS[kind]
    folder = build / "bench-images" / kind.replace(", ", "-").replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for i, photo in enumerate(photos):
        path = folder / f"{i}.{suffix}"
        if not path.exists():
            path.write_bytes(convert(photo, mode, format=suffix, **options))
        yield path, path.read_bytes()


def pillow_us(data: bytes) -> float:
    begun = time.thread_time()
    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB")
    return 1e6 * (time.thread_time() - begun)


class Ours:
    """The program that decodes for us, a line for a file."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def us(self, path: Path, what: str) -> float:
        assert self.process.stdin and self.process.stdout
        print(path, what, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--take", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    photos = sorted(p for p in args.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    photos = photos[:: max(1, len(photos) // args.take)][: args.take]
    ours = Ours(args.build / "bench-decode")
    webp = features.version("webp")
    print(f"{len(photos)} images of each kind; microseconds of CPU; Pillow with libwebp {webp}\n")
    print(f"{'kind':20} {'Pillow':>8} {'whole':>8} {'crop':>8} {'x whole':>8} {'x crop':>8}")
    for kind in KINDS:
        sums = [0.0, 0.0, 0.0]
        for path, data in make(args.build, photos, kind):
            best = [1e12, 1e12, 1e12]
            for _ in range(1 + args.rounds):
                times = pillow_us(data), ours.us(path, "whole"), ours.us(path, "crop")
                best = [min(a, b) for a, b in zip(best, times, strict=True)]
            sums = [a + b / len(photos) for a, b in zip(sums, best, strict=True)]
        pillow, whole, crop = sums
        print(f"{kind:20} {pillow:8.0f} {whole:8.0f} {crop:8.0f} {pillow / whole:8.2f} {pillow / crop:8.2f}")


if __name__ == "__main__":
    main()
