# SPDX-License-Identifier: Apache-2.0
"""The argument `fields`: what a batch contains, and the text that the engine reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import usage
from ._rows import MOST_NAME, OWN
from ._types import DTYPES

COMPUTED = ("path", "key")  # made from the sample's index, unless the source has fields with these names
# Conversions in Python, as in "label:float". str is the name of a label's class.
CASTS = {"int": "int64", "float": "float32", "": "", "str": "str"}
CASTS |= {name: name for name in DTYPES if name != "bfloat16"}
KINDS = ("image", "int", "float", "class", "tensor", "bytes", "text", "json", *DTYPES)
_KIND = re.compile(rf"({'|'.join(KINDS)})\s*(\(.*\))?(\s+pad.*)?(\s*\?.*)?", re.DOTALL)


@dataclass
class Wanted:
    """One requested field: its name in the batch, its column, and how to read it."""

    name: str
    column: str
    kind: str = ""
    default: str | None = None
    is_kind: bool = False  # `column` may also be a kind for the column `name`

    @property
    def own(self) -> bool:
        return self.column in (*OWN, *COMPUTED)

    def text(self, kinds: bool) -> str:
        """The text for the engine; kinds: an ambiguous word is a kind, not a column."""
        name, column, kind = self.name, self.column, self.kind
        if self.is_kind and kinds:
            column, kind = name, column
        if kind == "str":  # converted in Python
            kind = ""
        default = f" ? {_quoted(self.default)}" if self.default is not None else ""
        return f"{_quoted(name)}={_quoted(column)}" + (f":{kind}" if kind else "") + default


def _quoted(text: str) -> str:
    if '"' in text:
        raise usage(f"fields: {text!r} contains a quote; choose another name")
    return f'"{text}"'


def _items(text: str) -> list[str]:
    """Splits a list of fields at its commas.

    >>> _items('a=b:int64(2,3) pad=-1, "c,d", e')
    ['a=b:int64(2,3) pad=-1', '"c,d"', 'e']
    """
    if (plain := re.sub(r'"[^"]*"', "", text)).count("(") != plain.count(")"):
        raise usage(f"fields: a bracket is not closed in {text!r}; write [name =] column [: kind] [? default], ...")
    parts: list[str] = re.findall(r'(?:"[^"]*"|\([^)]*\)|[^,"(])+', text)
    return [part.strip() for part in parts if part.strip()]


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _parsed(text: str, name: str | None = None) -> Wanted:
    """Parses one field.

    >>> _parsed("pixels=jpg"), _parsed("cls:int ? 0")
    (Wanted(name='pixels', column='jpg', kind='', default=None, is_kind=False), \
Wanted(name='cls', column='cls', kind='int', default='0', is_kind=False))
    """
    match = re.fullmatch(
        r'\s*("[^"]*"|[^=:?"]+)\s*(?:=\s*("[^"]*"|[^=:?"]+)\s*)?(?::([^?]*))?(?:\?(.*))?', text, re.DOTALL
    )
    if match is None:
        raise usage(
            f"fields: {text!r} cannot be read; write [name =] column [: kind] [? default], such as x, y=x:int or "
            "x:float32(3,4) ? 0"
        )
    first, second, kind, default = match.groups()
    if not first.startswith('"') and re.search(r"\spad\s*$", first):
        name = first.split()[0]
        raise usage(f"fields: {text!r} has pad but no kind; give one, such as {name}:int64(*) pad=0")
    column = _unquoted(first if second is None else second)
    if name is None:
        name = _unquoted(first) if second else column.encode()[:MOST_NAME].decode(errors="ignore")
    return Wanted(name, column, (kind or "").strip(), None if default is None else _unquoted(default))


def _from_mapping(fields: Mapping[str, str]) -> list[Wanted]:
    wanted = []
    for name, value in fields.items():
        if _KIND.fullmatch(value.strip()) and ":" not in value:
            word, _, default = value.partition("?")
            one = Wanted(name, word.strip(), default=_unquoted(default) if "?" in value else None, is_kind=True)
        else:
            one = _parsed(value, name)
        wanted.append(one)
    return wanted


def wanted_of(fields: Sequence[str] | Mapping[str, str] | str) -> list[Wanted]:
    """Parses the argument `fields`.

    >>> [w.text(True) for w in wanted_of({"jpg": "image", "labels": "cls:int"})]
    ['"jpg"="jpg":image', '"labels"="cls":int']
    """
    if isinstance(fields, Mapping):
        wanted = _from_mapping(fields)
    else:
        wanted = [_parsed(item) for item in (_items(fields) if isinstance(fields, str) else fields)]
    if not wanted:
        raise usage("fields is empty; name at least one field")
    names = [w.name for w in wanted]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise usage(f"fields has {twice[0]!r} twice; pass a dict with different names")
    return wanted


def pipelines(ops: str) -> dict[str, int]:
    """The names of the pipelines in a text of ops, and how many images each makes.

    >>> pipelines("global*2: CenterCrop(8) ; mask: CenterCrop(4)")
    {'global': 2, 'mask': 1}
    """
    found = re.findall(r"(?:^|;)\s*(\w+)\s*(?:\*\s*(\d+)\s*)?:", ops)
    return {name: int(count or 1) for name, count in found}


def _of_views(wanted: Sequence[Wanted], views: Sequence[str]) -> list[Wanted]:
    """The fields of the source that are needed for views, and for fields that follow them (a.mask)."""
    found, more = [], []
    for w in wanted:
        view, _, field = w.column.partition(".")
        if view not in views or w.kind or w.name != w.column:
            found.append(w)
        else:
            more += [Wanted(name, name) for name in ("image", field) if name]
    return list({w.name: w for w in (*more, *found)}.values())


def texts(wanted: list[Wanted] | None, views: Mapping[str, int] | None = None) -> list[str | None]:
    """Texts to try on the engine until one names columns that exist; None: all fields. Views are made of the image.

    views: the pipelines. One of them may also be for a column, unless it makes several images.
    """
    mine = [w for w in wanted or () if not w.own]
    if not mine:
        return [None]
    names = list(views or ())
    doubtful = [w.column for w in mine if w.column in names and (views or {})[w.column] == 1]
    lists = (
        [mine] + [_of_views(mine, [n for n in names if n != column]) for column in doubtful] + [_of_views(mine, names)]
    )
    found = [", ".join(w.text(kinds) for w in one) for one in lists for kinds in (True, False)]
    return list(dict.fromkeys(found))


def own_texts(fields: Sequence[str] | Mapping[str, str] | str) -> list[str | None]:
    """Texts for the fields of a Source, which has none of the fields that a loader adds."""
    wanted = wanted_of(fields)
    for w in wanted:
        if w.own or w.kind == "str":
            what = repr(w.column) if w.own else f"{w.column}:str"
            raise usage(f"fields of a Source: only a loader has {what}; pass it to the loader")
    return texts(wanted)


# ---------------------------------------------------------------- features of tf.io


def _feature(name: str, feature: Any) -> str:
    dtype = getattr(getattr(feature, "dtype", None), "name", str(getattr(feature, "dtype", "")))
    if dtype not in ("string", "int64", "float32"):
        raise usage(f"features: {name!r} is {feature!r}; it must be a FixedLenFeature or a VarLenFeature")
    if not hasattr(feature, "shape"):  # VarLenFeature
        return f"{_quoted(name)}:" + ("bytes" if dtype == "string" else f"{dtype}(*)") + ' ? ""'
    shape, default = list(feature.shape), getattr(feature, "default_value", None)
    if shape and dtype == "string":
        raise usage(f"features: {name!r} is a list of strings, which Stoker does not read; leave it out")
    text = _quoted(name)
    if dtype != "string":
        text += ":" + (f"{dtype}({','.join(map(str, shape))})" if shape else "int" if dtype == "int64" else "float")
    if default is not None:
        value = default.decode() if isinstance(default, bytes) else default
        flat = value if isinstance(value, (str, int, float)) else next(iter(value), 0)
        text += f" ? {_quoted(str(flat))}"
    return text


def from_features(features: Mapping[str, Any]) -> str:
    """The text of features as `tf.io.parse_single_example` takes them. TensorFlow is not imported.

    >>> from types import SimpleNamespace as Feature
    >>> from_features({"x": Feature(shape=[2, 3], dtype="float32"), "ids": Feature(dtype="int64")})
    '"x":float32(2,3), "ids":int64(*) ? ""'
    """
    if not isinstance(features, Mapping) or not features:
        raise usage(f"features is {features!r}; it must be a dict of tf.io.FixedLenFeature and VarLenFeature")
    return ", ".join(_feature(str(name), feature) for name, feature in features.items())
