"""What every vector store checks: that no vector is broken."""

from __future__ import annotations

import math
from collections.abc import Collection

from concord.core.errors import BadValue
from concord.types import FLOAT_BYTES, Vector

_LENGTH_TOLERANCE = 1e-3  # a unit vector rounded to float32 is off by 1e-7; to float16, by 5e-4


def check_vector(vector: Vector, dimension: int) -> None:
    """Refuse a vector that is not finite, not of length 1 or not of this dimension.

    Raises:
        BadValue: it is one of these.
    """
    if len(vector) != dimension * FLOAT_BYTES:
        found = len(vector) / FLOAT_BYTES
        raise BadValue(f"a vector has {found:g} dimensions where the index has {dimension}", hint=_HINT)
    from array import array  # late: a search by words checks no vector

    length = math.hypot(*array("f", vector))
    if not abs(length - 1) <= _LENGTH_TOLERANCE:  # so written, it refuses NaN as well
        raise BadValue(f"a vector has the length {length:g} where 1 is needed", hint=_HINT)


def check_vectors(vectors: Collection[Vector], dimension: int) -> None:
    """Refuse all of these vectors if `check_vector` refuses one of them.

    Raises:
        BadValue: it refuses one.
    """
    if not is_sound(vectors, dimension):
        for vector in vectors:
            check_vector(vector, dimension)


def is_sound(vectors: Collection[Vector], dimension: int | None) -> bool:
    """Whether `check_vector` would refuse none of these: for many at once, this takes a tenth of the time."""
    import numpy as np  # late: a search checks one vector, and some stores have no use for it at all

    if not dimension or any(len(vector) != dimension * FLOAT_BYTES for vector in vectors):
        return False
    rows = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dimension)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return bool((np.abs(lengths - 1) <= _LENGTH_TOLERANCE).all())


_HINT = "the embedder is broken or is not the one that the index was built with"
