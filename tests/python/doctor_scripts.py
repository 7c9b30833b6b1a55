# SPDX-License-Identifier: Apache-2.0
"""Small training scripts, as users write them: one per framework. Each runs until it is stopped."""

LIGHTNING = """
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 4)

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layer(x), y)

    def validation_step(self, batch, index):
        self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


train = DataLoader(data, batch_size=8, shuffle=True)
valid = DataLoader(data, batch_size=16)
trainer = L.Trainer(max_epochs=100000, accelerator="cpu", logger=False, enable_progress_bar=False)
trainer.fit(Net(), train, valid)
"""

ACCELERATE = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(data, batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
while True:
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.save_state("state")
"""

KERAS = """
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

x, y = np.random.rand(64, 16).astype("float32"), np.random.randint(0, 4, 64)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(8).prefetch(2)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=100000, validation_data=data, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint("m.keras")])
"""

KERAS_GENERATOR = KERAS.replace(
    "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(8).prefetch(2)",
    """

def batches():
    while True:
        yield x[:8], y[:8]


data = batches()
""",
).replace("validation_data=data", "steps_per_epoch=20")

TENSORFLOW = """
import tensorflow as tf

w = tf.Variable(tf.zeros((16, 4)))
data = tf.data.Dataset.from_tensor_slices((tf.random.normal((64, 16)), tf.zeros((64,), tf.int32))).batch(8)
while True:
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ w))
        w.assign_sub(0.1 * tape.gradient(loss, w))
"""

JAX = """
import jax
import jax.numpy as jnp
import numpy as np
import stoker

rng = np.random.default_rng(0)


def batches():
    for _ in range(50):
        yield rng.normal(size=(8, 16)).astype("float32"), rng.integers(0, 4, 8)


@jax.jit
def step(w, x, y):
    def loss(w):
        return -jnp.mean(jax.nn.log_softmax(x @ w)[jnp.arange(8), y])

    return w - 0.1 * jax.grad(loss)(w)


w = jnp.zeros((16, 4))
while True:
    for x, y in stoker.watch(batches()):
        w = step(w, x, y)
"""

HUGGING_FACE = """
import torch
from transformers import Trainer, TrainingArguments

torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 4)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.cross_entropy(self.layer(x), labels)}


data = [{"x": torch.randn(16), "labels": i % 4} for i in range(64)]
options = TrainingArguments("out", max_steps=1000000, use_cpu=True, report_to=[], save_steps=3, disable_tqdm=True)
Trainer(Net(), options, train_dataset=data).train()
"""

# torchvision's compiled ops do not load beside a torch of another build.
SHIM = """
import torch

try:
    import torchvision
except ImportError:
    pass
except (RuntimeError, AttributeError):
    import sys

    for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    ops = torch.library.Library("torchvision", "DEF")
    for op in ("nms", "qnms"):
        ops.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
LIGHTNING, HUGGING_FACE = SHIM + LIGHTNING, SHIM + HUGGING_FACE

WEBDATASET = """
import torch
import webdataset as wds

with wds.TarWriter("data.tar") as file:
    for i in range(64):
        file.write({"__key__": f"{i:03d}", "cls": i % 4})
data = wds.WebDataset("data.tar", shardshuffle=False).decode().to_tuple("cls", "cls").batched(8)
loader = wds.WebLoader(data, batch_size=None, num_workers=1)
w = torch.zeros(4, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
while True:
    for x, y in loader:
        optimizer.zero_grad()
        (w[torch.as_tensor(y)] * torch.as_tensor(x)).sum().backward()
        optimizer.step()
"""

NAMES = {  # what the doctor must recognise: packages, kind of loader, batch size
    "LIGHTNING": (["torch", "lightning"], "torch.DataLoader", 8),
    "ACCELERATE": (["torch", "accelerate"], "torch.DataLoader", 8),
    "HUGGING_FACE": (["torch", "transformers", "accelerate"], "torch.DataLoader", 8),
    "KERAS": (["tensorflow", "keras"], "tf.data", 8),
    "KERAS_GENERATOR": (["tensorflow", "keras"], "keras", 8),
    "TENSORFLOW": (["tensorflow"], "tf.data", 8),
    "WEBDATASET": (["torch", "webdataset"], "torch.DataLoader", 8),
    "JAX": (["jax"], "iterable", 8),
}
