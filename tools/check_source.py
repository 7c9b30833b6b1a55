# SPDX-License-Identifier: Apache-2.0
"""Checks the sources: layering, foreign headers, banned functions, lengths, words.

    check_source.py FILE...        prints `file:line: what is wrong`; exits with 1 if anything is
"""

import re
import sys
from pathlib import Path

STAGES = ("order", "format", "source", "read", "decode", "transform", "batch", "cache", "cuda")
ALSO = {"source": ("format/",), "batch": ("order/",)}  # what a stage may include besides base/ and itself
CLI_BASE = ("base/json.h", "base/nearest.h")  # parts of the engine that the command links by itself
FUNCTION_LINES, FILE_LINES, SRC_LINES = 100, 700, 500  # longer is an error; SRC_LINES: of a file in src/
API_LINES = 1000  # of stoker.h, which is the whole public API
FUNCTION_MUCH, FILE_MUCH = 60, 450  # longer is a warning
COLUMNS, PARAGRAPH = 120, 6  # the width of a line; the lines of a paragraph of docs/design.md

# Headers of C, POSIX, Linux and the compiler; every other <header> belongs to a foreign library.
SYSTEM = set(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic"
    " stdbool stddef stdint stdio stdlib stdnoreturn string strings threads time uchar wchar wctype dirent dlfcn fcntl"
    " fnmatch ftw getopt glob libgen poll pthread pwd sched semaphore spawn termios unistd utime cpuid"
    " immintrin".split()
)
SYSTEM_FOLDERS = ("sys/", "linux/", "sanitizer/", "mach/")
# Headers that come with another one of the same library.
KIN = {"jerror.h": "jpeglib.h", "jmorecfg.h": "jpeglib.h"}
# The only library with two files: together, its reader and its writer exceed SRC_LINES.
TWO_FILES = {"jpeglib.h": {"jpeg_turbo.c", "jpeg_turbo_write.c"}}

BANNED = "strcpy strcat sprintf vsprintf gets atoi atol atoll atof strtok alloca tmpnam mktemp rand srand".split()
PRODUCT_BANNED = "system popen".split()  # in all but tests
LIBRARY_BANNED = (
    "exit _exit abort printf fprintf vfprintf vprintf puts fputs putchar perror signal sigaction setlocale".split()
)

WORDS = re.compile(
    r"\b(TODO|FIXME|XXX)\b|(?i:\b(sessions?|helpers?|workplace|issue #?\d+)\b)|(?<![\w.])/(work|root)/"
)

errors = 0


def say(path: Path, line: int, what: str, warning: bool = False) -> None:
    global errors
    errors += not warning
    print(f"{path}:{line}: {'warning: ' if warning else ''}{what}")


def bare(text: str) -> str:
    """The code without comments and the content of strings, lines kept."""

    def blank(m: re.Match[str]) -> str:
        return "\n" * m[0].count("\n") if m[0].startswith("/") else '""'

    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def may_include(path: Path, name: str) -> bool:
    """Whether this file may include "name"."""
    top = path.parts[0]
    if (name == "stoker.h" and top != "sheet") or top in ("tests", "fuzz", "bench", "include"):
        return True
    if top == "sheet":
        return "/" not in name and (path.parent / name).exists()
    if top == "cli" and name in CLI_BASE:
        return True
    if top in ("cli", "python", "examples"):
        return "/" not in name and ((path.parent / name).exists() or Path("sheet", name).exists())
    folder = path.parts[1] if len(path.parts) > 2 else ""
    if folder in ("", "pack"):
        return True
    return name.startswith(("base/", *ALSO.get(folder, ()))) or (folder in STAGES and name.startswith(folder + "/"))


def is_foreign(name: str) -> bool:
    return name != "stoker.h" and name.removesuffix(".h") not in SYSTEM and not name.startswith(SYSTEM_FOLDERS)


def check_includes(path: Path, text: str, users: dict[str, set[Path]]) -> None:
    for n, line in enumerate(text.splitlines(), 1):
        if m := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            if not may_include(path, m[1]):
                say(path, n, f'may not include "{m[1]}": see CONTRIBUTING.md')
        elif (m := re.match(r"\s*#\s*include\s+<([^>]+)>", line)) and is_foreign(m[1]):
            if path.parts[0] in ("tests", "fuzz", "bench") or (path.parts[0], m[1]) == ("python", "Python.h"):
                continue
            if path.suffix == ".h" or path.parts[0] != "src":
                say(path, n, f"a foreign header, <{m[1]}>, belongs into one .c file of src/")
            library = KIN.get(m[1], m[1]).split("/")[0]
            users.setdefault(library, set()).add(path)


