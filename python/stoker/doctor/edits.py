# SPDX-License-Identifier: Apache-2.0
"""A what-if as a change to the user's source: a unified diff, never an edit in place."""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path

from .facts import AS_IS, Measurement, run_of, section
from .remedies import IN_TENSORFLOW

# The source and the line of the loader. None or ValueError: it does not fit here, or is not known to be safe.
Edit = Callable[[str, int], str | None]


def lines_of(source: str) -> list[str]:
    """The lines as ast counts them: a form feed, at which str.splitlines() also splits, ends none.

    >>> lines_of("a\\x0cb\\nc")
    ['a\\x0cb\\n', 'c']
    """
    if "\r" in source.replace("\r\n", ""):
        raise ValueError("lines that end with a carriage return alone")
    return re.findall(r"[^\n]*\n|[^\n]+", source)


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
    lines = lines_of(source)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _span(source: str, node: ast.expr | ast.stmt) -> tuple[int, int]:
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
        if keyword.arg is None and not (isinstance(keyword.value, ast.Dict) and not keyword.value.keys):
            raise ValueError(f"{name} may be among **{ast.unparse(keyword.value)}")
    _, end = _span(source, call)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments:
        return f"{source[: end - 1]}{name}={value}{source[end - 1 :]}"
    last = max(_span(source, one)[1] for one in arguments)
    rest = source[last : end - 1]
    if "," in rest and "\n" in rest:  # an argument per line: add another line
        cut = last + rest.rindex("\n")
        line = source[:cut].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        return f"{source[:cut]}\n{indent}{name}={value},{source[cut:]}"
    return f"{source[:last]}, {name}={value}{source[last:]}"


SHORT = 5  # arguments before num_workers, which may also be given without their names


def _loader_call(source: str, line: int) -> ast.Call | None:
    """The DataLoader call that covers a line.

    None if several are on that line: it is not known which of them is slow.
    """
    here = [c for c in _calls(source, "DataLoader") if c.lineno <= line <= (c.end_lineno or c.lineno)]
    if len(here) != 1 or len(here[0].args) > SHORT or any(isinstance(one, ast.Starred) for one in here[0].args):
        return None
    return here[0]


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


def _torch_data(source: str) -> set[str]:
    """The names of torch.utils.data in a file."""
    found = {"torch.utils.data"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found |= {a.asname or a.name for a in node.names if module + a.name == "torch.utils.data"}
    return found


def stoker_import(source: str, line: int) -> str | None:
    """Takes DataLoader from stoker instead of torch."""
    call = _loader_call(source, line)
    if call is not None and isinstance(call.func, ast.Attribute):
        if ast.unparse(call.func.value) not in _torch_data(source):
            return None  # a loader of another library
        start, end = _span(source, call.func)
        return _with_import(source[:start] + "stoker.DataLoader" + source[end:], "import stoker")
    imports = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        and node.module == "torch.utils.data"
        and any(alias.name == "DataLoader" for alias in node.names)
    ]
    if len(imports) != 1:
        return None
    taken = [alias for alias in imports[0].names if alias.name == "DataLoader"]
    others = [alias for alias in imports[0].names if alias.name != "DataLoader"]
    changed = [f"from torch.utils.data import {', '.join(map(ast.unparse, others))}"] if others else []
    changed.append(f"from stoker import {', '.join(map(ast.unparse, taken))}")
    return _replace(source, imports[0], changed)


def _replace(source: str, node: ast.stmt, statements: list[str]) -> str:
    """The source with other statements instead of one. What else is on its lines stays."""
    start, end = _span(source, node)
    indent = source[:start].rpartition("\n")[2]
    rest = source[end:].partition("\n")[0].strip()
    alone = not indent.strip() and (not rest or rest.startswith("#"))
    return source[:start] + (f"\n{indent}" if alone else "; ").join(statements) + source[end:]


def _with_import(source: str, statement: str) -> str:
    """The source with an import after the first one of the file."""
    if re.search(rf"^{re.escape(statement)}$", source, re.M):
        return source
    first = next((n for n in ast.parse(source).body if _is_import(n)), None)
    if first is None:
        return f"{statement}\n{source}"
    lines = lines_of(source)
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


