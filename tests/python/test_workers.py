# SPDX-License-Identifier: Apache-2.0
"""Worker processes of DataLoader: what they deliver, and what is left when something goes wrong."""

import collections
import contextlib
import errno
import faulthandler
import gc
import multiprocessing
import os
import pickle
import selectors
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import stoker

torch = pytest.importorskip("torch", reason="torch is not installed")

from stoker._memory import unclosed  # noqa: E402
from stoker._pool import TRAINER, Pool  # noqa: E402
from stoker._segments import LARGE, MOST_ALONE, Segments  # noqa: E402
from stoker._workers import GRACE_S, Workers, _interrupts_later, _Process  # noqa: E402
from torch.utils import data  # noqa: E402

Pair = collections.namedtuple("Pair", "image name")


class Numbers(data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((2,), float(i)), i


class Odd(Numbers):
    """All that a batch may contain."""

    def __getitem__(self, i):
        return {
            "pair": Pair(torch.ones(3, 4, 4) * i, str(i)),
            "last": torch.ones(3, 4, 4).contiguous(),
            "array": np.arange(i + 1),
            "empty": torch.zeros(0, 2),
            "half": torch.ones(2, dtype=torch.bfloat16) * i,
            "words": ["a", {"b": i}],
            "long": "x" * 50_000,
        }


def keep(samples):
    return samples


class BadAt(Numbers):
    """Something happens at sample 7."""

    def __init__(self, what):
        self.what = what

    def __getitem__(self, i):
        if i == 7:
            if self.what == "raise":
                raise ValueError("no luck")
            if self.what == "exit":
                os._exit(3)
            if self.what == "sys.exit":
                sys.exit(3)
            if self.what == "Ctrl-C":
                raise KeyboardInterrupt
            if self.what == "hang":
                time.sleep(600)
            faulthandler.disable()  # it would print the trace
            os.kill(os.getpid(), getattr(signal, self.what))
        return super().__getitem__(i)


def children():
    """Of this process, without the processes that multiprocessing itself keeps."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            status, command = (Path(f"/proc/{name}/{file}").read_text() for file in ("stat", "cmdline"))
        except OSError:
            continue
        if int(status.rpartition(")")[2].split()[1]) == os.getpid() and "multiprocessing." not in command:
            found.add(int(name))
    return found


def files():
    return len(os.listdir("/proc/self/fd"))


def soon(condition):
    """Whether something becomes true, however busy the machine is."""
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process and no descriptor stays."""
    before, opened = children(), files()
    yield
    gc.collect()
    stoker._stoker.wait()  # for engines that close in the background
    assert soon(lambda: children() <= before), children() - before
    assert soon(lambda: files() <= opened), (files(), opened)


def equal(a, b):
    if isinstance(a, (torch.Tensor, np.ndarray)):
        return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return a == b


@pytest.fixture(scope="module", autouse=True)
def servers_run():
    """The forkserver and the tracker of resources, once started, keep descriptors."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=print)
    process.start()
    process.join()


@pytest.mark.parametrize("context", [None, "forkserver", "spawn"])
def test_whatever_a_batch_contains(context):
    ours = list(stoker.DataLoader(Odd(), 5, num_workers=2, collate_fn=keep, multiprocessing_context=context))
    theirs = list(data.DataLoader(Odd(), 5, collate_fn=keep))
    assert equal(ours, theirs)


def test_tensors_of_other_kinds():
    def collate(samples):
        several = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        return several, torch.eye(2).to_sparse(), torch.ones(2, requires_grad=True), torch.ones(2).conj()

    nested, sparse, grad, conj = next(iter(stoker.DataLoader(Numbers(), 2, num_workers=1, collate_fn=collate)))
    assert nested.is_nested and [len(part) for part in nested.unbind()] == [2, 3]
    assert sparse.is_sparse and grad.requires_grad and conj.tolist() == [1, 1]


def test_default_collate_of_everything():
    class Same(Odd):
        def __getitem__(self, i):
            sample = super().__getitem__(i)
            del sample["array"]
            return sample

    ours, theirs = (list(kind(Same(), 5, num_workers=2)) for kind in (stoker.DataLoader, data.DataLoader))
    assert equal(ours, theirs)


class Slow(Numbers):
    def __getitem__(self, i):
        time.sleep(0.5 if i < 2 else 0)
        return i


def test_batches_out_of_order():
    batches = [b.tolist() for b in stoker.DataLoader(Slow(), 2, num_workers=2, in_order=False)]
    assert sorted(batches) == [[i, i + 1] for i in range(0, 12, 2)]
    assert [b.tolist() for b in stoker.DataLoader(Slow(), 2, num_workers=2)] == sorted(batches)


def test_an_epoch_that_was_left_is_forgotten():
    loader = stoker.DataLoader(Numbers(), 2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for _, y in loader:
            assert y.tolist() == [0, 1]
            break
    assert [y.tolist() for _, y in loader] == [[i, i + 1] for i in range(0, 12, 2)]
    loader.close()


def other_strides(samples):
    x = torch.arange(120.0)
    return x.view(10, 12).t(), x.view(2, 3, 4, 5).permute(1, 3, 0, 2), x.view(4, 30).t().view(5, 6, 4), x.expand(3, 120)


def test_strides_stay():
    ours, theirs = (
        next(iter(loader(Numbers(), 2, num_workers=1, collate_fn=other_strides)))
        for loader in (stoker.DataLoader, data.DataLoader)
    )
    assert equal(ours, theirs)
    assert [t.stride() for t in ours[:3]] == [t.stride() for t in theirs[:3]]
    assert ours[3].is_contiguous()


def test_channels_last_stays():
    def collate(samples):
        return torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last) * samples[0][1]

    batch = next(iter(stoker.DataLoader(Numbers(), 2, num_workers=1, collate_fn=collate)))
    assert batch.is_contiguous(memory_format=torch.channels_last) and batch[0, 0, 0, 0] == 0


def test_batches_are_the_callers():
    loader = stoker.DataLoader(Numbers(), 2, num_workers=2, prefetch_factor=1)
    kept = list(loader)  # all alive at once
    for x, _ in kept:
        x += 100
    assert [x.tolist() for x, _ in kept] == [[[i + 100.0] * 2, [i + 101.0] * 2] for i in range(0, 12, 2)]
    assert torch.equal(next(iter(loader))[0], torch.tensor([[0.0, 0.0], [1.0, 1.0]]))


def test_arrays_are_the_callers():
    def collate(samples):
        return np.array([y for _, y in samples])

    loader = stoker.DataLoader(Numbers(), 2, num_workers=2, prefetch_factor=1, collate_fn=collate)
    kept = [batch[:1] for batch in loader]  # a view of each is enough
    assert [int(y[0]) for y in kept] == list(range(0, 12, 2))


def test_a_forked_child_gives_no_memory_back():
    class Many(Numbers):
        def __getitem__(self, i):
            return torch.ones(1 << 18) * i

    batches = iter(stoker.DataLoader(Many(), 1, num_workers=1, prefetch_factor=1))
    batch = next(batches)
    child = os.fork()
    if child == 0:
        del batch
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for i in range(1, 6):
        assert next(batches)[0, 0] == i
        assert batch.unique().tolist() == [0.0]


@pytest.mark.parametrize("kind", ["DataLoader", "Loader"])
def test_a_forked_child_keeps_its_batches(kind):
    """The trainer releases a batch that a child still reads; another batch must not be written there."""

    class Many(Numbers):
        def __len__(self):
            return 30

        def __getitem__(self, i):
            return torch.ones(1 << 18) * i

    if kind == "DataLoader":
        batches = iter(stoker.DataLoader(Many(), 1, num_workers=1, prefetch_factor=1))
    else:
        batches = iter(stoker.Loader(Many(), batch_size=1, processes=1, output="torch"))
    (batch,) = next(batches)
    for i in range(3):
        wait, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(wait, 1)
            os._exit(bool((batch.numpy() != 8 * i).any()))  # torch's threads are not in a child
        for k in range(8 * i + 1, 8 * i + 9):
            (batch,) = next(batches)
            assert batch.unique().tolist() == [k]
        os.close(go)
        os.close(wait)
        assert os.waitpid(child, 0)[1] == 0
        assert len(mapped()) < 12  # what was left to a child is unmapped


def test_closing_frees_memory_that_another_process_has_mapped():
    """Workers of another loader inherit the segments that the trainer has mapped, and may live longer."""

    class Many(Numbers):
        def __getitem__(self, i):
            return torch.ones(1 << 18) + i

    loader = stoker.DataLoader(Many(), 1, num_workers=1)
    batches = iter(loader)
    kept, released = next(batches), next(batches)
    del released
    inherited = list(batches._workers.pool.maps.values())
    assert len(inherited) >= 2
    loader.close()
    full = [memory for memory in inherited if memory.view()[:8] != bytes(8)]
    assert len(full) == 1 and kept.unique().tolist() == [1.0]


def mapped():
    """Segments that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if "memfd:stoker" in line]


