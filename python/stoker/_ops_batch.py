# SPDX-License-Identifier: Apache-2.0
"""Ops that combine the rows of a finished batch. They come last, and labels become rows of floats, one per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ._ops import Op
from ._ops_color import RandomChoice


class MixUp(Op):
    """Adds to every image the image before it, as torchvision's MixUp does: lambda * image + (1 - lambda) * other.

    alpha            lambda is drawn for every batch from Beta(alpha, alpha)
    num_classes      the length of the labels; None: the number of classes of the source

    >>> MixUp(0.2, num_classes=1000)
    MixUp(alpha=0.2, num_classes=1000)
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None) -> None:
        super().__init__(alpha=(alpha, 1.0), num_classes=(num_classes, None))


class CutMix(Op):
    """Replaces a box of every image by that of the image before it, as torchvision's CutMix does.

    alpha            and num_classes: as in MixUp; the box has 1 - lambda of the area

    >>> CutMix()
    CutMix
    """

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None) -> None:
        super().__init__(alpha=(alpha, 1.0), num_classes=(num_classes, None))


class Mixup(Op):
    """MixUp or CutMix of row i and row n - 1 - i, as timm.data.Mixup does, with its arguments.

    >>> Mixup(0.8, 1.0, num_classes=1000)
    Mixup(mixup_alpha=0.8, cutmix_alpha=1.0)
    """

    def __init__(
        self,
        mixup_alpha: float = 1.0,
        cutmix_alpha: float = 0.0,
        cutmix_minmax: Sequence[float] | None = None,
        prob: float = 1.0,
        switch_prob: float = 0.5,
        mode: Literal["batch", "pair", "elem"] = "batch",
        correct_lam: bool = True,
        label_smoothing: float = 0.1,
        num_classes: int = 1000,
    ) -> None:
        super().__init__(
            mixup_alpha=(mixup_alpha, 1.0),
            cutmix_alpha=(cutmix_alpha, 0.0),
            cutmix_minmax=(cutmix_minmax, None),
            prob=(prob, 1.0),
            switch_prob=(switch_prob, 0.5),
            mode=(mode, "batch"),
            correct_lam=(correct_lam, True),
            label_smoothing=(label_smoothing, 0.1),
            num_classes=(num_classes, 1000),
        )


def batch_op(function: Any) -> Op | None:
    """The op that does what an object of torchvision or timm does to batches; None if there is none."""
    library, name = type(function).__module__.split(".")[0], type(function).__name__
    if library == "timm" and name == "Mixup":
        return Mixup(
            function.mixup_alpha,
            function.cutmix_alpha,
            function.cutmix_minmax,
            function.mix_prob,
            function.switch_prob,
            function.mode,
            function.correct_lam,
            function.label_smoothing,
            function.num_classes,
        )
    if library != "torchvision":
        return None
    if name in ("MixUp", "CutMix"):
        default = getattr(function, "_labels_getter", None)
        if getattr(default, "__name__", "") != "_find_labels_default_heuristic":
            return None
        return (MixUp if name == "MixUp" else CutMix)(function.alpha, function.num_classes)
    if name == "RandomChoice":
        ops = [op for op in map(batch_op, function.transforms) if op is not None]
        if {type(op) for op in ops} == {MixUp, CutMix} and len(ops) == len(function.transforms) == 2:
            return RandomChoice(ops, function.p)
    return None
