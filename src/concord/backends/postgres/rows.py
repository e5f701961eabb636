"""Rows and nouns: each way, one function a noun."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import astuple, replace

from concord.store import sql_values
from concord.store.sql_values import details_of, list_of
from concord.types import Chunk, Document, Feedback, FileState, Piece, Source

Row = Sequence[Any]  # columns are typed by the schema; mypy cannot see it

SOURCE_COLUMNS = "id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at"
DOCUMENT_COLUMNS = """d.id, d.source, d.path, d.type, d.title, d.tags, d.details, d.file_hash, d.content_hash,
d.size, d.mtime_ns, d.superseded_by, d.indexed_at, d.fields"""
DOCUMENT_WIDTH = 14
_DOCUMENT_TEXTS = (0, 1, 2, 4, 7, 8)  # those of them that are a text and always there
CHUNK_COLUMNS = """c.id, c.document, c.position, c.content, c.start_offset, c.end_offset, c.start_line,
c.end_line, c.page, c.heading, c.last_page, c.start_column, c.end_column"""

# PostgreSQL's text holds every character but NUL, which files do hold. ESC stands before what is not meant
# literally: itself and NUL. So it is in every column, names and paths too: what is asked for is told in the
# same form. Half characters, which UTF-8 has no form for, are refused. Lists and details are JSON, which has
# neither.
_ESCAPE = "\x1b"


def stored(text: str) -> str:
    """Return a text in a form that PostgreSQL can keep."""
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ESCAPE + "e").replace("\0", _ESCAPE + "0")


def loaded(text: str) -> str:
    """Return the text that was stored."""
    return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "e", _ESCAPE) if _ESCAPE in text else text


def stored_all(texts: Iterable[str]) -> list[str]:
    """Return texts in that form."""
    return [stored(text) for text in texts]


def stored_name(text: str | None) -> str | None:
    """Return a text in that form, if there is one."""
    return None if text is None else stored(text)


def loaded_name(text: str | None) -> str | None:
    """Return the text that was stored, if there is one."""
    return None if text is None else loaded(text)


def stored_tags(tags: Iterable[str]) -> list[str]:
    """Return tags as their column keeps them, each once."""
    return stored_all(dict.fromkeys(tags))


def array_of(ids: Iterable[int]) -> str:
    """Return numbers as a parameter `::bigint[]`: to adapt a list, psycopg takes a microsecond a number."""
    return f"{{{','.join(map(str, ids))}}}"


def source_of(row: Row) -> Source:
    """Return the source in a row of SOURCE_COLUMNS."""
    names = loaded(row[0]), loaded(row[1]), loaded_name(row[2]), row[3], loaded(row[4])
    values = [*names, list_of(row[5]), list_of(row[6]), *row[7:]]
    return Source(*values)


def document_of(row: Row) -> Document:
    """Return the document in a row of DOCUMENT_COLUMNS."""
    values = list(row)
    for at in _DOCUMENT_TEXTS:
        if _ESCAPE in row[at]:  # nearly none has it, and a search reads many
            values[at] = loaded(row[at])
    values[5:7] = tuple(map(loaded, row[5])), details_of(row[6])
    values[11] = loaded_name(row[11])
    values[-1] = details_of(row[-1])
    return Document(*values)


def chunk_of(row: Row) -> Chunk:
    """Return the chunk in a row of CHUNK_COLUMNS."""
    values = [row[0], loaded(row[1]), row[2], loaded(row[3]), *row[4:9], list_of(row[9]), *row[10:]]
    return Chunk(*values)


def file_state_of(row: Row) -> FileState:
    """Return what a sync needs to know of a document, in a row of these fields."""
    document_id, path, size, mtime_ns, file_hash, content_hash, indexed_at = row
    named = loaded(document_id), loaded(path)
    return FileState(*named, size, mtime_ns, loaded(file_hash), loaded(content_hash), indexed_at)


def feedback_of(row: Row) -> Feedback:
    """Return the opinion in a row of these fields."""
    values: list[Any] = [*map(loaded, row[:-1]), row[-1]]
    return Feedback(*values)


def feedback_values(feedback: Feedback) -> list[Any]:
    """Return the columns of an opinion."""
    *texts, at = astuple(feedback)
    return [*stored_all(texts), float(at)]


def source_values(source: Source) -> dict[str, Any]:
    """Return the columns of a source."""
    values = sql_values.source_values(source)
    return {name: stored(value) if isinstance(value, str) else value for name, value in values.items()}


def named_as_stored(document: Document) -> Document:
    """Return a document whose names and hashes, by which rows find each other, are in the stored form.

    What its chunks are found by, title and tags, stays as it is.
    """
    names = (document.id, document.source_id, document.path, document.superseded_by or "")
    together = "".join((*names, document.file_hash, document.content_hash))
    if stored(together) is together:
        return document
    return replace(
        document,
        id=stored(document.id),
        source_id=stored(document.source_id),
        path=stored(document.path),
        file_hash=stored(document.file_hash),
        content_hash=stored(document.content_hash),
        superseded_by=stored_name(document.superseded_by),
    )


def document_values(document: Document) -> dict[str, Any]:
    """Return the columns of a document that is named as it is stored."""
    values = sql_values.document_values(document)
    own = {"source": values.pop("source_id"), "title": stored(document.title)}
    return {**values, **own, "tags": stored_tags(document.tags)}


def place_values(position: int, piece: Piece) -> tuple[Any, ...]:
    """Return where a chunk stands: position, offsets, lines, pages and columns."""
    lines = piece.start_line, piece.end_line
    columns = piece.start_column, piece.end_column
    return position, piece.start, piece.end, *lines, piece.page, piece.last_page, *columns
