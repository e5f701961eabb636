"""The words of an index that are near a typed one, read from FTS5's own vocabulary.

Reading the whole vocabulary means reading the whole index, which takes a second at 100,000 chunks. A large
one is therefore asked for all words that begin alike, and for the other spellings one edit away, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from concord.backends.sql_values import LAST_CHARACTER, list_column
from concord.backends.sqlite.connections import Connection
from concord.text.similar import ALIKE, SPELLINGS, Typed, similar, typed
from concord.text.tokens import separated

# An index of so few chunks is read through, which alone finds words by their middle or two slips early on:
# 5 ms of work, where 100,000 chunks would take a second.
SMALL = 200
MOST_TOKENS = 5000  # read of one beginning

_EVERY_TOKEN = "SELECT term, doc FROM kb_chunks_vocab"
_BEGINNING = f"{_EVERY_TOKEN} WHERE term >= ? AND term < ? LIMIT ?"
_THESE = (
    "SELECT v.term, v.doc FROM json_each(?) AS wanted "
    "CROSS JOIN kb_chunks_vocab AS v ON v.term = wanted.value"
)
_COUNT_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"

# Where each token stands; temporary, because nothing else needs it.
_MAKE_PLACES = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.kb_places USING fts5vocab(main, kb_chunks_fts, instance)"""
_PLACES = 'SELECT doc, col, "offset" FROM temp.kb_places WHERE term = ? LIMIT ?'
_COLUMN = "SELECT {} FROM kb_chunks WHERE id = ?"


def similar_words(connection: Connection, word: str, limit: int) -> list[tuple[str, int]]:
    """Return words of the index near this one, nearest first, with how many chunks hold each."""
    asked = typed(word)
    if asked is None or limit < 1:
        return []
    is_small = connection.execute(_COUNT_CHUNKS).get <= SMALL
    rows = connection.execute(_EVERY_TOKEN) if is_small else _promising(connection, asked)
    connection.execute(_MAKE_PLACES)
    return similar(asked, dict(rows).items(), lambda token: _spellings(connection, token), limit)


def _promising(connection: Connection, asked: Typed) -> list[tuple[str, int]]:
    """Return the tokens that begin as the word does; if none is one edit away, other tokens that are.

    Each of the others takes as long as reading five that begin alike. What stands in one chunk alone may be
    mistyped there as well.
    """
    start = asked.word[:ALIKE] if asked.allowed else asked.word
    rows: list[Any] = connection.execute(_BEGINNING, (start, start + LAST_CHARACTER, MOST_TOKENS)).fetchall()
    if any(chunks > 1 and token in asked.one_off for token, chunks in rows):
        return rows
    wanted = list_column([token for token in asked.one_off if not token.startswith(start)])
    return [*rows, *connection.execute(_THESE, (wanted,))]


def _spellings(connection: Connection, token: str) -> Iterator[str]:
    """Yield words that a token stands for: an index keeps only their stem."""
    places: list[Any] = connection.execute(_PLACES, (token, SPELLINGS)).fetchall()
    for chunk, column, at in places:
        text = connection.execute(_COLUMN.format(column), (chunk,)).get
        yield from separated(text)[at : at + 1]
