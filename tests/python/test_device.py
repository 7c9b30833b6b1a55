# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of a GPU, and in page-locked memory. A fake driver shows what does not need a GPU."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import stoker

ROOT = Path(__file__).resolve().parents[2]
FAKE = next(iter(sorted(ROOT.glob("build*/tests/cuda/libcuda.so.1"))), None)
OPS = "RandomResizedCrop(30) | RandomHorizontalFlip | Normalize"
DTYPES = ("float32", "float16", "bfloat16", "uint8")


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    return torch


def arrays(n=40):
    rng = np.random.default_rng(0)
    return {"image": rng.integers(0, 256, (n, 33, 37, 3), np.uint8), "label": np.arange(n) * 3}


def both(ops=OPS, **more):
    common = {"batch_size": 6, "shuffle": True, "threads": 3, **more}
    return stoker.Loader(arrays(), ops, output="torch", **common), stoker.Loader(
        arrays(), ops, output="torch", device="cuda", **common
    )


def run(code, **env):
    """Runs a program of its own; its output."""
    made = subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


# ---------------------------------------------------------------- without a GPU

RAW = """
import numpy as np
from stoker import _stoker, UsageError
rng = np.random.default_rng(0)
def opened(**more):
    arrays = [("image", 4, rng2.integers(0, 256, (20, 9, 7, 3), np.uint8)), ("label", 10, np.arange(20))]
    return _stoker.Loader({"arrays": arrays, "batch_size": 6, "dtype": 3, "layout": 1, "threads": 2, **more})
rng2 = np.random.default_rng(1); host = opened()
rng2 = np.random.default_rng(1); there = opened(device="cuda")
for _ in range(4):
    for a, b in zip(host.next(), there.next()):
        assert a.__dlpack_device__() == (1, 0) and b.__dlpack_device__() == (2, 0)
        assert a.shape == b.shape and a.dtype == b.dtype
        assert (np.asarray(a) == np.asarray(b)).all()
        capsule = b.__dlpack__(stream=1)
        del capsule
        try:
            memoryview(b)[0] = 1
            raise SystemExit("a copy of device memory can be written to")
        except (TypeError, NotImplementedError):
            pass
assert there.next() is None
assert there.stats()["copied_bytes"] >= 20 * (9 * 7 * 3 + 8)
print("equal")
"""


@pytest.mark.skipif(FAKE is None, reason="built without nvcc, so there is no fake driver")
def test_memory_of_a_device_through_the_buffer_protocol_and_dlpack():
    assert run(RAW, LD_LIBRARY_PATH=str(FAKE.parent)) == "equal\n"


def test_without_a_gpu_the_error_says_so():
    code = """
import torch, numpy as np, stoker
try:
    stoker.Loader(np.zeros((4, 3)), device="cuda", output="torch")
except stoker.Error as error:
    print(error)
"""
    pytest.importorskip("torch")
    assert "GPU" in run(code, CUDA_VISIBLE_DEVICES="")


def test_host_memory_does_not_open_the_driver():
    code = """
import numpy as np, stoker
list(stoker.Loader(np.zeros((4, 3)), output="numpy"))
print("libcuda" in open("/proc/self/maps").read())
"""
    assert run(code) == "False\n"


def test_devices_of_frameworks():
    from stoker._device import device_of

    class Torch:
        type, index = "cuda", 2

    class Jax:
        platform, local_hardware_id = "gpu", 1

    class Cpu:
        platform, local_hardware_id = "cpu", 0

    assert [device_of(d) for d in (Torch(), Jax(), Cpu(), "cuda:3")] == ["cuda:2", "cuda:1", None, "cuda:3"]
    with pytest.raises(stoker.UsageError, match="device is 7"):
        device_of(7)


def test_pinned_memory_without_a_gpu_is_ordinary_memory():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.warns(RuntimeWarning, match="torch finds no GPU"):
        loader = stoker.Loader(arrays(), OPS, pin_memory=True, output="torch")
    assert next(iter(loader)).image.shape == (1, 3, 30, 30)


