#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker checksum: threads, batches, stops and ranks leave no trace in it.
. "$(dirname "$0")/lib.sh"
make_photos
ops='RandomResizedCrop(40) | RandomHorizontalFlip | Normalize'
sum() { "$stoker" checksum photos --ops "$ops" --seed 7 --epochs 2 --shuffle "$@"; }

ends 0 "checksum" sum
mv out whole
[ "$(grep -cE '^epoch [01]  [0-9a-f]{16}$' whole)" = 2 ] || fail "two lines \`epoch N  HASH\`"
[ "$(cut -d' ' -f4 whole | sort -u | wc -l)" = 2 ] || fail "every epoch has bits of its own"
for o in "--threads 1" "--threads 2" "--threads 16" "--batch-size 5" "--batch-size 24 --threads 3" "--cpu c" "--cache-dir off" "--reader pread" "--reader uring" "--reader uring --threads 5 --memory 96M"; do
  # shellcheck disable=SC2086
  ends 0 "$o" sum $o
  same out whole "$o"
done
# Samples of shards, read ahead or not.
ends 0 "shards" "$stoker" pack photos shards --shard-size 40K
for o in pread uring auto "uring --threads 5" "uring --batch-size 5"; do
  # shellcheck disable=SC2086
  ends 0 "shards, $o" "$stoker" checksum 'shards/*.tar' --ops "$ops" --seed 7 --epochs 2 --shuffle --reader $o
  [ -f sharded ] || cp out sharded
  same out sharded "shards, $o"
done
for o in "--seed 8" "--no-shuffle" "--dtype uint8 --ops CenterCrop(40)" "--layout NHWC" "--take 23" "--drop-last --batch-size 5"; do
  # shellcheck disable=SC2086
  ends 0 "$o" sum $o
  cmp -s out whole && fail "$o changes the bits"
done

# Stops in the middle of the first epoch, at its very end, in the second, at the end of all.
for n in 1 7 24 25 47 48 100; do
  rm -f st
  ends 0 "--stop-after $n" sum --state st --stop-after $n
  mv out joined
  ends 0 "going on after $n" sum --state st
  cat out >>joined
  same joined whole "stopped after $n"
done
# Many short runs, with other batch sizes, threads and nothing but --state typed.
rm -f st joined
ends 0 "the first run" sum --state st --batch-size 3 --stop-after 2
cat out >joined
for i in 1 2 3 4 5 6 7 8 9; do
  ends 0 "run $i" "$stoker" checksum photos --state st --batch-size $i --threads $((i % 3 + 1)) --stop-after 2
  cat out >>joined
done
same joined whole "ten runs with other batch sizes"
ends 0 "nothing left" "$stoker" checksum photos --state st
[ ! -s out ] || fail "nothing left to print"
ends 0 "one epoch more" "$stoker" checksum photos --state st --epochs 3
says out '^epoch 2  ' "one epoch more"
ends 2 "another seed" "$stoker" checksum photos --state st --seed 8
says err 'seed' "another seed is named"
printf 'x' >junk
ends 2 "a state that is none" "$stoker" checksum photos --state junk
ends 3 "a state that cannot be saved" sum --state nowhere/st

# Ranks, joined by epoch and position.
ends 0 "one rank" sum --batch-size 8 --each-sample
mv out one
[ "$(wc -l <one)" = 48 ] || fail "a line a sample"
sort -n -k1,1 -k2,2 one >sorted
same one sorted "one rank comes in order"
for w in 2 3; do
  : >ranks
  r=0
  while [ $r -lt $w ]; do
    ends 0 "rank $r of $w" sum --batch-size $((8 / w)) --rank $r --world-size $w --each-sample
    cat out >>ranks
    r=$((r + 1))
  done
  sort -n -k1,1 -k2,2 ranks >sorted
  same sorted one "$w ranks joined"
done
# A state of one rank goes on as two.
ends 0 "one rank" sum --each-sample --batch-size 6 --state st1 --stop-after 2
mv out ranks
for r in 0 1; do
  cp st1 st2
  ends 0 "rank $r of two goes on" sum --each-sample --batch-size 3 --rank $r --world-size 2 --state st2
  cat out >>ranks
done
sort -n -k1,1 -k2,2 ranks >sorted
same sorted one "one rank stopped, two went on"

ends 0 "checksum --json" sum --json
json out "checksum" '[e["epoch"] for e in d["epochs"]] == [0, 1] and all(e["samples"] == 24 and len(e["hash"]) == 16 for e in d["epochs"])'
ends 0 "checksum --each-sample --json" sum --each-sample --json
json out "each sample" 'len(d["samples"]) == 48 and d["samples"][24]["epoch"] == 1 and d["samples"][24]["position"] == 0'

rm "$(find photos -name '*_000005.jpg')" && : >"photos/$(ls photos | head -n 1)/bad.jpg"
ends 1 "a bad sample" sum
says err 'bad\.jpg: ' "the bad sample is named"
ends 1 "a bad sample with --json" sum --json
json out "a bad sample" '"bad.jpg" in d["error"]["text"] and d["error"]["code"] == "EDATA" and d["error"]["path"].endswith("bad.jpg") and d["error"]["sample"] >= 0 and not d["complete"]'
ends 0 "a bad sample is left out" sum --on-error skip --max-bad 0.1
mv out whole
ends 0 "the same with other batches" sum --on-error skip --max-bad 0.1 --batch-size 7 --threads 3
same out whole "skip with other batches"
ends 1 "no bad sample at all" sum --on-error skip --max-bad 0
# What is left out leaves its position empty, whatever the batches and ranks are.
ends 0 "each sample but one" sum --on-error skip --max-bad 0.1 --each-sample
mv out one
[ "$(wc -l <one)" = 46 ] || fail "each sample but one: 23 lines an epoch"
[ "$(cut -d' ' -f2 one | sort -n | tail -n 1)" = 23 ] || fail "each sample but one: positions up to 23"
for o in 5 8; do
  ends 0 "each sample but one, batches of $o" sum --on-error skip --max-bad 0.1 --each-sample --batch-size $o
  same out one "each sample but one, batches of $o"
done
: >ranks
for r in 0 1; do
  ends 0 "each sample but one, rank $r" sum --on-error skip --max-bad 0.1 --each-sample --batch-size 4 --rank $r --world-size 2
  cat out >>ranks
done
sort -n -k1,1 -k2,2 ranks >sorted
same sorted one "each sample but one, two ranks joined"
# A batch without a good sample is not delivered, but it counts: the run does not stop right before the end of an epoch.
ends 0 "stopping at the end" sum --on-error skip --max-bad 0.1 --state st3 --stop-after 23
mv out joined
[ "$(wc -l <joined)" = 1 ] || fail "the epoch that ended has its line"
ends 0 "the second epoch" sum --on-error skip --max-bad 0.1 --state st3
cat out >>joined
same joined whole "stopped after 23 good samples"
ends 2 "a state of another dataset" sum --state st --epochs 9
finish
