#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command itself: overview, help, version, typos, options that are the same everywhere.
. "$(dirname "$0")/lib.sh"

ends 0 "the overview" "$stoker"
says out 'stoker ls SRC' "the overview names the commands"
ends 0 "version" "$stoker" --version
says out '^stoker [0-9]+\.[0-9]+\.[0-9]+$' "version"
for c in ls bench show verify checksum synth info cache; do
  ends 0 "help $c" "$stoker" help $c
  says out '^Examples$' "help of $c teaches by example"
  [ "$(grep -c '^  stoker \|^  .*stoker ' out)" -ge 3 ] || fail "help of $c has three examples"
  mv out help
  ends 0 "$c --help" "$stoker" $c --help
  same out help "$c --help and help $c"
  [ ! -s err ] || fail "$c --help says something on stderr"
  grep -oE '^  (-[a-z], )?--[a-z-]+' help | grep -oE -- '--[a-z-]+' | while read -r o; do
    grep -qE -- "$o[\` ]" "$here/../../docs/command.md" || echo "$o"
  done >missing
  [ ! -s missing ] || fail "docs/command.md lacks $(tr '\n' ' ' <missing)of $c"
  awk 'length > 112 && !/^  .*stoker / { print; bad = 1 } END { exit bad }' out || fail "help of $c has long lines"
done

ends 2 "an unknown command" "$stoker" bnech x
says err 'did you mean stoker bench\?' "the nearest command"
ends 2 "help on an unknown command" "$stoker" help verfy
says err 'did you mean stoker verify\?' "the nearest command in help"
ends 2 "a command like no other" "$stoker" frobnicate
[ ! -s out ] || fail "an error has output"

ends 2 "no source" "$stoker" ls
ends 2 "two places" "$stoker" synth a b
ends 2 "an unknown option" "$stoker" bench x --bach-size 4
says err 'did you mean --batch-size' "the nearest option"
ends 2 "no value" "$stoker" bench x --threads
ends 2 "an option as value" "$stoker" bench x --ops --json
ends 2 "a value for a flag" "$stoker" bench x --json=1
ends 2 "a number that is none" "$stoker" bench x --threads two
ends 2 "a number with a tail" "$stoker" bench x --threads 2x
ends 2 "a negative number" "$stoker" bench x --batch-size -1
ends 2 "zero" "$stoker" bench x --batch-size 0
ends 2 "a number too large" "$stoker" bench x --seed 99999999999999999999999
ends 2 "a size that is none" "$stoker" bench x --memory 12Q
ends 2 "a share over 1" "$stoker" bench x --max-bad 2
ends 2 "a word that is none" "$stoker" bench x --dtype flaot32
says err 'did you mean float32' "the nearest word"
for t in fp16:float16 half:float16 bf16:bfloat16; do
  ends 2 "--dtype ${t%:*}" "$stoker" bench x --dtype "${t%:*}"
  says err "did you mean ${t#*:}\\?" "--dtype ${t%:*}"
done
ends 2 "a CPU that is none" "$stoker" bench x --cpu sse
says err 'it takes c avx2 avx512$' "the CPUs there are"
ends 2 "a letter that is none" "$stoker" bench x -j 4
says err 'there is no option -j;' "a letter that is none"
ends 2 "a batch too large" "$stoker" bench x --batch-size 99999999999
says err 'from 1 to 2147483647' "the largest batch"
"$stoker" info --help | grep -q 'bad samples' && fail "info knows no bad samples"
ends 2 "an operand that info has no use for" "$stoker" info x
ends 2 "a cache that is none" "$stoker" bench x --cache pixel
ends 3 "a source that is not there" "$stoker" ls nowhere
says err 'nowhere' "the missing source is named"
ends 3 "the same in JSON" "$stoker" ls nowhere --json
json out "a failure" 'd["error"]["code"] == "ENOTFOUND" and "nowhere" in d["error"]["text"] and d["error"]["sample"] is None'
for c in ls bench show verify checksum synth info; do
  ends 2 "$c, with a wrong option, in JSON" "$stoker" $c --no-such-option --json
  json out "$c, with a wrong option" 'd["error"]["code"] == "EUSAGE" and "no-such-option" in d["error"]["text"]'
done

make_photos
for o in "--fidelity quick" "--reader mmap" "--ops Rezise(8)" "--ops Resize(8)" "--rank 2 --world-size 2" "--memory 4096"; do
  # shellcheck disable=SC2086
  ends 2 "$o" "$stoker" bench photos --ops "CenterCrop(8)" $o
done
ends 2 "options as they are typed" "$stoker" bench photos --ops "CenterCrop(8)" --memory 4096
says err 'raise --memory, .* --batch-size' "options as they are typed"
ends 0 "a size with a unit" "$stoker" checksum photos --ops "CenterCrop(8)" --memory=256MiB
# A command lists and accepts only the options that have an effect on it.
ends 2 "an option without effect" "$stoker" ls photos --batch-size 4
says err 'batch-size has no effect on this command; remove it' "an option without effect"
for c in ls verify "cat photos" index "pack photos"; do
  for o in --cache --cache-size --reader --fidelity --rank; do
    # shellcheck disable=SC2086
    ends 2 "$c $o" "$stoker" $c photos $o 1
    says err "$o has no effect" "$c $o"
    "$stoker" help "${c%% *}" | grep -q "^  $o " && fail "the help of $c lists $o"
  done
done
for c in bench checksum show; do
  for o in --cache --cache-size --reader --fidelity; do
    "$stoker" help "$c" | grep -q "^  $o " || fail "the help of $c lists $o"
  done
done
ends 0 "after --" "$stoker" ls -- photos
if [ -w /dev/full ]; then
  "$stoker" ls photos >/dev/full 2>err
  [ $? = 3 ] || fail "a full disk ends with 3"
  says err 'cannot write' "a full disk is named"
fi
"$stoker" ls photos --json | head -n 1 >/dev/null || fail "a reader that leaves early"
finish
