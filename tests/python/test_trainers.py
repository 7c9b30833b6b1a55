# SPDX-License-Identifier: Apache-2.0
"""DataLoader under the trainers that people use, on two ranks: the samples, their order and the loss are torch's."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

SCRIPT = Path(__file__).with_name("trainers.py")


def run(trainer, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(SCRIPT), trainer, str(tmp_path)], capture_output=True, text=True, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {(line["kind"], line["rank"]): line for line in lines}


@pytest.mark.parametrize("trainer", ["lightning", "accelerate", "transformers"])
def test_two_ranks(trainer, tmp_path):
    if not importlib.util.find_spec(trainer):
        pytest.skip(f"{trainer} is not installed")
    found = run(trainer, tmp_path)
    kinds = {kind.rpartition(" ")[0] for kind, _ in found if not kind.startswith("padded")}
    assert kinds
    for kind in kinds:
        for rank in range(2):
            theirs, ours = found[f"{kind} torch", rank], found[f"{kind} stoker", rank]
            assert ours["seen"] == theirs["seen"], (kind, rank)
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5), (kind, rank)
            assert ours["type"] == "stoker.data_loader"
        both = [[i for step in found[f"{kind} stoker", rank]["seen"] for i in step] for rank in range(2)]
        if kind.startswith("alone"):  # without a sampler, each rank has all samples
            assert sorted(both[0]) == sorted(both[1]) == sorted([*range(50), *range(50)])
        else:
            assert not set(both[0][:20]) & set(both[1][:20])  # each rank has its own samples
    for (kind, _), line in found.items():
        if kind.startswith("padded"):  # both ranks gather all samples once, in batches of one size
            assert [i for step in line["seen"] for i in step] == list(range(50)) and line["sizes"] == [32, 32]
