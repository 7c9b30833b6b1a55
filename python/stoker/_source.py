# SPDX-License-Identifier: Apache-2.0
"""Source: the samples that a loader reads; they can be selected, divided and joined."""

from __future__ import annotations

import functools
import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _split, _stoker
from ._arguments import Fields, check_text, check_types
from ._arrow import form_of, table_of
from ._batch import Form
from ._errors import UsageError, hint, usage
from ._fields import own_texts
from ._ragged import row_of
from ._samplers import sample_indices
from ._types import counted, whole

Path = str | os.PathLike[str]
Indices = NDArray[np.int64]
MOST_COLUMNS = 60  # of a table, as fields of src[i]

IDLE = {"sampled": 1, "threads": 1, "batch_size": 1, "memory": 64 << 20}


class One:
    """A loader with one idle thread that reads one sample at a time."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._lock, self._pid = threading.Lock(), os.getpid()
        try:  # images differ in size: the engine makes a crop of one pixel, and fields() replaces it
            self._handle = _stoker.Loader({**options, **IDLE, "ops": "CenterCrop(1)"})
        except UsageError as error:
            if "ops need images" not in str(error):
                raise
            self._handle = _stoker.Loader({**options, **IDLE})
        self._form = Form(self._handle, None, (), True, "numpy", "NCHW", None, None, None)
        self._images = [name for name, c in zip(self._form.names, self._form.columns, strict=True) if c.kind == "image"]

    @property
    def is_mine(self) -> bool:
        """Whether this process opened it. A forked child does not have its thread."""
        return self._pid == os.getpid()

    @property
    def only_images(self) -> bool:
        """Whether samples are images with at most a label."""
        return bool(self._images) and set(self._form.names) <= {"image", "label"}

    def fields(self, index: int, image: Callable[[int], Any]) -> dict[str, Any]:
        """All fields of a sample; image: decodes the image of a sample."""
        with self._lock:
            batch = self._form.copy(self._handle.get(np.array([index], np.int64), None, 0))
            rows = {name: row_of(value, 0) for name, value in batch.items()}
            return {**rows, **{name: image(index) for name in self._images}}


class Source:
    """The samples of a folder, list, container or table, or of several. Loaders take it as their source.

    paths      one or several paths, Arrow tables, or Hugging Face datasets
    classes    the class names in label order; by default those found, sorted
    indices    use only these samples, in this order
    fields     what samples contain, as in `Loader`; it renames columns so that different sources can be joined

    `len(src)` is the number of samples, and `src[i]` reads one of them.

    >>> import stoker
    >>> src = stoker.Source(photos)
    >>> len(src), src.classes
    (12, ['cat', 'dog'])
    >>> src[0].shape                                # an image, without ops
    (24, 32, 3)
    >>> train, val = src.split(0.75, by="class")
    >>> len(train) + len(val)
    12
    >>> loader = stoker.Loader(train, "CenterCrop(16)", batch_size=4)
    >>> both = stoker.Source(photos, fields={"pixels": "image"}) + stoker.Source(photos, fields="pixels=image, label")
    >>> next(iter(stoker.Loader(both, "CenterCrop(16)", output="numpy")))._fields
    ('pixels',)
    """

    _opened: _stoker.Source | None
    _one: One | None  # reads single samples
    _indices: Indices | None
    _mix: tuple[NDArray[np.float64], Indices] | None  # weights, and sample counts
    _depth = 0  # how many times it was divided
    _exif = True  # whether the orientation is applied

    def __init__(
        self,
        *paths: Path | Any,
        classes: Sequence[str] | None = None,
        indices: Iterable[int] | None = None,
        fields: Fields | None = None,
    ) -> None:
        if not paths:
            raise usage("Source() needs at least one path")
        check_types({"classes": classes, "fields": fields})
        check_text("source", paths)
        forms = [form_of(p) for p in paths]
        for p, form in zip(paths, forms, strict=True):
            if not form and not isinstance(p, (str, bytes, os.PathLike)):
                raise usage(f"Source() takes paths and tables, not a {type(p).__name__}")
        if forms[0] and fields is not None:
            raise usage("fields of an Arrow or Parquet table belong to the loader; pass them to Loader()")
        self._set(paths, [str(c) for c in classes] if classes is not None else None, [None] * len(paths))
        for text in [None] if fields is None else own_texts(fields):
            self._fields = [text] * len(paths)
            try:
                self._opened = _stoker.Source(self._options())
                break
            except UsageError as error:
                if "there is no column" not in str(error):
                    raise
                failure = error
        else:
            raise failure
        if indices is not None:
            self._indices = self._checked(indices)

    def _set(self, paths: Sequence[Any], classes: list[str] | None, fields: list[str | None]) -> Source:
        """Sets all attributes without opening anything: a loader opens the source for itself."""
        self._paths = [os.fsdecode(p) if isinstance(p, (str, bytes, os.PathLike)) else p for p in paths]
        self._fields = fields  # of each path, as text for the engine
        forms = {bool(form_of(p)) for p in self._paths}
        if len(forms) > 1:
            raise usage("an Arrow or Parquet table can be joined only with other tables")
        self.table = table_of(self._paths) if forms == {True} else None
        self._given = self.table.classes if classes is None and self.table is not None else classes
        self._one = self._opened = self._mix = None
        self._read: Indices | None = None  # labels, once they were read
        self._indices = self.table.subset if self.table is not None else None
        return self

    @classmethod
    def joined(cls, parts: Sequence[Path | Any]) -> Source:
        """Joins paths, tables and Sources, one after the other. Paths are opened later.

        >>> len(stoker.Source.joined([photos, stoker.Source(photos).take(3)]))
        15
        """
        if any(isinstance(p, Source) for p in parts):
            return functools.reduce(operator.add, [p if isinstance(p, Source) else Source(p) for p in parts])
        return cls.__new__(cls)._set(parts, None, [None] * len(parts))

    @classmethod
    def without_exif(cls, path: str, classes: Sequence[str] | None) -> Source:
        """A source that ignores the orientation of images, as torchvision does. It is opened later.

        >>> len(stoker.Source.without_exif(photos, None))
        12
        """
        source = cls.__new__(cls)._set([path], None if classes is None else list(classes), [None])
        source._exif = False
        return source

    @property
    def _handle(self) -> _stoker.Source:
        if self._opened is None:
            self._opened = _stoker.Source(self._options())
        return self._opened

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"source": self._paths[0]} if len(self._paths) == 1 else {"sources": self._paths}
        if self.table is not None:
            options = {"arrow": self.table.opened(self.table.readable[:MOST_COLUMNS], None)}
        elif any(self._fields):
            options["source_fields"] = self._fields
        if self._given is not None:
            options["classes"] = self._given
        if not self._exif:
            options["no_exif"] = 1
        return options

    def _checked(self, indices: Iterable[int]) -> Indices:
        chosen = sample_indices("indices", indices)
        count = self._handle.count()
        wrong = chosen[(chosen < 0) | (chosen >= count)]
        if wrong.size:
            raise usage(f"there is no sample {wrong[0]}; the source has {counted(count, 'sample')}")
        return chosen

    def options(self) -> dict[str, Any]:
        """The options with which the engine opens it.

        >>> stoker.Source(photos).subset([3, 1]).options()["subset"]
        array([3, 1])
        """
        options = self._options()
        if self._indices is not None:
            options["subset"] = self._indices
        if self._mix is not None:
            options["mix"] = self._mix
        return options

    def _chosen(self) -> Indices:
        """Indices of the samples in the whole source."""
        return np.arange(self._handle.count(), dtype=np.int64) if self._indices is None else self._indices

    def places(self) -> Indices | None:
        """For every sample of the whole source, its index here; None: a sample appears twice.

        >>> stoker.Source(photos).take(3).subset([2, 0]).places()[:3]
        array([ 1, -1,  0])
        """
        chosen = self._chosen()
        found = np.full(self._handle.count(), -1, np.int64)
        found[chosen] = np.arange(len(chosen))
        return found if len(np.unique(chosen)) == len(chosen) else None

    def _index(self, i: int) -> int:
        """The index of sample i in the whole source."""
        i, n = operator.index(i), len(self)
        if not -n <= i < n:
            raise IndexError(f"sample {i} is out of range; the source has {counted(n, 'sample')}")
        i %= n
        return i if self._indices is None else int(self._indices[i])

    def _part(self, indices: Indices) -> Source:
        part = Source.__new__(Source)
        part._paths, part._given, part._opened = self._paths, self._given, self._handle
        part._fields, part.table, part._one, part._read = self._fields, self.table, self._one, self._read
        part._indices, part._mix = np.ascontiguousarray(indices, dtype=np.int64), None
        part._depth, part._exif = self._depth, self._exif
        return part

    def __len__(self) -> int:
        return self._handle.count() if self._indices is None else len(self._indices)

    def _image(self, index: int) -> NDArray[np.uint8]:
        pixels, height, width, _ = self._handle.image(index)
        return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)

    def pillow(self, i: int) -> Any:
        """The image of a sample as a Pillow image.

        >>> stoker.Source(photos).pillow(0).size
        (32, 24)
        """
        from PIL import Image

        return Image.fromarray(self._image(self._index(i)))

    def __getitem__(self, i: int) -> Any:
        """One sample without ops: its image as an array, or a dict of fields if it has more than image and label.

        >>> stoker.Source(photos)[-1].dtype
        dtype('uint8')
        """
        index = self._index(i)
        if self._one is None or not self._one.is_mine:
            self._one = One(self._options())
        if self._one.only_images:
            return self._image(index)
        return self._one.fields(index, self._image)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        names = ", ".join(repr(p) if isinstance(p, str) else type(p).__name__ for p in self._paths)
        classes = f", {counted(len(self.classes), 'class')}" if self.classes else ""
        return f"Source({names}): {self._handle.kind()}, {counted(len(self), 'sample')}{classes}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._paths, self._given, self._indices, self._mix, self._fields, self._depth, self._exif)

    @property
    def classes(self) -> list[str]:
        """The class names; `classes[label]` is the name of a label.

        >>> stoker.Source(photos).classes
        ['cat', 'dog']
        """
        return self._handle.classes()

    @property
    def labels(self) -> Indices:
        """The label of every sample; -1 where it has none.

        >>> stoker.Source(photos).labels[:3]
        array([0, 0, 0])
        """
        if self.table is not None:
            return self.table.labels()[self._chosen()]
        if self._read is None:
            self._read = np.frombuffer(self._handle.labels(), np.int64)
            if (self._read < 0).any():
                self._read = self._labels_of_records()
        return self._read[self._chosen()]

    def _labels_of_records(self) -> Indices:
        """Labels that are stored only in the samples (TFRecord): reads all samples."""
        try:
            _, found = _stoker.scan({**self._options(), "fields": "label"}, False, False)
        except UsageError:  # there is no label
            return np.full(self._handle.count(), -1, np.int64)
        return np.array([one[5] for one in found], np.int64)

    @property
    def paths(self) -> list[str]:
        """The path of every sample.

        >>> os.path.basename(stoker.Source(photos).paths[0])
        '00.png'
        """
        return [self._handle.path(int(i)) for i in self._chosen()]

    @property
    def keys(self) -> list[str]:
        """The path of every sample below the source's folder.

        >>> stoker.Source(photos).keys[0]
        'cat/00.png'
        """
        return [self._handle.key(int(i)) for i in self._chosen()]

    def _hashes(self, seed: int) -> NDArray[np.uint64]:
        hashes = np.frombuffer(self._handle.key_hashes(), np.uint64)[self._chosen()]
        return _split.mixed(hashes, seed, self._depth)

    def _divided(self, chosen: NDArray[np.bool_]) -> Source:
        part = self._part(self._chosen()[chosen])
        part._depth = self._depth + 1
        return part

    def split(self, *shares: float, by: Literal["class"] | None = None, seed: int = 0) -> tuple[Source, ...]:
        """Divides the samples into parts of these shares, such as 0.8 and 0.2.

        If the shares add up to less than 1, the rest is one more part: `split(0.9)` gives two. A hash of a sample's key
        selects its part, so a sample stays in its part when the dataset grows, and shares are approximate.

        by      "class": divide every class exactly; a growing dataset may then move samples at the boundaries
        seed    another division for every seed

        >>> train, val = stoker.Source(photos).split(0.5, by="class")
        >>> len(train), len(val)
        (6, 6)
        >>> train, val, test = stoker.Source(photos).split(0.6, 0.2, 0.2)
        >>> len(train) + len(val) + len(test)
        12
        """
        edges = _split.edges_of(shares)
        if _split.is_by_class("split", by):
            parts = _split.by_share_of_class(self._hashes(seed), self.labels, edges)
        else:
            parts = _split.by_share(self._hashes(seed), edges)
        return tuple(self._divided(parts == i) for i in range(len(edges) + 1))

    def kfold(self, k: int, by: Literal["class"] | None = None, seed: int = 0) -> list[tuple[Source, Source]]:
        """k pairs (train, val) for cross-validation: every sample is in exactly one `val`.

        A hash of the sample's key selects its fold, as in `split`. In a small dataset, a fold that would be empty takes
        one sample of the largest fold.

        by      "class": folds of equal size and equal shares of the classes; a growing dataset then moves samples
        seed    another division for every seed

        >>> for train, val in stoker.Source(photos).kfold(3, by="class"):
        ...     print(len(train), len(val))
        8 4
        8 4
        8 4
        """
        k = whole("kfold: k", k, 2, 2**31)
        if k > len(self):
            raise usage(
                f"kfold: k is {k}, but there {'is' if len(self) == 1 else 'are'} only {counted(len(self), 'sample')}"
            )
        if _split.is_by_class("kfold", by):
            folds = _split.by_fold_of_class(self._hashes(seed), self.labels, k)
        else:
            folds = _split.by_fold(self._hashes(seed), k)
        return [(self._divided(folds != i), self._divided(folds == i)) for i in range(k)]

    def subset(self, indices: Iterable[int]) -> Source:
        """A Source of these samples, in this order.

        indices    indices, which may be negative and may repeat, or a mask with a bool for each sample

        >>> stoker.Source(photos).subset([3, 1]).labels
        array([0, 0])
        """
        wanted = np.asarray(list(indices) if not isinstance(indices, np.ndarray) else indices)
        if wanted.dtype == bool and len(wanted) != len(self):
            raise usage(f"subset: the mask has {len(wanted)} values for {len(self)} samples; pass one for each sample")
        wanted = np.flatnonzero(wanted) if wanted.dtype == bool else sample_indices("subset: indices", wanted)
        bad = wanted[(wanted < -len(self)) | (wanted >= len(self))] if wanted.size else wanted
        if bad.size:
            raise usage(f"subset: there is no sample {bad[0]}; the source has {counted(len(self), 'sample')}")
        return self._part(self._chosen()[wanted.astype(np.int64)])

    def select(self, classes: Sequence[str | int]) -> Source:
        """A Source of the samples of some classes, given by name or label. Labels do not change.

        >>> len(stoker.Source(photos).select(classes=["dog"]))
        6
        """
        names = self.classes
        numbers = []
        check_types({"classes": classes})
        for c in classes:
            known = range(len(names)) if names else np.unique(self.labels).tolist()
            if not isinstance(c, str) and c not in known:
                raise usage(f"select: there is no class {c!r}; the source has {counted(len(known), 'class')}")
            if isinstance(c, str) and c not in names:
                raise usage(f"select: there is no class {c!r}{hint(c, names)}")
            numbers.append(names.index(c) if isinstance(c, str) else c)
        return self._part(self._chosen()[np.isin(self.labels, numbers)])

    def take(self, n: int) -> Source:
        """A Source of the first n samples.

        >>> len(stoker.Source(photos).take(5))
        5
        """
        return self._part(self._chosen()[: whole("take: n", n, 0, 2**62)])

    def _name(self) -> str:
        return self._paths[0] if isinstance(self._paths[0], str) else f"a {type(self._paths[0]).__name__}"

    def _follows(self, classes: list[str]) -> bool:
        """Whether labels follow when `classes` changes: names do, integers stay as they are."""
        if not self.classes or classes[: len(self.classes)] == self.classes:
            return True
        if self.table is not None:
            return False
        own = np.frombuffer(self._handle.labels(), np.int64)
        then = np.frombuffer(_stoker.Source(self._options() | {"classes": classes}).labels(), np.int64)
        places, known = np.array([classes.index(c) for c in self.classes]), own >= 0
        return bool(known.any()) and np.array_equal(places[own[known]], then[known])

    def __add__(self, other: Source) -> Source:
        """Joins two sources. Samples have the fields that both sources have; classes are joined by name and sorted.

        >>> src = stoker.Source(photos)
        >>> len(src.select(classes=["cat"]) + src.take(2))
        8
        """
        if not isinstance(other, Source):
            return NotImplemented
        classes = None
        if self._given is not None or other._given is not None:  # else the engine does it
            classes = self.classes
            if classes != other.classes:
                classes = sorted(set(classes) | set(other.classes), key=os.fsencode)
            for one in (self, other):
                if not one._follows(classes):
                    raise usage(
                        f"the labels of {one._name()} are integers for its classes {', '.join(one.classes)} and cannot "
                        f"become labels of {', '.join(classes)}; give both sources the same classes first"
                    )
        both = Source.__new__(Source)._set(self._paths + other._paths, classes, self._fields + other._fields)
        if self._indices is not None or other._indices is not None:
            shift = self._handle.count()
            both._indices = np.concatenate([self._chosen(), other._chosen() + shift])
        both._depth, both._exif = max(self._depth, other._depth), self._exif and other._exif
        return both


def _rebuild(
    paths: list[Any],
    classes: list[str] | None,
    indices: Indices | None,
    mix: Any = None,
    fields: list[str | None] | None = None,
    depth: int = 0,
    exif: bool = True,
) -> Source:
    source = Source.__new__(Source)._set(paths, classes, fields or [None] * len(paths))
    source._indices, source._mix, source._depth, source._exif = indices, mix, depth, exif
    return source
