#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh -- builds the fuzzers with clang, ASan and UBSan, and runs each for a while.
#
#     tools/fuzz.sh [SECONDS [TARGET...]]    60 seconds, all targets
#
# New inputs and crashes are kept in build-fuzz/found/. After a crash, the exit status is 1.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-60}
[ $# = 0 ] || shift
build=build-fuzz
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
clang=$(tools/find_clang.sh) || { echo "no clang with libFuzzer is installed; run: tools/setup.sh fuzz" >&2; exit 1; }

[ -f $build/build.ninja ] ||
  CC=$clang meson setup $build -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false >/dev/null || exit 1
ninja -C $build --quiet fuzzers || exit 1

[ $# != 0 ] || set -- $(cd fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
crashes=0
printf '%-16s %14s %10s  %s\n' target executions coverage result
for target in "$@"; do
  found=$build/found/$target
  mkdir -p "$found"
  seeds=fuzz/seeds/$target
  [ -d "$seeds" ] || seeds=
  program=$(find $build -type f -perm -u+x -name "fuzz_$target" | head -n 1)
  # shellcheck disable=SC2086 # an empty $seeds is no argument
  "$program" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found/crash-" "$found" $seeds >"$build/fuzz_$target.log" 2>&1
  code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz_$target.log")
  cover=$(grep -o 'cov: [0-9]*' "$build/fuzz_$target.log" | tail -n 1 | cut -d' ' -f2)
  if [ $code = 0 ]; then result="nothing found"; else
    result="FOUND SOMETHING: $build/fuzz_$target.log"
    crashes=$((crashes + 1))
  fi
  printf '%-16s %14s %10s  %s\n' "$target" "${runs:-?}" "${cover:-?}" "$result"
done
[ $crashes = 0 ]
