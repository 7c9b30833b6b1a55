#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh -- installs what is missing for building and testing, and says so; silent when all is there.
#
#     tools/setup.sh           compiler, meson, libraries of codecs and io_uring; .venv with Pillow and NumPy
#     tools/setup.sh fuzz      the same and a clang with libFuzzer
#     tools/setup.sh lint      the same and clang-format 14
#     tools/setup.sh python    the same, and tries the .venv again after a failure
#     tools/setup.sh frameworks   the same and torch, JAX, TensorFlow, trainers, type checkers and Chromium, for the tests
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
setup: there is no apt-get here; please install these and try again:
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
    say "neither root nor sudo; please run: apt-get install $*" >&2
    return 1
  fi
  say "installing $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null 2>&1 && return
  say "refreshing the list of packages"
  as_root apt-get -qq update >/dev/null &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

packages=$(missing)
if [ -n "$packages" ]; then
  # shellcheck disable=SC2086 # a list of words
  if ! apt_install $packages; then
    # Without these tools nothing works. A missing codec is reported by meson setup.
    for tool in cc pkg-config meson ninja python3; do has $tool || exit 1; done
    say "going on without $(echo $packages)" >&2
  fi
fi
if [ "$what" = fuzz ] && ! tools/find_clang.sh >/dev/null; then
  # Debian keeps the run-time of the fuzzer apart from the compiler.
  apt_install "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
  tools/find_clang.sh >/dev/null || { say "no clang here can link a fuzzer" >&2; exit 1; }
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
    echo "python3 -m venv did not work" >$failed
  # Pillow 13 is the reference; where Python is too old for it the tests follow the older one.
  elif ! pip_install 'pillow>=13' numpy && ! pip_install pillow numpy; then
    echo "pip could not get Pillow and NumPy" >$failed
  else
    : >$ready
  fi
fi
[ ! -f $failed ] || say "Python tests will be skipped: $(cat $failed) (again with: tools/setup.sh python)"

# Large, and tried once: without them their tests are skipped, with words. STOKER_NO_FRAMEWORKS=1 leaves them out.
tried=.venv/frameworks-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $tried ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  say "putting torch, JAX and TensorFlow into .venv, once; this takes a while (STOKER_NO_FRAMEWORKS=1 leaves them out)"
  for framework in torch==2.13.0 jax tensorflow-cpu; do
    pip_install $framework || say "could not get $framework: its tests will be skipped"
  done
  # Beside torch for the CPU its compiled parts do not load, and are not needed.
  pip_install --no-deps torchvision==0.28.0 || say "could not get torchvision: its tests will be skipped"
  : >$tried
fi
# Tables: pyarrow for Parquet and Arrow, and Hugging Face's data sets on top of it.
tables=.venv/tables-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $tables ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  for package in pyarrow==26.0.1 datasets==5.2.0; do
    pip_install $package || say "could not get $package: its tests will be skipped"
  done
  : >$tables
fi
# timm without most of what it needs for models: only its transforms, datasets and loaders are tested.
timm=.venv/timm-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $timm ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  pip_install --no-deps timm pyyaml safetensors huggingface_hub || say "could not get timm: its tests will be skipped"
  : >$timm
fi
# Trainers, whose way with a DataLoader is tested.
trainers=.venv/trainers-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $trainers ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  for package in lightning==2.6.6 accelerate==1.15.0 transformers==5.22.2 albumentations==2.0.8; do
    pip_install $package || say "could not get $package: its tests will be skipped"
  done
  : >$trainers
fi
# A browser, for the doctor's HTML report.
browser=.venv/browser-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $browser ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  has chromium || has chromium-browser || has google-chrome || apt_install chromium ||
    say "could not get chromium: the HTML report will not be tested in a browser"
  : >$browser
fi
# Type checkers, for programs that use the package.
checkers=.venv/checkers-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $checkers ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  pip_install mypy basedpyright || say "could not get mypy and basedpyright: types will not be checked"
  : >$checkers
fi
# The libraries of containers, which are read beside them.
containers=.venv/containers-tried
if [ "$what" = frameworks ] && [ -f $ready ] && [ ! -f $containers ] && [ -z "${STOKER_NO_FRAMEWORKS:-}" ]; then
  pip_install h5py==3.14.0 || say "could not get h5py: its tests will be skipped"
  pip_install --no-deps webdataset==1.0.2 braceexpand pyyaml || say "could not get webdataset: its tests will be skipped"
  : >$containers
fi

# ---------------------------------------------------------------- versions that distributions lack

# Old distributions have an old meson; the check costs time, so it is remembered.
enough=.venv/meson-is-enough
if [ ! -f $enough ]; then
  case $(meson --version) in
  0.[0-5]* | 0.6[0-3]*)
    say "meson here is $(meson --version), 0.64 is needed: putting one into .venv"
    pip_install meson || { say "could not get a newer meson" >&2; exit 1; }
    ;;
  esac
  : >$enough
fi

# The compiler of the kernels for GPUs. Debian's is large; the one of PyPI is the compiler alone.
nvcc=.venv/nvcc-tried
if [ -f $ready ] && ! has nvcc && [ ! -f $nvcc ]; then
  say "putting nvcc into .venv, for the kernels for GPUs"
  if pip_install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96; then
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$PWD"/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc >.venv/bin/nvcc
    chmod +x .venv/bin/nvcc
  else
    say "could not get nvcc: the build will have no GPU path"
  fi
  : >$nvcc
fi

if [ "$what" = lint ] && ! has clang-format-14 && [ ! -x .venv/bin/clang-format ]; then
  say "putting clang-format 14 into .venv"
  pip_install 'clang-format==14.0.6' || say "could not get clang-format 14: formatting will not be checked"
fi
if [ "$what" = lint ] && [ -f $ready ] && { ! has ruff || [ ! -x .venv/bin/mypy ]; }; then
  say "putting ruff and mypy into .venv"
  pip_install ruff mypy || say "could not get ruff and mypy: Python will not be checked"
fi
exit 0
