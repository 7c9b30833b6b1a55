# SPDX-License-Identifier: Apache-2.0
"""Keeps a run from leaving anything behind.

When the script runs as it is, checkpoints go to the scratch folder, so that the time they take is seen. In other runs,
they are not written. Trackers are set to offline mode. What Python changes below the script's folder is changed in a
copy (files.py). Everything else is listed.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

from . import files, probe
from .files import MOST, SYSTEM, absolute, is_apart, is_mine, note
from .hooks import after

# Functions that save, by module; the index of the argument that is a path, None if the path is known only inside.
NEVER = -1  # not even when the script runs as it is
SAVES: tuple[tuple[str, str, int | None], ...] = (
    ("torch.serialization", "save", 1),
    ("torch.distributed.checkpoint.state_dict_saver", "save", None),
    ("safetensors.torch", "save_file", 1),
    ("safetensors.numpy", "save_file", 1),
    ("lightning.pytorch.trainer.trainer", "Trainer.save_checkpoint", 1),
    ("pytorch_lightning.trainer.trainer", "Trainer.save_checkpoint", 1),
    ("accelerate.accelerator", "Accelerator.save_state", 1),
    ("accelerate.accelerator", "Accelerator.save_model", 2),
    ("transformers.trainer", "Trainer._save_checkpoint", None),
    ("transformers.trainer", "Trainer.save_model", None),
    ("transformers.modeling_utils", "PreTrainedModel.save_pretrained", 1),
    ("transformers.modeling_utils", "PreTrainedModel.push_to_hub", NEVER),
    ("keras.src.models.model", "Model.save", 1),
    ("keras.src.models.model", "Model.save_weights", 1),
    ("keras.src.models.model", "Model.export", 1),
    ("tensorflow.python.checkpoint.checkpoint", "Checkpoint.save", 1),
    ("tensorflow.python.checkpoint.checkpoint", "Checkpoint.write", 1),
    ("tensorflow.python.saved_model.save", "save", 1),
    ("flax.training.checkpoints", "save_checkpoint", 0),
    ("orbax.checkpoint", "CheckpointManager.save", NEVER),  # it writes with C++ where it was told when it was made
    ("orbax.checkpoint", "Checkpointer.save", 1),
    ("orbax.checkpoint", "AsyncCheckpointer.save", 1),
)
PATHS = "f filename filepath path output_dir save_directory directory file_prefix export_dir ckpt_dir".split()
TRACKERS = {  # what is set so that they report nothing
    "WANDB_MODE": "disabled",
    "MLFLOW_TRACKING_URI": "file:{scratch}/mlruns",
    "COMET_START_ONLINE": "0",
    "COMET_OFFLINE_DIRECTORY": "{scratch}/comet",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "TRACKIO_DIR": "{scratch}/trackio",
    "TRACKIO_SPACE_ID": "",
    "TRACKIO_SERVER_URL": "",
}
# Functions that begin to write or to report, and the arguments they get, because those of the script come before the
# environment.
FORCED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("torch.utils.tensorboard.writer", "SummaryWriter.__init__", {"log_dir": "{scratch}/events"}),
    ("tensorboardX.writer", "SummaryWriter.__init__", {"logdir": "{scratch}/events"}),
    ("tensorflow.python.ops.summary_ops_v2", "create_file_writer_v2", {"logdir": "{scratch}/events"}),
    ("wandb", "init", {"mode": "disabled"}),
    ("mlflow", "set_tracking_uri", {"uri": "file:{scratch}/mlruns"}),
    ("mlflow", "start_run", {}),
    ("mlflow.tracking.client", "MlflowClient.__init__", {"tracking_uri": "file:{scratch}/mlruns"}),
    ("comet_ml", "start", {"online": False}),
    ("comet_ml", "Experiment.__init__", {"disabled": True}),
    ("neptune", "init_run", {"mode": "debug"}),
    ("clearml", "Task.init", {}),
    ("aim", "Run.__init__", {"repo": "{scratch}/aim"}),
    ("swanlab", "init", {"mode": "disabled"}),
    ("trackio", "init", {"space_id": None, "server_url": None}),
)
uncaught: dict[str, None] = {}


def install(plan: dict[str, Any]) -> None:
    scratch = str(plan["scratch"])
    os.environ.update({name: value.format(scratch=scratch) for name, value in TRACKERS.items()})
    for module, path, argument in SAVES:
        after(module, functools.partial(_save, path=path, argument=argument))
    after("torch", _torch_save)
    for module, path, values in FORCED:
        after(module, functools.partial(_force, path=path, values=values))
    sys.addaudithook(_audit)
    probe.at_finish.append(lambda: probe.extra.update(not_caught=list(uncaught)))


def as_it_is() -> bool:
    return probe.plan.get("mode") == "as-is"


# ---------------------------------------------------------------- saving


def _owner(module: Any, path: str) -> tuple[Any, str]:
    """The module or class that has a function, and the function's name there."""
    *names, last = path.split(".")
    return functools.reduce(getattr, names, module), last


