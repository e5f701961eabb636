"""The words of an index that are near a typed one, from the statistics of its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concord.backends.postgres.connections import Connection
from concord.backends.postgres.rows import loaded
from concord.backends.postgres.words import lexemes
from concord.store.columns import columns_of
from concord.store.sql_values import LAST_CHARACTER, list_of
from concord.text.similar import ALIKE, SPELLINGS, Typed, similar, typed
from concord.text.tokens import separated

# So few tokens are all looked at, which alone finds words by their middle or two slips early on: 20 ms. A
# token has a row in every segment that holds it; to count rows takes less than to tell tokens apart.
SMALL = 10_000
_SMALL_ROWS = 2 * SMALL
MOST_TOKENS = 5000  # read of one beginning

_KNOWN = """
SELECT p.term, (sum(p.size) - coalesce(min(g.chunks), 0))::bigint AS chunks
FROM kb_postings AS p LEFT JOIN kb_gone AS g ON g.org = p.org AND g.term = p.term
WHERE p.org = %(org)s {condition} GROUP BY p.term HAVING sum(p.size) > coalesce(min(g.chunks), 0)"""
_SOME = _KNOWN.format(condition="") + " LIMIT %(most)s"
_IS_SMALL = """
SELECT count(*) < %(most)s FROM (SELECT FROM kb_postings WHERE org = %(org)s LIMIT %(most)s) AS rows"""
_PROMISING = f"""
({_KNOWN.format(condition="AND p.term >= %(start)s AND p.term < %(end)s")} LIMIT %(most)s)
UNION {_KNOWN.format(condition="AND p.term = ANY(%(one_off)s)")}"""
_HOLDERS = """
SELECT c.title, c.tags, c.heading, c.content FROM (
    SELECT unnest(p.chunks[p.size - %(looked)s:]) AS id FROM kb_postings AS p
    WHERE p.org = %(org)s AND p.term = %(token)s ORDER BY 1
) AS holder CROSS JOIN LATERAL (
    SELECT d.title, d.tags, c.heading, c.content FROM kb_chunks AS c
    JOIN kb_documents AS d ON d.org = c.org AND d.id = c.document
    WHERE c.org = %(org)s AND c.id = holder.id LIMIT 1) AS c
LIMIT %(most)s"""
# Chunks of a segment, the latest, of which fewer are gone: enough to see how a word is spelled. Else all.
_LOOKED = (64, 2**30)


def similar_words(connection: Connection, org: int, word: str, limit: int) -> list[tuple[str, int]]:
    """Return words of the index near this one, nearest first, with how many chunks hold each."""
    asked = typed(word)
    if asked is None or limit < 1:
        return []
    tokens = _tokens(connection, org, asked)
    return similar(asked, tokens, lambda token: _spellings(connection, org, token), limit)


def _tokens(connection: Connection, org: int, asked: Typed) -> Iterable[tuple[str, int]]:
    """Return all tokens where they are few, else those that begin as the word does or are one edit away."""
    if connection.execute(_IS_SMALL, {"org": org, "most": _SMALL_ROWS}).fetchone() == (True,):
        found = connection.execute(_SOME, {"org": org, "most": SMALL + 1}).fetchall()
        if len(found) <= SMALL:
            return ((term, chunks) for term, chunks in found)
    start = asked.word[:ALIKE] if asked.allowed else asked.word
    values = {"org": org, "start": start, "end": start + LAST_CHARACTER, "most": MOST_TOKENS}
    rows = connection.execute(_PROMISING, {**values, "one_off": list(asked.one_off)}).fetchall()
    return ((term, chunks) for term, chunks in rows)


def _spellings(connection: Connection, org: int, token: str) -> Iterator[str]:
    """Yield words that a token stands for: the index keeps only their stem."""
    asked = {"org": org, "token": token, "most": SPELLINGS}
    some = (connection.execute(_HOLDERS, {**asked, "looked": looked}).fetchall() for looked in _LOOKED)
    for title, tags, heading, content in next(filter(None, some), []):
        tags = [loaded(tag) for tag in tags]
        for column in columns_of(loaded(title), tags, list_of(heading), loaded(content)):
            yield from (run for run in separated(column) if lexemes(run) == [token])
