"""Chunks with all that is derived from them: words, statistics and vectors, in the same transaction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.backends.postgres.array_form import Texts
from concord.backends.postgres.connections import Connection
from concord.backends.postgres.names import add_names, forget_names
from concord.backends.postgres.rows import array_of
from concord.backends.postgres.schema import vector_table
from concord.store.columns import Columns, chunk_names, columns_of
from concord.types import ChunkId, Document, Piece

if TYPE_CHECKING:
    from concord.backends.postgres.copy_form import Postings
    from concord.backends.postgres.segment import Growing, Segment

# Where policies are in force, PostgreSQL refuses COPY, so rows are sent as arrays, a column each.
_CHUNK_FIELDS = {
    "id": "bigint",
    "document": "text",
    "position": "integer",
    "start_offset": "integer",
    "end_offset": "integer",
    "start_line": "integer",
    "end_line": "integer",
    "page": "integer",
    "last_page": "integer",
    "start_column": "integer",
    "end_column": "integer",
    "heading": "text",
    "content": "text",
}
_NAMES = ", ".join((*_CHUNK_FIELDS, "length", "words"))
_ARRAYS = ", ".join(f"%({field})s::{kind}[]" for field, kind in _CHUNK_FIELDS.items())
_INDEXED = "%(length)s::integer[], %(words)s"
_PUT_CHUNKS = f"""
INSERT INTO kb_chunks (org, {_NAMES})
SELECT %(org)s, given.* FROM unnest({_ARRAYS}, {_INDEXED}) AS given ({_NAMES})"""
# At least, in each of several segments. The larger they are, the fewer rows of postings, but the longer the
# server waits for the tokens of the first.
_SEGMENT_CHUNKS = 1000
_TEXTS_AT_ONCE = 64_000  # characters, about: what fits between client and server while both work
_POSTINGS_AT_ONCE = 4000
_PUT_PENDING = "INSERT INTO kb_pending SELECT org, key, unnest(%s::bigint[]) FROM kb_spaces WHERE org = %s"
_PUT_SEGMENT = """
INSERT INTO kb_segments VALUES (%s, %s, %s)
ON CONFLICT (org, segment) DO UPDATE SET chunks = kb_segments.chunks + excluded.chunks"""
_COUNT_ADDED = """
UPDATE kb_orgs SET chunks = chunks + %s, tokens = tokens + %s, last_chunk = greatest(last_chunk, %s)
WHERE key = %s"""

_CHUNKS = "SELECT chunks FROM kb_orgs WHERE key = %s"
_DIMENSIONS = "SELECT DISTINCT dimension FROM kb_spaces WHERE org = %s AND dimension IS NOT NULL"
_DELETE_DERIVED = """
DELETE FROM {table} WHERE org = %(org)s AND chunk = ANY(%(ids)s)
AND space IN (SELECT key FROM kb_spaces WHERE org = %(org)s)"""
_DELETE_CHUNKS = """
WITH gone AS (DELETE FROM kb_chunks WHERE org = %(org)s AND id = ANY(%(ids)s) RETURNING length, words),
    counted AS (
        INSERT INTO kb_gone AS g
        SELECT %(org)s, term, count(*) FROM gone, unnest(tsvector_to_array(words)) AS term GROUP BY term
        ON CONFLICT (org, term) DO UPDATE SET chunks = g.chunks + excluded.chunks)
UPDATE kb_orgs AS o SET chunks = o.chunks - doomed.chunks, tokens = o.tokens - doomed.tokens,
    stale = o.stale + doomed.chunks
