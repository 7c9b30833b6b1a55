# SPDX-License-Identifier: Apache-2.0
"""How much of a GPU's speed on synthetic data a loader feeds, and how fast loaders are alone.

    python bench/gpu.py PHOTOS [--images 100000] [--model resnet18] [--size 224] [--only "device,device dct"] [--json F]

Needs a GPU, torch, torchvision and the installed package. PHOTOS is a folder of class folders. Its files are linked in
a temporary folder as often as an epoch needs them. Epochs are long, because the first one includes the start of the
loader. Every loader feeds the same compiled model, bf16, channels last, for some epochs. The table has images per
second, their share of the synthetic speed measured at the beginning, and how many cores were busy. "device"
is device="cuda", with device_work="auto" or the one that the name of the row ends with.
"""

import argparse
import itertools
import json
import math
import os
import tempfile
import time
from pathlib import Path

import stoker
import torch
import torchvision
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


os.environ.setdefault("STOKER_CACHE_DIR", "off")  # no checkpoints of an earlier loader


def ops(size: int) -> str:
    return f"RandomResizedCrop({size}) | RandomHorizontalFlip"


def linked(photos: Path, images: int, to: Path) -> Path:
    copies = math.ceil(images / sum(len(files) for _, _, files in os.walk(photos)))
    for folder in sorted(p for p in photos.iterdir() if p.is_dir()):
        (to / folder.name).mkdir()
        for file in sorted(folder.iterdir()):
            for n in range(copies):
                (to / folder.name / f"{file.stem}-{n}{file.suffix}").symlink_to(file.resolve())
    return to


def busy_seconds() -> float:
    """CPU time of all processes: those of a loader count only after they end in os.times()."""
    user, nice, system, _idle, _io, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:11])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Training:
    """A model that is trained with batches of one size."""

    def __init__(self, name: str, batch: int, size: int) -> None:
        self.batch = batch
        self.model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9)
        self.loss = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(self.model(x), y))
        shape = (batch, 3, size, size)
        self.x = torch.randn(shape, device="cuda").bfloat16().to(memory_format=torch.channels_last)
        self.y = torch.randint(0, 1000, (batch,), device="cuda")
        for _ in range(10):
            self.step(self.x, self.y)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def run(self, batches) -> tuple[float, float]:
        """Images per second, and cores of the whole machine that were busy."""
        torch.cuda.synchronize()
        began, cpu, n = time.perf_counter(), busy_seconds(), 0
        for x, y in batches:
            self.step(x, y)
            n += len(y)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        return n / seconds, (busy_seconds() - cpu) / seconds

    def synthetic(self, steps: int = 60) -> float:
        return self.run((self.x, self.y) for _ in range(steps))[0]


# ---------------------------------------------------------------- ways to feed it


def torch_loader(folder: Path, batch: int, size: int, pin: bool):
    """torch's DataLoader with PIL, one worker per core; epoch after epoch with the same workers."""
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(size),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    dataset = torchvision.datasets.ImageFolder(str(folder), transform)
    form = {"num_workers": os.cpu_count() or 1, "persistent_workers": True, "pin_memory": pin}
    loader = torch.utils.data.DataLoader(dataset, batch, shuffle=True, drop_last=True, **form)
    while True:
        yield from loader


def primed(batches, workers: int, seconds: float):
    """Takes what the workers prefetched before the clock starts, which is not the speed they keep up."""
    end = time.perf_counter() + seconds
    for _ in range(2 * workers + 1):
        next(batches)
        if time.perf_counter() > end:
            break
    return batches


def within(batches, seconds: float):
    """The batches of some seconds."""
    end = time.perf_counter() + seconds
    for batch in batches:
        yield batch
        if time.perf_counter() > end:
            return


def torch_device(folder: Path, batch: int, size: int):
    """The same, in pinned memory, copied by the trainer."""
    for x, y in torch_loader(folder, batch, size, pin=True):
        # bfloat16 here: another dtype would compile the model again, within the time that is measured
        yield (
            x.cuda(non_blocking=True).to(torch.bfloat16, memory_format=torch.channels_last),
            y.cuda(non_blocking=True),
        )


def torch_alone(folder: Path, batch: int, size: int) -> tuple[float, float]:
    """Images per second of torch's loader, and seconds to its first batch. CUDA must not be in use yet."""
    began = time.perf_counter()
    batches = torch_loader(folder, batch, size, pin=False)
    next(batches)
    first = time.perf_counter() - began
    primed(batches, os.cpu_count() or 1, 40)
    began, n = time.perf_counter(), 0
    for _, y in within(batches, 12):
        n += len(y)
    return n / (time.perf_counter() - began), first


def stoker_host(folder: Path, batch: int, size: int, **more):
    """Batches in host memory, copied by the trainer."""
    loader = stoker.Loader(
        folder, f"{ops(size)} | Normalize", batch, True, True, dtype="bfloat16", layout="channels_last", **more
    )
    while True:
        for x, y in loader:
            yield x.cuda(), y.cuda()


def stoker_pinned(folder: Path, batch: int, size: int, **more):
    """uint8 in page-locked memory, normalised on the GPU by the script."""
    mean, std = (255 * torch.tensor(v, device="cuda").view(1, 3, 1, 1) for v in (MEAN, STD))
    normalised = torch.compile(lambda u: ((u.float() - mean) / std).bfloat16())
    empty = torch.zeros((batch, 3, size, size), dtype=torch.uint8, device="cuda")
    normalised(empty.to(memory_format=torch.channels_last))  # compiles, before the clock starts
    yield None
    form = {"dtype": "uint8", "layout": "channels_last", "pin_memory": True}
    loader = stoker.Loader(folder, ops(size), batch, True, True, **form, **more)
    while True:
        for x, y in loader:
            yield normalised(x.to("cuda", non_blocking=True)), y.to("cuda", non_blocking=True)


