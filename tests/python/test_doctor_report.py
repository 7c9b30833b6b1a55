# SPDX-License-Identifier: Apache-2.0
"""The doctor's report in a terminal, and its patches."""

import re
import subprocess

import doctor_cases as cases
import pytest
from stoker.doctor import edits, report, report_html, verdict

EVERY = {**cases.CASES, **cases.HEALTHY}


@pytest.mark.parametrize("name", EVERY)
def test_it_fits_into_80_columns_and_has_no_colours(name):
    m = verdict.judge(EVERY[name])
    text = report.text(m)
    assert "\033" not in text and "\u2588" not in text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    if m["verdict"]:
        assert text.split("\n\n")[1].replace("\n", " ").startswith(m["verdict"]["title"])
    assert text.count("as it is") >= 1


def test_colours_and_bars_change_nothing_else():
    m = verdict.judge(cases.CASES["decode"])
    bare = re.sub("\033\\[\\d+m|[\u2588\u2591]", "", report.text(m, color=True, width=120))
    assert [line.rstrip() for line in bare.splitlines()] == report.text(m, width=120).splitlines()


def test_the_table_is_aligned():
    m = cases.measurement(cases.slow(), *cases.CEILINGS, cases.STOKER, cases.run("workers=4", 580))
    lines = report.table(m).splitlines()
    assert [re.split(r"\s{2,}", line.strip()) for line in lines] == [
        ["samples/s", "gain", "waiting"],
        ["as it is", "600", "66 %"],
        ["the model alone, on one batch", "1,900"],
        ["the loader alone", "640"],
        ["Stoker's DataLoader", "1,500", "2.5x", "4.7 %"],
        ["4 workers", "580", "0.97x", "0.0 %"],
    ]
    ends = {line.index(rate) + len(rate) for line, rate in zip(lines[1:4], ("600", "1,900", "640"), strict=True)}
    assert len(ends) == 1


def test_a_run_that_failed_or_differs_says_so():
    failed = {**cases.run("draft", 1), "status": "failed", "reason": "UsageError: no " + "such thing " * 20}
    other = {**cases.STOKER, "same_result": False}
    nan = cases.run("amp-fp16", 900, loss=[1.0, float("nan")])
    text = report.text(verdict.judge(cases.measurement(cases.slow(), failed, other, nan, cases.run("batch*2", 800))))
    for words in ("failed: UsageError", "its results differ", "the loss is NaN", "changes the result of training"):
        assert words in text


def test_what_other_batch_sizes_and_models_cost():
    growing = {"memory": {"rss": [[0.0, 6e8], [0.5, 9e8], [1.0, 8e8]]}}
    deep = cases.run("depthwise", 1500, parameters=[11_689_512, 950_000])
    text = report.text(cases.measurement(cases.busy(), cases.run("batch*2", 1100, **growing), deep))
    assert "peak memory 900 MB (600 MB as it is)" in text
    assert "950,000 parameters (11,689,512 as it is)" in text
    base = cases.busy(gpu={"memory_peak": 2e9})
    m = cases.measurement(base, cases.run("batch/2", 900, gpu={"memory_peak": 1.2e9}))
    assert "peak GPU memory 1.2 GB (2 GB as it is)" in report.table(m)
    assert "peak GPU memory 1.2 GB" in report_html.page(m)
    assert report.costs(m, base) == ""


def test_a_model_that_is_the_limit_may_be_distilled():
    for m, said in (
        (cases.measurement(cases.busy(), cases.OK_MODEL), True),
        (cases.CASES["model"], True),
        (cases.measurement(cases.slow(), *cases.CEILINGS), False),
        (cases.CASES["gil"], True),  # the next limit
    ):
        found = verdict.judge(m)
        assert ("distillation" in report.text(found)) == ("distillation" in report_html.page(found)) == said


def test_losses_are_laid_side_by_side():
    far = cases.run("amp-fp16", 900, loss=[9.0] * 60)
    assert "the loss after 60 steps is 9 (1.73 as it is)" in report.text(cases.measurement(cases.slow(), far))


def test_a_suspicion_is_marked_as_one():
    m = verdict.judge(cases.HEALTHY["waiting, and nothing helps"])
    text = report.text(m)
    assert "Suspected, not proved: Decoding the images is the limit." in text
    assert "- decoding takes 2.4 ms" in text
    assert "To prove it: stoker doctor --try cache,draft train.py --lr 0.1" in text
    assert "To prove it: stoker doctor train.py" in report.text({**m, "form": "here"})
    assert report.exit_code(m) == 0


