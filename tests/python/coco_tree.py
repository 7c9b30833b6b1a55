# SPDX-License-Identifier: Apache-2.0
"""Small datasets in the formats of COCO, Pascal VOC and the Oxford pets, made for tests."""

import json
import random

import numpy as np
from PIL import Image


def photo(path, w, h, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (h // 8 + 1, w // 8 + 1, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((w, h)).save(path)


def mask(path, w, h, seed, classes=21):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.random.default_rng(seed).integers(0, classes, (h, w), dtype=np.uint8)).convert("P")
    image.putpalette(list(range(256)) * 3)
    image.save(path)


def runs(pixels):
    """Uncompressed run lengths, down the columns."""
    flat = np.concatenate([[0], pixels.reshape(-1, order="F"), [2]])
    edges = np.flatnonzero(np.diff(flat)).tolist()
    lengths = np.diff([0, *edges]).tolist()
    return {"size": list(pixels.shape), "counts": lengths}


def polygons(rng, w, h):
    def points():
        n = rng.randint(3, 9)
        return [round(v, 2) for _ in range(n) for v in (rng.uniform(-3, w + 3), rng.uniform(-3, h + 3))]

    return [points() for _ in range(rng.randint(1, 3))]


def segmentation(rng, w, h):
    kind = rng.randint(0, 2)
    if kind == 0:
        return polygons(rng, w, h)
    pixels = (np.random.default_rng(rng.randint(0, 9999)).random((h, w)) < rng.random()).astype(np.uint8)
    pixels[: rng.randint(0, h)] = 0
    if kind == 1:
        return runs(pixels)
    from pycocotools import mask as tools

    return {"size": [h, w], "counts": tools.encode(np.asfortranarray(pixels))["counts"].decode()}


def coco(root, n=12, seed=0, most=6):
    """root/annotations/instances_val.json and root/val/; returns the path of the annotations."""
    rng = random.Random(seed)
    images, notes = [], []
    for k in range(n):
        w, h = rng.randint(40, 120), rng.randint(40, 120)
        number = k * 7 % n + 50
        photo(root / "val" / f"{k:05}.jpg", w, h, seed + k)
        images.append({"id": number, "file_name": f"{k:05}.jpg", "width": w, "height": h})
        for _ in range(rng.randint(0, most)):
            x, y = rng.uniform(0, w - 9), rng.uniform(0, h - 9)
            found = segmentation(rng, w, h)
            notes.append(
                {
                    "id": len(notes) + 100,
                    "image_id": number,
                    "category_id": rng.choice([1, 3, 18]),
                    "bbox": [round(v, 2) for v in (x, y, rng.uniform(2, w - x), rng.uniform(2, h - y))],
                    "area": round(rng.uniform(1, 500), 4),
                    "iscrowd": int(isinstance(found, dict)),
                    "segmentation": found,
                }
            )
    rng.shuffle(notes)
    categories = [{"id": i, "name": name} for i, name in ((3, "car"), (1, "person"), (18, "dog"))]
    path = root / "annotations" / "instances_val.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": {}, "images": images, "annotations": notes, "categories": categories}))
    return path


OBJECT = (
    "<object><name>{}</name><pose>Left</pose><truncated>{}</truncated><difficult>{}</difficult><bndbox><xmin>{}</xmin>"
    "<ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"
)


def voc(root, n=8, seed=0):
    """root/VOCdevkit/VOC2012, as torchvision expects it; returns that folder."""
    rng, base = random.Random(seed), root / "VOCdevkit" / "VOC2012"
    names = [f"2007_{i:06}" for i in range(n)]
    for i, name in enumerate(names):
        w, h = rng.randint(40, 120), rng.randint(40, 120)
        photo(base / "JPEGImages" / f"{name}.jpg", w, h, seed + i)
        mask(base / "SegmentationClass" / f"{name}.png", w, h, i)
        mask(base / "SegmentationObject" / f"{name}.png", w, h, i + 100)
        objects = ""
        for _ in range(rng.randint(1, 4)):
            x, y = rng.randint(0, w - 9), rng.randint(0, h - 9)
            kind = rng.choice(["cat", "dog", "person"])
            box = x, y, rng.randint(x + 2, w), rng.randint(y + 2, h)
            objects += OBJECT.format(kind, rng.randint(0, 1), rng.randint(0, 1), *box)
        text = f"<annotation><filename>{name}.jpg</filename><size><width>{w}</width></size>{objects}</annotation>"
        (base / "Annotations").mkdir(parents=True, exist_ok=True)
        (base / "Annotations" / f"{name}.xml").write_text(text)
    for task in ("Main", "Segmentation"):
        sets = base / "ImageSets" / task
        sets.mkdir(parents=True)
        (sets / "train.txt").write_text("\n".join(names[: n // 2]) + "\n")
        (sets / "val.txt").write_text("\n".join(names[n // 2 :]) + "\n")
    return base


def pets(root, n=6):
    """root/oxford-iiit-pet, as torchvision expects it."""
    base, lines = root / "oxford-iiit-pet", []
    for i in range(n):
        name = f"{('Abyssinian', 'beagle')[i % 2]}_{i}"
        photo(base / "images" / f"{name}.jpg", 60 + i, 50, i)
        mask(base / "annotations" / "trimaps" / f"{name}.png", 60 + i, 50, i, 3)
        lines.append(f"{name} {i % 2 + 1} {i % 2 + 1} 1\n")
    (base / "annotations" / "trainval.txt").write_text("".join(lines))


def people(root, n=4):
    """Adds root/annotations/person_keypoints_val.json to what coco() made."""
    path = root / "annotations" / "instances_val.json"
    images = json.loads(path.read_text())["images"][:n]
    rng = random.Random(0)
    notes = [
        {
            "id": i,
            "image_id": image["id"],
            "category_id": 1,
            "bbox": [1, 2, 20, 30],
            "keypoints": [v for _ in range(17) for v in (rng.randint(0, 39), rng.randint(0, 39), rng.randint(0, 2))],
        }
        for i, image in enumerate(images)
    ]
    document = {"images": images, "annotations": notes, "categories": [{"id": 1, "name": "person"}]}
    (root / "annotations" / "person_keypoints_val.json").write_text(json.dumps(document))


def yolo(root, n=4):
    """root/images/train, root/labels/train, the same for val, and root/data.yaml."""
    for part in ("train", "val"):
        (root / "labels" / part).mkdir(parents=True)
        for i in range(n):
            photo(root / "images" / part / f"{i}.jpg", 50 + i, 40, i)
            if i != 1:
                (root / "labels" / part / f"{i}.txt").write_text("0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.4 0.1 0.4 0.6\n")
    (root / "data.yaml").write_text("train: images/train\nval: images/val\nnames:\n  0: cat\n  1: big dog\n")


def pairs(root, n=4):
    """root/images/train and root/masks/train, and the same for val."""
    for part in ("train", "val"):
        for i in range(n):
            photo(root / "images" / part / f"{i}.jpg", 50 + i, 40, i)
            mask(root / "masks" / part / f"{i}.png", 50 + i, 40, i)
