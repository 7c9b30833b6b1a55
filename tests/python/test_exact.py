# SPDX-License-Identifier: Apache-2.0
"""Numbers that change their type stay the same numbers, or are an error."""

import json

import numpy as np
import pytest
import stoker

K = {"batch_size": 3, "output": "numpy"}


class Samples:
    """Six samples: three of the first kind, then three of the second."""

    def __init__(self, first, then):
        self.values = [first] * 3 + [then] * 3

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"x": self.values[i]}


@pytest.mark.parametrize(
    "first, then, words",
    [
        (np.int32(1), np.int64(2**40), "x has the value 1099511627776, which int32 cannot hold"),
        (np.int64(1), np.uint64(2**63 + 5), "which int64 cannot hold"),
        (np.float32(1), 1e300, "x has the value 1e\\+300, which float32 cannot hold"),
        (np.float16(1), np.int64(100000), "x has the value 100000, which float16 cannot hold"),
        (np.float32(1), np.int64(2**24 + 1), "x has the value 16777217, which float32 cannot hold"),
        (1.0, np.int64(2**63 - 1), "x has the value 9223372036854775807, which float64 cannot hold"),
        (1.0, np.uint64(2**64 - 1), "x has the value 18446744073709551615, which float64 cannot hold"),
        (1, 1.5, "x has the dtype float64, but the first sample had int64"),
        (1.0, None, "x has the dtype object, but the first sample had float64"),
        (1.0, "7", "x has the dtype <U1, but the first sample had float64"),
        (np.zeros(2), np.ma.masked_array([1.0, 2.0], [0, 1]), "masked values"),
    ],
)
def test_samples_of_another_type(first, then, words):
    it = iter(stoker.Loader(Samples(first, then), **K))
    assert len(next(it)["x"]) == 3
    with pytest.raises(stoker.DataError, match=words):
        next(it)


@pytest.mark.parametrize(
    "first, then",
    [
        (np.float32(1), 2.5),
        (1.0, 2),
        (np.int32(1), 2),
        (1, True),
        (np.inf, -np.inf),
        (np.float32(1), -(2**63)),
        (1.0, np.uint64(2**63)),
    ],
)
def test_samples_that_fit(first, then):
    batches = list(stoker.Loader(Samples(first, then), **K))
    assert batches[1]["x"].tolist() == [then] * 3


def test_bfloat16_beside_other_types():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    half, single = torch.ones(2).bfloat16(), torch.ones(2)
    for first, then in ((single, half), (half, single), (torch.ones(2, dtype=torch.uint16), half)):
        it = iter(stoker.Loader(Samples(first, then), **K))
        next(it)
        with pytest.raises(stoker.DataError, match="the first sample had"):
            next(it)
    values = torch.arange(6.0)
    loader = stoker.Loader({"v": values.bfloat16()}, fields={"a": "v:float"}, **K)
    assert np.concatenate([b.a for b in loader]).tolist() == values.tolist()


def test_integers_beyond_64_bits_are_objects():
    assert [b["x"] for b in stoker.Loader(Samples(2**70, 3), **K)] == [[2**70] * 3, [3] * 3]


def test_functions():
    pixels = np.zeros((6, 4, 4, 3), np.uint8)
    pixels[3:] = 255

    def grow(x):
        return x.astype(np.float64) * (1e300 if x.max() else 1) if x.max() else x

    it = iter(stoker.Loader(pixels, [grow], **K))
    next(it)
    with pytest.raises(stoker.DataError, match="which float32 cannot hold"):
        next(it)


@pytest.mark.parametrize(
    "values, kind, words",
    [
        (np.arange(6) + 0.5, "int", "v has the value 0.5, which int64 cannot hold"),
        (np.full(6, np.nan), "int", "v has the value nan"),
        (np.full(6, 2**63 + 5, np.uint64), "int", "which int64 cannot hold"),
        (np.full(6, 300), "uint8", "v has the value 300, which uint8 cannot hold"),
        (np.full(6, 1e300), "float", "which float32 cannot hold"),
        (np.full(6, 2**24 + 1), "float", "v has the value 16777217, which float32 cannot hold"),
        (np.full(6, float(2**63)), "int", "which int64 cannot hold"),
    ],
)
def test_casts(values, kind, words):
    with pytest.raises(stoker.DataError, match=words):
        next(iter(stoker.Loader({"v": values}, fields={"a": f"v:{kind}"}, **K)))


def test_casts_that_fit():
    batch = next(iter(stoker.Loader({"v": np.arange(6.0)}, fields={"a": "v:int", "b": "v:uint8", "c": "v:bool"}, **K)))
    assert batch.a.tolist() == batch.b.tolist() == [0, 1, 2] and batch.c.tolist() == [False, True, True]


def test_jax_without_64_bits():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    if jax.config.jax_enable_x64:
        pytest.skip("JAX has 64 bits here")
    batch = next(iter(stoker.Loader({"v": np.arange(6)}, batch_size=3, output="jax")))
    assert batch.v.dtype == "int32" and batch.v.tolist() == [0, 1, 2]
    with pytest.raises(stoker.DataError, match="v has the value 1099511627781, which int32 cannot hold"):
        next(iter(stoker.Loader({"v": np.full(6, 2**40 + 5)}, batch_size=3, output="jax")))


@pytest.mark.parametrize("fields", ["ids:int64(*) pad=-1", {"ids": "int64(*) pad=-1"}])
def test_padding_of_many(tmp_path, fields):
    """get() of more rows than a batch has: joined with the padding that was asked for."""
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps({"ids": list(range(i % 5 + 1)), "n": i}) + "\n" for i in range(10)))
    want = [(list(range(i % 5 + 1)) + [-1] * 5)[:5] for i in range(10)]
    for size in (1, 2, 10):
        ids = stoker.Loader(path, fields=fields, batch_size=size, output="numpy").get(range(10)).ids
        assert ids.values.tolist() == want and ids.lengths.tolist() == [i % 5 + 1 for i in range(10)]
    own = stoker.Source(path, fields=fields)
    assert stoker.Loader(own, batch_size=2, output="numpy").get(range(10)).ids.values.tolist() == want


@pytest.mark.parametrize("kind, pad", [("float32", "-inf"), ("float32", "nan"), ("float64", "1E3"), ("int64", "1E3")])
def test_padding_of_every_spelling(tmp_path, kind, pad):
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps({"v": [7] * (i + 1)}) + "\n" for i in range(3)))
    loader = stoker.Loader(path, fields=f"v:{kind}(*) pad={pad}", batch_size=2, output="numpy")
    want = np.array([[7, float(pad), float(pad)], [7, 7, float(pad)], [7, 7, 7]])
    np.testing.assert_array_equal(next(iter(loader)).v.values, want[:2, :2])
    np.testing.assert_array_equal(loader.get(range(3)).v.values, want)


def test_masks_are_no_numbers():
    x = np.zeros((6, 2))
    for mask in ([True, False], np.array([True, False])):
        with pytest.raises(stoker.UsageError, match="the sampler: (np.)?True"):
            list(stoker.Loader(x, sampler=mask, **K))
    with pytest.raises(stoker.UsageError, match="weights"):
        stoker.Loader(x, weights=np.ma.masked_array(np.ones(6), [1, 0, 0, 0, 0, 0]), **K)
    with pytest.raises(stoker.UsageError, match="weights"):
        stoker.Loader(x, weights=[1j] * 6, **K)
