# SPDX-License-Identifier: Apache-2.0
"""Why a script may be slow: a table of rules. A rule looks at a run and returns a suspicion, never a verdict.

The numbers are those of docs/doctor.md. Where two causes explain a run equally well, the one further up is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._types import counted
from .facts import AS_IS, LOADER, MODEL, Facts, items, number, reads_disk, run_of, section


@dataclass
class Suspicion:
    title: str  # a whole sentence without the full stop
    share: float  # of the time of a step that this cause takes, from 0 to 1
    evidence: list[str]
    tries: list[str]  # the what-ifs that prove it, the most promising first
    proof: tuple[str, float] | None = None  # a run and its gain, where the ceilings are the proof
    test: str = ""  # a what-if that removes nothing but this cause: if it ran and gained nothing, this is not the cause
    beyond: str = ""  # a remedy that no what-if can try
    asked: tuple[str, ...] = ()  # what-ifs that run only if the user asks for them
    after: tuple[str, ...] = ()  # causes that were measured themselves, and are tried before this one


class Rule(NamedTuple):
    number: int
    id: str
    find: Callable[[Facts], Suspicion | None]
    least: float = 1.05  # a smaller gain is not worth a verdict


def percent(share: float) -> str:
    """
    >>> percent(0.013), percent(0.62)
    ('1.3 %', '62 %')
    """
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def times(ms: float) -> str:
    """
    >>> times(0.0421), times(7.4), times(1234)
    ('42 us', '7.4 ms', '1.2 s')
    """
    if ms >= 1000:
        return f"{ms / 1e3:.2g} s"
    return f"{ms:.3g} ms" if ms >= 0.1 else f"{1e3 * ms:.2g} us"


def size(count: float) -> str:
    """
    >>> size(512), size(1.2e6), size(3e13)
    ('512 bytes', '1.2 MB', '30 TB')
    """
    power = min(4, max(0, int(math.log10(max(1.0, count)) // 3)))
    return f"{count / 1000**power:.3g} {('bytes', 'KB', 'MB', 'GB', 'TB')[power]}"


def at(thing: dict[str, Any]) -> str:
    """A name and its place."""
    name, place = thing.get("name") or "it", thing.get("at")
    return f"{name} ({place})" if place else str(name)


def waiting(f: Facts) -> str:
    waits = f"{percent(f.wait)} of the time is waiting for data"
    if f.wait >= 0.05 and not f.crowded:
        return waits
    alone = f"{f.rate_of(MODEL):.0f} (model) and {f.rate_of(LOADER):.0f} (loader) alone"
    taken = f"the loader takes CPU time from the model: {f.rate:.0f} samples/s together, {alone}"
    return taken if f.wait < 0.05 else f"{waits}, and {taken}"


def part_line(f: Facts, us: float, what: str) -> str:
    total = sum(f.parts.values())
    return f"{what} takes {times(us / 1e3)} of {times(total / 1e3)} per sample, measured in one process alone"


def loaders(f: Facts) -> list[str]:
    """What may help where the loader's work is too much for its processes."""
    if f.loader.get("kind") == "tf.data":
        return ["parallel"]
    stoker = [] if f.loader.get("kind") == "stoker" else ["stoker"]
    return [*stoker, f"workers={f.more_workers()}"] if f.idle_cores >= 0.25 else stoker


# ---------------------------------------------------------------- input


def shared_memory(f: Facts) -> Suspicion | None:
    reason = str(f.run.get("reason") or "")
    if f.run.get("status") != "failed" or not re.search(
        r"shared memory|shm|Bus error|ancdata|Too many open files", reason, re.I
    ):
        return None
    shm = section(f.machine, "shm")
    room = [f"/dev/shm has {size(number(shm, 'total'))}, {size(number(shm, 'free'))} free"] if shm else []
    return Suspicion(
        "The worker processes run out of shared memory for their batches", 1.0, [reason, *room], ["stoker", "workers=0"]
    )


EPOCH_START = (
    "let the loader go on over the end of an epoch: keep its files open and its shuffle buffer filled, and count steps "
    "instead of epochs"
)


