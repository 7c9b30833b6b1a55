# SPDX-License-Identifier: Apache-2.0
"""Reading and decoding whole images in one thread: Stoker against Pillow, image by image in turn.

formats.py ROUNDS NAME=FOLDER ...    prints one JSON document
"""

import json
import statistics
import sys
import time

import numpy as np
import protocol
import stoker
from PIL import Image


def measure(folder: str, rounds: int) -> dict[str, float | bool]:
    paths = [path for path, _ in protocol.list_samples(folder)]
    source = stoker.Source(folder)
    ours, pillow, same = [], [], True
    for _ in range(rounds):
        seconds = [0.0, 0.0]
        for i, path in enumerate(paths):
            begun = time.perf_counter()
            image = source[i]
            middle = time.perf_counter()
            with Image.open(path) as file:
                reference = file.convert("RGB")
            seconds[0] += middle - begun
            seconds[1] += time.perf_counter() - middle
            same = same and np.array_equal(image, np.asarray(reference))
        ours.append(len(paths) / seconds[0])
        pillow.append(len(paths) / seconds[1])
    ratio = statistics.median(a / b for a, b in zip(ours, pillow, strict=True))
    return {"stoker": statistics.median(ours), "pillow": statistics.median(pillow), "ratio": ratio, "same": same}


if __name__ == "__main__":
    folders = dict(word.split("=", 1) for word in sys.argv[2:])
    print(json.dumps({name: measure(folder, int(sys.argv[1])) for name, folder in folders.items()}))
