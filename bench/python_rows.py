# SPDX-License-Identifier: Apache-2.0
"""Datasets and transforms in Python: stoker.DataLoader beside torch's, with the same workers, in turn.

    python_rows.py PHOTOS [--workers 2] [--rounds 3] [--only tokens,small]
    python_rows.py PHOTOS --costs

Every measurement is a process of its own. The speed is that of one epoch, without the first batches, which pay for the
start; each worker makes at least 12 batches after that. A ratio is the median of the rounds' own. MiB is the memory of
all processes together in a second epoch, common pages counted once; shared memory is counted for the whole machine, so
nothing else may use it meanwhile. The step is the time of a fixed piece of work in the training thread beside the
loader, divided by its time without one; for it, the loader has at most as many workers as leave a core free for that
thread. The last line has the same beside a process that only computes: cores of a virtual machine may share one of the
host's.

--costs prints what Stoker itself costs for a row, in microseconds of CPU time: in the training process, in the worker
process without the user's code, and seeding.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from package import torchs
from PIL import Image
from torch.utils import data

BATCH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Files(data.Dataset[Any]):
    """A dataset as people write it."""

    def __init__(self, photos: str, transform: Any) -> None:
        self.paths, self.transform = sorted(Path(photos).rglob("*.*")), transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        with Image.open(self.paths[i]) as image:
            return self.transform(image.convert("RGB")), i % 10


class Albumentations(Files):
    def __getitem__(self, i: int) -> Any:
        with Image.open(self.paths[i]) as image:
            return self.transform(image=np.asarray(image.convert("RGB")))["image"], i % 10


class Segmentation(Files):
    """An image and its mask, changed together."""

    def __getitem__(self, i: int) -> Any:
        with Image.open(self.paths[i]) as image:
            pixels = np.asarray(image.convert("RGB"))
        mask = pixels[:, :, 0] // 26
        both = self.transform(image=pixels, mask=mask)
        return both["image"], torch.as_tensor(both["mask"]).long()


class Small(data.Dataset[Any]):
    """32-pixel images in memory."""

    images = np.random.default_rng(0).integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Any:
        image = torch.from_numpy(self.images[i]).permute(2, 0, 1).float().div_(255)
        return (image.flip(2) if random.random() < 0.5 else image).sub_(0.5).div_(0.25), i % 10


class Tokens(data.Dataset[Any]):
    """Pure Python."""

    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, i: int) -> Any:
        words = [(i * 31 + k * k) % 30_000 for k in range(128)]
        return torch.tensor(words), torch.ones(128, dtype=torch.int64)


def transforms_of(name: str) -> Any:
    _, t, _ = torchs()
    if name == "jitter-v2":
        from torchvision.transforms import v2

        return v2.Compose(
            [
                v2.RandomResizedCrop(224),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
                v2.ToImage(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )
    crop, flip, last = t.RandomResizedCrop(224), t.RandomHorizontalFlip(), [t.ToTensor(), t.Normalize(MEAN, STD)]
    chains = {
        "erasing": [crop, flip, *last, t.RandomErasing()],
        "randaugment": [crop, flip, t.RandAugment(), *last],
        "jitter": [crop, flip, t.ColorJitter(0.4, 0.4, 0.4, 0.1), *last],
        "rotation": [t.RandomRotation(15), crop, flip, *last],
        "own": [crop, flip, *last],
        "own-jitter": [crop, flip, t.ColorJitter(0.4, 0.4, 0.4, 0.1), *last],
    }
    return t.Compose(chains[name])


def albumentations_of() -> Any:
    import albumentations as a
    from albumentations.pytorch import ToTensorV2

    return a.Compose([a.RandomResizedCrop((224, 224)), a.HorizontalFlip(), a.Normalize(MEAN, STD), ToTensorV2()])


CASES = (
    *("erasing", "randaugment", "jitter", "jitter-v2", "rotation", "own", "own-jitter"),
    *("albumentations", "segmentation", "small", "tokens"),
)


def dataset_of(name: str, photos: str) -> Any:
    if name in ("small", "tokens"):
        return Small() if name == "small" else Tokens()
    if name in ("albumentations", "segmentation"):
        return (Albumentations if name == "albumentations" else Segmentation)(photos, albumentations_of())
    if name.startswith("own"):
        return Files(photos, transforms_of(name))
    return torchs()[0].ImageFolder(photos, transforms_of(name))


# ---------------------------------------------------------------- one measurement


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += family(int(child))
    return found


def shared_bytes() -> int:
    """Shared memory of the whole machine: batches that wait in a queue are mapped by no process."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Shmem:")) << 10


def own_bytes() -> int:
    """Memory of this process and its descendants without shared memory; common pages count once."""
    total = 0
    for pid in family(os.getpid()):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has ended
            continue
        total += sum(int(x.split()[1]) for x in text.splitlines() if x.startswith(("Pss_Anon:", "Pss_File:"))) << 10
    return total


def work() -> float:
    """A step of the training thread, in Python, so that it waits whenever another thread has the GIL."""
    began = time.perf_counter()
    for _ in range(200):
        sum(range(500))
    return time.perf_counter() - began


def loader_of(kind: str, dataset: Any, workers: int) -> Any:
    import stoker

    cls = stoker.DataLoader if kind == "stoker" else data.DataLoader
    enough = 14 * BATCH * workers
    sampler = data.RandomSampler(dataset, replacement=enough > len(dataset), num_samples=max(enough, len(dataset)))
    return cls(dataset, BATCH, sampler=sampler, num_workers=workers)


