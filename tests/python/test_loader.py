# SPDX-License-Identifier: Apache-2.0
"""The rules on epochs, batches, ranks, orders, errors and state."""

import contextlib
import errno
import json
import pickle
import threading
import time
import warnings

import numpy as np
import pytest
import stoker

X = np.arange(100, dtype=np.float32).reshape(100, 1)
Y = np.arange(100)


def arrays(**k):
    k.setdefault("output", "numpy")
    return stoker.Loader((X, Y), **k)


def labels(batches):
    return [int(v) for b in batches for v in b.label]


def test_order_of_fields_is_as_given():
    x, y = next(iter(arrays(batch_size=3)))
    assert x.tolist() == [[0], [1], [2]] and y.tolist() == [0, 1, 2]


def test_epochs():
    loader = arrays(batch_size=30, shuffle=True)
    assert len(loader) == 4 and loader.epoch == 0
    first = labels(loader)
    assert sorted(first) == list(range(100)) and loader.epoch == 1
    second = labels(loader)
    assert sorted(second) == list(range(100)) and second != first
    loader.set_epoch(0)
    assert labels(loader) == first


def test_iter_without_a_batch_does_not_commit():
    loader = arrays()
    iter(loader)
    iter(loader)
    assert loader.epoch == 0 and labels([next(iter(loader))]) == [0]


def test_break_goes_to_the_next_epoch():
    loader = arrays(batch_size=10, shuffle=True)
    want = [labels(arrays_at(e)) for e in range(3)]
    for _batch in loader:
        break
    assert labels(loader) == want[1]
    for _batch in loader:
        loader.set_epoch(loader.epoch)  # the current one: no change
    assert labels(loader) == labels(arrays_at(3))


def arrays_at(epoch, batch_size=10):
    loader = arrays(batch_size=batch_size, shuffle=True)
    loader.set_epoch(epoch)
    return loader


def test_second_iterator_ends_the_first():
    loader = arrays(batch_size=10)
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(stoker.UsageError, match="another iterator"):
        next(first)
    assert loader.epoch == 1 and len(list(second)) == 10


def test_second_iterator_begun_while_the_first_waits():
    loader = stoker.Loader(Slow(), batch_size=3, output="numpy", threads=1)
    got = []

    def first():
        with contextlib.suppress(stoker.UsageError):
            for batch in loader:
                got.append(batch)

    thread = threading.Thread(target=first)
    thread.start()
    while not got:
        time.sleep(0.01)
    assert labels(loader) == list(range(12))  # none was taken by the other
    thread.join()
    assert labels(got) == list(range(3 * len(got)))


def test_peek_changes_nothing():
    loader = arrays(batch_size=10, shuffle=True)
    state = loader.state_dict()
    peeked = loader.peek()
    peeked.label[:] = -1
    assert loader.state_dict() == state and loader.peek().label[0] != -1
    assert labels(loader) == labels(arrays_at(0))
    it = iter(loader)
    for _ in range(10):
        next(it)
    state = loader.state_dict()
    loader.peek()  # over the end of the epoch
    assert loader.state_dict() == state
    with pytest.raises(StopIteration):
        next(it)
    assert labels(loader) == labels(arrays_at(2))


def test_peek_at_the_end_loses_nothing():
    loader = arrays(batch_size=10, shuffle=True)
    it = iter(loader)
    for _ in range(10):
        next(it)
    loader.peek()
    assert loader.epoch == 0
    assert labels(loader) == labels(arrays_at(1))  # the epoch was over but for its end
    loader.peek()
    loader.set_epoch(5)
    assert labels(loader) == labels(arrays_at(5))


