# SPDX-License-Identifier: Apache-2.0
"""Hand-over to the frameworks: types, and no copies, proved by addresses."""

import gc
import subprocess
import sys

import numpy as np
import pytest
import stoker


def raw_addresses(monkeypatch):
    """Addresses of the memory as the engine handed it out."""
    from stoker._batch import Form

    seen = []
    batch = Form.batch

    def spy(self, raw):
        seen.append([m.address for m in raw])
        return batch(self, raw)

    monkeypatch.setattr(Form, "batch", spy)
    return seen


def test_numpy(photos, monkeypatch):
    seen = raw_addresses(monkeypatch)
    batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="numpy", batch_size=3)))
    assert [batch.image.ctypes.data, batch.label.ctypes.data] == seen[0]
    assert batch.label.dtype == np.int64


def test_torch(photos, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    seen = raw_addresses(monkeypatch)
    loader = stoker.Loader(photos, "CenterCrop(8) | Normalize", batch_size=3)
    images, labels = next(iter(loader))
    assert isinstance(images, torch.Tensor) and images.dtype == torch.float32 and labels.dtype == torch.int64
    assert [images.data_ptr(), labels.data_ptr()] == seen[0]
    images += 1  # writable
    want = images.clone()
    loader.close()
    gc.collect()
    assert torch.equal(images, want)
    last = next(iter(stoker.Loader(photos, "CenterCrop(8) | Normalize", batch_size=3, layout="channels_last"))).image
    assert last.is_contiguous(memory_format=torch.channels_last) and torch.equal(last + 1, want)
    half = next(iter(stoker.Loader(photos, "CenterCrop(8)", dtype=torch.bfloat16))).image
    assert half.dtype == torch.bfloat16
    assert half.float().max() <= 1


def test_torch_memory_comes_back(photos):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    loader = stoker.Loader(photos, "CenterCrop(8)", batch_size=3, output="torch")
    kept = list(loader)
    assert isinstance(kept[0].image, torch.Tensor) and loader.stats().kept_bytes > 0
    del kept
    gc.collect()
    loader.peek()
    assert loader.stats().kept_bytes <= 2 * (3 * 3 * 8 * 8 * 4 + 3 * 17)


def test_torch_sources_and_ops():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = torch.randn(20, 3), torch.arange(20)
    loader = stoker.Loader((x, y), batch_size=5)
    assert torch.equal(torch.cat([b[0] for b in loader]), x)
    assert torch.equal(torch.cat([b[1] for b in loader]), y)
    pixels = torch.randint(0, 255, (6, 8, 8, 3), dtype=torch.uint8)
    loader = stoker.Loader(pixels, ["CenterCrop(8)", lambda t: t.mean((1, 2)).to(torch.float64)], batch_size=6)
    (means,) = next(iter(loader))
    assert means.dtype == torch.float64 and means.shape == (6, 3)


class Exporter:
    """What has DLPack and nothing else of an array's."""

    ndim = 2

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **k):
        return self.array.__dlpack__(**k)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_both_ways():
    x = np.arange(20.0).reshape(10, 2)
    loader = stoker.Loader(Exporter(x), batch_size=10, output="numpy")
    assert np.array_equal(next(iter(loader)).x, x)
    x += 1  # read in place: the next epoch sees it
    loader.set_epoch(2)
    raw = loader._engine.next()[0]
    assert raw.__dlpack_device__() == (1, 0) and raw.address % 64 == 0
    taken = np.from_dlpack(raw)
    assert np.array_equal(taken, x) and taken.ctypes.data == raw.address


def test_torch_dataset_is_deterministic():
    torch = pytest.importorskip("torch", reason="torch is not installed")

    class Noise(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, i):
            return torch.randn(4), i

    runs = [torch.cat([b[0] for b in stoker.Loader(Noise(), batch_size=4, threads=t)]) for t in (1, 4)]
    assert torch.equal(*runs)


def test_torch_ddp_is_seen_when_iteration_begins(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    code = f"""
import sys, numpy as np, torch, torch.distributed as dist, stoker
rank = int(sys.argv[1])
loader = stoker.Loader((np.arange(40.0), np.arange(40)), batch_size=5)
dist.init_process_group("gloo", init_method="file://{tmp_path}/rendezvous", rank=rank, world_size=2)
print(sorted(int(v) for b in loader for v in b.label), "torch.distributed" in loader.explain())
dist.destroy_process_group()
"""
    both = [subprocess.Popen([sys.executable, "-c", code, str(r)], stdout=subprocess.PIPE, text=True) for r in range(2)]
    lines = [p.communicate(timeout=300)[0].strip() for p in both]
    assert all(line.endswith("True") for line in lines)
    seen = [eval(line.rsplit(" ", 1)[0]) for line in lines]
    assert sorted(seen[0] + seen[1]) == list(range(40)) and len(seen[0]) == 20


def test_jax(photos, monkeypatch):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    seen = raw_addresses(monkeypatch)
    batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="jax", batch_size=3)))
    assert isinstance(batch.image, jax.Array) and batch.label.dtype == "int32"
    assert batch.image.unsafe_buffer_pointer() == seen[0][0]
    plain = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="numpy", batch_size=3)))
    assert np.array_equal(batch.image, plain.image)
    half = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="jax", dtype="bfloat16"))).image
    assert half.dtype == "bfloat16"


class Capsule:
    """A DLPack capsule, as an object that NumPy takes."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_tensorflow(photos, monkeypatch):
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    seen = raw_addresses(monkeypatch)
    batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="tensorflow", batch_size=3, layout="NHWC")))
    plain = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="numpy", batch_size=3, layout="NHWC")))
    assert batch.label.dtype == tf.int64 and np.array_equal(batch.image.numpy(), plain.image)
    assert np.from_dlpack(Capsule(tf.experimental.dlpack.to_dlpack(batch.image))).ctypes.data == seen[0][0]


def test_bfloat16_without_help(photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(stoker.UsageError, match="ml_dtypes"):
        stoker.Loader(photos, "CenterCrop(8)", dtype="bfloat16", output="numpy")


def test_bfloat16_in_functions_and_data_sets():
    kind = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
    samples = [(np.full(3, i + 0.5, kind), i) for i in range(4)]
    batch = next(iter(stoker.Loader(samples, batch_size=4, output="numpy")))
    assert batch.image.dtype == kind and batch.image[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5]
    seen = []

    def double(image):
        seen.append(image.dtype)
        return image * 2

    pixels = np.full((4, 8, 8, 3), 51, np.uint8)
    k = {"dtype": "bfloat16", "output": "numpy", "batch_size": 2}
    plain, doubled = (next(iter(stoker.Loader(pixels, ops, **k))).image for ops in ("", ["", double]))
    assert set(seen) == {np.dtype(kind)} and doubled.dtype == kind and np.array_equal(doubled, plain * 2)


def test_auto_is_torch_only_when_imported():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import numpy as np, stoker; print(type(next(iter(stoker.Loader(np.zeros((2, 2))))).x))",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "numpy.ndarray" in done.stdout, done.stderr
