# SPDX-License-Identifier: Apache-2.0
"""The what-ifs, as changes to the libraries that the script uses."""

from __future__ import annotations

from typing import Any

from . import probe
from .hooks import after


def install(plan: dict[str, Any]) -> None:
    name, _, value = str(plan.get("what_if") or "").partition("=")
    if name == "stoker":
        after("torch.utils.data.dataloader", _stoker)


def _stoker(module: Any) -> None:
    """Every loader of torch's iterates through Stoker's DataLoader."""
    original = module.DataLoader.__iter__

    def __iter__(self: Any) -> Any:
        if type(self).__module__.startswith("stoker.") or not probe.is_watching():
            return original(self)
        other = self.__dict__.get("_doctor_stoker")
        if other is None:
            import stoker

            other = stoker.DataLoader.from_torch(self)
            object.__setattr__(self, "_doctor_stoker", other)
            object.__setattr__(other, "_doctor_at", self.__dict__.get("_doctor_at"))
        return iter(other)

    module.DataLoader.__iter__ = __iter__
