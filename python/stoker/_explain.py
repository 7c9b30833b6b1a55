# SPDX-License-Identifier: Apache-2.0
"""The text of explain(), and the table that a loader prints as."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _convert_dataset, _stoker
from ._convert_hub import function_of
from ._converted import name_of
from ._deferred import has_getitems, is_hub
from ._rows import IterableFill
from ._types import counted

LIBRARIES = ("torch", "torchvision", "timm", "albumentations", "datasets", "stoker")


def line(name: str, words: str) -> str:
    """A line of the table.

    >>> line("ranks", "0 of 1")
    'ranks      0 of 1\\n'
    """
    return f"{name:<10} {words}\n"


class Text(str):
    """A string that a notebook shows as print does.

    >>> Text("one\\ntwo")
    one
    two
    """

    def __repr__(self) -> str:
        return str(self)


def place_of(thing: Any) -> str:
    """Where the user's function, method or dataset is, in brackets; "" for code of libraries.

    >>> place_of(len), place_of(os.path.join).startswith(" (")
    ('', True)
    """
    thing = getattr(thing, "lambd", thing)  # torchvision's Lambda
    kind = type(thing)
    for one in (thing, getattr(kind, "__getitem__", None), vars(kind).get("__call__")):
        code = getattr(getattr(one, "__func__", one), "__code__", None)
        if code is not None and str(one.__module__).partition(".")[0] not in LIBRARIES:
            return f" ({os.path.relpath(code.co_filename)}:{code.co_firstlineno})"
    return ""


def _known(loader: Any) -> dict[str, str]:
    """Lines that replace the engine's: it does not know the dataset's name, nor that an iterable has no length."""
    fill, name = loader._given.fill, type(loader.dataset).__name__
    if isinstance(fill, IterableFill):
        return {"source": f"iterable {name}", "order": "that of the iterable"}
    known = {"source": f"dataset {name}, {counted(len(loader.dataset), 'sample')}"} if fill else {}
    if loader._sampled:
        known["order"] = f"given by the {sampler_name(loader)}{_length(loader)}, seed {loader._options['seed']}"
    return {**known, **loader.known}


def sampler_name(loader: Any) -> str:
    """The sampler or batch sampler of a loader, in words."""
    sampler = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    return f"sampler, a {type(sampler).__name__}"


def _length(loader: Any) -> str:
    try:
        return f", {counted(len(loader), 'batch')} per epoch"
    except TypeError:  # a sampler may have no length
        return ""


def _engine(loader: Any) -> str:
    text, known = loader._engine.explain(), _known(loader)
    return "".join(
        line(word, known[word]) if (word := old.split()[0]) in known else old for old in text.splitlines(True)
    )


def _where(loader: Any) -> str:
    """Where Python code runs."""
    way = loader._way
    if way.processes:
        where = f"in {counted(way.processes, 'process')}"
    else:
        where = "in the calling thread" if way.here else "in threads"
    return f"{where}: {way.why}" if way.why else where


def _python(loader: Any) -> str:
    """What runs in Python, where, and how much time it takes."""
    stats, fill, functions = loader.stats(), loader._given.fill, loader._transform.functions
    text = "".join(function_lines(caller.function, caller.rule) for caller in functions)
    if functions and stats.samples and stats.op_s:
        text += line("", f"{1e3 * stats.op_s / stats.samples:.3g} ms per image")
    if fill:
        rule = "in order, one at a time" if isinstance(fill, IterableFill) else fill.caller.rule
        text += line("python", f"samples from {type(loader.dataset).__name__}{place_of(loader.dataset)}: {rule}")
        if why := _convert_dataset.why_not(loader.dataset):
            text += line("", f"not read in C: {why}")
    return text + line("processes", _where(loader)) if text else text


def function_lines(function: Any, rule: str) -> str:
    """A function on images, and the ops that follow it."""
    text = line("python", f"{name_of(function)}{place_of(function)} on each image: {rule}")
    text += "".join(line("", f"no op for {why}") for why in getattr(function, "why", ()))
    ops = getattr(function, "text", "")
    return text + (line("", f"followed by {ops}, in C") if ops else "")


def _ranks(loader: Any) -> str:
    return line("ranks", f"{loader._ranks.rank} of {loader._ranks.world_size}: {loader._ranks.why}")


def _left_out(loader: Any) -> str:
    """Columns of a table that cannot be read, if no fields were requested."""
    table = loader._given.table
    return line("left out", "; ".join(table.refused)) if table and table.refused and not loader._wanted else ""


def explain(loader: Any) -> str:
    output = f"{loader._output}, {', '.join(loader._form.names)}"
    return _engine(loader) + _ranks(loader) + line("output", output) + _left_out(loader) + _python(loader)


def _place(loader: Any) -> str:
    state = loader.state_dict()
    return f"in epoch {state['epoch']}" + (
        f", after {counted(state['position'], 'sample')}" if state["position"] else ""
    )


def _batches(loader: Any) -> str:
    if isinstance(loader._given.fill, IterableFill):
        return f"of {counted(loader.batch_size, 'sample')}, in the order of the iterable; {_place(loader)}"
    a = loader._arguments
    order = "shuffled" if a["shuffle"] else "drawn by weight" if a["weights"] is not None else "in order"
    if "mix" in loader._options:
        order += ", sources mixed"
    if loader._sampled:
        order = "in the sampler's order"
    words = [order] if loader.batch_size is None else [f"each of {counted(loader.batch_size, 'sample')}", order]
    try:
        words.insert(0, f"{len(loader)} per epoch")
    except TypeError:  # a sampler may have no length
        pass
    return f"{', '.join(words)}; {_place(loader)}"


def _type(dtype: str, kind: str, beside: Sequence[str]) -> str:
    """The type of a field in words.

    >>> _type("uint8", "text", ["offsets"]), _type("int64", "tensor", ["lengths"]), _type("int64", "int", [])
    ('text', 'padded int64', 'int64')
    """
    if kind in ("text", "bytes", "json"):
        return kind
    return f"{'padded' if 'lengths' in beside else 'ragged'} {dtype}" if beside else dtype


def _field(name: str, about: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    dtype, shape = about.get(name, ("", ()))
    sides = f"({', '.join(str(n) if n else '?' for n in shape)})" if 0 in shape else str(shape)
    return " ".join(word for word in (name, dtype, sides if shape else "") if word)


def table(loader: Any) -> str:
    """The table that a loader prints as: source, ops, batches, fields and ranks."""
    name, source = type(loader).__name__, loader.dataset
    if loader._handle is None or loader._inherited:
        return f"{name}({source!r}), {'closed' if loader._handle is None else 'opened before fork()'}"
    where = f"{os.fspath(source)}: " if isinstance(source, (str, os.PathLike)) else ""
    text = line(name, where + _engine(loader).partition("\n")[0].removeprefix("source").strip())
    if loader._transform.text:
        text += line("ops", loader._transform.text)
    about = {
        name: (_type(dtype, kind, beside), () if beside else shape)
        for name, (dtype, shape, kind, beside) in loader._form.about.items()
    }
    fields = ", ".join(_field(field, about) for field in loader._form.names)
    text += line("batches", _batches(loader)) + line("fields", f"{fields}; as {loader._output}") + _ranks(loader)
    return (text + _python(loader)).rstrip()


# ---------------------------------------------------------------- DataLoader


def drop_in(loader: Any) -> str:
    """What explain() of a DataLoader prints."""
    name = type(loader.dataset).__name__
    if loader.is_iterable:
        where = counted(loader.num_workers, "process") if loader.num_workers else "the calling thread"
        return line("dataset", f"{name}, an iterable: torch's own code reads it, in {where}")
    if loader.native:
        return _drop_in_engine(loader)
    size = f", {counted(len(loader.dataset), 'sample')}" if hasattr(loader.dataset, "__len__") else ""
    if loader._partly is not None:
        text = line("dataset", f"{name}{size}: images are read and decoded in C, {_beside(loader)}")
        text += _parts(loader._partly.parts)
    else:
        why = _convert_dataset.why_not(loader.dataset) or "the calling program's own code makes the samples"
        text = line("dataset", f"{name}{size}, in Python: {why}")
    return text + line("order", order_of(loader)) + _workers(loader)


def in_short(loader: Any) -> str:
    """What a DataLoader does in C, and what in Python, in a few words."""
    if loader.is_iterable:
        return "samples made by the iterable, in Python"
    if not loader.native:
        partly = loader._partly is not None
        return "read and decoded in C, the rest in Python" if partly else "samples made by the dataset, in Python"
    if loader._tensors:
        return "tensors read in C"
    rest = loader._rest
    return f"read and decoded in C, {rest.__name__} in Python" if rest else "read, decoded and transformed in C"


def python_of(loader: Any) -> str:
    """The user's code of a DataLoader, and where it is."""
    functions = [] if loader._rest is None else list(loader._rest.functions)
    if loader.native:
        functions += [loader.collate_fn] if loader._collates else []
    words = [name_of(f) + place_of(f) for f in functions]
    words = words or [f"{type(loader.dataset).__name__}.__getitem__{place_of(loader.dataset)}"]
    return ", ".join(words) + ("" if loader.num_workers else ", one at a time")


