# SPDX-License-Identifier: Apache-2.0
"""The doctor's HTML report, in a real browser. STOKER_SCREENSHOTS=FOLDER keeps images of it."""

import html.parser
import json
import os
import re
from pathlib import Path

import doctor_cases as cases
import pytest
from browser import Browser
from stoker.doctor import html_parts, report_html, verdict

EVERY = {**cases.CASES, **cases.HEALTHY}
HOSTILE = "photos/\"'><img src=http://a.example/x onerror=alert(1)><script>alert(2)</script>\u202egpj.exe\udc80"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


def full(photos=None):
    """A measurement in which everything is there, and all names are hostile."""
    cpu = {**cases.IDLE, "timeline": [[i / 2, 1.7 + 0.1 * (i % 3)] for i in range(40)]}
    photo = next((str(p) for p in sorted(Path(photos).rglob("*")) if p.is_file()), None) if photos else None
    m = cases.measurement(
        cases.slow(cpu=cpu, loss=[2.0 - 0.01 * i for i in range(60)]),
        *cases.CEILINGS,
        cases.STOKER,
        cases.run("workers=4", 590, loss=[2.0, float("nan"), float("inf")]),
        {**cases.run("draft", 1), "status": "failed", "reason": HOSTILE},
        {**cases.run("half-channels", 2400), "name": HOSTILE},
        stages={"transforms": [{"name": HOSTILE, "at": "train.py:20", "us": 600}]},
        samples_ms={
            "median": 3.1,
            "p90": 4.4,
            "p99": 61.0,
            "max": 240.0,
            "histogram": [[2 * i, 900 // (1 + (i - 2) ** 2)] for i in range(14)],
        },
        slowest=[{"index": 3, "path": HOSTILE, "ms": 240.0}, {"index": 4, "path": photo, "ms": 80.0}],
        checks={"worker_seeds_equal": True},
        command=["train.py", HOSTILE],
        disabled=[HOSTILE],
    )
    return verdict.judge(m)


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))


@pytest.mark.parametrize("name", EVERY)
def test_every_case_makes_a_page(name, tmp_path):
    m = verdict.judge(EVERY[name])
    report_html.write(m, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert text.count("<h1>") == 1 and 'lang="en"' in text
    seen = Tags(text).seen
    assert [tag for tag, attributes in seen if tag == "svg" and not attributes.get("aria-label")] == []
    ids = [attributes["id"] for _, attributes in seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert text.count("<table") == text.count("<caption>")
    embedded = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.S)
    assert json.loads(embedded[1], parse_constant=pytest.fail) == m


def test_names_are_escaped():
    text = report_html.page(full())
    assert "<img src=http" not in text and "<script>alert" not in text and "\u202e" not in text
    assert {tag for tag, _ in Tags(text).seen if tag in ("img", "iframe", "object", "link")} == set()
    text.encode()


def test_missing_values_are_no_error():
    m = full()
    for key in m:
        report_html.page({**m, key: None})
    for i, run in enumerate(m["runs"]):
        for key in run:
            report_html.page({**m, "runs": [*m["runs"][:i], {**run, key: None}, *m["runs"][i + 1 :]]})
    report_html.page({})


def test_negative_losses_are_drawn():
    chart = html_parts.lines([("host", [(0, 1.0), (1, -3.0), (2, -1.0)])], str, "", "Loss")
    assert "M 0.0,0.0 500.0,1000.0 1000.0,500.0" in chart
    for value in ("-3.0", "0.0", "1.0"):
        assert f">{value}<" in chart


def test_a_slow_sample_that_is_a_text_file(tmp_path):
    (tmp_path / "list.txt").write_text("a.jpg 1\nb.jpg 2\n")
    assert html_parts.thumbnail(str(tmp_path / "list.txt"), 64) is None


# ---------------------------------------------------------------- in Chromium

VIEWS = {"desktop": (1200, False), "phone": (360, False), "dark": (1200, True), "dark-phone": (360, True)}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["full", "model is the limit", "shared-memory"])
def test_it_is_quiet_and_fits(browser, photos, name, view, tmp_path):
    m = full(photos) if name == "full" else verdict.judge(EVERY[name])
    report_html.write(m, tmp_path / "report.html")
    width, dark = VIEWS[view]
    browser.open(tmp_path / "report.html", width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("window.matchMedia('(prefers-color-scheme: dark)').matches") is dark
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert browser.run(broken) == 0
    assert browser.run("document.images.length") == (1 if name == "full" else 0)
    if folder := os.environ.get("STOKER_SCREENSHOTS"):
        browser.screenshot(Path(folder) / f"{name.replace(' ', '-')}-{view}.png")
    assert browser.complaints() == []


CONTRAST = """(() => {
  const probe = document.createElement("span");
  document.body.append(probe);
  const light = name => {
    probe.style.color = `var(${name})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const worst = [];
  for (const ink of ["--ink", "--soft", "--accent", "--gain", "--loss"])
    for (const ground of ["--page", "--card"]) {
      const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b);
      if ((high + 0.05) / (low + 0.05) < 4.5) worst.push(`${ink} on ${ground}`);
    }
  return worst;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_enough_contrast(browser, dark, tmp_path):
    report_html.write(full(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html", dark=dark)
    assert browser.run(CONTRAST) == []


def test_a_screen_reader_finds_its_way(browser, photos, tmp_path):
    report_html.write(full(photos), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
    ]
    headings = [name for role, name in named if role == "heading"]
    assert {"The change", "What was tried", "Where the time goes", "From as it is to the ceiling"} <= set(headings)
    assert {"Inside the loader", "Samples", "Loss, side by side", "Memory and CPU over time"} <= set(headings)
    assert [role for role, name in named if role in ("image", "img", "button", "region", "table") and not name] == []
    assert sum(role == "table" for role, _ in named) >= 3
    assert {role for role, _ in named} >= {"banner", "main", "contentinfo", "rowheader", "columnheader", "note"}


def test_the_keyboard_reaches_everything(browser, tmp_path):
    report_html.write(full(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    reached = []
    for _ in range(40):
        browser.press("Tab")
        where = browser.run("(one => one.id || one.className || one.tagName)(document.activeElement)")
        if where in ("BODY", "HTML"):
            break
        reached.append(where)
    assert reached[0] == "skip"
    assert {"copy", "save", "scroll", "SUMMARY"} <= set(reached)


def test_buttons(browser, tmp_path):
    m = full()
    report_html.write(m, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert browser.run("document.getElementById('diff').textContent") == m["verdict"]["diff"]
    assert browser.run("[...document.querySelectorAll('button')].some(b => b.hidden)") is False
    browser.run("document.getElementById('copy').click()")
    browser.run("new Promise(done => setTimeout(done, 50))")
    assert browser.run("document.getElementById('said').textContent").split(":")[0] in ("Copied", "Selected")
    browser.call("Browser.setDownloadBehavior", behavior="deny")
    browser.run("document.getElementById('save').click()")
    assert browser.run("document.getElementById('said').textContent") == "Saved"
    assert browser.complaints() == []