def worker_start(f: Facts) -> Suspicion | None:
    later = items(f.run, "epochs")[1:]
    if f.starting_share < 0.05:
        return None
    each = f.starting / len(later)
    title = f"The first batch of every epoch takes {each:.2g} s"
    evidence = [f"{counted(len(later), 'pause')} between epochs, {each:.2g} s each"]
    if f.starts_workers:
        evidence.append(f"{f.workers} workers start again, and each imports the script and opens the dataset")
        return Suspicion(title, f.starting_share, evidence, ["persistent", *loaders(f)])
    evidence.append(f"the loader starts anew with every epoch; others take {times(number(f.run, 'wait_ms', 'median'))}")
    tries = loaders(f) if f.loader.get("kind") == "torch.DataLoader" else []
    return Suspicion(title, f.starting_share, evidence, ["next-epoch", *tries], beyond=EPOCH_START)


def slow_samples(f: Facts) -> Suspicion | None:
    each = section(f.m, "samples_ms")
    middle, tail = number(each, "median"), number(each, "p99")
    if f.run.get("name") != AS_IS or not f.waits or not middle or tail < 8 * middle:
        return None
    if quota_share(f) > 0.2:  # which stops some samples, whatever they are
        return None
    named = [f"{times(number(s, 'ms'))}: {s.get('path') or s.get('index')}" for s in items(f.m, "slowest")[:5]]
    evidence = [f"a sample takes {times(middle)} (median), but one in a hundred more than {times(tail)}", *named]
    return Suspicion(
        "A few slow samples hold up their batches",
        f.wait * 0.9,
        [waiting(f), *evidence],
        ["skip-slowest"],  # nothing else proves it: another loader may be faster for every sample
    )


def cpus_text(count: float) -> str:
    """
    >>> cpus_text(1), cpus_text(0.5)
    ('1 CPU', '0.5 CPUs')
    """
    return f"{count:.3g} CPU{'' if count == 1 else 's'}"


def quota_share(f: Facts) -> float:
    """The part of the time for which the quota of the cgroup stopped the script; 0 if it is small."""
    quota, stopped = number(f.machine, "quota"), number(f.run, "cpu", "throttled_s")
    if not quota or quota > 0.95 * f.cpus or not f.duration or stopped < 0.05 * f.duration:
        return 0.0
    return min(1.0, stopped / f.duration)


def cpu_quota(f: Facts) -> Suspicion | None:
    share, quota = quota_share(f), number(f.machine, "quota")
    if not share:
        return None
    evidence = [
        f"a quota of {cpus_text(quota)} on a machine with {f.cpus}",
        f"stopped by the quota for {percent(share)} of the time",
    ]
    tries = [f"workers={f.fewer_workers()}"] if f.all_workers > quota else []
    return Suspicion(
        f"The container may use {quota:.3g} of {f.cpus} CPUs, and the script starts work for more",
        share,
        evidence,
        [*tries, "threads=1", *loaders(f)],
        beyond="raise the quota, for example docker run --cpus=N, or let the script do less work at once",
    )


def threads(f: Facts) -> Suspicion | None:
    count = number(f.run, "cpu", "threads")
    own = 4 * (f.all_workers + f.ranks)  # without pools: three per process, and one in the script per worker
    if not f.workers or count < 2 * f.cores + own or f.idle_cores > 0.25 * f.cores:
        return None
    title = f"{count:.0f} threads compete for {f.cores:.3g} CPUs"
    evidence = [f"{f.all_workers} workers, each with a pool of threads (OpenMP, MKL, OpenCV or torch)"]
    return Suspicion(title, 0.3, evidence, ["threads=1"])


def many_workers(f: Facts) -> Suspicion | None:
    fewer = f.fewer_workers()
    if f.workers <= fewer or f.all_workers <= 1.5 * f.cores or f.idle_cores > 0.25 * f.cores:
        return None
    evidence = [f"{number(f.run, 'cpu', 'all'):.2g} of {f.cores:.3g} CPUs are in use"]
    return Suspicion(
        f"{f.all_workers} workers on {f.cores:.3g} CPUs take time from the training itself",
        0.2,
        evidence,
        [f"workers={fewer}"],
    )