def python_in(loader: Any) -> str:
    """The user's code of a Loader, and where it is; "" without any."""
    fill, functions = loader._given.fill, loader._transform.functions
    callers = ([fill.caller] if fill else []) + functions
    words = [name_of(c.function) + place_of(c.function) for c in callers]
    if fill:
        dataset = type(loader.dataset).__name__
        words[0] = f"{dataset}{'' if isinstance(fill, IterableFill) else '.__getitem__'}{place_of(loader.dataset)}"
    alone = loader._way.here or isinstance(fill, IterableFill)
    return ", ".join(words) + (", one at a time" if alone else "") if words else ""


def _beside(loader: Any) -> str:
    if is_hub(loader.dataset) and (function := function_of(loader.dataset)):
        return f"the other columns, and {name_of(function)}{place_of(function)} on placeholders, in Python"
    return f"the other code of {type(loader.dataset).__name__}{place_of(loader.dataset)} runs in Python"


def _parts(parts: list[Any]) -> str:
    """The steps of a transform whose functions are called by Python."""
    steps = [f"{p.text} in C" if hasattr(p, "text") else name_of(p) + place_of(p) for p in parts]
    return line("transform", ", then ".join(step for step in steps if step != " in C"))


def order_of(loader: Any) -> str:
    """The order of a DataLoader, its length, and where its random numbers come from."""
    sampler, ours = loader.sampler, type(loader.batch_sampler).__module__.startswith("torch.")
    kind = type(sampler).__name__ if loader.batch_sampler is None or ours else type(loader.batch_sampler).__name__
    words = {"SequentialSampler": "as listed", "RandomSampler": "shuffled, as torch's RandomSampler does"}
    text = words.get(kind, f"given by the {kind}") + _length(loader)
    if loader.seed is not None:
        return f"{text}; random numbers come from seed={loader.seed}"
    of = "torch's global generator" if loader.generator is None else "the given generator"
    return f"{text}; random numbers come from {of}"


