"""pgvector's binary form: two lengths, then the numbers, highest byte first. Ours has the lowest first."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from struct import pack
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from concord.types import FLOAT_BYTES, Vector

_HEAD_BYTES = 4
_IS_LITTLE = sys.byteorder == "little"


class Embedding(NamedTuple):
    """A vector as a parameter of a statement or a field of COPY."""

    vector: Vector


def to_wire(vector: Vector) -> bytes:
    """Return a vector as PostgreSQL receives it."""
    return pack(">HH", len(vector) // FLOAT_BYTES, 0) + _swapped(vector)


def from_wire(sent: Sequence[bytes]) -> Iterator[Vector]:
    """Yield the vectors, all of one dimension, that `vector_send` has sent."""
    together = _swapped(b"".join([one[_HEAD_BYTES:] for one in sent]))
    size = len(sent[0]) - _HEAD_BYTES if sent else 1
    return (together[start : start + size] for start in range(0, len(together), size))


def register_vectors(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to send embeddings."""
    info = TypeInfo.fetch(connection, "vector")
    if info is None:
        return  # before the first migration
    dumper = type("EmbeddingDumper", (_EmbeddingDumper,), {"oid": info.oid})
    info.register(connection)
    connection.adapters.register_dumper(Embedding, dumper)


class _EmbeddingDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        return to_wire(obj.vector)


def _swapped(numbers: bytes) -> bytes:
    turned = array("f", numbers)
    if _IS_LITTLE:
        turned.byteswap()
    return turned.tobytes()
