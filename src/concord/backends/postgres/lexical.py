"""Finding chunks by words: BM25 in SQL, from statistics kept for each organisation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Any

from concord.backends.columns import WEIGHTS
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.filters import ALLOWED, SUPERSEDED, condition
from concord.backends.postgres.match import DOCUMENT_FREQUENCY, UNSCORED, Relation
from concord.backends.postgres.vocabulary import similar_words
from concord.backends.postgres.words import lexemes
from concord.types import Filter, Match, Phrase, Scored

_SEARCH = """
{reads} SELECT s.chunk, s.score FROM ({scored}) AS s WHERE {condition}
ORDER BY s.score DESC, s.chunk LIMIT %(limit)s"""
# Deleted chunks stay in the postings for a while. Mostly there are none, and then nobody is looked up.
_EXISTS = """((SELECT stale FROM n) = 0
    OR EXISTS (SELECT 1 FROM kb_chunks AS c WHERE c.org = %(org)s AND c.id = s.chunk))"""
_CURRENT = f"{_EXISTS} AND s.chunk NOT IN ({SUPERSEDED})"

_COUNTS = f"""
SELECT NULL, chunks FROM kb_orgs WHERE key = %(org)s UNION ALL
SELECT w.term, d.chunks::bigint FROM unnest(%(terms)s::text[]) AS w (term)
CROSS JOIN LATERAL ({DOCUMENT_FREQUENCY.format(term="w.term")}) AS d WHERE d.chunks > 0"""
_COUNT = "{reads} SELECT count(*) FROM ({scored}) AS s"


class PostgresLexical:
    """The lexical index of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def search(
        self, match: Match, filter: Filter, limit: int, *, weights: Sequence[float] = WEIGHTS
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""
        relation = Relation(match)
        if relation.sql is None or limit < 1:
            return []
        statement, values = best(relation, self._connections.org, filter, limit, weights)
        rows = self._connections.read(  # in binary form: a thousand numbers are not written out and parsed
            lambda connection: connection.cursor(binary=True).execute(statement, values).fetchall()
        )
        return list(starmap(Scored, rows))

    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""
        return self._connections.read(
            lambda connection: _frequencies(connection, self._connections.org, words)
        )

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""
        return self._connections.read(
            lambda connection: similar_words(connection, self._connections.org, word, limit)
        )


def best(
    relation: Relation, org: int, filter: Filter, limit: int, weights: Sequence[float] = WEIGHTS
) -> tuple[str, dict[str, Any]]:
    """Return the statement that finds the best chunks of a match, and the values that it names."""
    allowed, values = _allowed(filter)
    values |= relation.values | _weighed(weights) | {"org": org, "limit": limit}
    return _SEARCH.format(reads=relation.reads, scored=relation.sql, condition=allowed), values


def _weighed(weights: Sequence[float]) -> dict[str, float]:
    return {f"w{at}": weight for at, weight in enumerate(weights)}


def _allowed(filter: Filter) -> tuple[str, dict[str, Any]]:
    """Return what a scored chunk `s` must satisfy, and the values that it names."""
    if filter.is_open:
        return _EXISTS if filter.include_superseded else _CURRENT, {}
    sql, values = condition(filter)
    return f"s.chunk IN ({ALLOWED.format(condition=sql)})", values


def _frequencies(connection: Connection, org: int, words: Sequence[str]) -> tuple[int, dict[str, int]]:
    tokens = {word: lexemes(word) for word in words}
    single = [found[0] for found in tokens.values() if len(found) == 1]
    known: dict[str | None, int] = dict(connection.execute(_COUNTS, {"org": org, "terms": single}).fetchall())
    counts = {
        word: known.get(found[0], 0) if len(found) == 1 else _count_phrase(connection, org, word)
        for word, found in tokens.items()
    }
    return known[None], counts


def _count_phrase(connection: Connection, org: int, word: str) -> int:
    """Count a word that is several tokens: side by side."""
    relation = Relation(Phrase(word), UNSCORED)
    if relation.sql is None:
        return 0
    statement = _COUNT.format(reads=relation.reads, scored=relation.sql)
    row = connection.execute(statement, {"org": org, **relation.values}).fetchone()
    return int(row[0]) if row else 0
