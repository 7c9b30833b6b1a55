# SPDX-License-Identifier: Apache-2.0
"""The what-ifs in words: labels for the table, and the change that the user makes."""

from __future__ import annotations

from typing import NamedTuple


class Remedy(NamedTuple):
    label: str  # completes "with ...", in a table
    advice: str  # what to do, in the imperative
    changes_training: bool = False  # the result of training changes, which the table says


REMEDIES = {
    "stoker": Remedy("Stoker's DataLoader", "replace torch's DataLoader: from stoker import DataLoader"),
    "threads=1": Remedy(
        "one thread per worker",
        "set OMP_NUM_THREADS=1; in worker_init_fn, call torch.set_num_threads(1) and cv2.setNumThreads(0)",
    ),
    "persistent": Remedy("workers kept between epochs", "pass persistent_workers=True to the DataLoader"),
    "next-epoch": Remedy(
        "the next epoch made ready", "make the first batch of the next epoch in a thread, while this epoch runs"
    ),
    "pin": Remedy(
        "pinned memory and copies that do not block",
        "pass pin_memory=True to the DataLoader and non_blocking=True to .to(device)",
    ),
    "device": Remedy("batches made on the GPU", 'pass device="cuda" to stoker.DataLoader'),
    "cache": Remedy("Stoker's cache", 'pass cache="dct" to stoker.DataLoader'),
    "pack": Remedy(
        "packed data", 'pack the data once: stoker pack DATA packed/; then load them: stoker.Loader("packed/", ...)'
    ),
    "draft": Remedy("draft decoding", 'use stoker.Loader with fidelity="draft"; pixels change slightly'),
    "resize": Remedy("images stored smaller", "shrink the images once: stoker pack DATA packed/ --resize short=N"),
    "collate": Remedy(
        "a cheap collate function",
        "make collate_fn cheaper: stack arrays once per batch, and do all other work per sample in the dataset",
    ),
    "skip-slowest": Remedy("the slowest samples left out", "shrink or convert the files that are listed"),
    "numa": Remedy("one NUMA node", "start it with: numactl --cpunodebind=0 --membind=0"),
    "fetch": Remedy(
        "samples that are not fetched again",
        "keep the samples in memory, or give the dataset a __getitems__ that fetches a whole batch",
    ),
    "no-sync": Remedy("no reading of values from the GPU", "keep values as tensors, and call .item() every 50 steps"),
    "no-evaluation": Remedy("no evaluation", "evaluate less often, or on fewer samples"),
    "no-checkpoint": Remedy("no checkpoints", "save less often, or in the background"),
    "amp-bf16": Remedy(
        "bf16 mixed precision", "put the forward pass into torch.autocast(device_type, dtype=torch.bfloat16)"
    ),
    "amp-fp16": Remedy("fp16 with loss scaling", "use torch.autocast with float16, and torch.amp.GradScaler"),
    "parallel": Remedy(
        "a parallel pipeline",
        "pass num_parallel_calls=tf.data.AUTOTUNE to map(), and end the pipeline with .prefetch(tf.data.AUTOTUNE)",
    ),
    "jit": Remedy("a compiled step", "put @jax.jit on the function of a step"),
    "compile": Remedy("a compiled model", "model = torch.compile(model)"),
    "cuda-graphs": Remedy("CUDA graphs", 'model = torch.compile(model, backend="cudagraphs")'),
    "channels-last": Remedy("channels last", "model and images: .to(memory_format=torch.channels_last)"),
    "tf32": Remedy("TF32", 'torch.set_float32_matmul_precision("high")'),
    "cudnn-benchmark": Remedy("cudnn.benchmark", "torch.backends.cudnn.benchmark = True"),
    "fused": Remedy("a fused optimizer", "pass fused=True to the optimizer"),
    "batch*2": Remedy("twice the batch size", "double the batch size, and adapt the learning rate", True),
    "batch/2": Remedy("half the batch size", "halve the batch size, and adapt the learning rate", True),
    "accumulate": Remedy("gradients accumulated", "step the optimizer every second batch", True),
    "checkpointing": Remedy("activation checkpointing", "recompute activations: torch.utils.checkpoint", True),
    "fixed-shapes": Remedy("one shape for all batches", "pad or crop every batch to one of a few shapes"),
    "local-gradients": Remedy("gradients not exchanged", "exchange gradients less often: model.no_sync()", True),
    "depthwise": Remedy("depthwise-separable convolutions", "use them in the model, and train again", True),
    "half-channels": Remedy("half the channels", "use a narrower model, and train again", True),
    "small-input": Remedy("smaller images", "use smaller images, and train again", True),
    "int8": Remedy("int8 quantisation", "quantise the model for inference", True),
}

IN_TENSORFLOW = {  # what to do instead
    "amp-bf16": 'keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    "amp-fp16": 'keras.mixed_precision.set_global_policy("mixed_float16")',
    "compile": "pass jit_compile=True to compile() of Keras, or to tf.function",
}

DISTILLATION = (
    "The model is the limit. A lighter model is faster (--try half-channels,depthwise); distillation, which trains it "
    "on the outputs of this one, helps to keep the accuracy."
)

CEILINGS = {
    "as-is": "as it is",
    "model": "the model alone, on one batch",
    "loader": "the loader alone",
    "loader-cold": "the loader alone, data not in memory",
}


def remedy(name: str) -> Remedy:
    """
    >>> remedy("workers=4").advice
    'pass num_workers=4 to the DataLoader'
    """
    word, _, value = name.partition("=")
    if name in REMEDIES:
        return REMEDIES[name]
    if word == "workers":
        count = "no worker processes" if value == "0" else f"{value} worker{'s' * (value != '1')}"
        return Remedy(count, f"pass num_workers={value} to the DataLoader")
    if word == "without":
        return Remedy(
            f"{value} left out", f"make {value} cheaper: do its work once and store the result, or vectorise it"
        )
    return Remedy(name, name)


def label(name: str) -> str:
    """A run in a few words, for a table."""
    return CEILINGS.get(name) or remedy(name).label
