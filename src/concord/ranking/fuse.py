"""How do two ballots become one order? Every fusion is a pure function of the same ballots.

A fusion gives each chunk a `Share`: what the lexical and what the semantic ballot add, and a factor on their
sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from concord.ranking.agreement import agreed
from concord.ranking.ballots import Ballots
from concord.ranking.blend import blend, blend_shares, blend_weight, standings
from concord.ranking.context import Context
from concord.ranking.plan import EQUAL, WEIGHTS, Weights, multipliers
from concord.ranking.share import Share, Shares, moments, ranked_by
from concord.types import ChunkId, Mode, QueryKind, Ranked

AGREEMENT_BONUS = 0.2  # up to a fifth more where every strategy found the chunk
LEADING, FOLLOWING = 0.7, 0.3  # the stronger signal leads, the weaker one boosts


class Fused(Struct, frozen=True):
    """The order of a fusion, and how high its candidates stand."""

    ranked: list[Ranked]
    standing: dict[ChunkId, float]  # falling; the same whichever fusion made the order


def fuse(name: str, ballots: Ballots, context: Context, blended: list[Ranked] | None = None) -> Fused:
    """Return the order that a fusion of the table makes; `blended` is that of `blend`, if it is known."""
    if blended is None:
        blended = blend(ballots, context)
    ranked = blended if name == "blend" else FUSIONS[name](ballots, context)
    return Fused(ranked, standings(blended, ballots, context))


def rrf(ballots: Ballots, k: float, weights: Weights = EQUAL) -> list[Ranked]:
    """Reciprocal rank fusion: Σ w/(k + rank) (Cormack, Clarke and Büttcher 2009)."""
    return ranked_by(ballots, _rrf_shares(ballots, k, weights))


def rrf_scores(ballots: Ballots, k: float) -> dict[ChunkId, float]:
    """Return the scores of reciprocal rank fusion, for whoever needs no order."""
    return {chunk_id: share.score for chunk_id, share in _rrf_shares(ballots, k, EQUAL).items()}


def shares(name: str, ballots: Ballots, context: Context) -> Shares:
    """Return what each ballot adds to each chunk under a fusion of the table."""
    return _FUSIONS[name].shares(ballots, context)


def weights(name: str, ballots: Ballots, context: Context) -> Weights | None:
    """Return the weights that a fusion gives the families; None where they follow from the scores."""
    return _FUSIONS[name].weights(ballots, context)


def _rrf_shares(ballots: Ballots, k: float, weights: Weights) -> Shares:
    semantic, lexical = weights.semantic, weights.lexical
    return {
        chunk_id: Share(
            lexical / (k + ballots.lexical[chunk_id]) if chunk_id in ballots.lexical else 0.0,
            semantic / (k + ballots.semantic[chunk_id]) if chunk_id in ballots.semantic else 0.0,
        )
        for chunk_id in ballots.votes
    }


def _adaptive_shares(ballots: Ballots, kind: QueryKind) -> Shares:
    reciprocal = _rrf_shares(ballots, 0, WEIGHTS[kind])
    return {
        chunk_id: replace(share, factor=1 + AGREEMENT_BONUS * agreed(ballots.votes[chunk_id]))
        for chunk_id, share in reciprocal.items()
    }


def _dominant_shares(ballots: Ballots, max_bm25: float | None) -> Shares:
    # Without the query's own bound the list's best score stands in for it: the best is then 1.
    bound = max_bm25 or max(ballots.bm25.values(), default=0.0) or 1.0
    return {
        chunk_id: _dominant_share(
            _clipped(ballots.bm25.get(chunk_id, 0.0) / bound), _clipped(ballots.cosine.get(chunk_id, 0.0))
        )
        for chunk_id in ballots.votes
    }


def _dominant_share(keyword: float, semantic: float) -> Share:
    if semantic > keyword:
        return Share(FOLLOWING * keyword, LEADING * semantic)
    return Share(LEADING * keyword, FOLLOWING * semantic)


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _logodds_shares(ballots: Ballots) -> Shares:
    """Pool as "Bayesian BM25" does: a score's log-odds are (score − median)/spread of its list.

    Jeong 2026; adopted in txtai #1041 and Lucene #15827. Evidence passes through softplus: a list cut off
    after 40 says nothing about the rest, so absence is neutral, and presence, however far down, must not be
    worse than absence. The pool is the mean scaled by √n for n independent signals.
    """
    word_odds = _evidence(ballots.bm25, ballots.lexical)
    meaning_odds = _evidence(ballots.cosine, ballots.semantic)
    return {
        chunk_id: Share(
            0.5 * word_odds.get(chunk_id, 0.0), 0.5 * meaning_odds.get(chunk_id, 0.0), math.sqrt(2)
        )
        for chunk_id in ballots.votes
    }


def _evidence(scores: Mapping[ChunkId, float], voted: Mapping[ChunkId, int]) -> dict[ChunkId, float]:
    sample = [scores[chunk_id] for chunk_id in voted]
    if not sample:
        return {}
    middle, (_, spread) = _median(sample), moments(sample)
    return {chunk_id: _softplus((score - middle) / spread) for chunk_id, score in scores.items()}


def _softplus(odds: float) -> float:
    return max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))


def _median(sample: list[float]) -> float:
    ascending, middle = sorted(sample), len(sample) // 2
    return ascending[middle] if len(sample) % 2 else (ascending[middle - 1] + ascending[middle]) / 2


def _zscore_shares(ballots: Ballots, weight: float) -> Shares:
    words = _standardised(ballots.bm25, ballots.votes)
    meaning = _standardised(ballots.cosine, ballots.votes)
    return {
        chunk_id: Share((1 - weight) * words[chunk_id], weight * meaning[chunk_id])
        for chunk_id in ballots.votes
    }


def _standardised(scores: Mapping[ChunkId, float], chunks: Iterable[ChunkId]) -> dict[ChunkId, float]:
    """Return z-scores over all chunks; an unknown score is the list's lowest, which it did not beat."""
    lowest = min(scores.values(), default=0.0)
    known = {chunk_id: scores.get(chunk_id, lowest) for chunk_id in chunks}
    mean, spread = moments(list(known.values()))
    return {chunk_id: (score - mean) / spread for chunk_id, score in known.items()}


