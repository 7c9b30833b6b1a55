# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and keypoints follow the image: torchvision's v2 functions with the same draws give the same."""

import pytest
import stoker
from conftest import import_torchvision

import_torchvision()

import torch  # noqa: E402
from follow import FIELDS, SIZES, follow, samples, write_tar  # noqa: E402

EXACT = {
    "RandomResizedCrop((30, 40)) | RandomHorizontalFlip | RandomVerticalFlip": {},
    "Resize((7, 90)) | CenterCrop(50)": {},
    "RandomCrop(30, padding=9, fill=7, pad_if_needed=True)": {"fill": 7},
    "ColorJitter(0.4, 0.4, 0.4) | RandomHorizontalFlip(1) | CenterCrop((20, 90)) | GaussianBlur(3)": {},
}


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    return write_tar(tmp_path_factory.mktemp("follow") / "samples.tar", samples())


def compared(tar, ops, rows=None, epochs=4, near=2e-4, wrong=0, **k):
    loader = stoker.Loader(tar, ops, fields=FIELDS, batch_size=len(SIZES), dtype="uint8", output="torch")
    for epoch in range(epochs):
        seen = loader.get(range(len(SIZES)), epoch=epoch)
        for i, (row, drawn) in enumerate(zip(rows or samples(), seen.drawn, strict=True)):
            theirs = follow(row, drawn, **k)
            assert theirs["mask"].shape == seen.mask[i].shape == seen.image[i].shape[-2:]
            assert (theirs["mask"] != seen.mask[i]).float().mean() <= wrong, drawn
            assert theirs["boxes"].shape == seen.boxes[i].shape
            assert torch.allclose(theirs["boxes"], seen.boxes[i], atol=near, rtol=1e-5), drawn
            assert theirs["labels"].tolist() == seen.labels[i].tolist()
            assert torch.allclose(theirs["points"], seen.points[i][..., :2], atol=near, rtol=1e-5), drawn


@pytest.mark.parametrize("ops", EXACT)
def test_the_same_draws_give_the_same_masks_boxes_and_points(tar, ops):
    compared(tar, ops, **EXACT[ops])
