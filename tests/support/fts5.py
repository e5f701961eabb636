"""One text in a real FTS5 table, and whether a match finds it."""

from __future__ import annotations

import apsw

from concord.store.sqlite.words import to_match
from concord.text.terms import index_terms
from concord.types import AllOf, Match, Phrase, Without, Word

_TABLE = apsw.Connection(":memory:")
_TABLE.execute("CREATE VIRTUAL TABLE f USING fts5(content, terms, tokenize='porter unicode61')")


def finds(match: Match | None, text: str) -> bool:
    """Whether an index that holds a text and its further terms finds it."""
    said = to_match(match) if match else None
    if not said:
        return False
    _TABLE.execute("DELETE FROM f")
    _TABLE.execute("INSERT INTO f VALUES (?, ?)", (text, index_terms(text)))
    return bool(_TABLE.execute("SELECT count(*) FROM f WHERE f MATCH ?", (said,)).get)


def shown(match: Match | None) -> str:
    """Return a match as people write it: & for all, | for any, − for without."""
    if match is None:
        return ""
    if isinstance(match, Word):
        return match.text + "*" * match.prefix
    if isinstance(match, Phrase):
        return f'"{match.text}"'
    if isinstance(match, Without):
        return f"({shown(match.keep)} − {shown(match.drop)})"
    return "(" + (" & " if isinstance(match, AllOf) else " | ").join(map(shown, match.parts)) + ")"


def leaves(match: Match | None) -> list[Word | Phrase]:
    """Return the words and phrases of a match."""
    if match is None:
        return []
    if isinstance(match, Word | Phrase):
        return [match]
    parts = (match.keep, match.drop) if isinstance(match, Without) else match.parts
    return [leaf for part in parts for leaf in leaves(part)]
