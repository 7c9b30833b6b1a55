#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker pack
. "$(dirname "$0")/lib.sh"
make_photos

# untar PACK FOLDER: the members of all shards, in a new folder.
untar() {
  rm -rf "$2" && mkdir "$2"
  for f in "$1"/shard-*.tar; do tar -xf "$f" -C "$2" || fail "tar reads $f"; done
}

ends 0 "pack" "$stoker" pack photos kept
says out '24 samples in 1 file' "what was made"
says err '24 samples, about .* to write; .* free' "what it will take is said first"
untar kept all
find all -name '*.cls' | wc -l | grep -qx ' *24' || fail "a label each"
find all -name '*.cls' -exec rm {} +
diff -r -x .stoker-synth.json photos all >diff.txt || fail "the files come back as they were: $(head -n 1 diff.txt)"
json kept/stoker.json "the note" 'd["format"] == "tar" and d["samples"] == 24 and len(d["classes"]) == 4 and sum(s["samples"] for s in d["shards"]) == 24'
! find kept -name '.*' -type f | grep -qvx 'kept/\.stoker-[0-9a-f]*\.index' || fail "nothing but an index is left beside the shards"

ends 0 "measured" "$stoker" pack photos measured --resize short=64 --measure
says out 'the pack reads .* images/s, the source ' "what was gained is printed"
ends 0 "again" "$stoker" pack photos kept
says out 'all written already' "nothing to do"
ends 2 "other options" "$stoker" pack photos kept --as png
says err 'was started with as=keep, but now it is as=png' "which option differs is said"
ends 0 "force" "$stoker" pack photos kept --as png --force
untar kept all
[ "$(find all -name '*.png' | wc -l)" = 24 ] || fail "all are PNG"

mkdir -p full && echo mine >full/mine.txt
ends 2 "a folder with other files" "$stoker" pack photos full
says err 'other files' "a folder with other files"
[ "$(ls full)" = mine.txt ] || fail "nothing is written beside other files"

# Small shards, in source order and shuffled; threads change nothing.
ends 0 "shards" "$stoker" pack photos a --shard-size 40K --threads 1
[ "$(ls a/shard-*.tar | wc -l)" -gt 3 ] || fail "several shards"
ends 0 "shards, threads" "$stoker" pack photos b --shard-size 40K --threads 3
diff -r a b >diff.txt || fail "threads change nothing: $(head -n 1 diff.txt)"
ends 0 "shuffled" "$stoker" pack photos s1 --shuffle --seed 7 --json
json out "pack --json" 'd["samples"] == 24 and d["complete"] and d["bytes"] > 0 and d["error"] is None'
ends 0 "shuffled again" "$stoker" pack photos s2 --shuffle --seed 7
diff -r s1 s2 >diff.txt || fail "the seed decides"
ends 0 "another seed" "$stoker" pack photos s3 --shuffle --seed 8
cmp -s s1/shard-000000.tar s3/shard-000000.tar && fail "another seed, another order"

# Killed at ten moments, it ends with the same bytes.
killed=0
i=0
while [ $i -lt 10 ]; do
  i=$((i + 1))
  "$stoker" pack photos k --shard-size 40K --resize short=64 >/dev/null 2>&1 &
  pid=$!
  sleep "0.0$((i * 7 % 10))"
  kill -9 $pid 2>/dev/null && killed=$((killed + 1))
  wait $pid 2>/dev/null
done
ends 0 "after $killed kills" "$stoker" pack photos k --shard-size 40K --resize short=64
ends 0 "without kills" "$stoker" pack photos whole --shard-size 40K --resize short=64
diff -r k whole >diff.txt || fail "killed and resumed: $(head -n 1 diff.txt)"

