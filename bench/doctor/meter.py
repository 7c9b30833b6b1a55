# SPDX-License-Identifier: Apache-2.0
"""The arguments of every script of bench/doctor, and its own speed, for any framework.

`--fixed` makes the change by hand where the doctor's change is not a patch. `--seconds N` ends the training after N
seconds and prints samples/s; without it training goes on until the doctor ends it.
"""

import argparse
import os
import time

_parser = argparse.ArgumentParser()
_parser.add_argument("--fixed", action="store_true")
_parser.add_argument("--seconds", type=float, default=1e9)
given = _parser.parse_args()
FIXED = given.fixed
WARM = 4  # steps that are not counted


class Meter:
    """Counts samples, and ends the script when its time is over."""

    period = 1  # ends after so many steps, or a multiple of that: a script may pause after them

    def __init__(self) -> None:
        self.steps = self.samples = 0
        self.start = time.perf_counter()

    def count(self, samples: int) -> None:
        self.steps += 1
        if self.steps == WARM:
            self.start = time.perf_counter()
        elif self.steps > WARM:
            self.samples += samples
            seconds = time.perf_counter() - self.start
            if seconds > given.seconds and (self.steps - WARM) % self.period == 0:
                os.write(1, f"samples/s {self.samples / seconds:.3f}\n".encode())  # a whole line, also of two ranks
                os._exit(0)  # workers and loaders are not waited for


meter = Meter()
