"""Two ways to look for words: all of them (`fts_exact`), and any of them (`fts_relaxed`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from concord.types import Candidate, Family, Match, Query, Scored, Votes

if TYPE_CHECKING:
    from concord.storage import LexicalIndex

# Scores known beyond the votes. Sorting a thousand rather than forty costs the engine next to nothing,
# and most of what meaning finds is among them: both scores of a candidate are known without asking again.
KNOWN = 1000


class ExactWords:
    """Every significant term and every phrase."""

    name = "fts_exact"
    family: Family = "lexical"

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks that hold all of the query's words."""
        return _votes(self.name, _found(self._index, query.exact, query, query.candidates), query)

    def is_at_hand(self, query: Query) -> bool:
        """Whether the index has read what it needs."""
        return _is_at_hand(self._index, query.exact, query)


class RelaxedWords:
    """Any significant term that is not too frequent to mean anything."""

    name = "fts_relaxed"
    family: Family = "lexical"

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks that hold some of the query's words, best BM25 first.

        Chunks beyond the query's number of candidates come with their scores only: they are not voted for.
        """
        return _votes(self.name, _found(self._index, query.loose, query, max(KNOWN, query.candidates)), query)

    def is_at_hand(self, query: Query) -> bool:
        """Whether the index has read what it needs."""
        return _is_at_hand(self._index, query.loose, query)


def _found(index: LexicalIndex, match: Match | None, query: Query, limit: int) -> list[Scored]:
    return index.search(match, query.filter, limit, query.frequencies) if match else []


def _is_at_hand(index: LexicalIndex, match: Match | None, query: Query) -> bool:
    return match is None or index.is_at_hand(match, query.filter, query.frequencies)


def _votes(strategy: str, found: Sequence[Scored], query: Query) -> Votes:
    votes = [
        Candidate(one.chunk_id, strategy, "lexical", rank, one.score)
        for rank, one in enumerate(found[: query.candidates], 1)
    ]
    return Votes(votes, found)
