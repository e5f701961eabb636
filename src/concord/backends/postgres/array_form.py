"""Arrays in PostgreSQL's binary form: a head, then every item after its length, highest byte first.

psycopg makes arrays item by item; many rows become parameters faster as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct, pack
from typing import NamedTuple

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

# What PostgreSQL calls these types, in every database, and arrays of them.
BIGINT, _TEXT, _TSVECTOR = 20, 25, 3614
_TEXTS, _TSVECTORS = 1009, 3643
_LENGTH = Struct(">i").pack


class Texts(NamedTuple):
    """Texts as a parameter of a statement."""

    texts: Sequence[str]


class Tsvectors(NamedTuple):
    """Tsvectors as a parameter of a statement: how many, and all of them in their binary form."""

    number: int
    items: bytes


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: Texts) -> bytes:
        items = [text.encode() for text in obj.texts]
        lengths = map(_LENGTH, map(len, items))
        return array_head(_TEXT, len(items)) + b"".join(chain.from_iterable(zip(lengths, items, strict=True)))


class _TsvectorsDumper(Dumper):
    format = Format.BINARY
    oid = _TSVECTORS

    def dump(self, obj: Tsvectors) -> bytes:
        return array_head(_TSVECTOR, obj.number) + obj.items


def array_head(item: int, number: int) -> bytes:
    """Return what an array of so many items of a type begins with; it has one dimension and no NULL."""
    return pack(">iiIii", 1, 0, item, number, 1)


# For every connection: the types of parameters are ours, and those of the server are the same everywhere.
psycopg.adapters.register_dumper(Texts, _TextsDumper)
psycopg.adapters.register_dumper(Tsvectors, _TsvectorsDumper)
