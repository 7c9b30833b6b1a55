# SPDX-License-Identifier: Apache-2.0
"""Whole recipes with torchvision's transform objects: torch's DataLoader against Stoker, on files in the page cache.

    recipes.py PHOTOS [--only simclr] [--images 500] [--rounds 3] [--workers 2]

Both sides take the same objects and make batches of 64 with two workers: processes of torch, threads of Stoker. The
sides take turns, and nothing of one side runs during the other's turn. In every turn, the first epoch is not counted.
Beside images per second, the CPU time per image of all processes is printed, which depends less on what else the
machine does. Boxes and masks are made for the photos: rectangles and ellipses at random places.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
import stoker  # noqa: E402
from ops import transforms  # noqa: E402

BATCH = 64
LEAST_S = 5.0  # whole epochs for this long, so that batches that were prefetched at the start do not count much
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


def detection(v2: Any, classes: int) -> dict[str, Any]:
    """Colours, a crop by boxes, and one size."""
    steps = [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=(123, 117, 104)), v2.RandomIoUCrop()]
    steps += [v2.RandomHorizontalFlip(), v2.Resize((320, 320)), v2.SanitizeBoundingBoxes(), *end(v2)]
    return {"transform": v2.Compose(steps), "boxes": True}


def segmentation(v2: Any, classes: int) -> dict[str, Any]:
    """A random size and a crop, as torchvision's reference for segmentation."""
    steps = [v2.RandomResize(260, 520), v2.RandomHorizontalFlip(), v2.RandomCrop(256, pad_if_needed=True), *end(v2)]
    return {"transform": v2.Compose(steps), "masks": True}


RECIPES: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "reference": reference,
    "simclr": simclr,
    "dino": dino,
    "detection": detection,
    "segmentation": segmentation,
}


# ---------------------------------------------------------------- boxes and masks


def annotated(photos: Path, n: int) -> Path:
    """A folder with images/, masks/ and coco.json, for the first n photos."""
    to = Path(tempfile.gettempdir()) / f"stoker-recipes-{n}"
    if (to / "coco.json").exists():
        return to
    rng = np.random.default_rng(1)
    images, boxes = [], []
    for i, path in enumerate(sorted(photos.glob("*/*.jpg"))[:n]):
        with Image.open(path) as image:
            width, height = image.size
        name = f"{i:05}.jpg"
        for folder in ("images", "masks"):
            (to / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to / "images" / name)
        images.append({"id": i + 1, "file_name": name, "width": width, "height": height})
        mask = np.zeros((height, width), np.uint8)
        y, x = np.mgrid[:height, :width]
        for _ in range(rng.integers(1, 8)):
            w, h = rng.uniform(0.1, 0.6, 2) * (width, height)
            left, top = rng.uniform(0, 1, 2) * (width - w, height - h)
            kind = int(rng.integers(1, 21))
            box = {"id": len(boxes) + 1, "image_id": i + 1, "category_id": kind, "bbox": [left, top, w, h]}
            boxes.append({**box, "area": w * h, "iscrowd": 0})
            mask[((x - left - w / 2) / w) ** 2 + ((y - top - h / 2) / h) ** 2 < 0.25] = kind
        Image.fromarray(mask).save(to / "masks" / f"{i:05}.png")
    kinds = [{"id": k, "name": f"kind {k}"} for k in range(1, 21)]
    (to / "coco.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": kinds}))
    return to


