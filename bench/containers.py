# SPDX-License-Identifier: Apache-2.0
"""Containers compared with the folder and with the readers of their formats, and by themselves, in one run.

    containers.py build [--data FOLDER] [--rounds 3] [--only photos,raw,readers,records,index,pack] [--python PYTHON]

    photos    the same photos in each container and in a folder, same ops
    raw       images of 256 x 256 as arrays: compared with arrays in memory, and FFCV's raw pixels
    readers   compared with tf.data.TFRecordDataset, WebDataset, h5py and np.load in a torch DataLoader
    records   rows of 1 kB without decoding, shuffled, a second of one core's time, the caller's part in it; tokens
    index     opening shards for the first time, a second of one core's time, warm
    pack      stoker pack --as keep compared with cp -r

Every measurement is a process of its own, pinned; they take turns, round by round, and a ratio is the median of the
rounds' own. What cannot be measured here is a line that says why. --python takes one Python that has all packages,
instead of the environments of bench/peers.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import envs  # noqa: E402
import measure  # noqa: E402

EPOCHS = 4  # of which the first is not counted
RECORDS = 100_000
RECORD = 1024
TOKENS = 50_000_000


@dataclass
class Run:
    """Something that is measured in every round: a rate, larger is better."""

    name: str
    do: Callable[[], float]
    rates: list[float] = field(default_factory=list)
    skipped: str = ""

    def once(self) -> None:
        if self.skipped:
            return
        print(f"    {self.name}", file=sys.stderr)
        try:
            self.rates.append(self.do())
        except (envs.Missing, OSError, subprocess.SubprocessError) as reason:
            self.skipped = str(reason) or type(reason).__name__


@dataclass
class Line:
    """A line of the table. Without a base the goal is a rate."""

    part: str
    name: str
    run: Run
    goal: float
    base: Run | None = None
    unit: str = "images/s"

    def figure(self) -> float | None:
        if not self.base:
            return statistics.median(self.run.rates) if self.run.rates else None
        pairs = list(zip(self.run.rates, self.base.rates, strict=False))
        return statistics.median(a / b for a, b in pairs) if pairs else None


class Bench:
    def __init__(self, o: argparse.Namespace) -> None:
        self.build = o.build.resolve()
        self.python = o.python
        self.cpus = sorted(os.sched_getaffinity(0))[: o.cores]
        self.root = self.build / "peers"
        self.work = self.build / "containers"
        self.work.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(exist_ok=True)
        test = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "photos")
        self.photos = (o.data or (test if test.is_dir() else self.synthetic())).resolve()
        self.lines: list[Line] = []
        if not self.python:
            self.install()

    def install(self) -> None:
        """The package as it is built; whatever is missing is told by the lines that want it."""
        wheels = sorted((self.build / "wheel").glob("stoker-*.whl"))
        with contextlib.suppress(envs.Missing):
            if wheels:
                envs.put_wheel(envs.python_of("stoker", self.root), wheels[-1])

    def synthetic(self) -> Path:
        folder = self.work / "synth"
        if not folder.exists():
            self.command("synth", folder, "--samples", 1000, "--size", 500, "--classes", 10)
        return folder

    def command(self, *words: object) -> str:
        return measure.run([self.build / "stoker", *words], self.cpus)

    # ---------------------------------------------------------------- programs of bench/peers

    def folder_of(self, program: str, mode: str) -> Path:
        return self.work / f"{program}-{mode}"

    def peer(self, env: str, program: str, mode: str, source: object, *more: object) -> list:
        python = self.python or envs.python_of(env, self.root)
        file = HERE / "peers" / f"peer_{program}.py"
        work = self.folder_of(program, mode)
        work.mkdir(parents=True, exist_ok=True)
        return [python, file, source, len(self.cpus), "--mode", mode, "--work", work, *more]

    def prepared(self, env: str, program: str, mode: str, source: object) -> Path:
        """What a program wants made beforehand, once."""
        stamp = self.folder_of(program, mode) / "ready"
        if not stamp.exists():
            print(f"  preparing {program}", file=sys.stderr)
            measure.run(self.peer(env, program, mode, source, "--prepare"), self.cpus)
            stamp.touch()
        return stamp.parent

    def epochs(self, name: str, env: str, program: str, mode: str, source: Callable[[], object]) -> Run:
        """Images a second of the epochs after the first."""

        def do() -> float:
            said = measure.answers(self.peer(env, program, mode, source(), "--epochs", EPOCHS), self.cpus)
            return statistics.median(s["images"] / s["seconds"] for s in said if s.get("epoch", 0) > 1)

        return Run(name, do)

    def ours(self, name: str, source: Callable[[], object]) -> Run:
        return self.epochs(name, "stoker", "stoker", "plain", source)

    def prepared_peer(self, name: str, env: str, program: str, mode: str) -> Run:
        def source() -> Path:
            self.prepared(env, program, mode, self.photos)
            return self.photos

        return self.epochs(name, env, program, mode, source)

    # ---------------------------------------------------------------- rows, by the C program

    def rows(self, name: str, source: Callable[[], object], *more: object, what: str = "rows") -> Run:
        """Samples, or bytes, or bytes of the file that was opened, a second of CPU time, on one core in all."""

        def do() -> float:
            where = source()
            out = measure.run([self.build / "bench-rows", where, "--threads", 1, *more], self.cpus[:1])
            opened, *epochs = [line.split() for line in out.splitlines()]
            if what == "open":
                return Path(str(where).partition(":")[2]).stat().st_size / float(opened[2])
            column = 0 if what == "rows" else 1
            return statistics.median(int(e[column]) / float(e[3]) for e in epochs)

        return Run(name, do)

    def add(
        self, part: str, name: str, run: Run, goal: float, base: Run | None = None, unit: str = "images/s"
    ) -> None:
        self.lines.append(Line(part, name, run, goal, base, unit))


# ---------------------------------------------------------------- what is measured


def zip_of(b: Bench) -> Path:
    file = b.work / "photos.zip"
    if not file.exists():
        with zipfile.ZipFile(file.with_suffix(".part"), "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(b.photos.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(b.photos))
        file.with_suffix(".part").rename(file)
    return file


def tar_of(b: Bench) -> str:
    if not (b.work / "tar").exists():
        b.command("pack", b.photos, b.work / "tar.part", "--force")
        (b.work / "tar.part").rename(b.work / "tar")
    return f"{b.work}/tar/*.tar"


def tfrecord_of(b: Bench) -> str:
    return f"{b.prepared('tf', 'tfrecord', 'plain', b.photos)}/photos-*.tfrecord"


def hdf5_of(b: Bench) -> Path:
    return b.prepared("h5py", "h5py", "encoded", b.photos) / "photos.h5"


def arrays_of(b: Bench) -> Path:
    return b.prepared("stoker", "arrays", "memory", b.photos)


def hdf5_rows_of(b: Bench) -> Path:
    file = b.work / "rows.h5"
    if not file.exists():
        python = b.python or envs.python_of("h5py", b.root)
        measure.run([python, HERE / "peers/rows_hdf5.py", arrays_of(b), file], b.cpus)
    return file


def add_photos(b: Bench) -> dict[str, Run]:
    folder = b.ours("the folder", lambda: b.photos)
    runs = {
        "tar": b.ours("tar", lambda: tar_of(b)),
        "TFRecord": b.ours("TFRecord", lambda: tfrecord_of(b)),
        "HDF5": b.ours("HDF5, encoded", lambda: hdf5_of(b)),
        "zip": b.ours("zip", lambda: zip_of(b)),
    }
    for name, run in runs.items():
        b.add("photos", f"{name}, compared with the folder", run, 0.97, folder)
    return runs


def add_raw(b: Bench) -> None:
    memory = b.epochs("arrays in memory", "stoker", "arrays", "memory", lambda: arrays_of(b))
    npy = b.ours("npy of 256 x 256", lambda: f"npy:{arrays_of(b)}/images.npy?label=labels.npy")

    hdf5 = b.ours("HDF5 of 256 x 256", lambda: hdf5_rows_of(b))

    def packed() -> Path:
        images = arrays_of(b) / "png"
        b.prepared("ffcv", "ffcv", "raw", images)
        return images

    b.add("raw", "npy, compared with arrays in memory", npy, 0.9, memory)
    b.add("raw", "HDF5, compared with arrays in memory", hdf5, 0.9, memory)
    ffcv = b.epochs("FFCV, raw pixels", "ffcv", "ffcv", "raw", packed)
    b.add("raw", "npy, compared with FFCV's raw pixels", npy, 3, ffcv)
    b.add("raw", "HDF5, compared with FFCV's raw pixels", hdf5, 3, ffcv)


def add_readers(b: Bench, runs: dict[str, Run]) -> None:
    tf = b.prepared_peer("tf.data.TFRecordDataset", "tf", "tfrecord", "plain")
    b.add("readers", "TFRecord, compared with tf.data", runs["TFRecord"], 4, tf)
    webdataset = b.prepared_peer("WebDataset", "torch", "webdataset", "tar")
    b.add("readers", "tar, compared with WebDataset", runs["tar"], 5, webdataset)
    h5py = b.prepared_peer("h5py, torch DataLoader", "h5py", "h5py", "encoded")
    b.add("readers", "HDF5, compared with h5py in a DataLoader", runs["HDF5"], 5, h5py)
    rows = b.epochs(
        "npy rows", "stoker", "arrays", "rows", lambda: b.prepared("torch", "npy", "mmap", b.photos) / "rows.npy"
    )
    mmap = b.prepared_peer("np.load, torch DataLoader", "torch", "npy", "mmap")
    b.add("readers", "npy, compared with np.load in a DataLoader", rows, 3, mmap)


def record_files(b: Bench, name: str) -> Path:
    """Records of 1 kB: npy and tar by Python alone, TFRecord with TensorFlow; tokens."""
    file = b.work / "records" / name
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        python = b.python or envs.python_of("tf", b.root)
        print(f"  making {name}", file=sys.stderr)
        measure.run([python, HERE / "peers/records.py", file, RECORDS, RECORD, TOKENS], b.cpus)
    return file


def add_records(b: Bench) -> None:
    def one(name: str, source: Callable[[], object], goal: float, *more: object) -> None:
        b.add("records", name, b.rows(name, source, *more), goal, unit="samples/s")

    one("arrays in memory, 1 kB", lambda: f"arrays:{RECORDS}x{RECORD}", 1.5e6)
    one("from a cache, 1 kB", lambda: record_files(b, "records.npy"), 1.5e6, "--cache")
    one("npy, 1 kB", lambda: record_files(b, "records.npy"), 6e5)
    one("TFRecord, 1 kB", lambda: record_files(b, "records.tfrecord"), 4e5, "--fields", f"x:uint8({RECORD})")
    one("tar, 1 kB", lambda: record_files(b, "records.tar"), 4e5, "--fields", f"x=bin:uint8({RECORD})")
    for length in (1024, 2048):
        run = b.rows(
            f"tokens, uint16, sequences of {length:,}",
            lambda length=length: f"tokens:{record_files(b, 'tokens.bin')}?length={length}",
            what="bytes",
        )
        b.add("records", run.name, run, 2e9, unit="bytes/s")


def add_index(b: Bench) -> None:
    for name, file in (("TFRecord", "records.tfrecord"), ("tar", "records.tar")):
        source = lambda name=name, file=file: f"{name.lower()}:{record_files(b, file)}"  # noqa: E731
        run = b.rows(f"index of {name}, records of 1 kB", source, "--epochs", 0, what="open")
        b.add("index", run.name, run, 2e9, unit="bytes/s")


def add_pack(b: Bench) -> None:
    def timed(name: str, command: list) -> Run:
        def do() -> float:
            out = b.work / "packed"
            shutil.rmtree(out, ignore_errors=True)
            begun = time.monotonic()
            measure.run([*command, b.photos, out], b.cpus)
            return 1 / (time.monotonic() - begun)

        return Run(name, do)

    pack = timed("stoker pack --as keep", [b.build / "stoker", "pack", "--as", "keep"])
    b.add("pack", "pack --as keep, compared with cp -r", pack, 0.7, timed("cp -r", ["cp", "-r"]), "times/s")


# ---------------------------------------------------------------- the table


def short(value: float) -> str:
    if value >= 1e8:
        return f"{value / 1e9:.2f} G"
    return f"{value:,.0f}" if value >= 20 else f"{value:.2f}"


def cells(line: Line) -> list[str]:
    figure = line.figure()
    rates = line.run.rates
    ours = short(statistics.median(rates)) if rates else "–"
    base = line.base.rates if line.base else []
    other = short(statistics.median(base)) if base else ""
    goal = f"{line.goal:g}" if line.base else short(line.goal)
    if figure is None:
        reason = line.run.skipped or (line.base.skipped if line.base else "")
        return [line.name, ours, other, "–", goal, line.unit, f"skipped: {reason}"]
    ratio = f"{figure:.2f}" if line.base else ""
    return [line.name, ours, other, ratio, goal, line.unit, "" if figure >= line.goal else "MISSED"]


def table(lines: list[Line]) -> str:
    rows = [["", "Stoker", "other", "ratio", "goal", "unit", ""], *map(cells, lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    left = {0, 5, 6}
    return "\n".join(
        "  ".join(
            cell.ljust(widths[i]) if i in left and i < 6 else cell if i == 6 else cell.rjust(widths[i])
            for i, cell in enumerate(row)
        ).rstrip()
        for row in rows
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--data", type=Path, help="photos in class folders [STOKER_TEST_DATA/photos, else made ones]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", default="photos,raw,readers,records,index,pack")
    parser.add_argument("--python", type=Path, help="one Python for all, instead of an environment for each")
    parser.add_argument("--json", type=Path, help="result file [BUILD/containers/result.json]")
    return parser.parse_args()


def main() -> None:
    o = arguments()
    b = Bench(o)
    runs = add_photos(b)
    add_raw(b)
    add_readers(b, runs)
    add_records(b)
    add_index(b)
    add_pack(b)
    lines = [line for line in b.lines if line.part in o.only.split(",")]
    wanted = {id(run): run for line in lines for run in (line.run, line.base) if run}
    for i in range(o.rounds):
        print(f"  round {i + 1} of {o.rounds}", file=sys.stderr)
        for run in list(wanted.values())[:: 1 if i % 2 == 0 else -1]:
            run.once()
    print(f"{len(b.cpus)} cores, {b.photos.name}, {o.rounds} rounds; records and index: by the time of one core\n")
    print(table(lines))
    keys = ("name", "figure", "goal", "unit", "skipped")
    result = [dict(zip(keys, (x.name, x.figure(), x.goal, x.unit, x.run.skipped), strict=True)) for x in lines]
    (o.json or b.work / "result.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
