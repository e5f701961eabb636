"""The nouns as columns of a table, the same in every SQL engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import json

from concord.types import Document, Source

LAST_CHARACTER = "\U0010ffff"  # whatever begins with `text` sorts between `text` and `text + LAST_CHARACTER`


def source_values(source: Source) -> dict[str, Any]:
    """Return the columns of a source."""
    return {
        "id": source.id,
        "name": source.name,
        "path": source.path,
        "kind": source.kind,
        "prefix": source.prefix,
        "patterns": stored_list(source.patterns),
        "tags": stored_list(source.tags),
        "trust": source.trust,
        "created_at": float(source.created_at),
        "synced_at": None if source.synced_at is None else float(source.synced_at),
    }


def document_values(document: Document) -> dict[str, Any]:
    """Return the columns of a document; its source by id. Where its tags are kept is the engine's affair."""
    return {
        "id": document.id,
        "source_id": document.source_id,
        "path": document.path,
        "type": document.type,
        "title": document.title,
        "details": details_column(document.details),
        "file_hash": document.file_hash,
        "content_hash": document.content_hash,
        "size": document.size,
        "mtime_ns": document.mtime_ns,
        "superseded_by": document.superseded_by,
        "indexed_at": float(document.indexed_at),
        "fields": details_column(document.fields),
    }


def details_column(details: Mapping[str, Any]) -> str:
    """Return details as their column keeps them; front matter may hold dates, and NaN or infinity."""
    return _standard_json().dumps(dict(details), default=str) if details else "{}"


def details_of(stored: str) -> Mapping[str, Any]:
    """Return details from their column."""
    found: dict[str, Any] = _standard_json().loads(stored) if stored != "{}" else {}
    return found


def stored_list(values: Collection[Any]) -> str:
    """Return a list as its column keeps it.

    Raises:
        UnicodeEncodeError: there is half a character in it, and what comes back would be no text.
    """
    return json.encode(values).decode()


def list_column(values: Collection[Any]) -> str:
    """Return a list that looks like its column, and as `json_each` takes it."""
    try:
        return stored_list(values)
    except UnicodeEncodeError:  # half a character, which no stored text holds: it is to match nothing
        return str(_standard_json().dumps(list(values)))


def list_of(stored: str) -> tuple[Any, ...]:
    """Return a list from its column."""
    return tuple(json.decode(stored)) if stored != "[]" else ()


def _standard_json() -> Any:
    import json  # late: 2 ms, which a search of documents without details need not pay

    return json
