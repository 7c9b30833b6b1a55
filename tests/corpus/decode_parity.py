# SPDX-License-Identifier: Apache-2.0
"""Compares our decoders with Pillow's, bit for bit, on every JPEG, PNG and WebP of the test data.

    decode_parity.py DECODE_DUMP [FOLDER...]

DECODE_DUMP is the program of that name; the folders are those of STOKER_TEST_DATA unless named. The
reference is Pillow 13: every image that it completes must decode here with equal pixels, and what it
refuses must be refused, except for the files that the tables below name. With another Pillow the pixels
are compared, and differing verdicts on damaged files are only counted. No file may take over 5 seconds of CPU time.
Ends with 77 without Pillow or without data.
"""

from __future__ import annotations

import array
import os
import resource
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

try:
    import PIL
    from PIL import Image, ImageOps
except ImportError:
    print("skipped: Pillow is not installed")
    sys.exit(77)

REFERENCE = 13
SLOW_S = 5.0
MEMORY = 1 << 30

SMOOTHED = "progressive, some of its scans are missing: libjpeg-turbo 3, in Pillow, smooths blocks otherwise than 2.1"
TWO_FRAMES = "a second frame header behind the last row, which libjpeg-turbo 2.1 does not mind"
APNG = "the book-keeping of an APNG is broken, its first image is not"
METADATA = "a chunk that is not about pixels is broken"
NO_COLOUR = "an index that its palette does not have is black since Pillow 10, and was grey before"

# Images that both decode, but differently.
DIFFERENT = {
    "8e5e74dbf9b68a322fbb9512db837329.jpg": SMOOTHED,
    "f6b4389c3cf0f5997b2e5a4b905aea8d.jpg": SMOOTHED,
    "10cb2d32138629cece3e062a8aea2f52518f21ef": SMOOTHED,
    "25aadffedb2218980eda05b540b239e47f8ed301": SMOOTHED,
    "26908a4acf8e980d47da8f52cf01d07b11979130": SMOOTHED,
    "7e6883ae5f8022373016dc4291cab5b2d6cc621c": SMOOTHED,
    "8b7eb81d708aa9e76808d3d61d6dc746fe94393a": SMOOTHED,
    "cde10ca77d168efcedee91bab5c0d9edf9eeb697": SMOOTHED,
    "d7e838e5fc4f08ac01bff108278a395c1cf4fc61": SMOOTHED,
}

# The same, with a Pillow before the reference.
DIFFERENT_BEFORE = {
    "invalid-palette.png": NO_COLOUR,
    "1026c91eaa65ce2b63f2eb9a5ebe1de049223e27": NO_COLOUR,
    "1a657c5cd9a6a271a820e7b5c7e76d7050b9ee0c": NO_COLOUR,
    "9f32afa77e38ea6f526fa8f850ebfa0e74cb1346": NO_COLOUR,
    "b169e49b95794c91caf535ca7a54ba743893a949": NO_COLOUR,
    "fa72906f603791dacbb490f70b496bfb9829a3ee": NO_COLOUR,
}

# Images that only Pillow decodes.
ONLY_PILLOW: dict[str, str] = {}

# Images that only we decode.
ONLY_WE = {
    "id_000831,sync_jpeg9,src_000903.jpg": TWO_FRAMES,
    "id_000903,src_000177,op_havoc,rep_2.jpg": TWO_FRAMES,
    "8a9cc8eeed66aeb423a91c44111d9450.jpg": TWO_FRAMES,
    "chunk_no_fctl.png": APNG,
    "02e7afd1c44e54905fa5fd317974983c881b214a.crash": APNG,
    "5768a54b04086fd1c5f9c1af4b3ff6e8536821f3.crash": APNG,
    "7d4b3dc5f8ec7f1f6e40b36a75cefe7c1c70a4d1.crash": METADATA,
    "png_decompression_dos.png": METADATA,
    "unknown_compression_method.png": METADATA,
}


def is_ours(path: Path) -> bool:
    with path.open("rb") as f:
        start = f.read(16)
    return (
        start.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"))
        or start.startswith(b"RIFF")
        and start[8:12] == b"WEBP"
    )


