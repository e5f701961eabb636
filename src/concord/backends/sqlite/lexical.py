"""Finding chunks by words: FTS5 and its BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap

from concord.backends.columns import WEIGHTS
from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Connection, Readers
from concord.backends.sqlite.filters import CHUNKS, condition, has_superseded
from concord.backends.sqlite.match import to_match
from concord.backends.sqlite.names import name_frequencies, search_names
from concord.text.tokens import tokenize
from concord.types import Filter, Match, Phrase, Scored

# `ORDER BY rank` would let FTS5 sort, which is slower than SQLite's own top-k and leaves ties open.
_SEARCH = f"""
SELECT f.rowid, -bm25(kb_chunks_fts, {", ".join(map(str, WEIGHTS))}) AS score
FROM kb_chunks_fts AS f {{rest}} ORDER BY score DESC, f.rowid LIMIT :limit"""
_MATCHED = "WHERE f.kb_chunks_fts MATCH :match"
_EVERYTHING = _SEARCH.format(rest=_MATCHED)
# Superseded documents are few: leaving out their chunks is cheap where a join would double the time.
_CURRENT = _SEARCH.format(
    rest=f"{_MATCHED} AND f.rowid NOT IN (SELECT c.id FROM {CHUNKS} WHERE d.superseded_by IS NOT NULL)"
)
# The plus keeps SQLite from trying, for every match, every document that a list in the condition names.
_FILTERED = _SEARCH.format(
    rest=f"""CROSS JOIN kb_chunks AS c INDEXED BY kb_chunks_place ON c.id = f.rowid
    CROSS JOIN kb_documents AS d ON d.key = +c.document {_MATCHED} AND {{condition}}"""
)

_COUNT_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_COUNT_TOKENS = """
SELECT v.term, v.doc FROM json_each(?) AS wanted CROSS JOIN kb_chunks_vocab AS v ON v.term = wanted.value"""
_COUNT_PHRASE = "SELECT count(*) FROM kb_chunks_fts WHERE kb_chunks_fts MATCH ?"


class SQLiteLexical:
    """The lexical index of one file."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def search(
        self, match: Match, filter: Filter, limit: int, known: Mapping[str, int] | None = None
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""
        expression = to_match(match)
        if expression is None or limit < 1:
            return []
        values: dict[str, str | int | float] = {"match": expression, "limit": limit}
        with self._readers.connection() as connection:
            statement = _statement(connection, filter, values)
            return list(starmap(Scored, connection.execute(statement, values)))

    def is_at_hand(self, match: Match, filter: Filter, known: Mapping[str, int]) -> bool:
        """Return False: `frequencies` reads counts, and no postings to score."""
        return False

    def frequencies(
        self, words: Sequence[str], sought_share: float | None = None
    ) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""
        with self._readers.connection() as connection:
            tokens = {word: tokenize(word) for word in words}  # what FTS5 makes of it, without asking it
            single = list_column([found[0] for found in tokens.values() if len(found) == 1])
            known = dict(connection.execute(_COUNT_TOKENS, (single,)))
            counts = {
                word: known.get(found[0], 0) if len(found) == 1 else _count_phrase(connection, word)
                for word, found in tokens.items()
            }
            return connection.execute(_COUNT_CHUNKS).get, counts

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks that have most of some name tokens, best first; ties by chunk id."""
        if not tokens or limit < 1:
            return []
        with self._readers.connection() as connection:
            return search_names(connection, tokens, filter, limit)

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each of some name tokens."""
        with self._readers.connection() as connection:
            return name_frequencies(connection, tokens)

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""
        from concord.backends.sqlite.vocabulary import similar_words  # late: few searches need it

        with self._readers.connection() as connection:
            return similar_words(connection, word, limit)


def _statement(connection: Connection, filter: Filter, values: dict[str, str | int | float]) -> str:
    """Return the statement for a filter, and add the values that it names."""
    if filter.is_open:
        is_everything = filter.include_superseded or not has_superseded(connection)
        return _EVERYTHING if is_everything else _CURRENT
    sql, filter_values = condition(filter)
    values.update(filter_values)
    return _FILTERED.format(condition=sql)


def _count_phrase(connection: Connection, word: str) -> int:
    """Count a word that the tokenizer splits: its tokens, side by side."""
    expression = to_match(Phrase(word))
    return int(connection.execute(_COUNT_PHRASE, (expression,)).get) if expression else 0
