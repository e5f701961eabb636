"""How do two ballots become one order? Every fusion is a pure function of the same ballots.

A fusion gives each chunk a `Share`: what the lexical and what the semantic ballot add, and a factor on their
sum. The fused score is (lexical + semantic) × factor for every fusion, so any of them can be explained alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from concord.ranking.agreement import agreed
from concord.ranking.plan import EQUAL, STRATEGIES, WEIGHTS, Weights, multipliers
from concord.types import Candidate, ChunkId, QueryKind, Ranked

RRF_K = 60  # Cormack, Clarke and Büttcher 2009; all four seeds that fuse by rank use it
AGREEMENT_BONUS = 0.2  # seed 003 §5: up to a fifth more where every strategy found the chunk
LEADING, FOLLOWING = 0.7, 0.3  # seed 004: the stronger signal leads, the weaker one boosts
SEMANTIC_WEIGHT = (
    0.6  # of z-scores: the best fixed weight over the development sets, 0.6 · dense + 0.4 · BM25
)

POOL = 40  # of a blend, how deep means and spreads look: the least number of candidates a strategy proposes


class Recipe(Struct, frozen=True):
    """The tuned numbers of a blend; `python -m benchmarks fusion` chooses them with each set left out."""

    flat: float = 0.75  # semantic share where the lexical ballot is flat
    margin: float = 0.4  # what a lexical first that stands out takes off it
    code: float = 0.9  # semantic share among source code


RECIPE = Recipe()
LITERAL_GAIN = 3.0  # standard deviations: more than any other chunk can be ahead, but for a freak

_ORDER = {name: place for place, name in enumerate(STRATEGIES)}


class Ballots(Struct, frozen=True):
    """The two families' votes on the same chunks, with every score that is known of them."""

    lexical: Mapping[ChunkId, int]  # rank in the family's ballot, from 1
    semantic: Mapping[ChunkId, int]
    bm25: Mapping[ChunkId, float]  # also of chunks that only the other family voted for, where completed
    cosine: Mapping[ChunkId, float]
    votes: Mapping[ChunkId, tuple[Candidate, ...]]  # in order of chunk id
    feedback: Mapping[ChunkId, float] = field(
        default_factory=dict
    )  # cosines with query and first hits together


class Context(Struct, frozen=True):
    """What a fusion may know besides the ballots."""

    kind: QueryKind = "exploratory"
    k: float = RRF_K
    weights: Weights = EQUAL  # multipliers of the ballots in plain rrf
    max_bm25: float | None = None  # the most the query could score: rarity.ceiling
    semantic_weight: float = SEMANTIC_WEIGHT
    code_share: float = 0.0  # of the candidates that are source code
    model_reads: float = 1.0  # how well the embedding model reads the query's script, from 0 to 1
    is_literal: bool = False  # the query is a quotation or one identifier: who has it whole is wanted
    recipe: Recipe = RECIPE


class Share(Struct, frozen=True):
    """What each ballot adds to a chunk's score."""

    lexical: float
    semantic: float
    factor: float = 1.0

    @property
    def score(self) -> float:
        """The fused score."""
        return (self.lexical + self.semantic) * self.factor


class Fused(Struct, frozen=True):
    """The order of a fusion, and how high its candidates stand."""

    ranked: list[Ranked]
    standing: dict[ChunkId, float]  # falling; the same whichever fusion made the order


Shares = dict[ChunkId, Share]
Fusion = Callable[[Ballots, Context], list[Ranked]]


def merge_votes(
    candidates: Iterable[Candidate],
    *,
    bm25: Mapping[ChunkId, float] | None = None,
    cosine: Mapping[ChunkId, float] | None = None,
) -> Ballots:
    """Merge candidates into two ballots; `bm25` and `cosine` add scores that were not voted."""
    votes = _votes(candidates)
    lexical, semantic = _best(votes, "lexical"), _best(votes, "semantic")
    return Ballots(
        lexical=_merged(lexical),
        semantic=_merged(semantic),
        bm25=_scores(votes, lexical, bm25 or {}),
        cosine=_scores(votes, semantic, cosine or {}),
        votes=votes,
    )


