# SPDX-License-Identifier: Apache-2.0
"""Run by test_keras.py with each backend of Keras, in a process of its own.

    KERAS_BACKEND=jax python keras_fit.py FOLDER [NAME...]      FOLDER has class folders of images

Every function whose name begins with `check_` is a test. Their order matters: torch is imported by the last ones.
"""

import json
import random
import sys
import warnings
from pathlib import Path

import keras
import numpy as np
import stoker

BACKEND = keras.config.backend()
PHOTOS = Path(sys.argv[1])
X = np.random.default_rng(0).random((48, 4), dtype=np.float32)
Y = np.arange(48) % 3
W = np.linspace(0, 2, 48, dtype=np.float32)
SIDE = 8
OPS = f"RandomResizedCrop({SIDE}) | RandomHorizontalFlip | Normalize"


def arrays(*more, **k):
    return stoker.Loader((X, Y, *more), **{"batch_size": 8, "shuffle": True, **k})


def photos(**k):
    return stoker.Loader(PHOTOS, OPS, **{"batch_size": 5, "shuffle": True, "layout": "NHWC", **k})


def model(shape=(4,), build=True, **k):
    """The same weights for every model of a shape."""
    layers = [keras.layers.Flatten(), keras.layers.Dense(3, kernel_initializer=keras.initializers.RandomNormal(seed=1))]
    made = keras.Sequential([keras.Input(shape), *layers] if build else layers)
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **k)
    return made


def weights(of):
    return np.concatenate([np.asarray(w).ravel() for w in of.get_weights()])


def by_hand(batches, shape=(4,), **k):
    """Weights after training on the batches, fed by hand."""
    made = model(shape, run_eagerly=True)  # compiling would take longer
    for x, y, *more in batches:
        made.train_on_batch(np.asarray(x), np.asarray(y), *map(np.asarray, more), **k)
    return weights(made)


def epochs(loader, n):
    return [batch for _ in range(n) for batch in loader]


class Places(keras.callbacks.Callback):
    """Where the loader is after each step."""

    def __init__(self, loader):
        super().__init__()
        self.loader, self.seen = loader, []

    def on_train_batch_end(self, batch, logs=None):
        state = self.loader.state_dict()
        self.seen.append([state["epoch"], state["position"]])


def fit(made, data, **k):
    return made.fit(data, verbose=0, shuffle=False, **k).history


def refused(loader, words):
    try:
        loader.as_keras()
    except stoker.UsageError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


# ---------------------------------------------------------------- Loader


def check_epochs_are_the_loaders_own():
    """Also with a model that Keras builds from the first batch, with metrics, and with Keras' own shuffle."""
    expected = by_hand(epochs(arrays(), 3))
    for build, metrics, shuffle in ((True, None, False), (False, ["accuracy"], False), (True, ["accuracy"], True)):
        loader, made = arrays(), model(build=build, metrics=metrics)
        places = Places(loader)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if shuffle else "error")
            made.fit(loader.as_keras(), epochs=3, verbose=0, shuffle=shuffle, callbacks=[places])
        np.testing.assert_allclose(weights(made), expected, rtol=1e-4, atol=1e-6)
        assert places.seen == [[e, 8 * n] for e in range(3) for n in range(1, 7)], places.seen


def check_a_batch_ahead():
    """On a GPU, Keras with JAX asks for a batch before it has used the one before."""
    if BACKEND != "jax":
        return
    import jax

    made, real = model(metrics=["accuracy"]), jax.default_backend
    jax.default_backend = lambda: "gpu"  # all that Keras looks at
    try:
        fit(made, arrays().as_keras(), epochs=2)
    finally:
        jax.default_backend = real
    np.testing.assert_allclose(weights(made), by_hand(epochs(arrays(), 2)), rtol=1e-4, atol=1e-6)


def check_images():
    made, loader = model((SIDE, SIDE, 3)), photos()
    fit(made, loader.as_keras(), epochs=2)
    np.testing.assert_allclose(weights(made), by_hand(epochs(photos(), 2), (SIDE, SIDE, 3)), rtol=1e-4, atol=1e-6)


