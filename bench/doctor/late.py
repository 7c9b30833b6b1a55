# SPDX-License-Identifier: Apache-2.0
"""A file system whose reads take 30 ms, as those of a mounted bucket: late.py FOLDER MOUNT."""

import os
import sys
import time

from fuse import FUSE, Operations

FIELDS = ("st_mode", "st_size", "st_uid", "st_gid", "st_mtime", "st_atime", "st_ctime", "st_nlink")


class Late(Operations):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def getattr(self, path, handle=None):
        found = os.lstat(self.folder + path)
        return {name: getattr(found, name) for name in FIELDS}

    def readdir(self, path, handle):
        return [".", "..", *os.listdir(self.folder + path)]

    def open(self, path, flags):
        return os.open(self.folder + path, flags)

    def read(self, path, n, offset, handle):
        time.sleep(0.03)
        return os.pread(handle, n, offset)

    def release(self, path, handle):
        os.close(handle)


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    FUSE(Late(sys.argv[1]), sys.argv[2], foreground=True, ro=True)
