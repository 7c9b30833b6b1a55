#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker bench
. "$(dirname "$0")/lib.sh"
make_photos
ops='RandomResizedCrop(32) | RandomHorizontalFlip | Normalize'

ends 0 "bench" "$stoker" bench photos --ops "$ops" --batch-size 8
says out 'decode' "the stages"
says out 'images/s' "the rate"
says out 'Limited by|mostly waited' "what limits it"
[ "$(grep -cE '^ +[0-2] +24 ' out)" = 3 ] || fail "three epochs of 24 images"

ends 0 "bench --json" "$stoker" bench photos --ops "$ops" --batch-size 5 --epochs 2 --threads 2 --json
json out "the fields that are fixed" 'set(d) >= {"source", "samples", "threads", "ops", "batch_size", "epochs", "stages", "memory_bytes", "limit"}'
json out "the epochs" '[e["epoch"] for e in d["epochs"]] == [0, 1] and all(set(e) >= {"epoch", "images", "seconds", "images_per_s", "bad", "waited_s"} for e in d["epochs"])'
json out "the last batch is dropped" '[e["images"] for e in d["epochs"]] == [20, 20]'
json out "the stages" 'all(d["stages"][s]["s"] >= 0 for s in ("read", "decode", "transform", "wait")) and d["stages"]["read"]["bytes"] > 0'
json out "the rest" 'd["samples"] == 24 and d["threads"] == 2 and d["batch_size"] == 5 and d["memory_bytes"] > 0 and d["limit"] in ("read", "decode", "transform", "op", "consumer")'

ends 0 "fewer samples than a batch" "$stoker" bench photos --ops "$ops" --json
says err 'cannot fill a batch' "fewer samples than a batch"
json out "fewer samples than a batch" '[e["images"] for e in d["epochs"]] == [24, 24, 24]'

ends 0 "--stop-after" "$stoker" bench photos --ops "$ops" --batch-size 4 --stop-after 8 --state st --json
json out "--stop-after" '[e["images"] for e in d["epochs"]] == [24, 8]'
ends 0 "--state" "$stoker" bench photos --ops "$ops" --state st --json
json out "--state goes on" '[(e["epoch"], e["images"]) for e in d["epochs"]] == [(1, 16), (2, 24)]'

ends 0 "bytes need no Normalize" "$stoker" bench photos --dtype uint8 --batch-size 8 --epochs 1 --json
json out "bytes need no Normalize" '"Normalize" not in d["ops"] and d["complete"] and d["error"] is None'

printf 'junk' >"$(find photos -name '*_000005.jpg')"

# start ARGUMENTS...: an endless bench in the background, which reads batches once it has named the bad sample.
start() {
  rm -f err
  "$stoker" bench photos --ops "$ops" --batch-size 8 --epochs 1000000 --on-error skip --max-bad 10% "$@" >out 2>err &
  until grep -qs _000005 err; do
    kill -0 $! 2>/dev/null || { fail "the bench ended: $(cat err)" && return; }
    sleep 0.1
  done
}

# Two signals count as one. The result is that of the epochs until then, and is marked as incomplete.
start --json
kill -TERM $! && kill -TERM $!
wait $!
[ $? = 130 ] || fail "a signal ends with 130"
json out "stopped in the middle" 'd["complete"] is False and d["epochs"]'
start
kill -TERM $!
wait $!
says out 'Stopped in the middle' "stopped in the middle"

ends 1 "a bad sample" "$stoker" bench photos --ops "$ops" --batch-size 8
says err '_000005\.jpg: ' "the bad sample is named"
ends 0 "a bad sample is left out" "$stoker" bench photos --ops "$ops" --batch-size 8 --on-error skip --max-bad 10% --json
json out "a bad sample is counted" '[(e["images"], e["bad"]) for e in d["epochs"]] == [(23, 1)] * 3'
ends 0 "a bad sample is replaced" "$stoker" bench photos --ops "$ops" --batch-size 8 --on-error replace --max-bad 10% --json
[ "$(grep -c _000005 err)" = 1 ] || fail "a sample that is bad in every epoch is told once"
json out "a bad sample is replaced" '[e["images"] for e in d["epochs"]] == [24] * 3'

# What came of each source of a mixture, and bytes of what has no image.
cp -r photos more
ends 0 "a mixture" "$stoker" bench photos more --ops "$ops" --batch-size 8 --epochs 1 --mix 3,1 --on-error skip --max-bad 20%
says out 'mix +source 0: [0-9]+ samples, 75 % of the positions' "its shares"
ends 0 "a mixture, in JSON" "$stoker" bench photos more --ops "$ops" --batch-size 8 --epochs 1 --mix 3,1 --on-error skip \
  --max-bad 20% --json
json out "its shares" '[m["share"] for m in d["mix"]] == [0.75, 0.25] and sum(m["samples"] for m in d["mix"]) == 48'
printf '{"a": 1}\n{"a": 2}\n' >values.jsonl
ends 0 "values without images" "$stoker" bench values.jsonl --epochs 1 --batch-size 2
says out 'read +[0-9]+ bytes' "their bytes"
finish
