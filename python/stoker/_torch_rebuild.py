# SPDX-License-Identifier: Apache-2.0
"""Rebuilds loaders: a DataLoader of Stoker's from one of torch's, and from the arguments that accelerate copies.

Lightning rebuilds a loader with the loader's own class. accelerate takes torch's class, and copies every argument that
torch knows. So one of these, pin_memory_device, carries Stoker's own arguments, and a hook in accelerate reads them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from ._errors import usage
from ._output import framework

data: Any = framework("torch.utils.data")
WRAPPERS = ("base_dataloader", "loader")  # where accelerate's and timm's wrappers keep the loader


class Device(str):
    """The pin_memory_device of Stoker's loaders: the same text, with Stoker's own arguments."""

    own: dict[str, Any]


def device(text: str, own: dict[str, Any]) -> Device:
    made = Device(text)
    made.own = own
    return made


def arguments_of(loader: Any) -> dict[str, Any]:
    """Torch's arguments that make the same loader again.

    >>> from torch.utils.data import DataLoader
    >>> found = arguments_of(DataLoader([1, 2, 3], batch_size=2, shuffle=True))
    >>> found["batch_size"], type(found["sampler"]).__name__, found["collate_fn"]
    (2, 'RandomSampler', None)
    """
    order = {"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"}
    names = set(inspect.signature(data.DataLoader.__init__).parameters) - order - {"self"}
    arguments = {name: getattr(loader, name) for name in names}
    arguments["pin_memory_device"] = str(loader.pin_memory_device)
    if loader.collate_fn is (data.default_collate if loader._auto_collation else data.default_convert):
        arguments["collate_fn"] = None
    if isinstance(loader.dataset, data.IterableDataset):
        return {**arguments, "batch_size": loader.batch_size, "drop_last": loader.drop_last}
    batches = loader.batch_sampler
    if batches is None:
        return {**arguments, "batch_size": None, "sampler": loader.sampler}
    if loader.batch_size is None or batches.sampler is not loader.sampler:
        return {**arguments, "batch_sampler": batches}
    return {
        **arguments,
        "batch_size": loader.batch_size,
        "sampler": loader.sampler,
        "drop_last": loader.drop_last,
    }


def from_torch(cls: Any, loader: Any, own: dict[str, Any]) -> Any:
    """A loader of class cls, or the wrapper that was given, around one."""
    for name in WRAPPERS:
        if isinstance(getattr(loader, "__dict__", {}).get(name), data.DataLoader):
            _replace(cls, loader, name, own)
            return loader
    kind = type(loader)
    if kind is cls and not own:
        return loader
    if not isinstance(loader, data.DataLoader):
        raise usage(
            "from_torch() takes torch's DataLoader, or a loader that accelerate or timm made, "
            f"but this is a {kind.__name__}"
        )
    theirs = data.DataLoader
    if kind is not cls and (kind.__iter__, kind._get_iterator) != (theirs.__iter__, theirs._get_iterator):
        raise usage(f"{kind.__name__} changes how torch's loader iterates; from_torch() cannot keep that")
    return cls(**{**arguments_of(loader), **getattr(loader.pin_memory_device, "own", {}), **own})


def _replace(cls: Any, wrapper: Any, name: str, own: dict[str, Any]) -> None:
    made = from_torch(cls, getattr(wrapper, name), own)
    setattr(wrapper, name, made)
    if name == "base_dataloader":
        keep_class_in_accelerate(cls)
        wrapper.dl_state_dict = made.state_dict()
        made._warned = True  # accelerate divides the samples


def keep_class_in_accelerate(cls: Any) -> None:
    """From now on, a loader of class cls stays one when accelerate prepares it or skips its first batches."""
    adapter = getattr(sys.modules.get("accelerate.data_loader"), "DataLoaderAdapter", None)
    if adapter is None or hasattr(adapter, "_keeps_stoker"):
        return
    build = adapter.__init__

    @functools.wraps(build)
    def keep(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        base = self.base_dataloader
        if type(base) is data.DataLoader and isinstance(base.pin_memory_device, Device):
            _replace(cls, self, "base_dataloader", {})

    adapter.__init__, adapter._keeps_stoker = keep, True