class Annotated(torch.utils.data.Dataset[Any]):
    """The same in Python, as torchvision's CocoDetection and VOCSegmentation do it."""

    def __init__(self, folder: Path, transform: Any, masks: bool) -> None:
        self.folder, self.transform, self.masks = folder, transform, masks
        about = json.loads((folder / "coco.json").read_text())
        self.images: list[Any] = about["images"]
        self.boxes: dict[int, list[Any]] = {image["id"]: [] for image in self.images}
        for one in about["annotations"]:
            self.boxes[one["image_id"]].append(one)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Any:
        from torchvision import tv_tensors

        about = self.images[i]
        image = Image.open(self.folder / "images" / about["file_name"]).convert("RGB")
        if self.masks:
            mask = Image.open(self.folder / "masks" / about["file_name"].replace("jpg", "png"))
            return self.transform(image, tv_tensors.Mask(np.asarray(mask)))
        found = self.boxes[about["id"]]
        size = about["height"], about["width"]
        boxes = tv_tensors.BoundingBoxes([one["bbox"] for one in found], format="XYWH", canvas_size=size)
        labels = torch.tensor([one["category_id"] for one in found])
        return self.transform(image, {"boxes": boxes, "labels": labels})


def listed(rows: list[Any]) -> Any:
    """Images as a batch; their boxes and labels as lists."""
    return torch.stack([image for image, _ in rows]), [target for _, target in rows]


# ---------------------------------------------------------------- the two sides


def expanded(views: dict[str, Any]) -> list[Any]:
    """local*8 as eight pipelines."""
    return [view for name, view in views.items() for _ in range(int((name.split("*") + ["1"])[1]))]


def torchs(folder: Path, recipe: dict[str, Any], n: int, workers: int) -> Any:
    from torchvision import datasets

    if "boxes" in recipe or "masks" in recipe:
        some: Any = Annotated(annotated(folder, n), recipe["transform"], "masks" in recipe)
        return torch.utils.data.DataLoader(
            some, BATCH, shuffle=True, drop_last=True, num_workers=workers, collate_fn=listed
        )
    views = recipe.get("views")
    data = datasets.ImageFolder(folder, Views(expanded(views)) if views else recipe["transform"])
    some = torch.utils.data.Subset(data, range(min(n, len(data))))
    collate = Mixed(recipe["mix"]) if "mix" in recipe else None
    return torch.utils.data.DataLoader(
        some, BATCH, shuffle=True, drop_last=True, num_workers=workers, collate_fn=collate
    )


def stokers(folder: Path, recipe: dict[str, Any], n: int, workers: int) -> Any:
    if "boxes" in recipe:
        source = stoker.Source(f"coco:{annotated(folder, n)}/coco.json?images={annotated(folder, n)}/images")
    elif "masks" in recipe:
        source = stoker.Source(annotated(folder, n))
    else:
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


def turn(loader: Any) -> tuple[float, float]:
    """Images per second, and milliseconds of CPU per image, after a first epoch."""
    images = 0
    for _ in loader:
        pass
    began, cpu = time.perf_counter(), cpu_seconds()
    while time.perf_counter() - began < LEAST_S:
        for batch in loader:
            images += len(batch[-1])
    speed = images / (time.perf_counter() - began)
    return speed, 1e3 * (cpu_seconds() - cpu) / images


def compare(name: str, photos: Path, n: int, workers: int, rounds: int) -> str:
    v2 = transforms().v2
    best = {"torch": (0.0, float("inf")), "stoker": (0.0, float("inf"))}
    for _ in range(rounds):
        for side, make in (("torch", torchs), ("stoker", stokers)):
            loader = make(photos, RECIPES[name](v2, 1000), n, workers)
            speed, cpu = turn(loader)
            best[side] = max(best[side][0], speed), min(best[side][1], cpu)
            if side == "stoker":
                loader.close()
    (slow, costly), (fast, cheap) = best["torch"], best["stoker"]
    speeds = f"{slow:>10.0f}{fast:>10.0f}{fast / slow:>8.1f}x"
    return f"{name:<14}{speeds}{costly:>12.2f}{cheap:>10.2f}{costly / cheap:>8.1f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'recipe':<14}{'images/s: torch':>16}{'stoker':>8}{'':>5}{'ms of CPU: torch':>17}{'stoker':>8}")
    for name in RECIPES:
        if args.only in name:
            print(compare(name, args.photos, args.images, args.workers, args.rounds), flush=True)


if __name__ == "__main__":
    main()
