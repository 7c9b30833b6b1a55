# SPDX-License-Identifier: Apache-2.0
"""Compares what peers deliver with Pillow's, so that nobody wins by doing less; runs in Stoker's environment.

pixels.py REFERENCE.npy PEER.npy ...    prints one JSON document; the last image of each is the noise
"""

import json
import sys
from pathlib import Path

import numpy as np
import protocol

ROUNDING = 0.01  # of a level: what normalising in another order of operations may differ by


def levels(file: str) -> np.ndarray:
    """Batches as levels of 0..255, before normalising."""
    std, mean = (np.array(v, np.float32)[None, :, None, None] for v in (protocol.STD_LEVELS, protocol.MEAN_LEVELS))
    return np.load(file) * std + mean


def compare(ours: np.ndarray, reference: np.ndarray) -> dict:
    difference = np.abs(ours[:-1] - reference[:-1])
    return {
        "mean": float(difference.mean()),
        "max": float(difference.max()),
        "same": bool(difference.max() < ROUNDING),
        # A fourth of the size: the std of noise is 1.5 times Pillow's with a box filter, 3 times without any filter.
        "antialiased": bool(ours[-1].std() < 2 * reference[-1].std()),
    }


if __name__ == "__main__":
    reference = levels(sys.argv[1])
    print(json.dumps({Path(file).stem: compare(levels(file), reference) for file in sys.argv[2:]}))
