# SPDX-License-Identifier: Apache-2.0
"""The doctor's verdicts, on recorded measurements."""

import doctest
import importlib
import json
import re
from pathlib import Path

import doctor_cases as cases
import pytest
from stoker.doctor import report, verdict
from stoker.doctor.alarms import ALARMS
from stoker.doctor.causes import RULES
from stoker.doctor.facts import Facts

# The what-if that would have proved the cause came second when these were recorded, and time was up before it.
NOT_TRIED = {"host-sync": "no-sync", "sync-copy": "pin"}
RECORDED = json.loads((Path(__file__).parent / "doctor_recorded.json").read_text())


def test_every_verdict_and_alarm_has_a_case():
    assert {rule.id for rule in RULES} == set(cases.CASES)
    assert {alarm.id for alarm in ALARMS} == set(cases.ALARMS)
    numbers = [rule.number for rule in RULES] + [alarm.number for alarm in ALARMS]
    assert sorted(numbers) == list(range(2, 2 + len(numbers)))  # 1 is "healthy"


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_measurements(name):
    """Of the scripts in bench/doctor, on two CPUs without a GPU, or on a GPU; bench/doctor/record.py adds them."""
    expected, m = RECORDED[name]["expects"], RECORDED[name]["measurement"]
    if name in NOT_TRIED:
        before = {**m, "runs": [run for run in m["runs"] if run["kind"] != "what-if"]}
        assert verdict.wanted(before)[0] == NOT_TRIED[name]
        return
    result = verdict.judge(m)
    found, alarms = result["verdict"], [alarm["id"] for alarm in result["alarms"]]
    if expected in alarms:
        return
    assert (found["id"] if found else None, alarms) == (expected, [])


@pytest.mark.parametrize("name", cases.CASES)
def test_a_cause_is_found_and_proved(name):
    m = cases.CASES[name]
    found = verdict.judge(m)["verdict"]
    assert found and found["id"] == name
    assert found["evidence"] and found["change"] and found["title"].endswith(".")
    proof = next(run for run in m["runs"] if run["name"] == found["run"])
    assert proof["status"] == "ok"
    assert (found["gain"] or 2) >= 1.05


@pytest.mark.parametrize("name", cases.CASES)
def test_the_what_if_of_a_cause_is_asked_for(name):
    """Before any what-if has run, those that would prove the cause are among the first."""
    m = cases.CASES[name]
    proof = verdict.judge(m)["verdict"]["run"]
    before = {**m, "runs": [run for run in m["runs"] if run["kind"] != "what-if"]}
    if proof == "loader":  # the ceilings are the proof
        assert verdict.judge(before)["verdict"]["id"] == name
        return
    assert proof in verdict.wanted(before)[:4]
    assert verdict.judge(before)["verdict"] is None


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("pin", {"copy": 20.0, "copies": {"pinned": False, "dtype": "uint8"}, "gpu": {"busy": 0.65}}),
        ("compile", {"gpu": {"busy": 0.3, "kernels": 600}}),
        ("no-sync", {"gpu": {"busy": 0.3}, "syncs": [{"at": "train.py:51", "ms": 14.0, "calls": 98}]}),
        ("no-sync", {"gpu": {"busy": 0.15}, "syncs": [{"at": "train.py:16", "ms": 5.0, "calls": 98}]}),
        ("no-sync", {"gpu": {"busy": 0.7}, "syncs": [{"at": "train.py:16", "ms": 18.0, "calls": 98}]}),
        ("compile", {"gpu": {"busy": 0.15}, "syncs": [{"at": "train.py:51", "ms": 1.0, "calls": 1}]}),
        ("amp-bf16", {"gpu": {"busy": 0.97}, "syncs": [{"at": "train.py:51", "ms": 20.0, "calls": 1}]}),
        ("pin", {"copy": 6.0, "copies": {"pinned": True, "non_blocking": False}, "gpu": {"busy": 0.36}}),
        ("pin", {"copy": 6.0, "copies": {"pinned": False}, "gpu": {"busy": 0.9}}),
        ("amp-bf16", {"copy": 6.0, "copies": {"pinned": True, "non_blocking": False}, "gpu": {"busy": 1.0}}),
        ("compile", {"copy": 6.0, "copies": {"pinned": True, "non_blocking": True}, "gpu": {"busy": 0.36}}),
    ],
)
def test_what_keeps_a_gpu_from_working_is_tried_first(first, more):
    """The time is short: what was measured itself comes before what is left, the model and its launches."""
    m = cases.measurement(cases.busy(**more), cases.OK_MODEL, cases.FAST_LOADER, machine=cases.GPU)
    assert verdict.wanted(m)[0] == first


