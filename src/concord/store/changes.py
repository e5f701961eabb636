"""What changes the catalog: each change is one transaction."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from concord.core.errors import Action, BadValue, Hint, NotFound
from concord.store.links import names_of_documents, put_links, relink, rename
from concord.store.rows import (
    TAGS,
    chunk_names,
    chunk_values,
    columns_of,
    document_values,
    list_column,
    list_of,
    source_values,
)
from concord.store.sql import Database, Duplicate, Session, WordTables
from concord.store.words import put_names
from concord.text.names import names_of
from concord.types import ChunkId, Document, Piece, Source

_SOURCE_FIELDS = (
    "name", "path", "kind", "prefix", "patterns", "tags", "trust", "created_at", "synced_at", "about",
)  # fmt: skip
_DOCUMENT_FIELDS = (
    "source", "path", "type", "title", "details", "file_hash", "content_hash", "size", "mtime_ns",
    "superseded_by", "indexed_at", "fields",
)  # fmt: skip
_PLACE_FIELDS = (
    "position", "start_offset", "end_offset", "start_line", "end_line", "page", "last_page", "start_column",
    "end_column",
)  # fmt: skip
_LABEL_FIELDS = ("title", "tags", "terms")
_CHUNK_FIELDS = ("document", *_PLACE_FIELDS, "heading", *_LABEL_FIELDS, "content")


def _insert(table: str, *fields: str) -> str:
    values = ", ".join(f":{field}" for field in fields)
    return f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({values})"


def _upsert(table: str, *fields: str) -> str:
    """Return the statement that stores a row under its text id."""
    changes = ", ".join(f"{field} = excluded.{field}" for field in fields)
    return f"{_insert(table, 'id', *fields)} ON CONFLICT (id) DO UPDATE SET {changes}"


def _assigned(fields: Sequence[str]) -> str:
    return ", ".join(f"{field} = :{field}" for field in fields)


PUT_SOURCE = _upsert("kb_sources", *_SOURCE_FIELDS)
PUT_SYNC_STATE = "UPDATE kb_sources SET sync_state = :state WHERE id = :source"
_PUT_DOCUMENT = f"{_upsert('kb_documents', *_DOCUMENT_FIELDS)} RETURNING key"
_INSERT_CHUNK = f"{_insert('kb_chunks', *_CHUNK_FIELDS)} RETURNING id"
KEEP_CHUNK = _insert("kb_chunks", "id", *_CHUNK_FIELDS)
_MOVE_CHUNK = f"UPDATE kb_chunks SET {_assigned((*_PLACE_FIELDS, *_LABEL_FIELDS))} WHERE id = :id"
_RELABEL_CHUNK = f"UPDATE kb_chunks SET {_assigned(_LABEL_FIELDS)} WHERE id = :id"
_KEY_OF_SOURCE = "SELECT key FROM kb_sources WHERE id = :source_id"
_KEYS_OF_SOURCES = "SELECT id, key FROM kb_sources WHERE id IN (:sources...)"
_STORED = f"SELECT d.id, d.type, d.path, d.title, {TAGS} FROM kb_documents AS d WHERE d.id IN (:ids...)"
_CHUNK_TEXTS = "SELECT id, heading, content FROM kb_chunks WHERE document = :key ORDER BY position"
_INDEXED = f"""
SELECT c.id, d.type, d.path, d.title, {TAGS}, c.heading, c.content, c.title, c.tags, c.terms
FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key WHERE d.id IN (:ids...)"""
_UNLINK = """
DELETE FROM kb_chunk_vectors
WHERE chunk IN (SELECT id FROM kb_chunks WHERE document = :key) AND embedding IS NOT NULL"""
_SUPERSEDED = "SELECT id, superseded_by FROM kb_documents WHERE superseded_by IS NOT NULL"
_SUPERSEDE = "UPDATE kb_documents SET superseded_by = :new WHERE id = :old"
_DELETE_TAGS = """
DELETE FROM kb_document_tags WHERE document = (SELECT key FROM kb_documents WHERE id = :id)"""
_PUT_TAG = "INSERT INTO kb_document_tags (document, tag, position) VALUES (:document, :tag, :position)"
COUNT_CHANGE = "UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'"
_GONE = "it may have been removed meanwhile"

_Given = Sequence[tuple[Document, Sequence[Piece]]]


class _Labels(NamedTuple):
    """What of a document its chunks are indexed and embedded with."""

    type: str
    path: str
    title: str
    tags: tuple[str, ...]

    @property
    def embedded(self) -> tuple[str, tuple[str, ...]]:
        """The title, and the tags of a note."""
        return self.title, self.tags if self.type == "note" else ()


def _labels_of(document: Document) -> _Labels:
    return _Labels(document.type, document.path, document.title, tuple(dict.fromkeys(document.tags)))


class Changes:
    """The half of a catalog that changes it."""

    def __init__(self, database: Database, words: WordTables) -> None:
        self._database = database
        self._words = words

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""
        with self._database.transaction() as session:
            try:
                session.run(PUT_SOURCE, source_values(source))
            except Duplicate as fault:
                raise BadValue(
                    f"another source is called {source.name!r} or has the prefix {source.prefix!r}",
                    hint=Hint(Action.NAME, "give {name}"),
                ) from fault
            session.run(COUNT_CHANGE)

    def remove_source(self, source_id: str) -> int:
        """Delete a source's words, chunks and documents, then itself; return the number of documents."""
        with self._database.transaction() as session:
            key = session.value(_KEY_OF_SOURCE, {"source_id": source_id})
            if key is None:
                return 0
            deleted = self._delete(session, "source = :source", {"source": key})
            session.run("DELETE FROM kb_sources WHERE key = :key", {"key": key})
            session.run(COUNT_CHANGE)
            return deleted

    def put_sync_state(self, source_id: str, state: str) -> None:
        """Write down what the next sync is to know; the generation does not grow."""
        with self._database.transaction() as session:
            session.run(PUT_SYNC_STATE, {"source": source_id, "state": state})

    def put_documents(self, batch: Iterable[tuple[Document, Sequence[Piece]]]) -> list[list[ChunkId]]:
        """Store documents with their chunks, in place of earlier versions; return the ids of the chunks.

        A chunk whose embeddable text is as before keeps its id and its vectors.
        """
        with self._database.transaction() as session:
            given = list(batch)
            ids = self._put(
                session, list({document.id: (document, pieces) for document, pieces in given}.values())
            )
            if ids:
                session.run(COUNT_CHANGE)
            return [ids[document.id] for document, _ in given]

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store documents' own fields. Chunks stay; where what is embedded with them changed, they wait.

        Raises:
            NotFound: one of them is not there.
        """
        with self._database.transaction() as session:
            for document in documents:
                self._update(session, document)

    def reindex_words(self, document_ids: Sequence[str]) -> int:
        """Index chunks by words and names anew; return how many were indexed otherwise."""
        with self._database.transaction() as session:
            changed = self._reindex(session, document_ids)
            if changed:
                session.run(COUNT_CHANGE)
            return changed

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks; return how many there were. Vectors stay as cache.

        What a deleted document had superseded comes back, or is superseded by whatever superseded that one.
        """
        with self._database.transaction() as session:
            deleted = self._delete(session, "id IN (:ids...)", {"ids": list(document_ids)})
            if deleted:
                session.run(COUNT_CHANGE)
            return deleted

    def _put(self, session: Session, given: _Given) -> dict[str, list[ChunkId]]:
        """Store documents with their chunks; return the ids of these by document.

        New documents are written together, after the others: one of these may have left a path to them.
        """
        sources, stored = _stored(session, [document for document, _ in given])
        keys: dict[str, int] = {}
        ids: dict[str, list[ChunkId]] = {}
        for document, pieces in given:
            if before := stored.get(document.id):
                keys[document.id] = key = _rewrite_document(session, document, sources)
                is_embedded_alike = before.embedded == _labels_of(document).embedded
                ids[document.id] = self._replace(session, key, document, pieces, keep=is_embedded_alike)
        new = [pair for pair in given if pair[0].id not in stored]
        written = write_documents(session, [document for document, _ in new], sources)
        keys |= {document.id: key for (document, _), key in zip(new, written, strict=True)}
        rows = [row for document, pieces in new for row in _rows(document, keys[document.id], pieces)]
        made = session.insert_many(_INSERT_CHUNK, rows)
        left = iter(made)
        ids |= {document.id: [*islice(left, len(pieces))] for document, pieces in new}
        self._words.index(session, made)
        names: dict[ChunkId, list[str]] = {}
        links = []
        for document, pieces in given:
            placed = list(zip(ids[document.id], pieces, strict=True))
            names |= {id: chunk_names(document, piece.heading, piece.text) for id, piece in placed}
            links.append((keys[document.id], document, {id: piece.links for id, piece in placed}))
        put_names(session, names)
        put_links(session, links)
        return ids

    def _replace(
        self, session: Session, key: int, document: Document, pieces: Sequence[Piece], *, keep: bool
    ) -> list[ChunkId]:
        """Store the chunks of a document anew, keeping those whose text stays; return them."""
        old: defaultdict[tuple[str, str], deque[ChunkId]] = defaultdict(deque)
        for chunk_id, heading, text in session.rows(_CHUNK_TEXTS, {"key": key}):
            old[heading, text].append(chunk_id)
        same = (old[list_column(piece.heading), piece.text] if keep else None for piece in pieces)
        kept = [chunks.popleft() if chunks else None for chunks in same]
        self._delete_chunks(session, [chunk_id for left in old.values() for chunk_id in left])
        rows = _rows(document, key, pieces)
        moved = [{"id": id, **row} for id, row in zip(kept, rows, strict=True) if id is not None]
        session.run_many(_MOVE_CHUNK, moved)
        new = [row for id, row in zip(kept, rows, strict=True) if id is None]
        made = iter(session.insert_many(_INSERT_CHUNK, new))
        ids = [next(made) if id is None else id for id in kept]
        self._words.index(session, ids)
        return ids

    def _update(self, session: Session, document: Document) -> None:
        sources, stored = _stored(session, [document])
        if document.id not in stored:
            raise NotFound(f"there is no document {document.id!r}", hint=_GONE)
        key = _rewrite_document(session, document, sources)
        before, now = stored[document.id], _labels_of(document)
        if (before.path, before.title) != (now.path, now.title):
            rename(session, key, document)
        if before != now:
            self._reindex(session, [document.id])
        if before.embedded != now.embedded:
            session.run(_UNLINK, {"key": key})  # their vectors are those of other texts now
        session.run(COUNT_CHANGE)

    def _reindex(self, session: Session, document_ids: Sequence[str]) -> int:
        """Write what chunks are called and labelled as their documents are now; return how many changed."""
        labels, names = [], {}
        rows = session.rows(_INDEXED, {"ids": list(document_ids)})
        for id, type, path, title, tags, heading, text, *before in rows:
            now = columns_of(title, list_of(tags), list_of(heading), text)
            names[id] = names_of(type, path, title, list_of(heading), text)
            if before != [now.title, now.tags, now.terms]:
                labels.append({"id": id, **now._asdict()})
        session.run_many(_RELABEL_CHUNK, labels)
        relabelled = [row["id"] for row in labels]
        self._words.index(session, relabelled)
        return len(put_names(session, names).union(relabelled))

    def _delete(self, session: Session, where: str, values: dict[str, Any]) -> int:
        """Delete documents: words and chunks first, then the documents."""
        rows = session.rows(f"SELECT key, id FROM kb_documents WHERE {where}", values)
        _release_superseded(session, {document_id for _, document_id in rows})
        doomed = {"keys": [key for key, _ in rows]}
        names = names_of_documents(session, doomed["keys"])
        chunks = session.rows("SELECT id FROM kb_chunks WHERE document IN (:keys...)", doomed)
        self._delete_chunks(session, [chunk_id for (chunk_id,) in chunks])
        session.run("DELETE FROM kb_documents WHERE key IN (:keys...)", doomed)
        relink(session, names)
        return len(rows)

    def _delete_chunks(self, session: Session, chunk_ids: Sequence[ChunkId]) -> None:
        if chunk_ids:
            self._words.delete_chunks(session, chunk_ids)


