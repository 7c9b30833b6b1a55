#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bench.sh -- measures the stages, the whole path, the index, the codecs and the package, as in docs/performance.md.
#
#     tools/bench.sh [BUILD [PHOTOS]]     default for PHOTOS: $STOKER_TEST_DATA/photos, else 1,000 synthetic photos
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
photos=${2:-}
if [ -z "$photos" ] && [ -d "${STOKER_TEST_DATA:-}/photos" ]; then photos=$STOKER_TEST_DATA/photos; fi
if [ -z "$photos" ]; then
  photos=$build/bench-photos
  [ -d "$photos" ] || "$build/stoker" synth "$photos" --samples 1000 --classes 10 --seed 1
fi

"$build/bench-stages" "$photos"
echo
python3 bench/figures.py "$build" "$photos"
if [ -x .venv/bin/python ] && .venv/bin/python -c 'import PIL' 2>/dev/null; then
  echo
  .venv/bin/python bench/decode.py "$build" "$photos"
fi
if [ -x .venv/bin/python ] && .venv/bin/python -c 'import stoker' 2>/dev/null; then
  echo
  .venv/bin/python bench/package.py "$build/stoker" "$photos"
fi
