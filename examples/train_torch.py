# SPDX-License-Identifier: Apache-2.0
"""Train a small network with PyTorch on a folder of class folders; about half a minute on two cores.

python examples/train_torch.py [FOLDER]         without a folder, `stoker synth` makes one
"""

import argparse
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import stoker
import torch
from torch import nn

EPOCHS, BATCH, SIDE = 4, 32, 64


def synthetic(folder: Path) -> Path:
    """Make 1,200 photo-like images in 4 classes."""
    command = Path(sysconfig.get_path("scripts")) / "stoker"  # installed with the wheel
    subprocess.run([command, "synth", folder, "--samples", "1200", "--classes", "4", "--size", "96"], check=True)
    return folder


def network(classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def accuracy(model: nn.Module, loader: stoker.Loader) -> float:
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in loader:
            right += int((model(images).argmax(1) == labels).sum())
            count += len(labels)
    return right / count


def train(folder: Path) -> list[float]:
    torch.manual_seed(0)
    learn, check = stoker.Source(folder).split(0.85, by="class")
    ops = f"RandomResizedCrop({SIDE}, scale=(0.5, 1)) | RandomHorizontalFlip | Normalize"
    train = stoker.Loader(learn, ops, batch_size=BATCH, shuffle=True, drop_last=True)
    val = stoker.Loader(check, f"Resize({SIDE + 8}) | CenterCrop({SIDE}) | Normalize", batch_size=BATCH)
    model = network(len(train.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(train))
        stats = train.stats()
        print(
            f"epoch {epoch}: loss {losses[-1]:.3f}, accuracy {accuracy(model, val):.2f}, "
            f"waited {stats.waited_s:.2f} s of {stats.seconds:.1f} s for data"
        )
    return losses


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, help="photos in class folders; without it, photos are made")
    folder = arguments.parse_args().folder
    if folder:
        train(folder)
    else:
        with tempfile.TemporaryDirectory() as place:
            train(synthetic(Path(place) / "photos"))
