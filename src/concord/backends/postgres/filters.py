"""A filter in SQL: conditions on a document `d`, and the values they name."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from concord.backends.postgres.rows import stored, stored_name, stored_tags
from concord.store.globs import is_prefix, literal_prefix, sections
from concord.store.sql_values import LAST_CHARACTER
from concord.types import Filter

_NANOSECONDS = 1e9  # a float, so that a date beyond all files is still a number

# The rest of a query that starts at the documents and ends at their chunks, `c`.
CHUNKS = "kb_documents AS d JOIN kb_chunks AS c ON c.org = d.org AND c.document = d.id"
ALLOWED = f"SELECT c.id FROM {CHUNKS} WHERE d.org = %(org)s AND {{condition}}"
# Superseded documents are few: leaving out their chunks is cheaper than looking every document up.
SUPERSEDED = ALLOWED.format(condition="d.superseded_by IS NOT NULL")


class Condition(NamedTuple):
    """SQL about a document `d`, and the parameters in it."""

    sql: str
    values: dict[str, Any]


def condition(filter: Filter) -> Condition:
    """Return what a document must satisfy."""
    parts = [] if filter.include_superseded else ["d.superseded_by IS NULL"]
    values: dict[str, Any] = {}
    for sql, name, value in _fields(filter):
        parts.append(sql)
        values[name] = value
    if filter.path is not None:
        start = stored(literal_prefix(filter.path))
        parts.append("d.path >= %(path_from)s AND d.path < %(path_to)s")
        values.update(path_from=start, path_to=start + LAST_CHARACTER)
        if not is_prefix(filter.path):
            parts.append("d.path ~ %(path_pattern)s")
            values["path_pattern"] = stored(_pattern(filter.path))
    return Condition(" AND ".join(parts) or "TRUE", values)


def _fields(filter: Filter) -> list[tuple[str, str, Any]]:
    known = [
        ("d.tags @> %(tags)s::text[]", "tags", stored_tags(filter.tags) or None),
        ("d.type = %(type)s", "type", filter.type),
        ("d.source = %(source)s", "source", stored_name(filter.source_id)),
        ("d.mtime_ns >= %(since)s::float8", "since", _nanoseconds(filter.since)),
        ("d.mtime_ns <= %(until)s::float8", "until", _nanoseconds(filter.until)),
    ]
    return [row for row in known if row[2] is not None]


def _nanoseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * _NANOSECONDS


def _pattern(glob: str) -> str:
    """Return a glob as a regular expression of PostgreSQL, whose engine does not backtrack."""
    steps = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return f"^{''.join(steps.get(step) or re.escape(step) for step in sections(glob))}$"
