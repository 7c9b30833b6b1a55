# SPDX-License-Identifier: Apache-2.0
"""The result of run.py in words: aligned tables for a terminal, Markdown for the documents.

report.py RESULT.json              tables
report.py RESULT.json --markdown   the same as Markdown
"""

import json
import sys
from pathlib import Path

MB = 1e6
Table = tuple[str, list[str], list[list[str]]]  # title, heads, rows


def number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def spread(row: dict) -> str:
    form = ",.0f" if row.get("low", 0) >= 20 else ".1f"
    return f"{row['low']:{form}}–{row['high']:{form}}" if "low" in row else ""


def pixels(row: dict) -> list[str]:
    p = row.get("pixels") or {}
    if not p:
        return ["", "", ""]
    return ["yes" if p["same"] else "no", f"{p['mean']:.2f} / {p['max']:.0f}", "yes" if p["antialiased"] else "NO"]


def peer_cells(row: dict) -> list[str]:
    if row["skipped"]:
        return [row["name"], "–", *[""] * 8, f"skipped: {row['skipped']}"]
    prepared = f"prepared in {row['prepare_s']:.0f} s" if row["prepare_s"] else ""
    return [
        row["name"],
        number(row.get("images_per_s"), ",.0f"),
        spread(row),
        number(row.get("ratio"), ".2f"),
        number(row.get("cpu_s") and 1e6 * row["cpu_s"], ",.0f"),
        number(row["start_s"], ".1f"),
        number(row["pss"] and row["pss"] / MB, ".0f"),
        *pixels(row),
        "; ".join(word for word in (row["note"], prepared) if word),
    ]


PEER_HEADS = [
    "peer",
    "images/s",
    "spread",
    "× torch",
    "CPU, µs an image",
    "start to end of epoch 1, s",
    "memory, MB",
    "Pillow's pixels?",
    "difference: mean / max",
    "antialiased?",
    "",
]


def peers(result: dict) -> Table:
    return f"{result['photos']}, {len(result['cpus'])} cores", PEER_HEADS, [peer_cells(r) for r in result["peers"]]


def large_cells(row: dict) -> list[str]:
    if row["skipped"]:
        return [row["name"], "–", "", "", "", f"skipped: {row['skipped']}"]
    ratio, cpu = number(row.get("ratio"), ".2f"), f"{1e3 * row['cpu_s']:,.1f}"
    return [row["name"], f"{row['images_per_s']:,.1f}", spread(row), ratio, cpu, row["note"]]


def large(result: dict) -> Table:
    heads = ["peer", "images/s", "spread", "× DALI", "CPU, ms an image", ""]
    return f"Large photos: {result['large_photos']}", heads, [large_cells(row) for row in result["large"]]


def core(result: dict) -> Table:
    heads = ["one core", "Stoker, images per s of CPU", "prototype, the same", "ratio"]
    rows = [
        [r["name"], f"skipped: {r['skipped']}", f"{r['prototype']:,.0f}", ""]
        if r["skipped"]
        else [r["name"], f"{r['images_per_s']:,.0f}", f"{r['prototype']:,.0f}", f"{r['ratio']:.2f}"]
        for r in result["core"]
    ]
    return "One core, compared with the prototype", heads, rows


def formats(result: dict) -> Table:
    heads = ["whole images, 1 thread", "Stoker, images/s", "Pillow, images/s", "ratio", "same pixels?"]
    rows = [
        [name, f"{r['stoker']:,.0f}", f"{r['pillow']:,.0f}", f"{r['ratio']:.2f}", "yes" if r["same"] else "NO"]
        for name, r in result["formats"].items()
    ]
    return "Decoding, compared with Pillow", heads, rows


def tables(result: dict) -> list[Table]:
    makers = {"peers": peers, "large": large, "core": core, "formats": formats}
    return [make(result) for name, make in makers.items() if result.get(name)]


def words(result: dict) -> list[str]:
    """What has to be said about the figures."""
    load = ", ".join(f"{x:.1f}" for x in result["load"])
    versions = sorted({w for r in result.get("peers", []) for w in r["versions"].split(", ") if w})
    rounds = "1 round" if result["rounds"] == 1 else f"{result['rounds']} rounds"
    said = [f"{result['cpu']}; {rounds}; load of the machine at the beginning and the end: {load}."]
    if versions:
        said.append(f"Versions: {', '.join(versions)}.")
    return said + [f"Not measured: {what}: {why}." for what, why in result.get("skipped", {}).items()]


def aligned(heads: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    figure = [all(not row[i] or row[i][0] in "0123456789–" for row in rows) for i in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [c.rjust(w) if f else c.ljust(w) for c, w, f in zip(row, widths, figure, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def text(result: dict) -> str:
    parts = [f"{title}\n\n{aligned(heads, rows)}" for title, heads, rows in tables(result)]
    return "\n\n".join([*parts, "\n".join(words(result))])


def markdown(result: dict) -> str:
    parts = []
    for title, heads, rows in tables(result):
        lines = [f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]]
        parts.append("\n".join([f"### {title}", "", *lines]))
    return "\n\n".join([*parts, "\n".join(words(result))]) + "\n"


if __name__ == "__main__":
    document = json.loads(Path(sys.argv[1]).read_text())
    print(markdown(document) if "--markdown" in sys.argv else text(document))