def test_an_iterator_of_another_process():
    batches = iter(stoker.DataLoader(Numbers(), 2, num_workers=1, prefetch_factor=1))
    next(batches)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            with pytest.raises(stoker.Error, match="belong to the process that forked this one"):
                next(batches)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert [y.tolist() for _, y in batches] == [[i, i + 1] for i in range(2, 12, 2)]


TERMINATED = """
import signal, stoker, torch
signal.signal(signal.SIGTERM, lambda *_: print("asked to end"))
batches = iter(stoker.DataLoader(range(100), 2, num_workers=2))
print(next(batches).tolist())
"""


def test_a_handler_of_sigterm_is_the_programs():
    """It is not called in workers; and they end with the program, which asks them to."""
    done = subprocess.run([sys.executable, "-c", TERMINATED], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[0, 1]\n", done.stderr


def test_memory_is_used_again():
    class Many(Numbers):
        def __len__(self):
            return 200

        def __getitem__(self, i):
            return torch.ones(1 << 18) * i

    seen = set()
    for batch in stoker.DataLoader(Many(), 1, num_workers=1):
        seen.add(batch.data_ptr())
    assert len(seen) <= 4  # two under way, one delivered, and the one before it


@pytest.fixture
def full_pool():
    """No segment of it is free: the trainer has all of them."""
    pool = Pool.make(1)
    for s in range(pool.n):
        pool.owner[s] = TRAINER
    yield pool
    pool.close()


def test_memory_is_given_back(full_pool):
    returned = memoryview(bytearray(8))
    segments = Segments(returned, full_pool)
    for _ in range(3):
        segments.begin()
        segments.array(np.dtype(np.uint8), (100,))[0][:] = 7
    returned[:3] = b"\1\1\1"  # the trainer has released all of them
    segments.begin()
    assert [m.view()[0] for m in segments.maps] == [b"\0", b"\0", b"\7"] and bytes(returned) == bytes(8)
    assert segments.place(100) == (2, 0)
    for fd in segments.fresh.values():
        os.close(fd)


def test_slow_batches_keep_no_free_memory(full_pool):
    returned = memoryview(bytearray(8))
    segments = Segments(returned, full_pool)
    for seconds, kept in ((0.0, True), (60.0, False)):
        segments.begin()
        (segment, _) = segments.array(np.dtype(np.uint8), (8 << 20,))[1]
        segments.maps[segment].view()[0] = 7
        segments.end(seconds)
        returned[segment] = 1
        segments.tidy()
        assert (segments.maps[segment].view()[0] == b"\7") == kept
    for fd in segments.fresh.values():
        os.close(fd)


class Yielding(Segments):
    """Lets other threads run whenever it looks for the next place."""

    @property
    def offset(self):
        time.sleep(0)
        return self.next

    @offset.setter
    def offset(self, value):
        self.next = value


def test_threads_get_places_of_their_own():
    """Such as those of a collate_fn. Segments come from the pool, and are made when it has no more."""
    pool, places = Pool.make(1), []
    segments = Yielding(memoryview(bytearray(1000)), pool)

    def take():
        for n in 50 * (1, LARGE):
            places.append(segments.array(np.dtype(np.uint8), (n,))[1])

    segments.begin()
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places) == len(set(places)) == 400
    for fd in segments.fresh.values():
        os.close(fd)
    pool.close()


