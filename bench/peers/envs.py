# SPDX-License-Identifier: Apache-2.0
"""Environments of the peers: what each needs, and how it is installed, once. A failure is kept with its reason."""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

TORCH = ["torch==2.13.0", "numpy"]
# Its compiled ops need the torch of their own build; transforms work with any.
TORCHVISION = ["--no-deps", "torchvision==0.28.0"]


@dataclass
class Env:
    pip: list[list[str]]  # the arguments of one pip install after the other
    variables: dict[str, str] = field(default_factory=dict)
    debian: dict[str, list[str]] = field(default_factory=dict)  # package: a command that succeeds when it is there


ENVS = {
    "stoker": Env([["numpy", "pillow>=13", "matplotlib"]]),
    "torch": Env([[*TORCH, "pillow>=13", "webdataset==1.0.2"], TORCHVISION]),
    "simd": Env(
        [[*TORCH, "setuptools", "wheel", "pybind11"], TORCHVISION, ["--no-build-isolation", "pillow-simd"]],
        variables={"CFLAGS": "-mavx2 -O3"},
        debian={
            "libjpeg-dev": ["pkg-config", "--exists", "libjpeg"],
            "zlib1g-dev": ["pkg-config", "--exists", "zlib"],
        },
    ),
    "h5py": Env([[*TORCH, "pillow>=13", "h5py==3.14.0"], TORCHVISION]),
    "tf": Env([["tensorflow-cpu==2.21.0"]]),
    "dali": Env([["nvidia-dali-cuda120==2.4.0", "numpy"]]),
    "ffcv": Env(
        [
            [*TORCH, "numba", "opencv-python-headless", "pandas", "pillow", "setuptools<80", "wheel", "tqdm", "psutil"],
            ["fastargs", "terminaltables", "pytorch_pfn_extras", "assertpy"],
            ["--no-build-isolation", "--no-deps", "ffcv==1.0.2"],
        ],
        debian={
            "libopencv-dev": ["pkg-config", "--exists", "opencv4"],
            "libturbojpeg0-dev": ["pkg-config", "--exists", "libturbojpeg"],
        },
    ),
    "spdl": Env([["spdl==0.8.0", "numpy"]], debian={"ffmpeg": ["ffmpeg", "-version"]}),
    "grain": Env([["grain==0.2.18", "pillow>=13", "numpy"]]),
    "opencv": Env([["opencv-python-headless", "numpy"]]),
}


class Missing(Exception):
    """Something could not be installed; the text says what, and why."""


def works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def apt_install(packages: list[str]) -> None:
    words = "needs Debian's " + ", ".join(packages)
    if not shutil.which("apt-get"):
        raise Missing(f"{words}, and there is no apt-get")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    install = [*apt, "-y", "--no-install-recommends", "install", *packages]
    if not works(install) and not (works([*apt, "update"]) and works(install)):
        raise Missing(f"{words}, which apt-get could not install")


def last_line(text: str) -> str:
    """What went wrong, out of the many words of a program that failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and not line.lower().startswith(("note:", "hint:"))]
    return (errors or lines or ["no words"])[-1][:160]


def run_pip(python: Path, words: list[str], variables: dict[str, str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"pip could not install {words[-1]}: {last_line(done.stderr)}")


def install(env: Env, folder: Path) -> None:
    absent = [package for package, test in env.debian.items() if not works(test)]
    if absent:
        apt_install(absent)
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"no virtual environment: {last_line(done.stdout + done.stderr)}")
    for words in env.pip:
        run_pip(folder / "bin/python", words, env.variables)


def python_of(name: str, root: Path, again: bool = False) -> Path:
    """The Python of an environment, which is made when it is not there or its recipe has changed."""
    env, folder = ENVS[name], root / f"env-{name}"
    recipe = hashlib.sha256(repr((env, sys.version_info[:2])).encode()).hexdigest()
    ready, failed = folder / "ready", root / f"env-{name}.failed"
    if ready.exists() and ready.read_text() == recipe:
        return folder / "bin/python"
    kept = failed.read_text().split("\n", 1) if failed.exists() else [""]
    if kept[0] == recipe and not again:
        raise Missing(kept[1])
    print(f"installing {' '.join(w for words in env.pip for w in words if not w.startswith('-'))}", file=sys.stderr)
    try:
        install(env, folder)
    except Missing as reason:
        failed.write_text(f"{recipe}\n{reason}")
        raise
    failed.unlink(missing_ok=True)
    ready.write_text(recipe)
    return folder / "bin/python"


def put_wheel(python: Path, wheel: Path) -> None:
    """Stoker's own wheel into its environment, when it is another one than last time."""
    stamp, digest = python.parent.parent / "wheel", hashlib.sha256(wheel.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        run_pip(python, ["--force-reinstall", "--no-deps", str(wheel)], {})
        stamp.write_text(digest)
