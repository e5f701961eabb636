"""How do two legs become one order? Every fusion is a pure function of the same candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from concord.search.blend import (
    WEIGHTS,
    Context,
    Contribution,
    Contributions,
    Weights,
    blend,
    moments,
    pool_of,
    semantic_weight,
    z_of,
)
from concord.search.legs import STRATEGIES
from concord.types import Candidate, ChunkId, Degraded, Mode, QueryType, Ranked, RankedList

EQUAL = Weights(1.0, 1.0)
AGREEMENT_BONUS = 0.2  # up to a fifth more where every strategy found the chunk (seed 003)
LEADING, FOLLOWING = 0.7, 0.3  # the stronger signal leads, the weaker one boosts (seed 004)
FALLBACK_FLOOR = 0.0001  # where a fallback step has found something


class Candidates(Struct, frozen=True, dict=True):  # a dictionary holds what is worked out once
    """All candidates of a search, and what a fusion may know besides."""

    rows: Sequence[Candidate]  # in order of chunk id
    context: Context
    lists: Sequence[RankedList] = ()
    degraded: tuple[Degraded, ...] = ()

    @cached_property
    def best_bm25(self) -> float:
        """The best score of what words have found."""
        return max((row.bm25 or 0.0 for row in self.rows if row.lexical_rank), default=0.0)

    @cached_property
    def rrf(self) -> Mapping[ChunkId, float]:
        """The scores of reciprocal rank fusion, which floor and threshold are measured on."""
        return {chunk_id: given.score for chunk_id, given in _rrf(self.rows, self.context.k, EQUAL).items()}

    def without(self, chunk_ids: set[ChunkId]) -> Candidates:
        """Return the same without some chunks; the others keep their ranks."""
        return replace(self, rows=[row for row in self.rows if row.chunk_id not in chunk_ids])


def fuse(name: str, candidates: Candidates) -> list[Ranked]:
    """Return the candidates in the order of a fusion, best first.

    Ties go to what more strategies found, then to the lower chunk id.
    """
    rows, context = candidates.rows, candidates.context
    blended, pool = blend(rows, context), pool_of(rows)
    given = blended if name == "blend" else FUSIONS[name].contributions(rows, context)
    z = {row.chunk_id: z_of(row, blended[row.chunk_id], pool, context) for row in rows}
    ranked = [Ranked(row, given[row.chunk_id].score, z[row.chunk_id]) for row in rows]
    return sorted(ranked, key=lambda row: (-row.score, -len(row.candidate.ranks), row.chunk_id))


def above_floor(ranked: Sequence[Ranked], rrf: Mapping[ChunkId, float], minimum: float) -> Sequence[Ranked]:
    """Drop candidates whose RRF score is below the floor, unless that would leave none; named ones stay."""
    kept = [row for row in ranked if rrf[row.chunk_id] >= minimum or row.candidate.name_score]
    return kept or ranked


def agreement(ranks: Mapping[str, int]) -> float:
    """Return the share of our three strategies that found a chunk; with plugins, 1 at most."""
    return min(1.0, len(ranks) / len(STRATEGIES))


def stretched(scores: Sequence[float], low: float) -> list[float]:
    """Bring scores to [0, 1], from `low` to the best of them: each fusion has a scale of its own."""
    high = max(scores, default=low)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def dominant(first: float, second: float) -> float:
    """Return 0.7 of the greater and 0.3 of the lesser, both clipped to [0, 1]."""
    return _dominant_parts(_clipped(first), _clipped(second)).score


def multipliers(type: QueryType) -> Weights:
    """Return a type's weights scaled to average 1, so that equal ones leave reciprocal ranks as they are."""
    weights = WEIGHTS[type]
    return Weights(2 * weights.semantic, 2 * weights.lexical)


