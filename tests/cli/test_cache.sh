# SPDX-License-Identifier: Apache-2.0
#
# test_cache.sh -- stoker cache: what is kept, and deleting it; --cache of the other commands.
#
# shellcheck shell=sh source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

ends 0 "nothing yet" "$stoker" cache ls
says out 'nothing is cached there' "an empty folder"
ends 0 "off" "$stoker" cache ls --cache-dir off
says out 'off: nothing is cached' "off"
ends 2 "without a word" "$stoker" cache
says err 'stoker cache ls\|clear' "what there is"
ends 2 "another word" "$stoker" cache list
says err "unknown action 'list'" "another word"
ends 2 "clear what" "$stoker" cache clear
says err '--all' "what may be cleared"
ends 2 "no such kind" "$stoker" cache clear --kind jpeg
says err 'index, checkpoints, bytes' "which kinds there are"
ends 2 "three operands" "$stoker" cache clear a b
ends 2 "ls takes no source" "$stoker" cache ls a

ends 0 "data" "$stoker" synth one --samples 12 --size 48 --seed 1
ends 0 "more data" "$stoker" synth two --samples 6 --size 48 --seed 2
sleep 0.1 # files that change this very moment are not kept
ops="Resize(40) | RandomCrop(32) | Normalize"
ends 0 "right" "$stoker" checksum one --ops "$ops" --epochs 3 --shuffle
mv out right
for what in none bytes dct pixels auto; do
  ends 0 "$what in memory" "$stoker" checksum one --ops "$ops" --epochs 3 --shuffle --cache $what
  same out right "--cache $what"
  for run in first second; do
    ends 0 "$what on disk, $run" "$stoker" checksum one --ops "$ops" --epochs 3 --shuffle --cache $what --cache-dir kept
    same out right "--cache $what --cache-dir, $run run"
  done
done

# Samples of two images: each is found for itself.
mkdir pairs
find one -name '*.jpg' | sort | {
  n=0
  while read -r left && read -r right; do
    n=$((n + 1))
    cp "$left" pairs/$n.left.jpg && cp "$right" pairs/$n.right.jpg
  done
}
(cd pairs && tar -cf ../pairs.tar ./*.jpg)
sleep 0.1
for side in left right; do
  ends 0 "$side" "$stoker" checksum pairs.tar --fields "image=$side.jpg" --ops "$ops"
  mv out of-$side
done
cmp -s of-left of-right && fail "the sides differ"
for what in bytes dct pixels; do
  for side in left right left; do
    ends 0 "$what of $side" "$stoker" checksum pairs.tar --fields "image=$side.jpg" --ops "$ops" --cache $what \
      --cache-dir sides
    same out of-$side "--cache $what of $side"
  done
done
ends 0 "two" "$stoker" bench two --epochs 1 --batch-size 2 --cache bytes --cache-dir kept --cache-size 1M
says out 'cache +6 samples in .*, [0-9]+ hits?' "what bench says of it"
ends 0 "ls" "$stoker" cache ls --cache-dir kept
says out '/one +bytes +12 ' "the bytes of one"
says out '/one +pixels +12 ' "the pixels of one"
says out '/two +bytes +6 ' "the bytes of two"
ends 0 "ls --json" "$stoker" cache ls --cache-dir kept --json
json out "what is kept" "sorted(c['kind'] for c in d['caches'] if c['kind'] != 'checkpoints') == ['bytes', 'bytes', 'dct', 'pixels'] and d['bytes'] == sum(c['bytes'] for c in d['caches']) and all(c['used'] > 0 for c in d['caches'])"

# Of many samples the index is kept, too.
i=0
while [ $i -lt 1200 ]; do
  ls one/*/*.jpg
  i=$((i + 12))
done >many.txt
sleep 0.1
ends 0 "many samples" "$stoker" ls many.txt --cache-dir lists
ends 0 "ls" "$stoker" cache ls --cache-dir lists
says out '/many.txt +index +1,200 ' "the index of a list"
ends 0 "clear the index" "$stoker" cache clear many.txt --cache-dir lists
ends 0 "ls" "$stoker" cache ls --cache-dir lists
says out 'nothing is cached' "the index is gone"

ends 0 "clear a kind" "$stoker" cache clear --kind pixels --cache-dir kept
ends 0 "ls" "$stoker" cache ls --cache-dir kept
if grep -q pixels out; then fail "pixels are still there"; fi
ends 0 "clear a source" "$stoker" cache clear one --cache-dir kept --json
json out "what was deleted" "d['deleted_bytes'] > 0"
ends 0 "ls" "$stoker" cache ls --cache-dir kept
if grep -q /one out; then fail "one is still there"; fi
says out '/two +bytes' "two is left alone"
ends 0 "clear all" "$stoker" cache clear --all --cache-dir kept
ends 0 "ls" "$stoker" cache ls --cache-dir kept
says out 'nothing is cached' "nothing is left"
ends 0 "again" "$stoker" checksum one --ops "$ops" --epochs 3 --shuffle --cache pixels --cache-dir kept
same out right "after clearing"

# A disk that fills up, and one that cannot be written: training goes on, and says so.
if command -v unshare >/dev/null && unshare -rm true 2>/dev/null; then
  mkdir small
  for how in "size=40k" "size=40k,ro"; do
    # shellcheck disable=SC2016 # for the inner shell
    if unshare -rm sh -c 'mount -t tmpfs -o "$1" none small' mount "$how" 2>err; then
      for what in none bytes dct pixels; do
        # shellcheck disable=SC2016
        ends 0 "$what with $how" unshare -rm sh -c 'mount -t tmpfs -o "$1" none small && for run in first second; do
          "$2" checksum one --ops "$3" --epochs 3 --shuffle --cache $4 --cache-dir small --cache-size 1G >"$5" || exit 1
          cmp -s "$5" right || exit 4
        done' limits "$how" "$stoker" "$ops" $what "$work/limited"
        [ $what != pixels ] || says err 'the cache (is not used|does not contain everything): ' "$how is told"
      done
    fi
  done
fi

finish