FROM (SELECT count(*) AS chunks, coalesce(sum(length), 0) AS tokens FROM gone) AS doomed
WHERE o.key = %(org)s"""
# When nothing is left, nothing has to be counted.
_FORGET_ALL = (
    *(
        f"DELETE FROM {table} WHERE org = %(org)s"
        for table in ("kb_chunks", "kb_names", "kb_postings", "kb_segments", "kb_gone")
    ),
    "UPDATE kb_orgs SET chunks = 0, tokens = 0, stale = 0 WHERE key = %(org)s",
)

# Arrays are told from each other by looking each of their chunks up, once, in a hash of those that are asked
# for: `&&` and `<> ALL` would compare every chunk with every other, and took 3.7 s for 50 of 12,000 chunks.
_FORGET_WORDS = """
WITH old AS MATERIALIZED (SELECT length, words FROM kb_chunks WHERE org = %(org)s AND id = ANY(%(ids)s)),
    found AS MATERIALIZED (SELECT DISTINCT unnest(tsvector_to_array(words)) AS term FROM old),
    thinned AS MATERIALIZED (
        SELECT p.ctid AS place, left_over.*
        FROM found JOIN kb_postings AS p ON p.org = %(org)s AND p.term = found.term
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE e.is_kept) AS size,
                array_agg(e.chunk) FILTER (WHERE e.is_kept) AS chunks,
                array_agg(e.packed) FILTER (WHERE e.is_kept) AS packed
            FROM (
                SELECT u.chunk, u.packed, u.chunk NOT IN (SELECT unnest(%(ids)s::bigint[])) AS is_kept
                FROM unnest(p.chunks, p.packed) AS u (chunk, packed) OFFSET 0
            ) AS e) AS left_over
        WHERE left_over.size < p.size),
    rewritten AS (
        UPDATE kb_postings AS p SET size = t.size, chunks = t.chunks, packed = t.packed FROM thinned AS t
        WHERE p.org = %(org)s AND p.ctid = t.place AND t.size > 0),
    emptied AS (
        DELETE FROM kb_postings AS p USING thinned AS t
        WHERE p.org = %(org)s AND p.ctid = t.place AND t.size = 0)
UPDATE kb_orgs AS o SET chunks = o.chunks - doomed.chunks, tokens = o.tokens - doomed.tokens
FROM (SELECT count(*) AS chunks, coalesce(sum(length), 0) AS tokens FROM old) AS doomed
WHERE o.key = %(org)s"""
_REWRITE_WORDS = f"""
UPDATE kb_chunks AS c SET length = given.length, words = given.words
FROM unnest(%(ids)s::bigint[], {_INDEXED}) AS given (id, length, words)
WHERE c.org = %(org)s AND c.id = given.id"""
_INDEXED_OTHERWISE = f"""
SELECT c.id FROM unnest(%(ids)s::bigint[], {_INDEXED}) AS given (id, length, words)
JOIN kb_chunks AS c ON c.org = %(org)s AND c.id = given.id WHERE c.words <> given.words"""


class NewChunk(NamedTuple):
    """A chunk to insert: its id, its fields from `document` to `content`, and where it comes from."""

    id: ChunkId
    row: tuple[Any, ...]
    document: Document
    piece: Piece

    def columns(self) -> Columns:
        """Return what is indexed of it."""
        return piece_columns(self.document, self.piece)

    def names(self) -> list[str]:
        """Return what it is called."""
        return chunk_names(self.document, self.piece.heading, self.piece.text)


def piece_columns(document: Document, piece: Piece) -> Columns:
    """Return what is indexed of a piece of a document."""
    return columns_of(document.title, document.tags, piece.heading, piece.text)


def insert_chunks(connection: Connection, org: int, chunks: Sequence[NewChunk]) -> None:
    """Insert chunks that have no vector yet.

    Many become several segments: while the server takes in the postings of one, the tokens of the next are
    found.
    """
    parts: list[Sequence[NewChunk]] = [*_even_parts(chunks), ()]
    following = _growing_of(parts[0])
    for part, next_part in pairwise(parts):
        growing, following = following, _growing_of(next_part)
        segment = growing.whole()
        with connection.pipeline():
            _count_segment(connection, org, segment)
            connection.execute(_PUT_PENDING, (array_of(segment.chunks), org))
            for start, stop in _spans(part):
                values = {"org": org, **_columns(part[start:stop]), **_indexed(segment, start, stop)}
                connection.execute(_PUT_CHUNKS, values, prepare=True)
                add_names(connection, org, {chunk.id: chunk.names() for chunk in part[start:stop]})
            postings = segment.postings(_POSTINGS_AT_ONCE)  # before the server is waited for
        _put_postings(connection, segment.number, postings, following)


def indexed_otherwise(
    connection: Connection, org: int, columns: Mapping[ChunkId, Columns]
) -> dict[ChunkId, Columns]:
    """Return those of some chunks whose stored words are not what would be indexed now."""
    if not columns:
        return {}
    values = {
        "org": org,
        "ids": array_of(columns),
        **_indexed(_growing(columns.items()).whole(), 0, len(columns)),
    }
    rows = connection.execute(_INDEXED_OTHERWISE, values).fetchall()
    return {chunk_id: columns[chunk_id] for (chunk_id,) in rows}


def reindex_chunks(connection: Connection, org: int, columns: Mapping[ChunkId, Columns]) -> None:
    """Index chunks anew whose title or tags changed; their text, ids and vectors stay.

    Their old words are taken out of the postings at once: nothing would tell them from the new ones.
    """
    if columns:
        forget_words(connection, org, list(columns))
        index_words(connection, org, columns)


def forget_words(connection: Connection, org: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Take chunks out of the postings and the counts; `index_words` puts them back."""
    if chunk_ids:
        connection.execute(_FORGET_WORDS, {"org": org, "ids": list(chunk_ids)})


