"""The word index as it is written: blocks of postings for BM25, and a tsvector a chunk for phrases.

A posting says where in its block a chunk is, how often the token occurs in each of the four columns, and how
many tokens the chunk has: 8 bytes. A block is 4,096 chunk ids, so a row holds at most 32 kB, and a token is
in as many chunks as its postings have bytes, divided by 8. Deleted chunks leave the blocks at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from concord.store.postgres.database import PostgresSession
from concord.store.sql import Session, WordTables, override
from concord.text.tokens import folded, stem
from concord.types import ChunkId

# Postings that fit into a page stay in it; larger ones are not worth compressing.
TABLES = """
CREATE TABLE kb_chunk_words (
    chunk bigint PRIMARY KEY,
    length integer NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX kb_chunk_words_words ON kb_chunk_words USING gin (words);
CREATE TABLE kb_postings (
    term text COLLATE "C" NOT NULL,
    block integer NOT NULL,
    postings bytea NOT NULL,
    PRIMARY KEY (term, block)
) WITH (toast_tuple_target = 8160);
ALTER TABLE kb_postings ALTER postings SET STORAGE EXTERNAL;
INSERT INTO kb_meta VALUES ('tokens', 0);
"""
BLOCK = 4096
POSTING_BYTES = 8
LABELS = "ABCD"  # how a tsvector says which column a token is in: title, content, tags, terms
_MOST_COUNTED = 255
_LONGEST = 65_535  # tokens of a chunk
_POSTING = Struct("<HIH")
_AT_ONCE = 1024  # chunks

_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it
_MOST_STEMS = 1 << 16  # words

_COLUMNS = "SELECT id, title, content, tags, terms FROM kb_chunks WHERE id IN (:chunks...) ORDER BY id"
# Returns the chunks whose words are new or others than before, with what they were before. Texts are sent
# joined, for no token holds a space: adapting lists of them takes four times as long.
_PUT_WORDS = """
WITH given AS MATERIALIZED (
    SELECT chunk, length, coalesce(words, '')::tsvector AS words
    FROM unnest(%b::bigint[], %b::integer[], string_to_array(%b, E'\\n')) AS g (chunk, length, words)),
before AS MATERIALIZED (SELECT w.* FROM kb_chunk_words AS w JOIN given USING (chunk)),
written AS (
    INSERT INTO kb_chunk_words AS w SELECT * FROM given
    ON CONFLICT (chunk) DO UPDATE SET length = excluded.length, words = excluded.words
    WHERE w.words <> excluded.words RETURNING w.chunk)
SELECT w.chunk, b.length, tsvector_to_array(b.words) FROM written AS w LEFT JOIN before AS b USING (chunk)"""
_PUT_POSTINGS = """
INSERT INTO kb_postings AS p SELECT * FROM unnest(string_to_array(%b, ' '), %b::integer[], %b::bytea[])
ON CONFLICT (term, block) DO UPDATE SET postings = p.postings || excluded.postings"""
_DELETE_WORDS = """
DELETE FROM kb_chunk_words WHERE chunk IN (:chunks...)
RETURNING chunk, length, tsvector_to_array(words)"""
_FIND_POSTINGS = """
SELECT p.term, p.block, p.postings FROM unnest(string_to_array(%b, ' '), %b::integer[]) AS given (term, block)
JOIN kb_postings AS p ON p.term = given.term AND p.block = given.block"""
_REWRITE_POSTINGS = """
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(string_to_array(%b, ' '), %b::integer[], %b::bytea[]) AS g (term, block, postings)),
emptied AS (
    DELETE FROM kb_postings AS p USING given AS g
    WHERE p.term = g.term AND p.block = g.block AND g.postings = '')
