"""Finding chunks by words: BM25, from statistics kept for each organisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.filters import ALLOWED, SUPERSEDED, condition
from concord.backends.postgres.match import UNSCORED, Relation
from concord.backends.postgres.names import name_frequencies, search_names
from concord.backends.postgres.plain_words import (
    PlainWords,
    ReadWords,
    Tokens,
    best,
    completed,
    count_tokens,
    may_score,
    plain_words,
    prepare_to_score,
)
from concord.backends.postgres.rows import array_of
from concord.backends.postgres.vocabulary import similar_words
from concord.backends.postgres.words import lexemes
from concord.types import ChunkId, Filter, Match, Phrase, Scored

_SEARCH = """
{reads} SELECT s.chunk, s.score FROM ({scored}) AS s WHERE {condition}
ORDER BY s.score DESC, s.chunk LIMIT %(limit)s"""
# Deleted chunks stay in the postings for a while. Mostly there are none, and then nobody is looked up.
_EXISTS = """((SELECT stale FROM n) = 0
    OR EXISTS (SELECT 1 FROM kb_chunks AS c WHERE c.org = %(org)s AND c.id = s.chunk))"""
_CURRENT = f"{_EXISTS} AND s.chunk NOT IN ({SUPERSEDED})"
_LIVING = "SELECT c.id FROM kb_chunks AS c WHERE c.org = %(org)s AND c.id = ANY(%(ids)s::bigint[])"
_LIVING_AND_CURRENT = f"{_LIVING} AND c.id NOT IN ({SUPERSEDED})"
_ROOM = 64  # for chunks that are gone, among the best
_COUNT = "{reads} SELECT count(*) FROM ({scored}) AS s"


class PostgresLexical:
    """The lexical index of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._org = connections.org
        self._searches = 0  # before there was numpy

    def search(
        self, match: Match, filter: Filter, limit: int, known: Mapping[str, int] | None = None
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""
        if limit < 1:
            return []
        words = plain_words(match) if filter.is_open and may_score() else None
        tokens = self._tokens(words, known) if words else None
        if words and tokens:
            return self._plain(words, tokens, filter, limit)
        relation = Relation(match)
        if relation.sql is None:
            return []
        statement, values = best_of(relation, self._org, filter, limit)
        rows = self._connections.read(  # in binary form: a thousand numbers are not written out and parsed
            lambda connection: connection.cursor(binary=True).execute(statement, values).fetchall()
        )
        return list(starmap(Scored, rows))

    def is_at_hand(self, match: Match, filter: Filter, known: Mapping[str, int]) -> bool:
        """Whether the postings were read, and name nothing that has to be looked up."""
        words = plain_words(match) if filter.is_open and may_score() else None
        tokens = known.tokens if isinstance(known, ReadWords) else None
        return bool(words and tokens and tokens.suffice(words) and not _hides(filter, tokens))

    def frequencies(
        self, words: Sequence[str], sought_share: float | None = None
    ) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem).

        The postings of words that are sought come along.
        """
        share = sought_share if sought_share is not None and self._may_score() else None
        return self._connections.read(lambda connection: self._frequencies(connection, words, share))

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks that have most of some name tokens, best first; ties by chunk id."""
        if not tokens or limit < 1:
            return []
        return self._connections.read(
            lambda connection: search_names(connection, self._org, tokens, filter, limit)
        )

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each of some name tokens."""
        return self._connections.read(lambda connection: name_frequencies(connection, self._org, tokens))

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""
        return self._connections.read(lambda connection: similar_words(connection, self._org, word, limit))

    def _may_score(self) -> bool:
        """Whether plain words are scored here; whoever searches for the second time gets ready to."""
        if may_score():
            return True
        self._searches += 1
        if self._searches == 2:
            prepare_to_score()
        return False

    def _frequencies(
        self, connection: Connection, words: Sequence[str], share: float | None
    ) -> tuple[int, dict[str, int]]:
        tokens = {word: lexemes(word) for word in words}
        single = [found[0] for found in tokens.values() if len(found) == 1]
        read = count_tokens(connection, self._org, single, share)
        counts = {
            word: read.counts[found[0]] if len(found) == 1 else self._count_phrase(connection, word)
            for word, found in tokens.items()
        }
        return read.chunks, ReadWords(counts, read)

    def _count_phrase(self, connection: Connection, word: str) -> int:
        """Count a word that is several tokens: side by side."""
        relation = Relation(Phrase(word), UNSCORED)
        if relation.sql is None:
            return 0
        statement = _COUNT.format(reads=relation.reads, scored=relation.sql)
        row = connection.execute(statement, {"org": self._org, **relation.values}).fetchone()
        return int(row[0]) if row else 0

    def _tokens(self, words: PlainWords, known: Mapping[str, int] | None) -> Tokens | None:
        """Return all that a search for plain words needs to know, beginning with what is known.

        None where that is so much that the search is better done by the server.
        """
        tokens = known.tokens if isinstance(known, ReadWords) else Tokens()
        if tokens.suffice(words):
            return tokens
        return self._connections.read(lambda connection: self._read(connection, words, tokens))

    def _read(self, connection: Connection, words: PlainWords, tokens: Tokens) -> Tokens | None:
        if uncounted := [token for token in words.times if token not in tokens.counts]:
            tokens = tokens.joined(count_tokens(connection, self._org, uncounted, 1.0))
        return completed(words, tokens, connection, self._org)

    def _plain(self, words: PlainWords, tokens: Tokens, filter: Filter, limit: int) -> list[Scored]:
        """Return the best chunks that hold plain words, under a filter that hides superseded ones at most."""
        asked = limit
        while True:
            found = best(words, tokens, asked)
            kept = self._kept(found, filter, tokens)
            if len(kept) >= limit or len(found) < asked:
                return kept[:limit]
            asked = 4 * asked + _ROOM

    def _kept(self, found: list[Scored], filter: Filter, tokens: Tokens) -> list[Scored]:
        """Return, of chunks that postings name, those that are there and not superseded."""
        if not found or not _hides(filter, tokens):
            return found
        hides_some = tokens.may_be_superseded and not filter.include_superseded
        ids = array_of(one.chunk_id for one in found)
        rows = self._connections.rows(_LIVING_AND_CURRENT if hides_some else _LIVING, ids=ids)
        living: set[ChunkId] = {chunk_id for (chunk_id,) in rows}
        return [one for one in found if one.chunk_id in living]


def _hides(filter: Filter, tokens: Tokens) -> bool:
    """Whether postings may name chunks that are gone, or that a filter hides."""
    return tokens.may_be_gone or (tokens.may_be_superseded and not filter.include_superseded)


def best_of(relation: Relation, org: int, filter: Filter, limit: int) -> tuple[str, dict[str, Any]]:
    """Return the statement that finds the best chunks of a match, and the values that it names."""
    allowed, values = _allowed(filter)
    values |= relation.values | {"org": org, "limit": limit}
    return _SEARCH.format(reads=relation.reads, scored=relation.sql, condition=allowed), values


def _allowed(filter: Filter) -> tuple[str, dict[str, Any]]:
    """Return what a scored chunk `s` must satisfy, and the values that it names."""
    if filter.is_open:
        return _EXISTS if filter.include_superseded else _CURRENT, {}
    sql, values = condition(filter)
    return f"s.chunk IN ({ALLOWED.format(condition=sql)})", values