def _rrf(rows: Sequence[Candidate], k: float, weights: Weights) -> Contributions:
    """Σ w/(k + rank) (Cormack, Clarke and Büttcher 2009)."""
    return {
        row.chunk_id: Contribution(
            weights.lexical / (k + row.lexical_rank) if row.lexical_rank else 0.0,
            weights.semantic / (k + row.semantic_rank) if row.semantic_rank else 0.0,
        )
        for row in rows
    }


def _adaptive(rows: Sequence[Candidate], type: QueryType) -> Contributions:
    reciprocal = _rrf(rows, 0, WEIGHTS[type])
    return {
        row.chunk_id: replace(reciprocal[row.chunk_id], factor=1 + AGREEMENT_BONUS * agreement(row.ranks))
        for row in rows
    }


def _dominant(rows: Sequence[Candidate], max_bm25: float | None) -> Contributions:
    # Without the query's own bound the list's best score stands in for it: the best is then 1.
    bound = max_bm25 or max((row.bm25 or 0.0 for row in rows), default=0.0) or 1.0
    return {
        row.chunk_id: _dominant_parts(_clipped((row.bm25 or 0.0) / bound), _clipped(row.cosine or 0.0))
        for row in rows
    }


def _dominant_parts(words: float, meaning: float) -> Contribution:
    if meaning > words:
        return Contribution(FOLLOWING * words, LEADING * meaning)
    return Contribution(LEADING * words, FOLLOWING * meaning)


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _logodds(rows: Sequence[Candidate]) -> Contributions:
    """Pool as "Bayesian BM25" does (Jeong 2026): log-odds are (score − median)/spread of a list.

    Evidence passes through softplus: a list cut off after 40 says nothing about the rest, so absence is
    neutral, and presence must not be worse than absence. The pool is the mean scaled by √2.
    """
    words = _evidence([(row.chunk_id, row.bm25, row.lexical_rank) for row in rows])
    meaning = _evidence([(row.chunk_id, row.cosine, row.semantic_rank) for row in rows])
    return {
        row.chunk_id: Contribution(
            0.5 * words.get(row.chunk_id, 0.0), 0.5 * meaning.get(row.chunk_id, 0.0), math.sqrt(2)
        )
        for row in rows
    }


def _evidence(scored: Sequence[tuple[ChunkId, float | None, int | None]]) -> dict[ChunkId, float]:
    sample = sorted(score for _, score, rank in scored if rank and score is not None)
    if not sample:
        return {}
    median = (sample[(len(sample) - 1) // 2] + sample[len(sample) // 2]) / 2
    _, spread = moments(sample)
    odds = {chunk_id: (score - median) / spread for chunk_id, score, _ in scored if score is not None}
    return {chunk_id: max(x, 0.0) + math.log1p(math.exp(-abs(x))) for chunk_id, x in odds.items()}


class Fusion(NamedTuple):
    """One way to make an order: what each leg adds, and its weights, unless scores decide."""

    contributions: Callable[[Sequence[Candidate], Context], Contributions]
    weights: Callable[[Sequence[Candidate], Context], Weights | None]


def _blend_weights(rows: Sequence[Candidate], context: Context) -> Weights:
    semantic = semantic_weight(rows, context)
    return Weights(semantic, 1 - semantic)


FUSIONS: Mapping[str, Fusion] = {
    "rrf": Fusion(lambda rows, c: _rrf(rows, c.k, EQUAL), lambda rows, c: EQUAL),
    "weighted": Fusion(
        lambda rows, c: _rrf(rows, c.k, multipliers(c.type)), lambda rows, c: multipliers(c.type)
    ),
    "adaptive": Fusion(lambda rows, c: _adaptive(rows, c.type), lambda rows, c: WEIGHTS[c.type]),
    "dominant": Fusion(lambda rows, c: _dominant(rows, c.max_bm25), lambda rows, c: None),
    "logodds": Fusion(lambda rows, c: _logodds(rows), lambda rows, c: EQUAL),
    "blend": Fusion(blend, _blend_weights),
}
FUSION_OF: Mapping[Mode, str] = {"auto": "blend", "hybrid": "rrf", "semantic": "rrf", "fts5": "rrf"}
