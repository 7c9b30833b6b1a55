# SPDX-License-Identifier: Apache-2.0
"""The what-ifs for a loader, as changes to the libraries that the script uses. models.py has those for the model."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import random
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import alone, describe, probe
from .hooks import after

DATA_LOADER, WORKER = "torch.utils.data.dataloader", "torch.utils.data._utils.worker"
THROUGH_STOKER: dict[str, dict[str, Any]] = {
    "stoker": {},
    "cache": {"cache": "dct"},
    "device": {"device": "cuda"},
}


class NotPossible(RuntimeError):
    """A what-if that does not fit this script."""


OF_TORCH = (*THROUGH_STOKER, "threads", "skip-slowest")  # change torch's DataLoader; so do those in the tables below
LOADER_WORDS = {
    "iterable": "an iterable that is marked with stoker.watch()",
    "stoker": "stoker.Loader",
    "tf.data": "tf.data",
    "keras": "the data of Keras",
    "webdataset": "a pipeline of WebDataset",
    "dali": "DALI",
}


def install(plan: dict[str, Any]) -> None:
    whole = str(plan.get("what_if") or "")
    name, _, value = whole.partition("=")
    if not name:
        return
    probe.at_open.append(functools.partial(_other_loader, name=name, value=value))
    if plan.get("reads_disk"):
        after(DATA_LOADER, _begin_with_storage)
    if name in THROUGH_STOKER:
        after(DATA_LOADER, functools.partial(_through_stoker, own=THROUGH_STOKER[name]))
    elif name in ARGUMENTS:
        after(DATA_LOADER, functools.partial(_arguments, change=functools.partial(ARGUMENTS[name], value=value)))
        if name == "pin":
            after("torch._tensor", _non_blocking)
    elif name == "without":
        after(DATA_LOADER, functools.partial(_before_iteration, change=lambda loader: leave_out(loader.dataset, value)))
        after(WORKER, functools.partial(_in_workers, name=value))
    elif name in DATASETS:
        after(DATA_LOADER, functools.partial(_before_iteration, change=DATASETS[name]))
    elif name in LOADERS:
        after(DATA_LOADER, functools.partial(_by_loader, make=LOADERS[name]))
    elif name == "fixed-shapes":
        probe.plan["fixed_shapes"] = True
    elif name in ("parallel", "jit"):
        from . import frameworks

        getattr(frameworks, name)()
    elif name == "skip-slowest":
        after("torch.utils.data._utils.fetch", functools.partial(_skip, fast=plan.get("fast") or []))
    elif name == "no-evaluation":
        probe.plan["one_of_others"] = probe.extra["applied"] = True
    elif name == "threads":
        after(DATA_LOADER, functools.partial(_arguments, change=_few_threads))
    elif name in ("no-checkpoint", "numa"):  # done in every what-if, or outside this process
        probe.extra["applied"] = True
    elif name == "next-epoch":  # see probe.opened()
        pass
    else:
        from . import models

        models.install(whole)


def is_target(loader: Any) -> bool:
    """Whether this is the loader that the run as it is found; without its place, any loader is."""
    at = (probe.plan.get("loader") or {}).get("at")
    return at is None or loader.__dict__.get("_doctor_at") == at


def is_of_torch(loader: Any) -> bool:
    """Whether it is torch's DataLoader, or derived from it."""
    return "_doctor_at" in getattr(loader, "__dict__", {})


def _other_loader(loop: probe.Loop, name: str, value: str) -> None:
    """Before the training loader is iterated first, if it is not torch's: leaves a function out, or says why not."""
    if is_of_torch(loop.thing) or probe.extra.get("applied"):  # the latter replaces a loader of torch
        return
    if name in OF_TORCH or name in ARGUMENTS or name in DATASETS or name in LOADERS:
        raise NotPossible(f"not supported for {LOADER_WORDS.get(loop.kind, loop.kind)}")
    if name == "without":
        leave_out(getattr(loop.thing, "dataset", None), value)
        probe.extra["applied"] = True


# ---------------------------------------------------------------- cold data


def _begin_with_storage(module: Any) -> None:
    original = module.DataLoader.__iter__

    def __iter__(self: Any) -> Any:
        if probe.is_watching() and not probe.is_worker():
            read_from_storage(self)
        return original(self)

    module.DataLoader.__iter__ = __iter__


def read_from_storage(loader: Any) -> None:
    """Evicts the files of the training loader once, if the run as it is read them from storage, too.

    That run has left them in the page cache, where any what-if would find them.
    """
    if probe.plan.get("reads_disk") and is_target(loader) and not loader.__dict__.get("_doctor_evicted"):
        object.__setattr__(loader, "_doctor_evicted", True)
        alone.evict(describe.files_of(getattr(loader, "dataset", None)))


