# SPDX-License-Identifier: Apache-2.0
"""Changes libraries when the script imports them: clocks on loaders, and what a what-if asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

After = Callable[[Any], None]
table: dict[str, list[After]] = {}


class _Then(Loader):
    """Runs functions after a module was loaded."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader, self._name = loader, name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _done(self._name, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _done(name: str, module: ModuleType) -> None:
    for function in table.get(name, ()):
        _call(function, name, module)


def _call(function: After, name: str, module: Any) -> None:
    """A hook that fails, for a library of another version, leaves the script as it is."""
    try:
        function(module)
    except Exception as error:
        from . import probe

        probe.extra.setdefault("hooks", []).append(f"{name}: {type(error).__name__}: {error}")


class _Finder(MetaPathFinder):
    """Finds the modules of the table with the other finders, and adds what follows."""

    def __init__(self) -> None:
        self._inside: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in table or fullname in self._inside:
            return None
        self._inside.add(fullname)
        try:
            spec = find_spec(fullname)
        except (ImportError, ValueError):
            return None
        finally:
            self._inside.discard(fullname)
        if spec and spec.loader:
            spec.loader = _Then(spec.loader, fullname)
        return spec


def after(name: str, function: After) -> None:
    """Calls function(module) when the module has been imported, at once if it was before."""
    table.setdefault(name, []).append(function)
    if name in sys.modules:
        _call(function, name, sys.modules[name])


_installed: list[str] = []


def install_clocks() -> None:
    """Clocks only, once per process; they have no effect outside a measurement."""
    from . import device, keras_fit, loaders

    if not _installed:
        _installed.append("clocks")
        loaders.install()
        device.install()
        keras_fit.install()
        sys.meta_path.insert(0, _Finder())


def install(plan: dict[str, Any]) -> None:
    from . import probe, quiet, what_ifs

    install_clocks()
    quiet.install(plan)
    try:
        what_ifs.install(plan)
    except what_ifs.NotPossible as error:
        probe.extra["not_possible"] = str(error)
