"""The features by which a calibration judges a hit, and whether there is an answer: numbers with names.

A calibration names the features it was fitted on, so a new feature is one more row in a table here and
changes no calibration that does not name it. If a family did not vote, its features are 0, and `…_voted` says
so.

Only the first chunks of each ballot are looked at, and a hit's standing is always that of the default fusion.
So the features depend on neither the chosen fusion nor the number of results. A hit is taken together with
the better hits of its document, because collections judge documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from concord.ranking.agreement import agreed
from concord.ranking.ballots import Ballots, first_of, with_all_words
from concord.ranking.blend import POOL, fall
from concord.types import Candidate, QueryKind, Ranked

# Where the tenth candidate of a usual search stands, in standard deviations of the blend: what the first is
# compared with where there are fewer than ten.
TENTH = 0.8
DEPTH = 10  # how deep margins and overlap look: the default number of results


class FamilyScores(Struct, frozen=True):
    """The scores of one family's candidates, summed up."""

    count: int = 0
    top: float = 0.0
    tenth: float = 0.0  # the last one where there are fewer
    median: float = 0.0
    mean: float = 0.0
    spread: float = 0.0

    def z(self, score: float) -> float:
        """How many standard deviations a score stands above the family's mean; 0 where it has no spread."""
        return (score - self.mean) / self.spread if self.spread > 1e-9 else 0.0

    @property
    def fall(self) -> float:
        """How much of the first score is lost by the tenth place; all of it where fewer were found."""
        return fall(self.top, self.tenth if self.count >= DEPTH else 0.0)


class SearchSignals(Struct, frozen=True):
    """What the features of a search are computed from."""

    kind: QueryKind = "exploratory"
    terms: int = 0  # of the query, stop words left out
    unknown: float = 0.0  # share of these terms that no chunk holds
    max_bm25: float = 0.0  # the most the query could score
    coverage: float = 0.0  # share of the query's terms, by idf, in the first hit
    lexical: FamilyScores = FamilyScores()
    semantic: FamilyScores = FamilyScores()
    exact: int = 0  # chunks that hold every term
    overlap: float = 0.0  # of the two ballots' first ten
    shared_rank: int | None = None  # the least depth at which both ballots name the same chunk
    first_cosine: float = 0.0  # of the hit that fusion put first
    first_bm25: float = 0.0
    first_agreement: float = 0.0
    first_closeness: float = 0.0  # of the query's words in it
    verbatim: int = 0  # chunks that have the whole query in its order, of the first that were read
    reads: float = 1.0  # how well the model reads the query's script
    known_words: float = 1.0  # share of the query's words that are single tokens of the model
    standing_margin: float = 0.0  # of the candidate that stands highest above the tenth
    discount: float = 1.0  # factor on all probabilities: below 1 if no text holds what the query names


class HitSignals(Struct, frozen=True):
    """What the features of one hit are computed from."""

    rank: int
    cosine: float | None = None
    bm25: float | None = None
    lexical_rank: int | None = None
    semantic_rank: int | None = None
    standing: float = 0.0  # above the other candidates, in standard deviations: what a blend gives
    agreement: float = 0.0
    coverage: float = 0.0
    closeness: float = 0.0
    exact: bool = False
    entity: bool = False
    verbatim: bool = False
    document_cosine: float = 0.0  # the best of its own and of better hits of its document; as the next two
    document_standing: float = 0.0
    document_coverage: float = 0.0


def search_signals(
    ballots: Ballots,
    ranked: Sequence[Ranked],
    *,
    kind: QueryKind,
    terms: int,
    unknown: float,
    max_bm25: float,
    coverage: float,
    standings: Sequence[float] = (),
    reads: float = 1.0,
    known_words: float = 1.0,
) -> SearchSignals:
    """Sum up a search from its ballots, their fused order, and the candidates' standings, highest first."""
    first = ranked[0] if ranked else None
    return SearchSignals(
        kind=kind,
        terms=terms,
        unknown=unknown,
        max_bm25=max_bm25,
        coverage=coverage,
        lexical=family_scores(ballots.bm25[chunk_id] for chunk_id in first_of(ballots.lexical, POOL)),
        semantic=family_scores(ballots.cosine[chunk_id] for chunk_id in first_of(ballots.semantic, POOL)),
        exact=len(with_all_words(ballots)),
        overlap=_overlap(ballots),
        shared_rank=_shared_rank(ballots),
        first_cosine=ballots.cosine.get(first.chunk_id, 0.0) if first else 0.0,
        first_bm25=ballots.bm25.get(first.chunk_id, 0.0) if first else 0.0,
        first_agreement=agreed(first.votes) if first else 0.0,
        standing_margin=_standing_margin(standings),
        reads=reads,
        known_words=known_words,
    )