# ---------------------------------------------------------------- Stoker


def _through_stoker(module: Any, own: dict[str, Any]) -> None:
    """Every loader of torch's iterates through Stoker's DataLoader."""
    original = module.DataLoader.__iter__

    def __iter__(self: Any) -> Any:
        if type(self).__module__.startswith("stoker.") or not probe.is_watching() or probe.is_worker():
            return original(self)
        other = self.__dict__.get("_doctor_stoker")
        if other is None:
            probe.depth += 1  # batches that are only compared are not steps
            try:
                other = _converted(self, own if is_target(self) else {})
            finally:
                probe.depth -= 1
            read_from_storage(self)
        return iter(other)

    module.DataLoader.__iter__ = __iter__


def _converted(loader: Any, own: dict[str, Any]) -> Any:
    other = import_module("stoker").DataLoader.from_torch(loader, **own)
    object.__setattr__(loader, "_doctor_stoker", other)
    object.__setattr__(other, "_doctor_at", loader.__dict__.get("_doctor_at"))
    if is_target(loader) and "explain" not in probe.extra:
        probe.extra["applied"] = True
        _compare(loader)
        probe.extra["explain"] = str(other.explain())
    return other


COMPARE_SECONDS = 1.5


def _compare(loader: Any) -> None:
    """Whether Stoker makes the same samples of this dataset; fields that are random cannot be compared."""
    try:
        module = import_module("stoker._compare")
        with import_module("stoker._seeds").generators_kept():
            t0 = probe.clock()
            loader.dataset[0]
            each = probe.clock() - t0
            few = max(3, min(16, int(COMPARE_SECONDS / 3 / max(each, 1e-6))))
            pixels, labels, count = module._parity(loader.dataset, module._keep, few)
    except Exception as error:  # the speed is worth knowing all the same
        probe.extra["compared"] = f"{type(error).__name__}: {error}"
        return
    probe.extra["compared"] = {"pixels": pixels, "labels": labels, "samples": count}
    if pixels is not None or labels is not None:
        probe.extra["same_result"] = not labels and (pixels is None or pixels < 0.2)


# ---------------------------------------------------------------- arguments of torch's DataLoader


def _arguments(module: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the arguments of the training loader when it is made."""
    original = module.DataLoader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        at = (probe.plan.get("loader") or {}).get("at")
        if at is None or probe.place() == at:
            given = dict(signature.bind(self, *args, **keywords).arguments)
            given.pop("self")
            change(given)
            probe.extra["applied"] = True
            original(self, **given)
        else:
            original(self, *args, **keywords)

    module.DataLoader.__init__ = __init__


def _workers(given: dict[str, Any], value: str) -> None:
    given["num_workers"] = int(value)
    if not int(value):
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            given.pop(name, None)


def _persistent(given: dict[str, Any], value: str) -> None:
    if not given.get("num_workers"):
        raise NotPossible("the loader has no workers")
    given["persistent_workers"] = True


def _pin(given: dict[str, Any], value: str) -> None:
    given["pin_memory"] = True


def _double(given: dict[str, Any], value: str) -> None:
    _resize_batch(given, 2.0)


def _half(given: dict[str, Any], value: str) -> None:
    _resize_batch(given, 0.5)


def _resize_batch(given: dict[str, Any], factor: float) -> None:
    if given.get("batch_sampler") is not None:
        sampler = given["batch_sampler"]
        if not hasattr(sampler, "batch_size"):
            raise NotPossible("the loader has a batch sampler of its own")
        sampler.batch_size = max(1, int(sampler.batch_size * factor))
        return
    given["batch_size"] = max(1, int((given.get("batch_size") or 1) * factor))


def _collate(given: dict[str, Any], value: str) -> None:
    if not given.get("collate_fn"):
        raise NotPossible("the loader has no collate_fn of the script")
    given["collate_fn"] = CheapCollate(given["collate_fn"])


class CheapCollate:
    """Stacks arrays as torch does. If that gives other batches than the script's function, repeats some of these."""

    KEPT = 2  # batches of each size: the first steps are not measured

    def __init__(self, function: Any) -> None:
        self.function = function
        self.stacks: bool | None = None
        self.kept: dict[int, list[Any]] = {}
        self.calls = 0

    def __call__(self, samples: list[Any]) -> Any:
        stack = import_module("torch.utils.data").default_collate
        if self.stacks:
            return stack(samples)
        kept = self.kept.setdefault(len(samples), [])
        if len(kept) < self.KEPT:
            kept.append(self.function(samples))
        if self.stacks is None:
            try:
                self.stacks = outline(stack(samples)) == outline(kept[0])
            except Exception:  # what torch cannot stack
                self.stacks = False
        self.calls += 1
        return copy.deepcopy(kept[self.calls % len(kept)])  # a script may change its batch


def outline(batch: Any) -> Any:
    """The structure of a batch: types, keys and shapes."""
    if hasattr(batch, "keys"):
        return {key: outline(batch[key]) for key in batch.keys()}
    if isinstance(batch, list | tuple):
        return [outline(one) for one in batch]
    return str(getattr(batch, "dtype", type(batch))), tuple(getattr(batch, "shape", ()))


def _few_threads(given: dict[str, Any]) -> None:
    """One thread per worker, for every library with a pool of its own."""
    given["worker_init_fn"] = _OneThread(given.get("worker_init_fn"))


class _OneThread:
    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, number: int) -> None:
        os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")})
        if self.function:
            self.function(number)
        cv2, pools, torch = (sys.modules.get(name) for name in ("cv2", "threadpoolctl", "torch"))
        if cv2:
            cv2.setNumThreads(0)
        if pools:
            pools.threadpool_limits(1)
        if torch:
            torch.set_num_threads(1)


