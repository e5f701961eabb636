"""Chunks by words under a filter, and the words of the index that are near a typed one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from concord.store.postgres.database import DIALECT, PostgresDatabase, PostgresSession
from concord.store.postgres.postings import BLOCK, POSTING_BYTES, lexemes
from concord.store.rows import LAST_CHARACTER, condition
from concord.store.sql import override
from concord.store.words import SqlWords
from concord.text.similar import ALIKE, SPELLINGS, Typed
from concord.text.tokens import separated
from concord.types import Filter, Match, Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from concord.store.postgres.match import Postings, WordReader

    Integers = NDArray[np.int64]

# A filter that leaves so few is answered exactly: comparing a vector costs 2 µs, and a walk through a graph
# that has to pass by much else may miss the nearest (recall@10 was 0 to 0.8).
MOST_LISTED = 20_000  # chunks
NARROW_SHARE = 0.05  # or of all chunks
_MOST_REMEMBERED = 64  # filters, 160 kB each

_CHUNKS = "kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key"
ALLOWED = f"SELECT c.id FROM {_CHUNKS} WHERE {{condition}}"
ALLOWED_AMONG = f"{ALLOWED} AND c.id IN (:chunks...)"
SUPERSEDED = ALLOWED.format(condition="d.superseded_by IS NOT NULL")
# As one value: to take a thousand rows apart takes longer than to find them.
_LIST = "SELECT count(*), string_agg(int8send(id), '') FROM ({chunks}) AS few"


class Scope:
    """The chunks that are let through, or all but some."""

    def __init__(self, sent: bytes | None, *, is_all_but: bool) -> None:
        self._sent = sent or b""
        self.is_all_but = is_all_but

    @cached_property
    def ids(self) -> Integers:
        """The chunks that are listed."""
        import numpy as np

        return np.frombuffer(self._sent, ">i8").astype(np.int64)

    @cached_property
    def array(self) -> str:
        """The chunks that are listed as an array in PostgreSQL's form."""
        return f"{{{','.join(map(str, self.ids.tolist()))}}}"

    @property
    def is_everything(self) -> bool:
        """Whether all chunks are let through."""
        return self.is_all_but and not self._sent

    def holds(self, chunks: Integers) -> Any:
        """Return of each chunk whether it is let through."""
        import numpy as np

        if self.is_everything:
            return slice(None)
        return np.isin(chunks, self.ids, invert=self.is_all_but)


class Scopes:
    """The scopes of an organisation's filters: a filter is mostly used again and again."""

    def __init__(self) -> None:
        self._known: dict[Filter, tuple[int, Scope | None]] = {}

    def of(self, session: PostgresSession, filter: Filter, generation: int, chunks: int) -> Scope | None:
        """Return what a filter lets through of so many chunks; None if that is too much to be listed."""
        if filter.is_open and filter.include_superseded:
            return Scope(None, is_all_but=True)
        known = self._known.get(filter)
        if known is None or known[0] != generation:
            most = max(MOST_LISTED, int(NARROW_SHARE * chunks))
            known = self._known[filter] = generation, _read(session, filter, most)
            for oldest in list(self._known)[:-_MOST_REMEMBERED]:
                self._known.pop(oldest, None)
        return known[1]


def _read(session: PostgresSession, filter: Filter, most: int) -> Scope | None:
    if filter.is_open:
        _, sent = session.execute(_LIST.format(chunks=SUPERSEDED), {}, binary=True).fetchone() or (0, None)
        return Scope(sent, is_all_but=True)
    sql, values = condition(filter, DIALECT)
    chunks = f"{ALLOWED.format(condition=sql)} LIMIT :most"
    values["most"] = most + 1
    size, sent = session.execute(_LIST.format(chunks=chunks), values, binary=True).fetchone() or (0, None)
    return None if size > most else Scope(sent, is_all_but=False)


_MORE = 8  # times as many chunks are looked at where a filter has left too few

# So few tokens are all looked at, which alone finds words by their middle or two slips early on: 20 ms. A
# token has a row in every block that holds it; to count rows takes less than to tell tokens apart.
SMALL = 10_000
_MOST_TOKENS = 5000  # read of one beginning
_KNOWN = f"""
SELECT term, sum(octet_length(postings))::bigint / {POSTING_BYTES} FROM kb_postings {{where}} GROUP BY term"""
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


class BlockWords(SqlWords):
    """The index of words of one organisation."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, scopes: Scopes) -> None:
        super().__init__(database)
        self._scopes = scopes

    @cached_property
    def _reader(self) -> WordReader:
        from concord.store.postgres.match import WordReader  # late, for it imports numpy

        return WordReader()

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
            return postings.at(scope.holds(postings.chunks)).best(limit)

    @override
    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        with self._database.read() as session:
            return self._reader.frequencies(session, words)

    @override
    def _near(self, session: PostgresSession, asked: Typed) -> Iterable[tuple[str, int]]:
        """Return all tokens where they are few, else those that begin alike or are one edit away."""
        if session.value(_IS_SMALL, {"most": 2 * SMALL}):
            return session.rows(_KNOWN.format(where=""))
        start = asked.word[:ALIKE] if asked.allowed else asked.word
        values = {"start": start, "end": start + LAST_CHARACTER, "one_off": list(asked.one_off)}
        return session.rows(_PROMISING, values)

    @override
    def _spellings(self, session: PostgresSession, token: str) -> Iterator[str]:
        for columns in session.rows(_HOLDERS, {"token": token}):
            for column in columns:
                yield from (run for run in separated(column) if lexemes(run) == [token])


def _allowed(session: PostgresSession, postings: Postings, filter: Filter, limit: int) -> list[Scored]:
    """Return the best chunks that a filter lets through: the best are looked up until there are enough."""
    sql, values = condition(filter, DIALECT)
    looked_at = limit
    while True:
        looked_at *= _MORE
        scored = postings.best(looked_at)
        ids = {"chunks": [each.chunk_id for each in scored]}
        rows = session.rows(ALLOWED_AMONG.format(condition=sql), {**values, **ids})
        allowed = {chunk_id for (chunk_id,) in rows}
        if len(allowed) >= limit or len(scored) < looked_at:
            return [each for each in scored if each.chunk_id in allowed][:limit]
