"""Which votes and scores does each chunk have? Candidates of all strategies, merged into two ballots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from concord.ranking.plan import STRATEGIES
from concord.types import Candidate, ChunkId, Family

_Bests = dict[ChunkId, tuple[int, float]]  # rank and score
_ORDER = {name: place for place, name in enumerate(STRATEGIES)}


class Ballots(Struct, frozen=True):
    """The votes of the two families, lexical and semantic, with every known score of each chunk."""

    lexical: Mapping[ChunkId, int]  # rank in the family's ballot, from 1
    semantic: Mapping[ChunkId, int]
    bm25: Mapping[ChunkId, float]  # also of chunks that only the other family voted for, if known
    cosine: Mapping[ChunkId, float]
    votes: Mapping[ChunkId, tuple[Candidate, ...]]  # in order of chunk id
    # Cosines with the query moved towards its first hits: pseudo-relevance feedback.
    feedback: Mapping[ChunkId, float] = field(default_factory=dict)
    copies: Mapping[ChunkId, float] = field(default_factory=dict)  # of the first hit: their cosines with it


def merge_votes(
    candidates: Iterable[Candidate],
    *,
    bm25: Mapping[ChunkId, float] | None = None,
    cosine: Mapping[ChunkId, float] | None = None,
) -> Ballots:
    """Merge candidates into two ballots; `bm25` and `cosine` add scores of chunks without such a vote."""
    votes = _votes(candidates)
    lexical, semantic = _best(votes)
    return Ballots(
        lexical=_merged(lexical),
        semantic=_merged(semantic),
        bm25=_scores(votes, lexical, bm25 or {}),
        cosine=_scores(votes, semantic, cosine or {}),
        votes=votes,
    )


def with_votes(ballots: Ballots, added: Iterable[Candidate], *, cosine: Mapping[ChunkId, float]) -> Ballots:
    """Return the ballots with further votes; `cosine` adds scores of chunks without a semantic vote."""
    voted = [vote for votes in ballots.votes.values() for vote in votes]
    return merge_votes([*voted, *added], bm25=ballots.bm25, cosine={**ballots.cosine, **cosine})


def without(ballots: Ballots, gone: AbstractSet[ChunkId]) -> Ballots:
    """Return the ballots without some chunks; the others keep their places."""
    kept = {
        name: {chunk_id: value for chunk_id, value in getattr(ballots, name).items() if chunk_id not in gone}
        for name in ballots.__struct_fields__
    }
    return Ballots(**kept)


def without_copies(ballots: Ballots) -> Ballots:
    """Return the ballots without copies of the first hit: beside them it would seem to stand out less."""
    return without(ballots, ballots.copies.keys()) if ballots.copies else ballots


def with_all_words(ballots: Ballots) -> list[ChunkId]:
    """Return the chunks that hold every word and phrase of the query."""
    return [chunk_id for chunk_id in ballots.lexical if ballots.votes[chunk_id][0].strategy == STRATEGIES[0]]


def first_of(ranks: Mapping[ChunkId, int], depth: int) -> set[ChunkId]:
    """Return the chunks in the first places of a ballot."""
    return {chunk_id for chunk_id, rank in ranks.items() if rank <= depth}


def _votes(candidates: Iterable[Candidate]) -> dict[ChunkId, tuple[Candidate, ...]]:
    held: dict[ChunkId, tuple[Candidate, ...]] = {}
    for one in candidates:
        known = held.get(one.chunk_id)
        held[one.chunk_id] = (one,) if known is None else _with_vote(known, one)
    return dict(sorted(held.items()))


def _with_vote(held: tuple[Candidate, ...], one: Candidate) -> tuple[Candidate, ...]:
    """Add a vote to those for a chunk, in order; of two votes of one strategy the better one is kept."""
    same = next((other for other in held if other.strategy == one.strategy), None)
    if same is None:
        return tuple(sorted((*held, one), key=_place))
    if (same.rank, -same.score) <= (one.rank, -one.score):
        return held
    return tuple(one if other is same else other for other in held)


def _place(one: Candidate) -> tuple[int, str]:
    return _ORDER.get(one.strategy, len(_ORDER)), one.strategy


def _best(votes: Mapping[ChunkId, tuple[Candidate, ...]]) -> tuple[_Bests, _Bests]:
    """Return the best rank and the best score that each family gives a chunk in any of its lists."""
    best: dict[Family, _Bests] = defaultdict(dict)
    for chunk_id, held in votes.items():
        for one in held:
            known = best[one.family]
            rank, score = known.get(chunk_id, (one.rank, one.score))
            known[chunk_id] = (min(rank, one.rank), max(score, one.score))
    return best["lexical"], best["semantic"]


def _merged(best: _Bests) -> dict[ChunkId, int]:
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
    votes: Iterable[ChunkId], best: _Bests, completed: Mapping[ChunkId, float]
) -> dict[ChunkId, float]:
    known = {chunk_id: completed[chunk_id] for chunk_id in votes if chunk_id in completed}
    return known | {chunk_id: score for chunk_id, (_, score) in best.items()}
