#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --device: the same bits in the memory of a GPU, which is a fake one where there is none
. "$(dirname "$0")/lib.sh"

make_photos
if "$stoker" info | grep -q 'GPU *this build of Stoker has no GPU path'; then
  ends 2 "no GPU path" "$stoker" checksum photos --ops "CenterCrop(32)" --device cuda
  says err 'nvcc was missing' "what to install"
  echo "skipped: this build has no GPU path"
  exit 77
fi
ends 3 "no GPU" env CUDA_VISIBLE_DEVICES= "$stoker" checksum photos --ops "CenterCrop(32)" --device cuda
says err 'GPU' "why there is none"
ends 2 "an unknown device" "$stoker" checksum photos --ops "CenterCrop(32)" --device gpu
says err 'device is "gpu"; it must be' "what a device is called"

if ! "$stoker" info | grep -q 'GPU *cuda:0'; then
  LD_LIBRARY_PATH=$(dirname "$stoker")/tests/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi
ends 0 "info" "$stoker" info --json
json out "info lists the GPUs" 'd["gpus"][0]["capability"] >= 75'
for layout in NCHW NHWC; do
  for dtype in float32 float16 bfloat16 uint8; do
    ops="RandomResizedCrop(31) | RandomHorizontalFlip"
    [ $dtype = uint8 ] || ops="$ops | Normalize"
    for device in cpu cuda; do
      ends 0 "$dtype $layout on $device" "$stoker" checksum photos --ops "$ops" --dtype $dtype --layout $layout \
        --shuffle --batch-size 5 --epochs 2 --device $device
      mv out $device
    done
    same cpu cuda "$dtype $layout"
  done
done
for sizes in pad list; do
  for dtype in float32 uint8; do
    for device in cpu cuda; do
      ends 0 "sizes=$sizes $dtype on $device" "$stoker" checksum photos --ops "Resize(41) | RandomHorizontalFlip" \
        --sizes $sizes --dtype $dtype --shuffle --batch-size 5 --epochs 2 --device $device
      mv out $device
    done
    same cpu cuda "sizes=$sizes $dtype"
  done
done
ends 0 "bench" "$stoker" bench photos --ops "CenterCrop(32)" --batch-size 8 --epochs 1 --device cuda --json
json out "bench counts the bytes over the bus" 'd["device"]["copied_bytes"] >= 24 * (32 * 32 * 3 + 8) and d["device"]["memory_bytes"] > 0'
finish
