# SPDX-License-Identifier: Apache-2.0
"""Keeps a run from leaving anything behind.

What the script saves goes to a scratch folder when it runs as it is, so that the time it takes is seen, and nowhere in
other runs. Trackers are told to be offline. Files below the script's folder that Python opens for writing are written
to the scratch folder. What cannot be caught so is listed.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

from . import probe
from .hooks import after

# Functions that save, by module; the index of the argument that is a path, or None.
SAVES: tuple[tuple[str, str, int | None], ...] = (
    ("torch.serialization", "save", 1),
    ("torch.distributed.checkpoint.state_dict_saver", "save", None),
    ("safetensors.torch", "save_file", 1),
    ("safetensors.numpy", "save_file", 1),
    ("lightning.pytorch.trainer.trainer", "Trainer.save_checkpoint", 1),
    ("pytorch_lightning.trainer.trainer", "Trainer.save_checkpoint", 1),
    ("accelerate.accelerator", "Accelerator.save_state", 1),
    ("accelerate.accelerator", "Accelerator.save_model", None),
    ("transformers.trainer", "Trainer._save_checkpoint", None),
    ("transformers.trainer", "Trainer.save_model", None),
    ("transformers.modeling_utils", "PreTrainedModel.save_pretrained", 1),
    ("transformers.modeling_utils", "PreTrainedModel.push_to_hub", None),
    ("keras.src.models.model", "Model.save", 1),
    ("keras.src.models.model", "Model.save_weights", 1),
    ("keras.src.models.model", "Model.export", None),
    ("tensorflow.python.checkpoint.checkpoint", "Checkpoint.save", 1),
    ("tensorflow.python.checkpoint.checkpoint", "Checkpoint.write", 1),
    ("tensorflow.python.saved_model.save", "save", 1),
    ("flax.training.checkpoints", "save_checkpoint", 0),
    ("orbax.checkpoint.checkpoint_manager", "CheckpointManager.save", None),
)
PATHS = "f filename filepath path output_dir save_directory directory file_prefix export_dir ckpt_dir".split()
WRITERS = (  # classes of event files, and the argument that is their folder
    ("torch.utils.tensorboard.writer", "SummaryWriter", "log_dir"),
    ("tensorboardX.writer", "SummaryWriter", "logdir"),
)
TRACKERS = {  # modules, and what is set so that they report nothing
    "wandb": {"WANDB_MODE": "disabled"},
    "mlflow": {"MLFLOW_TRACKING_URI": "file:{scratch}/mlruns"},
    "comet_ml": {"COMET_MODE": "disabled", "COMET_START_MODE": "offline"},
    "neptune": {"NEPTUNE_MODE": "debug"},
    "clearml": {"CLEARML_OFFLINE_MODE": "1"},
    "aim": {"AIM_TRACKING_SERVER_ENABLED": "0"},
}
MOST = 20  # things that are listed
written: dict[str, str] = {}  # files of the script, and where they are instead
open_here = builtins.open
seen: dict[str, None] = {}  # what was not caught


def install(plan: dict[str, Any]) -> None:
    scratch = str(plan["scratch"])
    os.makedirs(scratch, exist_ok=True)
    for module, names in TRACKERS.items():
        os.environ.update({key: value.format(scratch=scratch) for key, value in names.items()})
        after(module, functools.partial(_tracker, name=module))
    for module, path, argument in SAVES:
        after(module, functools.partial(_save, path=path, argument=argument))
    after("torch", _torch_save)
    for module, name, argument_name in WRITERS:
        after(module, functools.partial(_writer, name=name, argument=argument_name))
    _files()
    sys.addaudithook(_audit)
    probe.at_finish.append(lambda: probe.extra.update(not_caught=list(seen)))


def note(what: str) -> None:
    if len(probe.disabled) < MOST:
        probe.disabled[what] = None


def as_it_is() -> bool:
    return probe.plan.get("mode") == "as-is"


def elsewhere(path: Any) -> str:
    """The path in the scratch folder that stands for a path of the script."""
    full = os.path.abspath(os.fspath(path))
    return written.setdefault(full, probe.plan["scratch"] + full)


# ---------------------------------------------------------------- saving


def _save(module: Any, path: str, argument: int | None) -> None:
    owner: Any = module
    *names, last = path.split(".")
    for name in names:
        owner = getattr(owner, name)
    name = f"{module.__name__.partition('.')[0]}.{path}"
    setattr(owner, last, _quiet(getattr(owner, last), name, argument))


def _torch_save(module: Any) -> None:
    module.save = sys.modules["torch.serialization"].save


_saving = 0


def _quiet(original: Callable[..., Any], name: str, argument: int | None) -> Callable[..., Any]:
    """The function that saves: somewhere else, or not at all."""

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        global _saving
        if os.getpid() != probe.pid or _saving:
            return original(*args, **keywords)
        place = probe.place()
        note(f"{name} at {place}" if place else name)
        if not as_it_is() or argument is None:
            return None
        changed = list(args)
        if len(args) > argument:
            changed[argument] = redirect(args[argument])
        keywords = {key: redirect(value) if key in PATHS else value for key, value in keywords.items()}
        t0 = probe.clock()
        _saving += 1
        try:
            return original(*changed, **keywords)
        finally:
            _saving -= 1
            probe.stalls.append(("checkpoint", place, t0, probe.clock()))

    return call


def redirect(path: Any) -> Any:
    """A path in the scratch folder; anything else is returned as it is."""
    if not isinstance(path, str | os.PathLike):
        return path
    other = elsewhere(path)
    os.makedirs(os.path.dirname(other), exist_ok=True)
    return other


def _writer(module: Any, name: str, argument: str) -> None:
    owner = getattr(module, name)
    original = owner.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        note(f"{name} at {probe.place()}")
        keywords.pop(argument, None)
        original(self, os.path.join(probe.plan["scratch"], "events"), *args[1:], **keywords)

    owner.__init__ = __init__


def _tracker(module: Any, name: str) -> None:
    note(name)


# ---------------------------------------------------------------- files


def is_mine(path: str) -> bool:
    """Whether a path is below the folder that the script was started in, or below the script's own."""
    roots = {str(probe.plan["folder"]), os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv else ""}
    here = any(root and path.startswith(root + os.sep) for root in roots)
    own = path.startswith((str(probe.plan["scratch"]), str(probe.plan["out"])))
    return here and not own and "__pycache__" not in path