def cold(f: Facts) -> Suspicion | None:
    """Data that fit into memory are read from storage once."""
    warm = run_of(f.m, LOADER)
    fits = 0 < f.data_bytes < 0.7 * f.memory
    if not f.waits or not f.reads_disk or not fits or not warm or reads_disk(warm, f.loader) or f.reads_little:
        return None
    later = min(number(warm, "samples_per_s"), f.rate_of(MODEL) or 1e30)
    gain = later / f.rate if f.rate else 0.0
    evidence = [
        f"{size(f.data_bytes)} of data fit into {size(f.memory)} of memory",
        f"{f.rate:.0f} samples/s now, {number(warm, 'samples_per_s'):.0f} from the loader when the data are in memory",
    ]
    title = "Only the first epoch is slow: it reads the data from storage, and later epochs find them in memory"
    return Suspicion(title, f.wait, evidence, [], (LOADER, gain))


def only_reads(f: Facts) -> bool:
    """Whether the dataset does nothing that can be timed but read: then only samples in memory prove anything."""
    return not f.parts["decode"] and not f.parts["transform"]


def page_cache(f: Facts) -> Suspicion | None:
    if not f.waits or not f.reads_disk or not f.memory or f.data_bytes < 0.7 * f.memory:
        return None
    ratio = f.data_bytes / f.memory
    evidence = [waiting(f), f"{size(f.data_bytes)} of data, {size(f.memory)} of memory"]
    title = f"The data are {ratio:.2g} times the memory, so every epoch reads them from storage again"
    smaller = ["cache", "pack", "resize", *loaders(f)]
    return Suspicion(title, f.wait, evidence, ["fetch", *smaller] if only_reads(f) else smaller)


def storage(f: Facts) -> tuple[str, Suspicion] | None:
    """Which of the three limits of storage it is, and the words for it."""
    io = section(f.run, "io")
    reads, count = number(io, "read_calls") + number(io, "major_faults"), number(io, "read_bytes")
    blocked, kind = f.blocked, section(f.machine, "storage").get("kind")
    slow = f.is_largest("read") or blocked > 0.4 * f.duration * max(f.ranks, f.all_workers)
    tries = ["fetch", *loaders(f)] if only_reads(f) else [*loaders(f), "pack", "cache"]
    if f.waits and slow and f.reads_network:
        took = times(number(f.stages, "read_us") / 1e3)
        title = f"Every file takes {took} to read, and too few are read at once"
        return "latency", Suspicion(title, f.wait, [waiting(f), f"{took} for files that were read before"], tries)
    if not f.waits or not f.reads_disk or not slow or not reads or f.reads_little:
        return None
    mean, each = count / reads, number(io, "read_s") or blocked
    latency = 1e3 * each / reads
    evidence = [
        waiting(f),
        f"{reads:.0f} reads of {size(mean)} each, {times(latency)} per read",
        f"{size(count / f.duration)} per second from storage ({kind or 'unknown kind'})",
    ]
    if kind == "network" or latency > 20:
        which, words = "latency", f"Every read from storage takes {times(latency)}, and too few run at once"
    elif mean >= 512e3:
        which, words = "bandwidth", f"Storage delivers {size(count / f.duration)} per second, and the script needs more"
    else:
        which, words = "iops", f"Storage is busy with small random reads of {size(mean)}"
    return which, Suspicion(words, f.wait, evidence, tries)


def storage_rule(kind: str) -> Callable[[Facts], Suspicion | None]:
    def find(f: Facts) -> Suspicion | None:
        found = storage(f)
        return found[1] if found and found[0] == kind else None

    return find


CHEAPER = "make it cheaper: do its work once and store the result, or vectorise it"


