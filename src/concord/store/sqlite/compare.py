"""Comparing many vectors at once with numpy, which this file imports.

vec0 keeps 32 vectors in one value of its table `…_vector_chunks00`, and which rows these are in `…_chunks`.
Reading these values whole is as fast as vec0's own search, and a vector that a disk has spoiled cannot push
others out of the list, as one that compares as not-a-number does there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from concord.store.sql import Session
from concord.types import Vector

_VALUES_SCANNED = 8  # at once: they stay in the processor's cache
_LENGTH_TOLERANCE = 1e-3  # as of vectors that are stored: one that is longer or shorter was spoiled
_GROWTH = 4

_BLOCKS = """
SELECT c.validity, c.rowids, v.vectors FROM {table}_chunks AS c JOIN {table}_vector_chunks00 AS v
ON v.rowid = c.chunk_id"""

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Scores = NDArray[np.float64]
ScoredIds = tuple[Ids, Scores]


def normalised(vector: Vector) -> Floats:
    """Return a vector of length 1."""
    query = np.frombuffer(vector, dtype="<f4")
    unit: Floats = query / np.linalg.norm(query)
    return unit


def scores_of(vectors: Mapping[int, Vector], query: Floats) -> ScoredIds:
    """Return the cosine of each of some vectors with another of length 1."""
    return _scores(*arrays(vectors, len(query)), query)


def scan(session: Session, table: str, query: Floats) -> ScoredIds:
    """Return the cosine of each vector of a table, without keeping the vectors."""
    read = blocks(session, table, len(query), _VALUES_SCANNED)
    parts = [_scores(ids, rows, query) for ids, rows in read]
    parts = parts or [(np.empty(0, np.int64), np.empty(0))]
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


def cosines(rows: Floats, lengths: Floats, query: Floats) -> Scores:
    """Return the cosine of each of some vectors with another of length 1."""
    # Not `rows @ query`: several threads for so little work wait longer for each other than they save.
    scores: Floats = np.einsum("ij,j->i", rows, query) / lengths
    return np.minimum(scores, 1.0).astype(np.float64)


def sound(ids: Ids, rows: Floats) -> tuple[Ids, Floats, Floats]:
    """Return vectors and their lengths, without those whose length cannot be right."""
    with np.errstate(all="ignore"):  # what a disk has spoiled may be anything
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        is_sound = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # so written, it refuses not-a-number as well
    if is_sound.all():
        return ids, rows, lengths
    return ids[is_sound], rows[is_sound], lengths[is_sound]


def arrays(vectors: Mapping[int, Vector], dimension: int) -> tuple[Ids, Floats]:
    """Return ids and vectors."""
    rows = np.frombuffer(b"".join(vectors.values()), dtype="<f4").reshape(-1, dimension)
    return np.fromiter(vectors, dtype=np.int64), rows


def blocks(session: Session, table: str, dimension: int, values: int) -> Iterator[tuple[Ids, Floats]]:
    """Yield the vectors of a table, those of so many values at a time."""
    rows = iter(session.iterate(_BLOCKS.format(table=table)))
    while few := list(islice(rows, values)):
        validity, ids, vectors = (b"".join(parts) for parts in zip(*few, strict=True))
        is_there = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little").astype(bool)
        numbers = np.frombuffer(vectors, dtype="<f4").reshape(-1, dimension)
        yield np.frombuffer(ids, dtype="<i8")[is_there], numbers[is_there]


def _scores(ids: Ids, rows: Floats, query: Floats) -> ScoredIds:
    ids, rows, lengths = sound(ids, rows)
    return ids, cosines(rows, lengths, query)
