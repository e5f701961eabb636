"""pgvector's binary form: two lengths, then the numbers, highest byte first. Ours has the lowest first."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from struct import pack
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from concord.backends.postgres.array_form import array_head
from concord.types import FLOAT_BYTES, Vector

_HEAD_BYTES = 4
_IS_LITTLE = sys.byteorder == "little"


class Embedding(NamedTuple):
    """A vector as a parameter of a statement."""

    vector: Vector


class Embeddings(NamedTuple):
    """Vectors of one dimension as a parameter of a statement."""

    vectors: Sequence[Vector]


def to_wire(vector: Vector) -> bytes:
    """Return a vector as PostgreSQL receives it."""
    return _head(len(vector)) + _swapped(vector)


def from_wire(sent: bytes, dimension: int) -> list[Vector]:
    """Return the vectors, all of one dimension, that `vector_send` has sent, one after the other."""
    import numpy as np

    items = np.frombuffer(sent, [("head", f"S{_HEAD_BYTES}"), ("numbers", ">f4", (dimension,))])
    together, size = items["numbers"].astype("<f4").tobytes(), dimension * FLOAT_BYTES
    return [together[start : start + size] for start in range(0, len(together), size)]


def register_vectors(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to send embeddings."""
    info = TypeInfo.fetch(connection, "vector")
    if info is None:
        return  # before the first migration
    info.register(connection)
    one = type("EmbeddingDumper", (_EmbeddingDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(Embedding, one)
    many = type("EmbeddingsDumper", (_EmbeddingsDumper,), {"oid": info.array_oid, "item": info.oid})
    connection.adapters.register_dumper(Embeddings, many)


class _EmbeddingDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        return to_wire(obj.vector)


class _EmbeddingsDumper(Dumper):
    format = Format.BINARY
    item: int

    def dump(self, obj: Embeddings) -> bytes:
        import numpy as np

        size = len(obj.vectors[0]) if obj.vectors else 0
        form = [("size", ">i4"), ("head", f"S{_HEAD_BYTES}"), ("numbers", ">f4", (size // FLOAT_BYTES,))]
        items = np.empty(len(obj.vectors), form)
        items["size"] = _HEAD_BYTES + size
        items["head"] = _head(size)
        items["numbers"] = np.frombuffer(b"".join(obj.vectors), "<f4").reshape(items["numbers"].shape)
        return array_head(self.item, len(items)) + items.tobytes()


def _head(size: int) -> bytes:
    return pack(">HH", size // FLOAT_BYTES, 0)


def _swapped(numbers: bytes) -> bytes:
    turned = array("f", numbers)
    if _IS_LITTLE:
        turned.byteswap()
    return turned.tobytes()
