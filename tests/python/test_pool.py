# SPDX-License-Identifier: Apache-2.0
"""Memory that the worker processes of a loader share with each other."""

import gc
import multiprocessing
import os
import resource
import signal
from pathlib import Path

import pytest
import stoker

torch = pytest.importorskip("torch", reason="torch is not installed")

from stoker import _pool  # noqa: E402
from stoker._memory import FREE, LEFT, SEGMENT, unclosed  # noqa: E402
from stoker._pool import TRAINER, Pool  # noqa: E402

LARGE = 1 << 18  # numbers of a batch that has a segment of its own


@pytest.fixture(autouse=True)
def _nothing_left():
    """Closes the pools that a test has made, and what it has left, so that the next one can count descriptors."""
    yield
    gc.collect()
    for pool in [one for one in unclosed if isinstance(one, Pool)]:
        pool.close()


class Large:
    """Batches of one sample, each 1 MiB."""

    def __init__(self, n=60):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((LARGE,), float(i))


def first(samples):
    return samples[0]


def gone(lent):
    """What a loader does when the last reference to a batch is gone."""

    def returned(maps, owner, s):
        owner[s] = FREE
        lent.append(s)

    return returned


def files():
    return len(os.listdir("/proc/self/fd"))


def mapped():
    return Path("/proc/self/maps").read_text().count("memfd:stoker")


def test_a_segment_goes_from_a_worker_to_the_trainer_and_back():
    pool, lent = Pool.make(2), []
    assert (pool.n, pool.take(100)) == (8, 0)
    assert pool.owner[0] == -os.getpid() and pool.take(100) == 1
    view = pool.lend(0, gone(lent))
    assert pool.owner[0] == TRAINER and pool.take(100) == 2
    del view
    assert (lent, pool.take(100)) == ([0], 0)
    pool.give_back(1)
    assert pool.take(100) == 1


def test_the_segment_that_fits_best_is_taken():
    pool = Pool.make(1)
    pool.filled[1], pool.filled[2] = 5000, 100
    assert [pool.take(n) for n in (90, 6000, 10, SEGMENT + 1)] == [2, 1, 0, None]


def test_a_segment_that_a_worker_keeps_is_not_taken():
    pool = Pool.make(1)
    pool.keep(0)
    assert [pool.take(1) for _ in range(pool.n)] == [*range(1, pool.n), None]
    pool.let_go(0)
    assert pool.take(1) == 0


def test_what_a_dead_worker_had_is_free():
    pool = Pool.make(1)
    child = os.fork()
    if child == 0:
        pool.keep(pool.take(1))
        pool.take(1)
        with pool._locked():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert list(pool.owner[:3]) == [-child, -child, FREE] and pool.kept[0] == child
    assert pool.take(1) == 2  # its lock is gone too
    pool.forget(child)
    assert [pool.take(1), pool.take(1)] == [0, 1]


def test_memory_of_unused_segments_is_given_back():
    pool = Pool.make(1)
    for s in (pool.take(1), pool.take(1)):
        pool.memory(s).view()[0] = 7
        pool.filled[s] = 1
        pool.give_back(s)
    pool.tidy()  # sees them for the first time
    assert pool.take(1) == 0
    pool.give_back(0)
    pool.tidy()
    assert [pool.memory(s).view()[0] for s in (0, 1)] == [b"\7", b"\0"] and list(pool.filled[:2]) == [1, 0]


def leave(pool):
    """A child may use the segment that is lent to the trainer."""
    view = pool.lend(pool.take(1), lambda maps, owner, s: owner.__setitem__(s, LEFT))
    view[0] = 7
    return view


def test_a_segment_that_was_left_is_replaced():
    pool, opened = Pool.make(1), files()
    view = leave(pool)
    kept = pool.maps[0].view()
    del view
    assert pool.owner[0] == LEFT and pool.take(1) == 1
    pool.lend(1, gone([]))  # looks for segments that were left
    assert pool.owner[0] == FREE and pool.take(1) == 0 and files() == opened
    assert (kept[0], pool.memory(0).view()[0]) == (b"\7", b"\0")
    pool.close()
    assert files() == opened - 1 - pool.n


