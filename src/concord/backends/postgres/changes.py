"""What a change to the catalog does, statement by statement, inside a transaction that the caller holds.

Ids and paths are in the form that is stored (see `rows.py`), here and in what is handed in.

Whoever changes an organisation's catalog locks its row in `kb_orgs` first: writers of one organisation take
turns, a group of documents at a time, so counters stay true and nobody meets in a deadlock. Readers never
wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from psycopg.errors import ProgramLimitExceeded, UniqueViolation

from concord.backends.postgres.chunk_changes import Group, ask_labels, labels_in, labels_of, put_chunks
from concord.backends.postgres.connections import Connection, Rows
from concord.backends.postgres.indexing import (
    delete_chunks,
    forget_words,
    index_words,
    indexed_otherwise,
    reindex_chunks,
)
from concord.backends.postgres.names import put_names
from concord.backends.postgres.rows import document_values, loaded, source_values, stored
from concord.core.errors import BadValue, NotFound
from concord.store.columns import Columns, columns_of
from concord.store.sql_values import list_of
from concord.store.store_errors import name_taken, no_document, no_source, path_taken
from concord.store.supersession import rerouted
from concord.text.names import names_of
from concord.types import ChunkId, Document, Piece, Source

_LOCK_ORG = "SELECT last_chunk FROM kb_orgs WHERE key = %s FOR UPDATE"
_COUNT_CHANGE = "UPDATE kb_orgs SET generation = generation + %s WHERE key = %s"
_CHANGE_ORG = f"{_COUNT_CHANGE} RETURNING last_chunk"  # which locks it as well
_FIND_TYPES = """
UPDATE kb_orgs SET types = ARRAY(SELECT DISTINCT d.type FROM kb_documents AS d WHERE d.org = kb_orgs.key)
WHERE key = %s"""
_FIND_UNKNOWN_TYPES = f"{_FIND_TYPES} AND types IS NULL"

_SOURCE_FIELDS = ("name", "path", "kind", "prefix", "patterns", "tags", "trust", "created_at", "synced_at")
_DOCUMENT_FIELDS = (
    "source",
    "path",
    "type",
    "title",
    "tags",
    "details",
    "file_hash",
    "content_hash",
    "size",
    "mtime_ns",
    "superseded_by",
    "indexed_at",
    "fields",
)


def _upsert(table: str, fields: Sequence[str]) -> str:
    names, values = ", ".join(fields), ", ".join(f"%({field})s" for field in fields)
    changes = ", ".join(f"{field} = excluded.{field}" for field in fields)
    return (
        f"INSERT INTO {table} (org, id, {names}) VALUES (%(org)s, %(id)s, {values}) "
        f"ON CONFLICT (org, id) DO UPDATE SET {changes}"
    )


_PUT_SOURCE = _upsert("kb_sources", _SOURCE_FIELDS)
_PUT_DOCUMENT = _upsert("kb_documents", _DOCUMENT_FIELDS)
_PUT_MEMO = "UPDATE kb_sources SET memo = %s WHERE org = %s AND id = %s"
_KNOWN_SOURCES = "SELECT id FROM kb_sources WHERE org = %s AND id = ANY(%s)"
_NAMED_AFTER = "SELECT id, type, path, title FROM kb_documents WHERE org = %s AND id = ANY(%s)"
_INDEXED = """
SELECT c.id, d.type, d.path, d.title, d.tags, c.heading, c.content
FROM kb_documents AS d JOIN kb_chunks AS c ON c.org = d.org AND c.document = d.id
WHERE c.org = %s AND c.id = ANY(%s)"""
_SUPERSEDED = "SELECT id, superseded_by FROM kb_documents WHERE org = %s AND superseded_by IS NOT NULL"
_SUPERSEDE = "UPDATE kb_documents SET superseded_by = %s WHERE org = %s AND id = %s"
_EXISTING = "SELECT id FROM kb_documents WHERE org = %s AND id = ANY(%s)"
_CHUNKS_OF = "SELECT id FROM kb_chunks WHERE org = %s AND document = ANY(%s)"
_OF_SOURCE = "SELECT id FROM kb_documents WHERE org = %s AND source = %s"
_AT_ONCE = 1024  # chunks whose texts and words are in memory while they are indexed anew


def lock_org(connection: Connection, org: int) -> ChunkId:
    """Wait for one's turn to change an organisation; return the last chunk id that was given out."""
    return _last_chunk(connection.execute(_LOCK_ORG, (org,)))


