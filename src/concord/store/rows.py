"""Rows and nouns, each way, and a filter in SQL."""

from __future__ import annotations

from typing import Any

from msgspec.structs import astuple

from concord.store.columns import columns_of
from concord.store.globs import is_prefix, literal_prefix
from concord.store.sql import Dialect, Row
from concord.store.sql_values import LAST_CHARACTER, details_of, list_column, list_of, stored_list
from concord.types import Chunk, Document, Filter, Identity, Piece, Source

NANOSECONDS = 1e9  # a float, so that a date beyond all files is still a number for SQL

TAGS = "(SELECT json_list(tag, position) FROM kb_document_tags WHERE document = d.key)"
SOURCE_COLUMNS = (
    "s.id, s.name, s.path, s.kind, s.prefix, s.patterns, s.tags, s.trust, s.created_at, s.synced_at"
)
DOCUMENT_COLUMNS = f"""d.id, (SELECT id FROM kb_sources WHERE key = d.source), d.path, d.type, d.title,
{TAGS}, d.details, d.file_hash, d.content_hash, d.size, d.mtime_ns, d.superseded_by, d.indexed_at, d.fields"""
CHUNK_COLUMNS = """c.id, d.id, c.position, c.content, c.start_offset, c.end_offset, c.start_line, c.end_line,
c.page, c.heading, c.last_page, c.start_column, c.end_column"""

_SOURCE = "d.source = (SELECT key FROM kb_sources WHERE id = :source)"
_TAGGED = """d.key IN (
    SELECT document FROM kb_document_tags WHERE tag IN (:tags...)
    GROUP BY document HAVING count(*) = :tag_count)"""
_IN_FOLDER = "path >= :path_from AND path < :path_to"
# A glob is compared once for each document, not once for each chunk: the function may be Python.
_AT_PATH = "d.key IN (SELECT key FROM kb_documents WHERE {})"


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


def chunk_values(document: Document, position: int, piece: Piece | Chunk) -> dict[str, Any]:
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


def identity_column(identity: Identity) -> str:
    """Return an identity as it is stored: JSON without spaces."""
    return list_column(astuple(identity))


def identity_of(column: str) -> Identity:
    """Return an identity as it was stored."""
    return Identity(*list_of(column))


def condition(filter: Filter, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Return what a document must satisfy: SQL about a document `d`, and the values in it."""
    parts: list[str] = [] if filter.include_superseded else ["d.superseded_by IS NULL"]
    values: dict[str, Any] = {}
    _add_fields(filter, parts, values)
    if filter.tags:
        wanted = sorted(set(filter.tags))
        parts.append(_TAGGED)
        values.update(tags=wanted, tag_count=len(wanted))
    if filter.path is not None:
        start = literal_prefix(filter.path)
        globbed = "" if is_prefix(filter.path) else f" AND {dialect.glob}"
        parts.append(_AT_PATH.format(_IN_FOLDER + globbed))
        values.update(path_from=start, path_to=start + LAST_CHARACTER)
        if globbed:
            values["glob"] = dialect.glob_value(filter.path)
    return " AND ".join(parts) or "TRUE", values


def _add_fields(filter: Filter, parts: list[str], values: dict[str, Any]) -> None:
    if filter.type is not None:
        parts.append("d.type = :type")
        values["type"] = filter.type
    if filter.source_id is not None:
        parts.append(_SOURCE)
        values["source"] = filter.source_id
    if filter.since is not None:
        parts.append("d.mtime_ns >= :since")
        values["since"] = filter.since * NANOSECONDS
    if filter.until is not None:
        parts.append("d.mtime_ns <= :until")
        values["until"] = filter.until * NANOSECONDS
