# SPDX-License-Identifier: Apache-2.0
"""Does the doctor find what is wrong, and is its gain true? Runs it on scripts that provoke one verdict each, and on
healthy ones, three times, then makes the change and measures the script without the doctor.

run.py BUILD [--only NAME ...] [--rounds 3] [--seconds 60] [--gain-seconds 8] [--gain-rounds 3] [--jobs 1]

NAME is a script, or `slow` or `healthy` for all of a kind. Prints a line per script as it ends: the time from start to
verdict without imports, the predicted gain, the gain of the change, and how far they differ. Writes
BUILD/doctor/result.json, and the doctor's documents into BUILD/doctor/documents. Ends with 1 if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from statistics import median

HERE = Path(__file__).parent
PATIENCE = 3  # a command is ended after this many times its own time
STARTS = 30  # seconds that the doctor also has, because every run imports the script's libraries
NOT_PROVOKED = {
    "numa": "needs several NUMA nodes",
    "float32-copy": "needs a GPU behind a bus so slow that pinned float32 images take 5 % of a step",
}


@dataclass
class Case:
    name: str
    path: Path
    expected: str | None  # None: healthy
    about: dict[str, str] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # from start to verdict, without the script's imports
    real: float | None = None
    wall: float = 0.0  # seconds for all of it
    skipped: str | None = None
    cpus: str = ""  # two that the case has for itself, for taskset; empty: all


def cases() -> list[Case]:
    found = []
    for path in sorted(HERE.glob("slow/*.py")) + sorted(HERE.glob("healthy/*.py")):
        about = dict(re.findall(r"^# (\w+): (.*)$", path.read_text(), re.M))
        found.append(Case(path.stem, path, about.get("expects"), about))
    return found


def reads_files(case: Case) -> bool:
    """Whether it needs what make_data() makes."""
    return bool(re.search(r"\b(PHOTOS|LARGE|SHRUNK|TURNED|ROWS|RAW|BLOBS)\b", case.path.read_text()))


def names(case: Case) -> set[str]:
    """What --only may call it."""
    return {case.name, case.path.parent.name}


# ---------------------------------------------------------------- data


def synth(place: Path, samples: int, size: str, classes: int = 8) -> None:
    if not place.exists():
        command = Path(sysconfig.get_path("scripts")) / "stoker"
        words = ["--samples", str(samples), "--classes", str(classes), "--size", size]
        subprocess.run([command, "synth", place, *words], check=True, stdout=subprocess.DEVNULL)


def make_data(data: Path) -> None:
    """Photos of several kinds, and a large file."""
    from PIL import Image

    synth(data / "photos", 600, "500")
    synth(data / "large", 32, "4000", 4)
    if not (data / "turned").exists():
        shutil.copytree(data / "photos", data / "turned")
        for path in sorted((data / "turned").rglob("*.jpg"))[::5]:
            image = Image.open(path)
            exif = image.getexif()
            exif[0x0112] = 6
            image.save(path, quality=90, exif=exif)
    if not (data / "shrunk").exists():
        shutil.copytree(data / "large", data / "shrunk")
        for path in (data / "shrunk").rglob("*.jpg"):
            Image.open(path).resize((344, 258)).save(path, quality=90)
    if not (data / "rows").exists():
        (data / "rows").mkdir()
        for i in range(600):
            values = random.Random(i).choices(range(9), k=3_000_000 if i % 50 == 0 else 60_000)
            (data / "rows" / f"{i:03}.z").write_bytes(zlib.compress(bytes(values), 1))
    if not (data / "blobs").exists():
        (data / "blobs").mkdir()
        for i in range(300):
            (data / "blobs" / f"{i:03}.bin").write_bytes(os.urandom(1 << 22))
    raw = data / "raw.bin"
    if not raw.exists():
        with open(raw, "wb") as file:
            for _ in range(64):
                file.write(os.urandom(1 << 24))
    os.sync()  # what is not on storage yet cannot be evicted


# ---------------------------------------------------------------- running


def gpus() -> int:
    """How many there are; 0 without a driver."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        return 0 if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) else count.value
    except OSError:
        return 0


def cannot(case: Case) -> str | None:
    """Why a case cannot run here."""
    needs = case.about.get("needs", "")
    if "gpu" in needs and not gpus():
        return "needs a GPU"
    if "root" in needs and os.geteuid():
        return "needs root"
    if "fuse" in needs and not (os.path.exists("/dev/fuse") and importlib.util.find_spec("fuse")):
        return "needs FUSE: apt-get install libfuse2, pip install fusepy"
    return None