def test_a_quota_is_mentioned_beside_another_verdict():
    m = cases.CASES["transform"]
    base = {**m["runs"][0], "cpu": {**cases.IDLE, "throttled_s": 1.0}}
    m = verdict.judge({**m, "runs": [base, *m["runs"][1:]], "machine": {**m["machine"], "quota": 1.0}})
    assert m["verdict"]["id"] == "transform"
    assert "The quota of 1 CPU stopped the script for 31 % of the time." in report.text(m)
    assert "quota" not in report.text(verdict.judge(cases.CASES["decode"]))


def test_a_reason_that_ends_with_a_full_stop():
    failed = cases.measurement({**cases.busy(), "status": "failed", "reason": "ImportError: no x. Install it."})
    assert report.sentence(verdict.judge(failed)) == "The script failed: ImportError: no x. Install it."


def test_nothing_is_said_of_a_machine_that_was_not_seen():
    assert report.text(verdict.judge({"runs": [], "command": ["train.py"]})).startswith(
        "stoker doctor: train.py  (0 s)"
    )


def test_exit_codes():
    assert report.exit_code(verdict.judge(cases.CASES["decode"])) == 1
    assert report.exit_code(verdict.judge(cases.HEALTHY["model is the limit"])) == 0
    assert report.exit_code(verdict.judge({**cases.measurement(cases.busy()), **cases.ALARMS["loss-nan"]})) == 1
    failed = cases.measurement({**cases.busy(), "status": "failed", "reason": "ZeroDivisionError"})
    assert report.exit_code(verdict.judge(failed)) == 1
    assert "ZeroDivisionError" in report.text(verdict.judge(failed))


# ---------------------------------------------------------------- patches

SCRIPTS = {
    "plain": """import torch
from torch.utils.data import DataLoader, Dataset

loader = DataLoader(data, 32, shuffle=True, num_workers=0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.to(device), y.to(device)
""",
    "lines": """# \u00e4\u00f6\u00fc
from torch.utils.data import (
    DataLoader,
    Dataset,
)
import torch

def main():
    print("\u00e4", DataLoader(
        data,
        batch_size=32,
    ))
    model = Net()
    opt = torch.optim.Adam(model.parameters())
""",
    "attribute": """from __future__ import annotations
import torch
model = Net(); optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8, **{})""",
}
LINES = {"plain": 4, "lines": 9, "attribute": 4}
NAMES = ["workers=4", "pin", *edits.EDITS]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_patches_apply(script, name, tmp_path):
    folder = "my src" if script == "plain" else "src"
    file = tmp_path / folder / "train.py"
    file.parent.mkdir()
    file.write_bytes(SCRIPTS[script].encode())
    base = cases.slow(copies={"pinned": True, "non_blocking": False, "at": []})
    diff = edits.diff(cases.measurement(base, loader={"at": f"{folder}/train.py:{LINES[script]}"}), name, tmp_path)
    assert diff, "every script here can be changed so"
    assert file.read_bytes() == SCRIPTS[script].encode()  # never in place
    patch = report.patch({"verdict": {"title": "It is slow.", "diff": diff}})
    for tool in (["git", "apply"], ["patch", "-p1", "-s"]):
        file.write_bytes(SCRIPTS[script].encode())
        try:
            done = subprocess.run(tool, input=patch.encode(), cwd=tmp_path, capture_output=True, timeout=60)
        except FileNotFoundError:
            pytest.skip(f"{tool[0]} is not installed")
        assert done.returncode == 0, done.stderr.decode() + patch
        compile(file.read_text(), "train.py", "exec")
        assert added(name) in re.sub(r"\\s", "", file.read_text())


def added(name):
    """A piece of text that the change adds."""
    if name.startswith("workers="):
        return "num_workers=4"
    return {
        "stoker": "stoker",
        "cache": 'cache="dct"',
        "device": 'device="cuda"',
        "persistent": "persistent_workers=True",
        "pin": "pin_memory=True",
        "compile": "torch.compile(model)",
        "cuda-graphs": 'torch.compile(model, backend="cudagraphs")',
        "tf32": "set_float32_matmul_precision",
        "cudnn-benchmark": "cudnn.benchmark",
        "fused": "fused=True",
    }[name]


