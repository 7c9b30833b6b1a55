# SPDX-License-Identifier: Apache-2.0
"""DataLoader where scripts rely on torch's habits: shapes that differ, and datasets with open files or databases."""

import logging
import sqlite3
import time
import zipfile

import numpy as np
import pytest
import stoker
from conftest import import_torchvision, write_png

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data
ROWS = 24


def equal(a, b):
    """The same values, of the same types."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


# ---------------------------------------------------------------- shapes that differ


class Lengths(data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((2 + i % 3, 4), float(i)), {"text": "x" * i, "pair": (i, float(i))}


def folder(noise):
    torchvision = import_torchvision()
    return torchvision.datasets.ImageFolder(noise, torchvision.transforms.ToTensor())


def as_list(samples):
    return samples


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [lambda _: Lengths(), folder], ids=["own", "folder"])
def test_shapes_that_differ(make, workers, noise):
    for k in ({"batch_size": 1}, {"batch_size": None}, {"batch_size": 3, "collate_fn": as_list}):
        theirs = list(data.DataLoader(make(noise), num_workers=workers, **k))
        ours = list(stoker.DataLoader(make(noise), num_workers=workers, **k))
        assert equal(theirs, ours), k
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(stoker.DataLoader(make(noise), 3, num_workers=workers))


# ---------------------------------------------------------------- handles


class Handles(data.Dataset):
    """Rows that are read through something open, with a pause in which another process could move it."""

    def __len__(self):
        return ROWS

    def read(self, file, i):
        file.seek(4 * i)
        time.sleep(0.0005)
        return int.from_bytes(file.read(4), "little")


def written(path):
    path.write_bytes(np.arange(ROWS, dtype="<u4").tobytes())
    return path


class Several(Handles):
    def __init__(self, tmp_path):
        self.files = {"rows": [open(written(tmp_path / "rows"), "rb", buffering=0)]}  # noqa: SIM115

    def __getitem__(self, i):
        return self.read(self.files["rows"][0], i)


class Database(Handles):
    def __init__(self, tmp_path):
        self.database = sqlite3.connect(tmp_path / "rows.db")
        self.database.execute("CREATE TABLE IF NOT EXISTS rows (i INTEGER, value INTEGER)")
        self.database.executemany("INSERT INTO rows VALUES (?, ?)", [(i, i) for i in range(ROWS)])
        self.database.commit()

    def __getitem__(self, i):
        return self.database.execute("SELECT value FROM rows WHERE i = ?", (i,)).fetchone()[0]


class Cursor(Database):
    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        self.cursor = self.database.cursor()
        del self.database

    def __getitem__(self, i):
        self.cursor.execute("SELECT value FROM rows WHERE i = ?", (i,))
        time.sleep(0.0005)
        return self.cursor.fetchone()[0]


class Archive(Handles):
    def __init__(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
            for i in range(ROWS):
                archive.writestr(str(i), str(i))
        self.archive = zipfile.ZipFile(tmp_path / "rows.zip")

    def __getitem__(self, i):
        return int(self.archive.read(str(i)))


class Hdf5(Handles):
    def __init__(self, tmp_path):
        h5py = pytest.importorskip("h5py", reason="h5py is not installed")
        with h5py.File(tmp_path / "rows.h5", "w") as file:
            file["rows"] = np.arange(ROWS)
        self.rows = h5py.File(tmp_path / "rows.h5")["rows"]

    def __getitem__(self, i):
        return int(self.rows[i])


class Logging(Lengths):
    """Has nothing open that it reads."""

    def __init__(self, tmp_path):
        self.log = logging.Logger("rows")
        self.log.addHandler(logging.FileHandler(tmp_path / "log"))
        self.modules = [np, torch]
        self.closed = open(__file__)  # noqa: SIM115
        self.closed.close()


def test_several_processes_may_share_other_objects(tmp_path):
    assert "2 processes" in stoker.DataLoader(Logging(tmp_path), 2, num_workers=2).explain()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("kind", [Several, Database, Cursor, Archive, Hdf5])
def test_a_handle_gives_correct_rows(kind, workers, tmp_path):
    loader = stoker.DataLoader(data.Subset(kind(tmp_path), range(ROWS)), 2, num_workers=workers)
    for _ in range(2):
        assert [i for batch in loader for i in batch.tolist()] == list(range(ROWS))
    assert ("1 process" in loader.explain() and "open handle" in loader.explain()) == bool(workers)


class Lookup:
    """Changes an image, or a batch, to the row of a file that its first value chooses."""

    def __init__(self, tmp_path):
        rows = tmp_path / "rows"
        rows.write_bytes(np.arange(ROWS, dtype=np.int64).tobytes())
        self.file = rows.open("rb", buffering=0)

    def __call__(self, image):
        self.file.seek(8 * round(float(image.flatten()[0]) * 255))
        time.sleep(0.0005)
        return int.from_bytes(self.file.read(8), "little")

    def rows(self, samples):
        return torch.tensor([self(image) for image, _ in samples])


def shades(root):
    for i in range(ROWS):
        write_png(root / "class" / f"{i:03}.png", np.full((4, 4, 3), i, np.uint8))
    return root


@pytest.mark.parametrize("where", ["transform", "collate_fn", "closure"])
def test_a_handle_beside_the_engine(where, tmp_path):
    torchvision = import_torchvision()
    lookup = Lookup(tmp_path)
    steps = [torchvision.transforms.CenterCrop(4), torchvision.transforms.ToTensor()]
    steps += [lookup] if where == "transform" else []
    dataset = torchvision.datasets.ImageFolder(shades(tmp_path / "images"), torchvision.transforms.Compose(steps))
    collate = {"transform": None, "collate_fn": lookup.rows, "closure": lambda samples: lookup.rows(samples)}[where]
    loader = stoker.DataLoader(dataset, 2, num_workers=3, collate_fn=collate)
    got = [batch[0] if where == "transform" else batch for batch in loader]
    assert [i for batch in got for i in batch.tolist()] == list(range(ROWS))
    assert loader.native and loader.stats().processes == 1
    assert "1 process" in loader.explain() and "file is an open handle" in loader.explain()


def test_a_handle_in_a_collate_fn(tmp_path):
    lookup = Lookup(tmp_path)
    rows = [(torch.tensor(i / 255), 0) for i in range(ROWS)]
    loader = stoker.DataLoader(rows, 2, num_workers=3, collate_fn=lookup.rows)
    assert [i for batch in loader for i in batch.tolist()] == list(range(ROWS))
    assert "1 process: rows.__self__.file is an open handle" in loader.explain()


def test_a_handle_in_a_function_of_a_loader(tmp_path):
    lookup, images = Lookup(tmp_path), shades(tmp_path / "images")

    def look(batch):
        return [lookup(image) for image in batch.image]

    with stoker.Loader(images, "CenterCrop(4)", batch_size=2, processes=3, batch_fn=look, dtype="float32") as loader:
        assert [i for batch in loader for i in batch] == list(range(ROWS))
        assert loader.stats().processes == 1


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_handle_that_cannot_be_pickled_is_inherited(context, tmp_path):
    loader = stoker.DataLoader(Several(tmp_path), 2, num_workers=2, multiprocessing_context=context)
    assert [i for batch in loader for i in batch.tolist()] == list(range(ROWS))


def test_a_handle_in_a_loader(tmp_path):
    with stoker.Loader(Several(tmp_path), batch_size=2, processes=3, output="numpy") as loader:
        assert [int(i) for batch in loader for i in batch.image] == list(range(ROWS))
        assert "in 1 process: Several.files['rows'][0] is an open handle" in loader.explain()
