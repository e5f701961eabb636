"""Arrays in PostgreSQL's binary form: a head, then every item after its length, highest byte first.

psycopg makes arrays item by item; many rows become parameters faster as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct, pack
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What PostgreSQL calls these types, in every database, and arrays of them.
_BIGINT, _INTEGER, _TEXT, _TSVECTOR = 20, 23, 25, 3614
_BIGINTS, _INTEGERS, _TEXTS, _TSVECTORS = 1016, 1007, 1009, 3643
_BIGINT_BYTES, _INTEGER_BYTES = 8, 4
_LENGTH = Struct(">i").pack


class Bigints(NamedTuple):
    """Numbers as a parameter of a statement."""

    numbers: NDArray[np.int64]


class Integers(NamedTuple):
    """Numbers below 2³¹ as a parameter of a statement."""

    numbers: NDArray[np.int64]


class Texts(NamedTuple):
    """Texts as a parameter of a statement."""

    texts: Sequence[str]


class TextItems(NamedTuple):
    """Texts as a parameter of a statement, each as `text_item` returns it."""

    items: Sequence[bytes]


class Tsvectors(NamedTuple):
    """Tsvectors as a parameter of a statement: how many, and all of them in their binary form."""

    number: int
    items: bytes


class _BigintsDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINTS

    def dump(self, obj: Bigints) -> bytes:
        return _numbers(_BIGINT, _BIGINT_BYTES, obj.numbers)


class _IntegersDumper(Dumper):
    format = Format.BINARY
    oid = _INTEGERS

    def dump(self, obj: Integers) -> bytes:
        return _numbers(_INTEGER, _INTEGER_BYTES, obj.numbers)


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: Texts) -> bytes:
        items = [text.encode() for text in obj.texts]
        lengths = map(_LENGTH, map(len, items))
        return array_head(_TEXT, len(items)) + b"".join(chain.from_iterable(zip(lengths, items, strict=True)))


class _TextItemsDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: TextItems) -> bytes:
        return array_head(_TEXT, len(obj.items)) + b"".join(obj.items)


class _TsvectorsDumper(Dumper):
    format = Format.BINARY
    oid = _TSVECTORS

    def dump(self, obj: Tsvectors) -> bytes:
        return array_head(_TSVECTOR, obj.number) + obj.items


def array_head(item: int, number: int) -> bytes:
    """Return what an array of so many items of a type begins with; it has one dimension and no NULL."""
    return pack(">iiIii", 1, 0, item, number, 1)


def text_item(text: bytes) -> bytes:
    """Return a text as an array of texts has it: whoever sends the same one often makes it once."""
    return _LENGTH(len(text)) + text


def _numbers(item: int, size: int, numbers: NDArray[np.int64]) -> bytes:
    import numpy as np

    items = np.empty(len(numbers), [("length", ">i4"), ("number", f">i{size}")])
    items["length"] = size
    items["number"] = numbers
    return array_head(item, len(items)) + items.tobytes()


# For every connection: the types of parameters are ours, and those of the server are the same everywhere.
psycopg.adapters.register_dumper(Bigints, _BigintsDumper)
psycopg.adapters.register_dumper(Integers, _IntegersDumper)
psycopg.adapters.register_dumper(Texts, _TextsDumper)
psycopg.adapters.register_dumper(TextItems, _TextItemsDumper)
psycopg.adapters.register_dumper(Tsvectors, _TsvectorsDumper)
