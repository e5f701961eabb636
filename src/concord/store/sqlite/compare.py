"""Comparing many vectors at once with numpy, which this file imports.

vec0 keeps 32 vectors in one value of its table `…_vector_chunks00`, and which rows these are in `…_chunks`.
Reading these values whole is as fast as vec0's own search, and a vector that a disk has spoiled cannot push
others out of the list, as one that compares as not-a-number does there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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


def scores_of(ids: Ids, rows: Floats, query: Floats) -> ScoredIds:
    """Return the cosine of each of some vectors with another of length 1."""
    ids, rows = sound(ids, rows)
    # Not `rows @ query`: several threads for so little work wait longer for each other than they save.
    scores = np.einsum("ij,j->i", rows, query) / np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return ids, np.minimum(scores, 1.0).astype(np.float64)


def scan(session: Session, table: str, query: Floats) -> ScoredIds:
    """Return the cosine of each vector of a table, without keeping the vectors."""
    read = blocks(session, table, len(query), _VALUES_SCANNED)
    parts = [scores_of(ids, rows, query) for ids, rows in read]
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


def sound(ids: Ids, rows: Floats) -> tuple[Ids, Floats]:
    """Return vectors without those whose length cannot be right."""
    with np.errstate(all="ignore"):  # what a disk has spoiled may be anything
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        is_sound = np.abs(lengths - 1) <= _LENGTH_TOLERANCE  # so written, it refuses not-a-number as well
    return (ids, rows) if is_sound.all() else (ids[is_sound], rows[is_sound])


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


Places = NDArray[np.intp]
Rows = NDArray[np.float32] | NDArray[np.int8]
Mask = NDArray[np.bool_]

_SEED = 20240517  # any, but always the same: codes of two processes agree
_WORD_BITS = 64
_BITS = np.arange(4, dtype=np.uint8)[:, np.newaxis]  # of a number of the query
_LARGEST = 15
_BLOCK = 32_768  # codes at a time: the sums of a block stay in the processor's cache
_ROWS = 2048  # at a time: a few megabytes
_NEAREST = 10


class Codes:
    """The codes of vectors of length 1, by their places: one bit a number and two floats a vector."""

    def __init__(self, centre: Floats, bits: NDArray[np.uint64], factors: Floats, offsets: Floats) -> None:
        self.centre = centre
        self._bits = bits  # words by codes
        self._factors = factors  # turn counted bits into a cosine with the centred vector
        self._offsets = offsets  # and that into one with the vector

    @classmethod
    def of(cls, centre: Floats, vectors: Floats) -> Codes:
        """Return the codes of vectors around a centre: their mean, or that of a sample."""
        turned = (vectors - centre) @ _rotation(len(centre))
        sums = np.abs(turned).sum(axis=1)
        factors = np.einsum("ij,ij->i", turned, turned) / np.where(sums > 0, sums, 1)
        return cls(centre, np.ascontiguousarray(_packed(turned > 0).T), factors, vectors @ centre)

    @classmethod
    def joined(cls, parts: Sequence[Codes]) -> Codes:
        """Return codes around the same centre, one after the other."""
        bits = np.concatenate([codes._bits for codes in parts], axis=1)
        factors = np.concatenate([codes._factors for codes in parts])
        return cls(parts[0].centre, bits, factors, np.concatenate([codes._offsets for codes in parts]))

    def propose(self, query: Floats, count: int, mask: Mask | None = None) -> Places:
        """Return the places of what seems nearest to a vector of length 1, ascending.

        A mask leaves out all else. Of vectors that seem equally near, those that come first are taken.
        """
        turned = (query - self.centre) @ _rotation(len(query))
        step = float(np.abs(turned).max()) / _LARGEST or 1.0
        levels = np.rint((turned / step + _LARGEST) / 2).astype(np.uint8)  # 0 to 15 for -15, -13, … 15 steps
        planes = _packed((levels >> _BITS & 1).astype(np.bool_))
        signed = _LARGEST * len(turned) - 2 * self._differing(planes)
        # The cosine of every vector, but for its error and for a summand that all have in common.
        estimates: Floats = signed * (self._factors * np.float32(step)) + self._offsets
        if mask is not None:
            estimates = np.where(mask, estimates, -np.inf)
            count = min(count, int(np.count_nonzero(mask)))
        return largest(estimates, count)

    def recall(self, rows: Rows, queries: Floats, count: int) -> float:
        """Return which share of the ten nearest is among so many that are proposed.

        Vectors of a model lie in clusters, and codes find nearly all neighbours. Vectors without structure,
        as from a broken model, have neighbours hardly nearer than anything else: one bit cannot tell.
        """
        near = np.empty((len(rows), len(queries)), np.float32)
        for start in range(0, len(rows), _ROWS):
            block = rows[start : start + _ROWS].astype(np.float32)
            near[start : start + _ROWS] = block @ queries.T / np.linalg.norm(block, axis=1, keepdims=True)
        pairs = (
            (largest(near[:, at], _NEAREST), self.propose(queries[at], count)) for at in range(len(queries))
        )
        return float(np.mean([np.isin(nearest, proposed).mean() for nearest, proposed in pairs]))

    def _differing(self, planes: NDArray[np.uint64]) -> Floats:
        """Return in how many bits each code differs from a query's, weighed by what those are worth."""
        total = np.zeros(len(self._factors), np.float32)
        for start in range(0, len(total), _BLOCK):
            block = self._bits[:, start : start + _BLOCK]
            for bit, plane in enumerate(planes):
                counts = np.bitwise_count(block ^ plane[:, np.newaxis])
                total[start : start + _BLOCK] += counts.sum(axis=0, dtype=np.uint16) * np.float32(1 << bit)
        return total


def largest(values: Floats, count: int) -> Places:
    """Return the places of the largest values, ascending; of equal ones, the first."""
    if count >= len(values):
        return np.arange(len(values))
    if count < 1:
        return np.empty(0, np.intp)
    least = np.partition(values, len(values) - count)[len(values) - count]
    places = np.flatnonzero(values >= least)
    if len(places) > count:
        places = np.sort(places[np.argsort(-values[places], kind="stable")[:count]])
    return places


def _packed(bits: Mask) -> NDArray[np.uint64]:
    return np.packbits(bits, axis=-1).view(np.uint64)


@cache
def _rotation(dimension: int) -> Floats:
    """Return a random rotation into as many dimensions as fill whole words; lengths and angles stay."""
    wide = -(-dimension // _WORD_BITS) * _WORD_BITS
    random = np.random.default_rng(_SEED).standard_normal((wide, wide))
    return np.ascontiguousarray(np.linalg.qr(random)[0][:dimension], dtype=np.float32)