def index_words(connection: Connection, org: int, columns: Mapping[ChunkId, Columns]) -> None:
    """Index chunks that were forgotten."""
    segment = _growing(columns.items()).whole()
    _put_postings(connection, segment.number, segment.postings(_POSTINGS_AT_ONCE))
    with connection.pipeline():
        _count_segment(connection, org, segment)
        indexed = _indexed(segment, 0, len(columns))
        connection.execute(_REWRITE_WORDS, {"org": org, "ids": array_of(columns), **indexed})


def delete_chunks(connection: Connection, org: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Delete chunks with their words and vectors."""
    if not chunk_ids:
        return
    values = {"org": org, "ids": list(chunk_ids)}
    (chunks,) = connection.execute(_CHUNKS, (org,)).fetchone() or (0,)
    # Whoever puts a vector takes its chunk off the list of those that wait, or holds it, until the vector is
    # there: in this order, it is waited for, and what it has put is deleted as well.
    connection.execute(_DELETE_DERIVED.format(table="kb_pending"), values)
    forget_names(connection, org, chunk_ids)
    for statement in _FORGET_ALL if len(chunk_ids) == chunks else (_DELETE_CHUNKS,):
        connection.execute(statement, values)
    for (dimension,) in connection.execute(_DIMENSIONS, (org,)).fetchall():
        connection.execute(_DELETE_DERIVED.format(table=vector_table(dimension)), values)


def _even_parts(chunks: Sequence[NewChunk]) -> list[Sequence[NewChunk]]:
    """Return the chunks of each segment: all of them, or as many as those of the others."""
    size = math.ceil(len(chunks) / max(1, len(chunks) // _SEGMENT_CHUNKS)) or 1
    return [chunks[start : start + size] for start in range(0, len(chunks), size)]


def _spans(chunks: Sequence[NewChunk]) -> Iterator[tuple[int, int]]:
    """Yield from where to where chunks are sent together."""
    start = size = 0
    for at, chunk in enumerate(chunks, 1):
        size += len(chunk.piece.text)
        if size >= _TEXTS_AT_ONCE:
            yield start, at
            start, size = at, 0
    if start < len(chunks):
        yield start, len(chunks)


def _columns(chunks: Sequence[NewChunk]) -> dict[str, object]:
    """Return the arrays that hold chunks, by field."""
    columns = zip(*((chunk.id, *chunk.row) for chunk in chunks), strict=True)
    return {
        field: Texts(column) if kind == "text" else array_of(column).replace("None", "NULL")
        for (field, kind), column in zip(_CHUNK_FIELDS.items(), columns, strict=True)
    }


def _growing_of(chunks: Sequence[NewChunk]) -> Growing:
    return _growing((chunk.id, chunk.columns()) for chunk in chunks)


def _growing(chunks: Iterable[tuple[ChunkId, Columns]]) -> Growing:
    from concord.backends.postgres.segment import Growing  # late: a search needs no numpy for it

    return Growing(chunks)


def _indexed(segment: Segment, start: int, stop: int) -> dict[str, object]:
    """Return the arrays of what is stored with some chunks of a segment."""
    indexed = segment.indexed(start, stop)
    return {"length": array_of(indexed.lengths), "words": indexed.words}


def _put_postings(
    connection: Connection, segment: ChunkId, postings: Iterable[Postings], meanwhile: Growing | None = None
) -> None:
    """Write the postings of a segment; after each part of them, another one may grow.

    They go by COPY to the part of their table that knows whose they are (see `schema.OWN_POSTINGS`).
    """
    from concord.backends.postgres.copy_form import COPY_POSTINGS, END, HEAD, posting_rows

    with connection.cursor() as cursor, cursor.copy(COPY_POSTINGS) as copy:
        copy.write(HEAD)
        for some in postings:
            copy.write(posting_rows(segment, some))
            if meanwhile:
                meanwhile.grow()
        copy.write(END)


def _count_segment(connection: Connection, org: int, segment: Segment) -> None:
    """Take note of chunks that are written together, and of what is in them."""
    number, chunks = segment.number, len(segment.chunks)
    connection.execute(_PUT_SEGMENT, (org, number, chunks))
    connection.execute(_COUNT_ADDED, (chunks, segment.tokens, number, org))