def dataset_code(f: Facts) -> Suspicion | None:
    """Code inside __getitem__ itself. Many causes slow it down, so it is tried only if the user asks for that."""
    us, place = f.parts["other"], f.loader.get("dataset_at")
    if not f.waits or not place or not f.is_largest("other"):
        return None
    name = f"{f.loader.get('dataset') or 'the dataset'}.__getitem__ ({place})"
    share = f.part_share(us)
    return Suspicion(
        f"The code of {name} takes {percent(share)} of the loader's work",
        f.wait * share,
        [waiting(f), part_line(f, us, "this code")],
        ["fetch"] if run_of(f.m, "fetch") else [],
        beyond=CHEAPER,
        asked=("fetch",),
    )


def loader_code(f: Facts) -> Suspicion | None:
    """A function that makes batches in the training process, if the loader's parts do not explain the waiting."""
    one = max(items(f.run, "loading"), key=lambda x: number(x, "share"), default=None)
    timed = sum(f.parts.values()) / 1e3 * number(f.loader, "batch_size")  # ms per batch
    if not f.waits or timed > 0.5 * f.ms("wait") or one is None or number(one, "share") < 0.5 * f.wait:
        return None
    title = f"{at(one)} makes the batches, and takes {percent(number(one, 'share'))} of the time"
    return Suspicion(title, f.wait, [waiting(f)], [], beyond=f"{CHEAPER}; or run it in several processes")


def transform(f: Facts) -> Suspicion | None:
    one = f.slow_transform
    if one is None:
        return dataset_code(f) or loader_code(f)
    if not f.waits:
        return None
    us = number(one, "us")
    share = f.part_share(us)
    title = f"{at(one)} takes {percent(share)} of the loader's work"
    return Suspicion(
        title,
        f.wait * share,
        [waiting(f), part_line(f, us, at(one))],
        [f"without={one.get('name')}", *loaders(f)],
        test=f"without={one.get('name')}",
    )


def area(image: dict[str, Any], prefix: str = "") -> float:
    return number(image, prefix + "width") * number(image, prefix + "height")


def large_images(f: Facts) -> Suspicion | None:
    image = section(f.loader, "image")
    used = area(image, "needed_")
    if not f.waits or not used or area(image) < 12 * used or not f.is_largest("decode"):
        return None
    sizes = (
        f"{number(image, 'width'):.0f} x {number(image, 'height'):.0f}",
        f"{number(image, 'needed_width'):.0f} x {number(image, 'needed_height'):.0f}",
    )
    us = f.parts["decode"]
    return Suspicion(
        f"Images of {sizes[0]} pixels are decoded for {sizes[1]} pixels",
        f.wait * f.part_share(us),
        [waiting(f), part_line(f, us, "decoding")],
        ["resize", "draft", "pack", *loaders(f)],
        test="resize",
    )


def decode(f: Facts) -> Suspicion | None:
    us = f.parts["decode"]
    if not f.waits or not f.is_largest("decode") or f.slow_transform:
        return None
    tries = [*loaders(f), "cache", "draft"]
    return Suspicion(
        "Decoding the images is the limit",
        f.wait * f.part_share(us),
        [waiting(f), part_line(f, us, "decoding")],
        tries,
    )


def collate(f: Facts) -> Suspicion | None:
    us, own = f.parts["collate"], section(f.loader, "collate")  # of the script, not torch's
    if not f.waits or not own or not f.is_largest("collate"):
        return None
    return Suspicion(
        f"Making a batch out of samples is the limit: {at(own)}",
        f.wait * f.part_share(us),
        [waiting(f), part_line(f, us, "collating")],
        ["collate", *loaders(f)],
        test="collate",
    )


def pickling(f: Facts) -> Suspicion | None:
    us = f.parts["transfer"]
    if not f.waits or not f.workers or not f.is_largest("transfer"):
        return None
    return Suspicion(
        "Sending batches from the workers to the training process is the limit",
        f.wait * f.part_share(us),
        [waiting(f), part_line(f, us, "pickling and sending")],
        ["workers=0", *loaders(f)],
    )


