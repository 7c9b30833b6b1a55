# SPDX-License-Identifier: Apache-2.0
"""python -m stoker.doctor: the doctor for a training script."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from . import report, report_html, runner, tensorboard, trace
from .examine import Examination, Options, progress_words
from .facts import AS_IS, finite, items
from .remedies import REMEDIES
from .scratch import ENDS, Scratch

HELP = """usage: stoker doctor [options] SCRIPT.py [arguments of the script]
       stoker doctor [options] -- COMMAND ...      e.g. -- torchrun --nproc-per-node 2 train.py
       stoker doctor compare BEFORE.json AFTER.json
       stoker doctor DATA [--need N]               a dataset; see: stoker doctor --help

Runs the unchanged script several times, for about a minute in total, finds by experiment what it waits for, tries the
remedy, and prints one verdict: the cause, the change, and the gain that was measured. Files that its Python code writes
in its folder go to a temporary folder; what cannot be redirected is named after the first run.

  1. as it is         3. the loader alone, and its parts
  2. the model alone  4. the what-ifs that prove the cause

options, before SCRIPT.py:
  --seconds N      time for all runs, not counting the script's imports (60)
  --steps N        end every run after N steps
  --try NAMES      run these what-ifs, too: all, or a list such as stoker,workers=4,amp-bf16,compile
  --json [FILE]    print the measurements as JSON, or write them
  --html FILE      write a report for the browser
  --trace FILE     write a timeline for Perfetto
  --tensorboard DIR  write scalars for TensorBoard
  --apply          write the change as doctor.patch; apply it with: git apply doctor.patch
  --help           print this

Loaders of PyTorch, TensorFlow, WebDataset, DALI and Stoker are recognised. For any other iterable:

    for batch in stoker.watch(my_batches):

In a notebook or a running program: with stoker.doctor(): ...

exit status: 0 nothing to gain; 1 something to gain, an alarm, or a failed script; 2 wrong arguments; 3 a system error;
130 interrupted, and nothing to gain so far
"""

VALUES = ("--seconds", "--steps", "--html", "--trace", "--tensorboard", "--try")
USAGE, MACHINE, INTERRUPTED = 2, 3, 130
PATCH = Path("doctor.patch")


class UsageError(Exception):
    """Wrong arguments."""


def parse(words: list[str]) -> tuple[dict[str, Any], list[str], bool]:
    """The options, the words of the command, and whether these are a command rather than a script.

    >>> parse(["--seconds", "30", "train.py", "--lr", "0.1"])
    ({'seconds': '30'}, ['train.py', '--lr', '0.1'], False)
    >>> parse(["--json", "--", "torchrun", "train.py"])
    ({'json': '-'}, ['torchrun', 'train.py'], True)
    """
    options: dict[str, Any] = {}
    words = list(words)
    while words:
        word = words[0]
        if word == "--":
            return options, words[1:], True
        if not word.startswith("-"):
            return options, words, False
        words.pop(0)
        name, equals, value = word.partition("=")
        if name in VALUES:
            if not equals:
                if not words:
                    raise UsageError(f"{name} needs a value")
                value = words.pop(0)
            options[name[2:]] = value
        elif name == "--json":
            if not equals and words and words[0].endswith(".json"):
                value = words.pop(0)
            options["json"] = value or "-"
        elif name == "--apply":
            options["apply"] = True
        elif name in ("--help", "-h"):
            options["help"] = True
        else:
            raise UsageError(f"unknown option {name}; options of the script come after its name")
    return options, [], False


def positive(options: dict[str, Any], name: str, kind: type) -> Any:
    """A number of an option, or None."""
    if name not in options:
        return None
    try:
        value = kind(options[name])
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise UsageError(f"--{name} takes a number above 0, not {options[name]!r}")
    return value


def names_of(text: str | None) -> list[str] | None:
    """The what-ifs of --try; `all` includes every other name.

    >>> names_of("all,stoker"), names_of("stoker,stoker,workers=4")
    (['all'], ['stoker', 'workers=4'])
    """
    names = [name for name in (text or "").split(",") if name]
    for name in names:
        word, _, value = name.partition("=")
        with_value = (word == "workers" and value.isdigit()) or (word == "without" and value)
        if not with_value and name != "all" and name not in REMEDIES:
            others = "all, workers=N, without=FUNCTION"
            raise UsageError(f"--try: unknown what-if {name!r}; there are: {others}, {', '.join(REMEDIES)}")
    return ["all"] if "all" in names else list(dict.fromkeys(names)) or None


def check_files(options: dict[str, Any]) -> None:
    """Before minutes of measuring: whether everything that was asked for can be written."""
    for name in ("json", "html", "trace", "tensorboard"):
        path = Path(options.get(name) or "-")
        if str(path) == "-":
            continue
        folder = path.parent
        if name == "tensorboard":
            folder = next(one for one in (path, *path.absolute().parents) if one.exists())  # the others are made
        elif path.is_dir():
            raise UsageError(f"--{name} {path}: this is a folder")
        if not folder.is_dir():
            raise UsageError(f"--{name} {path}: there is no folder {folder}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"--{name} {path}: no permission to write there")
    if options.get("apply"):
        if PATCH.exists():
            raise UsageError(f"--apply: {PATCH} exists; apply or remove it first")
        if not os.access(".", os.W_OK):
            raise UsageError(f"--apply: no permission to write {PATCH} into this folder")


class Progress:
    """A line per run on stderr; on a terminal it counts the seconds."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.last = 0.0

    def __call__(self, name: str, seconds: float, run: Any) -> None:
        words = progress_words(name, run)
        if run is not None:
            print(f"{self._clear()}doctor: {words}", file=sys.stderr, flush=True)
        elif self.live and time.monotonic() - self.last > 0.4:
            self.last = time.monotonic()
            print(f"{self._clear()}doctor: {words} ... {seconds:.0f} s", end="", file=sys.stderr, flush=True)

    def _clear(self) -> str:
        return "\r\033[K" if self.live else ""


