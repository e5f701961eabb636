"""A filter in SQL: conditions on a document `d`, and the values they name."""

from __future__ import annotations

from concord.backends.globs import is_prefix, literal_prefix
from concord.backends.sql_values import LAST_CHARACTER, list_column
from concord.backends.sqlite.connections import Connection
from concord.types import Filter

NANOSECONDS = 1e9  # a float, so that a date beyond all files is still a number for SQLite

_SOURCE = "d.source = (SELECT key FROM kb_sources WHERE id = :source)"
_TAGS = """d.key IN (
    SELECT t.document FROM kb_document_tags AS t JOIN json_each(:tags) AS wanted ON t.tag = wanted.value
    GROUP BY t.document HAVING count(*) = :tag_count)"""
_PREFIX = "d.key IN (SELECT key FROM kb_documents WHERE path >= :path_from AND path < :path_to)"
# Asked once a document, not once a chunk: the function is Python.
_GLOB = """d.key IN (
    SELECT key FROM kb_documents WHERE path >= :path_from AND path < :path_to AND kb_glob(:glob, path))"""

# The rest of a query that starts at the documents and ends at their chunks, `c`.
CHUNKS = "kb_documents AS d CROSS JOIN kb_chunks AS c ON c.document = d.key"


_SUPERSEDED = "SELECT EXISTS (SELECT 1 FROM kb_documents WHERE superseded_by IS NOT NULL)"


def condition(filter: Filter) -> tuple[str, dict[str, str | int | float]]:
    """Return what a document must satisfy: SQL about a document `d`, and the parameters in it."""
    parts: list[str] = [] if filter.include_superseded else ["d.superseded_by IS NULL"]
    values: dict[str, str | int | float] = {}
    _add_fields(filter, parts, values)
    if filter.tags:
        wanted = sorted(set(filter.tags))
        parts.append(_TAGS)
        values.update(tags=list_column(wanted), tag_count=len(wanted))
    if filter.path is not None:
        start = literal_prefix(filter.path)
        parts.append(_PREFIX if is_prefix(filter.path) else _GLOB)
        values.update(path_from=start, path_to=start + LAST_CHARACTER, glob=filter.path)
    return " AND ".join(parts) or "TRUE", values


def has_superseded(connection: Connection) -> bool:
    """Whether any document is superseded, so that even an open filter leaves something out."""
    return bool(connection.execute(_SUPERSEDED).get)


def _add_fields(filter: Filter, parts: list[str], values: dict[str, str | int | float]) -> None:
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
