#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh -- a demonstration: makes photos, lists and shows them, loads them with a plain loop and with Stoker, and
# trains a network on them.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
demo=$build/demo
photos=$demo/photos
stoker=$build/stoker

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
heading() { printf '\n%s%s%s\n\n' "$bold" "$*" "$plain"; }
# Runs a command and prints its output, indented. A failure ends the demo.
show() {
  "$@" >"$demo/printed"
  sed 's/^./  &/' "$demo/printed"
}

# The plain loop is in Python if Pillow is installed, otherwise in C.
if python3 -c 'import PIL, numpy' 2>/dev/null; then naive="python3 bench/naive.py"; else naive=$build/bench-naive; fi

mkdir -p "$demo"
heading "1. Two thousand photos in ten classes"
show "$stoker" synth "$photos" --samples 2000 --classes 10 --seed 1

heading "2. What the folder contains: stoker ls $photos"
show "$stoker" ls "$photos"

heading "3. What training will see: stoker show $photos"
show "$stoker" show "$photos" -o "$demo/sheet.png"

heading "4. The same work, done by a plain loop and by Stoker"
echo "  RandomResizedCrop(224) | RandomHorizontalFlip | Normalize -> float32 batches of 64"
echo
$naive "$photos" --take 800 --json >"$demo/naive.json"
"$stoker" bench "$photos" --epochs 3 --json >"$demo/stoker.json"
python3 tools/side_by_side.py "$demo/naive.json" "$demo/stoker.json"

heading "5. Training a small network for one epoch, in C"
echo "  fed by the plain loop:"
show "$build/train" "$photos" --naive "$naive $photos --serve --size 64 --batch-size 32"
echo "  fed by Stoker:"
show "$build/train" "$photos"
echo "  (crops and order differ, so compare the waiting times, not the losses)"

cat <<MSG

  Your own photos:  $stoker bench FOLDER
  In a C program:   examples/minimal.c, docs/c.md
MSG
