# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs no network: the sentence, the change, the table, and charts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from .._types import counted
from .causes import at, percent, size, times
from .facts import (
    AS_IS,
    LOADER,
    MODEL,
    PARTS,
    Measurement,
    Run,
    finite,
    gain_of,
    items,
    mean_ms,
    number,
    run_of,
    section,
)
from .html_parts import Html, axes, bar, joined, legend, lines, nice_ticks, strip, table, tag, thumbnail
from .html_style import CSS, JS
from .remedies import label
from .report import (
    advice,
    bound,
    cautions,
    command,
    costs,
    lighter,
    loss_words,
    machine_words,
    ordered,
    outcome,
    own_time,
    rate_text,
    sentence,
)
from .trace import ROWS, points
from .verdict import gain_text

STEPS = 8  # of the script as it is, in the timeline
SLOWEST, SIDE = 12, 160  # images, and their size in pixels
LOSSES = ("host", "compute", "wait", "copy", "gain")  # colours of curves


def _section(name: str, title: str, *children: object) -> Html:
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


# ---------------------------------------------------------------- the verdict


def _fact(name: str, value: str, note: str = "", big: bool = False) -> Html:
    more = tag("small", f" {note}") if note else ""
    return tag("div", tag("dt", name), tag("dd", value.replace(" %", "\u00a0%"), more), class_="big" if big else None)


def _facts(m: Measurement) -> Html:
    """The numbers of the verdict, or of a healthy script."""
    base = run_of(m, AS_IS)
    if base is None:
        return Html()
    found, wait = section(m, "verdict"), percent(number(base, "wait_share"))
    proof = run_of(m, str(found.get("run")))
    shown = [_fact("as it is", rate_text(base), "samples/s")]
    if proof and found.get("gain"):
        name = f"with {label(str(proof.get('name')))}"
        shown.append(_fact(name, rate_text(proof), f"samples/s, {gain_text(number(found, 'gain'))}", True))
        if proof.get("kind") != "ceiling":
            wait += f" \u2192 {percent(number(proof, 'wait_share'))}"
    else:
        for name in (MODEL, LOADER):
            if run := run_of(m, name):
                shown.append(_fact(label(name), rate_text(run), "samples/s"))
    shown.append(_fact("waiting for data", wait))
    if found:
        shown.append(_fact("confidence", str(found.get("confidence"))))
    return tag("dl", *shown, class_="facts")


def _header(m: Measurement) -> Html:
    found, then = section(m, "verdict"), section(m, "next")
    guess = section(m, "suspicion")
    why = [*(found.get("evidence") or []), *filter(None, [bound(m) if found else ""])]
    doubt = [tag("li", line) for line in [*(guess.get("evidence") or []), *advice(m)]]
    return tag(
        "header",
        tag(
            "p",
            tag("b", "stoker doctor"),
            " \u00b7 ",
            tag("code", command(m)),
            f" \u00b7 {machine_words(m)}",
            class_="what",
        ),
        tag("h1", sentence(m)),
        _facts(m),
        tag("ul", *(tag("li", line) for line in why), class_="why") if why else "",
        tag("p", then.get("title")) if then else "",
        tag("p", lighter(m)) if lighter(m) else "",
        tag("p", guess.get("title")) if guess else "",
        tag("ul", *doubt, class_="why") if doubt else "",
        *(_alarm(alarm) for alarm in items(m, "alarms")),
    )


def _alarm(alarm: dict[str, Any]) -> Html:
    evidence = [tag("p", f"{line}.") for line in alarm.get("evidence") or []]
    title = tag("h2", f"Alarm {alarm.get('number')}: {alarm.get('title')}")
    return tag("div", title, *evidence, tag("p", f"Change: {alarm.get('change')}"), class_="alarm", role="note")