ARGUMENTS: dict[str, Callable[..., None]] = {
    "workers": _workers,
    "persistent": _persistent,
    "pin": _pin,
    "batch*2": _double,
    "batch/2": _half,
    "collate": _collate,
}


def _non_blocking(module: Any) -> None:
    """Copies of tensors to a device do not block."""
    for name in ("to", "cuda"):
        original = getattr(module.Tensor, name)

        def call(self: Any, *args: Any, _original: Any = original, **keywords: Any) -> Any:
            if not self.is_cuda and self.is_pinned():
                at = next((i for i, one in enumerate(args) if isinstance(one, bool)), None)  # a second one is `copy`
                if at is None:
                    keywords["non_blocking"] = True
                else:
                    args = (*args[:at], True, *args[at + 1 :])
            return _original(self, *args, **keywords)

        setattr(module.Tensor, name, call)


# ---------------------------------------------------------------- the dataset


def _before_iteration(module: Any, change: Callable[[Any], None]) -> None:
    """Changes the dataset of the training loader before its workers start."""
    original = module.DataLoader.__iter__

    def __iter__(self: Any) -> Any:
        if probe.is_watching() and not self.__dict__.get("_doctor_changed") and is_target(self):
            object.__setattr__(self, "_doctor_changed", True)
            change(self)
            probe.extra["applied"] = True
        return original(self)

    module.DataLoader.__iter__ = __iter__


def unchanged(*values: Any, **keywords: Any) -> Any:
    """What a function that is left out returns: what it was given first."""
    return values[0] if values else None


def _in_workers(module: Any, name: str) -> None:
    """Workers that are not forked import the script anew, with all its functions."""
    original = module._worker_loop

    @functools.wraps(original)
    def _worker_loop(kind: Any, dataset: Any, *args: Any, **keywords: Any) -> None:
        try:
            leave_out(dataset, name)
        except NotPossible:  # it was left out before this worker was forked
            pass
        original(kind, dataset, *args, **keywords)

    module._worker_loop = _worker_loop


def leave_out(dataset: Any, name: str) -> None:
    """Replaces a transform, or a function of the user, by one that does nothing."""
    below = describe.inner(dataset)
    whole = describe.transform_of(below)
    several = getattr(whole, "transforms", None)
    found = False
    if isinstance(several, list | tuple):
        kept = [unchanged if describe.name_of(one) == name else one for one in several]
        found = unchanged in kept
        whole.transforms = type(several)(kept)
    classes = [type(below)]
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or probe.is_library(path):
            continue
        function = module.__dict__.get(name)
        classes += [one for one in module.__dict__.values() if inspect.isclass(one) and name in one.__dict__]
        if inspect.isfunction(function):
            if function.__code__.co_freevars:
                setattr(module, name, unchanged)
            else:  # also for references that the script has taken already, and that workers find by this name
                function.__code__ = unchanged.__code__
            found = True
    for one in classes:
        if inspect.isfunction(getattr(one, name, None)):
            setattr(one, name, lambda self, *values, **keywords: unchanged(*values))
            found = True
    if not found:
        raise NotPossible(f"{name} was not found in this run")


STORED = 64  # images


