#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker verify
. "$(dirname "$0")/lib.sh"
make_photos

ends 0 "all good" "$stoker" verify photos
[ ! -s out ] || fail "nothing to list when all are good"
says err '24 good, 0 bad, 0 with warnings' "the summary"

set -- $(find photos -name '*.jpg' | sort | head -n 3)
ends 0 "a good image" "$stoker" verify "$1"
says err '1 good, 0 bad' "a good image"
head -c 700 "$1" >cut.jpg
ends 1 "a bad image" "$stoker" verify cut.jpg
says out 'cut.jpg: the file ends after 700 bytes' "a bad image is named with its reason"
rm cut.jpg
head -c 700 "$1" >cut && mv cut "$1"
: >"$2"
printf '<html>not an image</html>' >"$3"
ends 1 "some bad" "$stoker" verify photos --quarantine bad.txt
[ "$(wc -l <out)" = 3 ] || fail "a line a bad sample"
says err '21 good, 3 bad' "the summary with bad ones"
[ "$(wc -l <bad.txt)" = 3 ] || fail "the quarantine list"
n=0
for f in "$1" "$2" "$3"; do
  n=$((n + 1))
  sed -n "${n}p" out | grep -qF "$f: " || fail "line $n names $f with a reason"
  sed -n "${n}p" bad.txt | grep -qxF "$f" || fail "line $n of the quarantine list is $f"
done
mv out first
for t in 1 3; do
  ends 1 "threads $t" "$stoker" verify photos --threads $t
  same out first "the same list with $t threads"
done
ends 1 "verify --json" "$stoker" verify photos --json
json out "verify" 'd["samples"] == 24 and d["good"] == 21 and d["bad"] == 3 and len(d["bad_samples"]) == 3 and d["complete"]'
ends 3 "a list that cannot be written" "$stoker" verify photos --quarantine nowhere/bad.txt
says err 'nowhere/bad.txt' "the list that cannot be written is named"
# Descriptors that run out say nothing of the samples: it ends with 3, or finds what is bad when it gets by.
# shellcheck disable=SC2016 # $1 is for the inner shell
for i in 1 2 3; do
  sh -c 'ulimit -n 5 && exec "$1" verify photos --threads 16' sh "$stoker" >out 2>err
  end=$?
  [ $end = 3 ] || cmp -s out first || fail "too few descriptors: ended with $end"
  [ $end != 3 ] || says err 'Too many open files' "too few descriptors"
done
ends 1 "an image too large" "$stoker" verify photos --max-pixels 100
says out 'raise --max-pixels' "the option is named as it is typed"
# Too little memory is no fault of the images.
ends 2 "too little memory" "$stoker" verify photos --memory 1M --threads 2 --quarantine few.txt
says err '32 MiB' "the least memory is named"
[ ! -e few.txt ] || fail "too little memory: a list was written"
"$stoker" synth large --samples 1 --classes 1 --size 2400 >/dev/null
ends 1 "an image that lacks memory" "$stoker" verify large --memory 16M --threads 1 --quarantine few.txt
says err '1 sample failed because --memory was too small; raise it; not quarantined' "an image that lacks memory"
[ ! -s few.txt ] || fail "an image that lacks memory is in the quarantine"
# The recipe of the help, with equal names in two classes and a name that holds a newline.
mkdir -p twins/a twins/b rejected
for f in "twins/a/same name.jpg" "twins/b/same name.jpg" "twins/b/two
lines.jpg"; do printf 'junk' >"$f"; done
cp "$(find photos -name '*_000020.jpg')" twins/a/good.jpg
ends 1 "twins" "$stoker" verify twins --quarantine bad.txt
says err '1 bad sample with a newline in the name' "a name with a newline is told"
"$stoker" verify --help | sed -n 's/^  \(xargs .*bad\.txt\)  *#.*/\1/p' >recipe
[ -s recipe ] || fail "the help has a recipe for the quarantine"
sh recipe || fail "the recipe of the help"
[ -f "rejected/twins/a/same name.jpg" ] && [ -f "rejected/twins/b/same name.jpg" ] || fail "the recipe keeps folders"
[ ! -e "twins/a/same name.jpg" ] && [ -e twins/a/good.jpg ] || fail "the recipe takes out the bad ones alone"
ends 3 "nothing there" "$stoker" verify nowhere

# A pack is compared with the count that it states; a class may be called as WebDataset calls its own notes.
mkdir -p counted/__background__ counted/b
cp twins/a/good.jpg counted/__background__/1.jpg && cp twins/a/good.jpg counted/b/1.jpg
"$stoker" pack counted counts >/dev/null 2>&1 || fail "pack of __background__"
ends 0 "verify of __background__" "$stoker" verify counts
says err '2 good, 0 bad' "no sample of __background__ is lost"
sed 's/"samples": *2/"samples": 3/' counts/stoker.json >note && cp note counts/stoker.json
ends 1 "a pack with fewer samples than it states" "$stoker" verify counts
says out 'stoker.json: says that the pack has 3 samples, but a reader finds 2' "both counts"

# Nothing waits for a FIFO in a pack.
cp -r twins/a/good.jpg one.jpg && mkdir one && mv one.jpg one/ && "$stoker" pack one piped >/dev/null 2>&1
rm piped/shard-000000.tar && mkfifo piped/shard-000000.tar
timeout 100 "$stoker" verify piped >out 2>err
[ $? != 124 ] || fail "verify waits for a FIFO"
says out 'is not a regular file' "a FIFO in the place of a shard"
rm piped/stoker.json && mkfifo piped/stoker.json
timeout 100 "$stoker" verify piped >out 2>err
[ $? != 124 ] || fail "verify waits for a FIFO in the place of the note"
# 2^26 rows, of which two chunks were ever written: the others are not read one by one.
sparse=hdf5:$(dirname "$here")/../fuzz/seeds/hdf5/sparse
ends 0 "2^26 rows" "$stoker" verify "$sparse" --json
json out "2^26 rows" 'd["samples"] == d["good"] == 2**26 and d["complete"]'
finish
