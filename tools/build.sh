#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh -- builds targets and prints one line per phase, plus whatever the compiler complains about.
#
#     tools/build.sh BUILD [TARGET...]    the library and the command; or examples, benchmarks, tests, fuzzers
#
# V=1 prints the compiler's command lines. CI=true turns warnings into errors in a new build folder. Nothing is
# installed: `make setup` does that.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1
shift
[ $# != 0 ] || set -- all

for tool in cc pkg-config meson ninja; do
  command -v $tool >/dev/null || { echo "build: $tool is missing; run: make setup" >&2; exit 1; }
done
# Configures a new folder. If meson.build has changed, ninja configures the folder again by itself.
mkdir -p "$build" || exit 1
if [ -f "$build/build.ninja" ]; then
  set_up() { ninja -C "$build" build.ninja; }
else
  echo "build: configuring $build"
  set_up() { meson setup "$build" ${CI:+-Dwerror=true}; }
fi
if ! set_up >"$build/setup.log" 2>&1; then
  tail -n 20 "$build/setup.log" >&2
  echo "build: could not configure $build; if a package is missing, run: make setup" >&2
  exit 1
fi
if [ "${V:-0}" = 1 ]; then exec ninja -C "$build" -v "$@"; fi
ninja -C "$build" -n "$@" | grep -q 'no work to do' && exit 0
echo "build: compiling into $build ($*)"
exec ninja -C "$build" --quiet "$@"