def _last_chunk(turn: Rows) -> ChunkId:
    row = turn.fetchone()
    if row is None:
        raise NotFound("the organisation has been removed from the store", hint="open the store again")
    return int(row[0])


def put_source(connection: Connection, org: int, source: Source) -> None:
    """Insert or replace a source."""
    lock_org(connection, org)
    try:
        connection.execute(_PUT_SOURCE, {"org": org, **source_values(source)})
    except UniqueViolation as fault:
        raise name_taken(source) from fault
    _count_changes(connection, org, 1)


def remove_source(connection: Connection, org: int, source_id: str) -> int:
    """Delete a source and all that came from it; return how many documents."""
    lock_org(connection, org)
    documents = [name for (name,) in connection.execute(_OF_SOURCE, (org, source_id)).fetchall()]
    _delete_documents(connection, org, documents)
    find_types(connection, org)
    gone = connection.execute("DELETE FROM kb_sources WHERE org = %s AND id = %s", (org, source_id))
    if gone.rowcount:
        _count_changes(connection, org, 1)
    return len(documents)


def put_memo(connection: Connection, org: int, source_id: str, memo: str) -> None:
    """Keep a memo about a source that exists."""
    connection.execute(_PUT_MEMO, (memo, org, source_id))


def put_documents(
    connection: Connection, org: int, given: Iterable[tuple[Document, Sequence[Piece]]]
) -> list[list[ChunkId]]:
    """Store documents and their chunks, keeping those that did not change; return the ids of each one's."""
    batch = list(given)
    ids: list[list[ChunkId]] = []
    for group in _without_repeats(batch):
        ids += _put_group(connection, org, group)
    return ids


def update_documents(connection: Connection, org: int, documents: Sequence[Document]) -> None:
    """Store documents' own fields, and in the index what their chunks are found by."""
    lock_org(connection, org)
    earlier = labels_in(ask_labels(connection, org, [document.id for document in documents]))
    for document in documents:
        if document.id not in earlier:
            raise no_document(document.id)
    renamed = _renamed(connection, org, documents)
    _write_documents(connection, org, documents, _ask_sources(connection, org, documents))
    for part in _parts(_chunks_of(connection, org, renamed)):
        put_names(connection, org, _names(connection, org, part))
    relabelled = [one.id for one in documents if earlier[one.id] != labels_of(one)]
    chunk_ids = _chunks_of(connection, org, relabelled)
    forget_words(connection, org, chunk_ids)
    for part in _parts(chunk_ids):
        index_words(connection, org, _columns(connection, org, part))
    _count_changes(connection, org, len(documents))


def reindex(connection: Connection, org: int, document_ids: Sequence[str]) -> int:
    """Index chunks as they are extracted now; return how many were indexed otherwise."""
    lock_org(connection, org)
    chunk_ids = _chunks_of(connection, org, list(document_ids))
    changed = indexed_otherwise(connection, org, _columns(connection, org, chunk_ids))
    reindex_chunks(connection, org, changed)
    called = put_names(connection, org, _names(connection, org, chunk_ids))
    if changed or called:
        _count_changes(connection, org, 1)
    return len(called | changed.keys())


def _chunks_of(connection: Connection, org: int, document_ids: list[str]) -> list[ChunkId]:
    return [chunk_id for (chunk_id,) in connection.execute(_CHUNKS_OF, (org, document_ids)).fetchall()]


def _parts(chunk_ids: list[ChunkId]) -> Iterator[list[ChunkId]]:
    """Yield chunks in parts, each small enough to be in memory with all that is indexed of it."""
    yield from (chunk_ids[start : start + _AT_ONCE] for start in range(0, len(chunk_ids), _AT_ONCE))


def _columns(connection: Connection, org: int, chunk_ids: list[ChunkId]) -> dict[ChunkId, Columns]:
    """Return what is to be indexed of chunks."""
    rows = connection.execute(_INDEXED, (org, chunk_ids)).fetchall()
    return {
        chunk_id: columns_of(loaded(title), [loaded(tag) for tag in tags], list_of(heading), loaded(text))
        for chunk_id, _, _, title, tags, heading, text in rows
    }


def _renamed(connection: Connection, org: int, documents: Sequence[Document]) -> list[str]:
    """Return the documents of which something changes that their chunks are called after."""
    rows = connection.execute(_NAMED_AFTER, (org, [document.id for document in documents])).fetchall()
    before = {document_id: named_after for document_id, *named_after in rows}
    return [one.id for one in documents if before[one.id] != [one.type, one.path, stored(one.title)]]


