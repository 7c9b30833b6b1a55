# SPDX-License-Identifier: Apache-2.0
"""Prints what the naive loop and `stoker bench` measured on the same job, side by side.

    side_by_side.py naive.json stoker.json
"""

import json
import sys
from pathlib import Path


def summary(result: dict) -> dict:
    """Images/s of the median epoch, and microseconds of one thread per image and stage."""
    images = sum(e["images"] for e in result["epochs"])
    rates = sorted(e["images_per_s"] for e in result["epochs"])
    stages = {name: 1e6 * stage["s"] / images for name, stage in result["stages"].items() if name != "wait"}
    waits = result.get("limit") or max(stages, key=lambda name: stages[name])
    return {"rate": rates[len(rates) // 2], "stages": stages, "limit": waits, "threads": result["threads"]}


def main() -> int:
    naive, stoker = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    a, b = summary(naive), summary(stoker)
    kind = f"Pillow {naive['pillow']}" if "pillow" in naive else "in C"
    threads = f"{b['threads']} thread{'s' if b['threads'] != 1 else ''}"
    row = "  {:<26}{:>16}{:>16}{:>10}".format
    print(row("", "plain loop", "Stoker", ""))
    print(row("", kind, threads, ""))
    print(row("images per second", f"{a['rate']:.0f}", f"{b['rate']:.0f}", f"{b['rate'] / a['rate']:.1f} x"))
    print(row("time per image, us", f"{1e6 / a['rate']:.0f}", f"{1e6 / b['rate']:.0f}", ""))
    print("  of one thread, us per image")
    for name in dict.fromkeys([*a["stages"], *b["stages"]]):
        cells = [f"{s[name]:.0f}" if name in s else "-" for s in (a["stages"], b["stages"])]
        if any(cell not in ("-", "0") for cell in cells):
            print(row("    " + name, *cells, ""))
    print(row("limited by", a["limit"], b["limit"], ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
