# SPDX-License-Identifier: Apache-2.0
"""Ops on boxes and keypoints, which leave the image alone."""

from __future__ import annotations

from ._ops import Op


class SanitizeBoundingBoxes(Op):
    """Removes boxes that are too small or not inside the image, and what belongs to them: masks, keypoints, labels.

    min_size        the least width and height
    min_area        the least area
    min_visibility  the least share of the area that the ops since the previous SanitizeBoundingBoxes left in the image

    >>> SanitizeBoundingBoxes(min_size=2, min_visibility=0.3)
    SanitizeBoundingBoxes(min_size=2, min_visibility=0.3)
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, min_visibility: float = 0.0) -> None:
        super().__init__(min_size=(min_size, 1.0), min_area=(min_area, 1.0), min_visibility=(min_visibility, 0.0))


class ClampBoundingBoxes(Op):
    """Moves the sides of boxes that are outside of the image to its sides.

    >>> ClampBoundingBoxes()
    ClampBoundingBoxes
    """

    def __init__(self) -> None:
        super().__init__()


class WholeBoundingBoxes(Op):
    """Keeps boxes of whole numbers whole: ops that resize cut fractions off, as torchvision does for integers.

    If any number of the boxes of an image has a fraction, the op does nothing.

    >>> WholeBoundingBoxes()
    WholeBoundingBoxes
    """

    def __init__(self) -> None:
        super().__init__()


class ConvertBoundingBoxFormat(Op):
    """Delivers boxes in another format.

    format      "XYXY", "XYWH" or "CXCYWH"
    relative    as shares of the width and height of the image, from 0 to 1; by default in pixels

    >>> ConvertBoundingBoxFormat("CXCYWH", relative=True)
    ConvertBoundingBoxFormat(CXCYWH, relative=True)
    """

    def __init__(self, format: str, relative: bool = False) -> None:
        super().__init__([str(getattr(format, "value", format)).upper()], relative=(relative, False))


class ClampKeyPoints(Op):
    """Moves keypoints that are outside of the image to its nearest pixel.

    >>> ClampKeyPoints()
    ClampKeyPoints
    """

    def __init__(self) -> None:
        super().__init__()


class SanitizeKeyPoints(Op):
    """Removes keypoints that are outside of the image; if keypoints form groups, removes the whole group.

    >>> SanitizeKeyPoints()
    SanitizeKeyPoints
    """

    def __init__(self) -> None:
        super().__init__()