class Parts(Numbers):
    """An image, a mask and a label."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        image = torch.full((4, 1 << 16), float(i))
        return image, image[0].byte(), i


def shared_bytes():
    """Memory of segments that this process has mapped."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        inside = "memfd:stoker" in line if "-" in line.split()[0] else inside
        total += int(line.split()[1]) << 10 if inside and line.startswith("Pss:") else 0
    return total


@pytest.mark.parametrize(("part", "most"), [(2, 1 << 20), (1, 8 << 20)])
def test_a_kept_part_does_not_keep_the_batch(part, most):
    """All labels are less than 1 MiB, all masks 2.5 MiB, all images 40 MiB."""
    before, kept = shared_bytes(), []
    for batch in stoker.DataLoader(Parts(), 4, num_workers=2):
        kept.append(batch[part])
    del batch
    assert shared_bytes() - before < most
    assert [int(x) for value in kept for x in value.reshape(4, -1)[:, 0]] == list(range(40))


def test_a_batch_of_many_arrays_needs_few_descriptors():
    def collate(samples):
        return [np.full(1 << 14, i, np.float64) for i in range(100)]

    opened = files()
    batches = iter(stoker.DataLoader(Numbers(), 4, num_workers=1, collate_fn=collate))
    for batch in batches:
        assert [array[-1] for array in batch] == list(range(100))
        workers = batches._workers
        assert len(workers.pool.maps) + len(workers.processes[0].maps) <= 3 * (MOST_ALONE + 1)
    assert files() < opened + 20


MANY = """
import ctypes, multiprocessing, resource, time, numpy as np, stoker
made = multiprocessing.Value("i")
class Rows:
    def __len__(self): return 64
    def __getitem__(self, i): return i
def collate(rows):
    with made.get_lock():
        made.value += 1
    return [np.full(1 << 14, row, np.float64) for row in rows for _ in range(12)]
libc = ctypes.CDLL(None, use_errno=True)  # root gives up what lifts the limit: CAP_SYS_ADMIN, CAP_SYS_RESOURCE
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, sets) == 0
sets[:3] = [value & ~(1 << 21 | 1 << 24) for value in sets[:3]]
assert libc.capset(header, sets) == 0
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
batches = iter(stoker.DataLoader(Rows(), 1, num_workers=4, prefetch_factor=8, collate_fn=collate))
while made.value < 8:  # by now there are 6 batches on their way, or refused
    time.sleep(0.01)
print([int(batch[0][0]) for batch in batches] == list(range(64)))
"""


def test_many_descriptors_on_their_way():
    """The kernel refuses more of them than a user who is not root may have open."""
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True\n", done.stderr


def test_many_kept_batches_need_no_descriptors():
    opened, kept = files(), []
    for batch in stoker.DataLoader(Parts(), 1, num_workers=1):
        kept.append(batch)
        assert files() < opened + 20
    assert len(kept) == 40


def test_a_tensor_that_is_in_a_batch_twice():
    def collate(samples):
        small, large = torch.ones(3), torch.ones(1 << 16)
        return small, small, {"a": large, "b": large}

    one, two, more = next(iter(stoker.DataLoader(Numbers(), 2, num_workers=1, collate_fn=collate)))
    assert one is two and more["a"] is more["b"]


class Large(Numbers):
    """Large tensors, which a worker puts into the batch one by one."""

    def __init__(self, bad=()):
        self.bad = bad

    def __getitem__(self, i):
        if i in self.bad:
            raise ValueError("bad")
        image = torch.arange(3 * 200 * 200, dtype=torch.float32).reshape(200, 200, 3).permute(2, 0, 1) + i
        return {"image": image, "more": [image.byte(), (image[0].double(), i)], "small": image[0, 0]}


def test_large_samples():
    ours, torchs = (cls(Large(), 5, num_workers=2) for cls in (stoker.DataLoader, data.DataLoader))
    for a, b in zip(ours, torchs, strict=True):
        assert torch.equal(a["image"], b["image"]) and a["image"].stride() == b["image"].stride()
        assert torch.equal(a["more"][0], b["more"][0]) and torch.equal(a["small"], b["small"])
        assert all(torch.equal(x, y) for x, y in zip(a["more"][1], b["more"][1], strict=True))


def test_large_samples_that_are_left_out():
    options = {"num_workers": 2, "on_error": "skip", "max_bad": 0.9}
    batches = list(stoker.DataLoader(Large(bad=(0, 7)), 5, **options))
    assert [[int(x[0, 0, 0]) for x in b["image"]] for b in batches] == [[1, 2, 3, 4], [5, 6, 8, 9], [10, 11]]


@pytest.mark.parametrize("turn", [torch.t, torch.conj, torch.clone])
def test_large_samples_that_a_registered_function_changes(turn, monkeypatch):
    class Square(Numbers):
        def __getitem__(self, i):
            return (torch.arange(200 * 200).reshape(200, 200) * (1 + 1j) + i,)

    def collate(samples, *, collate_fn_map=None):
        return data.default_collate([turn(value) for (value,) in samples])

    monkeypatch.setitem(data._utils.collate.default_collate_fn_map, tuple, collate)
    assert equal(list(stoker.DataLoader(Square(), 4, num_workers=1)), list(data.DataLoader(Square(), 4)))


def test_large_samples_of_several_shapes():
    class Uneven(Large):
        def __getitem__(self, i):
            return torch.ones(20_000 + i)

    with pytest.raises(RuntimeError, match="equal size"):
        next(iter(stoker.DataLoader(Uneven(), 2, num_workers=1)))


class Kept(Numbers):
    """Keeps what default_collate returned."""

    def __init__(self):
        self.kept = {}

    def __len__(self):
        return 60

    def __getitem__(self, i):
        if i % 4 not in self.kept:
            self.kept[i % 4] = data.default_collate([torch.full((1000,), float(i + k)) for k in range(3)])
        return self.kept[i % 4]


def test_tensors_that_a_dataset_keeps_stay_as_they_are():
    for i, batch in enumerate(stoker.DataLoader(Kept(), 1, num_workers=1)):
        assert batch[0].unique(dim=1).flatten().tolist() == [float(i % 4 + k) for k in range(3)]