@pytest.mark.parametrize("name", cases.HEALTHY)
def test_a_healthy_script_gets_no_verdict(name):
    result = verdict.judge(cases.HEALTHY[name])
    assert (result["verdict"], result["next"], result["alarms"]) == (None, None, [])
    assert verdict.healthy_words(result).endswith(".")


def suspected(*runs, **more):
    """What is suspected when these runs prove nothing: its cause, what may help, and what may prove it."""
    result = verdict.judge(cases.measurement(*runs, **more))
    assert result["verdict"] is None
    found = result["suspicion"]
    if found is None:
        return None
    assert found["title"].startswith("Suspected, not proved: ") and found["evidence"]
    return found["id"], found["change"], found["tries"]


def test_what_is_neither_proved_nor_refuted_is_suspected():
    some = cases.run("stoker", 610), cases.run("workers=4", 590)
    assert suspected(cases.slow(), *cases.CEILINGS, *some) == (
        "decode",
        'pass cache="dct" to stoker.DataLoader',
        ["cache", "draft"],
    )
    every = *some, cases.run("cache", 600), cases.run("draft", 610)
    assert suspected(cases.slow(), *cases.CEILINGS, *every) is None
    assert verdict.judge(cases.CASES["decode"])["suspicion"] is None
    assert suspected(cases.busy(), cases.OK_MODEL, cases.FAST_LOADER) is None


def test_pauses_between_epochs_without_workers():
    """A generator that opens everything anew; no what-if can keep it open."""
    epochs = [{"start_s": 0.4 * i, "first_wait_s": 0.1, "steps": 20} for i in range(3)]
    alone = {"workers": 0, "kind": "iterable"}
    m = cases.measurement(cases.busy(epochs=epochs), cases.OK_MODEL, cases.FAST_LOADER, loader=alone)
    found = verdict.judge(m)["suspicion"]
    assert (found["id"], found["tries"]) == ("worker-start", ["next-epoch"])
    assert "over the end of an epoch" in found["change"]
    assert found["title"] == "Suspected, not proved: The first batch of every epoch takes 0.1 s."
    assert not any("workers" in line for line in found["evidence"])
    once = [*epochs[:2], {**epochs[2], "first_wait_s": 0.0}]
    usual = cases.slow(epochs=[{**one, "first_wait_s": 0.04} for one in epochs])  # as long as any other batch
    for run in (cases.busy(epochs=[*once, once[2]]), usual):
        m = cases.measurement(run, cases.MODEL, loader=alone)
        assert (verdict.judge(m)["suspicion"] or {}).get("id") != "worker-start"
    of_torch = cases.measurement(cases.busy(epochs=epochs), loader={"workers": 0})
    assert verdict.wanted(of_torch)[:2] == ["next-epoch", "stoker"]
    m["runs"] = [cases.busy(epochs=epochs), cases.run("next-epoch", 1100)]
    found = verdict.judge(m)["verdict"]
    assert found["id"] == "worker-start" and "with the next epoch made ready" in found["title"]


def test_a_loader_that_is_slower_than_the_model_is_named_as_the_limit():
    words = verdict.healthy_words(cases.HEALTHY["waiting, and nothing helps"])
    assert words.endswith(" The loader alone delivers 640 samples/s, and the model alone takes 1,900.")
    faster = cases.measurement(cases.slow(), cases.MODEL, cases.FAST_LOADER)
    assert verdict.healthy_words(faster).endswith("but no change was proved to help.")


