"""Chunks by words under a filter, and the words of the index that are near a typed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.store.contract import WordIndex
from concord.store.names import name_frequencies, search_names
from concord.store.overriding import override
from concord.store.postgres.database import DIALECT, PostgresDatabase, PostgresSession
from concord.store.postgres.match import Postings, WordReader, best
from concord.store.postgres.postings import BLOCK, POSTING_BYTES, lexemes
from concord.store.postgres.scope import ALLOWED_AMONG, Scopes
from concord.store.rows import condition
from concord.store.sql_values import LAST_CHARACTER
from concord.text.similar import ALIKE, SPELLINGS, Typed, similar, typed
from concord.text.tokens import separated
from concord.types import Filter, Match, Scored

_MORE = 8  # times as many chunks are looked at where a filter has left too few

# So few tokens are all looked at, which alone finds words by their middle or two slips early on: 20 ms. A
# token has a row in every block that holds it; to count rows takes less than to tell tokens apart.
SMALL = 10_000
_MOST_TOKENS = 5000  # read of one beginning
_KNOWN = f"""
SELECT term, sum(octet_length(postings)) / {POSTING_BYTES} FROM kb_postings {{where}} GROUP BY term"""
_IS_SMALL = "SELECT count(*) < :most FROM (SELECT FROM kb_postings LIMIT :most) AS rows"
_PROMISING = f"""
({_KNOWN.format(where="WHERE term >= :start AND term < :end")} LIMIT {_MOST_TOKENS})
UNION {_KNOWN.format(where="WHERE term IN (:one_off...)")}"""
_HOLDERS = f"""
SELECT c.title, c.content, c.tags, c.terms FROM (
    SELECT block, substr(postings, 1, {SPELLINGS * POSTING_BYTES}) AS first FROM kb_postings
    WHERE term = :token ORDER BY block LIMIT {SPELLINGS}
) AS p CROSS JOIN generate_series(0, length(p.first) / {POSTING_BYTES} - 1) AS n (at)
JOIN kb_chunks AS c ON c.id = p.block::bigint * {BLOCK} + get_byte(p.first, {POSTING_BYTES} * n.at)
    + 256 * get_byte(p.first, {POSTING_BYTES} * n.at + 1) LIMIT {SPELLINGS}"""


class BlockWords(WordIndex):
    """The index of words of one organisation."""

    def __init__(self, database: PostgresDatabase, scopes: Scopes) -> None:
        self._database = database
        self._scopes = scopes
        self._reader = WordReader()

    @override
    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        if limit < 1:
            return []
        with self._database.read() as session:
            index, postings = self._reader.scored(session, match)
            if not len(postings.chunks):
                return []
            scope = self._scopes.of(session, filter, index.generation, index.chunks)
            if scope is None:
                return _allowed(session, postings, filter, limit)
            is_kept = scope.holds(postings.chunks)
            return best(Postings(postings.chunks[is_kept], postings.scores[is_kept]), limit)

    @override
    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        with self._database.read() as session:
            return self._reader.frequencies(session, words)

    @override
    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        asked = typed(word)
        if asked is None or limit < 1:
            return []
        with self._database.read() as session:
            return similar(asked, _near(session, asked), lambda token: _spellings(session, token), limit)

    @override
    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        if not tokens or limit < 1:
            return []
        with self._database.read() as session:
            return search_names(session, DIALECT, tokens, filter, limit)

    @override
    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        with self._database.read() as session:
            return name_frequencies(session, tokens)


def _allowed(session: PostgresSession, postings: Postings, filter: Filter, limit: int) -> list[Scored]:
    """Return the best chunks that a filter lets through: the best are looked up until there are enough."""
    sql, values = condition(filter, DIALECT)
    looked_at = limit
    while True:
        looked_at *= _MORE
        scored = best(postings, looked_at)
        ids = {"chunks": [each.chunk_id for each in scored]}
        rows = session.rows(ALLOWED_AMONG.format(condition=sql), {**values, **ids})
        allowed = {chunk_id for (chunk_id,) in rows}
        if len(allowed) >= limit or len(scored) < looked_at:
            return [each for each in scored if each.chunk_id in allowed][:limit]


def _near(session: PostgresSession, asked: Typed) -> list[tuple[str, int]]:
    """Return all tokens where they are few, else those that begin as the word does or are one edit away."""
    if session.value(_IS_SMALL, {"most": 2 * SMALL}):
        rows = session.rows(_KNOWN.format(where=""))
    else:
        start = asked.word[:ALIKE] if asked.allowed else asked.word
        values = {"start": start, "end": start + LAST_CHARACTER, "one_off": list(asked.one_off)}
        rows = session.rows(_PROMISING, values)
    return [(term, int(chunks)) for term, chunks in rows]


def _spellings(session: PostgresSession, token: str) -> Iterator[str]:
    """Yield words that a token stands for: the index keeps only their stem."""
    for columns in session.rows(_HOLDERS, {"token": token}):
        for column in columns:
            yield from (run for run in separated(column) if lexemes(run) == [token])
