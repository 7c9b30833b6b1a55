# SPDX-License-Identifier: Apache-2.0
"""DataLoader under the trainers that people use, on two ranks: the samples, their order and the loss are torch's."""

import importlib.util

import pytest
from conftest import run_on_two_ranks

pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("trainer", ["lightning", "accelerate", "transformers", "timm"])
def test_two_ranks(trainer, tmp_path):
    if not importlib.util.find_spec(trainer):
        pytest.skip(f"{trainer} is not installed")
    found = run_on_two_ranks(trainer, tmp_path)
    kinds = {kind.rpartition(" ")[0] for kind, _ in found if kind.endswith(("torch", "stoker"))}
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
        elif trainer != "timm":
            assert not set(both[0][:20]) & set(both[1][:20])  # each rank has its own samples
    if trainer == "lightning":
        for rank in range(2):
            whole, rest = found["whole", rank], found["resumed", rank]
            assert rest["seen"] == whole["seen"][3:] and rest["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    if trainer == "transformers":
        for rank in range(2):
            assert found["resumed own stoker", rank]["seen"] == found["own stoker", rank]["seen"][10:]
    if ("loader", 0) in found:  # Loader divides the samples by itself
        both = [found["loader", rank]["seen"] for rank in range(2)]
        for epoch in (slice(6), slice(6, 12)):
            assert len({i for seen in both for step in seen[epoch] for i in step}) == 48
    for (kind, _), line in found.items():
        if kind.startswith("padded"):  # both ranks gather all samples once, in batches of one size
            assert [i for step in line["seen"] for i in step] == list(range(50)) and line["sizes"] == [32, 32]