def reshape(samples):
    x, y = data.default_collate(samples)
    x.unsqueeze_(1)
    y.squeeze_()
    return x, y


def test_collate_fn_may_change_shapes_in_place():
    for size in (1, 4):
        ours = stoker.DataLoader(Numbers(), size, num_workers=1, collate_fn=reshape)
        theirs = data.DataLoader(Numbers(), size, collate_fn=reshape)
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def test_after_close():
    loader = stoker.DataLoader(Numbers(), 4, num_workers=1, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    loader.close()
    with pytest.raises(stoker.Error, match="closed"):
        next(batches)
    assert len(list(loader)) == 3


def init(worker):
    info = data.get_worker_info()
    info.dataset.seen = worker, info.id, info.num_workers


class Seen(Numbers):
    seen = None

    def __getitem__(self, i):
        return self.seen


def test_worker_init_fn_and_worker_info():
    loader = stoker.DataLoader(Seen(), 1, num_workers=2, worker_init_fn=init, collate_fn=keep)
    seen = {batch[0] for batch in loader}
    assert seen <= {(0, 0, 2), (1, 1, 2)} and seen


def keep_generator(worker):
    torch.utils.data.get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())


class Drawn(Numbers):
    def __getitem__(self, i):
        return self.rng.random()


def test_workers_have_seeds_of_their_own():
    """As with torch: a generator that worker_init_fn makes from torch.initial_seed() differs between workers."""
    torch.manual_seed(0)
    loader = stoker.DataLoader(Drawn(), 1, num_workers=2, worker_init_fn=keep_generator)
    for _ in range(3):
        values = [float(batch) for batch in loader]
        assert len(set(values)) == len(values)


def fail(worker):
    raise OSError("no such device")


def test_worker_init_fn_fails():
    with pytest.raises(OSError, match="no such device"):
        list(stoker.DataLoader(Numbers(), 4, num_workers=2, worker_init_fn=fail))


def leave(worker):
    os._exit(5)


def test_worker_init_fn_ends_the_process():
    words = "worker processes do not start: the last one ended with exit code 5 in worker_init_fn"
    with pytest.raises(stoker.Error, match=words):
        list(stoker.DataLoader(Numbers(), 4, num_workers=2, worker_init_fn=leave))


def test_workers_that_die_before_their_first_batch_now_and_then(monkeypatch):
    """Only several in a row mean that none starts."""
    loader = stoker.DataLoader(range(60), 2, num_workers=1, prefetch_factor=1, persistent_workers=True)
    started = []  # processes
    real = Workers._start

    def start(self, i):
        one = real(self, i)
        started.append(one.process.pid)
        if len(started) % 2 == 0:  # as if it was killed at once
            one.process.kill()
            one.process.join()
        return one

    monkeypatch.setattr(Workers, "_start", start)
    for _ in range(2):
        batches, got, failed = iter(loader), [], 0
        while len(got) + failed < 30:
            try:
                got.append(next(batches).tolist())
            except stoker.DataError as error:  # it was making a batch
                assert "SIGKILL" in str(error)
                failed += 1
            if (len(got) + failed) % 3 == 0:
                os.kill(started[-1], signal.SIGKILL)
        assert next(batches, None) is None
        assert got == sorted(got) and {y - x for x, y in got} == {1}
    assert len(started) > 20
    loader.close()


class Endless(Numbers):
    def __len__(self):
        return 10**9


class Together(Numbers):
    def __getitems__(self, indices):
        return [torch.tensor(i * 10) for i in indices]


def test_getitems():
    assert "every batch has its own seed" in stoker.DataLoader(Together(), 6, num_workers=2).explain()
    assert [b.tolist() for b in stoker.DataLoader(Together(), 6, num_workers=2)] == [
        [0, 10, 20, 30, 40, 50],
        [60, 70, 80, 90, 100, 110],
    ]


def test_an_open_file_is_read_by_one_process(tmp_path):
    (tmp_path / "rows").write_bytes(bytes(range(12)))

    class Rows(Numbers):
        def __init__(self):
            self.file = open(tmp_path / "rows", "rb", buffering=0)  # noqa: SIM115

        def __getitem__(self, i):
            self.file.seek(i)
            time.sleep(0.001)
            return self.file.read(1)[0]

    rows = Rows()
    loader = stoker.DataLoader(rows, 2, num_workers=3)
    assert [i for batch in loader for i in batch.tolist()] == list(range(12))
    assert "1 process: Rows.file is an open handle" in loader.explain()
    rows.file.close()


# ---------------------------------------------------------------- faults


def test_an_exception_names_its_sample():
    batches = iter(stoker.DataLoader(BadAt("raise"), 2, num_workers=2))
    got = [next(batches)[1].tolist() for _ in range(3)]
    with pytest.raises(ValueError, match="no luck") as info:
        next(batches)
    assert "sample 7 of the dataset" in str(info.value) and "__getitem__" in str(info.value)
    got += [y.tolist() for _, y in batches]  # the next call goes on
    assert got == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]]


def test_an_exception_of_a_local_class():
    class LocalError(Exception):
        pass

    def collate(samples):
        raise LocalError("no luck")

    with pytest.raises(RuntimeError, match="LocalError: no luck") as info:
        next(iter(stoker.DataLoader(Numbers(), 2, num_workers=1, collate_fn=collate)))
    assert "in collate" in info.value.__notes__[-1]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("SIGSEGV", "killed by SIGSEGV"),
        ("SIGKILL", "killed by SIGKILL .*memory"),
        ("exit", "ended with exit code 3"),
        ("sys.exit", "ended with exit code 3"),
        ("Ctrl-C", "ended with exit code 1"),
    ],
)
def test_a_dead_worker_is_replaced(what, words):
    batches = iter(stoker.DataLoader(BadAt(what), 2, num_workers=2))
    got = [next(batches)[1].tolist() for _ in range(3)]
    with pytest.raises(stoker.DataError, match=f"made sample 7 .*{words}") as info:
        next(batches)
    assert info.value.sample == 7
    got += [y.tolist() for _, y in batches]
    assert got == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]]


