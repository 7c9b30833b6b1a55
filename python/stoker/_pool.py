# SPDX-License-Identifier: Apache-2.0
"""Segments that all workers of a loader share: a worker fills memory that another one filled before it.

Without them, each worker would keep the memory of a finished batch until its next one. A table in shared memory says
who has a segment:

    FREE -> a worker, as its negative pid -> the message of a batch -> TRAINER -> FREE
     ^                 |                                                  |
     +-- it is not sent, or the worker has ended                         LEFT: a process that the trainer has forked
     +-- the trainer put another one in its place                      <--'    may still use it

Workers take segments under a lock of the table's file, which the kernel releases if its owner dies. The other changes
are made by the one process that has the segment, and for a dead worker by the trainer. A worker may also keep a segment
that somebody else has: then no worker takes it. The number of segments is limited. A worker that finds none free makes
one of its own.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import reduction
from typing import Any

from ._errors import Error
from ._memory import FREE, LEFT, SEGMENT, Memory, close_all, new_file, unclosed

TRAINER = 0
SENT = 1 << 32  # subtracted from the negative pid once the segment is in a message
MOST = 64  # segments; each takes a descriptor in every process
COLUMNS = 7


def _attached(n: int, fds: list[Any], trainer: int, made: list[int]) -> Pool:
    """In a worker that was not forked."""
    return Pool(n, [fd if fd == -1 else fd.detach() for fd in fds], trainer, made)


class Maps(dict[int, Memory]):
    """The trainer's segments by their number. A batch that is kept must not keep all of them."""

    def __init__(self) -> None:
        super().__init__()
        # Segments that batches use. Not weak references to their views: the collector clears those before it calls
        # __del__ of what has them, and a loader may be closed there.
        self.lent: set[int] = set()

    def lend(self, segment: int, returned: Callable[..., None], table: Any, *arguments: Any) -> Any:
        """A buffer of a segment. returned() is called when nothing refers to it any more, and must call took_back().

        table: says who has the segment.
        """
        view = self[segment].view()
        self.lent.add(segment)
        weakref.finalize(view, returned, weakref.ref(self), table, segment, *arguments).atexit = False
        return view

    def took_back(self, segment: int, left: bool) -> None:
        if left:
            self.pop(segment, None)
        self.lent.discard(segment)