def rgb_of(im: Image.Image) -> bytes:
    """Pillow's RGB; but 16 bits of grey, which Pillow clips, are scaled."""
    if not im.mode.startswith("I"):
        return im.convert("RGB").tobytes()
    deep = array.array("H" if im.mode.startswith("I;16") else "i", im.tobytes())
    return b"".join(bytes([(v + 128) // 257]) * 3 for v in deep)


class Theirs:
    """What Pillow makes of a file."""

    def __init__(self, path: Path) -> None:
        self.size = (0, 0)
        self.pixels = b""
        self.refused = ""
        try:
            with Image.open(path, formats=("JPEG", "PNG", "WEBP")) as im:
                im.load()
                try:
                    upright = ImageOps.exif_transpose(im) or im
                except Exception:  # noqa: BLE001 -- metadata it stumbles over: the image is there all the same
                    upright = im
                self.size, self.pixels = upright.size, rgb_of(upright)
        except Exception as e:  # noqa: BLE001 -- Pillow raises what it likes
            self.refused = f"{type(e).__name__}: {e}"


def cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Ours:
    """What decode_dump makes of a file."""

    def __init__(self, dump: subprocess.Popen[bytes], path: Path) -> None:
        assert dump.stdin and dump.stdout
        start = cpu_seconds(dump.pid)
        dump.stdin.write(os.fsencode(path) + b"\n")
        dump.stdin.flush()
        line = dump.stdout.readline().decode()
        verdict, _, rest = line.rstrip("\n").partition(" ")
        self.size = (0, 0)
        self.pixels = b""
        self.refused = rest if verdict == "bad" else ""
        if verdict == "ok":
            w, h, _ = (int(word) for word in rest.split())
            self.size, self.pixels = (w, h), dump.stdout.read(w * h * 3)
        elif verdict != "bad":
            sys.exit(f"decode_dump died of {path}")
        self.seconds = cpu_seconds(dump.pid) - start


def turbo_3(dump: str) -> bool:
    """Whether our libjpeg-turbo is Pillow's, as far as these tables go."""
    version = subprocess.run([dump, "--version"], capture_output=True, text=True, check=True).stdout
    return version.startswith("libjpeg-turbo 3")


def forget(reasons: set[str]) -> None:
    """Files that are listed for these reasons must be as Pillow's."""
    for table in (DIFFERENT, ONLY_WE):
        for name in [n for n, reason in table.items() if reason in reasons]:
            del table[name]


def judge(path: Path, ours: Ours, theirs: Theirs) -> tuple[str, bool]:
    """The kind of outcome, and whether it is as it should be."""
    strict = int(PIL.__version__.split(".")[0]) == REFERENCE
    if ours.seconds > SLOW_S:
        return f"slow ({ours.seconds:.1f} s)", False
    if ours.refused and theirs.refused:
        return "refused by both", True
    if ours.refused:
        return f"refused only by us ({ours.refused})", path.name in ONLY_PILLOW or not strict
    if theirs.refused:
        return f"refused only by Pillow ({theirs.refused})", path.name in ONLY_WE or not strict
    if ours.size == theirs.size and ours.pixels == theirs.pixels:
        return "equal", True
    return "different", path.name in DIFFERENT or (not strict and path.name in DIFFERENT_BEFORE)


def folders() -> list[Path]:
    if len(sys.argv) > 2:
        return [Path(a) for a in sys.argv[2:]]
    data = os.environ.get("STOKER_TEST_DATA")
    return [Path(data, "photos"), Path(data, "corpus")] if data else []


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not any(f.is_dir() for f in folders()):
        print("skipped: no test data (STOKER_TEST_DATA)")
        return 77
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None
    if turbo_3(sys.argv[1]):
        forget({SMOOTHED, TWO_FRAMES})
    counts: Counter[str] = Counter()
    failures = 0
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dump:
        for path in sorted(p for folder in folders() for p in folder.rglob("*")):
            if not path.is_file() or not is_ours(path):
                continue
            kind, fine = judge(path, Ours(dump, path), Theirs(path))
            listed = fine and kind not in ("equal", "refused by both")
            counts[kind.partition(" (")[0] + (" as listed" if listed else "")] += 1
            if not fine:
                failures += 1
                print(f"{path}: {kind}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if dump.returncode or peak > MEMORY:
        failures += 1
        print(f"decode_dump ended with {dump.returncode}, and took {peak >> 20} MiB")
    print(f"Pillow {PIL.__version__}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