def _names(connection: Connection, org: int, chunk_ids: list[ChunkId]) -> dict[ChunkId, list[str]]:
    """Return what chunks are to be called."""
    rows = connection.execute(_INDEXED, (org, chunk_ids)).fetchall()
    return {
        chunk_id: names_of(type, path, loaded(title), list_of(heading), loaded(text))
        for chunk_id, type, path, title, _, heading, text in rows
    }


def delete_documents(connection: Connection, org: int, document_ids: Sequence[str]) -> int:
    """Delete documents and all that belongs to them; return how many there were."""
    lock_org(connection, org)
    deleted = _delete_documents(connection, org, list(document_ids))
    if deleted:
        _count_changes(connection, org, 1)
    return deleted


def _put_group(connection: Connection, org: int, group: Group) -> list[list[ChunkId]]:
    """Store documents of which none comes twice."""
    documents = [document for document, _ in group]
    with connection.pipeline():  # one trip
        turn = connection.execute(_CHANGE_ORG, (len(documents), org))
        labels = ask_labels(connection, org, [document.id for document in documents])
        sources = _ask_sources(connection, org, documents)
    last, earlier = _last_chunk(turn), labels_in(labels)
    _write_documents(connection, org, documents, sources)
    return put_chunks(connection, org, group, earlier, last)


def _without_repeats(batch: Group) -> Iterable[Group]:
    """Yield groups in which no document comes twice: a later version replaces an earlier one."""
    group: dict[str, tuple[Document, Sequence[Piece]]] = {}
    for document, pieces in batch:
        if document.id in group:
            yield list(group.values())
            group = {}
        group[document.id] = document, pieces
    if group:
        yield list(group.values())


def _ask_sources(connection: Connection, org: int, documents: Sequence[Document]) -> Rows:
    """Ask which of the sources of documents there are."""
    return connection.execute(_KNOWN_SOURCES, (org, list({document.source_id for document in documents})))


def _write_documents(connection: Connection, org: int, documents: Sequence[Document], sources: Rows) -> None:
    known = {name for (name,) in sources.fetchall()}
    if missing := sorted({document.source_id for document in documents} - known):
        raise no_source(missing[0])
    rows = [{"org": org, **document_values(document)} for document in documents]
    try:
        with connection.cursor() as cursor:
            cursor.executemany(_PUT_DOCUMENT, rows)
    except UniqueViolation as fault:
        raise path_taken(*(row["path"] for row in rows)) from fault
    except ProgramLimitExceeded as fault:  # of a row of an index: a third of a page
        raise _too_long(max((document.path for document in documents), key=len)) from fault


def _too_long(path: str) -> BadValue:
    return BadValue(
        f"PostgreSQL cannot keep a path of {len(path.encode(errors='replace'))} bytes: {path[:80]}…",
        hint="2,600 bytes fit: move the file up some folders, or name it in .kbignore",
    )


def _delete_documents(connection: Connection, org: int, asked: list[str]) -> int:
    """Delete those of the documents that exist: chunks with their words and vectors, then the documents."""
    document_ids = [name for (name,) in connection.execute(_EXISTING, (org, asked)).fetchall()]
    _release_superseded(connection, org, document_ids)
    delete_chunks(connection, org, _chunks_of(connection, org, document_ids))
    connection.execute("DELETE FROM kb_accesses WHERE org = %s AND document = ANY(%s)", (org, document_ids))
    connection.execute("DELETE FROM kb_documents WHERE org = %s AND id = ANY(%s)", (org, document_ids))
    return len(document_ids)


def _release_superseded(connection: Connection, org: int, doomed: list[str]) -> None:
    """Bring back what only the doomed documents supersede."""
    superseded: dict[str, str] = dict(connection.execute(_SUPERSEDED, (org,)).fetchall())
    moved = rerouted(superseded, set(doomed))
    if moved:
        with connection.cursor() as cursor:
            cursor.executemany(_SUPERSEDE, [(new, org, old) for old, new in moved.items()])


def find_types(connection: Connection, org: int) -> None:
    """Find out of which types documents are."""
    connection.execute(_FIND_TYPES, (org,))


def find_unknown_types(connection: Connection, org: int) -> None:
    """Find out of which types documents are, where an older version has not kept them."""
    connection.execute(_FIND_UNKNOWN_TYPES, (org,))


def _count_changes(connection: Connection, org: int, changes: int) -> None:
    connection.execute(_COUNT_CHANGE, (changes, org))
