# SPDX-License-Identifier: Apache-2.0
"""The what-ifs for a model: precision, compilation, memory layout, optimizers, and lighter models.

The model is not known by name. A change is made where the outermost module is called, or where its parameters are
first asked for, which is before an optimizer is made.
"""

from __future__ import annotations

import copy
import functools
import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import frameworks, probe
from .hooks import after
from .what_ifs import NotPossible

MODULE = "torch.nn.modules.module"
Change = Callable[..., Any]
INFERENCE_SECONDS = 2.0


def install(name: str) -> None:
    if name in CALLS:
        after(MODULE, functools.partial(_outermost, change=CALLS[name]))
        if name == "amp-fp16":
            _loss_scaling()
    elif name in REBUILT:
        after(MODULE, functools.partial(_rebuilt, change=REBUILT[name]))
    elif name in FLAGS:
        after("torch.nn", lambda module: _flag(name))
    elif name == "fused":
        after("torch.optim", _fused)
    elif name == "accumulate":
        after("torch.optim.optimizer", _accumulate)
    elif name == "no-sync":
        after("torch._tensor", _no_sync)
    elif name == "local-gradients":
        after("torch.nn.parallel.distributed", _local_gradients)
    else:
        raise NotPossible(f"unknown what-if {name!r}")
    if name in KERAS:
        after("keras", KERAS[name])
    if name == "compile":
        after("tensorflow", frameworks.compile_functions)


# ---------------------------------------------------------------- calls of the outermost module

_inside = 0


def _outermost(module: Any, change: Change) -> None:
    original = module.Module.__call__

    def __call__(self: Any, *args: Any, **keywords: Any) -> Any:
        global _inside
        if _inside or not probe.loops:
            return original(self, *args, **keywords)
        _inside += 1
        probe.extra["applied"] = True
        try:
            return change(original, self, args, keywords)
        finally:
            _inside -= 1

    module.Module.__call__ = __call__


def _device_of(module: Any) -> str:
    first = next(iter(module.parameters()), None)
    if first is not None:
        return str(first.device.type)
    return "cuda" if sys.modules["torch"].cuda.is_available() else "cpu"


def _amp(dtype: str) -> Change:
    def change(original: Any, module: Any, args: Any, keywords: Any) -> Any:
        torch: Any = sys.modules["torch"]

        with torch.autocast(_device_of(module), getattr(torch, dtype)):
            return original(module, *args, **keywords)

    return change


def _compile(**how: Any) -> Change:
    """Modules with parameters are compiled once; losses are called as they are."""

    def change(original: Any, module: Any, args: Any, keywords: Any) -> Any:
        torch: Any = sys.modules["torch"]

        compiled = module.__dict__.get("_doctor_compiled")
        if compiled is None:
            compiled = functools.partial(original, module)
            if next(iter(module.parameters()), None) is not None:
                compiled = torch.compile(compiled, **how)
            module.__dict__["_doctor_compiled"] = compiled
        return compiled(*args, **keywords)

    return change


def _images(args: tuple[Any, ...], change: Callable[[Any], Any]) -> list[Any]:
    return [change(a) if getattr(a, "ndim", 0) == 4 and a.is_floating_point() else a for a in args]


def _channels_last(original: Any, module: Any, args: Any, keywords: Any) -> Any:
    torch: Any = sys.modules["torch"]

    if not module.__dict__.get("_doctor_layout"):
        module.to(memory_format=torch.channels_last)
        module.__dict__["_doctor_layout"] = True
    images = _images(args, lambda a: a.contiguous(memory_format=torch.channels_last))
    return original(module, *images, **keywords)