def hit_signals(
    ballots: Ballots,
    hit: Ranked,
    rank: int,
    *,
    standing: float = 0.0,
    coverage: float = 0.0,
    closeness: float = 0.0,
    entity: bool = False,
    verbatim: bool = False,
) -> HitSignals:
    """Sum up one hit from the ballots."""
    return HitSignals(
        rank=rank,
        cosine=ballots.cosine.get(hit.chunk_id),
        bm25=ballots.bm25.get(hit.chunk_id),
        lexical_rank=ballots.lexical.get(hit.chunk_id),
        semantic_rank=ballots.semantic.get(hit.chunk_id),
        standing=standing,
        agreement=agreed(hit.votes),
        coverage=coverage,
        closeness=closeness,
        exact=_is_exact(hit.votes),
        entity=entity,
        verbatim=verbatim,
    )


def alone(hit: HitSignals) -> HitSignals:
    """Return a hit as if it were the only one of its document."""
    return replace(
        hit,
        document_cosine=hit.cosine or 0.0,
        document_standing=hit.standing,
        document_coverage=hit.coverage,
    )


def with_documents(hits: Sequence[HitSignals], documents: Sequence[str]) -> list[HitSignals]:
    """Return hits with the best evidence for their document: their own, or that of a better hit.

    Worse hits are left out, so that asking for more results does not change the relevance of the first.
    """
    best: dict[str, tuple[float, float, float]] = {}
    known: dict[int, HitSignals] = {}
    for at in sorted(range(len(hits)), key=lambda at: -hits[at].standing):
        own = (hits[at].cosine or 0.0, hits[at].standing, hits[at].coverage)
        cosine, standing, coverage = map(max, own, best.get(documents[at], own))
        best[documents[at]] = (cosine, standing, coverage)
        known[at] = replace(
            hits[at], document_cosine=cosine, document_standing=standing, document_coverage=coverage
        )
    return [known[at] for at in range(len(hits))]