def speed(loader: Any) -> dict[str, float]:
    """Of one epoch, once all workers have made a batch: they start one after the other."""
    start = time.perf_counter()
    batches = iter(loader)
    next(batches)
    first = time.perf_counter() - start
    for _ in range(2 * loader.num_workers):
        next(batches)
    began, samples = time.perf_counter(), 0
    for batch in batches:
        samples += len(batch[0])
    return {"rate": samples / (time.perf_counter() - began), "first": first}


def memory(loader: Any, shared: int) -> int:
    """The highest of four readings, in an epoch of its own: a reading of many processes takes a while."""
    most, between = 0, max(3, loader.num_workers)
    for n, _ in enumerate(loader):
        if n % between == 0 and n > 0:
            most = max(most, own_bytes() + shared_bytes() - shared)
        if n == 4 * between:
            break
    return most


def measure(kind: str, dataset: Any, workers: int) -> dict[str, float]:
    shared, loader = shared_bytes(), loader_of(kind, dataset, workers)
    return {**speed(loader), "memory": memory(loader, shared)}


def step(kind: str, dataset: Any, workers: int) -> float:
    """The median time of a step beside the loader, divided by the one without it."""
    alone, beside = [work() for _ in range(100)], []
    for n, _ in enumerate(loader_of(kind, dataset, workers)):
        beside += [work() for _ in range(20)]
        if n == 9:
            break
    return statistics.median(beside) / statistics.median(alone)


def spin() -> None:
    while True:
        work()


def busy() -> float:
    """As step, beside a process that only computes."""
    alone = [work() for _ in range(500)]
    process = multiprocessing.Process(target=spin, daemon=True)
    process.start()
    beside = [work() for _ in range(500)]
    process.kill()
    process.join()
    return statistics.median(beside) / statistics.median(alone)


class Nothing(data.Dataset[Any]):
    """Rows that cost next to nothing."""

    def __len__(self) -> int:
        return 128 * 1024

    def __getitem__(self, i: int) -> Any:
        return i


def cpu(of: int) -> float:
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime


def costs() -> None:
    import stoker
    from stoker._seeds import seed_all

    dataset, rows = Nothing(), len(Nothing())
    began = cpu(resource.RUSAGE_SELF)
    for i in range(rows):
        seed_all(i)
    seeding = (cpu(resource.RUSAGE_SELF) - began) / rows
    for first in range(0, rows, BATCH):
        data.default_collate([dataset[i] for i in range(first, first + BATCH)])
    users = (cpu(resource.RUSAGE_SELF) - began) / rows - seeding
    print(f"seeding {1e6 * seeding:.1f} us; the user's code of these rows {1e6 * users:.1f} us")
    loaders = {
        "DataLoader": lambda: stoker.DataLoader(dataset, BATCH, num_workers=1),
        "Loader": lambda: stoker.Loader(dataset, batch_size=BATCH, processes=1),
    }
    for name, make in loaders.items():
        loader = make()
        batches = iter(loader)
        next(batches)
        here, below = cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
        for _ in batches:
            pass
        here = (cpu(resource.RUSAGE_SELF) - here) / rows
        loader.close()
        below = (cpu(resource.RUSAGE_CHILDREN) - below) / rows - seeding - (users if name == "DataLoader" else 0)
        print(f"{name}: {1e6 * here:.1f} us a row in the training process, {1e6 * below:.1f} us in the worker")


def run(a: argparse.Namespace, kind: str, name: str) -> dict[str, float]:
    command = [sys.executable, __file__, a.photos, "--workers", str(a.workers), "--measure", kind, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(a: argparse.Namespace, name: str) -> None:
    found: dict[str, list[dict[str, float]]] = {"torch": [], "stoker": []}
    for _ in range(a.rounds):
        for kind, runs in found.items():
            runs.append(run(a, kind, name))
    ratio = statistics.median(s["rate"] / t["rate"] for t, s in zip(found["torch"], found["stoker"], strict=True))
    torchs_, ours = ({k: statistics.median(r[k] for r in runs) for k in runs[0]} for runs in found.values())
    text = f"{name:<16}{torchs_['rate']:>10.0f}{ours['rate']:>10.0f}{ratio:>8.2f}"
    text += f"{torchs_['memory'] / 2**20:>10.0f}{ours['memory'] / 2**20:>10.0f}"
    text += f"{torchs_['step']:>10.3f}{ours['step']:>10.3f}"
    print(text + f"{1e3 * torchs_['first']:>10.0f}{1e3 * ours['first']:>10.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--costs", action="store_true", help="print what a row costs, and nothing else")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.costs:
        return costs()
    if a.measure:
        kind, name = a.measure
        dataset = dataset_of(name, a.photos)
        free = max(1, min(a.workers, len(os.sched_getaffinity(0)) - 1))
        print(json.dumps({**measure(kind, dataset, a.workers), "step": step(kind, dataset, free)}))
        return None
    print(f"{a.workers} workers       {'samples/s':>20}{'':>8}{'MiB':>20}{'step':>20}{'first batch, ms':>20}")
    print(f"{'':<16}{'torch':>10}{'Stoker':>10}{'ratio':>8}" + 3 * f"{'torch':>10}{'Stoker':>10}")
    for name in a.only.split(","):
        report(a, name)
    print(f"a step beside a process that only computes: {statistics.median(busy() for _ in range(5)):.3f}")
    return None


if __name__ == "__main__":
    main()
