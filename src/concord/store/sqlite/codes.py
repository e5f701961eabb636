"""One bit a number: codes small enough to compare a query with every vector of a large store (RaBitQ).

A vector is centred and turned by a random rotation; the signs of what comes out are its code, and two numbers
say how to estimate its cosine from them (Gao and Long 2024). The query is rounded to four bits a number, so
that counting bits is all there is to do: 100,000 vectors of 384 dimensions take 2 ms on one thread. Codes
only propose: what they propose is compared with the vectors themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from concord.store.sqlite.compare import Floats

Places = NDArray[np.intp]
Mask = NDArray[np.bool_]

_SEED = 20240517  # any, but always the same: codes of two processes agree
_WORD_BITS = 64
_BITS = np.arange(4, dtype=np.uint8)[:, np.newaxis]  # of a number of the query
_LARGEST = 15
_BLOCK = 32_768  # codes at a time: the sums of a block stay in the processor's cache
_NEAREST = 10
_LEAST_RECALL = 0.99


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

    def at(self, places: Places) -> Codes:
        """Return some of the codes, in another order."""
        bits = self._bits.take(places, axis=1)  # in rows; `[:, places]` would leave them in columns
        return Codes(self.centre, bits, self._factors[places], self._offsets[places])

    def propose(self, query: Floats, count: int, mask: Mask | None = None) -> Places:
        """Return the places of what seems nearest to a vector of length 1, ascending.

        A mask leaves out all else. Of vectors that seem equally near, those that come first are taken.
        """
        estimates = self._estimates(query)
        if mask is not None:
            estimates = np.where(mask, estimates, -np.inf)
            count = min(count, int(np.count_nonzero(mask)))
        return largest(estimates, count)

    def _estimates(self, query: Floats) -> Floats:
        """Return the cosine of every vector, but for its error and for a summand that all have in common."""
        turned = (query - self.centre) @ _rotation(len(query))
        step = float(np.abs(turned).max()) / _LARGEST or 1.0
        levels = np.rint((turned / step + _LARGEST) / 2).astype(np.uint8)  # 0 to 15 for -15, -13, … 15 steps
        planes = _packed((levels >> _BITS & 1).astype(np.bool_))
        signed = _LARGEST * len(turned) - 2 * self._differing(planes)
        estimates: Floats = signed * (self._factors * np.float32(step)) + self._offsets
        return estimates

    def _differing(self, planes: NDArray[np.uint64]) -> Floats:
        """Return in how many bits each code differs from a query's, weighed by what those are worth."""
        total = np.zeros(len(self._factors), np.float32)
        for start in range(0, len(total), _BLOCK):
            block = self._bits[:, start : start + _BLOCK]
            for bit, plane in enumerate(planes):
                counts = np.bitwise_count(block ^ plane[:, np.newaxis])
                total[start : start + _BLOCK] += counts.sum(axis=0, dtype=np.uint16) * np.float32(1 << bit)
        return total


class Trial:
    """Whether codes propose the nearest of a sample, whose true neighbours are found while all pass by.

    Vectors of a model lie in clusters, and codes find nearly all neighbours. Vectors without structure, as
    from a broken model, have neighbours that are hardly nearer than anything else: one bit cannot tell.
    """

    def __init__(self, sample: Floats) -> None:
        self._sample = sample
        self._scores = np.empty((len(sample), 0), np.float32)  # of the nearest
        self._places = np.empty((len(sample), 0), np.intp)
        self._seen = 0

    def watch(self, vectors: Floats) -> None:
        """Take the vectors into account that come next."""
        scores = np.hstack([self._scores, self._sample @ vectors.T])
        places = np.arange(self._seen, self._seen + len(vectors))
        places = np.hstack([self._places, np.broadcast_to(places, (len(scores), len(vectors)))])
        best = np.argpartition(-scores, min(_NEAREST, scores.shape[1]) - 1, axis=1)[:, :_NEAREST]
        self._scores, self._places = (np.take_along_axis(table, best, axis=1) for table in (scores, places))
        self._seen += len(vectors)

    def is_passed(self, codes: Codes, count: int) -> bool:
        """Whether codes that may propose so many propose nearly all of the nearest."""
        proposals = (codes.propose(query, count) for query in self._sample)
        pairs = zip(self._places, proposals, strict=True)
        recall = np.mean([np.isin(nearest, proposed).mean() for nearest, proposed in pairs])
        return float(recall) >= _LEAST_RECALL


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