class Holes:
    """Sample 2 cannot be had."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i == 2:
            raise KeyError("there is no 2")
        return np.float32(i), i


def test_peek_changes_nothing_where_a_batch_fails():
    loader = stoker.Loader(Holes(), batch_size=4, output="numpy")
    state = loader.state_dict()
    for _ in range(2):
        with pytest.raises(stoker.DataError, match="no 2") as caught:
            loader.peek()
        assert isinstance(caught.value.__cause__, KeyError) and loader.state_dict() == state
    it = iter(loader)
    with pytest.raises(stoker.DataError, match="no 2"):
        next(it)
    assert next(it).label.tolist() == [4, 5, 6, 7] and loader.state_dict()["position"] == 8


def test_an_epoch_that_was_peeked_into_is_the_current_one():
    loader = arrays(batch_size=50, shuffle=True)
    it = iter(loader)
    next(it), next(it)
    loader.peek()
    with pytest.raises(StopIteration):
        next(it)
    assert loader.epoch == 1 and loader.state_dict()["epoch"] == 1
    loader.set_epoch(0)
    assert labels(loader) == labels(arrays_at(0, 50))


def test_forever_goes_on_after_an_error_and_after_a_state_at_the_end():
    loader = stoker.Loader(Holes(), batch_size=4, output="numpy")
    batches = loader.forever()
    for _ in range(2):
        with pytest.raises(stoker.DataError):
            next(batches)
        assert [len(next(batches).label) for _ in range(2)] == [4, 4]
    state = loader.state_dict()
    assert state["position"] == 12
    loader.load_state_dict(state)
    with pytest.raises(stoker.DataError):
        next(loader.forever())
    with pytest.raises(stoker.UsageError, match="has no batches"):
        next(arrays(batch_size=1000, drop_last=True).forever())


def test_kept_batches_are_not_overwritten():
    loader = arrays(batch_size=7, shuffle=True)
    kept = list(loader)
    again = labels(kept)
    for _ in range(5):
        list(loader)
    assert labels(kept) == again == labels(arrays_at(0, 7))
    loader.close()
    assert labels(kept) == again


def test_forever_and_steps_per_epoch():
    loader = arrays(batch_size=40, steps_per_epoch=5, shuffle=True)
    assert len(loader) == 5 and len(list(loader)) == 5
    batches = arrays(batch_size=100).forever()
    assert [len(next(batches).label) for _ in range(5)] == [100] * 5


def test_weights():
    weights = np.where(Y < 10, 1.0, 0.0)
    loader = arrays(weights=weights, batch_size=50, steps_per_epoch=20)
    drawn = labels(loader)
    assert set(drawn) == set(range(10)) and len(drawn) == 1000
    k = {"weights": Y, "seed": 3}
    loader = arrays(batch_size=10, **k)
    whole = labels(loader)
    assert whole != labels(loader)  # drawn anew in each epoch
    loader.set_epoch(0)
    it = iter(loader)
    first = labels(next(it) for _ in range(4))
    halves = [arrays(batch_size=5, rank=rank, world_size=2, **k) for rank in range(2)]
    for half in halves:
        half.load_state_dict(loader.state_dict())
    assert first + labels(b for both in zip(*halves, strict=True) for b in both) == whole
    with pytest.raises(stoker.UsageError, match="weights differ from those of the state"):
        arrays(weights=Y + 1, seed=3).load_state_dict(loader.state_dict())
    for bad in ([1.0], np.full(100, np.nan), np.zeros(100), -np.ones(100)):
        with pytest.raises(stoker.UsageError):
            arrays(weights=bad)


def test_sampler():
    order = [5, 5, 99, 0, 1]
    loader = arrays(sampler=order, batch_size=2)
    assert len(loader) == 3
    assert labels(loader) == order and labels(loader) == order
    with pytest.raises(stoker.UsageError):
        labels(arrays(sampler=[100]))


def test_batch_sampler():
    batches = [[1], [2, 3, 4], [5, 6]]
    loader = arrays(batch_sampler=batches)
    assert [b.label.tolist() for b in loader] == batches
    assert [b.label.tolist() for b in loader] == batches
    assert loader.batch_size is None and len(loader) == 3


def test_sampler_resumes():
    order = list(range(50, 0, -1))
    loader = arrays(sampler=order, batch_size=4)
    it = iter(loader)
    for _ in range(5):
        next(it)
    other = arrays(sampler=order, batch_size=4)
    other.load_state_dict(loader.state_dict())
    assert labels(other) == order[20:]


def test_ranks_join_to_one():
    whole = labels(arrays(batch_size=8, shuffle=True))
    parts = [[b.label.tolist() for b in arrays(batch_size=4, shuffle=True, rank=r, world_size=2)] for r in range(2)]
    assert len(parts[0]) == len(parts[1])
    assert [v for a, b in zip(*parts, strict=True) for v in a + b] == whole


def test_ranks_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = arrays(batch_size=10)
    assert len(loader) == 5 and "RANK" in str(loader)
    monkeypatch.delenv("RANK")
    assert len(labels(loader)) == 100  # looked at again when iteration begins


@pytest.mark.parametrize(
    ("launcher", "rank", "size"),
    [
        ("slurm", "SLURM_PROCID", "SLURM_NTASKS"),
        ("mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("mpi", "PMI_RANK", "PMI_SIZE"),
    ],
)
def test_ranks_from_launchers(monkeypatch, launcher, rank, size):
    with pytest.raises(stoker.UsageError, match="not set"):
        arrays(rank=launcher)
    monkeypatch.setenv(rank, "1")
    monkeypatch.setenv(size, "2")
    assert labels(arrays(batch_size=10)) == list(range(100))  # on request only
    loader = arrays(batch_size=10, rank=launcher)
    assert labels(loader) == labels(arrays(batch_size=10, rank=1, world_size=2))
    assert f"1 of 2: {launcher}" in str(loader)
    with pytest.raises(stoker.UsageError, match="leave it out"):
        arrays(rank=launcher, world_size=4)


def test_pad_last():
    loader = arrays(batch_size=64, pad_last=True, fields=("label", "valid"))
    batches = list(loader)
    assert [len(b.label) for b in batches] == [64, 64] and int(batches[1].valid.sum()) == 36


def test_state_is_small_and_exact():
    loader = arrays(batch_size=7, shuffle=True, seed=3)
    it = loader.forever()
    seen = [labels([next(it)]) for _ in range(50)]
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 300
    seen += [labels([next(it)]) for _ in range(50)]
    for threads in (2, 16):
        other = arrays(batch_size=7, shuffle=True, seed=3, threads=threads)
        other.load_state_dict(state)
        it = other.forever()
        assert [labels([next(it)]) for _ in range(50)] == seen[50:]


def test_state_of_another_set_is_refused():
    state = arrays().state_dict()
    with pytest.raises(stoker.UsageError, match="changed"):
        stoker.Loader((X[:50], Y[:50]), output="numpy").load_state_dict(state)
    with pytest.raises(stoker.UsageError, match="order changed"):
        arrays(shuffle=True).load_state_dict(state)
    with pytest.raises(stoker.UsageError):
        arrays().load_state_dict({})
    with pytest.raises(stoker.UsageError):
        arrays().load_state_dict("state")


def test_pickle():
    loader = arrays(batch_size=10, shuffle=True)
    next(iter(loader))
    other = pickle.loads(pickle.dumps(loader))
    assert labels(other) == labels(arrays_at(0))[10:]


def test_get_is_what_training_saw(photos):
    loader = stoker.Loader(
        photos, "RandomResizedCrop(8)", shuffle=True, fields=("image", "index"), output="numpy", batch_size=5
    )
    for epoch in range(2):
        for batch in loader:
            again = loader.get(batch.index.tolist(), epoch=epoch)
            assert np.array_equal(again.image, batch.image)
    assert loader.get(range(12), epoch=0).image.shape == (12, 3, 8, 8)
    with pytest.raises(stoker.UsageError):
        loader.get(12)


def check_again(loader, epochs=2, **k):
    """Every batch of some epochs is what get() gives for its positions."""
    for _ in range(epochs):
        epoch = loader.epoch
        for batch in loader:
            for again in (
                loader.get(batch.index, epoch=epoch, positions=batch.position),
                loader.get(epoch=epoch, positions=batch.position) if not loader._sampled else batch,
            ):
                assert all(np.array_equal(a, b) for a, b in zip(batch, again, strict=True))


def test_get_by_positions(photos):
    k = {"transform": "RandomResizedCrop(8) | RandomHorizontalFlip", "output": "numpy", "batch_size": 5}
    k["fields"] = ("image", "label", "index", "position")
    check_again(stoker.Loader(photos, shuffle=True, **k))
    check_again(stoker.Loader(photos, weights=np.arange(12.0), steps_per_epoch=5, **k))
    check_again(stoker.Loader(photos, shuffle=True, steps_per_epoch=5, **k))
    check_again(stoker.Loader(stoker.Source(photos).subset([3, 4, 4, 9]), shuffle=True, steps_per_epoch=5, **k))
    loader = stoker.Loader(photos, sampler=[3, 3, 3, 5, 3, 3], **k)
    check_again(loader)
    rows = loader.get([3, 3], epoch=0, positions=[0, 1])
    assert not np.array_equal(rows.image[0], rows.image[1])
    with pytest.raises(stoker.UsageError, match="give the samples to get"):
        loader.get(epoch=0, positions=[0])


def test_get_tells_what_was_drawn(photos):
    ops = "RandomResizedCrop(8) | RandomHorizontalFlip | Normalize"
    loader = stoker.Loader(photos, ops, output="numpy", batch_size=3)
    seen = loader.get(range(7), epoch=4)
    images, labels = seen  # it is a batch as any other
    assert images.shape == (7, 3, 8, 8) and seen._fields == ("image", "label") and len(seen.drawn) == 7
    assert seen.drawn == loader.drawn(range(7), epoch=4) != loader.drawn(range(7), epoch=5)
    row = json.loads(json.dumps(seen.drawn[6]))
    assert row["index"] == 6 and row["epoch"] == 4 and row["position"] is None and row["size"] == [24, 32]
    assert [op["op"] for op in row["ops"]] == ["RandomResizedCrop", "RandomHorizontalFlip", "Normalize"]
    k = {"output": "numpy", "batch_size": 3}
    as_dict = stoker.Loader(photos, ops, as_dict=True, **k).get([1], epoch=4)
    assert isinstance(as_dict, dict) and as_dict.drawn == loader.drawn(1, epoch=4)
    collated = stoker.Loader(photos, ops, collate_fn=len, **k).get([1, 2], epoch=4)
    assert collated == 2
    assert arrays().get([5]).drawn == [{"index": 5, "epoch": 0, "position": None, "ops": []}]


def test_seeds_of_functions_are_told(photos):
    def noise(x, rng):
        return x + rng.random()

    loader = stoker.Loader(photos, ["CenterCrop(8)", noise, noise], output="numpy")
    seen = loader.get(2, epoch=1)
    plain = stoker.Loader(photos, "CenterCrop(8)", output="numpy").get(2)
    calls = [op for op in seen.drawn[0]["ops"] if op["op"] == "noise"]
    added = sum(np.random.Generator(np.random.Philox(key=c["seed"])).random() for c in calls)
    assert len(calls) == 2 and np.allclose(seen.image, plain.image + added)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "indices, as in the field"),
        ({"indices": [1, 2], "positions": [1]}, "2 indices but 1 positions"),
        ({"indices": [0.5]}, "one integer or a list of integers"),
        ({"indices": [[1]]}, "one integer or a list of integers"),
        ({"indices": "one"}, "one integer or a list of integers"),
        ({"indices": [100]}, "there is no sample 100; the source has 100 samples"),
        ({"positions": [100]}, "there is no position 100; an epoch has 100"),
        ({"positions": [-1]}, "there is no position -1"),
        ({"indices": 1, "epoch": -1}, "epoch is -1"),
        ({"indices": 1, "epoch": 0.5}, "whole number"),
    ],
)
def test_wrong_arguments_of_get(arguments, words):
    with pytest.raises(stoker.UsageError, match=words):
        arrays().get(**arguments)


def test_threads_change_nothing(photos):
    def run(threads):
        loader = stoker.Loader(
            photos,
            "RandomResizedCrop(8) | RandomHorizontalFlip",
            shuffle=True,
            threads=threads,
            output="numpy",
            batch_size=5,
        )
        return [b.image.copy() for _ in range(3) for b in loader]

    assert all(np.array_equal(a, b) for a, b in zip(run(2), run(16), strict=True))


def test_fields(photos):
    batch = next(
        iter(
            stoker.Loader(
                photos, "CenterCrop(8)", fields=("label", "path", "key", "index"), output="numpy", batch_size=2
            )
        )
    )
    assert (
        batch._fields == ("label", "path", "key", "index")
        and batch.key[0] == "cat/00.png"
        and batch.path[0].endswith("cat/00.png")
    )
    loader = stoker.Loader(
        photos, "CenterCrop(8)", fields={"pixel_values": "image", "labels": "label:float"}, as_dict=True, output="numpy"
    )
    batch = next(iter(loader))
    assert set(batch) == {"pixel_values", "labels"} and batch["labels"].dtype == np.float32
    with pytest.raises(stoker.UsageError, match="did you mean label"):
        stoker.Loader(photos, "CenterCrop(8)", fields=("lable",))


def test_layouts_and_dtypes(photos):
    nchw = next(iter(stoker.Loader(photos, "CenterCrop(8)", output="numpy"))).image
    nhwc = next(iter(stoker.Loader(photos, "CenterCrop(8)", layout="NHWC", output="numpy"))).image
    last = next(iter(stoker.Loader(photos, "CenterCrop(8)", layout="channels_last", output="numpy"))).image
    assert np.array_equal(nchw, last) and np.array_equal(nhwc.transpose(0, 3, 1, 2), nchw)
    assert last.strides[1] == 4
    for dtype in ("uint8", np.float16, np.dtype("float32")):
        batch = next(iter(stoker.Loader(photos, "CenterCrop(8)", dtype=dtype, output="numpy")))
        assert batch.image.dtype == np.dtype(dtype)


def test_batches_are_aligned_writable_and_exclusive(photos):
    loader = stoker.Loader(photos, "CenterCrop(8)", output="numpy", batch_size=3)
    batches = list(loader)
    for b in batches:
        assert b.image.ctypes.data % 64 == 0 and b.image.flags.writeable and not b.image.flags.owndata
    assert len({b.image.ctypes.data for b in batches}) == 4


def test_several_loaders_and_threads(photos):
    loaders = [stoker.Loader(photos, "CenterCrop(8)", batch_size=4, output="numpy") for _ in range(4)]
    for group in zip(*loaders, strict=True):
        assert all(np.array_equal(group[0].image, g.image) for g in group)
    loader = arrays(batch_size=1)
    it, seen, lock = iter(loader), [], threading.Lock()

    def take():
        for b in it:
            with lock:
                seen.extend(b.label.tolist())

    threads = [threading.Thread(target=take) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(seen) == list(range(100))


def test_python_op(photos):
    def op(x, rng):
        return x + rng.random()

    runs = []
    for threads in (1, 4):
        loader = stoker.Loader(photos, ["CenterCrop(8)", op], output="numpy", threads=threads, batch_size=12)
        runs.append(next(iter(loader)).image)
        assert "deterministic, with an rng for each sample" in loader.explain()
    assert np.array_equal(*runs)
    loader = stoker.Loader(photos, ["CenterCrop(8)", lambda x: x.mean(axis=(1, 2))], output="numpy", batch_size=12)
    assert next(iter(loader)).image.shape == (12, 3)
    runs = [
        next(
            iter(
                stoker.Loader(
                    photos, ["CenterCrop(8)", lambda x: x + np.random.rand()], output="numpy", threads=t, batch_size=12
                )
            )
        ).image
        for t in (1, 4)
    ]
    assert np.array_equal(*runs)


def test_python_op_that_raises(photos):
    def op(x, rng):
        if x[0, 0, 0] > 0.1:
            raise ZeroDivisionError("by design")
        return x

    loader = stoker.Loader(photos, ["CenterCrop(8)", op], output="numpy")
    with pytest.raises(stoker.DataError, match="by design") as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.sample is not None
    assert caught.value.stage == "op" and caught.value.path.endswith(".png")


def test_errors_are_raised_skipped_and_replaced(make):
    root = make(10)
    (root / "cat" / "03.png").write_bytes(b"not an image")
    k = {"transform": "CenterCrop(8)", "output": "numpy", "batch_size": 4, "max_bad": 0.5}
    loader = stoker.Loader(root, **k)
    it = iter(loader)
    with pytest.raises(stoker.DataError) as caught:
        next(it)
    assert caught.value.sample == 3 and caught.value.path.endswith("03.png") and caught.value.stage
    assert pickle.loads(pickle.dumps(caught.value)).reason == caught.value.reason
    assert len(next(it).label) == 4  # the next call goes on
    loader = stoker.Loader(root, on_error="skip", **k)
    with pytest.warns(RuntimeWarning, match="1 bad sample was left out"):
        sizes = [len(b.label) for b in loader]
    assert sizes == [3, 4, 4, 4, 4] and loader.bad_samples()[0].sample == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once only
        list(loader)
    loader = stoker.Loader(root, on_error="skip", **k)
    with pytest.warns(RuntimeWarning, match="left out"):  # also where no epoch is gone through
        for _ in range(2):
            next(iter(loader))
    loader = stoker.Loader(root, on_error="replace", **k)
    with pytest.warns(RuntimeWarning, match="replaced"):
        assert [len(b.label) for b in loader] == [4] * 5


def test_too_many_bad_samples(make):
    root = make(10)
    for i in range(5):
        (root / "cat" / f"{i:02}.png").write_bytes(b"not an image")
    with pytest.raises(stoker.DataError, match="max_bad"):
        list(stoker.Loader(root, "CenterCrop(8)", on_error="skip", max_bad=0.1, output="numpy"))


class Wordy(Holes):
    SAID = {2: "e" * 3000, 3: "\u00e9" * 3000, 4: "x" + "\u00e9" * 3000, 5: "\udcff"}  # cut, also within a letter

    def __getitem__(self, i):
        if i in self.SAID:
            raise RuntimeError(self.SAID[i])
        return np.float32(i), i


def test_errors_may_have_any_words():
    loader = stoker.Loader(Wordy(), on_error="skip", max_bad=0.9, output="numpy")
    with pytest.warns(RuntimeWarning, match="4 bad samples"):
        list(loader)
    said = [bad.reason.removeprefix("RuntimeError: ")[:4] for bad in loader.bad_samples()]
    assert said == ["eeee", "\u00e9" * 4, "x\u00e9\u00e9\u00e9", "\\udc"]


def test_a_source_that_is_not_there():
    with pytest.raises(FileNotFoundError) as caught:
        stoker.Loader("/no/such/folder")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, stoker.Error) and error.errno == errno.ENOENT
        assert error.filename == error.path == "/no/such/folder" and "no such file" in str(error)


class Slow(Holes):
    def __getitem__(self, i):
        time.sleep(0.1 if i else 0)
        return np.float32(i), i


def test_closed():
    loader = arrays()
    with loader:
        pass
    loader.close()
    with pytest.raises(stoker.Error, match="closed"):
        next(iter(loader))
    assert "closed" in repr(loader)


class Endless(Slow):
    def __len__(self):
        return 10**6


@pytest.mark.parametrize("processes", [None, 2])
def test_closed_while_waiting(processes):
    loader = stoker.Loader(Endless(), output="numpy", processes=processes)
    threading.Timer(0.2, loader.close).start()  # at some time before the end
    with pytest.raises(stoker.Error, match="closed"):
        list(loader)


def test_images_in_arrays():
    pixels = np.arange(5 * 4 * 6 * 3, dtype=np.uint8).reshape(5, 4, 6, 3)
    batch = next(
        iter(stoker.Loader((pixels, np.arange(5)), dtype="uint8", layout="NHWC", batch_size=5, output="numpy"))
    )
    assert np.array_equal(batch.image, pixels) and batch._fields == ("image", "label")
    loader = stoker.Loader({"image": pixels, "extra": np.zeros((5, 2))}, "CenterCrop(4)", batch_size=2, output="numpy")
    assert next(iter(loader)).image.shape == (2, 3, 4, 4) and loader.show(n=3).png[1:4] == b"PNG"


def test_batch_fn_and_collate_fn(photos):
    loader = stoker.Loader(photos, "CenterCrop(8)", batch_fn=lambda b: b.label * 2, batch_size=12, output="numpy")
    assert set(next(iter(loader)).tolist()) == {0, 2}
    loader = stoker.Loader(photos, "CenterCrop(8)", collate_fn=len, batch_size=5, output="numpy")
    assert list(loader) == [5, 5, 2]


def test_progress(photos, capsys):
    assert len(list(stoker.Loader(photos, "CenterCrop(8)", progress=True, batch_size=4))) == 3


def test_scan(make):
    root = make(4)
    (root / "cat" / "01.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    bad = stoker.verify(root)
    assert [b.sample for b in bad] == [1] and len(stoker.ls(root).bad) == 1 and not bad[0].needs_memory


def test_what_needs_memory(tmp_path):
    from conftest import write_png

    write_png(tmp_path / "a" / "large.png", np.zeros((2500, 2500, 3), np.uint8))
    write_png(tmp_path / "a" / "small.png", np.zeros((8, 8, 3), np.uint8))
    (bad,) = stoker.verify(tmp_path, threads=1, memory="16M")
    assert bad.needs_memory and bad.path.endswith("large.png") and pickle.loads(pickle.dumps(bad)).needs_memory
    assert stoker.verify(tmp_path) == []


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"pad_last": True}, {"steps_per_epoch": 5}])
def test_a_state_after_the_last_batch_is_the_next_epoch(options):
    loader = arrays(batch_size=7, shuffle=True, **options)
    batches = iter(loader)
    for _ in range(len(loader)):
        next(batches)
    again = arrays(batch_size=7, shuffle=True, **options)
    again.load_state_dict(loader.state_dict())
    assert again.epoch == 1 and labels(again) == labels(loader)
