"""Rows and nouns: each way, one function a noun."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from concord.backends import sql_values
from concord.backends.sql_values import list_of
from concord.types import Chunk, Document, Piece, Source

Row = Sequence[Any]  # columns are typed by the schema; mypy cannot see it

SOURCE_COLUMNS = "id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at"
DOCUMENT_COLUMNS = """d.id, d.source, d.path, d.type, d.title, d.tags, d.details, d.file_hash, d.content_hash,
d.size, d.mtime_ns, d.superseded_by, d.indexed_at, d.fields"""
DOCUMENT_WIDTH = 14
CHUNK_COLUMNS = """c.id, c.document, c.position, c.content, c.start_offset, c.end_offset, c.start_line,
c.end_line, c.page, c.heading, c.last_page"""

# PostgreSQL's text holds every character but NUL, which files do hold. ESC stands before what is not meant
# literally: itself and NUL.
_ESCAPE = "\x1b"


def stored(text: str) -> str:
    """Return a text in a form that PostgreSQL can keep."""
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ESCAPE + "e").replace("\0", _ESCAPE + "0")


def loaded(text: str) -> str:
    """Return the text that was stored."""
    return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "e", _ESCAPE) if _ESCAPE in text else text


def stored_tags(tags: Iterable[str]) -> list[str]:
    """Return tags as their column keeps them, each once."""
    return [stored(tag) for tag in dict.fromkeys(tags)]


def array_of(ids: Iterable[int]) -> str:
    """Return numbers as a parameter `::bigint[]`: to adapt a list, psycopg takes a microsecond a number."""
    return f"{{{','.join(map(str, ids))}}}"


def source_of(row: Row) -> Source:
    """Return the source in a row of SOURCE_COLUMNS."""
    values = list(row)
    values[5:7] = tuple(json.loads(row[5])), tuple(json.loads(row[6]))
    return Source(*values)


def document_of(row: Row) -> Document:
    """Return the document in a row of DOCUMENT_COLUMNS."""
    values = list(row)
    values[4:7] = loaded(row[4]), tuple(map(loaded, row[5])), json.loads(row[6])
    values[-1] = json.loads(row[-1]) if row[-1] != "{}" else {}
    return Document(*values)


def chunk_of(row: Row) -> Chunk:
    """Return the chunk in a row of CHUNK_COLUMNS."""
    values = [*row[:3], loaded(row[3]), *row[4:9], list_of(row[9]), row[10]]
    return Chunk(*values)


def document_values(document: Document) -> dict[str, Any]:
    """Return the columns of a document."""
    values = sql_values.document_values(document)
    own = {"source": values.pop("source_id"), "title": stored(document.title)}
    return {**values, **own, "tags": stored_tags(document.tags)}


def place_values(position: int, piece: Piece) -> tuple[Any, ...]:
    """Return where a chunk stands: position, offsets, lines and pages."""
    lines = piece.start_line, piece.end_line
    return position, piece.start, piece.end, *lines, piece.page, piece.last_page
