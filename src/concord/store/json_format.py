"""Format 1 of JSON stores: what the file holds, and how it gets into the tables and out of them.

The file has each chunk's vector in the space of its model, and once more among the cached vectors of texts;
the tables have it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import starmap
from zlib import crc32

import msgspec
from msgspec.structs import asdict, astuple

from concord.core.errors import Action, Hint, SchemaTooNew
from concord.store.contract import TextHash
from concord.store.embeddings import text_hash
from concord.store.models import Model, all_models, new_model
from concord.store.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    SOURCE_COLUMNS,
    chunk_names,
    chunk_of,
    chunk_values,
    details_column,
    details_of,
    document_of,
    document_values,
    identity_column,
    list_of,
    source_of,
    source_values,
    stored_list,
)
from concord.store.sql import Values
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.vectors import SQLiteVectorTables, table_of
from concord.store.words import put_names
from concord.text.document import embedded_tags
from concord.types import (
    Access,
    Chunk,
    ChunkId,
    Document,
    Feedback,
    Home,
    Identity,
    Json,
    Pending,
    Source,
    Vector,
)

VERSION = 1

_SOURCES = f"SELECT {SOURCE_COLUMNS} FROM kb_sources AS s ORDER BY s.key"
_MEMOS = "SELECT id, sync_state FROM kb_sources WHERE sync_state <> '' ORDER BY key"
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d ORDER BY d.key"
_CHUNKS = f"""
SELECT {CHUNK_COLUMNS} FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key
ORDER BY d.key, c.position"""
_SPACES = "SELECT key, recipe, was_active FROM kb_models WHERE is_added = 1 ORDER BY key"
_LINKS = "SELECT chunk, embedding FROM kb_chunk_vectors WHERE model = :model ORDER BY chunk"
_EMBEDDINGS = "SELECT model, text_hash, id FROM kb_embeddings ORDER BY used, id"
_ACCESSES = """
SELECT d.id, a.count, a.last_at FROM kb_accesses AS a JOIN kb_documents AS d ON d.key = a.document
ORDER BY d.key"""
_FEEDBACK = "SELECT document_id, citation, opinion, query, at FROM kb_feedback ORDER BY rowid"
_OUTBOX = "SELECT turn, chunk FROM kb_outbox ORDER BY turn"
_PUT_MODEL = "UPDATE kb_models SET recipe = :recipe, was_active = :was_active WHERE key = :key"
_KEY_OF_MODEL = "SELECT key FROM kb_models WHERE identity = :identity"

# What the file calls as the tables do: rows of kb_meta and of kb_vec_meta.
_NUMBERS = ("generation", "cache_hits", "cache_misses")
_TEXTS = ("home", "key", "birthplace")

_Stored = tuple[Identity, TextHash]


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


def fill(connection: Connection, saved: Saved) -> None:
    """Write what a file holds into the tables of an empty store.

    Raises:
        apsw.Error: the tables refuse it.
    """
    _fill_catalog(connection, saved)
    _fill_chunks(connection, saved)
    models = _fill_models(connection, saved)
    _fill_vectors(connection, saved, models)
    _fill_meta(connection, saved)
    _fill_journal(connection, saved)
    if saved.home:
        connection.run(DIALECT.watch)  # not before: nothing has changed


def _fill_catalog(connection: Connection, saved: Saved) -> None:
    sources = {source.id: key for key, source in enumerate(saved.sources, 1)}
    for source in saved.sources:
        values = {"key": sources[source.id], "sync_state": saved.memos.get(source.id, "")}
        _insert(connection, "kb_sources", [values | source_values(source)])
    documents, tags = [], []
    for key, document in enumerate(saved.documents, 1):
        row = {"key": key, **document_values(document)}
        row["source"] = sources[row.pop("source_id")]
        documents.append(row)
        labels = enumerate(dict.fromkeys(document.tags))
        tags += [{"document": key, "tag": tag, "position": at} for at, tag in labels]
    _insert(connection, "kb_documents", documents)
    _insert(connection, "kb_document_tags", tags)


def _fill_chunks(connection: Connection, saved: Saved) -> None:
    documents = {document.id: (key, document) for key, document in enumerate(saved.documents, 1)}
    rows: list[Values] = []
    names: dict[ChunkId, list[str]] = {}
    for chunk in saved.chunks:
        key, document = documents[chunk.document_id]
        rows.append({"id": chunk.id, "document": key, **chunk_values(document, chunk.index, chunk)})
        names[chunk.id] = chunk_names(document, chunk.heading, chunk.text)
    _insert(connection, "kb_chunks", rows)
    put_names(connection, names)


def _fill_models(connection: Connection, saved: Saved) -> dict[Identity, Model]:
    """Add the models, also those of which only cached vectors are left."""
    added, tables = dict(saved.spaces), SQLiteVectorTables()
    models: dict[Identity, Model] = {}
    for identity in (*added, *(identity for identity, _, _ in saved.cached)):
        if identity not in models:
            models[identity] = new_model(connection, tables, identity, is_added=identity in added)
    for identity, held in added.items():
        recipe = details_column(held.recipe)
        values = {"key": models[identity].key, "recipe": recipe, "was_active": int(held.was_active)}
        connection.run(_PUT_MODEL, values)
    return models


def _fill_vectors(connection: Connection, saved: Saved, models: Mapping[Identity, Model]) -> None:
    vectors = {(identity, key): vector for identity, key, vector in saved.cached}
    links = _linked(saved, vectors)
    ids = {stored: id for id, stored in enumerate(vectors, 1)}
    rows = [
        {"id": id, "model": models[identity].key, "text_hash": key, "crc": crc32(vectors[identity, key])}
        for (identity, key), id in ids.items()
    ]
    _insert(connection, "kb_embeddings", rows)
    for identity, model in models.items():
        of_model = {id: vectors[stored] for stored, id in ids.items() if stored[0] == identity}
        SQLiteVectorTables().write(connection, model, of_model)
    _insert(
        connection,
        "kb_chunk_vectors",
        [
            {"chunk": chunk, "model": models[identity].key, "embedding": key and ids[identity, key]}
            for identity, chunk, key in links
        ],
    )


def _linked(saved: Saved, vectors: dict[_Stored, Vector]) -> list[tuple[Identity, ChunkId, TextHash | None]]:
    """Return the keys of chunks' vectors, None of those outside; vectors that are not cached are added."""
    keys = {(identity, vector): key for (identity, key), vector in vectors.items()}
    chunks = {chunk.id: chunk for chunk in saved.chunks}
    documents = {document.id: document for document in saved.documents}
    links: list[tuple[Identity, ChunkId, TextHash | None]] = []
    for identity, held in saved.spaces:
        for chunk_id, vector in held.vectors.items():
            if vector and (identity, vector) not in keys:
                chunk = chunks[chunk_id]
                document = documents[chunk.document_id]
                tags = tuple(embedded_tags(document))
                key = text_hash(Pending(chunk.id, document.title, chunk.heading, chunk.text, tags))
                if (identity, key) in vectors:  # another vector than its text has
                    key = sha256(key + chunk_id.to_bytes(8, "little")).digest()
                keys[identity, vector], vectors[identity, key] = key, vector
            links.append((identity, chunk_id, keys[identity, vector] if vector else None))
    return links