def _stored(session: Session, documents: Sequence[Document]) -> tuple[dict[str, int], dict[str, _Labels]]:
    """Return the keys of documents' sources, and what is stored of those documents that are there."""
    wanted = list(dict.fromkeys(document.source_id for document in documents))
    sources = dict(session.rows(_KEYS_OF_SOURCES, {"sources": wanted}))
    for source_id in wanted:
        if source_id not in sources:
            raise NotFound(f"there is no source {source_id!r}", hint=_GONE)
    rows = session.rows(_STORED, {"ids": [document.id for document in documents]})
    return sources, {id: _Labels(type, path, title, list_of(tags)) for id, type, path, title, tags in rows}


def write_documents(session: Session, documents: Sequence[Document], sources: Mapping[str, int]) -> list[int]:
    """Write the rows and tags of documents; return their keys."""
    rows = [document_values(document) for document in documents]
    for row in rows:
        row["source"] = sources[row.pop("source_id")]
    try:
        keys: list[int] = session.insert_many(_PUT_DOCUMENT, rows)
    except Duplicate as fault:
        which = repr(documents[0].path) if len(documents) == 1 else "one of the paths"
        raise BadValue(
            f"another document is stored under {which}",
            hint="delete it first, or give this one another path",
        ) from fault
    session.run_many(
        _PUT_TAG,
        (
            {"document": key, "tag": tag, "position": at}
            for document, key in zip(documents, keys, strict=True)
            for at, tag in enumerate(dict.fromkeys(document.tags))
        ),
    )
    return keys


def _rewrite_document(session: Session, document: Document, sources: Mapping[str, int]) -> int:
    """Write the row and the tags of a document that is there; return its key."""
    session.run(_DELETE_TAGS, {"id": document.id})
    (key,) = write_documents(session, [document], sources)
    return key


def _rows(document: Document, key: int, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [{"document": key, **chunk_values(document, at, piece)} for at, piece in enumerate(pieces)]


def _release_superseded(session: Session, doomed: set[str]) -> None:
    """Bring back what only the doomed documents supersede.

    A chain through doomed ones is followed to the first that stays. If it ends among them, or leads back to
    its start, there is no new superseder.
    """
    superseded_by = dict(session.rows(_SUPERSEDED))
    for old, new in superseded_by.items():
        if new in doomed and old not in doomed:
            passed = {old}
            while new in doomed and new not in passed:
                passed.add(new)
                new = superseded_by.get(new)
            session.run(_SUPERSEDE, {"new": None if new in passed else new, "old": old})
