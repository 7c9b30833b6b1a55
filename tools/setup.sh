#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh -- installs whatever building and testing need. Prints what it installs, and nothing if all is installed.
#
#     tools/setup.sh              compiler, meson, codecs, io_uring; .venv with Pillow, NumPy and nvcc
#     tools/setup.sh fuzz         also a clang with libFuzzer
#     tools/setup.sh lint         also clang-format 14, ruff and mypy
#     tools/setup.sh python       tries to make .venv again after a failure
#     tools/setup.sh frameworks   also torch, JAX, TensorFlow, trainers, type checkers and Chromium, for the tests
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-}
PATH=$PWD/.venv/bin:$PATH

say() { printf 'setup: %s\n' "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

case $what in
'' | fuzz | lint | python | frameworks) ;;
*)
  echo "usage: tools/setup.sh [fuzz|lint|python|frameworks]" >&2
  exit 2
  ;;
esac

# ---------------------------------------------------------------- packages

# Names of the Debian packages that are missing.
missing() {
  has cc || echo build-essential
  has pkg-config || echo pkg-config
  has meson || echo meson
  has ninja || echo ninja-build
  has python3 || echo python3
  python3 -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
    2>/dev/null || echo python3-dev
  pkg-config --exists zlib 2>/dev/null || echo zlib1g-dev
  for library in libjpeg libpng libwebp liburing libzstd; do
    pkg-config --exists $library 2>/dev/null || echo $library-dev
  done
  [ -f .venv/ready ] || python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  [ "$what" != fuzz ] || tools/find_clang.sh >/dev/null || echo clang
}

other_systems() {
  cat >&2 <<'MSG'
setup: this system has no apt-get; install these packages and try again:
  Fedora   dnf install gcc meson ninja-build pkgconf libjpeg-turbo-devel libpng-devel libwebp-devel liburing-devel zlib-devel libzstd-devel python3
  Arch     pacman -S base-devel meson libjpeg-turbo libpng libwebp liburing zlib zstd python
  Alpine   apk add build-base meson pkgconf libjpeg-turbo-dev libpng-dev libwebp-dev liburing-dev zlib-dev zstd-dev python3 linux-headers
  macOS    brew install meson pkg-config jpeg-turbo libpng webp zstd python
  (for fuzzing: clang with compiler-rt; for lint: clang-format 14)
MSG
}

apt_install() {
  has apt-get || { other_systems; return 1; }
  if [ "$(id -u)" != 0 ] && ! has sudo; then
    say "you are not root and there is no sudo; ask an administrator to run: apt-get install $*" >&2
    return 1
  fi
  say "installing $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null 2>&1 && return
  say "updating the list of packages"
  as_root apt-get -qq update >/dev/null &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

packages=$(missing)
if [ -n "$packages" ]; then
  # shellcheck disable=SC2086 # a list of words
  if ! apt_install $packages; then
    # Nothing works without these tools. meson reports a missing codec.
    for tool in cc pkg-config meson ninja python3; do has $tool || exit 1; done
    say "continuing without $(echo $packages)" >&2
  fi
fi
if [ "$what" = fuzz ] && ! tools/find_clang.sh >/dev/null; then
  # Debian has a separate package for the fuzzer's run-time library.
  apt_install "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
  tools/find_clang.sh >/dev/null || { say "no installed clang can link a fuzzer" >&2; exit 1; }
fi

# ---------------------------------------------------------------- Python

ready=.venv/ready
failed=.venv/failed
[ "$what" != python ] || rm -f $failed

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@" 2>/dev/null
}

if [ ! -f $ready ] && [ ! -f $failed ]; then
  say "making .venv with Pillow and NumPy for the Python tests"
  if ! python3 -m venv --clear .venv >/dev/null 2>&1; then
    mkdir -p .venv
    echo "python3 -m venv failed" >$failed
  # Pillow 13 is the reference. If Python is too old for it, the tests compare with an older Pillow.
  elif ! pip_install 'pillow>=13' numpy && ! pip_install pillow numpy; then
    echo "pip could not install Pillow and NumPy" >$failed
  else
    : >$ready
  fi
fi
[ ! -f $failed ] || say "Python tests will be skipped: $(cat $failed) (to try again: tools/setup.sh python)"

# get GROUP ARGUMENTS...: calls pip once per argument. It tries each group only once: if a package cannot be installed,
# its tests are skipped and say so.
get() {
  tried=.venv/$1-tried
  shift
  [ ! -f "$tried" ] || return 0
  for packages in "$@"; do
    # shellcheck disable=SC2086 # a list of words
    pip_install $packages || say "could not install $packages; the tests that need it will be skipped"
  done
  : >"$tried"
}

if [ "$what" = frameworks ] && [ -f $ready ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  [ -f .venv/frameworks-tried ] ||
    say "installing torch, JAX and TensorFlow into .venv, once; this takes minutes (STOKER_NO_FRAMEWORKS=1 skips it)"
  # torchvision's compiled ops do not load with a torch for the CPU. The tests do not need them.
  get frameworks torch==2.13.0 jax tensorflow-cpu '--no-deps torchvision==0.28.0'
  get tables pyarrow==26.0.1 datasets==5.2.0
  get timm '--no-deps timm pyyaml safetensors huggingface_hub' # only its transforms, datasets and loaders are tested
  get trainers lightning==2.6.6 accelerate==1.15.0 transformers==5.22.2 albumentations==2.0.8
  get coco pycocotools==2.0.11
  get checkers 'mypy basedpyright'
  get containers h5py==3.14.0 '--no-deps webdataset==1.0.2 braceexpand pyyaml'
  if [ ! -f .venv/browser-tried ]; then
    has chromium || has chromium-browser || has google-chrome || apt_install chromium ||
      say "could not install chromium; the doctor's HTML report will not be tested in a browser"
    : >.venv/browser-tried
  fi
fi

# ---------------------------------------------------------------- tools that distributions lack

# The check of meson's version takes time, so its result is stored.
enough=.venv/meson-is-enough
if [ ! -f $enough ]; then
  case $(meson --version) in
  0.[0-5]* | 0.6[0-3]*)
    say "meson is $(meson --version), but 0.64 is needed; installing a newer one into .venv"
    pip_install meson || { say "could not install a newer meson" >&2; exit 1; }
    ;;
  esac
  : >$enough
fi

# nvcc compiles the GPU kernels. PyPI has the compiler alone, without the rest of CUDA, which is large.
nvcc=.venv/nvcc-tried
if [ -f $ready ] && ! has nvcc && [ ! -f $nvcc ]; then
  say "installing nvcc into .venv, for the GPU kernels"
  if pip_install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96; then
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$PWD"/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc >.venv/bin/nvcc
    chmod +x .venv/bin/nvcc
  else
    say "could not install nvcc; the build will have no GPU path"
  fi
  : >$nvcc
fi

if [ "$what" = lint ] && ! has clang-format-14 && [ ! -x .venv/bin/clang-format ]; then
  say "installing clang-format 14 into .venv"
  pip_install 'clang-format==14.0.6' || say "could not install clang-format 14; formatting will not be checked"
fi
if [ "$what" = lint ] && [ -f $ready ] && { ! has ruff || [ ! -x .venv/bin/mypy ]; }; then
  say "installing ruff and mypy into .venv"
  pip_install ruff mypy || say "could not install ruff and mypy; Python will not be checked"
fi
exit 0