UPDATE kb_postings AS p SET postings = g.postings FROM given AS g
WHERE p.term = g.term AND p.block = g.block AND g.postings <> ''"""
_COUNT = """
UPDATE kb_meta SET value = value + CASE key WHEN 'chunks' THEN :chunks ELSE :tokens END
WHERE key IN ('chunks', 'tokens')"""


@lru_cache(maxsize=_MOST_STEMS)  # most words of a text have been stemmed before
def _token(word: str) -> str:
    token = stem(word)
    if len(token.encode()) > _LONGEST_BYTES:
        return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
    return token


class _Words(NamedTuple):
    """What is written of one chunk: the tokens of each column."""

    chunk_id: ChunkId
    columns: list[list[str]]

    @property
    def length(self) -> int:
        return sum(map(len, self.columns))

    def tsvector(self) -> str:
        """Return where tokens are, in a tsvector's own form; no token holds anything that it would quote.

        Between two columns a position stays free: phrases do not go from one into the next.
        """
        at = 1
        places: list[str] = []
        for label, tokens in zip(LABELS, self.columns, strict=True):
            places += [f"{token}:{at}{label}" for at, token in enumerate(tokens, at)]
            at += len(tokens) + 1
        return " ".join(places)

    def postings(self) -> Iterator[tuple[str, bytes]]:
        """Yield each token with its posting."""
        counts: dict[str, int] = {}  # a byte for each column, the first one lowest
        for column, tokens in enumerate(self.columns):
            for token, count in Counter(tokens).items():
                counts[token] = counts.get(token, 0) + (min(count, _MOST_COUNTED) << 8 * column)
        place, length = self.chunk_id % BLOCK, min(self.length, _LONGEST)
        packed = {count: _POSTING.pack(place, count, length) for count in set(counts.values())}
        return ((token, packed[count]) for token, count in counts.items())


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    return [_token(word) for word in folded(text)]


class BlockTables(WordTables):
    """Blocks and tsvectors follow the chunks; what a transaction writes is indexed together, at its end.

    What was indexed of a chunk before is known by its tsvector, also when its columns have changed.
    """

    @override
    def index(self, session: Session, chunk_ids: Sequence[ChunkId]) -> None:
        assert isinstance(session, PostgresSession)
        session.unindexed.update(dict.fromkeys(chunk_ids))

    @override
    def delete_chunks(self, session: Session, chunk_ids: Sequence[ChunkId]) -> None:
        assert isinstance(session, PostgresSession)
        for chunk_id in chunk_ids:
            session.unindexed.pop(chunk_id, None)
        remove_words(session, chunk_ids)
        session.run("DELETE FROM kb_chunks WHERE id IN (:chunks...)", {"chunks": list(chunk_ids)})


def index_words(session: PostgresSession, chunk_ids: Sequence[ChunkId]) -> None:
    """Bring the index in step with stored chunks, whether or not they have been indexed before."""
    for start in range(0, len(chunk_ids), _AT_ONCE):
        rows = session.rows(_COLUMNS, {"chunks": list(chunk_ids[start : start + _AT_ONCE])})
        chunks = {chunk_id: _Words(chunk_id, [*map(lexemes, columns)]) for chunk_id, *columns in rows}
        lengths = [words.length for words in chunks.values()]
        texts = "\n".join([words.tsvector() for words in chunks.values()])
        written = session.connection.execute(_PUT_WORDS, (list(chunks), lengths, texts)).fetchall()
        known = [row for row in written if row[1] is not None]
        _thin(session, known)
        blocks = _blocks([chunks[chunk_id] for chunk_id, _, _ in written])
        session.connection.execute(_PUT_POSTINGS, _columns(blocks))
        added = sum(chunks[chunk_id].length for chunk_id, _, _ in written)
        _count(session, len(written) - len(known), added - sum(length for _, length, _ in known))


def remove_words(session: PostgresSession, chunk_ids: Sequence[ChunkId]) -> None:
    """Take chunks out of the index, as far as they are in it."""
    for start in range(0, len(chunk_ids), _AT_ONCE):
        rows = session.rows(_DELETE_WORDS, {"chunks": list(chunk_ids[start : start + _AT_ONCE])})
        _thin(session, rows)
        _count(session, -len(rows), -sum(length for _, length, _ in rows))


def _thin(session: PostgresSession, rows: Sequence[tuple[ChunkId, int, list[str]]]) -> None:
    """Take chunks out of the blocks of their tokens."""
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for chunk_id, _, tokens in rows:
        block, place = divmod(chunk_id, BLOCK)
        for token in tokens:
            places[token, block].append(place)
    if places:
        terms, blocks = " ".join([term for term, _ in places]), [block for _, block in places]
        held = session.connection.cursor(binary=True).execute(_FIND_POSTINGS, (terms, blocks))
        kept = {(term, block): _without(rest, places[term, block]) for term, block, rest in held}
        session.connection.execute(_REWRITE_POSTINGS, _columns(kept))


def _count(session: Session, chunks: int, tokens: int) -> None:
    session.run(_COUNT, {"chunks": chunks, "tokens": tokens})


def _blocks(chunks: Iterable[_Words]) -> dict[tuple[str, int], bytes]:
    blocks: dict[int, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for words in chunks:
        block = blocks[words.chunk_id // BLOCK]
        for token, posting in words.postings():
            block[token].append(posting)
    return {
        (token, number): b"".join(held) for number, block in blocks.items() for token, held in block.items()
    }


def _columns(blocks: dict[tuple[str, int], bytes]) -> tuple[str, list[int], list[bytes]]:
    """Return the columns of rows of postings, in the order of the table; terms as one text."""
    keys = sorted(blocks)
    return " ".join([term for term, _ in keys]), [block for _, block in keys], [blocks[key] for key in keys]


def _without(postings: bytes, places: list[int]) -> bytes:
    import numpy as np  # late: only who removes something needs it

    rows = np.frombuffer(postings, np.uint8).reshape(-1, POSTING_BYTES)
    is_kept = ~np.isin(rows[:, :2].copy().view("<u2")[:, 0], places)
    return rows[is_kept].tobytes()
