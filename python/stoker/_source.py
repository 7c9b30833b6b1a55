# SPDX-License-Identifier: Apache-2.0
"""Source: which samples there are, chosen and divided before a loader reads them."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _split, _stoker
from ._arguments import check_text, check_types, sample_numbers
from ._arrow import form_of, table_of
from ._errors import UsageError, usage
from ._fields import own_texts
from ._nearest import hint
from ._one import One
from ._types import counted, whole

Path = str | os.PathLike[str]
Indices = NDArray[np.int64]
MOST_COLUMNS = 60  # of a table, as fields of src[i]


class Source:
    """A folder, a list, a container, a table, or several of them: `len`, `src[i]`, and parts of it. Loaders take it.

    >>> import stoker
    >>> src = stoker.Source(photos)
    >>> len(src), src.classes
    (12, ['cat', 'dog'])
    >>> src[0].shape                                # decoded, without ops
    (24, 32, 3)
    >>> train, val = src.split(0.75, by="class")
    >>> len(train) + len(val)
    12
    >>> loader = stoker.Loader(train, "CenterCrop(16)", batch_size=4)

    `fields` says what it has, as that of a loader: sources whose columns have other names can so be joined and mixed.

    >>> both = stoker.Source(photos, fields={"pixels": "image"}) + stoker.Source(photos, fields="pixels=image, label")
    >>> next(iter(stoker.Loader(both, "CenterCrop(16)", output="numpy")))._fields
    ('pixels',)
    """

    _opened: _stoker.Source | None
    _one: One | None  # reads samples one at a time
    _indices: Indices | None
    _mix: tuple[NDArray[np.float64], Indices] | None  # weights, and samples of each
    _depth = 0  # how often it was divided

    def __init__(
        self,
        *paths: Path | Any,
        classes: Sequence[str] | None = None,
        indices: Iterable[int] | None = None,
        fields: Sequence[str] | Mapping[str, str] | str | None = None,
    ) -> None:
        if not paths:
            raise usage("Source() needs at least one path")
        check_types({"classes": classes, "fields": fields})
        check_text("source", paths)
        forms = [form_of(p) for p in paths]
        for p, form in zip(paths, forms, strict=True):
            if not form and not isinstance(p, (str, bytes, os.PathLike)):
                raise usage(f"Source() takes paths and tables, and not a {type(p).__name__}")
        if forms[0] and fields is not None:
            raise usage("a table of Arrow or Parquet takes no fields of its own; give them to the loader")
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
        """Everything but the opening, which may wait: a loader opens it for itself."""
        self._paths = [os.fsdecode(p) if isinstance(p, (str, bytes, os.PathLike)) else p for p in paths]
        self._fields = fields  # of each path, as the engine takes it
        forms = {bool(form_of(p)) for p in self._paths}
        if len(forms) > 1:
            raise usage("tables of Arrow and Parquet are joined with tables alone")
        self.table = table_of(self._paths) if forms == {True} else None
        self._given = self.table.classes if classes is None and self.table is not None else classes
        self._one = self._opened = self._mix = None
        self._read: Indices | None = None  # labels, once they were asked for
        self._indices = self.table.subset if self.table is not None else None
        return self

    @classmethod
    def joined(cls, parts: Sequence[Path | Any]) -> Source:
        """Paths, tables and sources, one after the other; paths are opened later.

        >>> len(stoker.Source.joined([photos, stoker.Source(photos).take(3)]))
        15
        """
        if any(isinstance(p, Source) for p in parts):
            return functools.reduce(operator.add, [p if isinstance(p, Source) else Source(p) for p in parts])
        return cls.__new__(cls)._set(parts, None, [None] * len(parts))

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
        return options

    def _checked(self, indices: Iterable[int]) -> Indices:
        chosen = sample_numbers("indices", indices)
        count = self._handle.count()
        wrong = chosen[(chosen < 0) | (chosen >= count)]
        if wrong.size:
            raise usage(f"there is no sample {wrong[0]}; there are {count}")
        return chosen

    def options(self) -> dict[str, Any]:
        """What the engine needs to open it.

        >>> stoker.Source(photos).subset([3, 1]).options()["subset"]
        array([3, 1])
        """
        options = self._options()
        if self._indices is not None:
            options["subset"] = self._indices
        if self._mix is not None:
            options["mix"] = self._mix
        return options

    def _numbers(self) -> Indices:
        return np.arange(self._handle.count(), dtype=np.int64) if self._indices is None else self._indices

    def _number(self, i: int) -> int:
        i, n = operator.index(i), len(self)
        if not -n <= i < n:
            raise IndexError(f"sample {i} of {n}")
        i %= n
        return i if self._indices is None else int(self._indices[i])

    def _part(self, indices: Indices) -> Source:
        part = Source.__new__(Source)
        part._paths, part._given, part._opened = self._paths, self._given, self._handle
        part._fields, part.table, part._one, part._read = self._fields, self.table, self._one, self._read
        part._indices, part._mix = np.ascontiguousarray(indices, dtype=np.int64), None
        part._depth = self._depth
        return part

    def __len__(self) -> int:
        return self._handle.count() if self._indices is None else len(self._indices)

    def _picture(self, number: int) -> NDArray[np.uint8]:
        pixels, height, width, _ = self._handle.image(number)
        return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)

    def __getitem__(self, i: int) -> Any:
        """The picture of a sample, decoded, without ops; a dict of its fields where it has more than that and a label.

        >>> stoker.Source(photos)[-1].dtype
        dtype('uint8')
        """
        number = self._number(i)
        if self._one is None or not self._one.is_mine:
            self._one = One(self._options())
        if self._one.only_pictures:
            return self._picture(number)
        return self._one.fields(number, self._picture)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        names = ", ".join(repr(p) if isinstance(p, str) else type(p).__name__ for p in self._paths)
        classes = f", {counted(len(self.classes), 'class')}" if self.classes else ""
        return f"Source({names}): {self._handle.kind()}, {counted(len(self), 'sample')}{classes}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._paths, self._given, self._indices, self._mix, self._fields, self._depth)

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of their numbers.

        >>> stoker.Source(photos).classes
        ['cat', 'dog']
        """
        return self._handle.classes()

    @property
    def labels(self) -> Indices:
        """The label of every sample.

        >>> stoker.Source(photos).labels[:3]
        array([0, 0, 0])
        """
        if self.table is not None:
            return self.table.labels()[self._numbers()]
        if self._read is None:
            self._read = np.frombuffer(self._handle.labels(), np.int64)
            if (self._read < 0).any():
                self._read = self._labels_of_records()
        return self._read[self._numbers()]

    def _labels_of_records(self) -> Indices:
        """Labels that only the samples themselves tell (TFRecord): all are read; -1 where there is none."""
        try:
            _, found = _stoker.scan({**self._options(), "fields": "label"}, False, False)
        except UsageError:  # nothing is called so
            return np.full(self._handle.count(), -1, np.int64)
        return np.array([one[5] for one in found], np.int64)

    @property
    def paths(self) -> list[str]:
        """The path of every sample.

        >>> os.path.basename(stoker.Source(photos).paths[0])
        '00.png'
        """
        return [self._handle.path(int(i)) for i in self._numbers()]

    @property
    def keys(self) -> list[str]:
        """The path of every sample below the source's own folder.

        >>> stoker.Source(photos).keys[0]
        'cat/00.png'
        """
        return [self._handle.key(int(i)) for i in self._numbers()]

    def _hashes(self, seed: int) -> NDArray[np.uint64]:
        hashes = np.frombuffer(self._handle.key_hashes(), np.uint64)[self._numbers()]
        return _split.mixed(hashes, seed, self._depth)

    def _divided(self, chosen: NDArray[np.bool_]) -> Source:
        part = self._part(self._numbers()[chosen])
        part._depth = self._depth + 1
        return part

    def split(self, *shares: float, by: str | None = None, seed: int = 0) -> tuple[Source, ...]:
        """Parts of these shares, by a hash of each sample's key: a sample stays where it is when the set grows.

        What the shares leave over is one more part: `split(0.9)` gives two. `by="class"` takes the shares of each class
        exactly (then growth may move a sample at the boundary).

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

    def kfold(self, k: int, by: str | None = None, seed: int = 0) -> list[tuple[Source, Source]]:
        """k pairs (train, val) for cross-validation: every sample is in one `val`, and in `train` of the others.

        By a hash of each sample's key, as with `split`. In a small set, a fold that would be empty takes one sample of
        the largest fold; growth may change which one. `by="class"` gives folds of equal size, with all classes
        alike (then growth moves samples).

        >>> for train, val in stoker.Source(photos).kfold(3, by="class"):
        ...     print(len(train), len(val))
        8 4
        8 4
        8 4
        """
        k = whole("kfold: k", k, 2, 2**31)
        if k > len(self):
            raise usage(
                f"kfold: k is {k}, but there {'is' if len(self) == 1 else 'are'} {counted(len(self), 'sample')}"
            )
        if _split.is_by_class("kfold", by):
            folds = _split.by_fold_of_class(self._hashes(seed), self.labels, k)
        else:
            folds = _split.by_fold(self._hashes(seed), k)
        return [(self._divided(folds != i), self._divided(folds == i)) for i in range(k)]

    def subset(self, indices: Iterable[int]) -> Source:
        """These samples, in this order.

        >>> stoker.Source(photos).subset([3, 1]).labels
        array([0, 0])
        """
        wanted = np.asarray(list(indices) if not isinstance(indices, np.ndarray) else indices)
        if wanted.dtype == bool and len(wanted) != len(self):
            raise usage(f"subset: a mask of {len(wanted)} for {len(self)} samples; one for each is needed")
        wanted = np.flatnonzero(wanted) if wanted.dtype == bool else sample_numbers("subset: indices", wanted)
        bad = wanted[(wanted < -len(self)) | (wanted >= len(self))] if wanted.size else wanted
        if bad.size:
            raise usage(f"subset: there is no sample {bad[0]}; there are {len(self)}")
        return self._part(self._numbers()[wanted.astype(np.int64)])

    def select(self, classes: Sequence[str | int]) -> Source:
        """The samples of some classes; labels stay as they are.

        >>> len(stoker.Source(photos).select(classes=["dog"]))
        6
        """
        names = self.classes
        numbers = []
        check_types({"classes": classes})
        for c in classes:
            known = range(len(names)) if names else np.unique(self.labels).tolist()
            if not isinstance(c, str) and c not in known:
                raise usage(f"select: there is no class {c!r}; there are {len(known)}")
            if isinstance(c, str) and c not in names:
                raise usage(f"select: there is no class {c!r}{hint(c, names)}")
            numbers.append(names.index(c) if isinstance(c, str) else c)
        return self._part(self._numbers()[np.isin(self.labels, numbers)])

    def take(self, n: int) -> Source:
        """The first n samples.

        >>> len(stoker.Source(photos).take(5))
        5
        """
        return self._part(self._numbers()[: whole("take: n", n, 0, 2**62)])

    def _name(self) -> str:
        return self._paths[0] if isinstance(self._paths[0], str) else f"a {type(self._paths[0]).__name__}"

    def _follows(self, classes: list[str]) -> bool:
        """Whether labels become those of other classes: names do, numbers stay what they are."""
        if not self.classes or classes[: len(self.classes)] == self.classes:
            return True
        if self.table is not None:
            return False
        own = np.frombuffer(self._handle.labels(), np.int64)
        then = np.frombuffer(_stoker.Source(self._options() | {"classes": classes}).labels(), np.int64)
        places, known = np.array([classes.index(c) for c in self.classes]), own >= 0
        return bool(known.any()) and np.array_equal(places[own[known]], then[known])

    def __add__(self, other: Source) -> Source:
        """One after the other, with the fields that both have; classes are joined by name, in byte order.

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
                        f"the labels of {one._name()} are numbers, of its classes {', '.join(one.classes)}, and would "
                        f"be those of {', '.join(classes)}: bring them to the same classes first"
                    )
        both = Source.__new__(Source)._set(self._paths + other._paths, classes, self._fields + other._fields)
        if self._indices is not None or other._indices is not None:
            shift = self._handle.count()
            both._indices = np.concatenate([self._numbers(), other._numbers() + shift])
        both._depth = max(self._depth, other._depth)
        return both


def _rebuild(
    paths: list[Any],
    classes: list[str] | None,
    indices: Indices | None,
    mix: Any = None,
    fields: list[str | None] | None = None,
    depth: int = 0,
) -> Source:
    source = Source.__new__(Source)._set(paths, classes, fields or [None] * len(paths))
    source._indices, source._mix, source._depth = indices, mix, depth
    return source
