# SPDX-License-Identifier: Apache-2.0
"""Ops against torchvision on Pillow images, torchvision v2 on tensors, and albumentations: CPU time of one thread.

    ops.py build [--data photos/] [--only Jitter] [--rounds 5]

Images are crops of photos to 224 x 224. All sides start from pixels in memory, in the form that they take, and end with
pixels in the same form. The sides take turns in every round, and the least time of all rounds counts. Peers that are
not installed are left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIDE, IMAGES = 224, 24


def photos(folder: Path | None) -> np.ndarray[Any, Any]:
    """Crops of photos; without photos, smooth noise."""
    from PIL import Image

    paths = sorted(folder.rglob("*.jpg"))[:IMAGES] if folder else []
    rng = np.random.default_rng(1)
    images = [Image.open(p).convert("RGB") for p in paths]
    while len(images) < IMAGES:
        images.append(Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)))
    return np.stack([np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for image in images])


_kept: list[Any] = []


def transforms() -> Any:
    """torchvision.transforms; its compiled ops may not load with a CPU torch of another build."""
    import torch

    torch.set_num_threads(1)
    try:
        import torchvision.transforms.v2
    except (RuntimeError, AttributeError):
        for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _kept.append(torch.library.Library("torchvision", "DEF"))
        for op in ("nms", "qnms"):
            _kept[0].define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision.transforms.v2
    return torchvision.transforms


def albumentations() -> Any:
    try:
        import albumentations
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    return albumentations


# The op here; in torchvision; in albumentations.
OPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    "ColorJitter(0.4, 0.4, 0.4)": (
        lambda t: t.ColorJitter(0.4, 0.4, 0.4),
        lambda a: a.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (0, 0), p=1),
    ),
    "ColorJitter(0.4, 0.4, 0.4, 0.1)": (
        lambda t: t.ColorJitter(0.4, 0.4, 0.4, 0.1),
        lambda a: a.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1), p=1),
    ),
    "RandomRotation(30)": (lambda t: t.RandomRotation(30), lambda a: a.Rotate(30, p=1)),
    "RandomAffine(15, translate=(0.1, 0.1), scale=(0.9, 1.1))": (
        lambda t: t.RandomAffine(15, (0.1, 0.1), (0.9, 1.1)),
        lambda a: a.Affine(rotate=(-15, 15), translate_percent=(-0.1, 0.1), scale=(0.9, 1.1), p=1),
    ),
    "RandomPerspective(p=1)": (lambda t: t.RandomPerspective(p=1), lambda a: a.Perspective(p=1)),
    "GaussianBlur(23)": (lambda t: t.GaussianBlur(23), lambda a: a.GaussianBlur((23, 23), p=1)),
    "GaussianBlur(5)": (lambda t: t.GaussianBlur(5), lambda a: a.GaussianBlur((5, 5), p=1)),
    "ElasticTransform": (lambda t: t.ElasticTransform(), lambda a: a.ElasticTransform(alpha=50, sigma=5, p=1)),
    "RandomAdjustSharpness(2, p=1)": (lambda t: t.RandomAdjustSharpness(2, 1), lambda a: a.Sharpen(p=1)),
    "RandomAutocontrast(1)": (lambda t: t.RandomAutocontrast(1), lambda a: a.AutoContrast(p=1)),
    "RandomEqualize(1)": (lambda t: t.RandomEqualize(1), lambda a: a.Equalize(by_channels=True, p=1)),
    "RandomPosterize(4, p=1)": (lambda t: t.RandomPosterize(4, 1), lambda a: a.Posterize(4, p=1)),
    "RandomSolarize(128, p=1)": (lambda t: t.RandomSolarize(128, 1), lambda a: a.Solarize((0.5, 0.5), p=1)),
    "RandomInvert(1)": (lambda t: t.RandomInvert(1), lambda a: a.InvertImg(p=1)),
    "Grayscale(3)": (lambda t: t.Grayscale(3), lambda a: a.ToGray(p=1)),
    "RandomPosterize(4, p=1) | RandomSolarize(128, p=1) | RandomInvert(1)": (
        lambda t: t.Compose([t.RandomPosterize(4, 1), t.RandomSolarize(128, 1), t.RandomInvert(1)]),
        lambda a: a.Compose([a.Posterize(4, p=1), a.Solarize((0.5, 0.5), p=1), a.InvertImg(p=1)]),
    ),
    "AutoAugment": (lambda t: t.AutoAugment(), None),
    "RandAugment": (lambda t: t.RandAugment(), None),
    "TrivialAugmentWide": (lambda t: t.TrivialAugmentWide(), None),
    "AugMix": (lambda t: t.AugMix(), None),
    # With torch's arithmetic.
    "ToImage | ColorJitter(0.4, 0.4, 0.4, 0.1)": (lambda t: t.ColorJitter(0.4, 0.4, 0.4, 0.1), None),
    "ToImage | RandomRotation(30)": (lambda t: t.RandomRotation(30), None),
    "ToImage | RandomRotation(30, bilinear)": (lambda t: t.RandomRotation(30, t.InterpolationMode.BILINEAR), None),
    "ToImage | RandomPerspective(p=1)": (lambda t: t.RandomPerspective(p=1), None),
    "ToImage | RandAugment": (lambda t: t.RandAugment(), None),
    "RandomHorizontalFlip(1)": (lambda t: t.RandomHorizontalFlip(1), lambda a: a.HorizontalFlip(p=1)),
    "RandomResizedCrop(224)": (lambda t: t.RandomResizedCrop(224), lambda a: a.RandomResizedCrop((224, 224), p=1)),
}


class Stoker:
    """The program bench-ops, which is asked op by op."""

    def __init__(self, build: Path, pixels: Path) -> None:
        self.program = subprocess.Popen([build / "bench-ops", pixels], text=True, stdin=-1, stdout=-1)

    def time(self, ops: str) -> float:
        assert self.program.stdin and self.program.stdout
        print(ops, file=self.program.stdin, flush=True)
        return float(self.program.stdout.readline())


def measure(run: Callable[[Any], Any], images: list[Any]) -> float:
    """Microseconds per image."""
    before = time.thread_time()
    for image in images:
        run(image)
    return (time.thread_time() - before) / len(images) * 1e6


def sides(name: str, pixels: Any, stoker: Stoker) -> list[Callable[[], float] | None]:
    import torch
    from PIL import Image

    make, peer = OPS[name]
    t, a = transforms(), albumentations()
    pil, v2 = make(t), make(t.v2)
    images = [Image.fromarray(p) for p in pixels]
    tensors = [torch.from_numpy(p).permute(2, 0, 1).contiguous() for p in pixels]
    arrays = None
    if a and peer:
        op = peer(a)
        arrays = lambda: measure(lambda p: op(image=p), list(pixels))  # noqa: E731
    return [lambda: stoker.time(name), lambda: measure(pil, images), lambda: measure(v2, tensors), arrays]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    pixels = photos(args.data)
    print(f"{'us an image of 224 x 224':<56}{'stoker':>9}{'PIL':>9}{'tensors':>9}{'album.':>9}{'fastest':>9}")
    with tempfile.NamedTemporaryFile() as file:
        file.write(pixels.tobytes())
        file.flush()
        stoker = Stoker(args.build, Path(file.name))
        for name in OPS:
            if args.only in name:
                row(name, sides(name, pixels, stoker), args.rounds)


def row(name: str, run: list[Callable[[], float] | None], rounds: int) -> None:
    least = [float("inf")] * len(run)
    for _ in range(rounds):
        for i, side in enumerate(run):
            least[i] = min(least[i], side()) if side else least[i]
    words = ["-" if t == float("inf") or t < 0 else f"{t:.0f}" if t >= 100 else f"{t:.1f}" for t in least]
    ratio = f"{min(least[1:]) / least[0]:.1f}x" if least[0] > 0 else "-"
    print(f"{name:<56}" + "".join(f"{w:>9}" for w in [*words, ratio]), flush=True)


if __name__ == "__main__":
    main()
