# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision as ops of Stoker's, to look at and to paste."""

from __future__ import annotations

from typing import Any

from ._convert import transform
from ._errors import usage
from ._ops import Lambda, Op


def convert_transform(thing: Any) -> list[Op]:
    """The ops that do what a transform of torchvision's does; what Stoker lacks is the last one, a function.

    Loaders take such transforms as they are; this is to see what becomes of them.

    >>> from torchvision import transforms
    >>> val = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    >>> stoker.convert_transform(val)
    [Resize(256), CenterCrop((224, 224)), ToTensor]
    >>> stoker.convert_transform(len)
    Traceback (most recent call last):
    stoker.UsageError: ...
    """
    converted = transform(thing)
    if converted is None:
        raise usage(f"a {type(thing).__name__} is not a transform of torchvision's")
    rest = converted.rest
    return converted.ops + ([Lambda(rest, parallel=rest.steady)] if rest else [])