def memory_group():
    """A cgroup with 256 MiB for the processes that enter it; None: this process may not make one."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kind, path = line.split(":", 2)
        old = kind == "memory"  # cgroup v1
        if not old and kind:
            continue
        top, limit = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes") if old else ("/sys/fs/cgroup", "memory.max")
        folder = Path(top + path) if Path(top + path).is_dir() else Path(top)
        folder /= f"stoker-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / limit).write_text(str(256 << 20))
            return folder
        except OSError:
            folder.rmdir()
    return None


class Greedy(Numbers):
    """Sample 7 takes more memory than there is."""

    def __getitem__(self, i):
        if i == 7:
            self.taken = [b"x" * (1 << 20) for _ in range(2048)]
        return super().__getitem__(i)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_worker_that_runs_out_of_memory(on_error):
    group = memory_group()
    if group is None:
        pytest.skip("only root can make a cgroup with a limit for memory")

    def enter(worker):
        (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        loader = stoker.DataLoader(Greedy(), 2, num_workers=2, worker_init_fn=enter, on_error=on_error, max_bad=0.1)
        batches, got = iter(loader), []
        if on_error == "raise":
            got += [next(batches)[1].tolist() for _ in range(3)]
            with pytest.raises(stoker.DataError, match="made sample 7 was killed by SIGKILL .*memory runs out"):
                next(batches)
        got += [y.tolist() for _, y in batches]
        assert [y for y in got if y != [6]] == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]]
        assert [6] in got or on_error == "raise"
        known = (group / "memory.events").read_text() if (group / "memory.events").exists() else ""
        known += (group / "memory.oom_control").read_text() if (group / "memory.oom_control").exists() else ""
        assert int(known.split("oom_kill ")[1].split()[0]) > 0  # the kernel did it
        assert soon(lambda: not (group / "cgroup.procs").read_text())
        shared = [line.split() for line in (group / "memory.stat").read_text().splitlines()]
        assert int(dict(shared)["shmem"]) == 0  # nor is memory of batches left
    finally:
        assert soon(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def end_at_7(samples):
    if any(y == 7 for _, y in samples):
        os._exit(3)
    return samples


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_collate_fn_that_ends_its_process_blames_no_sample(on_error):
    loader = stoker.DataLoader(Numbers(), 4, num_workers=1, collate_fn=end_at_7, on_error=on_error)
    with pytest.raises(stoker.DataError, match=r"made the batch of samples \[4, 5, 6, 7\] ended with exit") as info:
        list(loader)
    assert info.value.sample is None


@pytest.mark.parametrize("what", ["raise", "SIGSEGV"])
def test_a_bad_sample_of_a_subset(what):
    part = data.Subset(BadAt(what), range(5, 11))  # its __getitems__ only calls __getitem__
    with pytest.raises(Exception, match="sample 2 "):
        list(stoker.DataLoader(part, 3, num_workers=1))
    loader = stoker.DataLoader(part, 3, num_workers=1, on_error="skip")
    assert [y.tolist() for _, y in loader] == [[5, 6], [8, 9, 10]]
    loader = stoker.DataLoader(part, None, num_workers=1, on_error="skip")
    assert [y for _, y in loader] == [5, 6, 8, 9, 10]


@pytest.mark.parametrize(("what", "workers"), [("raise", 0), ("raise", 2), ("SIGSEGV", 2)])
def test_bad_samples_are_skipped(what, workers):
    loader = stoker.DataLoader(BadAt(what), 2, num_workers=workers, on_error="skip", max_bad=0.1)
    assert [y.tolist() for _, y in loader] == [[0, 1], [2, 3], [4, 5], [6], [8, 9], [10, 11]]
    assert [bad.sample for bad in loader.bad_samples()] == [7]
    replaced = stoker.DataLoader(BadAt("raise"), 2, num_workers=workers, on_error="replace", max_bad=0.1)
    assert [y.tolist() for _, y in replaced][3] == [6, 8]


class BadTwice(BadAt):
    """Sample 6 raises, and sample 7, which stands in for it, ends the process."""

    def __getitem__(self, i):
        if i == 6:
            raise ValueError("no luck")
        return super().__getitem__(i)


def test_a_stand_in_that_ends_the_process():
    loader = stoker.DataLoader(BadTwice("SIGKILL"), 2, num_workers=1, on_error="replace", max_bad=0.5)
    assert [y.tolist() for _, y in loader] == [[0, 1], [2, 3], [4, 5], [8, 8], [8, 9], [10, 11]]
    assert {bad.sample for bad in loader.bad_samples()} == {6, 7}


class Unloadable:
    def __setstate__(self, state):
        raise ValueError("cannot be loaded")


def unloadable_at_6(samples):
    value = Unloadable()
    value.number = samples[0][1]
    return value if value.number == 6 else value.number


def test_a_batch_that_cannot_be_loaded():
    batches, got = iter(stoker.DataLoader(Numbers(), 2, num_workers=1, collate_fn=unloadable_at_6)), []
    got += [next(batches) for _ in range(3)]
    with pytest.raises(ValueError, match="cannot be loaded"):
        next(batches)
    assert got + list(batches) == [0, 2, 4, 8, 10]


class Interrupts(Unloadable):
    """As if Ctrl-C came while the trainer reads the batch, once."""

    waits = [KeyboardInterrupt]

    def __setstate__(self, state):
        if self.waits:
            raise self.waits.pop()
        vars(self).update(state)


def interrupts(samples):
    value = Interrupts()
    value.number = samples[0][1]
    return value


def test_a_batch_that_was_interrupted_is_made_again():
    Interrupts.waits[:] = [KeyboardInterrupt]
    batches = iter(stoker.DataLoader(Numbers(), 2, num_workers=2, collate_fn=interrupts))
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert [batch.number for batch in batches] == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(("name", "before"), [("send", True), ("send", False), ("receive", False), ("_start", True)])
def test_after_ctrl_c_the_epoch_goes_on(name, before, monkeypatch):
    """Wherever it came. Only if it came while a dead worker was replaced, the loader is closed."""
    loader = stoker.DataLoader(BadAt("exit"), 2, num_workers=1, prefetch_factor=1)
    batches, got, real = iter(loader), [], getattr(Workers, name)
    got.append(next(batches)[1].tolist())

    def interrupted(*args):
        monkeypatch.undo()
        if not before:
            real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, name, interrupted)
    events = []
    while len(events) < 9:
        try:
            got.append(next(batches)[1].tolist())
        except StopIteration:
            break
        except (KeyboardInterrupt, stoker.Error) as error:
            events.append(type(error))
    if name == "_start":
        assert events[0] is KeyboardInterrupt and events[1] is stoker.Error and got == [[0, 1], [2, 3], [4, 5]]
        return
    assert events == [KeyboardInterrupt, stoker.DataError]
    lost = [[2, 3]] if name == "send" else []  # the interrupted call had taken it
    assert got == [y for y in [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]] if y not in lost]


def test_ctrl_c_while_a_worker_starts(monkeypatch):
    """No process may be left that nobody waits for."""
    real, others = os.fork, children()

    def interrupted():
        child = real()
        if child:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)
        return child

    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iter(stoker.DataLoader(Numbers(), 2, num_workers=2))
    assert children() <= others and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_while_a_worker_starts():
    """It does not wait: the start may take long."""
    reached = []
    with pytest.raises(KeyboardInterrupt):
        with _interrupts_later():
            signal.raise_signal(signal.SIGINT)
            reached.append(1)
            signal.raise_signal(signal.SIGINT)
            reached.append(2)
    assert reached == [1] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_an_exception():
    with pytest.raises(KeyboardInterrupt) as info:
        with _interrupts_later():
            signal.raise_signal(signal.SIGINT)
            raise EOFError
    assert isinstance(info.value.__context__, EOFError)


def test_ctrl_c_while_workers_are_closed(monkeypatch):
    real, others, opened = _Process.close, children(), files()

    def interrupted(self):
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)
        real(self)

    batches = iter(stoker.DataLoader(Numbers(), 2, num_workers=3))
    for _ in range(6):
        next(batches)
    monkeypatch.setattr(_Process, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert children() <= others
    assert next(batches, None) is None
    gc.collect()
    assert files() == opened


def test_ctrl_c_while_a_dead_worker_is_replaced(monkeypatch):
    """Both the old and the new one are closed."""
    real, others, opened, known = Workers._start, children(), files(), set(unclosed)

    def interrupted(self, i):
        one = real(self, i)
        signal.raise_signal(signal.SIGINT)
        return one

    loader = stoker.DataLoader(BadAt("exit"), 2, num_workers=1)
    batches = iter(loader)
    next(batches)
    monkeypatch.setattr(Workers, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(batches)
    loader.close()
    del batches
    gc.collect()
    assert children() <= others and files() == opened and unclosed <= known


def test_ctrl_c_while_a_dead_worker_is_waited_for(monkeypatch):
    """multiprocessing then does not know that the process has ended, and never will."""
    loader = stoker.DataLoader(BadAt("exit"), 2, num_workers=1, prefetch_factor=1)
    batches, real = iter(loader), os.waitpid
    got = [next(batches)[1].tolist() for _ in range(3)]

    def interrupted(pid, options):
        if (found := real(pid, options))[0]:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(os, "waitpid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    with pytest.raises(stoker.DataError, match="made sample 7 ended"):
        next(batches)
    assert got + [y.tolist() for _, y in batches] == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]]


class Breaks(Numbers):
    """Sample 7 ends its process in the middle of a message."""

    def __getitem__(self, i):
        if i == 7:
            frame = sys._getframe()
            while frame.f_code.co_name != "_work":
                frame = frame.f_back
            os.write(frame.f_locals["pipe"].fileno(), b"\0\1\0\0\0\0\0\0half")
            os._exit(3)
        return super().__getitem__(i)


def test_a_worker_that_dies_in_the_middle_of_a_message():
    batches = iter(stoker.DataLoader(Breaks(), 2, num_workers=1))
    got = [next(batches)[1].tolist() for _ in range(3)]
    with pytest.raises(stoker.DataError, match="made sample 7 ended with exit code 3"):
        next(batches)
    assert got + [y.tolist() for _, y in batches] == [[0, 1], [2, 3], [4, 5], [8, 9], [10, 11]]


PIPE = """
import os, signal, stoker, torch
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as programs do whose output is piped to head
class Dies:
    def __len__(self): return 4
    def __getitem__(self, i): return os._exit(3) if i == 0 else i
