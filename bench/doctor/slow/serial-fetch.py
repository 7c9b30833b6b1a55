# SPDX-License-Identifier: Apache-2.0
# expects: serial-fetch
"""A table in memory that is asked for one row at a time."""

import sqlite3

import torch
from shared import FIXED, Kept, dense, train
from torch.utils.data import DataLoader, Dataset

db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("create table rows (id integer, data blob)")  # without an index
db.executemany("insert into rows values (?, ?)", ((i, bytes([i % 251]) * 1024) for i in range(4000)))


class Table(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, i):
        (data,) = db.execute("select data from rows where id = ?", (i,)).fetchone()
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).float(), i % 8


if __name__ == "__main__":
    train(DataLoader(Kept(Table()) if FIXED else Table(), 64, shuffle=True), dense(1024))