def warn(words: str) -> None:
    print(f"doctor: {words}", file=sys.stderr, flush=True)


def command_of(words: list[str], is_command: bool) -> list[str]:
    if not words:
        raise UsageError("no script was given; write: stoker doctor train.py")
    if is_command:
        if shutil.which(words[0]) is None:
            raise UsageError(f"{words[0]}: command not found; check PATH")
        return words
    if not Path(words[0]).is_file():
        raise UsageError(f"{words[0]}: file not found")
    return [sys.executable, *words]


def print_any_name() -> None:
    """Names of files may not be UTF-8, or not have the characters of the terminal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main(arguments: list[str]) -> int:
    print_any_name()
    try:
        if arguments[:1] == ["compare"]:
            return compare(arguments[1:])
        options, words, is_command = parse(arguments)
        if options.get("help") or not arguments:
            print(HELP, end="")
            return 0
        command = command_of(words, is_command)
        tries = names_of(options.get("try"))
        seconds = positive(options, "seconds", float) or 60.0
        steps = positive(options, "steps", int)
        check_files(options)
    except UsageError as error:
        print(f"stoker doctor: {error}; see: python -m stoker.doctor --help", file=sys.stderr)
        return USAGE
    runner.adopt_orphans()
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, interrupt)
    try:
        with Scratch() as folder:
            given = Options(command, words, seconds, steps, tries, folder, Progress(), warn)
            examination, interrupted = Examination(given), False
            try:
                document = examination.all()
            except KeyboardInterrupt:
                print("\ndoctor: interrupted; this is what is known so far", file=sys.stderr)
                examination.document["interrupted"] = interrupted = True
                document = examination.judged()
    except OSError as error:
        print(f"stoker doctor: cannot use {error.filename or 'the scratch folder'}: {error.strerror}", file=sys.stderr)
        return MACHINE
    try:
        write(document, options)
    except OSError as error:
        print(f"stoker doctor: cannot write {error.filename or 'the report'}: {error.strerror}", file=sys.stderr)
        return MACHINE
    failed_words(document, examination.stderr)
    return report.exit_code(document) or (INTERRUPTED if interrupted else 0)


def interrupt(number: int, frame: object) -> None:
    """What is known so far is printed; a second signal must not stop the cleaning up."""
    for one in ENDS:
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


def failed_words(document: dict[str, Any], stderr: str) -> None:
    """The script's own traceback, if it failed."""
    base = next((run for run in items(document, "runs") if run.get("name") == AS_IS), {})
    if base.get("status", "ok") != "ok" and stderr.strip():
        print("\nThe end of what the script wrote to stderr:\n", file=sys.stderr)
        print("\n".join(stderr.rstrip().splitlines()[-40:]), file=sys.stderr)


def write(document: dict[str, Any], options: dict[str, Any]) -> None:
    """The report in all forms that were asked for."""
    words = json.dumps(finite(document), indent=1, allow_nan=False) + "\n"
    if options.get("json") == "-":
        print(words, end="")
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = min(120, max(60, shutil.get_terminal_size((80, 24)).columns)) if sys.stdout.isatty() else 80
        print(report.text(document, color, width), end="")
        if options.get("json"):
            Path(options["json"]).write_text(words)
            print(f"\nwrote {options['json']}")
    for name, module in (("html", report_html), ("trace", trace), ("tensorboard", tensorboard)):
        if options.get(name):
            module.write(document, options[name])
            print(f"wrote {options[name]}", file=sys.stderr)
    if options.get("apply"):
        try:
            text = report.patch(document)
        except LookupError as error:
            print(f"stoker doctor: {error}", file=sys.stderr)
        else:
            PATCH.write_text(text, encoding="utf-8", errors="backslashreplace")
            print(f"wrote {PATCH}; apply it with: git apply {PATCH}", file=sys.stderr)


def compare(words: list[str]) -> int:
    if len(words) != 2:
        raise UsageError("compare takes two files: BEFORE.json AFTER.json")
    from . import compare as module

    return module.main(*words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
