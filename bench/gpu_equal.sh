#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_equal.sh -- compares batches of the CPU and of a GPU, for every device_work, dtype and layout.
#
#     bench/gpu_equal.sh BUILD/stoker PHOTOS [FOLDER...]    folders with odd and damaged JPEGs, if there are any
#
# Prints the cases that differ, and a count for every device_work. Exits with 1 if any case differs. A case that the CPU
# cannot read proves nothing, so it is counted apart.
set -u
stoker=$1 photos=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
crop="RandomResizedCrop(224) | RandomHorizontalFlip"

# A case per line: source, options, ops.
{
  for layout in NCHW NHWC; do
    printf '%s\t%s\t%s\n' "$photos" "--epochs 2 --shuffle --dtype uint8 --layout $layout" "$crop"
    for dtype in float16 bfloat16 float32; do
      printf '%s\t%s\t%s\n' "$photos" "--epochs 2 --shuffle --dtype $dtype --layout $layout" "$crop | Normalize"
    done
  done
  printf '%s\t%s\t%s\n' "$photos" "--epochs 2 --dtype uint8 --cache dct" "$crop"
  printf '%s\t%s\t%s\n' "$photos" "--dtype uint8" "Resize(256) | CenterCrop(224)"
  printf '%s\t%s\t%s\n' "$photos" "--dtype uint8" "RandomResizedCrop(128, interpolation=bicubic) | RandomVerticalFlip"
  printf '%s\t%s\t%s\n' "$photos" "--dtype uint8" "Resize((60, 300), interpolation=lanczos)"
  printf '%s\t%s\t%s\n' "$photos" "--dtype uint8" "CenterCrop(96) | RandomHorizontalFlip(p=1)"
  for folder in "$@"; do
    printf '%s\t%s\t%s\n' "$folder" "--epochs 2 --dtype uint8 --on-error skip --max-bad 1" \
      "RandomResizedCrop(100) | RandomHorizontalFlip"
  done
} >"$dir/cases"

failed=0
for work in none idct decode; do
  equal=0 differ=0 unread=0
  while IFS=$(printf '\t') read -r source options ops; do
    # shellcheck disable=SC2086 # options are a list of words
    host=$("$stoker" checksum "$source" --batch-size 64 $options --ops "$ops" 2>&1) ||
      { unread=$((unread + 1)); continue; }
    # shellcheck disable=SC2086
    device=$("$stoker" checksum "$source" --batch-size 64 $options --ops "$ops" --device cuda --device-work $work 2>&1)
    if [ "$host" = "$device" ]; then
      equal=$((equal + 1))
    else
      differ=$((differ + 1)) failed=1
      printf 'differs, device_work=%s: %s %s "%s": %.150s\n' $work "$source" "$options" "$ops" "$device"
    fi
  done <"$dir/cases"
  echo "device_work=$work: $equal equal, $differ differ, $unread unread"
done
exit $failed
