# SPDX-License-Identifier: Apache-2.0
"""Whole recipes with torchvision's transform objects: torch's DataLoader against Stoker, on files in the page cache.

    recipes.py PHOTOS [--only simclr] [--images 500] [--rounds 3] [--workers 2]

Both sides take the same objects and make batches of 64 with two workers: processes of torch, threads of Stoker. The
sides take turns. The first epoch of each is not counted, and the best of the others is. Beside images per second, the
CPU time per image of all processes is printed, which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
import stoker  # noqa: E402
from ops import transforms  # noqa: E402

BATCH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Views:
    """Several views of an image, for torch's DataLoader."""

    def __init__(self, pipelines: list[Any]) -> None:
        self.pipelines = pipelines

    def __call__(self, image: Any) -> list[Any]:
        return [pipeline(image) for pipeline in self.pipelines]


class Mixed:
    """Collates a batch and combines its rows, for torch's DataLoader."""

    def __init__(self, mix: Any) -> None:
        self.mix = mix

    def __call__(self, rows: list[Any]) -> Any:
        return self.mix(*torch.utils.data.default_collate(rows))


def end(v2: Any) -> list[Any]:
    return [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]


def jitter(v2: Any, strength: float) -> Any:
    values = [0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength]
    return v2.RandomApply([v2.ColorJitter(*values)], p=0.8)


def reference(v2: Any, classes: int) -> dict[str, Any]:
    """torchvision's reference for ImageNet: RandAugment, RandomErasing, MixUp or CutMix."""
    steps = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.RandAugment(), *end(v2), v2.RandomErasing(0.1)]
    mix = [v2.MixUp(alpha=0.2, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)]
    return {"transform": v2.Compose(steps), "mix": v2.RandomChoice(mix)}


def simclr(v2: Any, classes: int) -> dict[str, Any]:
    """Two views with strong colours and a blur."""
    steps = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), jitter(v2, 1), v2.RandomGrayscale(0.2)]
    view = v2.Compose([*steps, v2.RandomApply([v2.GaussianBlur(23)], 0.5), *end(v2)])
    return {"views": {"a": view, "b": view}}


def dino(v2: Any, classes: int) -> dict[str, Any]:
    """Two large and eight small crops."""

    def crop(side: int, scale: tuple[float, float], *more: Any) -> Any:
        steps = [v2.RandomResizedCrop(side, scale, interpolation=3), v2.RandomHorizontalFlip(), jitter(v2, 0.5)]
        return v2.Compose([*steps, v2.RandomGrayscale(0.2), *more, *end(v2)])

    def blur(p: float) -> Any:
        return v2.RandomApply([v2.GaussianBlur(23)], p)

    first = crop(224, (0.4, 1.0), blur(1.0))
    second = crop(224, (0.4, 1.0), blur(0.1), v2.RandomSolarize(128, 0.2))
    return {"views": {"one": first, "two": second, "local*8": crop(96, (0.05, 0.4), blur(0.5))}}


RECIPES: dict[str, Callable[[Any, int], dict[str, Any]]] = {"reference": reference, "simclr": simclr, "dino": dino}


# ---------------------------------------------------------------- the two sides


def expanded(views: dict[str, Any]) -> list[Any]:
    """local*8 as eight pipelines."""
    return [view for name, view in views.items() for _ in range(int((name.split("*") + ["1"])[1]))]


def torchs(folder: Path, recipe: dict[str, Any], n: int, workers: int) -> Any:
    from torchvision import datasets

    views = recipe.get("views")
    data = datasets.ImageFolder(folder, Views(expanded(views)) if views else recipe["transform"])
    some = torch.utils.data.Subset(data, range(min(n, len(data))))
    collate = Mixed(recipe["mix"]) if "mix" in recipe else None
    return torch.utils.data.DataLoader(
        some, BATCH, shuffle=True, drop_last=True, num_workers=workers, collate_fn=collate
    )


def stokers(folder: Path, recipe: dict[str, Any], n: int, workers: int) -> Any:
    source = stoker.Source(folder).take(n)
    transform = recipe.get("views") or recipe["transform"]
    loader = stoker.Loader(
        source, transform, batch_size=BATCH, shuffle=True, drop_last=True, threads=workers, output="torch",
        batch_fn=recipe.get("mix"), exif=False,
    )  # fmt: skip
    assert "python" not in loader.explain(), loader.explain()
    return loader


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def epoch(loader: Any) -> tuple[float, float]:
    """Images per second, and milliseconds of CPU per image."""
    began, cpu, images = time.perf_counter(), cpu_seconds(), 0
    for batch in loader:
        images += len(batch[-1])
    return images / (time.perf_counter() - began), 1e3 * (cpu_seconds() - cpu) / images


def compare(name: str, folder: Path, n: int, workers: int, rounds: int) -> Iterator[str]:
    recipe = RECIPES[name](transforms().v2, 1000)
    sides = {"torch": torchs(folder, recipe, n, workers), "stoker": stokers(folder, recipe, n, workers)}
    best = {side: (0.0, float("inf")) for side in sides}
    for round_ in range(rounds + 1):
        for side, loader in sides.items():
            speed, cpu = epoch(loader)
            if round_ > 0:
                best[side] = max(best[side][0], speed), min(best[side][1], cpu)
    (slow, costly), (fast, cheap) = best["torch"], best["stoker"]
    speeds = f"{slow:>10.0f}{fast:>10.0f}{fast / slow:>8.1f}x"
    yield f"{name:<12}{speeds}{costly:>12.2f}{cheap:>10.2f}{costly / cheap:>8.1f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'recipe':<12}{'images/s: torch':>16}{'stoker':>8}{'':>5}{'ms of CPU: torch':>17}{'stoker':>8}")
    for name in RECIPES:
        if args.only in name:
            for line in compare(name, args.photos, args.images, args.workers, args.rounds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
