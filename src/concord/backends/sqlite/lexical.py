"""Finding chunks by words: FTS5 and its BM25."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from concord.backends.columns import WEIGHTS
from concord.backends.sqlite.connections import Connection, Readers
from concord.backends.sqlite.filters import CHUNKS, condition
from concord.backends.sqlite.match import to_match
from concord.types import Filter, Match, Phrase, Scored

# `ORDER BY rank` alone would let FTS5 sort, which is slower than SQLite's own top-k and leaves ties open.
_SEARCH = """
SELECT f.rowid, -f.rank FROM kb_chunks_fts AS f {rest}
ORDER BY f.rank, f.rowid LIMIT :limit"""
_MATCHED = "WHERE f.kb_chunks_fts MATCH :match AND f.rank MATCH :ranking"

# Superseded documents are few: leaving out their chunks costs nothing where a join would double the time.
_CURRENT = _SEARCH.format(
    rest=f"{_MATCHED} AND f.rowid NOT IN (SELECT c.id FROM {CHUNKS} WHERE d.superseded_by IS NOT NULL)"
)
_EVERYTHING = _SEARCH.format(rest=_MATCHED)
_FILTERED = _SEARCH.format(
    rest=f"""CROSS JOIN kb_chunks AS c INDEXED BY kb_chunks_place ON c.id = f.rowid
    CROSS JOIN kb_documents AS d ON d.key = c.document {_MATCHED} AND {{condition}}"""
)

_COUNT_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_COUNT_TOKENS = (
    "SELECT v.term, v.doc FROM json_each(?) AS w CROSS JOIN kb_chunks_vocab AS v ON v.term = w.value"
)
_COUNT_PHRASE = "SELECT count(*) FROM kb_chunks_fts WHERE kb_chunks_fts MATCH ?"


class SQLiteLexical:
    """The lexical index of one file."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def search(
        self, match: Match, filter: Filter, limit: int, *, weights: Sequence[float] = WEIGHTS
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""
        expression = to_match(match)
        if expression is None or limit < 1:
            return []
        values: dict[str, apsw.SQLiteValue] = {
            "match": expression,
            "ranking": _ranking(weights),
            "limit": limit,
        }
        if not filter.is_open:
            sql, filter_values = condition(filter)
            statement = _FILTERED.format(condition=sql)
            values.update(filter_values)
        else:
            statement = _EVERYTHING if filter.include_superseded else _CURRENT
        with self._readers.connection() as connection:
            return [Scored(*row) for row in connection.execute(statement, values)]

    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""
        with self._readers.connection() as connection:
            tokens = {word: _tokens(connection, word) for word in words}
            single = json.dumps([found[0] for found in tokens.values() if len(found) == 1])
            known = dict(connection.execute(_COUNT_TOKENS, (single,)))
            counts = {
                word: known.get(found[0], 0) if len(found) == 1 else _count_phrase(connection, word)
                for word, found in tokens.items()
            }
            return connection.execute(_COUNT_CHUNKS).get, counts


def _ranking(weights: Sequence[float]) -> str:
    return f"bm25({', '.join(f'{float(weight):.9g}' for weight in weights)})"


def _tokens(connection: Connection, word: str) -> list[str]:
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])
    text = word.encode("utf-8", "replace")
    found = tokenizer(text, apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return list(map(str, found))


def _count_phrase(connection: Connection, word: str) -> int:
    """Count a word that the tokenizer takes apart: its tokens side by side."""
    expression = to_match(Phrase(word))
    return int(connection.execute(_COUNT_PHRASE, (expression,)).get) if expression else 0
