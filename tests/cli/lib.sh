# SPDX-License-Identifier: Apache-2.0
#
# lib.sh -- what the tests of the command share: a folder of their own, and words for what failed.
#
#     sh test_ls.sh /path/to/stoker        ends with 0, with 1 when something failed, with 77 when skipped
#
# shellcheck shell=sh
set -u
case ${1:-} in
'') echo "usage: sh $0 /path/to/stoker" >&2 && exit 2 ;;
/*) stoker=$1 ;;
*) stoker=$PWD/$1 ;;
esac
here=$(cd "$(dirname "$0")" && pwd) || exit 1
unset NO_COLOR STOKER_RANK
work=$(mktemp -d "${TMPDIR:-/tmp}/stoker-cli.XXXXXX") || exit 1
trap 'chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
STOKER_CACHE_DIR=$work/cache
export STOKER_CACHE_DIR
failures=0

fail() {
  failures=$((failures + 1))
  printf 'FAILED %s\n' "$*"
}

# ends CODE WORDS COMMAND...: runs it, output in out and err, and compares what it ends with.
ends() {
  want=$1 words=$2
  shift 2
  "$@" >out 2>err
  got=$?
  [ "$got" = "$want" ] && return 0
  fail "$words: ended with $got, not $want: $*"
  sed 's/^/    /' err | head -n 5
}

# says FILE PATTERN WORDS: the file has a line that matches.
says() {
  grep -qE -- "$2" "$1" && return 0
  fail "$3: nothing matches '$2' in $1:"
  sed 's/^/    /' "$1" | head -n 8
}

# same FILE FILE WORDS
same() {
  cmp -s "$1" "$2" && return 0
  fail "$3: $1 and $2 differ"
  diff "$1" "$2" | sed 's/^/    /' | head -n 6
}

# json FILE WORDS [EXPRESSION]: is one JSON document d of which the Python expression is true.
json() {
  if ! command -v python3 >/dev/null; then return 0; fi
  python3 -c '
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "${3:-True}" 2>json.err && return 0
  fail "$2: not so in the JSON: ${3:-valid}"
  tail -n 1 json.err | sed 's/^/    /'
  sed 's/^/    /' "$1" | head -n 5
}

# A small set of images in `photos`: 24 of 4 classes.
make_photos() {
  "$stoker" synth photos --samples 24 --classes 4 --size 96 --seed 3 >/dev/null 2>synth.err && return 0
  if grep -q 'not in this build' synth.err; then
    echo "skipped: $(cat synth.err)"
    exit 77
  fi
  fail "synth: $(cat synth.err)"
  finish
}

finish() {
  [ "$failures" = 0 ] && echo ok && exit 0
  exit 1
}
