# SPDX-License-Identifier: Apache-2.0
"""The wheel in an environment of its own: NumPy, and neither a compiler nor a framework."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

ALLOWED = re.compile(r"lib(c|m|pthread)\.so\.\d+|ld-linux[-\w]*\.so\.\d+|ld-musl[-\w]*\.so\.\d+|libc\.musl.*")


@pytest.fixture(scope="module")
def wheel():
    wheels = list(Path(__file__).parents[2].glob("build/wheel/stoker-*.whl"))
    if not wheels:
        pytest.skip("there is no wheel; tools/wheel.sh builds it")
    return wheels[0]


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """A folder with an environment that pip installed the wheel into; NumPy alone is lent from here."""
    root = tmp_path_factory.mktemp("clean")
    place = root / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=300)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-index", "--no-deps", wheel]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lent = root / "lent"
    lent.mkdir()
    for name in ("numpy", "numpy.libs"):
        if (there := Path(np.__file__).parents[1] / name).exists():
            (lent / name).symlink_to(there)
    packages = next(place.glob("lib/python*/site-packages"))
    (packages / "lent.pth").write_text(f"{lent}\n")
    return place


def run(place, *arguments):
    env = {"PATH": str(place / "bin"), "STOKER_CACHE_DIR": "off"}
    assert shutil.which("cc", path=env["PATH"]) is None
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=300, env=env)


def test_it_loads_a_folder(clean, photos):
    code = f"""if True:
        import importlib.util, stoker
        assert stoker.__file__.startswith({str(clean)!r})
        print([name for name in ("torch", "tensorflow", "jax", "PIL") if importlib.util.find_spec(name)])
        ops = "RandomResizedCrop(8) | Normalize"
        for images, labels in stoker.Loader({str(photos)!r}, ops, batch_size=5, shuffle=True):
            print(type(images).__module__, images.shape, labels.shape)
    """
    done = run(clean, clean / "bin/python", "-c", code)
    shapes = [f"numpy ({n}, 3, 8, 8) ({n},)" for n in (5, 5, 2)]
    assert done.stdout.splitlines() == ["[]", *shapes], done.stderr


def test_it_brings_the_command(clean, photos):
    done = run(clean, clean / "bin/stoker", "ls", photos)
    assert done.returncode == 0 and "12" in done.stdout, done.stderr


def test_it_needs_nothing_but_the_c_library(wheel, tmp_path):
    if not shutil.which("readelf"):
        pytest.skip("there is no readelf")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    programs = [p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
    assert sorted(p.name for p in programs) == ["_stoker.abi3.so", "stoker"]
    for program in programs:
        words = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", words)
        assert needed and [name for name in needed if not ALLOWED.fullmatch(name)] == []
        assert "RUNPATH" not in words and "RPATH" not in words


def test_it_is_for_all_newer_pythons(wheel):
    assert "-cp311-abi3-" in wheel.name


# ---------------------------------------------------------------- a system without the codecs' headers


def setup(tmp_path, *options):
    """Configures the wheel's build where pkg-config finds no library at all."""
    meson = shutil.which("meson", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if not meson:
        pytest.skip("there is no meson")
    (tmp_path / "empty").mkdir()
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(tmp_path / "empty"), "PKG_CONFIG_PATH": ""}
    command = [meson, "setup", tmp_path / "build", Path(__file__).parents[2], "-Dwheel=true", "-Dtests=false", *options]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def test_a_build_without_codecs_fails_and_names_their_packages(tmp_path):
    done = setup(tmp_path)
    assert done.returncode != 0, done.stdout
    assert "libjpeg, libpng, libwebp, libwebpdemux" in done.stdout
    assert re.search("Debian.* apt install .*libjpeg-dev libpng-dev libwebp-dev", done.stdout)
    assert re.search("Fedora.* dnf install .*libjpeg-turbo-devel libpng-devel libwebp-devel", done.stdout)
    assert re.search("Homebrew.* brew install .*jpeg-turbo libpng webp", done.stdout)
    assert "-Dcodecs=optional" in done.stdout


def test_a_build_may_do_without_codecs_on_request(tmp_path):
    done = setup(tmp_path, "-Dcodecs=optional")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("libjpeg *: NO", done.stdout) and re.search("liburing *: NO", done.stdout)
