"""Chunks with all that is derived from them: words, statistics and vectors, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from concord.backends.columns import Columns
from concord.backends.postgres.connections import Connection
from concord.backends.postgres.copying import move, staging
from concord.backends.postgres.schema import vector_table
from concord.backends.postgres.words import Entry, entry_of, posting_lines, postings
from concord.types import ChunkId

_CHUNK_FIELDS = (
    *("org", "id", "document", "position", "start_offset", "end_offset", "start_line", "end_line", "page"),
    *("last_page", "heading", "content", "length", "words"),
)
_POSTING_FIELDS = ("org", "segment", "term", "size", "chunks", "packed")
_LINES = 2000  # of postings, sent at once
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
# The chunks go first: whoever puts a vector holds them until it is there, and then it is deleted as well.
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
        for table in ("kb_chunks", "kb_postings", "kb_segments", "kb_gone")
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
_REWRITE_WORDS = "UPDATE kb_chunks SET length = %s, words = %s::tsvector WHERE org = %s AND id = %s"


class NewChunk(NamedTuple):
    """A chunk to insert: its id, its fields from `document` to `content`, and what is indexed of it."""

    id: ChunkId
    row: tuple[Any, ...]
    columns: Columns


def insert_chunks(connection: Connection, org: int, chunks: Sequence[NewChunk]) -> None:
    """Insert chunks that have no vector yet."""
    if not chunks:
        return
    entries: list[tuple[ChunkId, Entry]] = []
    with staging(connection, "kb_chunks", _CHUNK_FIELDS) as copy:
        for chunk in chunks:  # tokens are made while the server reads those before
            entry = entry_of(chunk.columns)
            copy.write_row((org, chunk.id, *chunk.row, entry.length, entry.words))
            entries.append((chunk.id, entry))
    with connection.pipeline():  # the server goes on while the postings are gathered
        move(connection, "kb_chunks", _CHUNK_FIELDS)
        connection.execute(_PUT_PENDING, ([chunk.id for chunk in chunks], org))
        segment = _segment(entries)
    _add_segment(connection, org, segment)


def reindex_chunks(connection: Connection, org: int, entries: Mapping[ChunkId, Entry]) -> None:
    """Index chunks anew whose title or tags changed; their text, ids and vectors stay.

    Their old words are taken out of the postings at once: nothing would tell them from the new ones.
    """
    if entries:
        forget_words(connection, org, list(entries))
        index_words(connection, org, entries)


def forget_words(connection: Connection, org: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Take chunks out of the postings and the counts; `index_words` puts them back."""
    if chunk_ids:
        connection.execute(_FORGET_WORDS, {"org": org, "ids": list(chunk_ids)})


def index_words(connection: Connection, org: int, entries: Mapping[ChunkId, Entry]) -> None:
    """Index chunks that were forgotten."""
    rows = [(entry.length, entry.words, org, chunk_id) for chunk_id, entry in entries.items()]
    with connection.cursor() as cursor:
        cursor.executemany(_REWRITE_WORDS, rows)
    _add_segment(connection, org, _segment(list(entries.items())))


def delete_chunks(connection: Connection, org: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Delete chunks with their words and vectors."""
    if not chunk_ids:
        return
    values = {"org": org, "ids": list(chunk_ids)}
    (chunks,) = connection.execute(_CHUNKS, (org,)).fetchone() or (0,)
    for statement in _FORGET_ALL if len(chunk_ids) == chunks else (_DELETE_CHUNKS,):
        connection.execute(statement, values)
    dimensions = connection.execute(_DIMENSIONS, (org,)).fetchall()
    for table in ("kb_pending", *(vector_table(dimension) for (dimension,) in dimensions)):
        connection.execute(_DELETE_DERIVED.format(table=table), values)


class _Segment(NamedTuple):
    """The postings of chunks that are written together, and what they add up to."""

    number: int
    chunks: int
    tokens: int
    postings: dict[str, list[int]]


def _segment(entries: Sequence[tuple[ChunkId, Entry]]) -> _Segment:
    last = max(chunk_id for chunk_id, _ in entries)
    tokens = sum(entry.length for _, entry in entries)
    return _Segment(last, len(entries), tokens, postings(entries))


def _add_segment(connection: Connection, org: int, segment: _Segment) -> None:
    """Write a segment, and count what is in it."""
    lines = posting_lines(org, segment.number, segment.postings)
    with staging(connection, "kb_postings", _POSTING_FIELDS) as copy:
        while block := "".join(islice(lines, _LINES)):  # the next are made while the server reads these
            copy.write(block)
    with connection.pipeline():
        move(connection, "kb_postings", _POSTING_FIELDS)
        connection.execute(_PUT_SEGMENT, (org, segment.number, segment.chunks))
        connection.execute(_COUNT_ADDED, (segment.chunks, segment.tokens, segment.number, org))