def check_validation_evaluate_and_predict():
    made, val = model(metrics=["accuracy"]), arrays(shuffle=False)
    history = fit(made, arrays().as_keras(), validation_data=val.as_keras(), epochs=2)
    assert len(history["val_loss"]) == 2
    loss, accuracy = made.evaluate(X, Y, batch_size=8, verbose=0)
    np.testing.assert_allclose(history["val_loss"][-1], loss, rtol=1e-4)
    data = val.as_keras()
    np.testing.assert_allclose(made.evaluate(data, verbose=0), [loss, accuracy], rtol=1e-4)
    np.testing.assert_allclose(made.evaluate(data, verbose=0), [loss, accuracy], rtol=1e-4)
    only_x = stoker.Loader(X, batch_size=8).as_keras()
    np.testing.assert_allclose(made.predict(only_x, verbose=0), made.predict(X, verbose=0), rtol=1e-4, atol=1e-6)


def check_steps():
    """The loader's steps_per_epoch is the length of an epoch. With fit's, the batches go on where they stopped."""
    loader, made = arrays(steps_per_epoch=4), model()
    fit(made, loader.as_keras(), epochs=3)
    np.testing.assert_allclose(weights(made), by_hand(epochs(arrays(steps_per_epoch=4), 3)), rtol=1e-4, atol=1e-6)
    loader = arrays()  # 6 batches
    places = Places(loader)
    fit(model(), loader.as_keras(), epochs=4, steps_per_epoch=3, callbacks=[places])
    assert places.seen == [[e, 8 * n] for e in range(2) for n in range(1, 7)], places.seen


def check_weights():
    expected = by_hand(epochs(arrays(W), 1))
    made = model()
    fit(made, arrays(W).as_keras())
    np.testing.assert_allclose(weights(made), expected, rtol=1e-4, atol=1e-6)
    assert not np.allclose(expected, by_hand(epochs(arrays(), 1)), rtol=1e-4)
    made, of_classes = model(), {0: 1.0, 1: 5.0, 2: 0.5}
    fit(made, arrays().as_keras(), class_weight=of_classes)
    expected = by_hand(epochs(arrays(), 1), class_weight=of_classes)
    np.testing.assert_allclose(weights(made), expected, rtol=1e-4, atol=1e-6)


def check_padded_rows_have_no_weight():
    made = model(metrics=[], weighted_metrics=["accuracy"])
    padded = arrays(batch_size=20, pad_last=True, fields=("x", "label", "valid"))
    assert len({batch[0].shape for batch in epochs(padded, 1)}) == 1
    loss, accuracy = made.evaluate(padded.as_keras(), verbose=0)
    plain = model(metrics=["accuracy"]).evaluate(X, Y, batch_size=48, verbose=0)
    np.testing.assert_allclose(accuracy, plain[1], rtol=1e-4)


def check_resume():
    """In the middle of an epoch: each of fit's epochs has as many batches, and starts from there."""
    expected = epochs(arrays(), 3)
    first = arrays()
    for _, _ in zip(range(3), first, strict=False):
        pass
    again = arrays(threads=2)
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    made = model()
    fit(made, again.as_keras(), epochs=2)
    np.testing.assert_allclose(weights(made), by_hand(expected[3:15]), rtol=1e-4, atol=1e-6)


def check_a_loader_that_is_given_twice_goes_on():
    loader, made = arrays(), model()
    data = loader.as_keras()
    for _ in range(2):
        fit(made, data)
        made.compile("sgd", made.loss, metrics=["accuracy"])
    np.testing.assert_allclose(weights(made), by_hand(epochs(arrays(), 2)), rtol=1e-4, atol=1e-6)


def check_dicts_are_inputs():
    inputs = {"a": keras.Input((4,), name="a"), "b": keras.Input((1,), name="b")}
    made = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.Concatenate()([inputs["a"], inputs["b"]])))
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    columns = {"a": X, "b": W[:, None], "label": Y}
    loader = stoker.Loader(columns, batch_size=8, batch_fn=lambda b: ({"a": b.a, "b": b.b}, b.label))
    assert np.isfinite(fit(made, loader.as_keras())["loss"][0])