def _diff(text: str) -> Html:
    """A line per element, with its newline, so that a copy of the text is a patch."""
    kinds = {"+": "ins", "-": "del"}
    shown = []
    for line in text.splitlines(keepends=True):
        whole = line if line.endswith("\n") else line + "\n"
        is_place = line.startswith(("@@", "+++", "---"))
        shown.append(
            tag("span" if is_place else kinds.get(line[:1], "span"), whole, class_="place" if is_place else None)
        )
    code = tag("code", *shown, id="diff")
    return tag("pre", code, tabindex="0", role="region", aria_label="the change as a diff")


def _change(m: Measurement) -> Html:
    found = section(m, "verdict")
    if not found.get("change"):
        return Html()
    words = str(found["change"])
    parts: list[object] = [tag("p", f"{words[:1].upper()}{words[1:]}.")]
    if found.get("diff"):
        parts += [_diff(str(found["diff"])), tag("button", "Copy the diff", id="copy", type="button", hidden=True)]
    number_words = f"This is verdict {found.get('number')} ({found.get('id')}) of docs/doctor.md."
    return _section("change", "The change", *parts, tag("p", number_words, class_="soft"))


# ---------------------------------------------------------------- the table and the waterfall


def _kind(m: Measurement, run: Run) -> str:
    if run.get("kind") == "ceiling":
        return "compute"
    return "gain" if run.get("kind") == "what-if" and gain_of(m, run) >= 1.05 else "host"


def _tried(m: Measurement, run: Run, most: float) -> list[object]:
    """A row of the table."""
    name, note = label(str(run.get("name"))), outcome(m, run)
    small = joined(*(tag("span", words, class_="note") for words in (note, costs(m, run)) if words))
    if run.get("status", "ok") == "ok" and run.get("inference"):
        return [joined(name, small), "\u2013", "", ""]
    if run.get("status", "ok") != "ok":
        return [joined(name, small), "\u2013", "", "", {"class_": "bad"}]
    gain = gain_of(m, run) if run.get("kind") == "what-if" else 0.0
    arrow = "up" if gain >= 1.05 else "down" if 0 < gain <= 0.95 else None
    shown = tag("span", gain_text(gain), class_=arrow) if gain else ""
    wait = percent(number(run, "wait_share")) if run.get("kind") != "ceiling" else ""
    filled = bar(number(run, "samples_per_s") / most, _kind(m, run)) if most else ""
    chosen = {"class_": "chosen"} if run.get("name") == section(m, "verdict").get("run") else {}
    return [joined(name, filled, small), rate_text(run), shown, wait, chosen]


def _table(m: Measurement) -> Html:
    runs = ordered(m)
    most = max((number(run, "samples_per_s") for run in runs), default=0.0)
    rows = [_tried(m, run, most) for run in runs]
    if not rows:
        return Html()
    words = "The script as it is, the ceilings, and every what-if that ran, in a process of its own"
    return _section("tried", "What was tried", table(words, ("", "samples/s", "gain", "waiting"), rows))


def _waterfall(m: Measurement) -> Html:
    base, model, loader = (run_of(m, name) for name in (AS_IS, MODEL, LOADER))
    rate = number(base, "samples_per_s")
    ceiling = number(model, "samples_per_s")
    if not rate or not ceiling:
        return Html()
    found = section(m, "verdict")
    proof = run_of(m, str(found.get("run")))
    reached = max(rate, number(proof, "samples_per_s")) if proof and proof.get("kind") == "what-if" else rate
    most = max(reached, ceiling, number(loader, "samples_per_s"))
    rows = [(label(AS_IS), 0.0, rate, "host", rate_text(base or {}))]
    if reached > rate and proof:
        rows.append((label(str(proof.get("name"))), rate, reached - rate, "gain", f"+{reached - rate:,.0f}"))
    if ceiling > 1.02 * reached:
        words = "left up to the model's ceiling" if reached > rate else "up to the model's ceiling"
        rows.append((words, reached, ceiling - reached, "rest", f"+{ceiling - reached:,.0f}"))
    rows.append((label(MODEL), 0.0, ceiling, "compute", f"{ceiling:,.0f}"))
    if loader:
        rows.append((label(LOADER), 0.0, number(loader, "samples_per_s"), "wait", rate_text(loader)))
    cells = [[joined(name, bar(width / most, kind, start / most)), text] for name, start, width, kind, text in rows]
    words = "Samples per second: what the change adds, and what is left up to the ceiling"
    return _section("waterfall", "From as it is to the ceiling", table(words, ("", "samples/s"), cells, "fall"))


