"""The nouns as columns of a table, the same in every SQL engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from concord.types import Document, Source


def source_values(source: Source) -> dict[str, Any]:
    """Return the columns of a source."""
    return {
        "id": source.id,
        "name": source.name,
        "path": source.path,
        "kind": source.kind,
        "prefix": source.prefix,
        "patterns": json.dumps(source.patterns),
        "tags": json.dumps(source.tags),
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
        "details": json.dumps(dict(document.details), default=str),  # front matter may hold dates
        "file_hash": document.file_hash,
        "content_hash": document.content_hash,
        "size": document.size,
        "mtime_ns": document.mtime_ns,
        "superseded_by": document.superseded_by,
        "indexed_at": float(document.indexed_at),
        "fields": json.dumps(dict(document.fields)) if document.fields else "{}",
    }


def heading_of(stored: str) -> tuple[str, ...]:
    """Return a heading path from its column."""
    return tuple(json.loads(stored)) if stored != "[]" else ()


def heading_column(heading: Sequence[str]) -> str:
    """Return a heading path as its column keeps it."""
    return json.dumps(heading) if heading else "[]"
