# SPDX-License-Identifier: Apache-2.0
"""A what-if as a change to the user's source: a unified diff, never an edit in place."""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path

from .facts import Measurement, section

Edit = Callable[[str, int], str | None]  # the source and the line of the loader; None: it does not fit here


def _calls(source: str, name: str) -> list[ast.Call]:
    """Calls of a function or class of this name, whatever module it is reached through."""
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", None) == name or getattr(node.func, "id", None) == name)
    ]


def _offset(source: str, line: int, column: int) -> int:
    """Position in the text; ast counts columns in bytes of UTF-8."""
    lines = source.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _span(source: str, node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return _offset(source, node.lineno, node.col_offset), _offset(source, node.end_lineno, node.end_col_offset)


def set_keyword(source: str, call: ast.Call, name: str, value: str) -> str:
    """The source with one keyword of a call set.

    >>> source = "loader = DataLoader(ds, 32)\\n"
    >>> set_keyword(source, _calls(source, "DataLoader")[0], "num_workers", "4")
    'loader = DataLoader(ds, 32, num_workers=4)\\n'
    """
    for keyword in call.keywords:
        if keyword.arg == name:
            start, end = _span(source, keyword.value)
            return source[:start] + value + source[end:]
    _, end = _span(source, call)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments:
        return f"{source[: end - 1]}{name}={value}{source[end - 1 :]}"
    last = max(_span(source, one)[1] for one in arguments)
    rest = source[last : end - 1]
    if "," in rest and "\n" in rest:  # an argument per line: add another line
        cut = last + rest.rindex("\n")
        line = source[:cut].splitlines()[-1]
        indent = line[: len(line) - len(line.lstrip())]
        return f"{source[:cut]}\n{indent}{name}={value},{source[cut:]}"
    return f"{source[:last]}, {name}={value}{source[last:]}"


def _loader_call(source: str, line: int) -> ast.Call | None:
    """The DataLoader call that covers a line; the only one there is, where no line is known.

    None if several are on that line: it is not known which of them is slow.
    """
    calls = [*_calls(source, "DataLoader")]
    here = [c for c in calls if c.lineno <= line <= (c.end_lineno or c.lineno)] or calls
    return here[0] if len(here) == 1 else None


def keyword(**values: str) -> Edit:
    """Sets keywords of the loader's call."""

    def edit(source: str, line: int) -> str | None:
        for name, value in values.items():
            call = _loader_call(source, line)
            if call is None:
                return None
            source = set_keyword(source, call, name, value)
        return source

    return edit


OF_WORKERS = {
    "persistent_workers": "False",
    "prefetch_factor": "None",
    "multiprocessing_context": "None",
    "timeout": "0",
}


def workers(count: str) -> Edit:
    """Sets num_workers; without workers, also resets what torch refuses then."""

    def edit(source: str, line: int) -> str | None:
        call = _loader_call(source, line)
        given = {one.arg for one in call.keywords} if call and count == "0" else set()
        reset = {name: value for name, value in OF_WORKERS.items() if name in given}
        return keyword(num_workers=count, **reset)(source, line)

    return edit


def stoker_import(source: str, line: int) -> str | None:
    """Takes DataLoader from stoker instead of torch."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.module != "torch.utils.data":
            continue
        taken = [alias for alias in node.names if alias.name == "DataLoader"]
        others = [alias for alias in node.names if alias.name != "DataLoader"]
        if taken:
            changed = [f"from torch.utils.data import {', '.join(map(ast.unparse, others))}"] if others else []
            changed.append(f"from stoker import {', '.join(map(ast.unparse, taken))}")
            return _replace(source, node, changed)
    call = _loader_call(source, line)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    start, end = _span(source, call.func)
    return _with_import(source[:start] + "stoker.DataLoader" + source[end:], "import stoker")


def _replace(source: str, node: ast.stmt, statements: list[str]) -> str:
    """The source with other statements instead of one that fills its lines."""
    lines, indent = source.splitlines(keepends=True), " " * node.col_offset
    return "".join([*lines[: node.lineno - 1], *(f"{indent}{s}\n" for s in statements), *lines[node.end_lineno :]])


def _with_import(source: str, statement: str) -> str:
    """The source with an import after the first one of the file."""
    if re.search(rf"^{re.escape(statement)}$", source, re.M):
        return source
    first = next((n for n in ast.parse(source).body if _is_import(n)), None)
    if first is None:
        return f"{statement}\n{source}"
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: first.lineno - 1], statement + "\n", *lines[first.lineno - 1 :]])


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")


def then(*edits: Edit) -> Edit:
    def edit(source: str, line: int) -> str | None:
        for one in edits:
            changed = one(source, line)
            if changed is None:
                return None
            source = changed
        return source

    return edit


def non_blocking(source: str, line: int) -> str | None:
    """Every .to(device) and .cuda() of a tensor that is not the model does not block."""
    for name in ("to", "cuda"):
        for index in range(len(_calls(source, name))):
            call = _calls(source, name)[index]
            target = ast.unparse(call.func)
            if isinstance(call.func, ast.Attribute) and not re.search(r"model|net|criterion|loss", target, re.I):
                source = set_keyword(source, call, "non_blocking", "True")
    return source


def compiled(statement: str) -> Edit:
    """Adds a statement after the last assignment to `model`."""

    def edit(source: str, line: int) -> str | None:
        assigned = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == ["model"]
        ]
        if not assigned:
            return None
        last = max(assigned, key=lambda node: node.lineno)
        return _insert(source, last.end_lineno or last.lineno, last.col_offset, statement)

    return edit


def _insert(source: str, after: int, column: int, statement: str) -> str:
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:after], " " * column + statement + "\n", *lines[after:]])


def after_torch(statement: str) -> Edit:
    """Adds a statement after the imports of the file."""

    def edit(source: str, line: int) -> str | None:
        imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
        if not any(alias.name == "torch" for n in imports if isinstance(n, ast.Import) for alias in n.names):
            return None
        return _insert(source, max(n.end_lineno or n.lineno for n in imports), 0, f"\n{statement}")

    return edit


def fused(source: str, line: int) -> str | None:
    for name in ("AdamW", "Adam", "SGD"):
        if calls := _calls(source, name):
            return set_keyword(source, calls[0], "fused", "True")
    return None


EDITS: dict[str, Edit] = {
    "stoker": stoker_import,
    "cache": then(keyword(cache='"dct"'), stoker_import),
    "device": then(keyword(device='"cuda"'), stoker_import),
    "persistent": keyword(persistent_workers="True"),
    "pin": then(keyword(pin_memory="True"), non_blocking),
    "compile": compiled("model = torch.compile(model)"),
    "cuda-graphs": compiled('model = torch.compile(model, backend="cudagraphs")'),
    "tf32": after_torch('torch.set_float32_matmul_precision("high")'),
    "cudnn-benchmark": after_torch("torch.backends.cudnn.benchmark = True"),
    "fused": fused,
}


def diff(m: Measurement, name: str, folder: str | os.PathLike[str] = ".") -> str | None:
    """The what-if `name` as a unified diff of the file that makes the loader, or None if it cannot be one.

    Paths in it are relative to `folder`, for `git apply` and `patch -p1`.
    """
    path, _, line = str(section(m, "loader").get("at") or "").rpartition(":")
    word, _, value = name.partition("=")
    edit = workers(value) if word == "workers" else EDITS.get(name)
    if not edit or not path or not line.isdigit():
        return None
    root = Path(folder).resolve()
    file = (root / path).resolve()
    try:
        source = file.read_bytes().decode()
        changed = edit(source, int(line))
        if changed is None or changed == source:
            return None
        ast.parse(changed)
        short = file.relative_to(root).as_posix()
    except (OSError, ValueError, SyntaxError):  # not readable, not UTF-8, outside the folder, not Python
        return None
    return unified(source, changed, short)


def unified(before: str, after: str, path: str) -> str:
    """A diff that marks a last line without a newline as patch expects it."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
