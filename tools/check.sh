#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check.sh -- everything that a script can check: formatting, layering, symbols, banned functions, words.
#
#     tools/check.sh [BUILD]     prints `file:line: what is wrong`; the exit status is 1 if a check failed
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
PATH=$PWD/.venv/bin:$PATH
wrong=0

note() { printf 'not checked: %s\n' "$*"; }
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done; }

# ---------------------------------------------------------------- formatting: other versions format differently
format=
for f in clang-format-14 clang-format; do
  case $($f --version 2>/dev/null) in *" 14."*) format=$f && break ;; esac
done
if [ -n "$format" ]; then
  files '*.c' '*.h' | xargs -n 50 -P "$(nproc)" "$format" --dry-run --Werror 2>&1 | grep ' error: ' |
    sed 's/:\([0-9]*\):[0-9]*: error:.*/:\1: not formatted (clang-format 14)/' | sort -u | grep . && wrong=1
else
  note "formatting, because clang-format 14 is missing (tools/setup.sh lint)"
fi

# ---------------------------------------------------------------- sources
files '*.c' '*.h' '*.py' '*.sh' '*.md' '*.txt' .ci/run Makefile meson.build '*/meson.build' |
  xargs python3 tools/check_source.py || wrong=1

for f in $(files '*.sh' .ci/run); do sh -n "$f" || wrong=1; done
if command -v shellcheck >/dev/null; then
  files '*.sh' .ci/run | xargs shellcheck --severity=warning --format=gcc || wrong=1
fi
if command -v ruff >/dev/null; then
  ruff check --quiet --no-cache --output-format concise $(files '*.py') || wrong=1
  # shellcheck disable=SC2046 # a list of words
  ruff format --quiet --no-cache --check $(files 'python/*.py') || { echo "python/: not formatted (ruff format)"; wrong=1; }
fi
if ! command -v mypy >/dev/null; then
  note "types of the Python package, because mypy is missing (tools/setup.sh lint)"
elif ! python3 -c 'from importlib.util import find_spec; exit(not (find_spec("torch") and find_spec("jax")))'; then
  note "types of the Python package, because torch or jax is missing (tools/setup.sh frameworks)"
else
  mypy --no-error-summary python/stoker || wrong=1
fi

# ---------------------------------------------------------------- the library as built
library=$build/libstoker.so
if [ -f "$library" ]; then
  nm -D --defined-only "$library" | awk '$3 !~ /^stk_/ { print "'"$library"': exports " $3 "; stk_ only"; bad = 1 }
    END { exit bad }' || wrong=1
  # The wheel's command contains the library: a name defined by both would silently be the command's for both. The
  # parts that the command shares with the library are the same code.
  shared=$build/libshared_parts.a # listed twice, so that only names of the two others are counted exactly twice
  both=$(for of in "$build/libinside.a" "$build/stoker" "$shared" "$shared"; do
    nm -g --defined-only "$of" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u
  done | sort | uniq -c | awk '$1 == 2 { print $2 }')
  [ -z "$both" ] || { echo "cli/: the library also defines" $both; wrong=1; }
  # Mutable globals: what the objects have in .data or .bss. Tables of constants are in .rodata or .data.rel.ro.
  find "$build" -name 'src_*.c.o' -print0 | xargs -0 -r size -A | awk '
    / :$|:$/ { object = $1 }
    /^\.(data|bss|tdata|tbss)(\.[a-z_0-9]+)? / && !/^\.data\.rel\.ro/ && $2 > 0 {
      print object ": " $2 " bytes in " $1 "; the library has no mutable globals"; bad = 1 }
    END { exit bad }' || wrong=1
else
  note "exported symbols, because $library is missing (make)"
fi

[ $wrong != 0 ] || echo "checks passed"
exit $wrong
