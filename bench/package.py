# SPDX-License-Identifier: Apache-2.0
"""The package compared with the command and torch's DataLoader, on the same job, alternating; the cost of small things.

package.py STOKER PHOTOS [ROUNDS]     STOKER: the command; run with the Python that has the package
package.py NAME PHOTOS                one measurement, in a process of its own: a name of ALONE
"""

import gc
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import stoker

OPS = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize"
EPOCHS = 3


def command(program: str, photos: str) -> float:
    """Images a second of the best epoch."""
    arguments = [program, "bench", photos, "--epochs", str(EPOCHS), "--json"]
    result = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    return max(e["images_per_s"] for e in result["epochs"])


def package(photos: str) -> float:
    with stoker.Loader(photos, OPS, batch_size=64, shuffle=True, drop_last=True) as loader:
        rates = []
        for _ in range(EPOCHS):
            began, images = time.perf_counter(), 0
            for _, labels in loader:
                images += len(labels)
            rates.append(images / (time.perf_counter() - began))
    return max(rates)


def first_batch(photos: str) -> list[float]:
    """From Loader(...) to the first batch; no index is kept from before."""
    began = time.perf_counter()
    loader = stoker.Loader(photos, OPS, batch_size=64, shuffle=True, cache_dir="off")
    next(iter(loader))
    seconds = time.perf_counter() - began
    loader.close()
    return [seconds]


def first_batch_of_torch(photos: str) -> list[float]:
    """From ImageFolder(...) and DataLoader(...) with 2 workers to the first batch."""
    datasets, transforms, loader_of = torchs()
    ops = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    transform = transforms.Compose([*ops, transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    began = time.perf_counter()
    loader = loader_of(datasets.ImageFolder(photos, transform), batch_size=64, shuffle=True, num_workers=2)
    next(iter(loader))
    return [time.perf_counter() - began]


def torchs() -> tuple[Any, Any, Any]:
    """torchvision's compiled ops do not load with a torch for the CPU; their names are enough here."""
    import torch

    names = torch.library.Library("torchvision", "FRAGMENT")
    for op in ("nms", "qnms"):
        if torch.version.cuda is None and not hasattr(torch.ops.torchvision, op):
            names.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision import datasets, transforms

    return datasets, transforms, torch.utils.data.DataLoader


def resident() -> float:
    """MiB of this process in memory."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def memory_of_epochs(photos: str) -> list[float]:
    """After two epochs, and after five."""
    loader = stoker.Loader(photos, OPS, batch_size=64, shuffle=True, drop_last=True)
    after = []
    for epoch in range(1, 6):
        for _ in loader:
            pass
        if epoch in (2, 5):
            after.append(resident())
    return after


def memory_of_kept(photos: str) -> list[float]:
    """Before, with the batches of an epoch kept, and after they were dropped."""
    loader = stoker.Loader(photos, OPS, batch_size=64, shuffle=True, drop_last=True)
    for _ in loader:
        pass
    sizes = [resident()]
    kept = list(loader)
    sizes.append(resident())
    del kept
    gc.collect()
    return [*sizes, resident()]


def state_seconds(photos: str) -> float:
    with stoker.Loader(photos, OPS, batch_size=64) as loader:
        next(iter(loader))
        time.sleep(0.5)  # until it has read ahead
        began = time.perf_counter()
        for _ in range(10000):
            loader.state_dict()
        return (time.perf_counter() - began) / 10000


def interrupt_seconds() -> float:
    """From Ctrl-C to its exception, while a batch is being waited for."""

    class Slow:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: int, rng: object) -> float:
            if i:  # the first is looked at when the loader is made
                go.wait()
            return 0.0

    go, sent = threading.Event(), [0.0]

    def interrupt() -> None:
        time.sleep(0.2)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    with stoker.Loader(Slow(), output="numpy") as loader:
        it = iter(loader)
        next(it)
        threading.Thread(target=interrupt).start()
        try:
            next(it)
        except KeyboardInterrupt:
            seconds = time.perf_counter() - sent[0]
        go.set()
    return seconds


def import_seconds() -> float:
    """Beyond NumPy's own import, in a fresh interpreter."""
    code = "import time, numpy; t = time.perf_counter(); import stoker; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


ALONE = {f.__name__: f for f in (first_batch, first_batch_of_torch, memory_of_epochs, memory_of_kept)}


def alone(measure: Callable[[str], list[float]], photos: str) -> list[float]:
    """In a process of its own, which has nothing from before."""
    arguments = [sys.executable, __file__, measure.__name__, photos]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def print_rates(program: str, photos: str, rounds: int) -> None:
    pairs = []
    for i in range(rounds):  # each side is first in turn
        ours = package(photos) if i % 2 else 0.0
        theirs = command(program, photos)
        pairs.append((theirs, ours or package(photos)))
    ratio = statistics.median(p / c for c, p in pairs)
    print(f"package over command   {ratio:.3f}   (images/s: {[(round(c), round(p)) for c, p in pairs]})")


def print_first_batch(photos: str, rounds: int) -> None:
    try:
        pairs = [(alone(first_batch, photos)[0], alone(first_batch_of_torch, photos)[0]) for _ in range(rounds)]
    except subprocess.CalledProcessError:
        seconds = statistics.median(alone(first_batch, photos)[0] for _ in range(rounds))
        print(f"to the first batch     {seconds:.3f} s   (torch or torchvision is not here)")
        return
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"to the first batch     {ratio:.3f} of torch's DataLoader with 2 workers   ({ours:.3f} s to {theirs:.3f} s)")


def print_memory(photos: str, rounds: int) -> None:
    pairs = [alone(memory_of_epochs, photos) for _ in range(rounds)]
    more = statistics.median(100 * (five / two - 1) for two, five in pairs)
    print(f"memory after 5 epochs  {more:+.2f} % over that after 2   (MiB: {[(round(a), round(b)) for a, b in pairs]})")
    before, kept, after = alone(memory_of_kept, photos)
    print(f"kept batches dropped   {before:.0f} MiB before, {kept:.0f} MiB with them, {after:.0f} MiB after")


def main() -> None:
    name, photos = sys.argv[1:3]
    if name in ALONE:
        print(*ALONE[name](photos))
        return
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print_rates(name, photos, rounds)
    print_first_batch(photos, rounds)
    print(f"state_dict()           {1e6 * state_seconds(photos):.1f} µs")
    print(f"Ctrl-C ends a wait in  {1e3 * statistics.median(interrupt_seconds() for _ in range(rounds)):.1f} ms")
    print(f"import, beyond NumPy   {1e3 * statistics.median(import_seconds() for _ in range(rounds)):.0f} ms")
    print_memory(photos, rounds)


if __name__ == "__main__":
    main()
