# SPDX-License-Identifier: Apache-2.0
"""Stoker and its peers on the same photos and the same cores, in turn, in one run.

    run.py build [--data FOLDER] [--rounds 3] [--only peers,pixels,large,core,formats] [--peers torch,dali]

    peers     JPEG to RandomResizedCrop(224), flip, normalise, float32 NCHW in batches of 64: images/s, start-up, memory
    pixels    what each delivers for the same crop of 50 photos, compared with Pillow
    large     photos of 12 megapixels: Stoker and DALI
    core      one core: Stoker and a prototype of its techniques
    formats   PNG and WebP: Stoker and Pillow

Peers are installed into environments of their own under BUILD/peers, once; what cannot be installed is a line that says
why, and --again tries once more. Tables are printed; BUILD/peers has them as result.json, result.md and peers.png too.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import core
import envs
import measure
import report
from measure import Peer, Place, Row

HERE = Path(__file__).resolve().parent
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
TORCH = "torch DataLoader, PIL"
PHOTOS_COMPARED = 50
PHOTOS_CONVERTED = 100


def one(env: str, program: str, mode: str, name: str, note: str = "", prepared: bool = False) -> Peer:
    return Peer(env, program, mode, [Row(name, 2, 4, note)], prepared)


def all_peers() -> list[Peer]:
    untouched = [
        Row("Stoker, epoch 1", 1, 1, "untouched files, opening included"),
        Row("Stoker, later epochs", 3, 8, "untouched files"),
    ]
    return [
        one("torch", "torch", "pil", TORCH),
        one("torch", "naive", "plain", "Pillow in a loop", "one thread"),
        one("torch", "torch", "v2", "torch DataLoader, v2 on tensors"),
        one("simd", "torch", "pil", "torch DataLoader, Pillow-SIMD"),
        one("tf", "tf", "plain", "tf.data", "does less: resize without a filter"),
        one("tf", "tf", "antialias", "tf.data, antialias=True"),
        one("dali", "dali", "cpu", "DALI, CPU"),
        one("ffcv", "ffcv", "jpg", "FFCV, JPEGs", "other photos: ≤ 500 px, quality 90; channels last", True),
        one("ffcv", "ffcv", "raw", "FFCV, raw pixels", "other photos: ≤ 500 px, no decoding; channels last", True),
        one("torch", "webdataset", "tar", "WebDataset", "tar shards", True),
        one("spdl", "spdl", "ffmpeg", "SPDL"),
        one("grain", "grain", "pil", "Grain, Pillow"),
        one("opencv", "opencv", "pool", "OpenCV, threads", "area filter"),
        Peer("stoker", "stoker", "plain", untouched),
        Peer("stoker", "stoker", "cache=dct", [Row('Stoker, cache="dct"', 3, 8, "later epochs")]),
    ]


def large_peers() -> list[Peer]:
    return [
        one("dali", "dali", "cpu", "DALI, CPU"),
        one("stoker", "stoker", "plain", "Stoker"),
        one("stoker", "stoker", "fidelity=draft", 'Stoker, fidelity="draft"', "scaled while decoding"),
    ]


# ---------------------------------------------------------------- photos


def photos_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)


def linked(folder: Path, into: Path, repeat: int) -> Path:
    """The photos in class folders, as all peers want them: links, where they are not so or are asked for repeatedly."""
    if repeat == 1 and not any(p.suffix.lower() in SUFFIXES for p in folder.iterdir()):
        return folder
    shutil.rmtree(into, ignore_errors=True)
    for path in photos_in(folder):
        target = into / (path.parent.relative_to(folder).as_posix().replace("/", "-").strip(".") or "all")
        target.mkdir(parents=True, exist_ok=True)
        for i in range(repeat):
            (target / f"{i}-{path.name}").symlink_to(path.resolve())
    return into


def synthetic(stoker: Path, folder: Path, samples: int, size: int) -> Path:
    if not (folder / "ready").exists():
        print(f"making {samples} photos of {size} pixels", file=sys.stderr)
        command = [stoker, "synth", folder, "--force", "--samples", samples, "--size", size, "--classes", 10]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        (folder / "ready").touch()
    return folder


def place_of(o: argparse.Namespace, stoker: Path) -> Place:
    root = (o.build / "peers").resolve()
    test = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "photos")
    source = o.data or (test if test.is_dir() else synthetic(stoker, root / "synth", 1000, 500))
    key = hashlib.sha256(f"{source.resolve()} {o.repeat}".encode()).hexdigest()[:12]
    work = root / "data" / key
    work.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))[: o.cores]
    return Place(root, work, linked(source.resolve(), work / "links", o.repeat), cpus, o.again)


# ---------------------------------------------------------------- parts


def measure_peers(o: argparse.Namespace, place: Place, result: dict) -> None:
    wanted = o.peers.split(",") if o.peers else []
    peers = [p for p in all_peers() if not wanted or p.program in wanted or p.rows[0].name == TORCH]
    if "pixels" in o.only:
        compare_pixels(peers, place)
    if "peers" in o.only:
        measure.rounds(peers, place, o.rounds)
    base = next(row for peer in peers for row in peer.rows if row.name == TORCH)
    result["peers"] = measure.as_dicts(peers, base)


def compare_pixels(peers: list[Peer], place: Place) -> None:
    """Every peer's own way with the same crop, against the plain Pillow loop's."""
    python, folder, out = place.root / "env-stoker/bin/python", place.work / "pixels", place.work / "pixels-out"
    if not folder.exists():
        measure.run([python, HERE / "files.py", "pixels", place.photos, folder, PHOTOS_COMPARED], place.cpus)
    out.mkdir(exist_ok=True)

    def write(peer: Peer, file: Path) -> None:
        file.unlink(missing_ok=True)
        measure.answers(measure.command_of(peer, place, folder, len(place.cpus), "--pixels", file), place.cpus)

    reference = one("torch", "naive", "reference", "Pillow, the reference")
    files = {f"{p.env}-{p.key}": (p, out / f"{p.env}-{p.key}.npy") for p in peers}
    for peer, file in [(reference, out / "reference.npy"), *files.values()]:
        measure.attempt(peer, "pixels", lambda peer=peer, file=file: write(peer, file))
    made = [str(file) for _, file in files.values() if file.exists()]
    if reference.skipped or not made:
        return
    for name, found in json.loads(
        measure.run([python, HERE / "pixels.py", out / "reference.npy", *made], place.cpus)
    ).items():
        files[name][0].pixels = found


def measure_large(o: argparse.Namespace, place: Place, result: dict, stoker: Path) -> None:
    photos = synthetic(stoker, place.root / f"large-{o.large}", o.large, 4000)
    there = Place(place.root, place.root / "data" / "large", photos, place.cpus, place.again)
    peers = large_peers()
    measure.rounds(peers, there, o.rounds)
    n = len(photos_in(photos))
    size = sum(p.stat().st_size for p in photos_in(photos)) / n / 1e6
    result["large_photos"] = f"{n} of stoker synth, 4000 pixels wide, {size:.1f} MB each, {len(place.cpus)} cores"
    result["large"] = measure.as_dicts(peers, peers[0].rows[0])


def measure_formats(o: argparse.Namespace, place: Place, result: dict) -> None:
    python, folder = place.root / "env-stoker/bin/python", place.work / "formats"
    if not folder.exists():
        print("  converting photos", file=sys.stderr)
        measure.run([python, HERE / "files.py", "convert", place.photos, folder, PHOTOS_CONVERTED], place.cpus)
    print("  PNG and WebP", file=sys.stderr)
    command = [python, HERE / "formats.py", o.rounds, f"PNG={folder / 'png'}", f"WebP={folder / 'webp'}"]
    result["formats"] = json.loads(measure.run(command, place.cpus[:1]))


def prototype_folder() -> Path:
    beside = Path(os.environ.get("STOKER_TEST_DATA") or "/nonexistent", "../proto")
    return Path(os.environ.get("STOKER_PROTO") or beside)


# ---------------------------------------------------------------- the program


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--data", type=Path, help="photos [STOKER_TEST_DATA/photos, else 1,000 made ones]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", default="peers,pixels,large,core,formats")
    parser.add_argument("--peers", default="", help="programs, as torch,dali,stoker [all]")
    parser.add_argument("--repeat", type=int, default=1, help="list every photo so often, for longer epochs")
    parser.add_argument("--large", type=int, default=128, metavar="N", help="how many large photos")
    parser.add_argument("--again", action="store_true", help="try again to install what could not be")
    parser.add_argument("--json", type=Path, help="result file [BUILD/peers/result.json]")
    parser.add_argument("--chart", type=Path, help="bar chart [BUILD/peers/peers.png]")
    o = parser.parse_args()
    o.only = o.only.split(",")
    return o


def measure_all(o: argparse.Namespace, place: Place, stoker: Path) -> dict:
    photos = photos_in(place.photos)
    mean = sum(p.stat().st_size for p in photos) / max(1, len(photos)) / 1000
    result: dict = {
        "cpu": cpu_name(),
        "cpus": place.cpus,
        "rounds": o.rounds,
        "photos": f"{len(photos):,} photos of {mean:.0f} kB",
        "load": [os.getloadavg()[0]],
        "skipped": {},
    }
    parts = {
        "peers": lambda: measure_peers(o, place, result),
        "large": lambda: measure_large(o, place, result, stoker),
        "core": lambda: result.update(core=core.compare(place, prototype_folder(), o.rounds)),
        "formats": lambda: measure_formats(o, place, result),
    }
    for name, do in parts.items():
        if name in o.only or (name == "peers" and "pixels" in o.only):
            try:
                do()
            except envs.Missing as reason:
                result["skipped"][name] = str(reason)
    result["load"].append(os.getloadavg()[0])
    return result


def main() -> int:
    o = arguments()
    stoker = (o.build / "stoker").resolve()
    wheels = sorted((o.build / "wheel").glob("stoker-*.whl"))
    if not wheels:
        print("run.py: there is no wheel; tools/wheel.sh builds it", file=sys.stderr)
        return 1
    place = place_of(o, stoker)
    envs.put_wheel(envs.python_of("stoker", place.root, again=True), wheels[-1])
    print("measuring; this takes a while, and wants a machine with nothing else to do", file=sys.stderr)
    result = measure_all(o, place, stoker)
    file, chart = o.json or place.root / "result.json", o.chart or place.root / "peers.png"
    file.write_text(json.dumps(result, indent=1))
    file.with_suffix(".md").write_text(report.markdown(result))
    print(report.text(result))
    if any("images_per_s" in row for row in result.get("peers", [])):
        python = place.root / "env-stoker/bin/python"
        measure.run([python, HERE / "chart.py", file.resolve(), chart.resolve()], place.cpus)
    return 0


if __name__ == "__main__":
    sys.exit(main())