COPIES = """loader = DataLoader(data, 8)
for x, y in loader:
    encoder.cuda()
    x, y = x.to(device), y.cuda()
    out = encoder(x).to("cpu")
    z = x.to("cpu"), y.to(
        device)
"""


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (["train.py:4:23", "train.py:4:33"], "x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)"),
        (["train.py:4:23"], "x, y = x.to(device, non_blocking=True), y.cuda()"),
        ([], ""),  # no copy blocks
        (["train.py:5:30"], None),  # the CPU
        (["train.py:7:15"], None),  # several lines
        (["train.py:4:22"], None),  # the file has changed
        (["train.py:4:23", "?"], None),  # a library copies, too
        (["train.py:4:23", "other.py:4:24"], None),
        (None, None),  # not known
    ],
)
def test_only_copies_that_were_seen_become_non_blocking(tmp_path, at, expected):
    """A module has no such argument, and a copy to the host would be read before it has arrived."""
    (tmp_path / "train.py").write_text(COPIES)
    m = cases.measurement(cases.slow(copies={"at": at}), loader={"at": "train.py:1"})
    diff = edits.diff(m, "pin", tmp_path)
    added = [line[1:].strip() for line in (diff or "").splitlines()[2:] if line[0] == "+"]
    pinned = "loader = DataLoader(data, 8, pin_memory=True)"
    assert added == ([] if expected is None else [pinned, expected] if expected else [pinned])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("stoker", "from torch.utils.data import DataLoader; import x", "from stoker import DataLoader; import x"),
        ("stoker", "from torch.utils.data import DataLoader  # why", "from stoker import DataLoader  # why"),
        ("stoker", "if a:\n\tfrom torch.utils.data import DataLoader, D", "\tfrom stoker import DataLoader"),
        ("stoker", "from torch.utils import data as d\nd.DataLoader(a)", "stoker.DataLoader(a)"),
        ("stoker", "from graphs import loader\nloader.DataLoader(a)", None),  # not torch's
        ("stoker", "a = '\x0c'\nfrom torch.utils.data import DataLoader", "from stoker import DataLoader"),
        ("stoker", 2 * "from torch.utils.data import DataLoader\n", None),
        ("workers=4", "DataLoader(a, 8, **more)", None),
        ("workers=4", "DataLoader(a, 8, None, None, None, 2)", None),
        ("workers=4", "DataLoader(*a)", None),
        ("compile", "model = A()\ndef f():\n    model = B()", None),
        ("compile", "if a:\n    model = A()\nelse:\n    model = B()", None),
        ("compile", "def f():\n    model = A()\n    model = B(model)\n", "    model = torch.compile(model)"),
        ("fused", "a, b = SGD(p), AdamW(q)", "a, b = SGD(p, fused=True), AdamW(q, fused=True)"),
        ("fused", "a = SGD(p, foreach=True)", None),
    ],
)
def test_what_is_not_safe_is_no_patch(tmp_path, name, before, after):
    (tmp_path / "train.py").write_bytes(before.encode())
    line = before.count("\n", 0, before.find("DataLoader(")) + 1
    diff = edits.diff(cases.measurement(cases.slow(), loader={"at": f"train.py:{line}"}), name, tmp_path)
    assert (diff and [line[1:] for line in diff.split("\n") if line[:1] == "+"][-1]) == after


def test_a_model_of_keras_is_not_compiled_by_torch(tmp_path):
    (tmp_path / "train.py").write_text("model = A()\n")
    m = cases.measurement(cases.slow(), loader={"at": "train.py:1"})
    assert "torch.compile" in edits.diff(m, "compile", tmp_path)
    assert edits.diff({**m, "framework": "tensorflow"}, "compile", tmp_path) is None


def test_without_workers_their_options_are_reset(tmp_path):
    """torch refuses them."""
    (tmp_path / "train.py").write_text("DataLoader(data, num_workers=2, persistent_workers=True, prefetch_factor=4)\n")
    diff = edits.diff(cases.measurement(cases.slow(), loader={"at": "train.py:1"}), "workers=0", tmp_path)
    assert "+DataLoader(data, num_workers=0, persistent_workers=False, prefetch_factor=None)" in diff


def test_two_loaders_on_one_line_are_no_patch(tmp_path):
    """It is not known which of them is slow."""
    (tmp_path / "train.py").write_text("fit(DataLoader(train, 8), DataLoader(val, 8))\n")
    assert edits.diff(cases.measurement(cases.slow(), loader={"at": "train.py:1"}), "workers=2", tmp_path) is None


def test_another_loader_of_the_file_is_left_alone(tmp_path):
    (tmp_path / "train.py").write_text("train = MyLoader(a)\nval = DataLoader(b)\n")
    assert edits.diff(cases.measurement(cases.slow(), loader={"at": "train.py:1"}), "workers=2", tmp_path) is None


def test_what_cannot_be_a_patch_is_none(tmp_path):
    (tmp_path / "train.py").write_text("for x in make_loader(): pass\n")
    m = cases.measurement(cases.slow(), loader={"at": "train.py:1"})
    assert edits.diff(m, "stoker", tmp_path) is None
    assert edits.diff(m, "without=blur", tmp_path) is None
    assert edits.diff(cases.measurement(cases.slow(), loader={"at": "../gone.py:1"}), "stoker", tmp_path) is None
    with pytest.raises(LookupError, match="by hand: make blur cheaper"):
        report.patch(verdict.judge(cases.CASES["transform"]))
    with pytest.raises(LookupError, match="Nothing to gain"):
        report.patch(verdict.judge(cases.HEALTHY["model is the limit"]))