def non_blocking(ends: list[tuple[int, int]]) -> Edit:
    """Adds non_blocking=True to the calls that copied a tensor to the device. `ends`: where these calls end.

    No other .to() is changed. A copy to the host that does not block is read before it has arrived.
    """

    def edit(source: str, line: int) -> str | None:
        calls = {(c.end_lineno, c.end_col_offset): c for name in ("to", "cuda") for c in _calls(source, name)}
        found = [calls[end] for end in sorted(set(ends), reverse=True) if end in calls]
        if len(found) != len(set(ends)) or not all(map(_copies_to_device, found)):
            return None
        for call in found:  # the last first, so that the places of the others stay
            source = set_keyword(source, call, "non_blocking", "True")
        return source

    return edit


def _copies_to_device(call: ast.Call) -> bool:
    """Whether a call on one line may be given non_blocking: it names no CPU, and has only a device and a dtype."""
    if call.lineno != call.end_lineno or re.search(r"""["']cpu""", ast.unparse(call)):
        return False
    return not any(isinstance(a, ast.Starred) for a in call.args) and all(
        re.fullmatch(r"torch\.\w+", ast.unparse(a)) for a in call.args[1:]
    )


def copies(m: Measurement, path: str) -> list[tuple[int, int]] | None:
    """Where the calls in a file end that copy to the device and block. None: not all of them are known and there."""
    at = section(run_of(m, AS_IS), "copies").get("at")
    places = [re.fullmatch(r"(.+):(\d+):(\d+)", str(one)) for one in at or []]
    if at is None or not all(place and place[1] == path for place in places):
        return None
    return [(int(place[2]), int(place[3])) for place in places if place]


def compiled(statement: str) -> Edit:
    """Adds a statement after the assignment to `model`, or after the last of several that follow one another."""

    def edit(source: str, line: int) -> str | None:
        bodies = [
            [one for one in body if _assigns_model(one)]
            for node in ast.walk(ast.parse(source))
            for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            if isinstance(body, list)
        ]
        found = [body for body in bodies if body]
        if len(found) != 1:  # in branches or functions, of which one may not run
            return None
        last = found[0][-1]
        return _insert(source, last.end_lineno or last.lineno, last.col_offset, statement)

    return edit


def _assigns_model(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == ["model"]


def _insert(source: str, after: int, column: int, statement: str) -> str:
    lines = lines_of(source)
    return "".join([*lines[:after], " " * column + statement + "\n", *lines[after:]])


def after_torch(statement: str) -> Edit:
    """Adds a statement after the imports of the file."""

    def edit(source: str, line: int) -> str | None:
        imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
        if not any(alias.name == "torch" for n in imports if isinstance(n, ast.Import) for alias in n.names):
            return None
        return _insert(source, max(n.end_lineno or n.lineno for n in imports), 0, f"\n{statement}")

    return edit


OPTIMIZERS = ("AdamW", "Adam", "SGD")


def fused(source: str, line: int) -> str | None:
    """All optimizers of the file, as in the what-if."""
    changed = source
    for name in OPTIMIZERS:
        for index in range(len(_calls(source, name))):
            call = _calls(changed, name)[index]
            if any(keyword.arg in ("foreach", "differentiable") for keyword in call.keywords):
                return None  # which torch refuses beside fused
            changed = set_keyword(changed, call, "fused", "True")
    return changed


EDITS: dict[str, Edit] = {
    "stoker": stoker_import,
    "cache": then(keyword(cache='"dct"'), stoker_import),
    "device": then(keyword(device='"cuda"'), stoker_import),
    "persistent": keyword(persistent_workers="True"),
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
    if name == "pin" and (ends := copies(m, path)) is not None:
        edit = then(non_blocking(ends), keyword(pin_memory="True"))
    if m.get("framework") == "tensorflow" and name in IN_TENSORFLOW:  # which is another change
        return None
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
    except (OSError, ValueError, SyntaxError):  # not readable, not UTF-8, outside the folder, not safe
        return None
    return unified(source, changed, short)


def unified(before: str, after: str, path: str) -> str:
    """A diff that marks a last line without a newline, and the end of a path with a space, as patch expects it."""
    name = f"{path}\t" if " " in path else path
    lines = difflib.unified_diff(lines_of(before), lines_of(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
