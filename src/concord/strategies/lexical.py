"""Two ways to look for words: all of them (`fts_exact`), and any of them (`fts_relaxed`)."""

from __future__ import annotations

from collections.abc import Iterable

from concord.protocols import LexicalIndex
from concord.types import Candidate, Family, Match, Query, Scored


class ExactWords:
    """Every significant term and every phrase."""

    name = "fts_exact"
    family: Family = "lexical"

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks that hold all of the query's words."""
        return _votes(self.name, _found(self._index, query.exact, query))


class RelaxedWords:
    """Any significant term that is not too frequent to mean anything."""

    name = "fts_relaxed"
    family: Family = "lexical"

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    def candidates(self, query: Query) -> list[Candidate]:
        """Return chunks that hold some of the query's words, best BM25 first."""
        return _votes(self.name, _found(self._index, query.loose, query))


def _found(index: LexicalIndex, match: Match | None, query: Query) -> list[Scored]:
    return [] if match is None else index.search(match, query.filter, query.candidates)


def _votes(strategy: str, found: Iterable[Scored]) -> list[Candidate]:
    return [
        Candidate(hit.chunk_id, strategy, "lexical", rank, hit.score) for rank, hit in enumerate(found, 1)
    ]