def order():
    yield [0]
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # until the worker has died
    yield [1]
    yield [2]
batches = iter(stoker.DataLoader(Dies(), batch_sampler=order(), num_workers=1))
try:
    next(batches)
except stoker.DataError as error:
    print(error, [batch.tolist() for batch in batches])
"""


def test_a_task_for_a_dead_worker_does_not_end_the_program():
    done = subprocess.run([sys.executable, "-c", PIPE], capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("made sample 0 ended with exit code 3 [[1], [2]]\n"), (done.returncode, done.stderr)


HELD = """
import concurrent.futures.thread, os, signal, stoker, torch  # have hooks of their own, which must come first
class Dies:
    def __len__(self): return 4
    def __getitem__(self, i):
        if i == 3: os._exit(3)
        return i
others = []
def hold():
    if not others:
        others.append(0)
        others[0] = os.fork()
        if others[0] == 0:
            signal.pause()
os.register_at_fork(after_in_parent=hold)
try:
    print(list(stoker.DataLoader(Dies(), 2, num_workers=1)))
except stoker.DataError as error:
    print(error, flush=True)
os.kill(others[0], signal.SIGKILL)
"""


def test_a_dead_worker_whose_pipes_another_process_holds():
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=300)
    assert "made sample 3 ended with exit code 3" in done.stdout, done.stderr


@pytest.mark.parametrize("what", ["raise", "SIGSEGV"])
def test_bad_samples_of_samplers_with_other_integers(what):
    for on_error, want in (("skip", [[4, 5], [6], [8, 9]]), ("replace", [[4, 5], [6, 8], [8, 9]])):
        loader = stoker.DataLoader(BadAt(what), 2, sampler=np.arange(4, 10), num_workers=1, on_error=on_error)
        with pytest.warns(RuntimeWarning, match="sample 7 is bad"):
            assert [y.tolist() for _, y in loader] == want
        assert [bad.sample for bad in loader.bad_samples()] == [7]


class Rotten(Numbers):
    def __getitem__(self, i):
        raise ValueError("never")


def test_too_many_bad_samples_end_the_run():
    with pytest.raises(stoker.DataError, match="max_bad allows 1"):
        list(stoker.DataLoader(Rotten(), 2, num_workers=1, on_error="skip"))


@pytest.mark.parametrize("workers", [0, 2])
def test_only_delivered_bad_samples_count(workers):
    """An epoch that is left half-way has bad samples in batches that nobody gets."""
    options = {"num_workers": workers, "persistent_workers": workers > 0, "prefetch_factor": 3 if workers else None}
    loader = stoker.DataLoader(BadAt("raise"), 2, on_error="skip", max_bad=0.1, **options)
    for left in range(3):
        batches = iter(loader)
        next(batches)
        assert not loader.bad_samples(), left
    for _ in range(2):
        assert [y.tolist() for _, y in loader][3] == [6]
        assert [bad.sample for bad in loader.bad_samples()] == [7]
    loader.close()


class Limited:
    """fork() fails from now on."""

    def __init__(self, monkeypatch):
        def fork():
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        monkeypatch.setattr(os, "fork", fork)


def test_a_process_that_cannot_start(monkeypatch):
    Limited(monkeypatch)
    with pytest.raises(stoker.Error, match="cannot start: .*temporarily unavailable; ask for fewer") as info:
        iter(stoker.DataLoader(Numbers(), 2, num_workers=2))
    assert isinstance(info.value.__cause__, BlockingIOError)
    del info


@pytest.mark.parametrize("last", [4, 5])
def test_a_process_that_cannot_be_waited_for(last, monkeypatch):
    """The kernel limits what a user may wait for with epoll. The second process has started by then."""
    real, calls, others, opened, known = selectors.DefaultSelector.register, [], children(), files(), set(unclosed)

    def register(*args):
        calls.append(args)
        if len(calls) == last:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    monkeypatch.setattr(selectors.DefaultSelector, "register", register)
    with pytest.raises(stoker.Error, match="a worker process cannot start: .*No space left"):
        iter(stoker.DataLoader(Numbers(), 2, num_workers=2))
    calls.clear()
    gc.collect()
    assert children() <= others and files() == opened and unclosed <= known


@pytest.mark.parametrize("persistent", [False, True])
def test_a_replacement_that_cannot_start(persistent, monkeypatch):
    loader = stoker.DataLoader(BadAt("SIGSEGV"), 2, num_workers=2, persistent_workers=persistent)
    batches, others = iter(loader), children()
    got = [next(batches)[1].tolist() for _ in range(2)]
    Limited(monkeypatch)
    with pytest.raises(stoker.Error, match="a worker process cannot start: .*temporarily unavailable"):
        for _ in range(4):
            got.append(next(batches)[1].tolist())
    assert got == [[0, 1], [2, 3], [4, 5]][: len(got)]
    assert soon(lambda: not children() & others)  # the loader is closed
    with pytest.raises(stoker.Error, match="the loader is closed"):
        next(batches)
    monkeypatch.undo()
    assert next(iter(loader))[1].tolist() == [0, 1]
    loader.close()


# ---------------------------------------------------------------- large tasks


class Names(Numbers):
    """Samples have long keys; `go` is a file that sample "wait" waits for."""

    def __init__(self, go=None):
        self.go = go

    def __getitem__(self, key):
        if key == "wait":
            assert soon(lambda: os.path.exists(self.go))
        if key == "exit":
            os._exit(3)
        return key


LONG = "x" * (1 << 20)  # five times as large as the buffer of a socket


def test_tasks_larger_than_the_pipe():
    sampler = [[LONG + str(i), str(i)] for i in range(20)]
    options = {"batch_sampler": sampler, "num_workers": 2, "prefetch_factor": 4, "collate_fn": keep}
    assert list(stoker.DataLoader(Names(), **options)) == sampler


def test_large_tasks_and_many_results():
    """The worker waits until somebody reads its results, while there is no room for the next task."""
    sampler = [["x" * 30_000] for _ in range(60)] + [[LONG]]
    options = {"batch_sampler": sampler, "num_workers": 1, "prefetch_factor": 59, "collate_fn": keep}
    assert list(stoker.DataLoader(Names(), **options)) == sampler


def test_a_large_task_for_a_busy_worker_does_not_wait(tmp_path):
    options = {"num_workers": 1, "prefetch_factor": 4, "collate_fn": keep}
    loader = stoker.DataLoader(Names(tmp_path / "go"), batch_sampler=[["wait"], [LONG], [LONG], [LONG]], **options)
    batches = iter(loader)  # has sent four tasks
    (tmp_path / "go").touch()
    assert [len(batch[0]) for batch in batches] == [4, *[1 << 20] * 3]


def test_a_worker_that_dies_before_it_reads_a_large_task(tmp_path):
    sampler = [["exit"], [LONG], [LONG + "1"], ["2"]]
    batches = iter(stoker.DataLoader(Names(), batch_sampler=sampler, num_workers=1, prefetch_factor=4, collate_fn=keep))
    with pytest.raises(stoker.DataError, match="made sample 'exit' ended with exit code 3"):
        next(batches)
    assert list(batches) == sampler[1:]


def test_an_index_that_cannot_be_pickled():
    sampler = [["a"], [lambda: 1], ["b"]]
    batches = iter(stoker.DataLoader(Names(), batch_sampler=[["0"]] * 2 + sampler, num_workers=1, collate_fn=keep))
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
        list(batches)
    pids = children()
    assert len([pid for pid in pids if runs(pid)]) >= 1  # the process goes on
    assert [batch[0] for batch in batches][-1] == "b"


def test_timeout_names_the_sample():
    batches = iter(stoker.DataLoader(BadAt("hang"), 2, num_workers=1, timeout=300))
    for _ in range(3):
        next(batches)
    assert soon(lambda: batches._workers.under_way(3) == "sample 7")
    batches._open._timeout = 0.5
    with pytest.raises(stoker.DataError, match="needed more than timeout=0.5 s for sample 7"):
        next(batches)


SCRIPT = """
import os, sys, time, stoker
class Slow:
    def __len__(self): return 100
    def __getitem__(self, i):
        if i >= 4: time.sleep(600)
        return i
