# SPDX-License-Identifier: Apache-2.0
"""The text of explain(), and the table that a loader prints as."""

from __future__ import annotations

import os
from typing import Any

from . import _convert_set, _stoker
from ._rows import IterableFill
from ._types import counted


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


def _known(loader: Any) -> dict[str, str]:
    """Lines that replace the engine's: it does not know the dataset's name, nor that an iterable has no length."""
    fill, name = loader._given.fill, type(loader.dataset).__name__
    if isinstance(fill, IterableFill):
        return {"source": f"iterable {name}", "order": "that of the iterable"}
    return {"source": f"dataset {name}, {counted(len(loader.dataset), 'sample')}"} if fill else {}


def _engine(loader: Any) -> str:
    text, known = loader._engine.explain(), _known(loader)
    return "".join(
        line(word, known[word]) if (word := old.split()[0]) in known else old for old in text.splitlines(True)
    )


def _python(loader: Any) -> str:
    """What runs in Python, and how much time it takes."""
    stats, fill, functions = loader.stats(), loader._given.fill, loader._transform.functions
    text = ""
    for caller in functions:
        text += line("python", f"{caller.name} on each image: {caller.rule}")
    if functions:
        cost = f", {1e3 * stats.op_s / stats.samples:.3g} ms per image" if stats.samples and stats.op_s else ""
        text += line("", f"in Python, not in C{cost}; Stoker's own ops are faster")
    if fill:
        rule = "in order, one at a time" if isinstance(fill, IterableFill) else fill.caller.rule
        text += line("python", f"samples from {type(loader.dataset).__name__}: {rule}")
        if why := _convert_set.why_not(loader.dataset):
            text += line("", f"not read in C: {why}")
        if not isinstance(fill, IterableFill) and not fill.caller.rng and not fill.caller.parallel:
            text += line("", "parallel=True makes them in parallel, without seeding")
    return text


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


def _type(dtype: str, kind: str, beside: list[str]) -> str:
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
        for name, dtype, shape, kind, beside in loader._engine.fields()
    }
    fields = ", ".join(_field(field, about) for field in loader._form.names)
    text += line("batches", _batches(loader)) + line("fields", f"{fields}; as {loader._output}") + _ranks(loader)
    return (text + _python(loader)).rstrip()


def info() -> dict[str, Any]:
    """The version, the CPU, the codecs, and the threads and memory that a loader would use, as `stoker info` reports.

    >>> found = stoker.info()
    >>> found["version"] == stoker.__version__, found["threads"] >= 1, "jpeg" in found
    (True, True, True)
    """
    return _stoker.info()
