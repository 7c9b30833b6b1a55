# SPDX-License-Identifier: Apache-2.0
"""Make a small network lighter in five ways, and compare speed, size and accuracy; about a minute on two cores.

python examples/lighter_models.py [--samples 1200] [--epochs 8]

mixed precision     the forward pass in 16 bits, with loss scaling
depthwise           a 3 x 3 convolution per channel, then a 1 x 1 convolution over the channels
pruned              half the channels, those with the smallest weights, are removed; then one epoch of training
int8                weights and activations of the trained network as 8-bit integers, for inference
distilled           a network with half the channels learns from the answers of the large one
"""

import argparse
import copy
import io
import subprocess
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import stoker
import torch
from torch import nn
from torch.nn import functional

BATCH, SIDE, CLASSES = 64, 64, 8
WIDTHS = (48, 96, 192)
Batch = tuple[torch.Tensor, torch.Tensor]


# ---------------------------------------------------------------- networks


def block(before: int, after: int) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]


def separable(before: int, after: int) -> list[nn.Module]:
    """The same shape with fewer weights: 9 x before + before x after instead of 9 x before x after."""
    if before == 3:
        return block(before, after)  # there is little to save
    each = nn.Conv2d(before, before, 3, stride=2, padding=1, groups=before, bias=False)
    across = nn.Conv2d(before, after, 1, bias=False)
    return [each, nn.BatchNorm2d(before), nn.ReLU(), across, nn.BatchNorm2d(after), nn.ReLU()]


def network(widths: Sequence[int] = WIDTHS, layers: Callable[[int, int], list[nn.Module]] = block) -> nn.Sequential:
    parts: list[nn.Module] = []
    for before, after in zip((3, *widths), widths, strict=False):
        parts += layers(before, after)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], CLASSES))


# ---------------------------------------------------------------- training


def plain_loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(images), labels)


def distillation_loss(teacher: nn.Module, heat: float = 2.0) -> Callable[..., torch.Tensor]:
    """The labels, and the teacher's probabilities: these also say which classes resemble each other."""
    teacher.eval()

    def loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            target = functional.softmax(teacher(images) / heat, 1)
        answer = model(images)
        soft = functional.kl_div(functional.log_softmax(answer / heat, 1), target, reduction="batchmean") * heat**2
        return 0.5 * functional.cross_entropy(answer, labels) + 0.5 * soft

    return loss