def without(ballots: Ballots, gone: AbstractSet[ChunkId]) -> Ballots:
    """Return the ballots without some chunks; the others keep their places."""
    kept = {
        name: {chunk_id: value for chunk_id, value in getattr(ballots, name).items() if chunk_id not in gone}
        for name in ballots.__struct_fields__
    }
    return Ballots(**kept)


def fuse(name: str, ballots: Ballots, context: Context) -> Fused:
    """Return the order of a fusion of the table; a blend is made once, whatever it is needed for."""
    blended = blend(ballots, context)
    ranked = blended if name == "blend" else FUSIONS[name](ballots, context)
    return Fused(ranked, _standings(blended, ballots, context))


def ordered(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return the best first; ties go to more votes, then to the lower chunk id."""
    return sorted(ranked, key=lambda one: (-one.score, -len(one.votes), one.chunk_id))


def rrf(ballots: Ballots, k: float = RRF_K, weights: Weights = EQUAL) -> list[Ranked]:
    """Reciprocal rank fusion: Σ w/(k + rank)."""
    return _ranked(ballots, _rrf_shares(ballots, k, weights))


def rrf_scores(ballots: Ballots, k: float = RRF_K) -> dict[ChunkId, float]:
    """Return the scores of reciprocal rank fusion, for whoever needs no order."""
    return {chunk_id: share.score for chunk_id, share in _rrf_shares(ballots, k, EQUAL).items()}


def adaptive(ballots: Ballots, kind: QueryKind) -> list[Ranked]:
    """Seed 003 §5: Σ w/rank by the kind's weights, more where several strategies agree."""
    return _ranked(ballots, _adaptive_shares(ballots, kind))


def dominant(ballots: Ballots, max_bm25: float | None = None) -> list[Ranked]:
    """Seed 004: 0.7 of the stronger signal and 0.3 of the weaker, both in [0, 1]."""
    return _ranked(ballots, _dominant_shares(ballots, max_bm25))


def logodds(ballots: Ballots, weights: Weights = EQUAL) -> list[Ranked]:
    """Pool the two scores as evidence in log-odds, each calibrated on its own list."""
    return _ranked(ballots, _logodds_shares(ballots, weights))


def zscores(ballots: Ballots, weight: float = SEMANTIC_WEIGHT) -> list[Ranked]:
    """Convex combination of standardised scores; `weight` is the semantic one's."""
    return _ranked(ballots, _zscore_shares(ballots, weight))


def blend(ballots: Ballots, context: Context) -> list[Ranked]:
    """Standardised scores, weighed by what the ballots tell of their own worth: the default of `auto`."""
    return _ranked(ballots, _blend_shares(ballots, context))


def blend_weight(ballots: Ballots, context: Context) -> float:
    """Return the semantic share of a blend.

    A flat lexical ballot, whose first is hardly better than its tenth, knows no answer from a mention; the
    more its first stands out, the more it counts. Words of a question are noise in source code (not so a name
    or a quotation that is found there), and a model that cannot read the query's script has nothing to say.
    """
    margin = _margin([score for chunk_id, score in ballots.bm25.items() if chunk_id in ballots.lexical])
    recipe = context.recipe
    weight = recipe.flat - recipe.margin * margin
    if context.is_literal and whole(ballots):
        weight = min(weight, WEIGHTS[context.kind].semantic)
    else:
        weight += (recipe.code - weight) * context.code_share
    return weight * context.model_reads


def shares(name: str, ballots: Ballots, context: Context) -> Shares:
    """Return what each ballot adds to each chunk under a fusion of the table."""
    return _SHARES[name](ballots, context)


def whole(ballots: Ballots) -> list[ChunkId]:
    """Return the chunks that hold every word and phrase of the query."""
    return [chunk_id for chunk_id in ballots.lexical if ballots.votes[chunk_id][0].strategy == STRATEGIES[0]]


def _standings(blended: Iterable[Ranked], ballots: Ballots, context: Context) -> dict[ChunkId, float]:
    """Return how high candidates stand above the others, falling: what a blend gives them, but for one thing.

    The more chunks hold a quotation whole, the less likely each is the one that is meant: as evidence, they
    share what every one of them gains in the order.
    """
    found = {one.chunk_id: one.score for one in blended}
    if not context.is_literal:
        return found
    holders = whole(ballots)
    for chunk_id in holders:
        found[chunk_id] -= min(LITERAL_GAIN, math.log(len(holders)))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _votes(candidates: Iterable[Candidate]) -> dict[ChunkId, tuple[Candidate, ...]]:
    held: dict[ChunkId, tuple[Candidate, ...]] = {}
    for one in candidates:
        known = held.get(one.chunk_id)
        held[one.chunk_id] = (one,) if known is None else _with_vote(known, one)
    return dict(sorted(held.items()))


def _with_vote(held: tuple[Candidate, ...], one: Candidate) -> tuple[Candidate, ...]:
    """Return the votes for a chunk with another one, in order; of a strategy's two, its best."""
    same = next((other for other in held if other.strategy == one.strategy), None)
    if same is None:
        return tuple(sorted((*held, one), key=_place))
    if (same.rank, -same.score) <= (one.rank, -one.score):
        return held
    return tuple(one if other is same else other for other in held)


def _place(one: Candidate) -> tuple[int, str]:
    return _ORDER.get(one.strategy, len(_ORDER)), one.strategy


def _best(votes: Mapping[ChunkId, tuple[Candidate, ...]], family: str) -> dict[ChunkId, tuple[int, float]]:
    """Return the best rank and the best score that a family gives a chunk in any of its lists."""
    best: dict[ChunkId, tuple[int, float]] = {}
    for chunk_id, held in votes.items():
        for one in held:
            if one.family == family:
                rank, score = best.get(chunk_id, (one.rank, one.score))
                best[chunk_id] = (min(rank, one.rank), max(score, one.score))
    return best


def _merged(best: Mapping[ChunkId, tuple[int, float]]) -> dict[ChunkId, int]:
    """Rank one family's chunks by their best rank in any of its lists, ties by score.

    A ballot has one chunk a place: of two chunks that are first in their lists, the lesser becomes second.
    A place that the lists leave open stays open, so ranks come through unchanged from a single list.
    """
    ranks: dict[ChunkId, int] = {}
    last = 0
    for rank, _, chunk_id in sorted((rank, -score, chunk_id) for chunk_id, (rank, score) in best.items()):
        last = ranks[chunk_id] = max(rank, last + 1)
    return ranks


def _scores(
    votes: Iterable[ChunkId], best: Mapping[ChunkId, tuple[int, float]], completed: Mapping[ChunkId, float]
) -> dict[ChunkId, float]:
    known = {chunk_id: completed[chunk_id] for chunk_id in votes if chunk_id in completed}
    return known | {chunk_id: score for chunk_id, (_, score) in best.items()}


def _ranked(ballots: Ballots, found: Shares) -> list[Ranked]:
    return ordered(
        Ranked(chunk_id, found[chunk_id].score, votes) for chunk_id, votes in ballots.votes.items()
    )


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


def _logodds_shares(ballots: Ballots, weights: Weights) -> Shares:
    """Pool as "Bayesian BM25" does: a score's log-odds are (score − median)/spread of its list.

    Jeong 2026; adopted in txtai #1041 and Lucene #15827. Evidence passes through softplus: a list cut off
    after 40 says nothing about the rest, so absence is neutral, and presence, however far down, must not be
    worse than absence. The pool is a weighted mean scaled by √n for n independent signals.
    """
    semantic, lexical = weights.semantic, weights.lexical
    total = (semantic + lexical) or 1.0
    word_odds = _evidence(ballots.bm25, ballots.lexical)
    meaning_odds = _evidence(ballots.cosine, ballots.semantic)
    return {
        chunk_id: Share(
            lexical / total * word_odds.get(chunk_id, 0.0),
            semantic / total * meaning_odds.get(chunk_id, 0.0),
            math.sqrt(2),
        )
        for chunk_id in ballots.votes
    }


def _evidence(scores: Mapping[ChunkId, float], voted: Mapping[ChunkId, int]) -> dict[ChunkId, float]:
    sample = [scores[chunk_id] for chunk_id in voted]
    if not sample:
        return {}
    middle, (_, spread) = _median(sample), _moments(sample)
    return {chunk_id: _softplus((score - middle) / spread) for chunk_id, score in scores.items()}


def _softplus(odds: float) -> float:
    return max(odds, 0.0) + math.log1p(math.exp(-abs(odds)))


def _median(sample: list[float]) -> float:
    ascending, middle = sorted(sample), len(sample) // 2
    return ascending[middle] if len(sample) % 2 else (ascending[middle - 1] + ascending[middle]) / 2


def _moments(sample: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation; 1 where all are equal but for rounding, so that they stay equal."""
    if not sample:
        return 0.0, 1.0
    mean = math.fsum(sample) / len(sample)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in sample]) / len(sample))
    return mean, deviation if deviation > 1e-9 * max(1.0, abs(mean)) else 1.0


def _zscore_shares(ballots: Ballots, weight: float) -> Shares:
    words = _standardised(ballots.bm25, ballots.votes)
    meaning = _standardised(ballots.cosine, ballots.votes)
    return {
        chunk_id: Share((1 - weight) * words[chunk_id], weight * meaning[chunk_id])
        for chunk_id in ballots.votes
    }


def _blend_shares(ballots: Ballots, context: Context) -> Shares:
    weight = blend_weight(ballots, context)
    pool = _first(ballots.lexical) | _first(ballots.semantic) or set(ballots.votes)
    # Who holds none of the words scores 0. Who has no vector yet is not far in meaning: nobody knows.
    words = _above_pool({chunk_id: ballots.bm25.get(chunk_id, 0.0) for chunk_id in ballots.votes}, pool)
    meaning = _above_pool(ballots.feedback or ballots.cosine, pool)
    found = {
        chunk_id: Share((1 - weight) * words[chunk_id], weight * meaning.get(chunk_id, 0.0))
        for chunk_id in ballots.votes
    }
    if not context.is_literal:
        return found
    return found | {
        chunk_id: replace(found[chunk_id], lexical=found[chunk_id].lexical + LITERAL_GAIN)
        for chunk_id in whole(ballots)
    }


def _first(ranks: Mapping[ChunkId, int]) -> set[ChunkId]:
    """Return the chunks of a ballot that means and spreads are measured on."""
    return {chunk_id for chunk_id, rank in ranks.items() if rank < POOL}


def _above_pool(scores: Mapping[ChunkId, float], pool: Iterable[ChunkId]) -> dict[ChunkId, float]:
    """Return z-scores measured on the pool: asking for more results moves none."""
    mean, spread = _moments([scores[chunk_id] for chunk_id in pool if chunk_id in scores])
    return {chunk_id: (score - mean) / spread for chunk_id, score in scores.items()}


def _margin(scores: Iterable[float]) -> float:
    """Return how far the first stands above the tenth, as a share of it; all the way where none is tenth."""
    falling = sorted(scores, reverse=True)
    if not falling or falling[0] <= 0:
        return 0.0
    return 1 - (falling[9] if len(falling) >= 10 else 0.0) / falling[0]


def _standardised(scores: Mapping[ChunkId, float], chunks: Iterable[ChunkId]) -> dict[ChunkId, float]:
    """Return z-scores over all chunks; an unknown score is the list's lowest, which it did not beat."""
    lowest = min(scores.values(), default=0.0)
    known = {chunk_id: scores.get(chunk_id, lowest) for chunk_id in chunks}
    mean, spread = _moments(list(known.values()))
    return {chunk_id: (score - mean) / spread for chunk_id, score in known.items()}


_SHARES: dict[str, Callable[[Ballots, Context], Shares]] = {
    "rrf": lambda ballots, context: _rrf_shares(ballots, context.k, context.weights),
    "weighted": lambda ballots, context: _rrf_shares(ballots, context.k, multipliers(context.kind)),
    "adaptive": lambda ballots, context: _adaptive_shares(ballots, context.kind),
    "dominant": lambda ballots, context: _dominant_shares(ballots, context.max_bm25),
    "logodds": lambda ballots, context: _logodds_shares(ballots, context.weights),
    "blend": _blend_shares,
    "zscores": lambda ballots, context: _zscore_shares(ballots, context.semantic_weight),
}


def _fusion(name: str) -> Fusion:
    return lambda ballots, context: _ranked(ballots, shares(name, ballots, context))


FUSIONS: Mapping[str, Fusion] = MappingProxyType({name: _fusion(name) for name in _SHARES})