class Pool:
    """The trainer makes one for its workers. Each process has its own object, and all have the same table."""

    def __init__(self, n: int, fds: list[int], trainer: int, made: list[int]) -> None:
        """fds: of the table, and of each segment; -1: not opened. made: which of the segments in a row each is."""
        self.n, self._fds, self._trainer, self._made = n, fds, trainer, made
        self._close_fds = weakref.finalize(self, close_all, fds)
        self._close_fds.atexit = False
        table = Memory(fds[0], 8 * COLUMNS * n).as_bytes().cast("q")
        columns = [table[k * n : (k + 1) * n] for k in range(COLUMNS)]
        self.owner, self.kept, self.filled, self._uses = columns[:4]
        # Of the segment that is used now: the trainer's descriptor, `made`, and the inode.
        self._fd, self._latest, self._inode = columns[4:]
        self.maps = Maps()
        self._closed_to_us: set[int] = set()  # segments that this process cannot open
        self._seen: dict[int, int] = {}  # segments that were free at the last look, and how often they had been used

    @classmethod
    def make(cls, workers: int) -> Pool:
        n = max(1, min(2 * workers + 4, MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 16))
        fds: list[int] = []
        try:
            for size in [8 * COLUMNS * n] + n * [SEGMENT]:
                fds.append(new_file(size))
        except BaseException:
            close_all(fds)
            raise
        pool = cls(n, fds, os.getpid(), [0] * n)
        for s in range(n):
            pool.owner[s] = FREE
        unclosed.add(pool)
        return pool

    def __reduce__(self) -> tuple[Any, ...]:
        fds = [fd if fd == -1 else reduction.DupFd(fd) for fd in self._fds]
        return _attached, (self.n, fds, self._trainer, list(self._made))

    def memory(self, s: int) -> Memory:
        if s not in self.maps:
            if self._fds[1 + s] == -1:
                self._fds[1 + s] = self._opened(s)
            self.maps[s] = Memory(self._fds[1 + s], SEGMENT)
        return self.maps[s]

    def _opened(self, s: int) -> int:
        """A worker's descriptor of a segment that the trainer has made later."""
        if self._trainer == os.getpid():
            raise Error("the loader is closed", stage="read")
        path = f"/proc/{self._trainer}/fd/{self._fd[s]}"
        if not os.readlink(path).startswith("/memfd:stoker "):
            raise FileNotFoundError(errno.ENOENT, "the trainer has closed it", path)
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if os.fstat(fd).st_ino != self._inode[s]:  # of another loader; or the pid is that of another process here
            os.close(fd)
            raise FileNotFoundError(errno.ENOENT, "this is another segment", path)
        return fd

    def _drop(self, s: int) -> None:
        """The memory goes when the last process has let go of it."""
        self.maps.pop(s, None)
        fd, self._fds[1 + s] = self._fds[1 + s], -1  # Ctrl-C must not have it closed twice
        if fd >= 0:
            os.close(fd)

    def _follow(self) -> None:
        """Drops segments that the trainer has replaced."""
        for s in [s for s in range(self.n) if self._made[s] != self._latest[s]]:
            self._drop(s)
            self._made[s] = self._latest[s]

    # ---------------------------------------------------------------- a worker's side

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            fcntl.lockf(self._fds[0], fcntl.LOCK_EX)
            yield
        finally:
            fcntl.lockf(self._fds[0], fcntl.LOCK_UN)

    def _free(self) -> list[int]:
        out = self._closed_to_us
        return [s for s in range(self.n) if self.owner[s] == FREE and not self.kept[s] and s not in out]

    def take(self, n: int) -> int | None:
        """A free segment, if possible one that holds as much memory as is needed.

        Of equal ones the first, so that the last ones stay unused, and tidy() can empty them.
        """
        if n > SEGMENT:
            return None
        with self._locked():
            s = min(self._free(), key=lambda s: (abs(self.filled[s] - n), s), default=None)
            if s is None:
                return None
            self.owner[s], self._uses[s] = -os.getpid(), self._uses[s] + 1
        try:
            self._follow()
            self.memory(s)
        except (OSError, Error):  # /proc is not there, or not for this process; or too much is mapped
            self._closed_to_us.add(s)
            self.owner[s] = FREE
            return self.take(n)
        except BaseException:
            self.owner[s] = FREE
            raise
        return s

    def keep(self, s: int) -> None:
        """The user's code in this worker may refer to the segment, also when the trainer no longer does."""
        self.kept[s] = os.getpid()

    def let_go(self, s: int) -> None:
        """Ends keep()."""
        self.kept[s] = 0

    def give_back(self, s: int) -> None:
        """A segment that was taken is not sent."""
        self.owner[s] = FREE

    def give_all_back(self) -> None:
        """The same for all that an exception has left behind."""
        self.forget(os.getpid(), sent=False)

    def send(self, s: int) -> None:
        """A segment is about to be sent."""
        self.owner[s] = -os.getpid() - SENT

    def tidy(self) -> None:
        """Gives the memory of segments back that no worker has used since the last call."""
        self._follow()
        self.empty(lambda s: self._seen.get(s) == self._uses[s])
        self._seen = {s: self._uses[s] for s in self._free()}

    def empty(self, which: Callable[[int], bool]) -> None:
        """Gives the memory of free segments back."""
        for s in [s for s in self._free() if self.filled[s] and which(s)]:
            with self._locked():
                if s not in self._free() or not which(s):
                    continue
                self.owner[s] = -os.getpid()
            try:
                self._follow()
                self.memory(s).empty()
                self.filled[s] = 0
            except (OSError, Error):
                self._closed_to_us.add(s)
            finally:
                self.owner[s] = FREE

    # ---------------------------------------------------------------- the trainer's side

    def lend(self, s: int, returned: Callable[..., None], *arguments: Any) -> Any:
        """A buffer of a segment that a worker has sent, as Maps.lend() makes it."""
        self._replace_left()
        self.memory(s)
        self.owner[s] = TRAINER  # before the buffer exists: once it is gone, a worker may have the segment
        return self.maps.lend(s, returned, self.owner, *arguments)

    def _replace_left(self) -> None:
        """Puts new segments in the place of those that were left. Without descriptors, another call tries it again."""
        for s in [s for s in range(self.n) if self.owner[s] == LEFT]:
            self._drop(s)
            try:
                self._fds[1 + s] = new_file(SEGMENT)
            except OSError:
                return
            self._made[s] += 1
            self._fd[s], self._latest[s], self.filled[s] = self._fds[1 + s], self._made[s], 0
            self._inode[s] = os.fstat(self._fds[1 + s]).st_ino
            self.owner[s] = FREE

    def forget(self, pid: int, sent: bool = True) -> None:
        """A worker has ended: what it has is free. sent: also what it has sent."""
        for s in range(self.n):
            if self.owner[s] == -pid or (sent and self.owner[s] == -pid - SENT):
                self.owner[s] = FREE
            if sent and self.kept[s] == pid:
                self.kept[s] = 0

    def close(self) -> None:
        """Gives memory back that a process of another loader may have inherited.

        The workers have ended, except after a second Ctrl-C. Then nobody looks at what they still write.
        """
        unclosed.discard(self)
        try:
            for s in range(self.n):
                if self.filled[s] and self.owner[s] != LEFT and s not in self.maps.lent:
                    with contextlib.suppress(Error):  # too much is mapped
                        self.memory(s).empty()
        finally:
            self.maps.clear()
            self._close_fds()
