#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stoker doctor: a dataset, and scripts, which Python examines.
. "$(dirname "$0")/lib.sh"
make_photos
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR
ops='RandomResizedCrop(32) | RandomHorizontalFlip | Normalize'
empty() { [ -z "$(ls -A tmp)" ] || fail "$1: left in TMPDIR: $(ls -A tmp)"; }

# What is fast depends on the machine, so the verdict may be either.
either() {
  words=$1
  shift
  "$@" >out 2>err
  got=$?
  [ "$got" = 0 ] || [ "$got" = 1 ] || fail "$words: ended with $got: $(cat err)"
}

either "doctor" "$stoker" doctor photos --ops "$ops" --seconds 4 --need 10
says out '^photos delivers [0-9,]+ images/s here\. ' "one sentence first"
says out '10 images/s: delivered as it is' "--need that is met"
says out '^  as it is +[0-9,]+' "the table"
says out '^  threads=' "the threads are tried"
says out '^  stages +read ' "the stages"
says out 'megapixels on average' "the size"
empty "doctor"

either "doctor --json" "$stoker" doctor photos --ops "$ops" --seconds 6 --need 1000000000 --json
json out "the document" 'd["schema"] == "stoker-doctor/1" and d["form"] == "data" and d["complete"] and d["error"] is None'
json out "the runs" '{"as it is", "storage alone", "draft", "cache of coefficients", "cache of pixels"} <= {r["name"] for r in d["runs"]}'
json out "a run" 'all(set(r) >= {"name", "kind", "status", "reason", "samples_per_s", "gain", "change", "same_result"} for r in d["runs"])'
json out "statuses" 'all(r["status"] == "ok" or r["reason"] for r in d["runs"])'
json out "the baseline" 'd["runs"][0]["kind"] == "baseline" and d["runs"][0]["samples_per_s"] > 0'
json out "--need that is not met" 'd["need"] == 10**9 and d["reachable"] is False'
json out "the sample" 'd["samples"] == 24 and 0 < d["sampled"] <= 24 and d["bad"] == 0'
[ "$got" = 1 ] || fail "a need that is not met ends with 1, not $got"
empty "doctor --json"

either "a pack that is not needed" "$stoker" doctor photos --ops 'Resize((120, 120))' --seconds 4
grep -qE '^  stoker pack .*skipped' out && fail "a skipped pack is shown by its command: $(grep skipped out)"
empty "a pack that is not needed"

# Containers, arrays, text.
"$stoker" pack photos t >/dev/null 2>&1
"$stoker" pack photos r --to tfrecord >/dev/null 2>&1
"$stoker" pack photos h --to hdf5 >/dev/null 2>&1
"$stoker" pack photos n --to npy --ops 'Resize(40) | CenterCrop(40)' >/dev/null 2>&1
find photos -name '*.jpg' >list.txt
printf 'a\nb\nc\n' >lines
for source in t r h n list.txt text:lines; do
  case $source in
  text:*) either "$source" "$stoker" doctor "$source" --seconds 2 --json ;;
  *) either "$source" "$stoker" doctor "$source" --ops "$ops" --seconds 2 --json ;;
  esac
  json out "$source" 'd["runs"][0]["samples_per_s"] > 0'
done
empty "containers"

# Bad files are counted and named.
printf 'junk' >"$(find photos -name '*_000005.jpg')"
ends 1 "a bad file" "$stoker" doctor photos --ops "$ops" --seconds 2 --need 1
says out 'bad +1 file of the subset' "a bad file is counted"
says out '_000005\.jpg: ' "a bad file is named"

# Commands that are printed can be pasted, and name the same samples.
ln -s photos 'my {a,b} photos'
ends 1 "a name with spaces" "$stoker" doctor 'my {a,b} photos' --ops "$ops" --seconds 2 --need 1
says out "\`stoker verify 'my \{a,b\} photos'\` lists" "a quoted name"
either "--take and --fields" "$stoker" doctor 'my {a,b} photos' --ops 'Resize(24) | CenterCrop(24)' --seconds 6 --json \
  --take 16 --fields 'image, label'
json out "a pack of the same samples" 'all(r["change"].startswith("stoker pack '"'my {a,b} photos'"' OUT --take 16 --fields '"'image, label'"'") for r in d["runs"] if r["name"].startswith("pack"))'
json out "packs were tried" 'any(r["name"].startswith("pack") for r in d["runs"])'

# Ctrl-C leaves nothing behind; so does kill -9.
for signal in TERM KILL; do
  "$stoker" doctor photos --ops "$ops" --seconds 600 >out 2>err &
  until [ -n "$(ls -A tmp)" ]; do
    kill -0 $! 2>/dev/null || { fail "the doctor ended: $(cat err)" && break; }
    sleep 0.05
  done
  kill -$signal $!
  wait $!
  [ $? -gt 128 ] || fail "a signal ends with more than 128"
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -z "$(ls -A tmp)" ] || sleep 0.5
  done
  empty "after SIG$signal"
done

# Usage.
ends 2 "no operand" "$stoker" doctor
ends 3 "no such dataset" "$stoker" doctor nowhere
ends 2 "two datasets" "$stoker" doctor photos photos
ends 2 "--need 0" "$stoker" doctor photos --need 0
empty "usage"
TMPDIR=$work/nowhere either "no folder for packs" "$stoker" doctor photos --ops "$ops" --seconds 2
says err 'packs are not tried' "no folder for packs"

# Scripts: the Python of STOKER_PYTHON gets all words.
cat >python <<'EOF'
#!/bin/sh
[ "$1" = -c ] || exit 9
shift 2
echo "python got: $*"
exit 7
EOF
chmod +x python
export STOKER_PYTHON="$work/python"
ends 7 "a script" "$stoker" doctor --seconds 9 train.py --lr 0.1
says out '^python got: --seconds 9 train.py --lr 0.1$' "the words of a script"
ends 7 "a launcher" "$stoker" doctor -- torchrun train
says out '^python got: -- torchrun train$' "the words of a launcher"
ends 7 "compare" "$stoker" doctor compare a.json b.json
says out '^python got: compare a.json b.json$' "the words of compare"
ends 3 "no such Python" env STOKER_PYTHON="$work/none" "$stoker" doctor train.py
says err 'STOKER_PYTHON' "no such Python"
ends 3 "no Python at all" env -u STOKER_PYTHON PATH="$work/none" "$stoker" doctor train.py
says err 'needs Python' "no Python at all"
printf '#!/bin/sh\nexec /usr/bin/env -i python3 -S -I "$@"\n' >bare && chmod +x bare
if /usr/bin/env -i python3 -S -I -c '' 2>/dev/null; then
  ends 3 "a Python without the package" env STOKER_PYTHON="$work/bare" "$stoker" doctor train.py
  says err 'does not have the Python package stoker' "a Python without the package"
fi
finish