# So do other targets.
for to in tfrecord hdf5 npy folder; do
  i=0
  while [ $i -lt 4 ]; do
    i=$((i + 1))
    "$stoker" pack photos "k_$to" --to $to --ops 'Resize(32) | CenterCrop(32)' >/dev/null 2>&1 &
    pid=$!
    sleep "0.0$((i * 3 % 10))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? = 137 ] || i=9
  done
  [ $i = 9 ] || ends 0 "$to after kills" "$stoker" pack photos "k_$to" --to $to --ops 'Resize(32) | CenterCrop(32)'
  ends 0 "$to without kills" "$stoker" pack photos "w_$to" --to $to --ops 'Resize(32) | CenterCrop(32)'
  diff -r "k_$to" "w_$to" >diff.txt || fail "$to killed and resumed: $(head -n 1 diff.txt)"
done

# What images become.
ends 0 "resize" "$stoker" pack photos small --resize long=48 --as jpeg --quality 80
ends 0 "to a folder" "$stoker" pack photos folder --to folder --resize long=48
ends 0 "ls of the folder" "$stoker" ls folder --json
json out "sizes" 'd["samples"] == 24 and d["n_classes"] == 4' || true
# Coefficients without their codes: the same pixels, and damage is noticed.
ends 0 "dct" "$stoker" pack photos dct --as dct
untar dct all
[ "$(find all -name '*.dct' | wc -l)" = 24 ] || fail "all are packs of coefficients"
ops='RandomResizedCrop(48) | RandomHorizontalFlip'
"$stoker" checksum photos --ops "$ops" --shuffle --epochs 2 >one.txt
"$stoker" checksum dct --ops "$ops" --shuffle --epochs 2 >two.txt
diff one.txt two.txt >diff.txt || fail "dct has the same pixels"
"$stoker" checksum photos >photos.txt
ends 0 "dct unpacked" "$stoker" unpack dct unpacked
(cd photos && find . -name '*.jpg' | sort) >one.txt
(cd unpacked && find . -type f | sort) >two.txt
same one.txt two.txt "the files are JPEG again, with their names"
ends 0 "dct unpacked again" "$stoker" unpack dct unpacked
ends 0 "dct in a folder" "$stoker" pack dct foldered --as jpeg --to folder
ends 0 "dct as dct" "$stoker" pack dct same --as dct
cmp -s dct/shard-000000.tar same/shard-000000.tar || fail "dct as dct has the same bytes"
ends 0 "dct as jpeg" "$stoker" pack dct back --as jpeg
for made in dct unpacked foldered back; do
  "$stoker" checksum "$made" >"$made.txt"
  same photos.txt "$made.txt" "dct and what is made of it have the same pixels: $made"
done
untar back all
[ "$(find all -name '*.jpg' -exec head -c 3 {} \; | od -An -v -tx1 | tr -d ' \n' | sed 's/ffd8ff//g' | wc -c)" = 0 ] ||
  fail "what is named jpg is JPEG"
[ "$(find all -name '*.jpg' | wc -l)" = 24 ] || fail "all are JPEG again"
for to in tfrecord hdf5 folder; do
  ends 2 "dct kept in $to" "$stoker" pack dct "of_dct_$to" --to $to
  says err '--as jpeg' "dct kept in $to: what to do instead"
  [ ! -e "of_dct_$to" ] || fail "dct kept in $to leaves nothing"
done
printf 'x' | dd of=dct/shard-000000.tar bs=1 seek=2000 conv=notrunc 2>/dev/null
ends 1 "a damaged pack of coefficients" "$stoker" verify dct
says out 'damaged DCT file' "which sample is damaged"
ends 1 "a damaged DCT image is not unpacked" "$stoker" unpack dct unpacked_damaged
says err '1 file was left out' "a damaged DCT image is not unpacked"
[ "$(find unpacked_damaged -type f | wc -l)" = 23 ] || fail "the others are unpacked"
ends 2 "dct of other pixels" "$stoker" pack photos other --as dct --resize short=32
says err 'as jpeg first' "what to do instead"
ends 2 "dct in another target" "$stoker" pack photos other --as dct --to folder
says err 'omit --to' "dct in another target"
ends 2 "JPEG in npy" "$stoker" pack photos other --as jpeg --to npy
says err 'npy stores only raw pixels: omit --as' "JPEG in npy"
ends 2 "npy with gaps" "$stoker" pack photos other --to npy --on-error skip
says err 'bad samples cannot be skipped' "npy with gaps"