def check_functions(path: Path, code: str) -> None:
    banned = BANNED + (PRODUCT_BANNED if path.parts[0] != "tests" else [])
    banned = banned + (LIBRARY_BANNED if path.parts[0] in ("src", "include") else [])
    pattern = re.compile(r"\b(" + "|".join(banned) + r")\s*\(")
    start = 0
    for n, line in enumerate(code.splitlines(), 1):
        for m in pattern.finditer(line):
            say(path, n, f"{m[1]}() is banned here")
        if line == "{":
            start = n
        elif line == "}" and start:
            length = n - start + 1
            if length > FUNCTION_MUCH:
                say(path, start, f"a function of {length} lines", warning=length <= FUNCTION_LINES)
            start = 0


def check_c(path: Path, text: str, users: dict[str, set[Path]]) -> None:
    lines = text.splitlines()
    if lines[:1] != ["/* SPDX-License-Identifier: Apache-2.0 */"]:
        say(path, 1, "the first line is not the SPDX line")
    test = path.parts[:2] == ("tests", "unit")  # its name says what it is, and it may be long
    if not test and (len(lines) < 3 or not lines[2].startswith(f" * {path.name} -- ")):
        say(path, 3, f'the file does not open with "{path.name} -- what it is"')
    most = {"src": SRC_LINES, "include": API_LINES}.get(path.parts[0], FILE_LINES)
    if len(lines) > FILE_MUCH:
        say(path, len(lines), f"{len(lines)} lines", warning=test or len(lines) <= most)
    for n, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            say(path, n, f"{len(line)} columns; {COLUMNS} at most")
        if re.match(r" \*.*\. \([2-9]\) ", line):
            say(path, n, "an item of a list is not at the start of its line")
    check_includes(path, text, users)
    check_functions(path, bare(text))


# A file that a document names: below the root, or below src/ where it begins with a folder of src/.
NAMED = re.compile(r"`((?:[a-z]+/)+[a-z0-9_]+\.(?:c|h|py|sh))`")


def check_named(path: Path, n: int, line: str) -> None:
    """Documents name files that exist: names in capitals stand for any."""
    for name in NAMED.findall(line):
        if not Path(name).exists() and not Path("src", name).exists():
            say(path, n, f"there is no {name}")


def check_document(path: Path, text: str) -> None:
    """Lines and paragraphs are short. Tables and code are as wide as they must be."""
    code, paragraph = False, 0
    for n, line in enumerate(text.split("\n"), 1):
        check_named(path, n, line)
        code ^= line.lstrip().startswith("```")
        if code or line.lstrip().startswith(("|", "```")):
            paragraph = 0
            continue
        if len(line) > COLUMNS:
            say(path, n, f"{len(line)} columns; {COLUMNS} at most")
        begins = line.startswith(("-", "#")) or line[:1].isdigit()
        paragraph = 0 if not line else 1 if begins else paragraph + 1
        if paragraph == PARAGRAPH + 1 and path.name == "design.md":
            say(path, n, f"a paragraph of more than {PARAGRAPH} lines")


def check_text(path: Path, text: str) -> None:
    for n, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            say(path, n, "white space at the end of the line")
        if "\t" in line and path.name != "Makefile":
            say(path, n, "a tab")
        if path.name != "check_source.py" and (m := WORDS.search(line)):
            say(path, n, f"not for this place: {m[0]!r}")
    if text and not text.endswith("\n"):
        say(path, text.count("\n") + 1, "no newline at the end")
    if path.suffix in (".py", ".sh") or path.name in ("Makefile", "meson.build", "meson_options.txt"):
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in text.splitlines()[:2]):
            say(path, 1, "no SPDX line")


def main() -> int:
    users: dict[str, set[Path]] = {}
    for name in sys.argv[1:]:
        path = Path(name)
        raw = path.read_bytes()
        if b"\0" in raw or path.parts[:2] == ("fuzz", "seeds") or path.name == "LICENSE":
            continue
        text = raw.decode(errors="replace")
        check_text(path, text)
        if path.suffix == ".md":
            check_document(path, text)
        if path.suffix in (".c", ".h"):
            check_c(path, text, users)
    for library, paths in users.items():
        first, *others = sorted(paths)
        if others and {p.name for p in paths} != TWO_FILES.get(library):
            say(others[0], 1, f"<{library}> is already used by {first}: one foreign library, one file")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
