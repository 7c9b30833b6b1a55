#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker verify
. "$(dirname "$0")/lib.sh"
make_photos

ends 0 "all good" "$stoker" verify photos
[ ! -s out ] || fail "nothing to list when all are good"
says err '24 good, 0 bad, 0 with warnings' "the summary"

set -- $(find photos -name '*.jpg' | sort | head -n 3)
head -c 700 "$1" >cut && mv cut "$1"
: >"$2"
printf '<html>not a picture</html>' >"$3"
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
ends 3 "nothing there" "$stoker" verify nowhere
finish
