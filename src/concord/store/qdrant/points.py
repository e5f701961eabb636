"""A chunk as Qdrant sees it: the id of its point, its payload, and our filter in Qdrant's grammar."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from msgspec.structs import astuple
from qdrant_client import models

from concord.store.qdrant.vectors import CHUNK_BITS
from concord.text.globs import literal_prefix
from concord.types import Chunk, ChunkId, Document, Filter, Identity

_CURRENT = "current"
_NANOSECONDS = 1e9
_ROUNDING_S = 1e-6  # a time is a 64-bit float there: what this lets through too much, the catalog takes out

# What filters ask for. With `is_tenant`, points of one organisation lie together on disk.
INDEXES: dict[str, Any] = {
    "org": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "store": models.PayloadSchemaType.KEYWORD,
    "space": models.PayloadSchemaType.KEYWORD,
    "source_id": models.PayloadSchemaType.KEYWORD,
    "document_id": models.PayloadSchemaType.KEYWORD,
    "folders": models.PayloadSchemaType.KEYWORD,
    "tags": models.PayloadSchemaType.KEYWORD,
    "type": models.PayloadSchemaType.KEYWORD,
    "state": models.PayloadSchemaType.KEYWORD,
    "modified": models.PayloadSchemaType.FLOAT,
}


class Owner:
    """Whose points they are: an organisation, a store (several may share a collection) and a model."""

    def __init__(self, org: str, store: str, identity: Identity) -> None:
        self.org = org
        self.store = store
        self.space = "/".join(map(str, astuple(identity)))
        digest = hashlib.sha256(f"{org}\0{store}\0{self.space}".encode()).digest()
        self._prefix = int.from_bytes(digest[:8], "big") << CHUNK_BITS

    def point_id(self, chunk_id: ChunkId) -> str:
        """Return the id of a chunk's point: no other store's chunk can have it."""
        return str(UUID(int=self._prefix | chunk_id))

    def payload(self, chunk: Chunk, document: Document) -> dict[str, Any]:
        """Return all that is kept beside a vector."""
        return {"content": chunk.text, **self.labels(chunk, document)}

    def labels(self, chunk: Chunk, document: Document) -> dict[str, Any]:
        """Return what may change while a chunk's text stays."""
        return {
            "chunk_id": str(chunk.id),
            "document_id": document.id,
            "source_id": document.source_id,
            "path": document.path,
            "chunk_index": chunk.index,
            "org": self.org,
            "store": self.store,
            "space": self.space,
            "tags": list(document.tags),
            "type": document.type,
            "folders": list(_folders(document.path)),
            "state": _CURRENT if document.superseded_by is None else "superseded",
            "modified": document.mtime_ns / _NANOSECONDS,
        }

    def mine(self) -> models.Filter:
        """Return what every query asks for: that the points are ours."""
        return models.Filter(must=[*self._ours()])

    @staticmethod
    def everything(org: str, store: str) -> models.Filter:
        """Return a filter for all points that a store has sent for an organisation, of any model."""
        return models.Filter(must=[_is("org", org), _is("store", store)])

    def relabelled(self, passages: Iterable[tuple[Chunk, Document]]) -> list[Any]:
        """Return operations that label points as their documents are now.

        By a filter, because naming a point that is not there yet would be an error.
        """
        return [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(
                    payload=self.labels(chunk, document),
                    filter=models.Filter(must=[models.HasIdCondition(has_id=[self.point_id(chunk.id)])]),
                )
            )
            for chunk, document in passages
        ]

    def deleted(self, chunk_ids: Iterable[ChunkId]) -> models.DeleteOperation:
        """Return the operation that deletes points, whether or not they are there."""
        points = models.PointIdsList(points=[self.point_id(chunk_id) for chunk_id in chunk_ids])
        return models.DeleteOperation(delete=points)

    def condition(self, filter: Filter, documents: list[str] | None) -> models.Filter:
        """Return a filter in Qdrant's grammar; `documents` are those at its path, where they are few."""
        must = self._ours()
        must += [_is("tags", tag) for tag in filter.tags]
        if not filter.include_superseded:
            must.append(_is("state", _CURRENT))
        if filter.type is not None:
            must.append(_is("type", filter.type))
        if filter.source_id is not None:
            must.append(_is("source_id", filter.source_id))
        if filter.since is not None or filter.until is not None:
            must.append(models.FieldCondition(key="modified", range=_range(filter)))
        return models.Filter(must=[*must, *_at_path(filter.path, documents)])

    def _ours(self) -> list[models.Condition]:
        return [_is("org", self.org), _is("store", self.store), _is("space", self.space)]


def _folders(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[: at + 1]
        at = path.find("/", at + 1)


def _at_path(glob: str | None, documents: list[str] | None) -> list[models.Condition]:
    if glob is None:
        return []
    if documents is not None:
        return [models.FieldCondition(key="document_id", match=models.MatchAny(any=documents))]
    folder = literal_prefix(glob).rpartition("/")[0]  # the catalog takes out what else lies there
    return [_is("folders", f"{folder}/")] if folder else []


def _range(filter: Filter) -> models.Range:
    return models.Range(
        gte=None if filter.since is None else filter.since - _ROUNDING_S,
        lte=None if filter.until is None else filter.until + _ROUNDING_S,
    )


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))