def _files() -> None:
    """open() for writing, and what moves and removes files, below the script's folder."""

    @functools.wraps(open_here)
    def redirected(file: Any, mode: str = "r", *args: Any, **keywords: Any) -> Any:
        if isinstance(file, str | os.PathLike) and isinstance(mode, str):
            full = os.path.abspath(os.fspath(file))
            if full in written and os.path.exists(written[full]):
                return open_here(written[full], mode, *args, **keywords)
            if set(mode) & set("wax+") and is_mine(str(full)):
                other = elsewhere(full)
                os.makedirs(os.path.dirname(other), exist_ok=True)
                if not set(mode) & set("wx") and os.path.exists(full):
                    shutil.copyfile(full, other)
                note(f"writing {probe.short(str(full))}")
                return open_here(other, mode, *args, **keywords)
        return open_here(file, mode, *args, **keywords)

    builtins.open = redirected
    io.open = redirected
    for name in ("remove", "unlink"):
        setattr(os, name, _kept(getattr(os, name), name))
    for name in ("rename", "replace"):
        setattr(os, name, _moved(getattr(os, name), name))
    shutil.rmtree = _kept(shutil.rmtree, "rmtree")  # type: ignore[assignment]


def _kept(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Removes what this run wrote, and nothing else of the script's folder."""

    @functools.wraps(original)
    def call(path: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(path, str | os.PathLike) and not keywords.get("dir_fd"):
            full = str(os.path.abspath(os.fspath(path)))
            if full in written:
                return original(written.pop(full), *args, **keywords)
            if is_mine(full):
                note(f"removing {probe.short(full)}")
                return None
        return original(path, *args, **keywords)

    return call


def _moved(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(source: Any, target: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(source, str | os.PathLike) and isinstance(target, str | os.PathLike):
            first, second = (str(os.path.abspath(os.fspath(p))) for p in (source, target))
            if first in written:
                other = elsewhere(second)
                os.makedirs(os.path.dirname(other), exist_ok=True)
                return original(written.pop(first), other, *args, **keywords)
            if is_mine(first) or is_mine(second):
                note(f"moving {probe.short(first)}")
                return None
        return original(source, target, *args, **keywords)

    return call


# ---------------------------------------------------------------- what is not caught

HARMLESS = ("/dev/", "/proc/", "/sys/", "/tmp/", "/var/tmp/", "/run/")


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Python calls this for files, processes and connections, also for those that C code of Python makes."""
    if event == "open":
        _seen_open(args)
    elif event == "subprocess.Popen" and probe.loops:
        _list(f"starts {args[0]}")
    elif event == "os.mkdir":
        full = os.path.abspath(os.fsdecode(args[0])) if isinstance(args[0], str | bytes | os.PathLike) else ""
        if full and is_mine(full) and not os.path.exists(full):
            probe.extra.setdefault("folders", []).append(full)
    elif (
        event == "socket.connect" and probe.loops and isinstance(args[1], tuple) and args[1] and args[1][0] not in LOCAL
    ):
        _list(f"connects to {args[1][0]}")


LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def _seen_open(args: tuple[Any, ...]) -> None:
    path, mode, flags = args
    writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) and isinstance(path, str)
    if not writes or os.getpid() != probe.pid:
        return
    full = os.path.abspath(path)
    cache = os.path.expanduser("~/.cache")
    if full.startswith((*HARMLESS, cache, probe.plan["scratch"], probe.plan["out"])) or "__pycache__" in full:
        return
    _list(f"writes {full}")


def _list(what: str) -> None:
    if os.getpid() == probe.pid and len(seen) < MOST:
        seen[what[:200]] = None