def test_a_worker_finds_the_new_segment():
    pool = Pool.make(1)
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready, 1)
        s = pool.take(1)
        pool.memory(s).view()[0] = 9
        pool.send(s)
        os._exit(s)
    leave(pool)
    view = pool.lend(pool.take(1), gone([]))
    os.write(go, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.lend(0, gone([]))[0] == b"\x09"
    del view
    os.close(ready)
    os.close(go)


def test_a_worker_that_cannot_open_the_new_segment_takes_another():
    pool = Pool.make(1)
    child = os.fork()
    if child == 0:
        pool._made[0], pool._latest[0], pool._fd[0] = 0, 1, 10_000
        os._exit(10 * pool.take(1) + pool.take(1))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12 and pool.owner[0] == FREE


def test_a_worker_does_not_open_the_segment_of_another_loader():
    """In a namespace of pids without a /proc of its own, the trainer's pid may be that of another program."""
    pool, other = Pool.make(1), Pool.make(1)
    pool._fd[0], pool._latest[0], pool._inode[0] = other._fds[1], 1, os.fstat(pool._fds[1]).st_ino
    child = os.fork()
    if child == 0:
        opened = files()
        os._exit(pool.take(1) + 10 * (files() - opened + 1))  # the one that was replaced is closed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1 and pool.owner[0] == FREE


def test_a_worker_that_cannot_map_another_segment_takes_one_that_it_has(monkeypatch):
    """Such as under a limit of its address space."""
    pool = Pool.make(1)
    assert [pool.take(1), pool.take(1)] == [0, 1]
    pool.give_back(1)
    pool.filled[5] = 100

    def refuse(fd, size):
        raise stoker.Error("cannot map the memory of a batch")

    monkeypatch.setattr(_pool, "Memory", refuse)
    pool.empty(lambda s: True)
    assert [pool.take(100), pool.take(100)] == [1, None]
    assert list(pool.owner[2:]) == [FREE] * (pool.n - 2)
    pool.close()


def test_what_a_failed_batch_took_is_free_and_what_was_sent_is_not():
    pool = Pool.make(1)
    pool.send(pool.take(1))
    assert pool.take(1) == 1
    pool.give_all_back()
    assert pool.take(1) == 1 and pool.owner[0] < 0
    pool.forget(os.getpid())
    assert pool.take(1) == 0


def test_few_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert Pool.make(60).n == 16
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_share_memory(method):
    """Each of the three has a batch under way; one is delivered, and the trainer still has the one before it."""
    opened, seen = files(), set()
    loader = stoker.DataLoader(
        Large(), 1, num_workers=3, prefetch_factor=1, collate_fn=first, multiprocessing_context=method
    )
    for i, batch in enumerate(loader):
        assert batch.unique().tolist() == [i]
        seen.add(batch.data_ptr())
    del batch, loader
    gc.collect()
    assert len(seen) <= 5
    if method == "fork":
        assert files() == opened and mapped() == 0


class Keeps(Large):
    """Keeps a batch, and looks at it again later."""

    kept = None


def look(samples):
    worker = torch.utils.data.get_worker_info()
    if Keeps.kept is not None:
        assert Keeps.kept[0].unique().tolist() == [Keeps.kept[1]]
    batch = torch.empty_like(samples[0]).copy_(samples[0])
    if worker.id == 0 and Keeps.kept is None:
        batch = torch.utils.data.default_collate(samples)
        Keeps.kept = batch, samples[0][0].item()
    return batch


def test_another_worker_does_not_write_to_what_one_keeps():
    for i, batch in enumerate(stoker.DataLoader(Keeps(), 1, num_workers=3, collate_fn=look)):
        assert batch.unique().tolist() == [i]


class Dies(Large):
    def __getitem__(self, i):
        if i % 10 == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


def test_workers_that_die_leave_their_memory_to_others():
    loader = stoker.DataLoader(Dies(), 1, num_workers=2, collate_fn=first, on_error="skip", max_bad=10)
    batches, seen, values = iter(loader), set(), []
    pool = batches._workers.pool
    with pytest.warns(RuntimeWarning, match="SIGKILL"):
        for batch in batches:
            values += batch.unique().tolist()
            seen.add(batch.data_ptr())
            batch = None  # the process that takes the place of a dead one inherits it, so that it is left
    # Batches that had arrived, but were not delivered yet, are left too.
    assert values == [i for i in range(60) if i % 10 != 9] and len(seen) <= 2 * pool.n


def test_more_kept_batches_than_the_pool_has():
    kept = list(stoker.DataLoader(Large(), 1, num_workers=2, collate_fn=first))
    assert [batch[-1].item() for batch in kept] == list(range(60))
    del kept
    gc.collect()
    assert mapped() == 0


def test_the_collector_closes_a_loader_and_leaves_kept_batches():
    """It clears weak references of what it collects first, so that they do not say what is still used."""
    loader = stoker.DataLoader(Large(), 1, num_workers=2, collate_fn=first, persistent_workers=True)
    kept = list(loader)  # some are in the pool, the others in segments of one worker
    del loader
    gc.collect()
    assert not multiprocessing.active_children()
    assert [batch.unique().tolist() for batch in kept] == [[float(i)] for i in range(60)]


def test_kept_batches_need_no_descriptors():
    opened, kept = files(), []
    for _ in range(4):
        kept += list(stoker.DataLoader(Large(12), 1, num_workers=1, collate_fn=first))
    gc.collect()
    assert files() == opened
    assert [batch[-1].item() for batch in kept] == 4 * list(range(12))


def test_a_process_that_was_forked_reads_on():
    batches = iter(stoker.DataLoader(Large(61), 1, num_workers=2, collate_fn=first))
    batch, pool = next(batches), batches._workers.pool
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)
        os._exit(bool((batch.numpy() != 0).any()))
    for i in range(1, 60):
        batch = next(batches)
        assert batch.unique().tolist() == [i]
    os.close(go)
    os.close(wait)
    assert os.waitpid(child, 0)[1] == 0
    assert any(pool._made)  # another segment took the place of the one that the child has


def test_a_pool_that_cannot_be_made(monkeypatch):
    def refuse(name):
        raise OSError(24, "Too many open files")

    opened = files()
    monkeypatch.setattr(os, "memfd_create", refuse)
    with pytest.raises(stoker.Error, match="Too many open files; ask for fewer of them"):
        next(iter(stoker.DataLoader(Large(), 1, num_workers=2)))
    assert files() == opened and not multiprocessing.active_children()