ends 0 "raw" "$stoker" pack photos raw --as raw --ops 'Resize(32) | CenterCrop(32)'
untar raw all
[ "$(find all -name '*.npy' | wc -l)" = 24 ] || fail "an npy each"
ends 0 "npy" "$stoker" pack photos npy --to npy --ops 'Resize(32) | CenterCrop(32)'
[ "$(wc -c <npy/images.npy)" = $((128 + 24 * 32 * 32 * 3)) ] || fail "one array"
# Raw images of several sizes, or where nothing reads them, are refused before anything is written.
for to in tar hdf5 npy; do
  ends 2 "raw of several sizes in $to" "$stoker" pack photos sizes --as raw --to $to
  says err 'raw images must have one size: end the ops with CenterCrop' "raw of several sizes in $to"
  ! grep -q 'lists every bad sample' err || fail "raw of several sizes in $to: nothing is bad"
  [ ! -e sizes ] || fail "raw of several sizes in $to leaves nothing"
done
for to in tfrecord folder; do
  ends 2 "raw in $to" "$stoker" pack photos rawless --as raw --to $to --ops 'CenterCrop(32)'
  says err 'only be read back from tar, hdf5 and npy' "raw in $to"
  [ ! -e rawless ] || fail "raw in $to leaves nothing"
  ends 0 "pixels in $to" "$stoker" pack npy "of_npy_$to" --to $to
  ends 0 "pixels in $to are images" "$stoker" verify "of_npy_$to"
  says err '24 good, 0 bad' "pixels in $to are images"
done
ends 0 "tfrecord" "$stoker" pack photos records --to tfrecord --shard-size 40K
[ "$(ls records/shard-*.tfrecord | wc -l)" -gt 3 ] || fail "several files of records"
ends 0 "ls of records" "$stoker" ls records --json
json out "the samples of each class" 'd["n_classes"] == len(d["classes"]) and sum(c["samples"] for c in d["classes"]) == d["samples"]'

# What is refused.
ends 2 "a random op" "$stoker" pack photos x --ops 'RandomCrop(32)'
says err 'RandomCrop is random' "the random op is named"
ends 2 "several crops" "$stoker" pack photos x --ops 'Resize(60) | FiveCrop(32)'
says err 'FiveCrop and TenCrop make several images' "several crops"
ends 2 "floats" "$stoker" pack photos x --ops Normalize
ends 2 "resize" "$stoker" pack photos x --resize 256
says err 'short=256 or long=500' "how resize is typed"
ends 2 "no target" "$stoker" pack photos
says err 'OUT is missing: stoker pack SRC OUT;' "the target is asked for"
ends 3 "no source" "$stoker" pack nowhere x
[ ! -e x ] || fail "what is refused leaves nothing"
ends 0 "dry run" "$stoker" pack photos dry --dry-run
[ ! -e dry ] || fail "a dry run writes nothing"
if [ "$(id -u)" != 0 ]; then
  mkdir shut && chmod a-w shut
  ends 3 "a target that cannot be written" "$stoker" pack photos shut
fi
: >"$(find photos -name '*.jpg' | sort | head -n 1)"
ends 1 "a bad sample" "$stoker" pack photos bad
says err 'lists every bad sample; --on-error skip continues' "a bad sample: what to do"
printf 'path,label,v\n%s,0,1\n' "$(find photos -name '*.jpg' -size +0 | head -n 1)" >large.csv
printf '%s,0,18446744073709551615\n' "$(find photos -name '*.jpg' -size +0 | head -n 1)" >>large.csv
ends 1 "a number that has no place" "$stoker" pack large.csv large --to tfrecord --fields 'image, v:uint64'
says err 'v has the value 18446744073709551615' "a number that has no place"
! grep -q 'lists every bad sample' err || fail "a number that has no place: the photo is good"
ends 0 "left out" "$stoker" pack photos left --on-error skip --max-bad 50%
says out '1 bad sample left out' "what is left out is told"
finish