def check_a_failure_keeps_its_words():
    (PHOTOS.parent / "broken/a").mkdir(parents=True, exist_ok=True)
    (PHOTOS.parent / "broken/a/0.png").write_bytes((PHOTOS / "cat/00.png").read_bytes())
    (PHOTOS.parent / "broken/a/1.png").write_bytes(b"not an image")
    data = stoker.Loader(PHOTOS.parent / "broken", f"CenterCrop({SIDE})", layout="NHWC").as_keras()
    try:
        fit(model((SIDE, SIDE, 3)), data)
    except Exception as error:
        assert "1.png" in str(error), error
    else:
        raise AssertionError("the bad image was not reported")


def check_refusals():
    refused(photos(layout="NCHW"), "layout='NHWC'")
    refused(photos(fields=("image", "label", "index", "position")), "4 fields")
    if BACKEND != "tensorflow":
        refused(photos(fields=("image", "path")), "path is a list")
        refused(stoker.Loader((x for x in X), batch_size=8), "no length")
        lists = PHOTOS.parent / "lists.jsonl"
        lists.write_text("".join(json.dumps({"ids": list(range(n)), "y": n}) + "\n" for n in range(1, 9)))
        refused(stoker.Loader(lists, batch_size=4), "fields='ids:int64(*) pad=0'")
        padded = stoker.Loader(lists, batch_size=4, fields="ids:int64(*) pad=0, y")
        (ids, lengths), y = next(iter(padded.as_keras()))
        assert ids.shape == (4, 4) and list(lengths) == list(y) == [1, 2, 3, 4]


def check_the_other_layout():
    keras.config.set_image_data_format("channels_first")
    try:
        refused(photos(), "layout='NCHW'")
        shape = next(iter(photos(layout="NCHW").as_keras()))[0].shape
        assert tuple(shape) == (5, 3, SIDE, SIDE), shape
    finally:
        keras.config.set_image_data_format("channels_last")


def check_nothing_else_is_touched():
    random.seed(3)
    expected = random.Random(3).random()
    fit(model(), arrays().as_keras())
    assert random.random() == expected
    others = {"tensorflow", "torch"} - {BACKEND}
    assert not others & set(sys.modules), others & set(sys.modules)


# ---------------------------------------------------------------- with torch


def check_nothing_is_copied():
    """Torch's tensors, and NumPy's arrays as JAX gets them, are the engine's memory."""
    from stoker._batch import Form

    made, seen = Form.batch, []
    Form.batch = lambda self, raw: seen.append(raw[0].address) or made(self, raw)
    try:
        if BACKEND == "tensorflow":
            return  # in test_tf_dataset.py
        adapter = keras.src.trainers.data_adapters.get_data_adapter(arrays().as_keras())
        if BACKEND == "torch":
            assert next(iter(adapter.get_torch_dataloader()))[0].data_ptr() == seen[-1]
        else:
            assert next(iter(adapter.get_jax_iterator()))[0].ctypes.data == seen[-1]
    finally:
        Form.batch = made


def check_data_loader():
    """torch's DataLoader and Stoker's, given to fit as they are."""
    import torch
    from torch.utils import data

    class Rows(data.Dataset):
        def __len__(self):
            return len(X)

        def __getitem__(self, i):
            return torch.from_numpy(X[i]), int(Y[i])

    for dataset in (Rows(), data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))):
        found = []
        for kind in (data.DataLoader, stoker.DataLoader):
            made = model(metrics=["accuracy"])
            torch.manual_seed(5)
            loader, val = kind(dataset, batch_size=8, shuffle=True), kind(dataset, batch_size=8)
            history = fit(made, loader, epochs=3, validation_data=val)
            found.append((weights(made), history["loss"], history["val_loss"], made.evaluate(val, verbose=0)))
        for theirs, ours in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_") and name in (sys.argv[2:] or [name]):
            print(name, flush=True)
            check()
    print("all passed", BACKEND)
