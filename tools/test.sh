#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# test.sh -- runs the tests of a build folder. Prints the failures; the last line has the counts.
#
#     tools/test.sh build                    all suites
#     tools/test.sh build-tsan --suite unit  arguments go to `meson test`
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
[ $# = 0 ] || shift
log=$build/meson-logs/testlog.json
[ ! -x .venv/bin/python3 ] || STOKER_PYTHON=${STOKER_PYTHON:-$PWD/.venv/bin/python3}
export STOKER_PYTHON

rm -f "$log"
# One more than there are cores, because many tests wait: for processes that start, or for events.
jobs=${TEST_JOBS:-$(($(nproc 2>/dev/null || echo 2) + 1))}
meson test -C "$build" --no-rebuild --num-processes "$jobs" "$@" |
  grep -vE '^(ninja:|Full log|>>> |$)|^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout):'
exec "${STOKER_PYTHON:-python3}" tools/test_report.py "$log" "$build"
