"""Comparing many vectors at once with numpy, which this file imports: read from the file, or kept in memory.

vec0 keeps 32 vectors in one value of its table `…_vector_chunks00`, and which rows these are in `…_chunks`.
Reading these values whole is as fast as vec0's own search, and a vector that a disk has spoiled cannot push
others out of the list, as one that compares as not-a-number does there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from concord.store.sql import Session
from concord.types import Vector

_VALUES_AT_ONCE = 8
_LENGTH_TOLERANCE = 1e-3  # as of vectors that are stored: one that is longer or shorter was spoiled
_GROWTH = 4

_BLOCKS = """
SELECT c.validity, c.rowids, v.vectors FROM {table}_chunks AS c JOIN {table}_vector_chunks00 AS v
ON v.rowid = c.chunk_id"""

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]
Scores = NDArray[np.float64]


class Matrix:
    """Vectors in memory, by their ids."""

    def __init__(self, ids: Ids, rows: Rows) -> None:
        order = np.argsort(ids)
        self._ids, self._rows = ids[order], rows[order]

    def scores(self, vector: Vector) -> tuple[Ids, Scores]:
        """Return the cosine of each vector with another."""
        return _scores(self._ids, self._rows, _query(vector))

    def fetch(self, ids: Sequence[int]) -> dict[int, Vector]:
        """Return those of the vectors that are here."""
        if not len(self._ids):
            return {}
        wanted = np.fromiter(dict.fromkeys(ids), dtype=np.int64)
        places = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        there = self._ids[places] == wanted
        rows = self._rows[places[there]]
        return {id: row.tobytes() for id, row in zip(wanted[there].tolist(), rows, strict=True)}


def read_matrix(session: Session, table: str, dimension: int) -> Matrix:
    """Read all vectors of a table."""
    parts = list(_blocks(session, table, dimension))
    if not parts:
        return Matrix(np.empty(0, dtype=np.int64), np.empty((0, dimension), dtype="<f4"))
    return Matrix(np.concatenate([ids for ids, _ in parts]), np.concatenate([rows for _, rows in parts]))


def matrix_of(vectors: Mapping[int, Vector], dimension: int) -> Matrix:
    """Return vectors that have been read one by one."""
    rows = np.frombuffer(b"".join(vectors.values()), dtype="<f4").reshape(-1, dimension)
    return Matrix(np.fromiter(vectors, dtype=np.int64), rows)


def scan(session: Session, table: str, dimension: int, vector: Vector) -> tuple[Ids, Scores]:
    """Return the cosine of each vector of a table with another, without keeping the vectors."""
    query = _query(vector)
    parts = [_scores(ids, rows, query) for ids, rows in _blocks(session, table, dimension)]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])


def best_first(ids: Ids, scores: Scores, size: int) -> Iterator[dict[int, float]]:
    """Yield ids with their scores in groups, the best group first; equal scores are in one group.

    Groups grow, so that there are few even where hardly anything in them is wanted.
    """
    left = np.arange(len(scores))
    while len(left):
        if size < len(left):
            least = np.partition(scores[left], len(left) - size)[len(left) - size]
            is_best = scores[left] >= least
            chosen, left = left[is_best], left[~is_best]
        else:
            chosen, left = left, left[:0]
        yield dict(zip(ids[chosen].tolist(), scores[chosen].tolist(), strict=True))
        size *= _GROWTH


def _query(vector: Vector) -> Rows:
    query = np.frombuffer(vector, dtype="<f4")
    normalised: Rows = query / np.linalg.norm(query)
    return normalised


def _scores(ids: Ids, rows: Rows, query: Rows) -> tuple[Ids, Scores]:
    """Return cosines, without those of vectors whose length cannot be right."""
    with np.errstate(all="ignore"):  # what a disk has spoiled may be anything
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        is_sound = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # so written, it refuses not-a-number as well
        # Not `rows @ query`: several threads for so little work wait longer for each other than they save.
        scores = np.einsum("ij,j->i", rows, query) / lengths
    if not is_sound.all():
        ids, scores = ids[is_sound], scores[is_sound]
    return ids, np.minimum(scores, 1.0).astype(np.float64)


def _blocks(session: Session, table: str, dimension: int) -> Iterator[tuple[Ids, Rows]]:
    """Yield the vectors of a table, some hundred at a time."""
    rows = iter(session.iterate(_BLOCKS.format(table=table)))
    while few := list(islice(rows, _VALUES_AT_ONCE)):
        validity, ids, vectors = (b"".join(values) for values in zip(*few, strict=True))
        is_there = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little").astype(bool)
        numbers = np.frombuffer(vectors, dtype="<f4").reshape(-1, dimension)
        yield np.frombuffer(ids, dtype="<i8")[is_there], numbers[is_there]