# ---------------------------------------------------------------- the timeline


def _span(run: Run | None, seconds: float = 0.0) -> list[dict[str, Any]]:
    """Some steps from the middle of a run: STEPS of them, or as many as fill some seconds."""
    steps = [step for step in items(run, "timeline") if sum(number(step, part) for part in PARTS) > 0]
    start = max(0, len(steps) // 2 - STEPS // 2) if not seconds else len(steps) // 4
    taken: list[dict[str, Any]] = []
    total = 0.0
    for step in steps[start:]:
        if (seconds and total >= 1e3 * seconds) or (not seconds and len(taken) == STEPS):
            break
        taken.append(step)
        total += sum(number(step, part) for part in PARTS)
    return taken


def _track(run: Run, steps: Sequence[dict[str, Any]], whole_ms: float) -> Html:
    pieces, place = [], 0.0
    for step in steps:
        for part in PARTS:
            width = min(number(step, part), whole_ms - place)
            if width > 0:
                gap = 0.0015 * whole_ms if part == PARTS[-1] else 0.0  # a thin line between steps
                pieces.append((place / whole_ms, max(0.0, width - gap) / whole_ms, part))
                place += width
    sums = {part: sum(number(step, part) for step in steps) for part in PARTS}
    total = sum(sums.values())
    shares = ", ".join(f"{ROWS[part]} {percent(ms / total)}" for part, ms in sums.items() if ms / total >= 0.001)
    words = f"{label(str(run.get('name')))}: {counted(len(steps), 'step')} of {times(total / len(steps))}: {shares}"
    head = tag(
        "p",
        tag("b", label(str(run.get("name")))),
        tag("span", f"{times(total / len(steps))} per step, {percent(sums['wait'] / total)} waiting", class_="soft"),
    )
    return tag("div", head, strip(pieces, words), class_="track")


def _timeline(m: Measurement) -> Html:
    base, found = run_of(m, AS_IS), section(m, "verdict")
    steps = _span(base)
    if base is None or not steps:
        return Html()
    whole = sum(number(step, part) for step in steps for part in PARTS)
    tracks = [_track(base, steps, whole)]
    other = run_of(m, str(found.get("run")))
    if other and other.get("kind") == "what-if" and (more := _span(other, whole / 1e3)):
        tracks.append(_track(other, more, whole))
    used = [part for part in PARTS if mean_ms(base, part) or any(number(step, part) for step in steps)]
    rows = [[f"step {i}", *(times(number(step, part)) for part in used)] for i, step in enumerate(steps, 1)]
    heads = ("", *(ROWS[part] for part in used))
    return _section(
        "timeline",
        "Where the time goes",
        tag("p", f"{counted(len(steps), 'step')} in the middle of the run, all on one clock.", class_="soft"),
        *tracks,
        tag("div", tag("span", "0"), tag("span", times(whole)), class_="scale", aria_hidden="true"),
        legend([(part, ROWS[part]) for part in used]),
        tag("details", tag("summary", "These steps as numbers"), table("Parts of every step", heads, rows)),
    )


# ---------------------------------------------------------------- the loader


def _stages(m: Measurement) -> Html:
    s = section(m, "stages")
    parts = [("reading, data in memory", number(s, "read_us"), "copy"), ("decoding", number(s, "decode_us"), "wait")]
    parts += [(at(one), number(one, "us"), "compute") for one in items(s, "transforms")]
    parts.append(("the dataset itself", number(s, "other_us"), "host"))
    parts.append(("collating into a batch", number(s, "collate_us_per_sample"), "gain"))
    parts.append(("sending to the training process", number(s, "transfer_us_per_sample"), "host"))
    total = sum(us for _, us, _ in parts)
    if not total:
        return Html()
    rows, start = [], 0.0
    for name, us, kind in parts:
        if us:
            shown = joined(name, bar(us / total, kind, start / total))
            rows.append([shown, times(us / 1e3), percent(us / total)])
        start += us
    more = []
    if cold := number(s, "cold_read_us"):
        more.append(tag("p", f"Reading a sample that is not in memory takes {times(cold / 1e3)}.", class_="soft"))
    words = "The loader's work for one sample, part by part, in one process"
    return _section("stages", "Inside the loader", table(words, ("", "per sample", "share"), rows), *more)


def _histogram(each: dict[str, Any]) -> Html:
    bins = points(each.get("histogram"))
    most = max((row[1] for row in bins), default=0.0)
    if not most:
        return Html()
    y, tail = nice_ticks(most), number(each, "p99")
    shapes = []
    for i, (start, count) in enumerate(bins):
        if count:
            height = max(12.0, 1000 * count / y[-1])  # a single sample stays visible
            width = 1000 / len(bins)
            kind = "wait" if tail and start >= 0.5 * tail and start > number(each, "median") else "compute"
            shapes.append(
                tag(
                    "rect",
                    x=f"{(i + 0.06) * width:.1f}",
                    width=f"{0.88 * width:.1f}",
                    y=f"{1000 - height:.1f}",
                    height=f"{height:.1f}",
                    class_=kind,
                )
            )
    every = max(1, -(-len(bins) // 6))
    x = [(i / len(bins), times(row[0]) if row[0] else "0") for i, row in enumerate(bins) if i % every == 0]
    names = (("median", "median"), ("p90", "90 %"), ("p99", "99 %"), ("max", "slowest"))
    known = ", ".join(f"{words} {times(number(each, key))}" for key, words in names if each.get(key) is not None)
    chart = axes(shapes, [(value / y[-1], f"{value:,.0f}") for value in y], x, f"Time per sample: {known}")
    return joined(tag("p", f"Time that one sample takes: {known}.", class_="soft"), chart)


def _folder(paths: Sequence[str]) -> str:
    """The folder that all these files are in, with a slash; empty if there is no common folder or only one file."""
    try:
        shared = os.path.commonpath(paths) if len(paths) > 1 else ""
    except ValueError:  # absolute and relative ones
        return ""
    return shared + os.sep if shared not in ("", os.sep) else ""


def _film(one: dict[str, Any], folder: str) -> Html:
    path = str(one.get("path") or "")
    name = path.removeprefix(folder) or f"sample {one.get('index')}"
    source = thumbnail(path, SIDE) if path else None
    words = f"thumbnail of {os.path.basename(name)}"
    image = tag("img", src=source, alt=words, width=SIDE, height=SIDE) if source else None
    missing = tag("div", "no image", class_="none")
    return tag("li", image or missing, tag("b", times(number(one, "ms"))), tag("bdi", name, class_="path", title=path))


def _slowest(m: Measurement) -> Html:
    slowest = items(m, "slowest")[:SLOWEST]
    if not slowest:
        return Html()
    folder = _folder([str(one["path"]) for one in slowest if one.get("path")])
    where = tag("p", "In ", tag("bdi", folder, class_="path"), class_="soft") if folder else ""
    films = [_film(one, folder) for one in slowest]
    return joined(tag("h3", "The slowest samples"), where, tag("ul", *films, class_="films"))


def _samples(m: Measurement) -> Html:
    parts = [_histogram(section(m, "samples_ms")), _slowest(m)]
    return _section("samples", "Samples", *parts) if any(parts) else Html()


# ---------------------------------------------------------------- over time


def _curve_words(name: str, curve: Sequence[Sequence[float]], text: Any) -> str:
    values = [row[1] for row in curve]
    return f"{name}: {text(values[0])} at first, {text(values[-1])} at last, {text(max(values))} at most"


def _machine(m: Measurement) -> Html:
    run = run_of(m, AS_IS)
    curves = (
        ("Memory", "Memory of the script and its workers", "compute", points(section(run, "memory").get("rss")), size),
        ("CPU", "CPUs in use", "wait", points(section(run, "cpu").get("timeline")), lambda value: f"{value:.2g}"),
    )
    parts: list[object] = []
    for title, name, kind, curve, text in curves:
        if len(curve) > 1:
            words = _curve_words(name, curve, text)
            chart = lines([(kind, curve)], text, " s", words)
            parts += [tag("h3", title), tag("p", f"{words}.", class_="soft"), chart]
    return _section("machine", "Memory and CPU over time", *parts) if parts else Html()


def _losses(m: Measurement) -> Html:
    runs = [run for run in ordered(m) if run.get("kind") != "ceiling" and run.get("status", "ok") == "ok"]
    curves = []
    for run in runs:
        loss = run.get("loss")
        values = enumerate(loss if isinstance(loss, list) else [])
        curve = [(float(i), float(x)) for i, x in values if isinstance(x, int | float) and abs(x) < 1e30]
        if len(curve) > 1:
            curves.append((label(str(run.get("name"))), curve))
    curves = curves[: len(LOSSES)]
    if len(curves) < 2:
        return Html()
    words = "; ".join(_curve_words(name, curve, lambda value: f"{value:.3g}") for name, curve in curves)
    series = [(kind, curve) for kind, (_, curve) in zip(LOSSES, curves, strict=False)]
    notes = [tag("p", note) for run in runs if run.get("kind") == "what-if" and (note := loss_words(m, run))]
    return _section(
        "loss",
        "Loss, side by side",
        *notes,
        tag("div", lines(series, lambda value: f"{value:g}", " steps", f"Loss over steps. {words}"), class_="many"),
        legend([(kind, name) for kind, (name, _) in zip(LOSSES, curves, strict=False)]),
    )


# ---------------------------------------------------------------- the page


def _footer(m: Measurement) -> Html:
    versions = section(section(m, "machine"), "versions")
    rows = [
        ("command", command(m)),
        ("machine", machine_words(m)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("started", m.get("started")),
        ("disabled in the what-if runs", "; ".join(map(str, m.get("disabled") or []))),
    ]
    rows.append(("the doctor's own time", own_time(m)))
    listed = [joined(tag("dt", name), tag("dd", value)) for name, value in rows if value]
    return tag(
        "footer",
        tag("h2", "About this report"),
        *(tag("p", line) for line in cautions(m)),
        tag("dl", *listed),
        tag("button", "Save the measurement as JSON", id="save", type="button", hidden=True),
        tag("p", id="said", role="status", class_="soft"),
    )


def page(m: Measurement) -> str:
    """The whole document."""
    sections = (_change, _table, _timeline, _waterfall, _stages, _samples, _losses, _machine)
    body = [made for make in sections if (made := make(m))]
    code = base64.b64encode(hashlib.sha256(JS.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{code}'; base-uri 'none'"
    )
    data = json.dumps(finite(m), allow_nan=False).replace("<", "\\u003c")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"{policy}; form-action 'none'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="stoker doctor"),
        tag("title", f"stoker doctor: {command(m)}"),
        tag("style", Html(CSS)),
    )
    skip = tag("a", "Skip to the table", href="#tried", class_="skip")
    main = tag("main", *body)
    scripts = tag("script", Html(data), type="application/json", id="document"), tag("script", Html(JS))
    return "<!doctype html>\n" + tag("html", head, tag("body", skip, _header(m), main, _footer(m), *scripts), lang="en")


def write(m: Measurement, path: str | os.PathLike[str]) -> None:
    """Writes the file."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:  # names of files may not be UTF-8
        file.write(page(m))