def words_of(case: Case, script: list[str]) -> list[str]:
    """The command after `python`, or after `stoker doctor`."""
    if "ranks" in case.about.get("needs", ""):
        return ["--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *script]
    return script


def disk_of(path: Path) -> str:
    """MAJOR:MINOR of the disk that a file is on."""
    device = os.stat(path).st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    return ((folder.parent if (folder / "partition").exists() else folder) / "dev").read_text().strip()


def limits(case: Case) -> list[tuple[str, str, str]]:
    """(controller, file, text) of the cgroup that the case runs in, for version 1 or 2 of cgroups."""
    old, found = os.path.isdir("/sys/fs/cgroup/cpu"), []
    if quota := case.about.get("quota"):
        us = int(float(quota) * 100_000)
        found.append(("cpu", "cpu.cfs_quota_us", str(us)) if old else ("", "cpu.max", f"{us} 100000"))
    if storage := case.about.get("storage"):  # such as "bps 3000000" or "iops 20"
        unit, most = storage.split()
        disk = disk_of(Path(os.environ["STOKER_DOCTOR_DATA"]))
        name = f"blkio.throttle.read_{unit}_device"
        found.append(("blkio", name, f"{disk} {most}") if old else ("", "io.max", f"{disk} r{unit}={most}"))
    if memory := case.about.get("memory"):
        most = str(int(memory) << 20)
        found.append(("memory", "memory.limit_in_bytes", most) if old else ("", "memory.max", most))
    return found


def group_of(case: Case, controller: str) -> Path:
    return Path("/sys/fs/cgroup", controller, f"stoker-doctor-{case.name}")


def around(case: Case, command: list[str]) -> list[str]:
    """Two CPUs, a mount of its own, or a cgroup with limits, around a command."""
    if case.cpus:
        command = ["taskset", "-c", case.cpus, *command]
    before = [case.about["before"].replace("PYTHON", sys.executable)] if "before" in case.about else []
    for controller, file, text in limits(case):
        group = group_of(case, controller)
        before.append(f"mkdir -p {group} && echo {text} > {group}/{file} && echo $$ > {group}/cgroup.procs")
    if not before:
        return command
    return ["unshare", "-m", "sh", "-c", f'{" && ".join(before)} && exec "$@"', "sh", *command]


def evict(folder: str) -> None:
    """Takes files of the data out of the page cache."""
    os.sync()
    for path in Path(os.environ["STOKER_DOCTOR_DATA"], folder).rglob("*.*"):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def folder_of(case: Case, root: Path) -> Path:
    place = root / "work" / case.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copy(case.path, place / "train.py")
    for name in ("shared.py", "meter.py", "late.py"):
        shutil.copy(HERE / name, place)
    return place


def started(case: Case, command: list[str], place: Path, limit: float) -> bool:
    """Runs a command, with its output in the file `log`. After `limit` seconds it is ended, and this is False.

    Workers that it leaves behind are ended, too.
    """
    if folder := case.about.get("cold"):
        evict(folder)
    with open(place / "log", "w") as log:
        process = subprocess.Popen(
            around(case, command), cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        process.wait(limit)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        end(process)
        for controller, _, _ in limits(case):
            with suppress(OSError):
                group_of(case, controller).rmdir()


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and its group; the doctor has some time to end its runs, and to write what is known."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def examine(case: Case, place: Path, seconds: float) -> dict | None:
    """The doctor's document; None if it crashed, or did not end in time."""
    out = place / "doctor.json"
    options = [*case.about.get("options", "").split(), "--seconds", str(seconds), "--json", str(out)]
    command = [sys.executable, "-m", "stoker.doctor", *options, *words_of(case, ["train.py"])]
    ended = started(case, command, place, PATIENCE * seconds + STARTS)
    return json.loads(out.read_text()) if ended and out.exists() else None


def name_of(document: dict | None, case: Case) -> str:
    """What was found: the verdict, or the alarms where one is expected or there is no verdict."""
    if document is None:
        return "no document: see its log"
    alarms = [alarm["id"] for alarm in document.get("alarms") or []]
    verdict = (document.get("verdict") or {}).get("id")
    base = next((run for run in document["runs"] if run["name"] == "as-is"), {})
    if verdict is None and not alarms and base.get("status") != "ok":
        return f"failed: {base.get('reason')}"
    if case.expected in alarms:
        return str(case.expected)
    return ", ".join(filter(None, [verdict, *alarms])) or "healthy"


def rate(case: Case, place: Path, seconds: float, fixed: bool) -> float | None:
    """Samples per second as the script prints them: ranks that end without printing are ignored."""
    script = ["train.py", "--seconds", str(seconds), *(["--fixed"] if fixed else [])]
    words = words_of(case, script)
    command = words[1:] if words[0] == "--" else [sys.executable, *words]
    started(case, command, place, PATIENCE * (seconds + 10))
    said = [float(x) for x in re.findall(r"^samples/s ([\d.]+)$", (place / "log").read_text(errors="replace"), re.M)]
    return sum(said) / len(said) if said else None


def real_gain(case: Case, place: Path, document: dict, seconds: float, rounds: int) -> float | None:
    """The script against the script with the change: the patch if there is one, else --fixed."""
    changed = place.with_name(place.name + "-changed")
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(place, changed)
    diff = (document.get("verdict") or {}).get("diff") if shutil.which("patch") else None
    if diff:
        subprocess.run(["patch", "-p1", "-s"], cwd=changed, input=diff, text=True, check=True)
    elif "FIXED" not in case.path.read_text():
        return None
    gains = []
    for _ in range(rounds):
        before = rate(case, place, seconds, fixed=False)
        after = rate(case, changed, seconds, fixed=not diff)
        if before and after:
            gains.append(after / before)
    return median(gains) if gains else None


def run(case: Case, root: Path, given: argparse.Namespace) -> None:
    case.skipped = cannot(case)
    document = right = None  # right: the last one whose verdict is the expected one
    for i in range(0 if case.skipped else max(1, given.rounds)):
        place = folder_of(case, root)
        known = root / "documents" / f"{case.name}-{i}.json"
        if given.rounds:
            known.unlink(missing_ok=True)
            document = examine(case, place, given.seconds)
        else:
            document = json.loads(known.read_text()) if known.exists() else None
        case.found.append(name_of(document, case))
        if document:
            known.write_text(json.dumps(document))
            imports = document["runs"][0].get("imports_s") or 0.0
            case.seconds.append(document["seconds"] - imports * len(document["runs"]))
            found = document.get("verdict") or {}
            if found.get("id") == case.expected and found.get("gain"):
                case.predicted.append(found["gain"])
                right = document
    if right and given.gain_seconds:
        case.real = real_gain(case, place, right, given.gain_seconds, given.gain_rounds)


# ---------------------------------------------------------------- the table


def is_right(case: Case) -> bool:
    return all(found == (case.expected or "healthy") for found in case.found)


def error(case: Case) -> float | None:
    return abs(median(case.predicted) / case.real - 1) if case.predicted and case.real else None


HEAD = f"{'script':20} {'expected':18} {'found':28} {'time':>5} {'gain':>7} {'real':>7} {'error':>6}"


def line(case: Case) -> str:
    found = case.skipped and f"skipped: {case.skipped}" or ", ".join(dict.fromkeys(case.found))
    gain = f"{median(case.predicted):.2f}x" if case.predicted else "-"
    real = f"{case.real:.2f}x" if case.real else "-"
    off = f"{100 * error(case):.0f} %" if error(case) is not None else "-"
    took = f"{max(case.seconds):.0f} s" if case.seconds else "-"
    mark = "" if case.skipped else f"{'ok' if is_right(case) else 'WRONG':5} after {case.wall:.0f} s"
    return f"{case.name:20} {case.expected or 'healthy':18} {found:28} {took:>5} {gain:>7} {real:>7} {off:>6}  {mark}"


def summary(all_of_them: list[Case]) -> str:
    ran = [case for case in all_of_them if not case.skipped]
    slow, healthy = [c for c in ran if c.expected], [c for c in ran if not c.expected]
    right = f"{sum(map(is_right, slow))} of {len(slow)} verdicts right each time"
    lines = ["", f"{right}, {sum(map(is_right, healthy))} of {len(healthy)} healthy scripts without an alarm"]
    errors = [e for case in ran if (e := error(case)) is not None]
    if errors:
        lines.append(f"predicted and real gain differ by {100 * median(errors):.0f} % (median of {len(errors)})")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these scripts; slow or healthy: all such"
    )
    parser.add_argument("--rounds", type=int, default=3, help="0: take the documents of an earlier run")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--gain-seconds", type=float, default=8, help="0: do not measure the real gain")
    parser.add_argument("--gain-rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="cases at once, with two CPUs each")
    given = parser.parse_args()
    every = cases()
    if unknown := set(given.only) - {name for case in every for name in names(case)}:
        parser.error(f"there is no script {', '.join(sorted(unknown))}")
    chosen = [case for case in every if not given.only or names(case) & set(given.only)]
    root = given.build.resolve() / "doctor"
    for name in ("data", "documents"):
        (root / name).mkdir(parents=True, exist_ok=True)
    if any(map(reads_files, chosen)):
        make_data(root / "data")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing goes on running
    os.environ["STOKER_DOCTOR_DATA"] = str(root / "data")
    print(HEAD, flush=True)
    pairs: SimpleQueue[str] = SimpleQueue()
    for i in range(given.jobs):
        pairs.put(f"{2 * i},{2 * i + 1}" if given.jobs > 1 else "")

    def one(case: Case) -> None:
        case.cpus = pairs.get()
        begun = time.perf_counter()
        try:
            run(case, root, given)
        except (OSError, ValueError, subprocess.SubprocessError) as error:  # the others go on
            case.found.append(f"{type(error).__name__}: {error}")
        finally:
            pairs.put(case.cpus)
        case.wall = time.perf_counter() - begun
        print(line(case), flush=True)
        done = [asdict(c) | {"path": c.path.name} for c in chosen if c.found or c.skipped]
        (root / "result.json").write_text(json.dumps(done, indent=1))

    if given.jobs == 1:  # here, where Ctrl-C ends what runs
        for case in chosen:
            one(case)
    else:
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(one, chosen))
    if not given.only:
        for name, why in NOT_PROVOKED.items():
            print(f"{'-':20} {name:18} not provoked: {why}")
    print(summary(chosen))
    return int(not all(case.skipped or is_right(case) for case in chosen))


if __name__ == "__main__":
    sys.exit(main())
