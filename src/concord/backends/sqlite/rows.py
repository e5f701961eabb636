"""Rows and nouns: each way, one function a noun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concord.backends.columns import columns_of
from concord.backends.sql_values import details_of, list_of, stored_list
from concord.types import Chunk, Document, Piece, Source

Row = Sequence[Any]  # columns are typed by the schema; mypy cannot see it

SOURCE_COLUMNS = (
    "s.id, s.name, s.path, s.kind, s.prefix, s.patterns, s.tags, s.trust, s.created_at, s.synced_at"
)
DOCUMENT_COLUMNS = """d.id, (SELECT id FROM kb_sources WHERE key = d.source), d.path, d.type, d.title,
(SELECT json_group_array(tag ORDER BY position) FROM kb_document_tags WHERE document = d.key),
d.details, d.file_hash, d.content_hash, d.size, d.mtime_ns, d.superseded_by, d.indexed_at, d.fields"""
CHUNK_COLUMNS = """c.id, d.id, c.position, c.content, c.start_offset, c.end_offset, c.start_line, c.end_line,
c.page, c.heading, c.last_page, c.start_column, c.end_column"""


def source_of(row: Row) -> Source:
    """Return the source in a row of SOURCE_COLUMNS."""
    values = list(row)
    values[5:7] = list_of(row[5]), list_of(row[6])
    return Source(*values)


def document_of(row: Row) -> Document:
    """Return the document in a row of DOCUMENT_COLUMNS."""
    values = list(row)
    values[5:7] = list_of(row[5]), details_of(row[6])
    values[-1] = details_of(row[-1])
    return Document(*values)


def chunk_of(row: Row) -> Chunk:
    """Return the chunk in a row of CHUNK_COLUMNS."""
    values = [*row[:9], list_of(row[9]), *row[10:]]
    return Chunk(*values)


def chunk_values(document: Document, position: int, piece: Piece) -> dict[str, Any]:
    """Return the columns of a chunk, with those that are indexed for words."""
    indexed = columns_of(document.title, document.tags, piece.heading, piece.text)
    return {
        "position": position,
        "start_offset": piece.start,
        "end_offset": piece.end,
        "start_line": piece.start_line,
        "end_line": piece.end_line,
        "page": piece.page,
        "last_page": piece.last_page,
        "start_column": piece.start_column,
        "end_column": piece.end_column,
        "heading": stored_list(piece.heading),
        **indexed._asdict(),
    }