def stoker_device(folder: Path, batch: int, size: int, note: dict, **more):
    """device="cuda"."""
    began = time.perf_counter()
    loader = stoker.Loader(
        folder, f"{ops(size)} | Normalize", batch, True, True, dtype="bfloat16", layout="channels_last", device="cuda",
        **more,
    )  # fmt: skip
    note["loader"] = loader
    for n, (x, y) in enumerate(loader.forever()):
        if n == 0:
            torch.cuda.synchronize()
            note["first_batch_s"] = time.perf_counter() - began
        yield x, y


def alone(folder: Path, batch: int, size: int, epochs: int, **more) -> list[float]:
    """Images per second of a loader whose batches are dropped."""
    text = ops(size) if more.get("dtype") == "uint8" else f"{ops(size)} | Normalize"
    loader = stoker.Loader(folder, text, batch, True, True, layout="channels_last", **more)
    rates = []
    for _ in range(epochs):
        began, n = time.perf_counter(), 0
        for batch_ in loader:
            n += len(batch_.label)
        torch.cuda.synchronize()
        rates.append(n / (time.perf_counter() - began))
    loader.close()
    return rates


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("photos", type=Path)
    parser.add_argument("--images", type=int, default=100_000, help="at least so many in an epoch")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=224, help="of the images, in pixels")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=0, help="batches in an epoch; 0: all")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--only", default="", help="names of rows, separated by commas")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    wanted = [w for w in a.only.split(",") if w]
    found: dict = {"gpu": torch.cuda.get_device_name(), "cores": os.cpu_count(), "model": a.model, "batch": a.batch}
    with tempfile.TemporaryDirectory() as place:
        folder = linked(a.photos, a.images, Path(place))
        images = sum(len(files) for _, _, files in os.walk(folder))
        steps = a.steps or images // a.batch
        print(
            f"{images} images, {steps} batches of {a.batch} an epoch, {found['gpu']}, {found['cores']} cores",
            flush=True,
        )
        if not wanted or "torch" in wanted:
            found["alone: torch"], first = torch_alone(folder, a.batch, a.size)
            print(f"alone  torch's DataLoader {found['alone: torch']:.0f}, first batch after {first:.1f} s", flush=True)
        if not wanted or "alone" in wanted:
            rows = {
                "host, bfloat16": {"dtype": "bfloat16"},
                "host, uint8": {"dtype": "uint8"},
                "device, bfloat16": {"dtype": "bfloat16", "device": "cuda"},
                "host, uint8, again": {"dtype": "uint8"},
                "host, uint8, dct": {"dtype": "uint8", "cache": "dct", "memory": "24GiB"},
                "device, bfloat16, dct": {"dtype": "bfloat16", "device": "cuda", "cache": "dct", "memory": "24GiB"},
            }
            for name, more in rows.items():
                rates = alone(folder, a.batch, a.size, a.epochs, output="torch", **more)
                found[f"alone: {name}"] = rates
                print(f"alone  {name:24}", *(f"{r:8.0f}" for r in rates), flush=True)
        training = Training(a.model, a.batch, a.size)
        found["synthetic"] = training.synthetic()
        print(f"synthetic {found['synthetic']:.0f} images/s", flush=True)
        note: dict = {}
        dct = {"cache": "dct", "memory": "24GiB"}
        feeds = {
            "device": lambda: stoker_device(folder, a.batch, a.size, note),
            "device none": lambda: stoker_device(folder, a.batch, a.size, note, device_work="none"),
            "device decode": lambda: stoker_device(folder, a.batch, a.size, note, device_work="decode"),
            "device dct": lambda: stoker_device(folder, a.batch, a.size, note, **dct),
            "device dct idct": lambda: stoker_device(folder, a.batch, a.size, note, device_work="idct", **dct),
            "pinned": lambda: stoker_pinned(folder, a.batch, a.size),
            "host": lambda: stoker_host(folder, a.batch, a.size),
            "torch": lambda: primed(torch_device(folder, a.batch, a.size), os.cpu_count() or 1, 40),
        }
        for name, make in feeds.items():
            if wanted and name not in wanted:
                continue
            batches, rows = make(), []
            if name == "pinned":
                next(batches)
            for _ in range(1 if name == "torch" else a.epochs):
                rate, cores = training.run(within(batches, 12) if name == "torch" else itertools.islice(batches, steps))
                rows.append((rate, cores, 100 * rate / found["synthetic"]))
            beside = training.synthetic()
            found[name] = {"epochs": rows, "synthetic": beside}
            shares = " ".join(f"{r:7.0f} ({share:5.1f} %, {cores:4.1f} cores)" for r, cores, share in rows)
            print(f"{name:16} {shares}  synthetic afterwards {beside:.0f}", flush=True)
            if note:
                stats = note["loader"].stats()
                found[name] |= {"first_batch_s": note["first_batch_s"], "device_bytes": stats.device_bytes}
                print(
                    f"{'':16} first batch after {note['first_batch_s']:.2f} s, {stats.device_bytes / 2**20:.0f} MiB; "
                    f"{stats.device_samples / max(1, stats.samples):.0%} of the images finished by the GPU, "
                    f"{stats.device_decoded / max(1, stats.samples):.0%} decoded there",
                    flush=True,
                )
            note.clear()
            del batches
    if a.json:
        a.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
