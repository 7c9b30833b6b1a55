# SPDX-License-Identifier: Apache-2.0
"""Keras' fit, evaluate and predict with Loader and DataLoader, on every backend: losses and weights as fed by hand."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("keras_fit.py")


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_backend(backend, photos):
    for package in ("keras", backend, "torch"):
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(photos)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
    assert f"all passed {backend}" in done.stdout
