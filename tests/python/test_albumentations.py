# SPDX-License-Identifier: Apache-2.0
"""Pipelines of albumentations in datasets and in loaders: each sample has its own seed."""

import os

import numpy as np
import pytest
import stoker

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask its server
torch = pytest.importorskip("torch", reason="torch is not installed")
A = pytest.importorskip("albumentations", reason="albumentations is not installed")

PIPELINE = [A.RandomBrightnessContrast(p=1), A.GaussNoise(p=0.5), A.CoarseDropout(p=0.5)]


class Grey(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = A.Compose(PIPELINE)

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return self.transform(image=np.full((8, 8, 3), 9 * i + 60, np.uint8))["image"], i


def rows(loader, epochs=2):
    """The samples by index and epoch, whatever their order."""
    pairs = [(e, batch) for e in range(epochs) for batch in loader]
    return {(e, int(i)): x.numpy().tobytes() for e, (xs, ys) in pairs for x, i in zip(xs, ys, strict=True)}


def test_rows_of_a_dataset_do_not_depend_on_workers():
    found = []
    for workers in (0, 1, 3):
        torch.manual_seed(3)
        found.append(rows(stoker.DataLoader(Grey(), batch_size=4, num_workers=workers)))
    assert found[0] == found[1] == found[2]
    assert len(set(found[0].values())) == 24  # other draws for each sample and epoch


def loader_of(photos, *transform, **k):
    options = {"batch_size": 4, "layout": "NHWC", "dtype": "uint8", "output": "torch", **k}
    return stoker.Loader(photos, ["CenterCrop(16)", *transform], **options)


def images_of(loader, epochs=2):
    return [x.tobytes() for _ in range(epochs) for xs, _ in loader for x in np.asarray(xs)]


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_a_pipeline_follows_ops(photos, output):
    first = images_of(loader_of(photos, A.Compose(PIPELINE), output=output))
    again = images_of(loader_of(photos, A.Compose(PIPELINE), output=output, batch_size=3, threads=2))
    assert first == again and len(set(first)) == 24
    plain = images_of(loader_of(photos, A.Compose([A.HorizontalFlip(p=1)]), output=output), 1)
    expected = [x[:, ::-1].tobytes() for xs, _ in loader_of(photos, output="numpy") for x in xs]
    assert plain == expected


def test_a_single_transform_and_another_shape(photos):
    from albumentations.pytorch import ToTensorV2

    batch = next(iter(loader_of(photos, A.Compose([A.Normalize(), ToTensorV2()]))))
    assert batch.image.shape == (4, 3, 16, 16) and batch.image.dtype == torch.float32
    native = stoker.Loader(photos, "CenterCrop(16) | Normalize", batch_size=4, output="torch")
    assert torch.allclose(batch.image, next(iter(native)).image, atol=1e-5)
    assert next(iter(loader_of(photos, A.VerticalFlip(p=1)))).image.shape == (4, 16, 16, 3)


def test_the_other_layout_is_refused(photos):
    with pytest.raises(stoker.Error, match="layout='NHWC'"):
        loader_of(photos, A.Compose(PIPELINE), layout="NCHW")