def _save(module: Any, path: str, argument: int | None) -> None:
    owner, last = _owner(module, path)
    name = f"{module.__name__.partition('.')[0]}.{path}"
    setattr(owner, last, _quiet(getattr(owner, last), name, argument))


def _torch_save(module: Any) -> None:
    module.save = sys.modules["torch.serialization"].save


def _quiet(original: Callable[..., Any], name: str, argument: int | None) -> Callable[..., Any]:
    """The function that saves: somewhere else, or not at all."""

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        if os.getpid() != probe.pid:
            return original(*args, **keywords)
        place = probe.place()
        if not files.everywhere:
            note(f"{name} at {place}" if place else name)
        if not as_it_is() or argument == NEVER:
            given = args[argument : argument + 1] if argument is not None else ()
            _note_unsaved(*given, *(keywords[key] for key in PATHS if key in keywords))
            return None
        changed = list(args)
        if argument is not None and len(args) > argument:
            changed[argument] = redirect(args[argument])
        keywords = {key: redirect(value) if key in PATHS else value for key, value in keywords.items()}
        if not files.everywhere:  # else another function that saves has called this one
            probe.begin_stall("checkpoint", place)
        files.everywhere += 1
        try:
            return original(*changed, **keywords)
        finally:
            files.everywhere -= 1
            if not files.everywhere:
                probe.end_stall("checkpoint")

    return call


def _note_unsaved(*paths: Any) -> None:
    """The script may look for these files later: then runner.py says why they are missing."""
    with files.open_here(os.path.join(probe.plan["out"], "unsaved"), "ab") as file:
        for full in filter(None, map(absolute, paths)):
            file.write(os.fsencode(full) + b"\0")


def redirect(path: Any) -> Any:
    """A path in the scratch folder; anything else is returned as it is."""
    full = absolute(path)
    if full is None or is_apart(full):
        return path
    files.adopt(full)
    return files.new(full)


def _force(module: Any, path: str, values: dict[str, Any]) -> None:
    """Calls a function with these values for its parameters, whatever the script passes."""
    name = f"{module.__name__.partition('.')[0]}.{path.removesuffix('.__init__')}"
    try:
        owner, last = _owner(module, path)
        original = getattr(owner, last)
        signature = inspect.signature(original)
    except (AttributeError, ValueError, TypeError):  # another version
        return _list(f"uses {name}")

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        place = probe.place()
        note(f"{name} at {place}" if place else name)
        known = signature.bind(*args, **keywords)
        for key, value in values.items():
            if key in signature.parameters:
                words = value.format(scratch=probe.plan["scratch"]) if isinstance(value, str) else value
                known.arguments[key] = words
        return original(*known.args, **known.kwargs)

    setattr(owner, last, call)


# ---------------------------------------------------------------- what is not caught

LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
COMMANDS = {  # events of Python, and the argument that is the command
    "subprocess.Popen": 1,
    "os.system": 0,
    "os.exec": 1,
    "os.posix_spawn": 1,
    "os.spawn": 2,
}


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Python calls this for files, processes and connections, also for those that C code of Python makes."""
    if event == "open":
        _opened(*args)
    elif event == "os.rename":
        _opened(args[1], None, os.O_CREAT)
    elif event == "sqlite3.connect":
        if ":memory:" not in str(args[0]) and "mode=ro" not in str(args[0]):
            _opened(args[0], None, os.O_CREAT)
    elif event in COMMANDS:
        if probe.loops or _is_called_by_script():
            words = args[COMMANDS[event]]
            words = [words] if isinstance(words, str | bytes | os.PathLike) else words
            texts = (word.decode(errors="replace") if isinstance(word, bytes) else str(word) for word in words)
            _list(f"starts {' '.join(texts)}")
    elif event == "socket.connect" and probe.loops and isinstance(args[1], tuple) and args[1]:
        if args[1][0] not in LOCAL:
            _list(f"connects to {args[1][0]}")


def _is_called_by_script() -> bool:
    """Whether the script itself called the function of Python's library that is running, and not another library."""
    frame: Any = sys._getframe(2)
    while frame is not None and _is_standard(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and not probe.is_library(frame.f_code.co_filename)


def _is_standard(path: str) -> bool:
    return path.startswith((probe.STD, probe.HERE, "<frozen")) and "-packages" not in path


def _opened(path: Any, _: Any, flags: Any) -> None:
    """A file that is opened for writing where it is."""
    full = absolute(path) if isinstance(flags, int) and flags & files.CHANGES else None
    if full is None or os.getpid() != probe.pid or is_apart(full):
        return
    if files.is_folder(full) or not files.is_folder(os.path.dirname(full)):  # a file without a name, or an error
        return
    if is_mine(full) or not full.startswith(SYSTEM):
        _list(f"writes {full}")


def _list(what: str) -> None:
    if os.getpid() == probe.pid and len(uncaught) < MOST:
        uncaught[what[:200]] = None
