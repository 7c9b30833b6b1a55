# SPDX-License-Identifier: Apache-2.0
"""The doctor's document as a Chrome trace and as TensorBoard scalars, and two documents compared."""

import json
import re
import struct

import doctor_cases as cases
import pytest
from stoker.doctor import compare, tensorboard, trace, verdict

EVERY = {**cases.CASES, **cases.HEALTHY}


def saved(m, path):
    path.write_text(json.dumps(verdict.judge(m)))
    return path


# ---------------------------------------------------------------- Chrome trace


@pytest.mark.parametrize("name", EVERY)
def test_a_trace_is_strict_json(name, tmp_path):
    trace.write(verdict.judge(EVERY[name]), tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    for event in document["traceEvents"]:
        assert {"ph", "pid", "tid", "name"} <= set(event)
        assert event["ph"] == "M" or event["ts"] >= 0
        assert event["ph"] != "X" or event["dur"] >= 0


def test_the_parts_of_a_step_follow_one_another(tmp_path):
    m = cases.measurement(cases.slow(steps=5), cases.STOKER)
    events = trace.events(m)
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"as it is", "Stoker's DataLoader"}
    steps = [e for e in events if e["ph"] == "X" and e["pid"] == 1 and e["name"].startswith("step ")]
    assert len(steps) == 5
    for number, step in enumerate(steps):
        parts = [e for e in events if e["ph"] == "X" and e["pid"] == 1 and e["args"].get("step") == number]
        assert [e["name"] for e in parts] == ["waiting for data", "compute", "Python and the rest"]
        at = step["ts"]
        for part in parts:
            assert part["ts"] == pytest.approx(at)
            at += part["dur"]
        assert at == pytest.approx(step["ts"] + step["dur"])


def test_memory_and_cpu_are_counters():
    cpu = {**cases.IDLE, "timeline": [[0.0, 1.9], [0.5, 1.8]]}
    counters = [e for e in trace.events(cases.measurement(cases.slow(cpu=cpu))) if e["ph"] == "C"]
    assert {e["name"] for e in counters} == {"memory, MB", "CPUs in use"}
    assert [e["args"] for e in counters if e["name"] == "CPUs in use"][0] == {"cpus": 1.9}


# ---------------------------------------------------------------- TensorBoard


def test_tensorflow_reads_the_scalars(tmp_path):
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    m = verdict.judge(cases.measurement(cases.slow(steps=5), *cases.CEILINGS, cases.run("workers=4", 700)))
    tensorboard.write(m, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"as-is", "model", "loader", "workers=4"}
    (file,) = (tmp_path / "as-is").iterdir()
    events = [
        tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(file))
    ]  # TensorFlow checks the checksums
    assert events[0].file_version == "brain.Event:2"
    seen = [(v.tag, e.step, v.simple_value) for e in events[1:] for v in e.summary.value]
    assert [round(value, 3) for tag, _, value in seen if tag == "step/wait_ms"] == [35.0] * 5
    assert [value for tag, _, value in seen if tag == "run/samples_per_s"] == [600.0]
    assert {tag for tag, _, _ in seen} >= {"loss", "step/all_ms", "machine/memory_mb", "run/wait_share"}
    assert events[1].wall_time == pytest.approx(1794859200.0)


def test_a_loss_that_is_too_large_for_a_float(tmp_path):
    tensorboard.write(cases.measurement(cases.busy(loss=[1.0, 1e300])), tmp_path)
    (file,) = (tmp_path / "as-is").iterdir()
    assert b"loss\x15" + struct.pack("<f", float("inf")) in file.read_bytes()


def test_names_of_runs_stay_inside_the_folder(tmp_path):
    m = cases.measurement(cases.run("without=../../up", 600), cases.run("..", 600), cases.run("a/b", 600))
    tensorboard.write(m, tmp_path / "logs")
    assert [p.name for p in tmp_path.iterdir()] == ["logs"]


# ---------------------------------------------------------------- compare


def test_a_change_that_helped(tmp_path, capsys):
    before = saved(cases.CASES["decode"], tmp_path / "before.json")
    after = saved(cases.measurement(cases.busy(), cases.MODEL), tmp_path / "after.json")
    assert compare.main(before, after) == 0
    text = capsys.readouterr().out
    assert text.startswith("Training is 1.67x as fast as before.\n")
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.split("\n\n")[1].splitlines()]
    assert rows[0] == ["before", "after", "change"]
    assert ["samples/s", "600", "1,000", "1.67x"] in rows
    assert ["share of waiting", "66 %", "1.2 %", "-64 points"] in rows
    assert ["Stoker's DataLoader, samples/s", "1,500", "-"] in rows
    assert "Before: Decoding the images is the limit" in text and "After: Nothing to gain here" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_slower_noise_and_alarms(tmp_path, capsys):
    fast = saved(cases.measurement(cases.busy()), tmp_path / "fast.json")
    slow = saved(cases.measurement(cases.slow()), tmp_path / "slow.json")
    nan = saved({**cases.measurement(cases.busy()), **cases.ALARMS["loss-nan"]}, tmp_path / "nan.json")
    failed = saved(cases.CASES["shared-memory"], tmp_path / "failed.json")
    assert compare.main(fast, slow) == 1
    assert compare.main(fast, fast) == 0
    assert "is noise" in capsys.readouterr().out
    assert compare.main(fast, nan) == 1
    assert "New alarm: The loss is NaN" in capsys.readouterr().out
    assert compare.main(nan, fast) == 0
    assert "No longer an alarm" in capsys.readouterr().out
    assert compare.main(fast, failed) == 1
    assert compare.main(failed, fast) == 0


def test_another_machine_is_named(tmp_path, capsys):
    one = saved(cases.measurement(cases.busy()), tmp_path / "one.json")
    other = saved(cases.measurement(cases.busy(), machine=cases.GPU), tmp_path / "other.json")
    compare.main(one, other)
    assert "The machines differ: 2 CPUs, no GPU before, 16 CPUs, NVIDIA H200 after." in capsys.readouterr().out


def test_what_is_no_document(tmp_path, capsys):
    good = saved(cases.measurement(cases.busy()), tmp_path / "good.json")
    (tmp_path / "text.json").write_text("no")
    (tmp_path / "other.json").write_text('{"schema": "x/1"}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "data.json").write_text(f'{{"schema": "{compare.SCHEMA}", "form": "data"}}')
    assert compare.main(good, tmp_path / "gone.json") == 3
    for name in ("text.json", "other.json", "list.json", "data.json"):
        assert compare.main(good, tmp_path / name) == 2
        assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", EVERY)
def test_everything_can_be_compared(name, tmp_path):
    m = verdict.judge(EVERY[name])
    for other in (m, {"schema": compare.SCHEMA}):
        assert compare.text(m, other) and compare.text(other, m)
