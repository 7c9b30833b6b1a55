# SPDX-License-Identifier: Apache-2.0
"""What the doctor reads of GPUs: without a driver, and from a library with the driver's functions."""

import doctest
import shutil
import subprocess

import pytest
from stoker.doctor import nvml

DRIVER = """
#include <stdio.h>

struct rates { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
static int devices[2];

int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = &devices[i]; return 0; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned n)
{
    return snprintf(uuid, n, "GPU-%d-more", device == &devices[1]) < 0;
}
int nvmlDeviceGetUtilizationRates(void *device, struct rates *r) { r->gpu = device == &devices[1] ? 80 : 5; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, struct memory *m) { m->used = 1ull << 36; return device == 0; }
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) { *mhz = type == 1 ? 1200 : 7; return device == 0; }
int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz) { *mhz = 1980; return device == 0 || type == 0; }
"""


@pytest.fixture
def driver(tmp_path):
    """Builds a library with the driver's functions, of which the first one returns `result`."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")

    def build(result):
        (tmp_path / "nvml.c").write_text(DRIVER.replace("INIT", str(result)))
        library = tmp_path / f"nvml-{result}.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
        return str(library)

    return build


def test_without_a_driver():
    assert nvml.Nvml("libnot-there.so.1").read() == []
    assert doctest.testmod(nvml).failed == 0


def test_a_driver_that_does_not_start(driver):
    assert nvml.Nvml(driver(9)).read() == []


def test_only_gpus_of_the_script_are_read(driver, monkeypatch):
    for words, expected in (("0", [0.05]), ("GPU-1", [0.8]), ("1, 0", [0.05, 0.8]), ("", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", words)
        assert [reading.util for reading in nvml.Nvml(driver(0)).read()] == expected


def test_the_busiest_gpu_is_reported(driver, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus = nvml.Nvml(driver(0))
    found = nvml.summary([gpus.read(), gpus.read()])
    assert found == {"util": 0.8, "memory_used": 1 << 36, "clock_mhz": 1200, "clock_max_mhz": 1980}
