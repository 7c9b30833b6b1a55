# SPDX-License-Identifier: Apache-2.0
"""rows_hdf5.py FOLDER FILE -- images.npy and labels.npy of a folder as an HDF5 file of rows."""

import sys
from pathlib import Path

import h5py
import numpy as np

folder, file = map(Path, sys.argv[1:])
part = file.with_suffix(".part")
with h5py.File(part, "w") as out:
    out["image"] = np.load(folder / "images.npy")
    out["label"] = np.load(folder / "labels.npy")
part.rename(file)
