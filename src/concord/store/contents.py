"""All that a store holds as one value: what a JSON file or an older store has, on its way into tables.

Words and names are indexed from texts. A chunk gets the vector that is known for its text; where none is,
because that was trimmed, it keeps the one that it had. Nothing is embedded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, starmap
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.batches import batched
from concord.core.protocols import Progress
from concord.store.changes import KEEP_CHUNK, PUT_SOURCE, PUT_SYNC_STATE, write_documents
from concord.store.contract import Store
from concord.store.embeddings import EMBEDDED, KNOWN, link, new_embeddings, pending_of, text_hash
from concord.store.indexes import TextHash
from concord.store.journal import FEEDBACK, PUT_ACCESS, PUT_FEEDBACK
from concord.store.links import fill_links
from concord.store.models import Model, find_model, forget_if_empty, new_model, use
from concord.store.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    SOURCE_COLUMNS,
    chunk_names,
    chunk_of,
    chunk_values,
    details_column,
    document_of,
    source_of,
    source_values,
)
from concord.store.sql import Dialect, Session, VectorTables, WordTables
from concord.store.words import put_names
from concord.types import (
    FLOAT_BYTES,
    Access,
    Chunk,
    ChunkId,
    Document,
    Feedback,
    Identity,
    Json,
    Link,
    Source,
    Vector,
)

VERSION = 1  # of JSON files
_AT_ONCE = 500  # chunks or vectors
_NUMBERS = ("generation", "cache_hits", "cache_misses")  # of kb_meta
_TEXTS = ("home", "key")  # of kb_vec_meta

_SOURCES = f"SELECT {SOURCE_COLUMNS}, s.sync_state FROM kb_sources AS s ORDER BY s.key"
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d ORDER BY d.key"
_CHUNKS = f"""
SELECT {CHUNK_COLUMNS} FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key
ORDER BY d.key, c.position"""
_ACCESSES = """
SELECT d.id, a.count, a.last_at FROM kb_accesses AS a JOIN kb_documents AS d ON d.key = a.document
ORDER BY d.key"""
_DESCRIBE = "UPDATE kb_models SET recipe = :recipe WHERE key = :key"
_EMBEDDED = f"""
SELECT {EMBEDDED} FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE c.id IN (:chunks...)"""
_SET = """
INSERT INTO {table} (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


class Held(Struct):
    """What is kept of one model."""

    recipe: Mapping[str, Json] = {}
    vectors: dict[ChunkId, Vector] = {}  # empty ones are kept outside


class Contents(Struct):
    """All that is kept; a JSON file has it in these names, and vectors as base64 of their float32 bytes."""

    version: int = VERSION
    generation: int = 0
    last_chunk_id: ChunkId = 0
    sources: list[Source] = []
    memos: dict[str, str] = {}  # what the last sync of a source wrote down
    documents: list[Document] = []
    chunks: list[Chunk] = []
    spaces: list[tuple[Identity, Held]] = []
    active: Identity | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    cached: list[tuple[Identity, TextHash, Vector]] = []  # the least recently used first
    home: str = ""
    key: str = ""
    unsettled: dict[int, ChunkId] = {}  # changes that a vector store outside does not know of
    accesses: dict[str, Access] = {}
    feedback: list[Feedback] = []
    last_turn: int = 0
    links: list[tuple[ChunkId, Link]] = []
    common: dict[str, int] = {}  # titles that stand in too many chunks
    unlinked: dict[str, int] = {}  # documents whose mentions are yet to be found


def contents_in(session: Session, begin: str = "kb_") -> Contents:
    """Return what tables hold whose names begin so, but for vectors, links and what waits to be told of."""

    def rows(statement: str) -> Iterable[Any]:
        return session.iterate(statement.replace("kb_", begin))

    numbers, texts = (dict(rows(f"SELECT key, value FROM {table}")) for table in ("kb_meta", "kb_vec_meta"))
    sources = [(source_of(row[:-1]), row[-1]) for row in rows(_SOURCES)]
    return Contents(
        sources=[source for source, _ in sources],
        memos={source.id: state for source, state in sources if state},
        documents=[*map(document_of, rows(_DOCUMENTS))],
        chunks=[*map(chunk_of, rows(_CHUNKS))],
        accesses={id: Access(times, at) for id, times, at in rows(_ACCESSES)},
        feedback=[*starmap(Feedback, rows(FEEDBACK))],
        **{name: numbers.get(name, 0) for name in _NUMBERS},
        **{name: texts.get(name, "") for name in _TEXTS},
    )


def fill(
    session: Session, contents: Contents, tables: VectorTables, words: WordTables, dialect: Dialect
) -> None:
    """Write all of it into the tables of a store that holds nothing."""
    documents = _fill_documents(session, contents)
    for few in batched(contents.chunks, _AT_ONCE):
        _fill_chunks(session, words, few, documents)
    fill_links(session, contents.links, contents.common, contents.unlinked)
    models = [
        _fill_model(session, tables, identity, held, is_active=identity == contents.active)
        for identity, held in contents.spaces
    ]
    _fill_cache(session, tables, contents.cached)
    for model, (_, held) in zip(models, contents.spaces, strict=True):
        for vectors in batched(held.vectors.items(), _AT_ONCE):
            _link(session, tables, model, dict(vectors))
    values = asdict(contents)
    for table, names in (("kb_meta", _NUMBERS), ("kb_vec_meta", _TEXTS)):
        rows = ({"key": name, "value": values[name]} for name in names if values[name])
        session.run_many(_SET.format(table=table), rows)
    changes = ({"turn": turn, "chunk": chunk} for turn, chunk in contents.unsettled.items())
    session.run_many("INSERT INTO kb_outbox (turn, chunk) VALUES (:turn, :chunk)", changes)
    for table, last in (("kb_chunks", contents.last_chunk_id), ("kb_outbox", contents.last_turn)):
        if last:
            session.run(dialect.number_after.format(table=table), {"last": last})
    if contents.home:
        session.run(dialect.watch)  # not before: nothing has changed


def copy_into(
    session: Session,
    origin: Store,
    tables: VectorTables,
    words: WordTables,
    dialect: Dialect,
    progress: Progress,
) -> None:
    """Write all that another store holds into the tables of one that holds nothing; read it bit by bit.

    Vectors come into the store itself, and mentions of titles are left to be found again.
    """
    snapshot, catalog, usage = origin.catalog.snapshot(), origin.catalog, origin.cache.usage()
    documents = [*catalog.documents()]
    ids = {document.id: number for number, document in enumerate(documents, 1)}
    accesses = [origin.journal.accesses(few) for few in batched(ids, _AT_ONCE)]
    known = _fill_documents(
        session,
        Contents(
            sources=[*snapshot.sources],
            memos={source.id: catalog.sync_state(source.id) for source in snapshot.sources},
            documents=documents,
            accesses={id: access for few in accesses for id, access in few.items()},
            feedback=origin.journal.feedback(),
        ),
    )
    chunk_ids = list[ChunkId]()
    for few in batched((chunk for id in ids for chunk in catalog.chunks(id)), _AT_ONCE):
        _fill_chunks(session, words, few, known)
        chunk_ids += [chunk.id for chunk in few]
        progress("copy", ids[few[-1].document_id], len(ids))
    rows = [row for id in ids for row in origin.links.outgoing(id) if row.link.kind != "mention"]
    fill_links(session, [(row.chunk_id, row.link) for row in rows], {}, dict.fromkeys(ids, 1))
    models = [
        _fill_model(session, tables, it.identity, Held(it.recipe), is_active=it.is_active)
        for it in snapshot.models
    ]
    _fill_cache(session, tables, origin.cache.entries())
    for model in models:
        index = origin.models.index(model.identity)
        for at, some in enumerate(batched(chunk_ids, _AT_ONCE)):
            _link(session, tables, model, index.fetch(some))
            progress("moving", at * _AT_ONCE + len(some), len(chunk_ids))
    values = (snapshot.generation, usage.hits, usage.misses)
    numbers = ({"key": name, "value": value} for name, value in zip(_NUMBERS, values, strict=True) if value)
    session.run_many(_SET.format(table="kb_meta"), numbers)
    if chunk_ids:
        session.run(dialect.number_after.format(table="kb_chunks"), {"last": max(chunk_ids)})


def _fill_documents(session: Session, contents: Contents) -> dict[str, tuple[int, Document]]:
    """Write sources, documents and what was read and judged; return documents and their keys by id."""
    for source in contents.sources:
        session.run(PUT_SOURCE, source_values(source))
        session.run(PUT_SYNC_STATE, {"source": source.id, "state": contents.memos.get(source.id, "")})
    sources = dict(session.rows("SELECT id, key FROM kb_sources"))
    keys = write_documents(session, contents.documents, sources)
    accesses = contents.accesses.items()
    session.run_many(PUT_ACCESS, ({"id": id, **asdict(access)} for id, access in accesses))
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


def _fill_model(
    session: Session, tables: VectorTables, identity: Identity, held: Held, *, is_active: bool
) -> Model:
    model = new_model(session, tables, identity)
    session.run(_DESCRIBE, {"recipe": details_column(held.recipe), "key": model.key})
    if is_active:
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


def _link(session: Session, tables: VectorTables, model: Model, vectors: Mapping[ChunkId, Vector]) -> None:
    """Give chunks their vectors: the known ones of their texts, else those that came with the chunks."""
    own = {chunk: vector for chunk, vector in vectors.items() if _fits(model, vector)}
    texts = map(pending_of, session.rows(_EMBEDDED, {"chunks": [*own]}))
    keys = {text.chunk_id: text_hash(text) for text in texts}
    rows = session.rows(KNOWN, {"model": model.key, "keys": [*keys.values()]})
    known = {key: id for key, id, _ in rows}
    new = {key: own[chunk] for chunk, key in keys.items() if key not in known}
    made = new_embeddings(session, tables, model, [(key, vector, 0) for key, vector in new.items()])
    known |= zip(new, made, strict=True)
    outside = {chunk: None for chunk, vector in vectors.items() if not vector}
    link(session, model, outside | {chunk: known[key] for chunk, key in keys.items()})


def _fits(model: Model, vector: Vector) -> bool:
    return len(vector) == model.identity.dimension * FLOAT_BYTES
