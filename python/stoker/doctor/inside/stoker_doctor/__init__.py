# SPDX-License-Identifier: Apache-2.0
"""The part of the doctor that runs inside the user's process. It imports nothing but the standard library by itself.

A plan (a JSON file) says what this run is: as it is, the model alone, the loader alone, or a what-if.
A process that sees a training loop writes a record (another JSON file) and ends.
"""

from __future__ import annotations

import json


def start(path: str) -> None:
    """Installs the hooks that the plan asks for; they work when the script imports the libraries."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    from . import files, probe

    files.install(plan)  # first: other modules keep functions such as os.unlink when they are imported
    probe.begin(plan)
    from . import hooks

    hooks.install(plan)
