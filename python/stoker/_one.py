# SPDX-License-Identifier: Apache-2.0
"""One sample of a source, with all its fields, without a loader of the user's."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _stoker
from ._batch import Form
from ._errors import UsageError
from ._ragged import row_of

IDLE = {"sampled": 1, "threads": 1, "batch_size": 1, "memory": 64 << 20}


class One:
    """Reads samples one at a time."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._lock, self._pid = threading.Lock(), os.getpid()
        try:  # a picture has no common size: the smallest crop of it stands for it here
            self._handle = _stoker.Loader({**options, **IDLE, "ops": "CenterCrop(1)"})
        except UsageError as error:
            if "ops need images" not in str(error):
                raise
            self._handle = _stoker.Loader({**options, **IDLE})
        self._form = Form(self._handle, None, (), True, "numpy", "NCHW", None, None, None)
        self._images = [name for name, c in zip(self._form.names, self._form.columns, strict=True) if c.kind == "image"]

    @property
    def is_mine(self) -> bool:
        """Whether this process opened it: its thread is not in a forked child."""
        return self._pid == os.getpid()

    @property
    def only_pictures(self) -> bool:
        """Whether samples are pictures, and have at most a label."""
        return bool(self._images) and set(self._form.names) <= {"image", "label"}

    def fields(self, number: int, picture: Callable[[int], Any]) -> dict[str, Any]:
        with self._lock:
            batch = self._form.copy(self._handle.get(np.array([number], np.int64), None, 0))
            rows = {name: row_of(value, 0) for name, value in batch.items()}
            return {**rows, **{name: picture(number) for name in self._images}}
