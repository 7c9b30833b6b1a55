# SPDX-License-Identifier: Apache-2.0
"""Every public name has an example in its documentation, and every example runs."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest
import stoker
from conftest import import_torchvision

MODULES = ["stoker"] + [f"stoker.{m.name}" for m in pkgutil.iter_modules(stoker.__path__) if m.name != "_stoker"]
OPTIONAL = {"stoker.data_loader", "stoker._compare", "stoker._torch_iter", "stoker._torch_rebuild"}
RESULTS = ["_show.Sheet", "_compare.Comparison"]  # what public functions return


def absent(example):
    """A framework that the example imports and that is not here."""
    for name in re.findall(r"(?:import|from) (torchvision|tensorflow|keras)\b", example.docstring):
        try:
            import_torchvision() if name == "torchvision" else importlib.import_module(name)
        except ImportError:
            return name
    return None


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, photos, tmp_path):
    if name in OPTIONAL:
        pytest.importorskip("torch", reason="torch is not installed")
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    names = {"photos": str(photos), "tmp": tmp_path, "stoker": stoker}
    without = set()
    for example in doctest.DocTestFinder().find(importlib.import_module(name), extraglobs=names):
        if absent(example):
            without.add(absent(example))
        else:
            runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    if without:
        pytest.skip(f"all but the examples with {', '.join(without)}, which is not installed")


def public():
    """Names and what they are: all that users see, with the public members of classes."""
    things = {name: getattr(stoker, name) for name in (*stoker.__all__, *stoker._LATER)}
    for name in RESULTS:
        module, _, thing = name.partition(".")
        things[thing] = getattr(importlib.import_module(f"stoker.{module}"), thing)
    for name, thing in things.items():
        yield name, thing
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                yield f"{name}.{member}", value


def test_every_public_name_has_an_example():
    pytest.importorskip("torch", reason="torch is not installed")
    parser = doctest.DocTestParser()
    missing = []
    for name, thing in public():
        doc = inspect.getdoc(thing) or ""
        if all(example.options.get(doctest.SKIP) for example in parser.get_examples(doc)):
            missing.append(name)
    assert missing == []


def test_the_walk_finds_what_it_should():
    names = dict(public())
    assert {"Loader.state_dict", "Source.split", "Stats.waited", "DataLoader.explain", "info", "compare"} <= set(names)