def _fill_meta(connection: Connection, saved: Saved) -> None:
    numbers = {name: getattr(saved, name) for name in _NUMBERS}
    if saved.active:
        identity = identity_column(saved.active)
        numbers["active_model"] = connection.value(_KEY_OF_MODEL, {"identity": identity})
    texts = {name: getattr(saved, name) for name in _TEXTS} | {
        "left": saved.left and stored_list([astuple(home) for home in saved.left])
    }
    for table, values in (("kb_meta", numbers), ("kb_vec_meta", texts)):
        rows = ({"key": key, "value": value} for key, value in values.items() if value)
        connection.run_many(f"INSERT OR REPLACE INTO {table} VALUES (:key, :value)", rows)
    _insert(
        connection, "kb_outbox", [{"turn": turn, "chunk": chunk} for turn, chunk in saved.unsettled.items()]
    )
    for table, last in (("kb_chunks", saved.last_chunk_id), ("kb_outbox", saved.last_turn)):
        connection.run("DELETE FROM sqlite_sequence WHERE name = :table", {"table": table})
        _insert(connection, "sqlite_sequence", [{"name": table, "seq": last}])


def _fill_journal(connection: Connection, saved: Saved) -> None:
    keys = {document.id: key for key, document in enumerate(saved.documents, 1)}
    accesses = [
        {"document": keys[id], "count": access.times, "last_at": float(access.last_at)}
        for id, access in saved.accesses.items()
        if id in keys
    ]
    _insert(connection, "kb_accesses", accesses)
    _insert(connection, "kb_feedback", [asdict(feedback) for feedback in saved.feedback])


def _insert(connection: Connection, table: str, rows: Sequence[Values]) -> None:
    if rows:
        names = ", ".join(rows[0])
        values = ", ".join(f":{name}" for name in rows[0])
        connection.run_many(f"INSERT INTO {table} ({names}) VALUES ({values})", rows)


def saved_in(connection: Connection) -> Saved:
    """Return what the tables hold."""
    numbers = dict(connection.rows("SELECT key, value FROM kb_meta"))
    texts = dict(connection.rows("SELECT key, value FROM kb_vec_meta"))
    last = dict(connection.rows("SELECT name, seq FROM sqlite_sequence"))
    identities = {model.key: model.identity for model in all_models(connection)}
    vectors = _vectors(connection, identities)
    return Saved(
        last_chunk_id=last.get("kb_chunks", 0),
        sources=[source_of(row) for row in connection.rows(_SOURCES)],
        memos=dict(connection.rows(_MEMOS)),
        documents=[document_of(row) for row in connection.rows(_DOCUMENTS)],
        chunks=[chunk_of(row) for row in connection.rows(_CHUNKS)],
        spaces=[
            (
                identities[key],
                Held(details_of(recipe), bool(was_active), _linked_to(connection, key, vectors)),
            )
            for key, recipe, was_active in connection.rows(_SPACES)
        ],
        active=identities.get(numbers.get("active_model", 0)),
        cached=[
            (identities[model], key, vectors[id])
            for model, key, id in connection.rows(_EMBEDDINGS)
            if id in vectors
        ],
        left=[Home(*home) for home in list_of(texts.get("left", "[]"))],
        unsettled=dict(connection.rows(_OUTBOX)),
        accesses={id: Access(times, at) for id, times, at in connection.rows(_ACCESSES)},
        feedback=list(starmap(Feedback, connection.rows(_FEEDBACK))),
        last_turn=last.get("kb_outbox", 0),
        **{name: numbers[name] for name in _NUMBERS},
        **{name: texts.get(name, "") for name in _TEXTS},
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
