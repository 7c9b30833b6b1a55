# SPDX-License-Identifier: Apache-2.0
"""Mistakes that type checkers must report, each in the line that ends with a comment `wrong`. Not run."""

import stoker
from stoker import DataLoader

stoker.Loader("train/", shufle=True)  # wrong
stoker.Loader("train/", num_workers=4)  # wrong
stoker.Loader("train/", batch_size="64")  # wrong
stoker.Loader("train/", layout="NWHC")  # wrong
stoker.Loader("train/", output="pytorch")  # wrong
stoker.Loader("train/", dtype="float23")  # wrong
stoker.Loader("train/", fidelity="fast")  # wrong
stoker.Loader("train/", on_error="ignore")  # wrong
stoker.Loader("train/", cache="memory")  # wrong
stoker.Loader("train/", rank="torchrun")  # wrong
stoker.Loader("train/", 224)  # wrong
stoker.Loader("train/", fields=3)  # wrong
print(stoker.Loader("train/", output="torch").peek().image.dtyp)  # wrong
print(stoker.Loader("train/", collate_fn=len).peek().image)  # wrong
stoker.Loader("train/").state_dict(3)  # wrong
DataLoader([1, 2, 3], batchsize=2)  # wrong
DataLoader([1, 2, 3], batch_size=2.5)  # wrong
DataLoader([1, 2, 3], on_error="ignore")  # wrong
DataLoader([1, 2, 3], layout="nhwc")  # wrong
DataLoader(3)  # wrong
stoker.Resize(256, interpolation="cubic")  # wrong
stoker.RandomCrop(224, padding_mode="mirror")  # wrong
stoker.Normalize("Imagenet")  # wrong
stoker.AutoAugment("coco")  # wrong
stoker.RandomErasing(value="noise")  # wrong
stoker.Source("train/").split(0.9, by="label")  # wrong
stoker.Source("train/", field="image")  # wrong
stoker.pack("train/", "out", to="zip")  # wrong
stoker.pack("train/", "out", on_error="replace")  # wrong
stoker.ls("train/", thread=3)  # wrong
print(stoker.Source("train/").take(3).paths[0].shape)  # wrong