def train(
    model: nn.Module,
    loader: stoker.Loader,
    epochs: int,
    loss_of: Callable[..., torch.Tensor] = plain_loss,
    mixed: torch.dtype | None = None,
) -> float:
    """Trains, and returns images per second."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * len(loader))
    # Small gradients become 0 in float16: the loss is multiplied, and the gradients divided again before the update.
    scaler = torch.amp.GradScaler("cpu", enabled=mixed is not None)
    model.train()
    images_seen, start = 0, time.perf_counter()
    for _ in range(epochs):
        for images, labels in loader:
            with torch.autocast("cpu", dtype=mixed or torch.bfloat16, enabled=mixed is not None):
                loss = loss_of(model, images, labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            images_seen += len(labels)
    return images_seen / (time.perf_counter() - start)


def pruned(model: nn.Sequential, keep: float = 0.5) -> nn.Sequential:
    """A narrower network with the channels that have the largest weights, and their values."""
    narrow = network([int(keep * width) for width in WIDTHS])
    inputs = torch.arange(3)
    kept = inputs
    for old, new in zip(model, narrow, strict=True):
        if isinstance(old, nn.Conv2d):
            kept = old.weight.abs().sum((1, 2, 3)).topk(new.out_channels).indices.sort().values
            new.weight.data = old.weight.data[kept][:, inputs].clone()
            inputs = kept
        elif isinstance(old, nn.BatchNorm2d):
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(new, name).data = getattr(old, name).data[kept].clone()
        elif isinstance(old, nn.Linear):
            new.weight.data, new.bias.data = old.weight.data[:, kept].clone(), old.bias.data.clone()
    return narrow


def quantised(model: nn.Sequential, batches: Sequence[Batch]) -> nn.Module:
    """An int8 network; the batches show the range of every activation."""
    from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mapping = get_default_qconfig_mapping(torch.backends.quantized.engine)
        prepared = quantize_fx.prepare_fx(copy.deepcopy(model).eval(), mapping, (batches[0][0],))
        with torch.no_grad():
            for images, _ in batches:
                prepared(images)
        return quantize_fx.convert_fx(prepared)


# ---------------------------------------------------------------- what is compared


class Row(NamedTuple):
    name: str
    training: float | None  # images per second
    inference: float  # images per second
    size: int  # bytes of the saved weights
    accuracy: float


def measure(name: str, model: nn.Module, training: float | None, batches: Sequence[Batch], mixed: bool = False) -> Row:
    model.eval()
    right = count = 0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        model(batches[0][0])  # the first call prepares its kernels
        start = time.perf_counter()
        for images, labels in batches:
            right += int((model(images).argmax(1) == labels).sum())
            count += len(labels)
        seconds = time.perf_counter() - start
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return Row(name, training, count / seconds, file.tell(), right / count)


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'':24} {'training':>10} {'inference':>10} {'size':>9} {'accuracy':>9}"]
    lines.append(f"{'':24} {'images/s':>10} {'images/s':>10} {'KB':>9} {'%':>9}")
    for row in rows:
        speed = "-" if row.training is None else f"{row.training:,.0f}"
        lines.append(
            f"{row.name:24} {speed:>10} {row.inference:>10,.0f} {row.size / 1e3:>9,.0f} {100 * row.accuracy:>9.1f}"
        )
    return "\n".join(lines)


def compare(folder: Path, epochs: int) -> list[Row]:
    learn, check = stoker.Source(folder).split(0.75, by="class")
    ops = f"RandomResizedCrop({SIDE}, scale=(0.5, 1)) | RandomHorizontalFlip | Normalize"
    loader = stoker.Loader(learn, ops, batch_size=BATCH, shuffle=True, drop_last=True)
    check_ops = f"Resize({SIDE}) | CenterCrop({SIDE}) | Normalize"
    batches = [(images, labels) for images, labels in stoker.Loader(check, check_ops, batch_size=BATCH)]

    torch.manual_seed(0)
    large = network()
    rows = [measure("as it is (float32)", large, train(large, loader, epochs), batches)]

    model = network()
    speed = train(model, loader, epochs, mixed=torch.bfloat16)  # float16 is for GPUs: CPUs have no fast kernels for it
    rows.append(measure("mixed precision (bf16)", model, speed, batches, mixed=True))

    model = network(layers=separable)
    rows.append(measure("depthwise-separable", model, train(model, loader, epochs), batches))

    model = pruned(large)
    rows.append(measure("pruned to half, 1 epoch", model, train(model, loader, 1), batches))

    rows.append(measure("int8 (inference only)", quantised(large, batches[:4]), None, batches))

    half = [width // 2 for width in WIDTHS]
    model = network(half)
    rows.append(measure("half the channels", model, train(model, loader, epochs), batches))
    model = network(half)
    speed = train(model, loader, epochs, distillation_loss(large))
    rows.append(measure("the same, distilled", model, speed, batches))
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--samples", type=int, default=1200)
    arguments.add_argument("--epochs", type=int, default=8)
    given = arguments.parse_args()
    command = Path(sysconfig.get_path("scripts")) / "stoker"  # installed with the wheel
    with tempfile.TemporaryDirectory() as place:
        words = ["--samples", str(given.samples), "--classes", str(CLASSES), "--size", "96"]
        subprocess.run([command, "synth", f"{place}/photos", *words], check=True, stdout=subprocess.DEVNULL)
        print(table(compare(Path(place) / "photos", given.epochs)))
    print("\nSpeeds are of this machine. A lighter network has to be trained again: its accuracy is not known before.")


if __name__ == "__main__":
    main()