def _workers(loader: Any) -> str:
    """Where the Python code of a DataLoader runs."""
    if not loader.num_workers:
        return line("workers", "none: in the calling thread, one sample at a time")
    if handle := loader._shared_handle():
        return line("workers", f"1 process: {handle}, which several processes cannot share")
    processes = counted(loader.num_workers, "process")
    seeded = "batch" if not loader.native and has_getitems(loader._rows) else "sample"
    return line("workers", f"{processes}, each batch made by one of them; every {seeded} has its own seed")


def _drop_in_engine(loader: Any) -> str:
    engine = loader._engine_to_explain()
    engine.known = {"order": order_of(loader)}
    text = explain(engine)
    if loader._in_processes:
        text = _only(text, {"source", "ops", "fidelity", "order", "python"})
    if loader._beside is not None:
        where = "in the worker processes" if loader._in_processes else "in the calling thread"
        words = getattr(loader._beside, "words", "") or _beside(loader)
        text += line("samples", f"{words}, {where}")
    if loader._collates:
        text += line("collate_fn", f"{name_of(loader.collate_fn)}{place_of(loader.collate_fn)}, in Python")
    if loader._in_processes:
        text += _workers(loader)
        return text + line("", "each of them reads, decodes and transforms in C before and after the functions")
    if loader.num_workers:
        threads = counted(loader.num_workers, "thread")
        text += line("workers", f"num_workers={loader.num_workers}: {threads} of this process")
    return text + "".join(line("not used", words) for words in loader._not_used())


def _only(text: str, words: set[str]) -> str:
    """The lines that begin with these words, and those that continue them.

    >>> _only("source a\\n   b\\nthreads 2\\n   c\\n", {"source"})
    'source a\\n   b\\n'
    """
    kept, keep = "", False
    for one in text.splitlines(True):
        keep = keep if one.startswith(" ") else one.split()[0] in words
        kept += one if keep else ""
    return kept


def info() -> dict[str, Any]:
    """The version, the CPU, the codecs, and the threads and memory that a loader would use, as `stoker info` reports.

    >>> found = stoker.info()
    >>> found["version"] == stoker.__version__, found["threads"] >= 1, "jpeg" in found
    (True, True, True)
    """
    return _stoker.info()
