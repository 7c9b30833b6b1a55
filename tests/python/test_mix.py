# SPDX-License-Identifier: Apache-2.0
"""Mixed sources: shares, passes, resuming, ranks."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
import stoker


@pytest.fixture
def two(photos):
    src = stoker.Source(photos)
    return src.select(classes=["cat"]), src.select(classes=["dog"])


def indices(loader):
    return [int(i) for batch in loader for i in batch.index]


def opened(source, **options):
    defaults = {"batch_size": 4, "shuffle": True, "output": "numpy", "fields": ("index", "label"), "seed": 5}
    return stoker.Loader(source, "CenterCrop(8)", **{**defaults, **options})


def test_shares_and_passes(two):
    loader = opened(stoker.mix({two[0]: 3, two[1]: 1}), steps_per_epoch=64)
    seen, times = indices(loader), Counter()
    assert len(seen) == 256
    had = [0, 0]
    for i in seen:
        source = int(i >= 6)
        assert times[i] == had[source] // 6  # none again before all came
        times[i] += 1
        had[source] += 1
    seen += [i for _ in range(3) for i in indices(loader)]
    assert sum(i < 6 for i in seen) == 768  # a block has 1024 places


def test_an_epoch_is_all_samples_and_the_next_goes_on(two):
    loader = opened(stoker.mix([(two[0], 1), (two[1], 1)]))
    assert len(loader) == 3
    first, second = indices(loader), indices(loader)
    assert len(first) == len(second) == 12
    assert first != second
    both = Counter(i for i in first + second)
    assert max(both.values()) - min(both.values()) <= 1 or max(both.values()) <= 3


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_resumes_exactly(two, shuffle, ranks, threads):
    mixed = stoker.mix({two[0]: 0.6, two[1]: 0.4})
    whole = opened(mixed, shuffle=shuffle, steps_per_epoch=12)
    state, seen = None, []
    for n, batch in enumerate(whole, 1):
        if n > 6:
            seen += batch.index.tolist()
        elif n == 6:
            state = whole.state_dict()
    assert len(str(state)) < 300
    rest: dict[int, list[int]] = {}
    for rank in range(ranks):
        # 24 positions are left: the batch size that divides them among the ranks
        size = 4 // ranks if 4 % ranks == 0 else 4
        loader = opened(
            mixed,
            shuffle=shuffle,
            steps_per_epoch=48 // size // ranks,
            batch_size=size,
            rank=rank,
            world_size=ranks,
            threads=threads,
            fields=("index", "position"),
        )
        loader.load_state_dict(state)
        for batch in loader:
            for i, p in zip(batch.index.tolist(), batch.position.tolist(), strict=True):
                rest[p] = i
    assert [rest[p] for p in sorted(rest)] == seen


def test_a_list_with_weights_is_the_same(two, photos):
    assert indices(opened(list(two), mix=(0.7, 0.3))) == indices(opened(stoker.mix({two[0]: 0.7, two[1]: 0.3})))
    assert len(indices(opened([photos, photos], mix=(0.5, 0.5)))) == 24


def test_draws_differ_when_a_sample_comes_again(two):
    loader = stoker.Loader(
        stoker.mix({two[0]: 1, two[1]: 0}),
        "RandomCrop(8)",
        batch_size=24,
        output="numpy",
        steps_per_epoch=1,
        fields=("image", "index", "position"),
    )
    (batch,) = loader
    rows = [batch.image[k] for k in range(24) if batch.index[k] == 0]
    assert len(rows) == 4
    assert any((rows[0] != r).any() for r in rows[1:])
    again = loader.get(positions=batch.position, epoch=0)
    np.testing.assert_array_equal(again.image, batch.image)


def test_explain_and_print(two):
    loader = opened(stoker.mix({two[0]: 0.75, two[1]: 0.25}))
    next(iter(loader))
    text = loader.explain()
    assert "source 0: 75 % of the positions; at sample" in text
    assert "sources mixed" in repr(loader)


def test_pickles(two):
    loader = opened(stoker.mix({two[0]: 0.75, two[1]: 0.25}))
    assert indices(pickle.loads(pickle.dumps(loader))) == indices(loader)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mix": (1, 2, 3)}, "3 weights for 2 sources"),
        ({"mix": (1, "x")}, "no number"),
        ({"mix": (1, -1)}, "0 or more"),
        ({"mix": (0, 0)}, "above 0"),
        ({"mix": (1, 1), "weights": np.ones(12)}, "exclude"),
        ({"mix": (1, 1), "sampler": [1, 2], "shuffle": False}, "excludes"),
        ({"mix": 3}, "several sources"),
    ],
)
def test_refused(two, arguments, words):
    with pytest.raises(stoker.UsageError, match=words):
        opened(list(two), **arguments)


def test_a_state_of_other_weights_is_refused(two):
    state = opened(list(two), mix=(0.7, 0.3)).state_dict()
    with pytest.raises(stoker.Error, match="other weights"):
        opened(list(two), mix=(0.6, 0.4)).load_state_dict(state)