def serial_fetch(f: Facts) -> Suspicion | None:
    us = f.parts["read"]
    if not f.waits or f.reads_disk or not f.is_largest("read"):
        return None
    name = f.loader.get("dataset") or "the dataset"
    return Suspicion(
        f"{name} fetches one sample at a time, and that is the limit",
        f.wait * f.part_share(us),
        [waiting(f), part_line(f, us, "fetching"), "the data are in memory, so storage is not the cause"],
        ["fetch", *loaders(f)],
        test="fetch",
    )


def few_workers(f: Facts) -> Suspicion | None:
    if not f.waits:
        return None
    evidence = [waiting(f), f"{number(f.run, 'cpu', 'all'):.2g} of {f.cores:.3g} CPUs are in use"]
    if f.loader.get("kind") == "tf.data":
        title = "The pipeline of tf.data runs functions in one thread, or makes no batches ahead"
        return Suspicion(title, f.wait * 0.8, evidence, ["parallel"])
    if f.loader.get("kind") != "torch.DataLoader" or f.idle_cores < 0.25 * f.cores:
        return None
    words = counted(f.workers, "worker") if f.workers else "no worker processes (num_workers=0)"
    return Suspicion(
        f"The loader has {words}, and CPUs are idle", f.wait * 0.8, evidence, [f"workers={f.more_workers()}"]
    )


def numa(f: Facts) -> Suspicion | None:
    nodes = number(f.machine, "numa")
    if nodes < 2 or not (f.waits or f.share("copy") >= 0.05):
        return None
    return Suspicion(
        f"The script moves its data between {nodes:.0f} NUMA nodes", 0.05, [f"{nodes:.0f} NUMA nodes"], ["numa"]
    )


# ---------------------------------------------------------------- copies to the device


MEASURED = ("sync-copy", "unpinned", "host-sync")  # each also keeps the GPU from working: no launches wait in its queue


def working(f: Facts) -> float:
    """The part of the time for which kernels run, without copies; 0 if it is not known."""
    return max(0.0, number(f.run, "gpu", "busy") - f.share("copy"))


def copied(f: Facts) -> str:
    return f"copies to the GPU take {times(f.ms('copy'))} of a step of {times(f.step)}"


def unpinned(f: Facts) -> Suspicion | None:
    if not f.has_gpu or f.share("copy") < 0.03 or section(f.run, "copies").get("pinned") is not False:
        return None
    return Suspicion(
        "Batches are copied to the GPU from memory that is not pinned", f.share("copy"), [copied(f)], ["pin", "device"]
    )


def sync_copy(f: Facts) -> Suspicion | None:
    copies = section(f.run, "copies")
    if not f.has_gpu or f.share("copy") < 0.03 or not copies.get("pinned") or copies.get("non_blocking") is not False:
        return None
    title = "The script waits for every copy to the GPU: the copies block"
    # Copies that do not block overlap with Python. A GPU that is always busy gains nothing.
    share = max(0.0, min(f.share("copy"), 1 - working(f) - f.share("copy")))
    return Suspicion(title, share, [copied(f)], ["pin", "device"])


def float32_copy(f: Facts) -> Suspicion | None:
    copies = section(f.run, "copies")
    if not f.has_gpu or f.share("copy") < 0.05 or "float32" not in str(copies.get("dtype")):
        return None
    evidence = [copied(f), f"{size(number(copies, 'bytes'))} per step, four times the bytes of uint8"]
    return Suspicion("Images go to the GPU as float32", f.share("copy") * 0.75, evidence, ["device"])


# ---------------------------------------------------------------- the training itself


def gil(f: Facts) -> Suspicion | None:
    hot = items(f.run, "hot")
    taken = sum(number(h, "ms") for h in hot)
    if not f.step or taken < 0.1 * f.step:
        return None
    lines = [f"{at(h)}: {times(number(h, 'ms'))} per step" for h in hot[:3]]
    if busy := number(f.run, "cpu", "gil"):
        lines.append(f"the main thread runs Python code of the script {percent(busy)} of the time")
    title = f"Python in the training process is the limit: {at(hot[0])} takes {times(number(hot[0], 'ms'))} of a step"
    tries = [f"without={hot[0].get('name')}"]
    return Suspicion(f"{title} of {times(f.step)}", min(1.0, taken / f.step), lines, tries)


