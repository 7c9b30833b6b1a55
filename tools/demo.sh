#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh -- Stoker at work: photos are made, listed, shown, loaded by a plain loop and by Stoker, and trained on.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
demo=$build/demo
photos=$demo/photos
stoker=$build/stoker

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
heading() { printf '\n%s%s%s\n\n' "$bold" "$*" "$plain"; }
# Runs a command and shows what it prints, indented; a failure ends the demo.
show() {
  "$@" >"$demo/printed"
  sed 's/^./  &/' "$demo/printed"
}

# The plain loop is Python with Pillow where there is one, and the same in C otherwise.
if python3 -c 'import PIL, numpy' 2>/dev/null; then naive="python3 bench/naive.py"; else naive=$build/bench-naive; fi

mkdir -p "$demo"
heading "1. Two thousand photos in ten classes"
show "$stoker" synth "$photos" --samples 2000 --classes 10 --seed 1

heading "2. What is in the folder: stoker ls $photos"
show "$stoker" ls "$photos"

heading "3. What training will see: stoker show $photos"
show "$stoker" show "$photos" -o "$demo/sheet.png"

heading "4. One job, done by a plain loop and by Stoker"
echo "  RandomResizedCrop(224) | RandomHorizontalFlip | Normalize -> float32 batches of 64"
echo
$naive "$photos" --take 800 --json >"$demo/naive.json"
"$stoker" bench "$photos" --epochs 3 --json >"$demo/stoker.json"
python3 tools/side_by_side.py "$demo/naive.json" "$demo/stoker.json"

heading "5. Training a small network on it, in C, for one epoch"
echo "  fed by the plain loop:"
show "$build/train" "$photos" --naive "$naive $photos --serve --size 64 --batch-size 32"
echo "  fed by Stoker:"
show "$build/train" "$photos"
echo "  (other crops, another order: the waiting is to be compared, not the loss)"

cat <<MSG

  Your own photos:  $stoker bench FOLDER
  In a C program:   examples/minimal.c, docs/c.md
MSG
