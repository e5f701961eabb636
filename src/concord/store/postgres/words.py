"""Chunks by words under a filter, and the words of the index that are near a typed one.

`postgres.words = native` asks for words by PostgreSQL's means alone: another order, and nothing to load. That
statement is the design's own: the text is a tsvector of plain words, without stems; its cover density is the
score, and half a point more if the title holds all that was asked for, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from concord.store.postgres.database import DIALECT, PostgresDatabase, PostgresSession
from concord.store.postgres.postings import BLOCK, POSTING_BYTES, lexemes
from concord.store.rows import LAST_CHARACTER, condition
from concord.store.sql import override
from concord.store.words import WordIndex, levelled, wanted
from concord.text.similar import ALIKE, SPELLINGS, Typed
from concord.text.tokens import separated
from concord.types import AllOf, AnyOf, Filter, Match, Phrase, Scored, Without, Word

if TYPE_CHECKING:
    from concord.store.postgres.match import Postings, WordReader

ALLOWED = """
SELECT c.id FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key WHERE {condition}"""
_ALLOWED_AMONG = f"{ALLOWED} AND c.id IN (:chunks...)"
_MORE = 8  # times as many of the best are looked up as are wanted: a filter may leave few of them

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


# A column that the server keeps itself: whoever writes a chunk need not know of it.
_MAKE_COLUMN = """DO $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'kb_chunks'::regclass AND attname = 'body_tsv') THEN
    ALTER TABLE kb_chunks ADD COLUMN IF NOT EXISTS body_tsv tsvector
        GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED;
    CREATE INDEX IF NOT EXISTS kb_chunks_body ON kb_chunks USING gin (body_tsv);
END IF; END $$"""
_SEARCH = """
SELECT c.id, ts_rank_cd(c.body_tsv, q) + 0.5 * (c.title ILIKE :title)::int AS rank
FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document, CAST({query} AS tsquery) AS q
WHERE (c.body_tsv @@ q OR c.title ILIKE :title) AND NOT c.body_tsv @@ {dropped} AND {condition}
ORDER BY rank DESC, c.id LIMIT :limit"""
_PLAIN = "plainto_tsquery('simple', :{name})"
_ANY = f"replace({_PLAIN}::text, ' & ', ' | ')::tsquery"
_BEGINNING = f"coalesce((nullif({_PLAIN}::text, '') || ':*')::tsquery, '')"
_PHRASE = "phraseto_tsquery('simple', :{name})"
_LITERALLY = str.maketrans({sign: f"\\{sign}" for sign in "\\%_"})
_MOST_PARTS = 200  # of what is no plain word; PostgreSQL nests expressions only so deep
_LONGEST, _LONGEST_WORD = 20_000, 2_000  # characters that the server takes


class BlockWords(WordIndex):
    """The index of words of one organisation."""

    _database: PostgresDatabase

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
            if filter.is_open and (filter.include_superseded or not index.has_superseded):
                return postings.best(limit)
            return _allowed(session, postings, filter, limit)

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
    """Return the best chunks that a filter lets through: all are looked up if the best are not enough."""
    sql, values = condition(filter, DIALECT)
    for most in (_MORE * limit, len(postings.chunks)):
        scored = postings.best(most)
        ids = {"chunks": [each.chunk_id for each in scored]}
        rows = session.rows(_ALLOWED_AMONG.format(condition=sql), {**values, **ids})
        allowed = {chunk_id for (chunk_id,) in rows}
        if len(allowed) >= limit or len(scored) < most:
            break
    return [each for each in scored if each.chunk_id in allowed][:limit]


class NativeWords(BlockWords):
    """Chunks are found by a tsvector; words are counted and suggested from the blocks, which stay."""

    _has_column = False

    @override
    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        if limit < 1:
            return []
        sql, values = condition(filter, DIALECT)
        match = levelled(match)
        keep, drop = (match.keep, match.drop) if isinstance(match, Without) else (match, AnyOf(()))
        query, dropped = _query(keep, values), _query(drop, values)
        title = " ".join(map(_text, wanted(keep)))
        values |= {"title": f"%{title.translate(_LITERALLY)}%" if separated(title) else "", "limit": limit}
        with self._database.read() as session:
            if not self._has_column:
                session.run(_MAKE_COLUMN)
                self._has_column = True
            rows = session.rows(_SEARCH.format(query=query, dropped=dropped, condition=sql), values)
        return [Scored(chunk_id, rank) for chunk_id, rank in rows if rank > 0]


def _query(match: Match, values: dict[str, Any]) -> str:
    """Return a match as an expression of tsquery, and put down the values in it."""
    if isinstance(match, Without):
        return f"({_query(match.keep, values)} && !! {_query(match.drop, values)})"
    if isinstance(match, Phrase | Word):
        form = _PHRASE if isinstance(match, Phrase) else _BEGINNING if match.prefix else _PLAIN
        return _named(form, _text(match), values)
    form, sign = (_PLAIN, " && ") if isinstance(match, AllOf) else (_ANY, " || ")
    plain = [_text(part) for part in match.parts if _is_plain(part)]  # together: there may be thousands
    others = [part for part in match.parts if not _is_plain(part)][:_MOST_PARTS]
    rendered = [_named(form, " ".join(plain), values), *(_query(part, values) for part in others)]
    return f"({sign.join(rendered)})"


def _is_plain(part: Match) -> bool:
    return isinstance(part, Word) and not part.prefix


def _named(form: str, text: str, values: dict[str, Any]) -> str:
    name = f"text{len(values)}"
    values[name] = text[:_LONGEST]
    return form.format(name=name)


def _text(leaf: Match) -> str:
    assert isinstance(leaf, Word | Phrase)
    text = leaf.text[:_LONGEST_WORD].replace("\0", " ")
    return text.encode("utf-8", "replace").decode("utf-8")  # half a character is no text for a server