def _convex(semantic: float) -> Weights:
    return Weights(semantic=semantic, lexical=1 - semantic)


class _Fusion(NamedTuple):
    shares: Callable[[Ballots, Context], Shares]
    weights: Callable[[Ballots, Context], Weights | None]


_FUSIONS: Mapping[str, _Fusion] = {
    "rrf": _Fusion(lambda b, c: _rrf_shares(b, c.k, EQUAL), lambda b, c: EQUAL),
    "weighted": _Fusion(
        lambda b, c: _rrf_shares(b, c.k, multipliers(c.kind)), lambda b, c: multipliers(c.kind)
    ),
    "adaptive": _Fusion(lambda b, c: _adaptive_shares(b, c.kind), lambda b, c: WEIGHTS[c.kind]),
    "dominant": _Fusion(lambda b, c: _dominant_shares(b, c.max_bm25), lambda b, c: None),
    "logodds": _Fusion(lambda b, c: _logodds_shares(b), lambda b, c: EQUAL),
    "blend": _Fusion(blend_shares, lambda b, c: _convex(blend_weight(b, c))),
    "zscores": _Fusion(
        lambda b, c: _zscore_shares(b, c.semantic_weight), lambda b, c: _convex(c.semantic_weight)
    ),
}


def _ordering(name: str) -> Callable[[Ballots, Context], list[Ranked]]:
    return lambda ballots, context: ranked_by(ballots, shares(name, ballots, context))


FUSION_OF: Mapping[Mode, str] = {"auto": "blend", "hybrid": "rrf", "semantic": "rrf", "fts5": "rrf"}
FUSIONS: Mapping[str, Callable[[Ballots, Context], list[Ranked]]] = MappingProxyType(
    {name: _ordering(name) for name in _FUSIONS}
)
