# SPDX-License-Identifier: Apache-2.0
"""Python imports this before the user's script, because the doctor puts this folder first on PYTHONPATH.

It starts the probe, and then the environment's own sitecustomize, which this one hides.
"""

import os
import sys
from importlib import import_module


def _next_one() -> None:
    """Runs the sitecustomize that Python would have found without this folder."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec and spec.loader:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("STOKER_DOCTOR_PLAN"):
    try:
        import_module("stoker_doctor").start(os.environ["STOKER_DOCTOR_PLAN"])
    except Exception:  # the script runs in any case; the doctor reports that it saw nothing
        import traceback

        traceback.print_exc()
_next_one()