def family_scores(scores: Iterable[float]) -> FamilyScores:
    """Sum up a family's scores, in any order."""
    falling = sorted(scores, reverse=True)
    if not falling:
        return FamilyScores()
    mean = math.fsum(falling) / len(falling)
    return FamilyScores(
        count=len(falling),
        top=falling[0],
        tenth=falling[min(DEPTH, len(falling)) - 1],
        median=falling[len(falling) // 2],
        mean=mean,
        spread=math.sqrt(math.fsum((score - mean) ** 2 for score in falling) / len(falling)),
    )


def hit_features(
    hit: HitSignals, search: SearchSignals, names: Iterable[str] | None = None
) -> dict[str, float]:
    """Return features of a hit by name: the named ones, or all."""
    return {name: float(HIT_FEATURES[name](hit, search)) for name in names or HIT_FEATURES}


def answer_features(search: SearchSignals, names: Iterable[str] | None = None) -> dict[str, float]:
    """Return features of a search by name: the named ones, or all."""
    return {name: float(ANSWER_FEATURES[name](search)) for name in names or ANSWER_FEATURES}


def share_of_bound(score: float | None, search: SearchSignals) -> float:
    """Return a BM25 score as a share of the most the query could score, within [0, 1]."""
    bound = search.max_bm25 or search.lexical.top
    return min(1.0, max(0.0, (score or 0.0) / bound)) if bound > 0 else 0.0


def _is_exact(votes: Iterable[Candidate]) -> bool:
    return any(one.strategy == "fts_exact" for one in votes)


def _standing_margin(standings: Sequence[float]) -> float:
    if not standings:
        return 0.0
    return standings[0] - (standings[DEPTH - 1] if len(standings) >= DEPTH else TENTH)


def _overlap(ballots: Ballots) -> float:
    return len(first_of(ballots.lexical, DEPTH) & first_of(ballots.semantic, DEPTH)) / DEPTH


def _shared_rank(ballots: Ballots) -> int | None:
    shared = ballots.lexical.keys() & ballots.semantic.keys()
    return min((max(ballots.lexical[one], ballots.semantic[one]) for one in shared), default=None)


def _reciprocal(rank: int | None) -> float:
    return 1 / rank if rank else 0.0


def _kind(kind: QueryKind) -> Callable[[SearchSignals], float]:
    return lambda search: search.kind == kind


_OF_BOTH: dict[str, Callable[[SearchSignals], float]] = {
    "top_cosine": lambda s: s.semantic.top,
    "cosine_margin_tenth": lambda s: s.semantic.top - s.semantic.tenth,
    "cosine_margin_median": lambda s: s.semantic.top - s.semantic.median,
    "top_cosine_z": lambda s: s.semantic.z(s.semantic.top),
    "top_bm25_share": lambda s: share_of_bound(s.lexical.top, s),
    "terms": lambda s: math.log1p(s.terms),
    "unknown": lambda s: s.unknown,
    "overlap": lambda s: s.overlap,
    "shared_rank": lambda s: _reciprocal(s.shared_rank),
    "exact_found": lambda s: s.exact > 0,
    "semantic_voted": lambda s: s.semantic.count > 0,
    "lexical_voted": lambda s: s.lexical.count > 0,
    "kind_exact_quote": _kind("exact_quote"),
    "kind_entity": _kind("entity"),
    "kind_conceptual": _kind("conceptual"),
    "kind_factual": _kind("factual"),
}

ANSWER_FEATURES: Mapping[str, Callable[[SearchSignals], float]] = MappingProxyType(
    {
        **_OF_BOTH,
        "bm25_margin_tenth": lambda s: share_of_bound(s.lexical.top - s.lexical.tenth, s),
        "bm25_fall": lambda s: s.lexical.fall,
        "standing_margin": lambda s: s.standing_margin,
        "top_bm25_z": lambda s: s.lexical.z(s.lexical.top),
        "coverage": lambda s: s.coverage,
        "first_cosine": lambda s: s.first_cosine,
        "first_bm25_share": lambda s: share_of_bound(s.first_bm25, s),
        "first_agreement": lambda s: s.first_agreement,
        "first_closeness": lambda s: s.first_closeness,
    }
)


def _of_search(of: Callable[[SearchSignals], float]) -> Callable[[HitSignals, SearchSignals], float]:
    return lambda _, search: of(search)


HIT_FEATURES: Mapping[str, Callable[[HitSignals, SearchSignals], float]] = MappingProxyType(
    {
        **{name: _of_search(of) for name, of in _OF_BOTH.items()},
        "cosine": lambda h, s: h.cosine or 0.0,
        "cosine_known": lambda h, s: h.cosine is not None,
        "cosine_z": lambda h, s: 0.0 if h.cosine is None else s.semantic.z(h.cosine),
        "cosine_gap": lambda h, s: 0.0 if h.cosine is None else s.semantic.top - h.cosine,
        "bm25_share": lambda h, s: share_of_bound(h.bm25, s),
        "bm25_ratio": lambda h, s: (h.bm25 or 0.0) / s.lexical.top if s.lexical.top > 0 else 0.0,
        "standing": lambda h, s: h.standing,
        "coverage": lambda h, s: h.coverage,
        "closeness": lambda h, s: h.closeness,
        "agreement": lambda h, s: h.agreement,
        "rank": lambda h, s: _reciprocal(h.rank),
        "lexical_rank": lambda h, s: _reciprocal(h.lexical_rank),
        "semantic_rank": lambda h, s: _reciprocal(h.semantic_rank),
        "exact": lambda h, s: h.exact,
        "entity": lambda h, s: h.entity,
        "verbatim": lambda h, s: h.verbatim,
        "document_cosine": lambda h, s: h.document_cosine,
        "document_standing": lambda h, s: h.document_standing,
        "document_coverage": lambda h, s: h.document_coverage,
    }
)
