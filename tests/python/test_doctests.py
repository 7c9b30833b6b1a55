# SPDX-License-Identifier: Apache-2.0
"""Every example in the documentation of every name."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
import stoker

MODULES = ["stoker"] + [f"stoker.{m.name}" for m in pkgutil.iter_modules(stoker.__path__) if m.name != "_stoker"]
OPTIONAL = {"stoker.data_loader", "stoker.torchvision", "stoker._compare"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, photos):
    if name in OPTIONAL:
        pytest.importorskip("torch", reason="torch is not installed")
    module = importlib.import_module(name)
    result = doctest.testmod(
        module, extraglobs={"photos": str(photos), "stoker": stoker}, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert result.failed == 0


def test_every_public_name_has_an_example():
    missing = []
    for name in stoker.__all__:
        thing = getattr(stoker, name)
        if not inspect.isclass(thing) and not callable(thing):
            continue
        if name in ("info", "Listing"):
            continue
        if ">>>" not in (thing.__doc__ or ""):
            missing.append(name)
        for member, value in vars(thing).items() if inspect.isclass(thing) and thing is stoker.Loader else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                doc = (value.fget if isinstance(value, property) else value).__doc__ or ""
                if ">>>" not in doc and member != "as_tf_dataset":
                    missing.append(f"Loader.{member}")
    assert missing == []