def test_on_a_busy_machine_less_waiting_counts_too():
    """Other programs take the CPU time that a what-if saves."""
    stages = {"stages": cases.stages(collate_us_per_sample=3000), "loader": {"collate": {"name": "join"}}}
    for used, found in ((2.0, None), (0.7, "collate")):
        cpu = {**cases.IDLE, "all": used, "idle": 0.0}
        tried = cases.run("collate", 560, wait=12.0, cpu=cpu)
        result = suspected(cases.slow(cpu=cpu), *cases.CEILINGS, tried, cases.run("stoker", 600, cpu=cpu), **stages)
        assert (result[0] if result else None) == found


def test_a_quota_that_no_what_if_can_raise_is_suspected():
    """Every what-if ran and gained nothing; the quota was measured all the same."""
    m = cases.CASES["cpu-quota"]
    names = ["as-is", "model", "loader", *verdict.wanted({**m, "runs": m["runs"][:3]})]
    runs = {run["name"]: run for run in m["runs"]}
    same = [runs.get(name) if name in names[:3] else cases.run(name, 600) for name in names]
    result = verdict.judge({**m, "runs": same})
    assert result["verdict"] is None and result["suspicion"]["id"] == "cpu-quota"
    assert "raise the quota" in result["suspicion"]["change"] and result["suspicion"]["tries"] == []
    assert "stopped by the quota for 47 % of the time" in result["suspicion"]["evidence"]


def test_a_function_that_cannot_be_left_out_is_suspected():
    """The script fails without it, so that nothing is proved; that there is nothing to gain would be wrong."""
    m = cases.CASES["gil"]
    failed = {**m["runs"][-1], "status": "failed", "reason": "TypeError: 'NoneType' object is not subscriptable"}
    result = verdict.judge({**m, "runs": [*m["runs"][:-1], failed]})
    assert result["suspicion"]["id"] == "gil" and "log_images (train.py:44)" in result["suspicion"]["title"]
    assert "Nothing to gain" not in verdict.healthy_words(result)


def test_code_of_a_dataset_or_a_generator_is_suspected():
    own = {"stages": cases.stages(other_us=9000), "loader": {"dataset": "Pages", "dataset_at": "train.py:7"}}
    found = verdict.judge(cases.measurement(cases.slow(), *cases.CEILINGS, **own))["suspicion"]
    assert "Pages.__getitem__ (train.py:7) takes 94 %" in found["title"] and found["tries"] == ["fetch"]
    proved = cases.measurement(cases.slow(), *cases.CEILINGS, cases.run("fetch", 1500), **own)
    assert (verdict.judge(proved)["verdict"]["id"], verdict.judge(proved)["verdict"]["run"]) == ("transform", "fetch")
    loading = [{"name": "batches", "at": "train.py:12", "share": 0.6}]
    one = cases.slow(loading=loading)
    found = verdict.judge(cases.measurement(one, *cases.CEILINGS, loader={"kind": "keras"}, stages=None))["suspicion"]
    assert "batches (train.py:12) makes the batches, and takes 60 % of the time" in found["title"]


@pytest.mark.parametrize("name", cases.ALARMS)
def test_alarms_need_no_what_if(name):
    m = {**cases.measurement(cases.busy()), **cases.ALARMS[name]}
    (alarm,) = verdict.judge(m)["alarms"]
    assert alarm["id"] == name and alarm["change"]
    assert re.search(r"\d", alarm["evidence"][0])


def test_a_loss_that_is_nan_only_once():
    m = cases.measurement(cases.busy(loss=[1.0, None, 1.0, 1.0]), checks={"loss_nan_step": 1})
    (alarm,) = verdict.judge(m)["alarms"]
    assert (alarm["title"], alarm["evidence"]) == (
        "The loss is NaN or infinite in step 1",
        ["1 of 4 losses are NaN or infinite"],
    )


def test_memory_that_grows_at_an_uneven_pace():
    """Another program takes the CPUs for a while."""
    rss = [[i, 1e9 + 50e6 * min(i, 20) + 20e6 * max(0, i - 20)] for i in range(40)]
    m = cases.measurement(cases.busy(memory={"rss": rss}))
    assert [alarm["id"] for alarm in verdict.judge(m)["alarms"]] == ["memory-growth"]


