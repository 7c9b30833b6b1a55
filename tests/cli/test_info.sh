#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker info
. "$(dirname "$0")/lib.sh"

ends 0 "info" "$stoker" info
says out '^stoker [0-9]' "the version"
says out 'threads +[0-9]+, because ' "the threads, and why"
says out 'JPEG|PNG|WebP' "the codecs"
says out 'TFRecord' "the sources"
if grep -q 'libjpeg-turbo 2' out; then
  says out 'progressive images with missing scans can differ from Pillow 13' "what an old libjpeg-turbo does otherwise"
else
  ! grep -q 'Pillow' out || fail "a difference from Pillow that is none"
fi
says out 'HDF5' "all of them"
says out "cache +.*cache" "the cache folder"
ends 0 "info --json" "$stoker" info --json
json out "info" 'd["threads"] >= 1 and d["memory_bytes"] > 0 and set(d["codecs"]) == {"jpeg", "png", "webp"} and d["cpu"]["in_use"] in d["cpu"]["has"]'
LOCAL_WORLD_SIZE=8 ends 0 "eight ranks" "$stoker" info
says out 'memory .* shared by 8 ranks' "memory is shared by the ranks of a machine"
if command -v taskset >/dev/null && taskset -c 0 true 2>/dev/null; then
  ends 0 "one CPU" taskset -c 0 "$stoker" info --json
  json out "one CPU" 'd["threads"] == 1'
fi
# libhdf5 is not safe with damaged files: the command reads HDF5 without it.
if command -v ldd >/dev/null; then
  ends 0 "libraries" ldd "$stoker"
  ! grep -q libhdf5 out || fail "libhdf5 is among the libraries"
fi
finish
