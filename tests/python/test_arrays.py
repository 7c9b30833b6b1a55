# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors as a source: any memory layout gives the values that the array shows, or an error."""

import numpy as np
import pytest
import stoker


def rows(array, **k):
    return np.concatenate([b[0] for b in stoker.Loader(array, batch_size=3, output="numpy", **k)])


def record(field, n=7):
    """A field of a packed structured array: its stride is no multiple of its item size."""
    table = np.zeros(n, [("a", *field), ("b", "u1")])
    table["a"] = np.arange(table["a"].size).reshape(table["a"].shape)
    table["b"] = 9
    return table["a"]


LAYOUTS = {
    "field of a record": record(("<f4",)),
    "tensor in a record": record(("<f8", (2, 3))),
    "reversed record": record(("<i4",))[::-1],
    "negative": np.arange(24.0).reshape(4, 6)[::-1, ::-2],
    "zero": np.broadcast_to(np.arange(3.0), (5, 3)),
    "one number": np.broadcast_to(np.float32(3), (5,)),
    "Fortran": np.asfortranarray(np.arange(24.0).reshape(4, 6)),
    "unaligned": np.frombuffer(b"\0" + np.arange(5.0).tobytes(), np.float64, offset=1),
    "read-only": np.frombuffer(np.arange(5.0).tobytes()),
    "bytes in either order": np.arange(5, dtype=">u1"),
    "one sample": record(("<f4",), 1),
    "mask without effect": np.ma.masked_array([1.0, 2.0, 3.0], False),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    array = LAYOUTS[name]
    got = rows(array)
    assert got.dtype == array.dtype and np.array_equal(got, array)
    assert np.array_equal(rows({"a": array}, fields=("a",)), array)


def test_labels_of_records():
    labels = record(("<i8",))
    batch = next(iter(stoker.Loader((np.zeros(7), labels), batch_size=7, output="numpy")))
    assert batch.label.tolist() == labels.tolist() == list(range(7))


def test_extension_refuses_what_elements_cannot_express():
    with pytest.raises(ValueError, match="stride of 5 bytes"):
        stoker._stoker.Loader({"arrays": [("x", 1, record(("<f4",)))], "batch_size": 1})


def test_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.arange(24.0).reshape(4, 6)
    for tensor in (t.T, t[:, ::2], t[:, :1].expand(4, 3), t[1:, 1:]):
        assert np.array_equal(rows(tensor), tensor.numpy())
    half = next(iter(stoker.Loader(t.bfloat16().T, batch_size=6, output="torch")))
    assert torch.equal(half.x, t.bfloat16().T)


@pytest.mark.parametrize(
    "source, words",
    [
        (np.ma.masked_array([1.0, 2.0], [0, 1]), "the array x has masked values"),
        (np.zeros(3, [("a", "f4"), ("b", "u1")]), "the array x has the dtype"),
        (np.zeros(3, np.longdouble), "the array x has the dtype"),
        ((np.zeros(3), [[1], [2, 3], [4]]), "y"),
        ((np.zeros(3), np.array(1)), "y is a single number"),
        ({"x": np.zeros(3), "y": np.array(1)}, "'y' is a single number"),
    ],
)
def test_refused(source, words):
    with pytest.raises(stoker.UsageError, match=words):
        stoker.Loader(source, output="numpy")


def test_tensors_that_numpy_cannot_have():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for tensor in (torch.eye(3).to_sparse(), torch._neg_view(torch.ones(3)), torch.ones(3).to(torch.float8_e5m2)):
        with pytest.raises(stoker.UsageError, match="the array x cannot be read: "):
            stoker.Loader(tensor)


PIXELS, GREY, NUMBERS = np.zeros((5, 4, 4, 3), np.uint8), np.zeros((5, 4, 4), np.uint8), np.arange(5)


@pytest.mark.parametrize(
    "arrays, names",
    [
        ({"a": PIXELS}, ("image",)),
        ({"images": PIXELS, "labels": NUMBERS}, ("image", "label")),
        ({"y": NUMBERS, "images": GREY}, ("label", "image")),
        ({"b": NUMBERS, "x": PIXELS, "images": GREY}, ("b", "image", "images")),
        ({"index": NUMBERS, "labels": NUMBERS, "path": NUMBERS}, ("my_index", "label", "my_path")),
        ({"x": GREY, "y": NUMBERS.astype(float)}, ("x", "y")),
    ],
)
def test_names(arrays, names):
    """Fields come in the order of the dict, whatever the engine makes of their names."""
    batch = next(iter(stoker.Loader(arrays, batch_size=5, output="numpy")))
    assert batch._fields == names
    for name, value, array in zip(names, batch, arrays.values(), strict=True):
        assert name == "image" or np.array_equal(value, array)


def test_bfloat16_is_no_label():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = next(iter(stoker.Loader((torch.zeros(3), torch.ones(3).bfloat16()), output="torch")))
    assert batch._fields == ("x", "y") and batch.y.dtype == torch.bfloat16
