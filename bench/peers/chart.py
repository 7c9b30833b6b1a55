# SPDX-License-Identifier: Apache-2.0
"""The bar chart of the peers, for the README; runs in Stoker's environment.

chart.py RESULT.json OUT.png
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

OURS, THEIRS, INK = "#d9480f", "#adb5bd", "#343a40"


def draw(result: dict, file: str) -> None:
    rows = sorted((r for r in result["peers"] if not r["skipped"]), key=lambda r: r["images_per_s"])
    rates = [r["images_per_s"] for r in rows]
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(rows) + 1.1), dpi=150)
    bars = axes.barh([r["name"] for r in rows], rates, color=[OURS if r["stoker"] else THEIRS for r in rows])
    axes.bar_label(bars, [f"{r['images_per_s']:,.0f}" for r in rows], padding=4, color=INK, fontsize=9)
    axes.set_title(f"images/s, {result['photos']}, {len(result['cpus'])} cores", loc="left", color=INK, fontsize=10)
    axes.set_xlim(0, 1.12 * max(rates))
    axes.tick_params(left=False, bottom=False, labelbottom=False, labelcolor=INK, labelsize=9)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])