def sync_share(f: Facts) -> float:
    """The part of a step for which the host waits for values from the device, which could work meanwhile."""
    waited = sum(number(s, "ms") for s in items(f.run, "syncs")) / f.step if f.step else 0.0
    return max(0.0, min(waited, 1 - working(f)))


def host_sync(f: Facts) -> Suspicion | None:
    syncs, share = items(f.run, "syncs"), sync_share(f)
    if share < 0.05:
        return None
    lines = [
        f"{s.get('at')}: {times(number(s, 'ms'))} per step, {counted(int(number(s, 'calls')), 'call')}"
        for s in syncs[:3]
    ]
    title = f"The host waits for the device at {syncs[0].get('at')}: a value is read in every step"
    return Suspicion(title, share, lines, ["no-sync"])


def stall_rule(what: str, words: str) -> Callable[[Facts], Suspicion | None]:
    def find(f: Facts) -> Suspicion | None:
        stalls = [s for s in items(f.run, "stalls") if s.get("what") == what]
        taken = sum(number(s, "s") for s in stalls)
        whole = f.duration + taken
        if not whole or taken < 0.05 * whole:
            return None
        place = stalls[0].get("at")
        title = f"{words} takes {percent(taken / whole)} of the time" + (f" ({place})" if place else "")
        evidence = [f"{counted(len(stalls), 'pause')} of {taken / len(stalls):.2g} s"]
        return Suspicion(title, taken / whole, evidence, [f"no-{what}"])

    return find


