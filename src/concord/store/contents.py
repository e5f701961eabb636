"""All that a file or a store of an earlier schema holds, and how it gets into tables that hold nothing.

Most of it is read one by one, so that it need not fit into memory. Words and names are indexed from texts. A
chunk gets the vector that is known for its text. Where none is, because that was trimmed or because the
title changed since, it keeps the one that it had. Nothing is embedded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, starmap
from typing import Any
from zlib import crc32

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.batches import batched
from concord.store.changes import KEEP_CHUNK, PUT_SOURCE, PUT_SYNC_STATE, write_documents
from concord.store.contract import TextHash
from concord.store.embeddings import EMBEDDED, KNOWN, LINK, new_embeddings, pending_of, text_hash
from concord.store.links import NO_LINKS, KeptLinks, fill_links
from concord.store.models import Model, find_model, forget_if_empty, new_model, use
from concord.store.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    SOURCE_COLUMNS,
    chunk_names,
    chunk_of,
    chunk_values,
    document_of,
    source_of,
    source_values,
)
from concord.store.sql import Dialect, Session, VectorTables, WordTables
from concord.store.store import FEEDBACK, PUT_ACCESS, PUT_FEEDBACK
from concord.store.words import put_names
from concord.types import FLOAT_BYTES, Access, Chunk, ChunkId, Document, Feedback, Identity, Source, Vector

_AT_ONCE = 500  # chunks or vectors

NUMBERS = ("generation", "cache_hits", "cache_misses")  # of kb_meta
TEXTS = ("home", "key", "birthplace", "left")  # of kb_vec_meta

_SOURCES = f"SELECT {SOURCE_COLUMNS}, s.sync_state FROM kb_sources AS s ORDER BY s.key"
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d ORDER BY d.key"
_CHUNKS = f"""
SELECT {CHUNK_COLUMNS} FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key
ORDER BY d.key, c.position"""
_ACCESSES = """
SELECT d.id, a.count, a.last_at FROM kb_accesses AS a JOIN kb_documents AS d ON d.key = a.document
ORDER BY d.key"""

_KEYS_OF_SOURCES = "SELECT id, key FROM kb_sources"
_DESCRIBE = "UPDATE kb_models SET recipe = :recipe, was_active = :was_active WHERE key = :key"
_EMBEDDED = f"""
SELECT {EMBEDDED} FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE c.id IN (:chunks...)"""
_ALIKE = "SELECT id FROM kb_embeddings WHERE model = :model AND crc IN (:crcs...)"
_SET = """
INSERT INTO {table} (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


class ModelContents(Struct, frozen=True):
    """A model and the vectors that chunks have of it."""

    identity: Identity
    recipe: str
    is_active: bool
    was_active: bool
    vectors: Iterable[tuple[ChunkId, Vector | None]]  # None: it is kept outside


class Contents(Struct, frozen=True):
    """All that is kept."""

    sources: Sequence[tuple[Source, str]]  # with what the last sync wrote down
    documents: Sequence[Document]
    chunks: Iterable[Chunk]
    accesses: Iterable[tuple[str, Access]]
    feedback: Iterable[Feedback]
    numbers: Mapping[str, int]
    texts: Mapping[str, str]
    changes: Iterable[tuple[int, ChunkId]] = ()  # that a vector store outside does not know of
    models: Sequence[ModelContents] = ()
    cached: Iterable[tuple[Identity, TextHash, Vector]] = ()  # the least recently used first
    last: Mapping[str, int] = {}  # number that was ever used, by table
    links: KeptLinks = NO_LINKS


def contents_in(session: Session, begin: str = "kb_") -> Contents:
    """Return what tables hold whose names begin so, but for vectors and what waits to be told of."""

    def rows(statement: str) -> Iterable[Any]:
        return session.iterate(statement.replace("kb_", begin))

    numbers, texts = (dict(rows(f"SELECT key, value FROM {table}")) for table in ("kb_meta", "kb_vec_meta"))
    return Contents(
        sources=[(source_of(row[:-1]), row[-1]) for row in rows(_SOURCES)],
        documents=[*map(document_of, rows(_DOCUMENTS))],
        chunks=map(chunk_of, rows(_CHUNKS)),
        accesses=[(id, Access(times, at)) for id, times, at in rows(_ACCESSES)],
        feedback=[*starmap(Feedback, rows(FEEDBACK))],
        numbers={name: numbers.get(name, 0) for name in NUMBERS},
        texts={name: texts.get(name, "") for name in TEXTS},
    )


def fill(
    session: Session, contents: Contents, tables: VectorTables, words: WordTables, dialect: Dialect
) -> None:
    """Write all of it into the tables of a store that holds nothing."""
    documents = _fill_documents(session, contents)
    for few in batched(contents.chunks, _AT_ONCE):
        _fill_chunks(session, words, few, documents)
    fill_links(session, contents.links)
    models = [(model, _fill_model(session, tables, model)) for model in contents.models]
    _fill_cache(session, tables, contents.cached)
    for model, made in models:
        for vectors in batched(model.vectors, _AT_ONCE):
            _link(session, tables, made, dict(vectors))
    for table, values in (("kb_meta", contents.numbers), ("kb_vec_meta", contents.texts)):
        rows = ({"key": key, "value": value} for key, value in values.items() if value)
        session.run_many(_SET.format(table=table), rows)
    changes = ({"turn": turn, "chunk": chunk} for turn, chunk in contents.changes)
    session.run_many("INSERT INTO kb_outbox (turn, chunk) VALUES (:turn, :chunk)", changes)
    for table, last in contents.last.items():
        if last:
            session.run(dialect.number_after.format(table=table), {"last": last})
    if contents.texts.get("home"):
        session.run(dialect.watch)  # not before: nothing has changed


def _fill_documents(session: Session, contents: Contents) -> dict[str, tuple[int, Document]]:
    """Write sources, documents and what was read and judged; return documents and their keys by id."""
    for source, state in contents.sources:
        session.run(PUT_SOURCE, source_values(source))
        session.run(PUT_SYNC_STATE, {"source": source.id, "state": state})
    sources = dict(session.rows(_KEYS_OF_SOURCES))
    keys = write_documents(session, contents.documents, sources)
    session.run_many(PUT_ACCESS, ({"id": id, **asdict(access)} for id, access in contents.accesses))
    session.run_many(PUT_FEEDBACK, map(asdict, contents.feedback))
    pairs = zip(keys, contents.documents, strict=True)
    return {document.id: (key, document) for key, document in pairs}


def _fill_chunks(
    session: Session,
    words: WordTables,
    chunks: Sequence[Chunk],
    documents: Mapping[str, tuple[int, Document]],
) -> None:
    rows, names = [], {}
    for chunk in chunks:
        key, document = documents[chunk.document_id]
        rows.append({"id": chunk.id, "document": key, **chunk_values(document, chunk.index, chunk)})
        names[chunk.id] = chunk_names(document, chunk.heading, chunk.text)
    session.run_many(KEEP_CHUNK, rows)
    words.index(session, list(names))
    put_names(session, names)


def _fill_model(session: Session, tables: VectorTables, contents: ModelContents) -> Model:
    model = new_model(session, tables, contents.identity)
    values = {"recipe": contents.recipe, "was_active": int(contents.was_active), "key": model.key}
    session.run(_DESCRIBE, values)
    if contents.is_active:
        use(session, model)
    return model


def _fill_cache(
    session: Session, tables: VectorTables, cached: Iterable[tuple[Identity, TextHash, Vector]]
) -> None:
    """Write vectors of texts, also of models of which only these are left."""
    for identity, rows in groupby(cached, lambda row: row[0]):
        model = find_model(session, identity) or new_model(session, tables, identity, is_added=False)
        fitting = ((key, vector, 0) for _, key, vector in rows if _fits(model, vector))
        for few in batched(fitting, _AT_ONCE):
            new_embeddings(session, tables, model, few)
        forget_if_empty(session, tables, model)


def _link(
    session: Session, tables: VectorTables, model: Model, vectors: Mapping[ChunkId, Vector | None]
) -> None:
    """Give chunks their vectors: the known ones of their texts, else those that came with the chunks."""
    links: dict[ChunkId, int | None] = {chunk: None for chunk, vector in vectors.items() if vector is None}
    own = {chunk: vector for chunk, vector in vectors.items() if vector and _fits(model, vector)}
    texts = map(pending_of, session.rows(_EMBEDDED, {"chunks": [*own]}))
    keys = {text.chunk_id: text_hash(text) for text in texts}
    rows = session.rows(KNOWN, {"model": model.key, "keys": [*keys.values()]})
    known = {key: id for key, id, _ in rows}
    alike = _alike(session, tables, model, [own[chunk] for chunk, key in keys.items() if key not in known])
    new = {key: own[chunk] for chunk, key in keys.items() if key not in known and own[chunk] not in alike}
    made = new_embeddings(session, tables, model, [(key, vector, 0) for key, vector in new.items()])
    known |= zip(new, made, strict=True)
    links |= {chunk: known.get(key) or alike[own[chunk]] for chunk, key in keys.items()}
    session.run_many(
        LINK, ({"chunk": chunk, "model": model.key, "embedding": id} for chunk, id in links.items())
    )


def _alike(
    session: Session, tables: VectorTables, model: Model, vectors: Iterable[Vector]
) -> dict[Vector, int]:
    """Return the ids of vectors, among them those of some that are stored, under whatever text."""
    values = {"model": model.key, "crcs": [*map(crc32, vectors)]}
    ids = [id for (id,) in session.rows(_ALIKE, values)] if values["crcs"] else []
    return {vector: id for id, vector in tables.read(session, model, ids).items()}


def _fits(model: Model, vector: Vector) -> bool:
    return len(vector) == model.identity.dimension * FLOAT_BYTES
