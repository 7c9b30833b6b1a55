# SPDX-License-Identifier: Apache-2.0
"""Stoker feeds a training job: threads read, decode, transform, shuffle and batch the data, in C.

import stoker

train = stoker.Loader("train/", [stoker.RandomResizedCrop(224), stoker.RandomHorizontalFlip(), stoker.Normalize()],
                      batch_size=256, shuffle=True, drop_last=True)
for images, labels in train:
    ...
"""

from typing import TYPE_CHECKING, Any

from ._batch import Batch
from ._convert import convert_transform
from ._errors import DataError, Error, NotFoundError, UsageError
from ._errors import hint as _hint
from ._explain import info
from ._loader import Loader
from ._mix import mix
from ._ops import (
    CenterCrop,
    Grayscale,
    Lambda,
    Normalize,
    Op,
    Pad,
    PadIfSmaller,
    PILToTensor,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    ToDtype,
    ToImage,
    ToTensor,
)
from ._ops_batch import CutMix, MixUp, Mixup
from ._ops_boxes import (
    ClampBoundingBoxes,
    ClampKeyPoints,
    ConvertBoundingBoxFormat,
    SanitizeBoundingBoxes,
    SanitizeKeyPoints,
    WholeBoundingBoxes,
)
from ._ops_color import (
    RGB,
    ColorJitter,
    Compose,
    Identity,
    RandomAdjustSharpness,
    RandomApply,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomChoice,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomOrder,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from ._ops_geometry import (
    JPEG,
    ElasticTransform,
    FiveCrop,
    GaussianBlur,
    GaussianNoise,
    PillowBlur,
    RandomAffine,
    RandomIoUCrop,
    RandomPerspective,
    RandomResize,
    RandomRotation,
    RandomShortestSize,
    RandomZoomOut,
    ScaleJitter,
    TenCrop,
)
from ._ops_recipe import AugMix, AutoAugment, RandAugment, RandomErasing, TimmAugment, TrivialAugmentWide, noise
from ._pack import Packed, pack, unpack
from ._ragged import Padded, Ragged
from ._scan import Listing, ls, verify
from ._source import Source
from ._stats import Stats
from ._stoker import version
from ._watch import watch

if TYPE_CHECKING:
    from . import doctor as doctor
    from ._compare import compare as compare
    from .data_loader import DataLoader as DataLoader

__version__ = version()

__all__ = [
    "AugMix",
    "AutoAugment",
    "Batch",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "DataError",
    "ElasticTransform",
    "Error",
    "FiveCrop",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Identity",
    "JPEG",
    "Lambda",
    "Listing",
    "Loader",
    "MixUp",
    "Mixup",
    "Normalize",
    "NotFoundError",
    "Op",
    "PILToTensor",
    "Packed",
    "Pad",
    "PadIfSmaller",
    "PillowBlur",
    "Padded",
    "RGB",
    "Ragged",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ScaleJitter",
    "Source",
    "Stats",
    "TenCrop",
    "TimmAugment",
    "ToDtype",
    "ToImage",
    "ToTensor",
    "TrivialAugmentWide",
    "WholeBoundingBoxes",
    "UsageError",
    "convert_transform",
    "info",
    "ls",
    "mix",
    "noise",
    "pack",
    "unpack",
    "verify",
    "watch",
    "ClampBoundingBoxes",
    "ClampKeyPoints",
    "ConvertBoundingBoxFormat",
    "SanitizeBoundingBoxes",
    "SanitizeKeyPoints",
]

# Imported on first use: these need torch, or are seldom needed.
_LATER = {"DataLoader": "data_loader", "compare": "_compare", "doctor": "doctor"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        module = import_module(f"stoker.{_LATER[name]}")
        return module if name == "doctor" else getattr(module, name)
    raise AttributeError(f"module 'stoker' has no attribute {name!r}{_hint(name, __dir__())}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATER, "__version__"])