if __name__ == "__main__":
    batches = iter(stoker.DataLoader(Slow(), 2, num_workers=2))
    next(batches)
    print(*[w.process.pid for w in batches._workers.processes], flush=True)
    {then}
"""


def run(then, wait="time.sleep(600)"):
    code = textwrap.dedent(SCRIPT).replace("time.sleep(600)", wait).format(then=then)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, [int(pid) for pid in process.stdout.readline().split()]


def runs(pid):
    """Whether a process runs; not if it has ended and nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids):
    return soon(lambda: not any(map(runs, pids)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_trainer(number):
    process, pids = run("list(batches)")
    assert len(pids) == 2
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert gone(pids)
    assert number != signal.SIGINT or "KeyboardInterrupt" in errors


def test_workers_end_with_the_trainer_while_c_code_holds_the_gil():
    process, pids = run("list(batches)", wait="__import__('re').match('(a+)+$', 'a' * 60 + 'b')")
    process.kill()
    process.communicate(timeout=300)
    assert len(pids) == 2 and gone(pids)


PRINTS = """
import stoker
class Prints:
    def __len__(self): return 12
    def __getitem__(self, i):
        print("sample", i)
        return i
for _ in range(2):
    list(stoker.DataLoader(Prints(), 2, num_workers=2))
list(stoker.Loader(Prints(), batch_size=2, processes=2))
"""


def test_what_workers_print_is_not_lost():
    """They exit as other processes do, and write their buffers then."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, timeout=300, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("sample ")]
    assert sorted(set(lines)) == sorted(f"sample {i}" for i in range(12)) and len(lines) >= 36, done.stderr


def test_ctrl_c_ends_within_100_ms():
    def interrupt(*_):
        began.append(time.monotonic())
        raise KeyboardInterrupt

    def plain():
        """How long the wait for a busy worker, and killing it, takes on this machine now."""
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        began = time.monotonic()
        process.join(GRACE_S)
        process.kill()
        process.join()
        return time.monotonic() - began

    before, others = signal.signal(signal.SIGALRM, interrupt), children()

    def fast():
        began.clear()
        loader = stoker.DataLoader(BadAt("hang"), 2, sampler=[7] * 8, num_workers=2)
        batches = iter(loader)
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            next(batches)
        loader.close()
        took = time.monotonic() - began[0]
        assert children() <= others
        return took < 0.1 or took < 2 * plain()  # other programs may run

    began = []
    assert any(fast() for _ in range(20))
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_closed_by_a_signal_handler(error):
    """Its exception stays, so that the program ends as the handler says."""
    loader = stoker.DataLoader(BadAt("hang"), 2, sampler=[7] * 4, num_workers=1)
    batches = iter(loader)

    def close(*_):
        loader.close()
        raise error

    before = signal.signal(signal.SIGALRM, close)
    try:
        with pytest.raises(error):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            next(batches)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("hang", [True, False])
def test_closed_by_another_thread(hang):
    for n in range(1 if hang else 12):
        loader = stoker.DataLoader(BadAt("hang") if hang else Endless(), 2, num_workers=2)
        batches = iter(loader)
        for _ in range(1 + n):
            next(batches)
        thread = threading.Thread(target=loader.close)
        thread.start()
        with pytest.raises(stoker.Error, match="closed"):
            list(batches)
        thread.join()


def test_workers_end_when_the_loop_is_left():
    process, pids = run("del batches; time.sleep(0.5); print(*[p for p in range(1) if False], flush=True)")
    assert gone(pids)
    process.communicate(timeout=300)
    assert process.returncode == 0


class Sockets(Numbers):
    """The sockets of the worker that makes the sample."""

    def __getitem__(self, i):
        names = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
        links = {os.readlink(name) for name in names if os.path.lexists(name)}
        return os.getpid(), frozenset(link for link in links if link.startswith("socket:"))


def test_threads_that_start_workers_at_the_same_time():
    """No worker may have an end of another one's pipe: both would wait for each other's end."""
    before, found, interval = Sockets()[0][1], {}, sys.getswitchinterval()

    def start():
        barrier.wait()
        loader = stoker.DataLoader(Sockets(), 1, num_workers=2, collate_fn=keep)
        found.update(batch[0] for batch in loader)

    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            barrier = threading.Barrier(4)
            threads = [threading.Thread(target=start) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    seen = collections.Counter(link for links in found.values() for link in links - before)
    assert len(found) >= 4 and set(seen.values()) == {1}


# ---------------------------------------------------------------- albumentations


def test_albumentations_is_seeded_for_each_sample():
    albumentations = pytest.importorskip("albumentations", reason="albumentations is not installed")

    class Images(Numbers):
        def __init__(self):
            self.transforms = {"train": albumentations.Compose([albumentations.RandomBrightnessContrast(p=1)])}

        def __getitem__(self, i):
            return self.transforms["train"](image=np.full((4, 4, 3), 100, np.uint8))["image"]

    runs = []
    for workers in (0, 1, 3):
        torch.manual_seed(1)
        runs.append(torch.cat(list(stoker.DataLoader(Images(), 4, num_workers=workers))))
    assert torch.equal(runs[0], runs[1]) and torch.equal(runs[0], runs[2])
    assert len({tuple(image.flatten().tolist()) for image in runs[0]}) > 6


HANGS = """
import os, sys, time, stoker
def hang_once():
    try:
        os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    time.sleep(600)
os.register_at_fork(after_in_child=hang_once)
loader = stoker.DataLoader(list(range(12)), 2, num_workers=2)
print([batch.tolist() for batch in loader], flush=True)
"""


def test_a_process_that_hangs_in_fork_is_replaced(tmp_path):
    command = [sys.executable, "-c", HANGS, str(tmp_path / "hung")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{[[i, i + 1] for i in range(0, 12, 2)]}\n", done.stderr
