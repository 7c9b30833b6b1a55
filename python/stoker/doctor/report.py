# SPDX-License-Identifier: Apache-2.0
"""The report in a terminal: one sentence, one change, one table. Colours and bars only if the caller asks for them."""

from __future__ import annotations

import shlex
import textwrap
from typing import Any

from .._types import counted
from .causes import cpus_text, percent, quota_share, size
from .facts import AS_IS, MODEL, NO_STALLS, PARTS, Facts, Measurement, Run, gain_of, items, number, run_of, section
from .remedies import DISTILLATION, label, remedy
from .trace import points
from .verdict import disturbed, doubt, gain_text, has_nan, healthy_words, is_not_compared, losses

BOLD, DIM, GREEN, RED, YELLOW, OFF = (f"\033[{n}m" for n in (1, 2, 32, 31, 33, 0))
BAR = 16  # columns


class Style:
    """Adds colours, or leaves the text as it is."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, code: str, text: str) -> str:
        return f"{code}{text}{OFF}" if self.color and code and text.strip() else text


def command(m: Measurement) -> str:
    """The command as the user typed it."""
    return shlex.join(map(str, m.get("command") or ["?"]))


def sentence(m: Measurement) -> str:
    """The verdict, or why there is none, in one sentence."""
    found = m.get("verdict")
    return str(found["title"]) if isinstance(found, dict) else healthy_words(m)


def exit_code(m: Measurement) -> int:
    """0: healthy. 1: there is something to gain, an alarm, or the script failed."""
    base = next((run for run in items(m, "runs") if run.get("name") == AS_IS), {})
    return int(bool(m.get("verdict") or m.get("alarms")) or base.get("status", "ok") != "ok")


def machine_words(m: Measurement) -> str:
    machine = section(m, "machine")
    if not machine:  # interrupted before anything was known
        return f"{number(m, 'seconds'):.0f} s"
    quota = number(machine, "quota")
    cpus = counted(int(number(machine, "cpus")), "CPU") + (f" (quota {quota:.3g})" if quota else "")
    gpus = ", ".join(str(gpu.get("name")) for gpu in items(machine, "gpus")) or "no GPU"
    return f"{cpus}, {gpus}, {number(m, 'seconds'):.0f} s"


def rate_text(run: Run) -> str:
    rate = number(run, "samples_per_s")
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def outcome(m: Measurement, run: Run) -> str:
    """What a run shows besides its speed: that it failed, or why its gain proves nothing."""
    status = run.get("status", "ok")
    if status != "ok":
        return f"{status}: {run.get('reason') or 'no reason is known'}"
    if found := doubt(m, run) or "the loss is NaN" * has_nan(run):
        return found
    if is_not_compared(run):
        return "its batches were not compared"
    if run.get("name") in NO_STALLS:
        return "the gain counts the pauses, samples/s do not"
    if run.get("inference"):
        return f"int8 inference {gain_text(number(run, 'inference', 'gain'))} against float32 inference"
    return "changes the result of training" if remedy(str(run.get("name"))).changes_training else ""


def peak_memory(run: Run) -> float:
    """Bytes of all processes together, at most."""
    return max((row[1] for row in points(section(run, "memory").get("rss"))), default=0.0)


def costs(m: Measurement, run: Run) -> str:
    """What a what-if changes besides the speed: the memory of another batch size, the parameters of another model."""
    base, both = run_of(m, AS_IS), run.get("parameters")
    if isinstance(both, list) and len(both) == 2:
        return f"{both[1]:,} parameters ({both[0]:,} as it is)"
    if base is None or run.get("name") not in ("batch*2", "batch/2", "checkpointing"):
        return ""
    for kind, bytes_of in (("GPU memory", lambda one: number(one, "gpu", "memory_peak")), ("memory", peak_memory)):
        before, after = bytes_of(base), bytes_of(run)
        if before and after:
            return f"peak {kind} {size(after)} ({size(before)} as it is)"
    return ""


def lighter(m: Measurement) -> str:
    """What to do if the model is the limit, besides the change; empty if it is not."""
    base = run_of(m, AS_IS)
    if base is None:
        return ""
    facts, named = Facts(m, base), {section(m, name).get("id") for name in ("verdict", "next")}
    busiest = not m.get("verdict") and not facts.waits and facts.ms("compute") == max(map(facts.ms, PARTS)) > 0
    return DISTILLATION if busiest or "model" in named else ""


def ordered(m: Measurement) -> list[Run]:
    """The runs as the table lists them: as it is, the ceilings, the what-ifs by their gain, then those that failed."""
    runs = items(m, "runs")
    first = [r for r in runs if r.get("name") == AS_IS] + [r for r in runs if r.get("kind") == "ceiling"]
    rest = [r for r in runs if r.get("kind") == "what-if"]
    rest.sort(key=lambda r: (r.get("status", "ok") != "ok", -gain_of(m, r)))
    return first + rest


def _row(m: Measurement, run: Run, style: Style, most: float, name_width: int, width: int) -> list[str]:
    name, ok = label(str(run.get("name"))), run.get("status", "ok") == "ok"
    indent = "  " if run.get("kind") == "what-if" else ""
    head = f"{indent}{name}"
    first = head if len(head) <= name_width else head[: name_width - 1] + "~"
    if run.get("inference"):  # it has no speed of training
        return [first, f"{indent}  {outcome(m, run)}"]
    if not ok:
        words = textwrap.shorten(outcome(m, run), max(20, width - name_width - 1), placeholder=" ...")
        return [f"{first:<{name_width}} {style(DIM, words)}"]
    gain = gain_of(m, run) if run.get("kind") == "what-if" else 0.0
    shown = gain_text(gain) if gain else ""
    wait = percent(number(run, "wait_share")) if run.get("kind") != "ceiling" else ""
    line = f"{first:<{name_width}} {rate_text(run):>9}  {style(_color(gain), f'{shown:>6}')}  {wait:>7}"
    if style.color and most:
        full = round(BAR * number(run, "samples_per_s") / most)
        line += "  " + "\u2588" * full + style(DIM, "\u2591" * (BAR - full))
    notes = filter(None, [outcome(m, run), costs(m, run)])
    return [line.rstrip(), *(f"{indent}  {style(YELLOW, note)}" for note in notes)]


def _color(gain: float) -> str:
    return GREEN if gain >= 1.05 else RED if 0 < gain <= 0.95 else DIM


def table(m: Measurement, color: bool = False, width: int = 80) -> str:
    """All runs, aligned."""
    style, runs = Style(color), ordered(m)
    most = max((number(r, "samples_per_s") for r in runs), default=0.0)
    room = width - 30 - (BAR + 2 if color else 0)
    longest = max((len(label(str(r.get("name")))) + 2 for r in runs), default=0)
    name_width = max(16, min(room, longest))
    lines = [style(DIM, f"{'':<{name_width}} {'samples/s':>9}  {'gain':>6}  {'waiting':>7}")]
    for run in runs:
        lines += _row(m, run, style, most, name_width, width)
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(text: str, width: int, indent: str = "") -> str:
    """A paragraph; further lines of an item begin under its text."""
    more = indent + ("  " if text.startswith("- ") else "")
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )


def diff_lines(diff: str, style: Style) -> str:
    colors = {"+": GREEN, "-": RED, "@": DIM}
    return "\n".join("  " + style(colors.get(line[:1], ""), line) for line in diff.splitlines())


def bound(m: Measurement) -> str:
    """What a loader can gain at most, where the model leaves room for more than the verdict gains."""
    base, ceiling = run_of(m, AS_IS), run_of(m, MODEL)
    gain = number(m.get("verdict"), "gain")
    if not base or not ceiling or number(base, "wait_share") < 0.05 or not gain:
        return ""
    most = gain_of(m, ceiling)
    if most < 1.1 * gain:
        is_next = section(m, "next").get("id") == "model"
        return "" if is_next else "After that, the model is the limit: no loader can make training faster."
    return f"No loader can make training more than {gain_text(most)} as fast: that is the speed of the model alone."


def _verdict(m: Measurement, found: dict[str, Any], style: Style, width: int) -> list[str]:
    lines = [_wrapped(f"- {line}", width, "  ") for line in found.get("evidence") or []]
    if most := bound(m):
        lines.append(_wrapped(f"- {most}", width, "  "))
    lines.append(f"  confidence: {found.get('confidence')} (verdict {found.get('number')}, {found.get('id')})")
    lines += ["", _wrapped(f"Change: {found.get('change')}", width)]
    if found.get("diff"):
        lines.append(diff_lines(str(found["diff"]), style))
    return lines


def _alarm(alarm: dict[str, Any], style: Style, width: int) -> list[str]:
    lines = [style(BOLD + YELLOW, _wrapped(f"Alarm {alarm.get('number')}: {alarm.get('title')}.", width))]
    lines += [_wrapped(f"- {line}", width, "  ") for line in alarm.get("evidence") or []]
    return [*lines, _wrapped(f"Change: {alarm.get('change')}", width, "  ")]


def _notes(m: Measurement, width: int) -> list[str]:
    notes = [note for run in items(m, "runs") if run.get("kind") == "what-if" and (note := loss_words(m, run))]
    notes += [*filter(None, [lighter(m)]), *cautions(m)]
    if m.get("disabled"):
        notes.append("Disabled, or done in a scratch folder: " + "; ".join(map(str, m["disabled"])) + ".")
    if taken := own_time(m):
        notes.append(f"The doctor itself takes {taken}.")
    return [_wrapped(note, width) for note in notes]


def own_time(m: Measurement) -> str:
    """What the doctor takes, inside the script and beside it; empty if it is not known."""
    overhead = section(m, "overhead")
    if overhead.get("us_per_step") is None:
        return ""
    inside = f"{number(overhead, 'us_per_step'):.0f} us per step ({percent(number(overhead, 'share'))})"
    watching = number(overhead, "watching")
    return f"{inside}, and {percent(watching)} of a CPU beside the script" if watching else inside


def advice(m: Measurement) -> list[str]:
    """What to do about a suspicion: how to prove it, and what may help."""
    guess = section(m, "suspicion")
    change, names = guess.get("change"), guess.get("tries") or []
    lines = [f"What may help: {change}"] if change else []
    if m.get("form") == "here":
        lines.append("To prove it: stoker doctor train.py")
    elif names:
        words = list(map(str, m.get("command") or ["train.py"]))
        dashes = [] if words[0].endswith(".py") else ["--"]
        lines.append("To prove it: " + shlex.join(["stoker", "doctor", "--try", ",".join(names), *dashes, *words]))
    return lines


def cautions(m: Measurement) -> list[str]:
    """What held the script up besides itself: other programs, and the quota of its container."""
    found: list[str] = []
    base = run_of(m, AS_IS)
    if base is None:
        return found
    if slower := number(m, "as_is_again"):  # or colder
        rates = f"{number(base, 'samples_per_s'):,.0f} samples/s, and {slower:,.0f}, which do not count"
        found.append(f"The script as it is was measured twice: {rates}.")
    if others := max(disturbed(m, run) for run in items(m, "runs")):
        words = "so smaller gains were ignored. Run it again on an idle machine"
        found.append(f"Other programs used up to {percent(others)} of the CPUs, {words}.")
    stopped = quota_share(Facts(m, base))
    named = {section(m, name).get("id") for name in ("verdict", "next", "suspicion")}
    if stopped and "cpu-quota" not in named:
        cpus = cpus_text(number(section(m, "machine"), "quota"))
        found.append(f"The quota of {cpus} stopped the script for {percent(stopped)} of the time.")
    return found


def loss_words(m: Measurement, run: Run) -> str:
    """The loss of a what-if beside that of the script, where both are known and differ by more than a tenth."""
    base = next((r for r in items(m, "runs") if r.get("name") == AS_IS), {})
    both = [losses(r) for r in (base, run)]
    steps = min(len(loss) for loss in both)
    if steps < 5:
        return ""
    before, after = (sum(loss[steps - 5 : steps]) / 5 for loss in both)
    if abs(after - before) <= 0.1 * max(abs(before), 1e-9):
        return ""
    return f"With {label(str(run.get('name')))}, the loss after {steps} steps is {after:.3g} ({before:.3g} as it is)."


def text(m: Measurement, color: bool = False, width: int = 80) -> str:
    """The whole report."""
    style, found = Style(color), m.get("verdict")
    lines = [style(DIM, _wrapped(f"stoker doctor: {command(m)}  ({machine_words(m)})", width)), ""]
    lines.append(style(BOLD, _wrapped(sentence(m), width)))
    if isinstance(found, dict):
        lines += _verdict(m, found, style, width)
    if isinstance(then := m.get("next"), dict):
        lines += ["", _wrapped(str(then.get("title")), width)]
    if isinstance(guess := m.get("suspicion"), dict):
        lines += ["", _wrapped(str(guess.get("title")), width)]
        lines += [_wrapped(f"- {line}", width, "  ") for line in guess.get("evidence") or []]
        lines += [_wrapped(line, width) for line in advice(m)]
    for alarm in items(m, "alarms"):
        lines += ["", *_alarm(alarm, style, width)]
    lines += ["", table(m, color, width)]
    if notes := _notes(m, width):
        lines += ["", *notes]
    return "\n".join(lines) + "\n"


def patch(m: Measurement) -> str:
    """The verdict's change as a file that `git apply` and `patch -p1` take.

    Raises LookupError with the reason if there is nothing to apply.
    """
    found = m.get("verdict")
    if not isinstance(found, dict):
        raise LookupError(f"no change was proved, so there is nothing to apply. {sentence(m)}")
    if not found.get("diff"):
        raise LookupError(f"this change is not a patch; by hand: {found.get('change')}")
    diff = str(found["diff"])
    return f"{sentence(m)}\n\n{diff}" + ("" if diff.endswith("\n") else "\n")