def _store_smaller(loader: Any) -> None:
    """Stores some images as large as they are needed, and reads only these; labels stay."""
    below = describe.inner(loader.dataset)
    samples = getattr(below, "samples", None)
    needed = (probe.plan.get("image") or {}).get("needed_width")
    if not needed or not isinstance(samples, list) or not describe.files_of(below):
        raise NotPossible("the dataset has no list of image files")
    images = import_module("PIL.Image")
    copies = []
    folder = os.path.join(probe.plan["scratch"], "smaller")
    os.makedirs(folder, exist_ok=True)
    for i, path in enumerate(describe.files_of(below)[:: max(1, len(samples) // STORED)][:STORED]):
        with images.open(path) as image:
            short = int(1.15 * needed)
            image.draft("RGB", (short, short))
            scale = short / min(image.size)
            size = [max(1, round(n * min(1.0, scale))) for n in image.size]
            copies.append(os.path.join(folder, f"{i}.jpg"))
            image.convert("RGB").resize(size).save(copies[-1], quality=90)
    below.samples = [(copies[i % len(copies)], *one[1:]) for i, one in enumerate(samples)]


KEPT, KEPT_SECONDS = 512, 3.0


class Kept:
    """Some samples of a dataset, instead of all of them."""

    def __init__(self, samples: list[Any], length: int) -> None:
        self.samples, self.length = samples, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Any:
        return self.samples[i % len(self.samples)]


def _keep_samples(loader: Any) -> None:
    """Fetches some samples before the first step, and none later."""
    dataset = loader.dataset
    n = len(dataset)
    samples, until = [], probe.clock() + KEPT_SECONDS
    for i in random.Random(0).sample(range(n), min(n, KEPT)):
        samples.append(dataset[i])
        if probe.clock() > until:
            break
    object.__setattr__(loader, "dataset", Kept(samples, n))  # torch refuses to change it


DATASETS: dict[str, Callable[[Any], None]] = {"resize": _store_smaller, "fetch": _keep_samples}


def _by_loader(module: Any, make: Callable[[Any, dict[str, Any]], tuple[Any, list[str]]]) -> None:
    """The training loader iterates through Stoker's Loader, which make() makes of a source and its arguments."""
    original = module.DataLoader.__iter__

    def __iter__(self: Any) -> Any:
        if not probe.is_watching() or probe.is_worker() or not is_target(self):
            return original(self)
        if "_doctor_loader" not in self.__dict__:
            object.__setattr__(self, "_doctor_loader", make(*_source_of(self)))
            probe.extra["applied"] = True
        other, files = self._doctor_loader
        if probe.plan.get("reads_disk"):
            alone.evict(files)
        return iter(other)

    module.DataLoader.__iter__ = __iter__


def _source_of(loader: Any) -> tuple[Any, dict[str, Any]]:
    """What a loader reads as a source of Stoker's, and its other arguments for stoker.Loader."""
    found, ops = import_module("stoker._convert_dataset").dataset(loader.dataset) or (None, None)
    if found is None or ops is None or ops.rest is not None or not loader.batch_size:
        raise NotPossible("Stoker does not read this dataset or its transforms itself")
    return found.source, {
        "transform": ops.ops,
        "batch_size": loader.batch_size,
        "shuffle": "Sequential" not in type(loader.sampler).__name__,
        "drop_last": loader.drop_last,
        "output": "torch",
    }


def _draft(source: Any, arguments: dict[str, Any]) -> tuple[Any, list[str]]:
    return import_module("stoker").Loader(source, fidelity="draft", **arguments), source.paths


PACKED = 1024  # samples


def _pack(source: Any, arguments: dict[str, Any]) -> tuple[Any, list[str]]:
    stoker = import_module("stoker")
    n = len(source)
    folder = os.path.join(probe.plan["scratch"], "packed")
    stoker.pack(source.subset(range(0, n, max(1, n // PACKED))), folder)
    packed = stoker.Source(folder)
    whole = packed.subset([i % len(packed) for i in range(n)])
    return stoker.Loader(whole, **arguments), [os.path.join(folder, name) for name in os.listdir(folder)]


LOADERS = {"draft": _draft, "pack": _pack}


def _skip(module: Any, fast: list[int]) -> None:
    """Only samples that are known not to be slow, instead of all."""
    if not fast:
        raise NotPossible("no sample was timed alone")
    probe.extra["applied"] = True
    original = module._MapDatasetFetcher.fetch

    def fetch(self: Any, index: Any) -> Any:
        if not isinstance(index, list):
            return original(self, fast[int(index) % len(fast)])
        return original(self, [fast[int(i) % len(fast)] for i in index])

    module._MapDatasetFetcher.fetch = fetch
