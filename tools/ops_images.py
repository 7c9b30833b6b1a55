# SPDX-License-Identifier: Apache-2.0
"""Makes the images of docs/ops.md with `stoker show`, from photos that `stoker synth` makes.

ops_images.py build/stoker docs/images
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

SAMPLE, DRAWS = 11, 6
FAMILIES = {
    "crops": [
        "Resize((120, 260))",
        "CenterCrop(200)",
        "RandomCrop(200, padding=20)",
        "RandomResizedCrop(224)",
        "Pad(30, fill=(250, 210, 90))",
        "PadIfSmaller(400, fill=(250, 210, 90))",
        "FiveCrop(150)",
        "TenCrop(150)",
        "RandomResize(80, 260)",
        "RandomShortestSize((100, 200, 300))",
        "ScaleJitter((300, 300), (0.3, 1))",
        "RandomZoomOut(p=1)",
    ],
    "geometry": [
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "RandomRotation(30, bilinear)",
        "RandomAffine(15, (0.1, 0.1), (0.8, 1.2), 15, bilinear)",
        "RandomPerspective(p=1)",
        "ElasticTransform(150)",
    ],
    "colours": [
        "ColorJitter(0.5, 0.5, 0.5, 0.2)",
        "RandomPhotometricDistort(hue=(-0.2, 0.2))",
        "RandomChannelPermutation",
        "RandomGrayscale(0.5)",
        "Grayscale",
        "RandomAdjustSharpness(6, p=1)",
        "RandomAutocontrast(1)",
        "RandomEqualize(1)",
        "RandomPosterize(2, p=1)",
        "RandomSolarize(128, p=1)",
        "RandomInvert",
    ],
    "filters": [
        "GaussianBlur(23, (1, 6))",
        "PillowBlur((1, 6), p=1)",
        "GaussianNoise(sigma=0.2)",
        "JPEG((2, 20))",
        "RandomErasing(1, scale=(0.05, 0.25), value=(124, 116, 104))",
    ],
    "policies": [
        "AutoAugment",
        "RandAugment(2, 15)",
        "TrivialAugmentWide",
        "AugMix(8)",
        'TimmAugment("rand-m9-mstd0.5-inc1")',
        "RandomApply([ColorJitter(0.8, hue=0.3), GaussianBlur(9)], p=0.7)",
        "RandomChoice([RandomInvert(1), RandomGrayscale(1), Identity])",
        "RandomOrder([RandomSolarize(128), RandomPosterize(3), RandomHorizontalFlip])",
    ],
}
BATCHES = {
    "mixup": "Resize(240) | CenterCrop(224) | MixUp",
    "cutmix": "Resize(240) | CenterCrop(224) | CutMix",
    "mixup-timm": "Resize(240) | CenterCrop(224) | Mixup(0.8, 1, mode=elem, num_classes=5)",
}


def add_boxes(folder: Path) -> Path:
    """Annotations in COCO's format, with two boxes in each photo."""
    images, boxes = [], []
    for i, path in enumerate(sorted((folder / "photos").glob("*/*"))):
        images.append({"id": i, "file_name": str(path.relative_to(folder)), "width": 0, "height": 0})
        for k, box in enumerate(([45, 60, 190, 185], [160, 250, 120, 90])):
            boxes.append({"id": 2 * i + k, "image_id": i, "category_id": k, "bbox": box, "area": box[2] * box[3]})
    names = [{"id": k, "name": name} for k, name in enumerate(("heart", "street"))]
    file = folder / "boxes.json"
    file.write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    stoker, out = args.stoker.resolve(), args.out.resolve()
    with tempfile.TemporaryDirectory() as where:

        def run(*words: str) -> None:
            subprocess.run([str(stoker), *words], cwd=where, check=True, stdout=subprocess.DEVNULL)

        run("synth", "photos", "--samples", "20", "--classes", "5", "--size", "400", "--seed", "3")
        for name, ops in FAMILIES.items():
            chosen = ["--index", str(SAMPLE), "--draws", str(DRAWS), "--each", "--ops", " | ".join(ops)]
            run("show", "photos", "-o", str(out / f"{name}.webp"), *chosen)
        boxes = add_boxes(Path(where))
        chosen = ["--index", str(SAMPLE), "--draws", str(DRAWS), "--ops", "RandomIoUCrop | SanitizeBoundingBoxes(10)"]
        run("show", str(boxes), "-o", str(out / "boxes.webp"), "--fields", "image, boxes, labels", *chosen)
        for name, text in BATCHES.items():
            run("show", "photos", "-o", str(out / f"{name}.webp"), "--grid", "6x1", "--ops", text, "--seed", "8")
    print(f"{sum(f.stat().st_size for f in out.glob('*.webp')) / 1e6:.2f} MB in {out}")


if __name__ == "__main__":
    main()
