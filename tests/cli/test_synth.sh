#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker synth
. "$(dirname "$0")/lib.sh"
make_photos
# The names and bytes of all images below a folder.
bytes() { (cd "$1" && find . -name '*.*g' -o -name '*.webp' | sort | while read -r f; do echo "$f $(cksum <"$f")"; done); }

bytes photos >first
[ "$(wc -l <first)" = 24 ] || fail "24 images"
[ "$(find photos -mindepth 1 -maxdepth 1 -type d | wc -l)" = 4 ] || fail "4 classes"
for t in 1 3; do
  ends 0 "threads $t" "$stoker" synth t$t --samples 24 --classes 4 --size 96 --seed 3 --threads $t
  bytes t$t >again
  same first again "the same bytes with $t threads"
done
ends 0 "another seed" "$stoker" synth other --samples 24 --classes 4 --size 96 --seed 4
bytes other >again
cmp -s first again && fail "another seed gives other images"
ends 0 "verify" "$stoker" verify photos

ends 0 "again" "$stoker" synth photos --samples 24 --classes 4 --size 96 --seed 3
says out '24 images in 4 classes, all written already' "nothing is made twice"
rm "$(find photos -name '*_000007.jpg')"
ends 0 "what is missing" "$stoker" synth photos --samples 24 --classes 4 --size 96 --seed 3
says out ': 1 of 24 images in 4 classes' "only what is missing is made"
bytes photos >again
same first again "what was missing is the same"

ends 2 "other options" "$stoker" synth photos --samples 6 --classes 2 --size 64
says err '24 images made with other options' "other options"
bytes photos >again
same first again "other options touch nothing"
ends 0 "fewer" "$stoker" synth photos --samples 6 --classes 2 --size 64 --force
[ "$(find photos -name '*.jpg' | wc -l)" = 6 ] || fail "what other settings made is gone"
mkdir mine && echo x >mine/file
ends 2 "a folder of somebody else's" "$stoker" synth mine
says err 'not empty' "a folder of somebody else's"
ends 0 "--force" "$stoker" synth mine --samples 4 --classes 2 --size 64 --force --json
json out "synth" 'd["made"] == 4 and d["output"] == "mine"'
[ -f mine/file ] || fail "other files are left alone"

ends 0 "fewer samples than classes" "$stoker" synth five --samples 5 --classes 10 --size 32
says out '5 of 5 images in 5 classes' "fewer samples than classes"
ends 3 "a file in the way" "$stoker" synth mine/file/deep
ends 2 "too many classes" "$stoker" synth many --classes 5000
ends 2 "no samples" "$stoker" synth none --samples 0
ends 2 "an unknown format" "$stoker" synth x --format jepg
says err 'did you mean jpeg' "the nearest format"

"$stoker" synth mixed --samples 40 --classes 4 --size 48 --format mixed >out 2>err
if ! grep -q 'not in this build' err; then
  ends 0 "a mixed set" "$stoker" ls mixed --json
  json out "a mixed set" 'all(d["formats"][f] > 0 for f in ("JPEG", "PNG", "WebP")) and d["bad"] == 0 and d["samples"] == 40'
  ends 0 "a mixed set is good" "$stoker" verify mixed
fi
find . -name '*.tmp' | grep -q . && fail "temporary files are left"
if [ "$(id -u)" != 0 ]; then
  mkdir closed && chmod 500 closed
  ends 3 "a folder that may not be written" "$stoker" synth closed
fi
finish
