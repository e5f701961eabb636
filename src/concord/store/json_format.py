"""Format 1 of JSON stores: what the file holds, and how it gets into the tables and out of them.

The file has each chunk's vector in the space of its model, and once more among the cached vectors of texts;
the tables have it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import astuple

from concord.core.errors import Action, Hint, SchemaTooNew
from concord.store.contents import NUMBERS, TEXTS, Contents, ModelContents, contents_in
from concord.store.contract import TextHash
from concord.store.links import KeptLinks, links_kept
from concord.store.models import active_model, all_models
from concord.store.rows import details_column, details_of, list_of, stored_list
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.vectors import table_of
from concord.types import (
    Access,
    Chunk,
    ChunkId,
    Document,
    Feedback,
    Home,
    Identity,
    Json,
    Link,
    Source,
    Vector,
)

VERSION = 1

_SPACES = "SELECT key, recipe, was_active FROM kb_models WHERE is_added = 1 ORDER BY key"
_LINKS = "SELECT chunk, embedding FROM kb_chunk_vectors WHERE model = :model ORDER BY chunk"
_EMBEDDINGS = "SELECT model, text_hash, id FROM kb_embeddings ORDER BY used, id"
_OUTBOX = "SELECT turn, chunk FROM kb_outbox ORDER BY turn"


class Held(msgspec.Struct):
    """What is kept of one model."""

    recipe: Mapping[str, Json] = {}
    was_active: bool = False
    vectors: dict[ChunkId, Vector] = {}  # empty ones are kept outside


class Saved(msgspec.Struct):
    """The file. Vectors are base64 of their float32 bytes."""

    version: int = VERSION
    generation: int = 0
    last_chunk_id: ChunkId = 0
    sources: list[Source] = []
    memos: dict[str, str] = {}
    documents: list[Document] = []
    chunks: list[Chunk] = []
    spaces: list[tuple[Identity, Held]] = []
    active: Identity | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    cached: list[tuple[Identity, TextHash, Vector]] = []  # the least recently used first
    home: str = ""
    key: str = ""
    birthplace: str = ""
    left: list[Home] = []
    unsettled: dict[int, ChunkId] = {}
    accesses: dict[str, Access] = {}
    feedback: list[Feedback] = []
    last_turn: int = 0
    links: list[tuple[ChunkId, Link]] = []
    common: dict[str, int] = {}  # titles that stand in too many chunks
    unlinked: dict[str, int] = {}  # documents whose mentions are yet to be found


def decoded(data: bytes, path: str) -> Saved:
    """Return what a file holds.

    Raises:
        SchemaTooNew: a newer program wrote it.
        ValueError: it is damaged, or no file of ours.
    """
    version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version")
    if version is not None and int(bytes(version)) > VERSION:
        raise SchemaTooNew(
            f"{path} was written by a newer program", hint=Hint(Action.UPGRADE, package="concord-kb")
        )
    saved = msgspec.json.decode(data, type=Saved)
    if loose_end := next(_loose_ends(saved), None):
        raise ValueError(loose_end)
    return saved


def _loose_ends(saved: Saved) -> Iterator[str]:
    """Yield what refers to something that is not in the file, as after an edit by hand."""
    sources = {source.id for source in saved.sources}
    documents = {document.id for document in saved.documents}
    chunks, spaces = {chunk.id for chunk in saved.chunks}, dict(saved.spaces)
    for document in saved.documents:
        if document.source_id not in sources:
            yield f"the document {document.path!r} belongs to no source"
    for chunk in saved.chunks:
        if chunk.document_id not in documents:
            yield f"chunk {chunk.id} belongs to no document"
    if any(held.vectors.keys() - chunks for held in spaces.values()):
        yield "a vector belongs to no chunk"
    if saved.active is not None and saved.active not in spaces:
        yield f"there are no vectors of {saved.active.name}"


def contents_of(saved: Saved) -> Contents:
    """Return what a file holds as it gets into tables."""
    return Contents(
        sources=[(source, saved.memos.get(source.id, "")) for source in saved.sources],
        documents=saved.documents,
        chunks=saved.chunks,
        models=[
            ModelContents(
                identity,
                details_column(held.recipe),
                identity == saved.active,
                held.was_active,
                [(chunk, vector or None) for chunk, vector in held.vectors.items()],
            )
            for identity, held in saved.spaces
        ],
        cached=saved.cached,
        accesses=saved.accesses.items(),
        feedback=saved.feedback,
        changes=saved.unsettled.items(),
        numbers={name: getattr(saved, name) for name in NUMBERS},
        texts={name: getattr(saved, name) for name in TEXTS}
        | {"left": stored_list([astuple(home) for home in saved.left])},
        last={"kb_chunks": saved.last_chunk_id, "kb_outbox": saved.last_turn},
        links=KeptLinks(saved.links, saved.common, saved.unlinked),
    )


def saved_in(connection: Connection) -> Saved:
    """Return what the tables hold."""
    contents = contents_in(connection)
    last = dict(connection.rows("SELECT name, seq FROM sqlite_sequence"))
    models = {model.key: model.identity for model in all_models(connection)}
    active = active_model(connection)
    vectors = _vectors(connection, models)
    named: dict[str, Any] = {**contents.numbers, **contents.texts}
    kept = links_kept(connection)
    return Saved(
        last_chunk_id=last.get("kb_chunks", 0),
        sources=[source for source, _ in contents.sources],
        memos={source.id: state for source, state in contents.sources if state},
        documents=[*contents.documents],
        chunks=[*contents.chunks],
        spaces=[
            (models[key], Held(details_of(recipe), bool(was_active), _linked_to(connection, key, vectors)))
            for key, recipe, was_active in connection.rows(_SPACES)
        ],
        active=active.identity if active else None,
        cached=[
            (models[model], key, vectors[id])
            for model, key, id in connection.rows(_EMBEDDINGS)
            if id in vectors
        ],
        left=[Home(*home) for home in list_of(named.pop("left") or "[]")],
        unsettled=dict(connection.rows(_OUTBOX)),
        accesses=dict(contents.accesses),
        feedback=[*contents.feedback],
        last_turn=last.get("kb_outbox", 0),
        links=[*kept.links],
        common=dict(kept.common),
        unlinked=dict(kept.waiting),
        **named,
    )


def _vectors(connection: Connection, models: Iterable[int]) -> dict[int, Vector]:
    """Return all vectors by their ids."""
    vectors: dict[int, Vector] = {}
    for key in models:
        connection.load_vec0()
        vectors |= dict(connection.rows(f"SELECT rowid, embedding FROM {table_of(key)}"))
    return vectors


def _linked_to(connection: Connection, model: int, vectors: Mapping[int, Vector]) -> dict[ChunkId, Vector]:
    rows = connection.rows(_LINKS, {"model": model})
    return {chunk: b"" if id is None else vectors[id] for chunk, id in rows}
