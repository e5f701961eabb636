"""Which chunks of a document that is stored again stay as they are, move, are indexed anew, come or go?

A chunk stays, with its id and its vector, where heading and text are the same and so is what else is embedded
with them. What is stored is compared with in its stored form (see `rows.py`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concord.backends.postgres.connections import Connection, Rows
from concord.backends.postgres.indexing import (
    NewChunk,
    delete_chunks,
    insert_chunks,
    piece_columns,
    reindex_chunks,
)
from concord.backends.postgres.names import put_names
from concord.backends.postgres.rows import place_values, stored, stored_tags
from concord.store.columns import Columns, chunk_names
from concord.store.sql_values import list_column, stored_list
from concord.types import ChunkId, Document, Piece

Group = Sequence[tuple[Document, Sequence[Piece]]]

_LABELS = "SELECT id, title, tags FROM kb_documents WHERE org = %s AND id = ANY(%s)"
_CHUNK_TEXTS = """
SELECT document, id, heading, content, position, start_offset, end_offset, start_line, end_line, page,
    last_page, start_column, end_column
FROM kb_chunks WHERE org = %s AND document = ANY(%s) ORDER BY document, position"""
_MOVE_CHUNK = """
UPDATE kb_chunks
SET position = %s, start_offset = %s, end_offset = %s, start_line = %s, end_line = %s, page = %s,
    last_page = %s, start_column = %s, end_column = %s
WHERE org = %s AND id = %s"""


class Labels(NamedTuple):
    """What a document's chunks are found by besides their text; as stored."""

    title: str
    tags: list[str]


class _Old(NamedTuple):
    """A chunk that an earlier version of a document has."""

    id: ChunkId
    place: tuple[object, ...]


_Kept = dict[tuple[str, str], deque[_Old]]  # heading and text → chunks that have them, in order


def ask_labels(connection: Connection, org: int, document_ids: Sequence[str]) -> Rows:
    """Ask what the chunks of those documents that exist are found by."""
    return connection.execute(_LABELS, (org, document_ids))


def labels_in(asked: Rows) -> dict[str, Labels]:
    """Return what the answer says, by document."""
    return {name: Labels(title, tags) for name, title, tags in asked.fetchall()}


def labels_of(document: Document) -> Labels:
    """Return what the chunks of a document will be found by."""
    return Labels(stored(document.title), stored_tags(document.tags))


def put_chunks(
    connection: Connection, org: int, group: Group, earlier: Mapping[str, Labels], last: ChunkId
) -> list[list[ChunkId]]:
    """Write the chunks of documents of which none comes twice; ids go on from the last. Return each one's.

    `earlier` are the labels of those documents that were there before.
    """
    old = _old_chunks(connection, org, [document.id for document, _ in group if document.id in earlier])
    plan = _Plan(org, last)
    for document, pieces in group:
        plan.add(document, pieces, old.get(document.id, {}), earlier.get(document.id))
    plan.carry_out(connection)
    return plan.ids


class _Plan:
    """Which chunks of a group of documents are new, moved, indexed anew or gone."""

    def __init__(self, org: int, last: ChunkId) -> None:
        self.org = org
        self.last = last
        self.ids: list[list[ChunkId]] = []
        self.new: list[NewChunk] = []
        self.moved: list[tuple[object, ...]] = []
        self.relabelled: dict[ChunkId, Columns] = {}
        self.names: dict[ChunkId, list[str]] = {}  # of those that are kept
        self.gone: list[ChunkId] = []

    def add(self, document: Document, pieces: Sequence[Piece], old: _Kept, earlier: Labels | None) -> None:
        """Decide about one document's chunks."""
        labels = labels_of(document)
        is_embedded_alike = earlier is not None and _embedded(earlier, document) == _embedded(
            labels, document
        )
        ids = []
        for at, piece in enumerate(pieces):
            kept = _claim(old, piece) if is_embedded_alike else None
            ids.append(self._create(document, at, piece) if kept is None else self._keep(at, piece, kept))
            if kept is not None:
                self.names[kept.id] = chunk_names(document, piece.heading, piece.text)
            if kept is not None and earlier != labels:
                self.relabelled[kept.id] = piece_columns(document, piece)
        self.ids.append(ids)
        self.gone += [chunk.id for left in old.values() for chunk in left]

    def carry_out(self, connection: Connection) -> None:
        """Write it all."""
        delete_chunks(connection, self.org, self.gone)
        with connection.cursor() as cursor:
            if self.moved:
                cursor.executemany(_MOVE_CHUNK, self.moved)
        put_names(connection, self.org, self.names)
        reindex_chunks(connection, self.org, self.relabelled)
        insert_chunks(connection, self.org, self.new)

    def _create(self, document: Document, at: int, piece: Piece) -> ChunkId:
        self.last += 1
        row = (document.id, *place_values(at, piece), stored_list(piece.heading), stored(piece.text))
        self.new.append(NewChunk(self.last, row, document, piece))
        return self.last

    def _keep(self, at: int, piece: Piece, kept: _Old) -> ChunkId:
        place = place_values(at, piece)
        if place != kept.place:
            self.moved.append((*place, self.org, kept.id))
        return kept.id


def _embedded(labels: Labels, document: Document) -> tuple[object, ...]:
    """Return what is embedded with each text: the title, and the tags of a note."""
    return labels if document.type == "note" else (labels.title,)


def _claim(old: _Kept, piece: Piece) -> _Old | None:
    same = old.get((list_column(piece.heading), stored(piece.text)))
    return same.popleft() if same else None


def _old_chunks(connection: Connection, org: int, document_ids: Sequence[str]) -> dict[str, _Kept]:
    found: dict[str, _Kept] = defaultdict(lambda: defaultdict(deque))
    if document_ids:
        for document, chunk_id, heading, text, *place in connection.execute(
            _CHUNK_TEXTS, (org, document_ids)
        ):
            found[document][heading, text].append(_Old(chunk_id, tuple(place)))
    return found
