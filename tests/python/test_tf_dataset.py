# SPDX-License-Identifier: Apache-2.0
"""as_tf_dataset() as a Keras user meets it: epochs, shapes, validation, steps, resuming."""

import json
import os
import warnings

import numpy as np
import pytest
import stoker

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
keras = pytest.importorskip("keras", reason="keras is not installed")

X, Y = np.linspace(0, 1, 400, dtype=np.float32).reshape(100, 4), np.arange(100)


def loader_of(**k):
    return stoker.Loader((X, Y), batch_size=10, **{"shuffle": True, "output": "numpy", **k})


def labels_of(data, passes=1):
    return [y.numpy().tolist() for _ in range(passes) for _, y in data]


@pytest.fixture(scope="module")
def model():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(100)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


class States(keras.callbacks.Callback):
    def __init__(self, loader):
        super().__init__()
        self.loader, self.seen = loader, []

    def on_train_batch_end(self, batch, logs=None):
        state = self.loader.state_dict()
        self.seen.append((state["epoch"], state["position"]))


def test_shapes_and_length(photos):
    data = loader_of(drop_last=True).as_tf_dataset()
    assert [s.shape.as_list() for s in data.element_spec] == [[10, 4], [10]] and int(data.cardinality()) == 10
    data = stoker.Loader(photos, "CenterCrop(8)", batch_size=5, layout="NHWC", fields=("image", "path")).as_tf_dataset()
    assert [s.shape.as_list() for s in data.element_spec] == [[None, 8, 8, 3], [None]]
    assert [x.shape[0] for x, _ in data] == [5, 5, 2]
    assert next(iter(data))[1][0].numpy().endswith(b"cat/00.png")


def test_dicts_stay_dicts():
    data = loader_of(as_dict=True).as_tf_dataset()
    assert sorted(data.element_spec) == ["label", "x"] and next(iter(data))["x"].shape == (10, 4)


def test_nothing_is_copied(photos, monkeypatch):
    from stoker._batch import Form
    from test_output import Capsule

    seen = []
    batch = Form.batch
    monkeypatch.setattr(Form, "batch", lambda self, raw: seen.append(raw[0].address) or batch(self, raw))
    for output in ("numpy", "tensorflow"):
        data = stoker.Loader(photos, "CenterCrop(8)", batch_size=3, layout="NHWC", output=output).as_tf_dataset()
        image = next(iter(data))[0]
        assert np.from_dlpack(Capsule(tf.experimental.dlpack.to_dlpack(image))).ctypes.data == seen[-1]


def test_fit_for_epochs_with_validation(model):
    train, val = loader_of(), loader_of(shuffle=False)
    report = States(train)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras warns of data that end too early
        data = {"x": train.as_tf_dataset(), "validation_data": val.as_tf_dataset()}
        history = model.fit(**data, epochs=3, shuffle=False, verbose=0, callbacks=[report])
    assert len(history.history["val_loss"]) == 3
    assert report.seen == [(e, 10 * n) for e in range(3) for n in range(1, 11)]  # trained on, not prefetched


def test_each_pass_is_an_epoch_in_its_own_order():
    data, loader = loader_of().as_tf_dataset(), loader_of()
    epochs = [labels_of(data) for _ in range(3)]
    assert epochs == [[y.tolist() for _, y in loader] for _ in range(3)]
    assert epochs[0] != epochs[1] and sorted(sum(epochs[1], [])) == list(range(100))


def test_steps_go_on_where_they_stopped(model):
    train = loader_of()
    report = States(train)
    data = train.as_tf_dataset().repeat()
    model.fit(data, steps_per_epoch=7, epochs=3, shuffle=False, verbose=0, callbacks=[report])
    assert report.seen[6:8] == [(0, 70), (0, 80)] and report.seen[-1] == (2, 10)


@pytest.mark.parametrize("done", [3, 10])
def test_resume(model, done):
    whole = labels_of(loader_of().as_tf_dataset(), passes=4)
    first = loader_of()
    batches = iter(first)
    assert [next(batches)[1].tolist() for _ in range(done)] == whole[:done]
    again = loader_of(threads=3)
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    data = again.as_tf_dataset()
    assert labels_of(data, passes=3) == whole[done : done + 30]
    again.load_state_dict(first.state_dict())
    report = States(again)
    model.fit(data, epochs=2, shuffle=False, verbose=0, callbacks=[report])
    assert len(report.seen) == 20 and report.seen[0] == ((0, 40) if done == 3 else (1, 10))


def test_evaluate_and_predict(model):
    assert model.evaluate(loader_of().as_tf_dataset(), verbose=0) > 0
    data = stoker.Loader(X, batch_size=30, output="numpy").as_tf_dataset()
    assert model.predict(data, verbose=0).shape == (100, 100)


def test_an_iterable_has_no_length():
    data = stoker.Loader(((x, y) for x, y in zip(X, Y, strict=True)), batch_size=30, output="numpy").as_tf_dataset()
    assert int(data.cardinality()) == tf.data.UNKNOWN_CARDINALITY and sum(len(x) for x, _ in data) == 100


def test_what_has_no_tensor_is_named():
    class Things:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return np.zeros(2), {"any": i}

    with pytest.raises(stoker.UsageError, match="fields="):
        stoker.Loader(Things(), batch_size=2, output="numpy").as_tf_dataset()