def _small_input(original: Any, module: Any, args: Any, keywords: Any) -> Any:
    torch: Any = sys.modules["torch"]

    def smaller(image: Any) -> Any:
        size = [max(1, int(0.7 * n) // 2 * 2) for n in image.shape[2:]]
        return torch.nn.functional.interpolate(image, size=size)

    return original(module, *_images(args, smaller), **keywords)


def _checkpointing(original: Any, module: Any, args: Any, keywords: Any) -> Any:
    """Activations of the parts of the model are computed again in the backward pass."""
    checkpoint: Any = import_module("torch.utils.checkpoint").checkpoint
    if not module.__dict__.get("_doctor_checkpoints"):
        module.__dict__["_doctor_checkpoints"] = True
        for part in module.children():
            if any(True for _ in part.parameters()):
                part.forward = functools.partial(checkpoint, part.forward, use_reentrant=False)
    return original(module, *args, **keywords)


def _int8(original: Any, module: Any, args: Any, keywords: Any) -> Any:
    """Times inference with int8 weights in linear layers against float32; training goes on as it is."""
    if "inference" not in probe.extra:
        probe.depth += 1  # other batches are not steps
        try:
            _time_inference(original, module, (args, keywords))
        except Exception as error:  # a model that cannot be copied, for example
            probe.extra["not_possible"] = f"{type(error).__name__}: {error}"
        finally:
            probe.depth -= 1
        if "inference" not in probe.extra:
            del probe.extra["applied"]
    return original(module, *args, **keywords)


def _time_inference(original: Any, module: Any, given: Any) -> None:
    """On the CPU, where torch has int8 kernels for linear layers; the two models take turns."""
    torch: Any = sys.modules["torch"]

    if not any(isinstance(m, torch.nn.Linear) for m in module.modules()):
        raise NotPossible("the model has no linear layer")
    plain = copy.deepcopy(module).cpu().eval()
    quick = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear}, dtype=torch.qint8)
    args, keywords = _on_cpu(given)
    times: dict[str, list[float]] = {"float32": [], "int8": []}
    until = probe.clock() + INFERENCE_SECONDS
    with torch.inference_mode():
        while len(times["int8"]) < 3 or probe.clock() < until:
            for name, model in (("float32", plain), ("int8", quick)):
                t0 = probe.clock()
                original(model, *args, **keywords)
                times[name].append(1e3 * (probe.clock() - t0))
    middle = {name: statistics.median(values[1:]) for name, values in times.items()}  # the first allocates memory
    probe.extra["inference"] = {
        "float32_ms": middle["float32"],
        "int8_ms": middle["int8"],
        "gain": middle["float32"] / middle["int8"],
    }
    probe.extra.pop("not_possible", None)
    probe.end_soon()


def _on_cpu(value: Any) -> Any:
    """The same with all tensors in memory."""
    if isinstance(value, sys.modules["torch"].Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(one) for key, one in value.items()}
    return type(value)(map(_on_cpu, value)) if type(value) in (list, tuple) else value


CALLS: dict[str, Change] = {
    "amp-bf16": _amp("bfloat16"),
    "amp-fp16": _amp("float16"),
    "compile": _compile(),
    "cuda-graphs": _compile(backend="cudagraphs"),  # needs no compiler for C
    "channels-last": _channels_last,
    "small-input": _small_input,
    "checkpointing": _checkpointing,
    "int8": _int8,
}


def _loss_scaling() -> None:
    """Losses are scaled, and gradients are unscaled before the optimizer's step."""
    scalers: dict[int, Any] = {}

    def scaler() -> Any:
        torch: Any = sys.modules["torch"]

        return scalers.setdefault(0, torch.amp.GradScaler("cuda" if torch.cuda.is_available() else "cpu"))

    def of_backward(module: Any) -> None:
        original = module.backward

        def backward(tensors: Any, *args: Any, **keywords: Any) -> None:
            noted = len(probe.losses)
            original(scaler().scale(tensors) if hasattr(tensors, "numel") else tensors, *args, **keywords)
            if len(probe.losses) > noted:  # without the scale
                loss = tensors.detach()
                probe.losses[-1] = (probe.losses[-1][0], loss.item() if loss.device.type == "cpu" else loss)

        module.backward = backward

    def of_step(module: Any) -> None:
        made = module.Optimizer.__init__

        def __init__(self: Any, *args: Any, **keywords: Any) -> None:
            made(self, *args, **keywords)
            plain = self.step

            def step(*values: Any, **named: Any) -> Any:
                self.step = plain
                try:
                    result = scaler().step(self, *values, **named)
                finally:
                    self.step = step
                scaler().update()
                return result

            self.step = step

        module.Optimizer.__init__ = __init__

    after("torch.autograd", of_backward)
    after("torch.optim.optimizer", of_step)


# ---------------------------------------------------------------- other models


def _rebuilt(module: Any, change: Callable[[Any], int]) -> None:
    """Changes the model when its parameters are first asked for."""
    original = module.Module.named_parameters
    state = {"done": False}

    def named_parameters(self: Any, *args: Any, **keywords: Any) -> Any:
        if not state["done"] and sum(1 for _ in self.modules()) > 1:
            state["done"] = True
            before = sum(p.numel() for _, p in original(self))
            if not change(self):
                raise NotPossible("the model has no layer that this changes")
            after_it = sum(p.numel() for _, p in original(self))
            probe.extra.update(parameters=[before, after_it], applied=True)
        return original(self, *args, **keywords)

    module.Module.named_parameters = named_parameters


def _replace(model: Any, kind: Any, make: Callable[[Any], Any]) -> int:
    """Replaces the layers for which make() returns another one."""
    count = 0
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            other = make(layer) if isinstance(layer, kind) else None
            if other is not None:
                first = next(iter(layer.parameters()), None)
                setattr(parent, name, other.to(first.device) if first is not None else other)
                count += 1
    return count


def _depthwise(model: Any) -> int:
    torch: Any = sys.modules["torch"]

    def make(layer: Any) -> Any:
        if layer.groups != 1 or max(layer.kernel_size) < 2 or layer.in_channels < 8:
            return None
        deep = torch.nn.Conv2d(
            layer.in_channels,
            layer.in_channels,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            layer.dilation,
            groups=layer.in_channels,
            bias=False,
        )
        flat = torch.nn.Conv2d(layer.in_channels, layer.out_channels, 1, bias=layer.bias is not None)
        return torch.nn.Sequential(deep, flat)

    return _replace(model, torch.nn.Conv2d, make)


