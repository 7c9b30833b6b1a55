# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix: the same arithmetic as torchvision and timm, labels that agree with the images, and draws that
depend on nothing but the seed and the place of the batch."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import stoker
from conftest import import_torchvision

torch = pytest.importorskip("torch")
OPS = "RandomCrop(24) | RandomHorizontalFlip | Normalize"
CLASSES = 7
FIELDS = ("image", "label", "position")


def arrays(n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {"image": rng.integers(0, 256, (n, 32, 32, 3), np.uint8), "label": np.arange(n) % CLASSES}


def batches(ops: str, n: int = 40, **options: object) -> list:
    arguments = {"batch_size": 8, "shuffle": True, "seed": 3, "output": "torch", **options}
    return list(stoker.Loader(arrays(n), ops, **arguments))


def one_hot(labels: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    off = smoothing / CLASSES
    return torch.full((len(labels), CLASSES), off).scatter_(1, labels.view(-1, 1), 1 - smoothing + off)


def box_of(changed: torch.Tensor) -> tuple[int, int, int, int]:
    """Top, left, bottom and right of the pixels that changed in any image and channel."""
    any_channel = changed.flatten(0, 1).any(0)
    rows, columns = any_channel.any(1).nonzero().flatten(), any_channel.any(0).nonzero().flatten()
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_mixup_is_torchvisions(dtype: str) -> None:
    seen = set()
    for plain, mixed in zip(
        batches(OPS, dtype=dtype), batches(f"{OPS} | MixUp(num_classes={CLASSES})", dtype=dtype), strict=True
    ):
        images, labels = plain
        # Labels of neighbours differ, so that lambda can be read from the first that does.
        row = next(i for i in range(1, 8) if labels[i] != labels[i - 1])
        keep, rest = float(mixed.label[row, labels[row]]), float(mixed.label[row, labels[row - 1]])
        assert abs(keep + rest - 1) < 1e-6
        assert torch.equal(mixed.image, images.roll(1, 0).mul_(rest).add_(images.mul(keep)))
        hot = one_hot(labels)
        assert torch.equal(mixed.label, hot.roll(1, 0).mul_(rest).add_(hot.mul(keep)))
        seen.add(keep)
    assert len(seen) == 5  # a draw for every batch


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_cutmix_is_torchvisions(dtype: str, layout: str) -> None:
    ops = OPS if dtype == "float32" else "RandomCrop(24)"
    options = {"dtype": dtype, "layout": layout}
    boxes = set()
    for plain, mixed in zip(
        batches(ops, **options), batches(f"{ops} | CutMix(num_classes={CLASSES})", **options), strict=True
    ):
        images, out = plain.image, mixed.image
        if layout == "NHWC":
            images, out = images.permute(0, 3, 1, 2), out.permute(0, 3, 1, 2)
        partner, changed = images.roll(1, 0), out != images
        assert torch.equal(torch.where(changed, partner, images), out)
        if not changed.any():
            continue
        top, left, bottom, right = box_of(changed)
        boxes.add((top, left, bottom, right))
        assert torch.equal(out[:, :, top:bottom, left:right], partner[:, :, top:bottom, left:right])
        keep = 1 - (bottom - top) * (right - left) / 24**2
        hot = one_hot(plain.label)
        assert torch.allclose(mixed.label, hot.roll(1, 0) * (1 - keep) + hot * keep, atol=1e-6)
    assert len(boxes) > 1


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
def test_mixup_of_timm(mode: str) -> None:
    ops = f"{OPS} | Mixup(0.8, 1, prob=0.9, mode={mode}, label_smoothing=0.1, num_classes={CLASSES})"
    kinds = set()
    for plain, mixed in zip(batches(OPS, 80), batches(ops, 80), strict=True):
        images, partner, hot = plain.image, plain.image.flip(0), one_hot(plain.label, 0.1)
        for i in range(8):
            j = 7 - i
            if torch.equal(mixed.image[i], images[i]):
                kinds.add("none")
                continue
            if plain.label[i] == plain.label[j]:
                continue
            a, b = hot[i, plain.label[i]].item(), hot[j, plain.label[i]].item()
            keep = (mixed.label[i, plain.label[i]].item() - b) / (a - b)
            if torch.equal(torch.where(mixed.image[i] != images[i], partner[i], images[i]), mixed.image[i]):
                kinds.add("cut")
                top, left, bottom, right = box_of((mixed.image[i] != images[i])[None])
                assert abs(1 - (bottom - top) * (right - left) / 24**2 - keep) < 1e-5
            else:
                kinds.add("mix")
                assert torch.allclose(mixed.image[i], images[i] * keep + partner[i] * (1 - keep), atol=1e-4)
            assert torch.allclose(mixed.label[i], hot[i] * keep + hot[j] * (1 - keep), atol=1e-5)
    assert kinds >= {"cut", "mix"}


def replay(rows, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Combines rows of get() as `drawn` says."""
    images, soft = rows.image.clone(), labels.clone()
    for i, row in enumerate(rows.drawn):
        last = row["ops"][-1]
        lam, j = last["lam"], last["partner"]
        soft[i] = labels[j].mul(1 - lam).add_(labels[i].mul(lam))
        if "box" in last:
            x0, y0, x1, y1 = last["box"]
            images[i, :, y0:y1, x0:x1] = rows.image[j, :, y0:y1, x0:x1]
        elif lam != 1:
            images[i] = rows.image[j].mul(1 - lam).add_(rows.image[i].mul(lam))
    return images, soft


@pytest.mark.parametrize("op", ["MixUp(1, 7)", "CutMix(1, 7)", "RandomChoice([MixUp(0.2, 7), CutMix(1, 7)])"])
def test_drawn_says_how_rows_are_combined(op: str) -> None:
    loader = stoker.Loader(arrays(), f"{OPS} | {op}", batch_size=8, shuffle=True, seed=3, output="torch", fields=FIELDS)
    for epoch in range(3):
        loader.set_epoch(epoch)
        for batch in loader:
            rows = loader.get(positions=batch.position.numpy(), epoch=epoch)
            images, labels = replay(rows, rows.label)
            assert torch.equal(images, batch.image) and torch.equal(labels, batch.label)
    assert rows.drawn[3]["ops"][-1]["partner"] == 2 and rows.drawn[0]["ops"][-1]["partner"] == 7
    assert set(loader.drawn(3)[0]["ops"][-1]) == {"op"}  # the batch is not known


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
def test_drawn_says_how_timm_combines_rows(mode: str) -> None:
    ops = f"{OPS} | Mixup(0.8, 1, prob=0.9, mode={mode}, num_classes=7)"
    loader = stoker.Loader(arrays(45), ops, batch_size=9, seed=3, output="torch", fields=FIELDS)
    kinds = set()
    for batch in loader:
        rows = loader.get(positions=batch.position.numpy(), epoch=0)
        images, labels = replay(rows, rows.label)
        assert torch.allclose(images, batch.image, atol=1e-6) and torch.allclose(labels, batch.label, atol=1e-6)
        assert [row["ops"][-1]["partner"] for row in rows.drawn] == list(range(8, -1, -1))
        kinds |= {"box" in row["ops"][-1] for row in rows.drawn}
    assert kinds == {False, True}


def test_drawn_of_a_batch_whose_first_sample_is_bad(tmp_path) -> None:
    from PIL import Image

    for i in range(8):
        path = tmp_path / "a" / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((9, 9, 3), 30 * i, np.uint8)).save(path)
    (tmp_path / "a" / "0.png").write_bytes(b"not an image")
    ops = "CenterCrop(8) | MixUp(num_classes=2)"
    loader = stoker.Loader(tmp_path, ops, batch_size=8, output="torch", on_error="skip", fields=FIELDS)
    with pytest.warns(RuntimeWarning, match="1 bad sample"):
        (batch,) = loader
    rows = loader.get(positions=batch.position.numpy(), epoch=0)
    assert batch.position.tolist() == list(range(1, 8))
    assert torch.equal(replay(rows, torch.zeros(7, 2))[0], batch.image)


def test_draws_depend_on_the_batch_alone() -> None:
    ops = f"{OPS} | RandomChoice([MixUp(num_classes=7), CutMix(num_classes=7)])"
    first = batches(ops, threads=1)
    for other in (batches(ops, threads=2), batches(ops, threads=7)):
        for a, b in zip(first, other, strict=True):
            assert torch.equal(a.image, b.image) and torch.equal(a.label, b.label)
    loader = stoker.Loader(arrays(), ops, batch_size=8, shuffle=True, seed=3, output="torch")
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    again = stoker.Loader(arrays(), ops, batch_size=8, shuffle=True, seed=3, output="torch")
    again.load_state_dict(state)
    for a, b in zip(first[2:], again, strict=True):
        assert torch.equal(a.image, b.image) and torch.equal(a.label, b.label)


def test_lambda_has_the_beta_distribution() -> None:
    stats = pytest.importorskip("scipy.stats")
    for alpha in (0.2, 1.0, 4.0):
        ops = f"CenterCrop(4) | MixUp({alpha}, num_classes=7)"
        # In order, so that the labels of a batch differ and the second row has lambda at its own label.
        pairs = batches(ops, 4000, batch_size=2, shuffle=False)
        drawn = [float(b.label[1, (2 * k + 1) % CLASSES]) for k, b in enumerate(pairs)]
        assert stats.kstest(drawn, "beta", args=(alpha, alpha)).pvalue > 1e-4


def test_the_last_short_batch_and_bad_samples(tmp_path) -> None:
    ops = f"{OPS} | MixUp(num_classes=7)"
    out = batches(ops, 41)
    assert out[-1].image.shape[0] == 1 and torch.allclose(out[-1].label.sum(1), torch.ones(1))
    plain = batches(OPS, 41)
    assert torch.allclose(out[-1].image, plain[-1].image, atol=1e-6)  # alone, it is combined with itself
    for a, b in pairwise(out):
        assert a.label.dtype == b.label.dtype == torch.float32


def test_batch_fn_of_torchvision_becomes_an_op() -> None:
    import_torchvision()
    from torchvision.transforms import v2

    both = v2.RandomChoice([v2.MixUp(num_classes=7), v2.CutMix(alpha=0.5, num_classes=7)])
    loader = stoker.Loader(arrays(), OPS, batch_size=8, batch_fn=both, output="torch")
    assert "RandomChoice" in loader.explain()
    iterator = iter(loader)
    assert next(iterator).label.shape == (8, 7)
    again = pickle.loads(pickle.dumps(loader))  # continues where the loader is
    assert torch.equal(next(iter(again)).image, next(iterator).image)


def test_batch_fn_of_timm_becomes_an_op() -> None:
    data = pytest.importorskip("timm.data")
    mixup = data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=7)
    loader = stoker.Loader(arrays(), OPS, batch_size=8, batch_fn=mixup, output="torch")
    assert "Mixup(mixup_alpha=0.8, cutmix_alpha=1" in loader.explain()


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ("CenterCrop(8) | MixUp", "num_classes"),
        ("CenterCrop(8) | MixUp(num_classes=3)", "the label is 3, but MixUp or CutMix has num_classes=3"),
    ],
)
def test_errors_say_what_to_do(ops: str, words: str) -> None:
    with pytest.raises(stoker.Error, match=words):
        next(iter(stoker.Loader(arrays(), ops, batch_size=8, output="torch")))


def test_uint8_cannot_be_added() -> None:
    with pytest.raises(stoker.UsageError, match="needs floats"):
        stoker.Loader(arrays(), "CenterCrop(8) | MixUp(num_classes=7)", dtype="uint8")


def test_labels_are_needed() -> None:
    with pytest.raises(stoker.UsageError, match="need labels"):
        stoker.Loader(arrays()["image"], "CenterCrop(8) | MixUp(num_classes=7)")