def test_an_allocator_in_python_does_not_deadlock(monkeypatch):
    """Threads of the engine wait for the GIL while they hold a lock; no call may wait for that lock with the GIL."""
    torch = pytest.importorskip("torch")
    from stoker import _device

    class Plain(_device.Pinned):
        def allocate(self, n):
            memory = torch.empty(n + 64, dtype=torch.uint8)
            address = -(-memory.data_ptr() // 64) * 64
            self._held[address] = memory
            return address

    plain = Plain()
    host = stoker.Loader(arrays(), OPS, batch_size=6, shuffle=True, output="torch")
    monkeypatch.setattr(_device, "pinned", lambda *_: plain)
    loader = stoker.Loader(arrays(), OPS, batch_size=6, shuffle=True, output="torch", pin_memory=True)
    for _ in range(150):
        seen = [batch.image for batch in loader]
        assert loader.epoch == host.epoch + 1 and loader.stats().batches > 0
        assert all(torch.equal(a.image, b) for a, b in zip(host, seen, strict=True))
    loader.close()
    del seen
    assert plain._held == {}


class Ordinary:
    """Stands in for torch's allocator of page-locked memory, which needs a GPU."""

    def __init__(self):
        self.held, self.interrupted = {}, False

    def allocate(self, n):
        if self.interrupted:
            raise KeyboardInterrupt
        memory = np.empty(n + 64, np.uint8)
        address = -(-memory.ctypes.data // 64) * 64
        self.held[address] = memory
        return address

    def free(self, address):
        del self.held[address]


@pytest.fixture
def ordinary(monkeypatch):
    allocator = Ordinary()
    monkeypatch.setattr(stoker._device, "pinned", lambda *_: allocator)
    return allocator


def test_an_exception_stays_while_a_batch_is_freed(ordinary):
    """An array that only an expression refers to is freed while the exception passes through its frame."""

    def fail(batches):
        return next(batches), int("no number")

    with stoker.Loader({"x": np.arange(40.0).reshape(10, 4)}, batch_size=2, output="numpy") as loader:
        with pytest.raises(ValueError, match="no number"):
            fail(iter(loader))
    assert ordinary.held == {}


@pytest.mark.parametrize("where", ["dataset", "allocator"])
def test_ctrl_c_with_an_allocator_in_python(where, ordinary):
    class Numbers:
        interrupted = False

        def __len__(self):
            return 8

        def __getitem__(self, i):
            if self.interrupted and i == 2:
                raise KeyboardInterrupt
            return np.float32(i)

    source = Numbers()
    what = source if where == "dataset" else ordinary
    with stoker.Loader(source, batch_size=4, processes=0, output="numpy") as loader:
        batches = iter(loader)
        what.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        what.interrupted = False
        assert [batch.image.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ordinary.held == {}


# ---------------------------------------------------------------- torch


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_are_equal(torch, dtype, layout):
    ops = OPS if dtype != "uint8" else "RandomResizedCrop(30)"
    host, there = both(ops, dtype=dtype, layout=layout)
    for _ in range(2):
        for a, b in zip(host, there, strict=True):
            assert b.image.device == torch.device("cuda", torch.cuda.current_device()) and b.label.is_cuda
            assert a.image.stride() == b.image.stride()
            assert torch.equal(a.image, b.image.cpu()) and torch.equal(a.label, b.label.cpu())
    assert there.stats().copied_bytes > 0 and "copied" in repr(there.stats())
    assert "images cross the bus as bytes" in there.explain() or dtype == "uint8"


def test_everything_else_of_a_loader(torch):
    host, there = both(fields=("image", "label", "index"))
    assert torch.equal(host.peek().image, there.peek().image.cpu())
    assert torch.equal(host.get([5, 1], epoch=3).image, there.get([5, 1], epoch=3).image.cpu())
    batches = iter(there)
    kept = [next(batches) for _ in range(4)]
    state = there.state_dict()
    assert state["position"] == 24
    there.close()
    for a, b in zip(host, kept, strict=False):
        assert torch.equal(a.image, b.image.cpu())


def test_released_batches_are_not_overwritten(torch):
    """The stream is far behind the host, which drops each batch at once."""
    host, there = both()
    busy = torch.randn(4096, 4096, device="cuda")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            seen = []
            for _ in range(3):
                for batch in there:
                    for _ in range(4):
                        busy = busy @ busy * 1e-3
                    seen.append(batch.image * 2)
                    del batch
            stream.synchronize()
        wanted = [batch.image * 2 for _ in range(3) for batch in host]
        assert all(torch.equal(a, b.cpu()) for a, b in zip(wanted, seen, strict=True))


def test_another_thread_may_take_batches(torch):
    host, there = both()
    got = []

    def take():
        with torch.cuda.stream(torch.cuda.Stream()):
            got.extend(batch.image.cpu() for batch in there)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert all(torch.equal(a.image, b) for a, b in zip(host, got, strict=True))


def test_a_graph_is_captured_while_batches_arrive(torch):
    host, there = both()
    still = torch.zeros(6, 3, 30, 30, device="cuda")
    batches = there.forever()
    stream = torch.cuda.Stream()
    for turn in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            (still * 2).sum()
            stream.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                result = (still * 2).sum(dim=(1, 2, 3))
        for a, b in zip(host, batches, strict=False):
            still[: len(b.image)].copy_(b.image)
            graph.replay()
            assert torch.allclose(result[: len(a.image)].cpu(), (a.image * 2).sum(dim=(1, 2, 3)), atol=1e-2), turn


def test_a_failed_kernel_ends_in_an_exception(torch):
    code = """
import numpy as np, stoker, torch
loader = stoker.Loader({"image": np.zeros((400, 33, 37, 3), np.uint8)}, "CenterCrop(30)", batch_size=4, device="cuda")
batches = loader.forever()
kept = next(batches)
torch.zeros(4, device="cuda")[torch.tensor([10**6], device="cuda")]
try:
    for _ in range(1000):
        next(batches)
    print("nothing")
except stoker.Error as error:
    print("error", "GPU" in str(error) or "CUDA" in str(error))
except Exception as error:
    print("error", "CUDA" in str(error))
del kept
loader.close()
print("closed")
"""
    assert run(code) == "error True\nclosed\n"


def test_pinned_memory_is_torchs(torch):
    host = stoker.Loader(arrays(), OPS, batch_size=6, shuffle=True, output="torch")
    pinned = stoker.Loader(arrays(), OPS, batch_size=6, shuffle=True, output="torch", pin_memory=True)
    for _ in range(8):
        there = []
        for batch in pinned:
            assert batch.image.is_pinned() and batch.label.is_pinned()
            there.append(batch.image.to("cuda", non_blocking=True))
        assert all(torch.equal(a.image, b.cpu()) for a, b in zip(host, there, strict=True))


class Rows:
    def __len__(self):
        return 20

    def __getitem__(self, i):
        return np.full(3, i, np.float32), i


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader_moves_batches(torch, workers):
    images = torch.utils.data.TensorDataset(torch.arange(20.0).reshape(10, 2), torch.arange(10))
    for dataset in (images, Rows()):
        host = stoker.DataLoader(dataset, batch_size=4, num_workers=workers)
        there = stoker.DataLoader(dataset, batch_size=4, num_workers=workers, device="cuda")
        pinned = stoker.DataLoader(dataset, batch_size=4, num_workers=workers, pin_memory=True)
        for a, b, c in zip(host, there, pinned, strict=True):
            assert all(t.is_cuda for t in b) and all(t.is_pinned() for t in c)
            assert all(torch.equal(x, y.cpu()) and torch.equal(x, z) for x, y, z in zip(a, b, c, strict=True))


@pytest.mark.parametrize("processes", [0, 2])
def test_rows_in_python_arrive(torch, processes):
    host = list(stoker.Loader(Rows(), batch_size=4, output="torch", processes=processes))
    for more in ({"device": "cuda"}, {"pin_memory": True}):
        there = list(stoker.Loader(Rows(), batch_size=4, output="torch", processes=processes, **more))
        for a, b in zip(host, there, strict=True):
            assert all(t.is_cuda if "device" in more else t.is_pinned() for t in b)
            assert all(torch.equal(x, y.cpu()) for x, y in zip(a, b, strict=True))


# ---------------------------------------------------------------- JAX, CuPy


def test_jax_and_cupy_arrays_are_on_the_device(torch):
    host = [(batch.image.numpy(), batch.label.numpy()) for batch in both()[0]]
    for name in ("jax", "cupy"):
        try:
            module = __import__(name)
            if name == "jax" and module.default_backend() != "gpu":
                continue
        except ImportError:
            continue
        loader = stoker.Loader(arrays(), OPS, batch_size=6, shuffle=True, output=name, device="cuda")
        for (image, label), batch in zip(host, loader, strict=True):
            there = batch.image.get() if name == "cupy" else np.asarray(batch.image)
            labels = batch.label.get() if name == "cupy" else np.asarray(batch.label)
            assert (there == image).all() and (labels == label).all()


# ---------------------------------------------------------------- what the GPU does

WORK = """
import io, sys, pathlib, numpy as np
from PIL import Image
from stoker import _stoker
folder = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(0)
for i in range(20):
    (folder / f"c{i % 3}").mkdir(exist_ok=True)
    small = Image.fromarray(rng.integers(0, 256, (9, 11, 3), np.uint8)).resize((90 + 7 * i, 120 - 3 * i))
    small.save(folder / f"c{i % 3}" / f"{i}.jpg", quality=60 + i, subsampling=i % 3, progressive=i == 5)
def opened(**more):
    options = {"source": str(folder), "ops": "RandomResizedCrop(40) | RandomHorizontalFlip", "batch_size": 6}
    return _stoker.Loader({**options, "threads": 2, "cache_dir": "off", **more})
for work in (3, 4):
    host, there = opened(), opened(device="cuda", device_work=work)
    for _ in range(14):
        x, y = host.next(), there.next()
        for a, b in zip(x or (), y or ()):
            assert (np.asarray(a) == np.asarray(b)).all()
    assert there.stats()["device_samples"] >= 2 * 19
print("equal")
"""


@pytest.mark.skipif(FAKE is None, reason="built without nvcc, so there is no fake driver")
def test_the_device_finishes_jpegs(tmp_path):
    code = WORK.replace("sys.argv[1]", repr(str(tmp_path)))
    assert run(code, LD_LIBRARY_PATH=str(FAKE.parent)) == "equal\n"


def test_the_work_of_a_device_is_checked():
    with pytest.raises(stoker.UsageError, match="device_work is 'gpu'"):
        stoker.Loader(arrays(), OPS, device_work="gpu")
    with pytest.raises(stoker.UsageError, match="device_work needs a GPU"):
        stoker.Loader(arrays(), OPS, device_work="idct")
    assert stoker.Loader(arrays(), OPS, device_work="none", output="numpy").batch_size == 1


@pytest.mark.parametrize("layout", ["NCHW", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gpu_finishes_jpegs(torch, tmp_path, dtype, layout):
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(30):
        small = Image.fromarray(rng.integers(0, 256, (9, 11, 3), np.uint8)).resize((90 + 7 * i, 250 - 3 * i))
        small.save(tmp_path / f"{i:02}.jpg", quality=60 + i, subsampling=i % 3, progressive=i == 5)
    ops = "RandomResizedCrop(64) | RandomHorizontalFlip" + ("" if dtype == "uint8" else " | Normalize")
    common = {"batch_size": 8, "dtype": dtype, "layout": layout, "output": "torch"}
    host = stoker.Loader(tmp_path, ops, **common)
    for work, cache in (("idct", None), ("idct", "dct"), ("decode", None)):
        host.set_epoch(0)
        loader = stoker.Loader(tmp_path, ops, device="cuda", device_work=work, cache=cache, **common)
        for _ in range(3):
            for a, b in zip(host, loader, strict=True):
                assert torch.equal(a.image, b.image.cpu())
        assert loader.stats().device_samples >= 87