def _half_channels(model: Any) -> int:
    """Every inner width is halved; the input and the output stay."""
    torch: Any = sys.modules["torch"]

    nn = torch.nn
    layers = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    if len(layers) < 2:
        return 0
    inputs, output = layers[0], layers[-1]

    def conv(layer: Any) -> Any:
        groups = layer.groups if layer.groups != layer.in_channels else layer.in_channels // 2
        return nn.Conv2d(
            layer.in_channels if layer is inputs else layer.in_channels // 2,
            layer.out_channels if layer is output else layer.out_channels // 2,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            layer.dilation,
            groups,
            layer.bias is not None,
        )

    def linear(layer: Any) -> Any:
        return nn.Linear(
            layer.in_features if layer is inputs else layer.in_features // 2,
            layer.out_features if layer is output else layer.out_features // 2,
            layer.bias is not None,
        )

    count = _replace(model, nn.Conv2d, conv)
    count += _replace(model, nn.Linear, linear)
    _replace(model, nn.BatchNorm2d, lambda layer: nn.BatchNorm2d(layer.num_features // 2))
    _replace(model, nn.LayerNorm, lambda layer: nn.LayerNorm([n // 2 for n in layer.normalized_shape]))
    return count


REBUILT: dict[str, Callable[[Any], int]] = {"depthwise": _depthwise, "half-channels": _half_channels}


# ---------------------------------------------------------------- settings and optimizers


def _tf32() -> None:
    torch: Any = sys.modules["torch"]

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def _benchmark() -> None:
    torch: Any = sys.modules["torch"]

    torch.backends.cudnn.benchmark = True


FLAGS: dict[str, Callable[[], None]] = {"tf32": _tf32, "cudnn-benchmark": _benchmark}


def _flag(name: str) -> None:
    FLAGS[name]()
    probe.extra["applied"] = True


def _fused(module: Any) -> None:
    """Optimizers that can work on all parameters at once do so."""
    for name in ("Adam", "AdamW", "SGD"):
        kind = getattr(module, name)
        original = kind.__init__

        def __init__(self: Any, *args: Any, _original: Any = original, **keywords: Any) -> None:
            _original(self, *args, **{**keywords, "fused": True, "foreach": None})
            probe.extra["applied"] = True

        kind.__init__ = __init__


def _accumulate(module: Any) -> None:
    """Every second step of an optimizer, and every second zero_grad, is left out."""
    made = module.Optimizer.__init__

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        made(self, *args, **keywords)
        probe.extra["applied"] = True
        step, zero = self.step, self.zero_grad
        turn = {"step": 0, "zero": 0}

        def every_second(which: str, function: Any) -> Any:
            def call(*values: Any, **named: Any) -> Any:
                turn[which] += 1
                if turn[which] % 2 == 0:
                    return function(*values, **named)
                return values[0]() if which == "step" and values and callable(values[0]) else None

            return call

        self.step, self.zero_grad = every_second("step", step), every_second("zero", zero)

    module.Optimizer.__init__ = __init__


def _no_sync(module: Any) -> None:
    """A value of a device is read once per place, and then repeated."""
    known: dict[str, Any] = {}
    for name in ("item", "tolist", "__float__", "__bool__"):
        original = getattr(module.Tensor, name)

        def call(self: Any, _original: Any = original, _name: str = name) -> Any:
            if self.device.type == "cpu" or self.numel() != 1:
                return _original(self)
            probe.extra["applied"] = True
            place = f"{_name} {probe.place()}"
            if place not in known:
                known[place] = _original(self)
            return known[place]

        setattr(module.Tensor, name, call)


def _local_gradients(module: Any) -> None:
    original = module.DistributedDataParallel.forward

    def forward(self: Any, *args: Any, **keywords: Any) -> Any:
        self.require_backward_grad_sync = False
        probe.extra["applied"] = True
        return original(self, *args, **keywords)

    module.DistributedDataParallel.forward = forward


# ---------------------------------------------------------------- Keras


def _keras_policy(name: str) -> Callable[[Any], None]:
    def set_policy(keras: Any) -> None:
        keras.mixed_precision.set_global_policy(name)
        probe.extra["applied"] = True

    return set_policy


def _keras_jit(keras: Any) -> None:
    original = keras.Model.compile

    def compile(self: Any, *args: Any, **keywords: Any) -> None:
        original(self, *args, **{**keywords, "jit_compile": True})
        probe.extra["applied"] = True

    keras.Model.compile = compile


KERAS: dict[str, Callable[[Any], None]] = {
    "amp-bf16": _keras_policy("mixed_bfloat16"),
    "amp-fp16": _keras_policy("mixed_float16"),
    "compile": _keras_jit,
}
