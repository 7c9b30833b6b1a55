#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh -- `stoker verify` over every folder of pictures in the test data: bad files are named, and nothing
# crashes, hangs or takes more memory than it was given.
#
#     verify.sh /path/to/stoker
set -u
stoker=$1
corpus=${STOKER_TEST_DATA:-/nonexistent}/corpus
[ -d "$corpus" ] || { echo "skipped: verify_corpus: no test data (STOKER_TEST_DATA)" && exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
failed=0

# Folders that have a picture in them; `files:` takes them as they are, with all that is below.
for folder in $(find "$corpus" -type f \( -iname '*.jp*g' -o -iname '*.png' -o -iname '*.webp' \) -exec dirname {} + | sort -u); do
  timeout 120 "$stoker" verify "files:$folder" --memory 1G --threads 2 >"$out" 2>&1
  code=$?
  case $code in
  0 | 1) ;;
  *)
    failed=$((failed + 1))
    echo "$folder: ended with $code"
    tail -n 5 "$out"
    ;;
  esac
done
[ $failed = 0 ]
