#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# wheel.sh -- builds the wheel of the Python package and installs it into .venv, if anything has changed.
#
#     tools/wheel.sh [BUILD]     the wheel is put into BUILD/wheel
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
python=.venv/bin/python
wheels=$build/wheel
log=$build/wheel.log

skip() {
  printf 'wheel: %s; the tests of the package will be skipped\n' "$*"
  exit 0
}

[ -x $python ] && [ -f .venv/ready ] || skip "there is no .venv"
$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "Python 3.11 or newer is needed"

# Has any file that goes into the wheel changed since it was built?
wheel=$(find "$wheels" -name 'stoker-*.whl' 2>/dev/null | head -n 1)
if [ -n "$wheel" ] && [ -z "$(find python sheet src include cli meson.build meson_options.txt pyproject.toml -newer "$wheel" \
  -type f ! -name '*.pyc' | head -n 1)" ] && $python -c 'import stoker' 2>/dev/null; then
  exit 0
fi

pip() { $python -m pip --quiet --disable-pip-version-check "$@"; }

if [ ! -f .venv/wheel-tools ]; then
  pip install --retries 1 --timeout 20 meson-python 'meson>=1.3' ninja pytest >"$log" 2>&1 ||
    skip "pip could not install meson-python and pytest (see $log)"
  : >.venv/wheel-tools
fi
mkdir -p "$wheels"
rm -f "$wheels"/*.whl
if ! PATH=$PWD/.venv/bin:$PATH $python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation -w "$wheels" \
  -C build-dir="$build/wheel-build" . >"$log" 2>&1; then
  grep -E 'error|Error' "$log" | head -n 20
  printf 'wheel: the build failed; see %s\n' "$log" >&2
  exit 1
fi
pip install --force-reinstall --no-deps "$wheels"/stoker-*.whl >>"$log" 2>&1 || { tail -n 5 "$log"; exit 1; }
printf 'wheel: built and installed %s\n' "$(basename "$wheels"/stoker-*.whl)"