def test_storage_is_not_blamed_for_reads_that_take_little():
    """Workers that wait for a CPU look like workers that wait for storage."""
    blur = [{"name": "blur", "at": "train.py:12", "us": 90_000}]
    m = cases.measurement(
        cases.slow(io=cases.DISK), *cases.CEILINGS, stages=cases.stages(cold_read_us=400, transforms=blur)
    )
    assert [rule.id for rule, _ in verdict.suspicions(m, m["runs"][0])] == ["transform"]
    assert verdict.wanted(m)[0] == "without=blur"


def test_the_model_is_the_limit_although_it_was_faster_alone():
    """Nothing waits for data and no worker takes CPU time, so that the difference is noise."""
    m = cases.measurement(
        cases.busy(), cases.run("model", 1400, kind="ceiling"), cases.FAST_LOADER, cases.run("amp-bf16", 3000)
    )
    m["loader"] = {**m["loader"], "workers": 0}
    assert verdict.judge(m)["verdict"]["id"] == "model"


def test_judging_twice_changes_nothing():
    once = verdict.judge(cases.CASES["decode"])
    assert verdict.judge(once) == once
    assert json.loads(json.dumps(once)) == once


def test_the_largest_gain_wins():
    m = cases.measurement(
        cases.slow(cpu=cases.IDLE), *cases.CEILINGS, cases.run("workers=2", 900), cases.STOKER, loader={"workers": 0}
    )
    found = verdict.judge(m)["verdict"]
    assert (found["id"], found["run"], found["gain"]) == ("decode", "stoker", 2.5)


def test_a_cause_whose_own_what_if_gains_nothing_is_none():
    """Images are large, but storing them smaller does not help: Stoker helps because it decodes faster."""
    m = cases.CASES["large-images"]
    runs = [{**run, "samples_per_s": 604} if run["name"] == "resize" else run for run in m["runs"]]
    found = verdict.judge({**m, "runs": runs})["verdict"]
    assert (found["id"], found["run"]) == ("decode", "stoker")


def test_a_loader_that_takes_cpu_time_from_the_model():
    """Nothing is waited for, but both are much faster alone: as measured on two crowded CPUs."""
    as_is = cases.run("as-is", 32, kind="baseline", wait=12.0, compute=1900.0)
    alone = cases.run("model", 148, kind="ceiling"), cases.run("loader", 91, kind="ceiling")
    m = cases.measurement(as_is, *alone)
    assert "stoker" in verdict.wanted(m)
    found = verdict.judge({**m, "runs": [*m["runs"], cases.run("stoker", 120)]})["verdict"]
    together = "32 samples/s together, 148 (model) and 91 (loader) alone"
    assert found["id"] == "decode" and together in found["evidence"][0]


def test_waiting_and_cpu_time_taken_from_the_model_are_both_named():
    """391 samples/s with 21 % waiting, but 761 without the loader's work: waiting alone does not explain that."""
    as_is = cases.run("as-is", 391, kind="baseline", wait=17.0, compute=63.0)
    alone = cases.run("model", 835, kind="ceiling"), cases.run("loader", 548, kind="ceiling")
    found = verdict.judge(cases.measurement(as_is, *alone, cases.run("stoker", 761)))["verdict"]
    assert found["evidence"][0].startswith("21 % of the time is waiting for data, and the loader takes CPU time from")


def test_cold_data_are_no_cause_if_reading_takes_little():
    m = cases.CASES["cold"]
    found = verdict.judge({**m, "stages": {**m["stages"], "decode_us": 40_000}})["verdict"]
    assert found is None or found["id"] != "cold"


def test_slow_samples_are_proved_only_without_them():
    """On a busy machine any sample may be slow once."""
    m = cases.CASES["slow-samples"]
    found = verdict.judge({**m, "runs": [run for run in m["runs"] if run["name"] != "skip-slowest"]})["verdict"]
    assert (found["id"], found["run"]) == ("decode", "stoker")


def test_the_next_limit_is_named():
    """With Stoker the script reaches what the model can do: then the model is the limit."""
    m = cases.measurement(cases.slow(), *cases.CEILINGS, {**cases.STOKER, "samples_per_s": 1850})
    assert verdict.judge(m)["next"]["id"] == "model"
    slower = cases.measurement(cases.slow(), *cases.CEILINGS, {**cases.STOKER, "samples_per_s": 1300})
    assert verdict.judge(slower)["next"] is None  # the model alone is faster