def straggler(f: Facts) -> tuple[dict[str, Any], dict[str, Any], float] | None:
    """The rank that waits most for its data, the median one, and how much more of the time it waits."""
    all_ranks = sorted(items(f.run, "ranks"), key=lambda r: number(r, "wait_share"))
    if len(all_ranks) < 2:
        return None
    middle, worst = all_ranks[(len(all_ranks) - 1) // 2], all_ranks[-1]
    more = number(worst, "wait_share") - number(middle, "wait_share")
    return (worst, middle, more) if more >= 0.1 else None


def ranks(f: Facts) -> Suspicion | None:
    found = straggler(f)
    if found is None:
        return None
    worst, middle, more = found
    who = f"rank {worst.get('rank')}"
    shares = (percent(number(worst, "wait_share")), percent(number(middle, "wait_share")))
    title = f"All ranks wait for {who}: its loader is slower than that of the others"
    return Suspicion(
        title,
        more,
        [f"{who} waits for data {shares[0]} of the time, the median rank {shares[1]}"],
        ["fetch", *loaders(f)],
    )


def shapes(f: Facts) -> Suspicion | None:
    count = number(f.run, "shapes")
    if count < 4 or f.wait > 0.3:
        return None
    title = f"Batches have {count:.0f} different shapes, and each new shape is compiled or tuned again"
    return Suspicion(title, 0.3, [f"{count:.0f} shapes in {number(f.run, 'steps'):.0f} steps"], ["fixed-shapes"])


def launch_bound(f: Facts) -> Suspicion | None:
    gpu = section(f.run, "gpu")
    busy = number(gpu, "busy")
    if not f.has_gpu or not busy or busy > 0.7 or f.wait + f.share("copy") > 0.2:
        return None
    evidence = [f"a kernel runs {percent(busy)} of the time, although the script does not wait for data"]
    if kernels := number(gpu, "kernels"):
        evidence.append(f"{kernels:.0f} kernels per step, {times(f.step / kernels)} each")
    title = "The GPU waits for Python to launch its many small kernels"
    tries = ["compile", "cuda-graphs", "fused", "channels-last"]
    # While the host waits for a value, it launches nothing, which is another cause of an idle GPU.
    return Suspicion(title, max(0.05, 1 - busy - sync_share(f)), evidence, tries, after=MEASURED)


def optimizer(f: Facts) -> Suspicion | None:
    taken = number(f.run, "optimizer_ms", "mean") or number(f.run, "optimizer_ms", "median")
    if not f.step or taken < 0.1 * f.step:
        return None
    title = f"The optimizer's step takes {percent(taken / f.step)} of the time"
    return Suspicion(title, taken / f.step, [f"{times(taken)} of a step of {times(f.step)}"], ["fused"])


def communication(f: Facts) -> Suspicion | None:
    taken = number(f.run, "comm_ms", "mean") or number(f.run, "comm_ms", "median")
    if not f.step or taken < 0.15 * f.step or straggler(f):  # then the others wait for one rank, not for the exchange
        return None
    title = f"Exchanging gradients between the ranks takes {percent(taken / f.step)} of the time"
    return Suspicion(title, taken / f.step, [f"{times(taken)} of a step of {times(f.step)}"], ["local-gradients"])


def model(f: Facts) -> Suspicion | None:
    """The largest part of a step is the model, and the loader keeps up with it."""
    ceiling = f.rate_of(MODEL)
    if f.wait > 0.1 or f.crowded:
        return None
    where = "GPU" if f.has_gpu else "CPU"
    evidence = [f"waiting for data takes {percent(f.wait)} of the time"]
    if ceiling:
        evidence.append(f"{f.rate:.0f} samples/s, and {ceiling:.0f} if one batch is repeated")
    clock, top = (number(f.run, "gpu", name) for name in ("clock_mhz", "clock_max_mhz"))
    if clock and clock < 0.8 * top:
        evidence.append(f"the GPU runs at {clock:.0f} of {top:.0f} MHz: power or heat limits it")
    tries = ["amp-bf16", "tf32", "channels-last", "compile", "cudnn-benchmark", "fused"] if f.has_gpu else []
    proven = ["amp-bf16", "amp-fp16", "compile", "channels-last", "tf32", "cudnn-benchmark", "fused"]
    if f.m.get("framework") == "jax" and not f.run.get("jitted"):
        tries.append("jit")
    tries += [name for name in proven if run_of(f.m, name) and name not in tries]
    known = number(f.run, "gpu", "busy")  # where it is not, all that is not waiting
    share = max(0.05, working(f)) if known else 1 - f.wait
    return Suspicion(f"The model is the limit: it keeps the {where} busy", share, evidence, tries, after=MEASURED)


RULES = (
    Rule(13, "shared-memory", shared_memory),
    Rule(12, "worker-start", worker_start),
    Rule(17, "slow-samples", slow_samples),
    Rule(18, "cpu-quota", cpu_quota),
    Rule(11, "threads", threads),
    Rule(10, "many-workers", many_workers),
    Rule(8, "cold", cold, 1.2),
    Rule(7, "page-cache", page_cache),
    Rule(4, "storage-iops", storage_rule("iops")),
    Rule(5, "storage-bandwidth", storage_rule("bandwidth")),
    Rule(6, "storage-latency", storage_rule("latency")),
    Rule(3, "transform", transform),
    Rule(9, "few-workers", few_workers),
    Rule(20, "large-images", large_images),
    Rule(2, "decode", decode),
    Rule(15, "collate", collate),
    Rule(16, "pickling", pickling),
    Rule(21, "serial-fetch", serial_fetch),
    Rule(23, "sync-copy", sync_copy),
    Rule(22, "unpinned", unpinned),
    Rule(24, "float32-copy", float32_copy),
    Rule(28, "evaluation", stall_rule("evaluation", "Evaluation")),
    Rule(29, "checkpoint", stall_rule("checkpoint", "Writing checkpoints")),
    Rule(14, "gil", gil),
    Rule(27, "host-sync", host_sync),
    Rule(31, "shapes", shapes),
    Rule(30, "ranks", ranks),
    Rule(33, "communication", communication),
    Rule(32, "optimizer", optimizer),
    Rule(26, "launch-bound", launch_bound),
    Rule(19, "numa", numa),
    Rule(25, "model", model, 1.1),
)
