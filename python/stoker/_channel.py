# SPDX-License-Identifier: Apache-2.0
"""Messages between the trainer and a worker process: pickled objects, and descriptors with them.

Descriptors travel with the first byte of their message. The kernel limits how many of a user's descriptors are on their
way, and refuses the whole message beyond the limit, so that it can be sent again.
"""

from __future__ import annotations

import errno
import os
import pickle
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from ._memory import close_all

LENGTH = struct.Struct("<Q")
MOST_FDS = 253  # with one message; the kernel's limit
FULL_S = 0.001  # until a message is tried again that the kernel has refused


class Channel:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(True)  # whatever socket.setdefaulttimeout() was called with
        self._end = end
        self.waiting = bytearray()  # of messages, until the other process has room for it

    def __reduce__(self) -> tuple[Any, ...]:
        return Channel, (self._end,)

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    def send(self, message: Any, fds: Sequence[int] = ()) -> None:
        """Waits until all of it is sent."""
        data = framed(message)
        sent = 0
        while fds and sent == 0:
            try:
                sent = socket.send_fds(self._end, [data], fds)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(FULL_S)  # until the trainer has read what others sent
        self._end.sendall(data[sent:])

    def push(self, message: bytes) -> None:
        """Never waits: `waiting` keeps what the other process has no room for."""
        self.waiting += message
        self.flush()

    def flush(self) -> None:
        """Sends more of what waits. After an exception, it is not known how much was sent."""
        try:
            while self.waiting:
                del self.waiting[: self._end.send(self.waiting, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            pass
        except ConnectionError:  # the other process has ended
            self.waiting.clear()

    def poll(self) -> bool:
        """Whether recv() would not wait for a message to begin."""
        try:
            self._end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            pass
        return True

    def recv(self) -> tuple[Any, list[int]]:
        """A message, and descriptors that the caller must close. EOFError: the other end is closed."""
        head, fds, flags, _ = socket.recv_fds(self._end, LENGTH.size, MOST_FDS, socket.MSG_CMSG_CLOEXEC)
        try:
            if flags & socket.MSG_CTRUNC:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            head += self._read(LENGTH.size - len(head)) if head else b""
            if not head:
                raise EOFError
            return pickle.loads(self._read(*LENGTH.unpack(head))), fds
        except BaseException:
            close_all(fds)
            raise

    def _read(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            more = self._end.recv(n - len(data), socket.MSG_WAITALL)
            if not more:
                raise EOFError
            data += more
        return data


def framed(message: Any) -> bytes:
    """A message as it is sent."""
    text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(text)) + text


def channel() -> tuple[Channel, Channel]:
    """Both ends."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)