def test_what_has_run_is_not_wanted_again():
    m = cases.CASES["decode"]
    assert "stoker" not in verdict.wanted(m)
    assert len(set(verdict.wanted(m, all=True))) == len(verdict.wanted(m, all=True)) > 8
    assert verdict.wanted({"runs": []}) == []


def test_a_healthy_script_on_a_cpu_wants_nothing():
    assert verdict.wanted(cases.HEALTHY["model is the limit"]) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"loss": [1.0] * 5 + [None] * 45}, "the loss is NaN"),
        ({"loss": [1.0] * 5 + [float("nan")] * 45}, "the loss is NaN"),
        ({"loss": [2.3 * 1.2**i for i in range(50)]}, "the loss grows"),
        ({"same_result": False}, "its results differ"),
    ],
)
def test_what_proves_nothing(more, words):
    m = cases.measurement(cases.busy(), cases.OK_MODEL, cases.FAST_LOADER, cases.run("amp-fp16", 2000, **more))
    assert verdict.judge(m)["verdict"] is None and words in report.text(verdict.judge(m))
    fine = {**m, "runs": [*m["runs"][:3], cases.run("amp-fp16", 2000)]}
    assert verdict.judge(fine)["verdict"]["id"] == "model"
    nan = {**m, "runs": [{**m["runs"][0], "loss": [None]}, *m["runs"][1:]]}  # the script itself has it
    assert (verdict.judge(nan)["verdict"] is not None) == ("loss" in words)


def test_data_in_memory_prove_nothing_about_data_on_storage():
    """Files of HDF5 or LMDB are not known, so that a what-if finds them where the script has left them."""
    warm = cases.run("workers=2", 3000)
    runs = cases.slow(io=cases.DISK, cpu=cases.IDLE), *cases.CEILINGS
    one = {"loader": {"workers": 1, "bytes": None, "samples": None}, "stages": cases.stages(read_us=5)}
    found = verdict.judge(cases.measurement(*runs, warm, **one))
    assert found["verdict"] is None and found["suspicion"]
    assert "it found the data in memory" in report.text(found)
    cold = cases.measurement(*runs, {**warm, "io": cases.DISK}, **one)
    assert verdict.judge(cold)["verdict"]["run"] == "workers=2"
    timed = {**one, "stages": cases.stages(cold_read_us=30)}  # reading takes little, wherever the data are
    assert verdict.judge(cases.measurement(*runs, warm, **timed))["verdict"]["run"] == "workers=2"


def test_batches_that_were_not_compared_lower_the_confidence():
    for compared in ("TypeError: no", {"pixels": None, "labels": None, "samples": 0}):
        one = {**cases.STOKER, "same_result": None, "compared": compared}
        found = verdict.judge(cases.measurement(cases.slow(), *cases.CEILINGS, one))
        assert found["verdict"]["confidence"] == "low"
        assert "its batches were not compared" in report.text(found)


def test_few_steps_lower_the_confidence():
    few = cases.measurement(cases.slow(steps=6), *cases.CEILINGS, cases.STOKER)
    assert verdict.judge(few)["verdict"]["confidence"] == "low"
    assert verdict.judge(cases.CASES["decode"])["verdict"]["confidence"] == "high"


@pytest.mark.parametrize("name", ["decode", "cold", "gil", "shared-memory"])
def test_missing_values_are_no_error(name):
    """Every value of a measurement may be missing."""
    m = cases.CASES[name]

    def without(thing, path):
        key, *rest = path
        changed = dict(thing) if isinstance(thing, dict) else list(thing)
        changed[key] = without(thing[key], rest) if rest else None
        return changed

    def paths(thing):
        children = thing.items() if isinstance(thing, dict) else enumerate(thing[:3]) if isinstance(thing, list) else ()
        for key, value in children:
            yield [key]
            yield from ([key, *rest] for rest in paths(value))

    for path in paths(m):
        verdict.judge(without(m, path))
        verdict.wanted(without(m, path), all=True)


MODULES = "__main__ alarms causes edits facts html_parts remedies report tensorboard verdict".split()


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_modules(name):
    assert doctest.testmod(importlib.import_module(f"stoker.doctor.{name}")).failed == 0


