"""What is tried when a search has found nothing to rely on: two looser searches by words, the rungs.

`prefix` looks for words that begin like those typed, `partial` for words near them and for their parts. Each
has a time limit. A rung only adds votes, under a name of its own; the search goes on from there as ever, and
`remarks` says in the answer which rung it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.judge import signals_of
from concord.answering.poll import Poll, merged, poll
from concord.answering.retrieval import Retrieval
from concord.answering.tools import SearchTools
from concord.ranking import calibrate
from concord.ranking.agreement import Rung, answerable
from concord.ranking.ballots import with_votes
from concord.ranking.floor import RESCUE_FLOOR
from concord.ranking.fuse import fuse
from concord.ranking.plan import polled
from concord.text.terms import sought
from concord.types import Candidate, ChunkId, Family, Match, Mode, Query, Request

if TYPE_CHECKING:
    from concord.answering.suggest import LikeWords
    from concord.storage import LexicalIndex

RUNG_STRATEGIES = ("fts_prefix", "fts_partial")  # the names under which the rungs vote
SIMILAR_WORDS = 5  # that are asked for, for each word of the query
LOOKUP_SHARE = 0.6  # of the partial rung's time is for finding words; the rest is for searching with them


class Rescue(Struct, frozen=True):
    """The candidates that a search goes on with: those it had found, and those that a rung has added."""

    found: Retrieval
    near: LikeWords  # known words like a given one; each word is looked up once
    floor: float
    rung: Rung | None = None
    sought: tuple[str, ...] = ()  # what that rung looked for: words, or prefix*


class RungStrategy(Struct):
    """A rung as a strategy: it votes under a name of its own, and may fail or be late like any other."""

    rung: Rung
    name: str
    index: LexicalIndex
    match: Callable[[Query], Match | None]
    budget_ms: float
    family: Family = "lexical"
    sought: tuple[str, ...] = ()  # known once it has voted

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks that hold words like the query's."""
        match = self.match(query)
        self.sought = tuple(sought(match)) if match else ()
        found = self.index.search(match, query.filter, query.candidates) if match else []
        return [
            Candidate(hit.chunk_id, self.name, self.family, rank, hit.score)
            for rank, hit in enumerate(found, 1)
        ]

    def is_at_hand(self, query: Query) -> bool:
        """Return False: the words of a rung have to be looked up first."""
        return False


def rescue(request: Request, mode: Mode, fusion: str, found: Retrieval, tools: SearchTools) -> Rescue:
    """Try the rungs in turn when words have found nothing and meaning nothing that can be relied on."""
    index = tools.store.lexical
    near: LikeWords = cache(lambda word: index.similar_words(word, SIMILAR_WORDS))
    floor: float = tools.settings["search.floor"]
    if _needs_words(mode, fusion, found, tools):
        for strategy in _rungs(request, near, tools):
            votes = poll([strategy], found.query, Deadline(strategy.budget_ms))
            found = _with_rung(found, votes)
            if votes.votes.get(strategy.name):
                return Rescue(found, near, min(floor, RESCUE_FLOOR), strategy.rung, strategy.sought)
    return Rescue(found, near, floor)


def budget_ms(request: Request, setting: str, tools: SearchTools) -> float:
    """Return the time that a setting allows, though never more than the caller gave the whole search."""
    allowed: float = tools.settings[setting]
    return allowed if request.deadline_ms is None else min(allowed, request.deadline_ms)


def _rungs(request: Request, near: LikeWords, tools: SearchTools) -> Iterator[RungStrategy]:
    from concord.answering.rung_words import (  # late: most searches find the words as typed
        partial_match,
        prefix_match,
    )

    index, (prefix, partial) = tools.store.lexical, RUNG_STRATEGIES
    yield RungStrategy("prefix", prefix, index, prefix_match, budget_ms(request, "search.prefix_ms", tools))
    whole_ms = budget_ms(request, "search.partial_ms", tools)
    yield RungStrategy(
        "partial", partial, index, lambda q: partial_match(q, near, index, whole_ms * LOOKUP_SHARE), whole_ms
    )


def _needs_words(mode: Mode, fusion: str, found: Retrieval, tools: SearchTools) -> bool:
    """Whether there are words to look for, none was found, and meaning found nothing to rely on."""
    is_allowed = "lexical" in polled(mode)
    if not is_allowed or found.ballots.lexical or not found.query.words or not found.query.chunks:
        return False
    if not found.ballots.votes:
        return _filter_leaves_any(found.query, tools)
    return not _is_answerable(fusion, found, tools)


def _filter_leaves_any(query: Query, tools: SearchTools) -> bool:
    """Whether the filter lets any document through: if none, there is nothing to find, however loosely."""
    return query.filter.is_open or tools.store.catalog.count_documents(query.filter) > 0


def _is_answerable(fusion: str, found: Retrieval, tools: SearchTools) -> bool:
    """Whether the semantic candidates may be the answer; no text is read, as none holds a word of the query.

    For a model without a calibration, a cosine above the weak cut stands in for the probability.
    """
    fused = fuse(fusion, found.ballots, found.context, found.blended)
    signals = signals_of(found, fused, coverage=0.0)
    cuts = calibrate.cuts(tools.calibration)
    score = calibrate.confidence_score(tools.calibration, signals)
    judged = answerable(score, calibrate.cuts_for(cuts, signals))
    return signals.semantic.top >= cuts.weak if judged is None else judged


def _with_rung(found: Retrieval, votes: Poll) -> Retrieval:
    """Add a rung's votes to the candidates."""
    added = [vote for cast in votes.votes.values() for vote in cast]
    ballots = with_votes(found.ballots, added, cosine=_cosines(found, added)) if added else found.ballots
    return replace(found.with_ballots(ballots), poll=merged(found.poll, votes))


def _cosines(found: Retrieval, added: Sequence[Candidate]) -> Mapping[ChunkId, float]:
    """Return the cosines of chunks that a rung has added, where the semantic strategy has voted."""
    missing = [one for one in added if one.chunk_id not in found.ballots.cosine]
    if not found.cosines or not found.ballots.semantic or not missing:
        return {}
    return found.cosines.compare(found.query.meaning, missing).cosines()