def test_a_gain_within_the_noise_of_its_run_proves_nothing():
    noisy = cases.run("stoker", 700, wait=1.0, compute=15.0, noise=0.08)
    assert verdict.judge(cases.measurement(cases.slow(noise=0.005), *cases.CEILINGS, noisy))["verdict"] is None
    noisy["noise"] = 0.01
    assert verdict.judge(cases.measurement(cases.slow(noise=0.005), *cases.CEILINGS, noisy))["verdict"]


def test_what_limits_the_next_run_is_not_the_loader_that_was_replaced():
    waits = cases.run("stoker", 1000, wait=12.0, compute=15.0, cpu=cases.IDLE)
    m = cases.measurement(cases.slow(), *cases.CEILINGS, waits, loader={"persistent": False})
    facts = Facts(m, waits)
    assert (facts.workers, facts.starts_workers, facts.loader["kind"]) == (0, False, "stoker")
    assert verdict.judge(m)["next"] is None


def test_workers_of_all_ranks_share_the_cpus():
    ranks = [{"rank": i, "step_ms": 50.0, "wait_share": 0.1} for i in range(4)]
    cpu = {**cases.IDLE, "all": 8.0}
    base = cases.slow(wait=2.0, cpu=cpu, ranks=ranks)
    m = cases.measurement(base, cases.MODEL, machine={"cpus": 8}, loader={"workers": 6}, stages=None)
    facts = Facts(m, base)
    assert (facts.all_workers, facts.fewer_workers(), facts.more_workers()) == (24, 2, 12)
    assert "many-workers" in {rule.id for rule, _ in verdict.suspicions(m, base)}
    few = {**base, "io": {"read_bytes": 60 * 32 * 8192}}  # 2 KB for each sample of the four ranks
    assert not Facts(m, few).reads_disk and Facts(m, {**few, "ranks": None}).reads_disk


def test_small_reads_of_mapped_files_are_no_matter_of_bandwidth():
    mapped = {"read_bytes": 60 * 32 * 110_000, "read_calls": 40, "major_faults": 60 * 32 * 27, "blocked_s": 2.9}
    stages = {"read_us": 60, "decode_us": 0, "transforms": [], "cold_read_us": 9000}
    m = cases.measurement(cases.slow(io=mapped), *cases.CEILINGS, stages=stages)
    assert "storage-iops" in {rule.id for rule, _ in verdict.suspicions(m, m["runs"][0])}


def test_a_gain_that_is_too_large_for_its_cause_is_doubted():
    """The optimizer takes a third of the time, so that a faster one gives 1.5x at most."""
    base = cases.run(
        "as-is", 1000, kind="baseline", wait=0.4, compute=28.0, optimizer_ms={"mean": 10.6, "median": 10.6}
    )
    for rate, doubtful in ((1300, False), (4000, True)):
        m = cases.measurement(base, cases.MODEL, cases.FAST_LOADER, cases.run("fused", rate))
        assert verdict.judge(m)["verdict"]["id"] == "optimizer"
        assert verdict.is_doubtful(m) is doubtful
    m = cases.measurement(cases.slow(), *cases.CEILINGS, cases.STOKER)
    assert verdict.judge(m)["verdict"] and not verdict.is_doubtful(m)


def test_batches_may_be_made_by_a_function_that_no_part_of_the_loader_explains():
    sampler = [{"name": "__iter__", "at": "train.py:10", "share": 0.6}]
    stages = {"read_us": 0, "decode_us": 0, "transforms": [], "collate_us_per_sample": 9, "transfer_us_per_sample": 0}
    m = cases.measurement(cases.slow(loading=sampler), *cases.CEILINGS, stages={**stages, "cold_read_us": 0})
    assert verdict.judge(m)["suspicion"]["title"].startswith("Suspected, not proved: __iter__ (train.py:10)")


def test_a_quota_makes_no_samples_slow():
    each = {"median": 5.0, "p99": 90.0}
    for throttled, found in ((0.0, True), (3.0, False)):
        base = cases.slow(cpu={**cases.IDLE, "throttled_s": throttled})
        m = cases.measurement(base, *cases.CEILINGS, samples_ms=each, machine={"quota": 0.5})
        assert ("slow-samples" in {rule.id for rule, _ in verdict.suspicions(m, base)}) is found
