"""A store by the names of `storage` and `vector_storage`, until nobody calls it by these any more."""

# ruff: noqa: D102  (what each method does is said where its old name is declared)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from concord.store.contract import Select, Store, TextHash
from concord.store.embeddings import SqlVectors
from concord.store.store_errors import unprepared
from concord.store.vector_checks import check_identity, check_vector
from concord.text.document import embeddable_text, embedded_tags
from concord.types import (
    Chunk,
    ChunkId,
    Document,
    Filter,
    Glance,
    Identity,
    Match,
    Pending,
    Piece,
    Scored,
    Source,
    Space,
    Vector,
)

if TYPE_CHECKING:
    from concord.store.sqlite.store import SQLiteStore


class OldCatalog:
    """The catalog by its old names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        new = store.catalog
        self.put_source, self.remove_source = new.put_source, new.remove_source
        self.file_states, self.read, self.counts = new.file_states, new.read, new.count
        self.update_documents, self.delete_documents = new.update_documents, new.delete_documents
        self.reindex, self.types_of, self.chunks_of = new.reindex_words, new.document_types, new.chunks
        self.count_documents, self.count_types = new.count_documents, new.count_types
        self.memo, self.put_memo = new.sync_state, new.put_sync_state

    def sources(self) -> list[Source]:
        return list(self._store.catalog.snapshot().sources)

    def documents(self, source_id: str | None = None) -> Iterator[Document]:
        return self._store.catalog.documents(Select(source_id=source_id))

    def document(self, document_id: str) -> Document | None:
        return next(iter(list(self._store.catalog.documents(Select(ids=[document_id])))), None)

    def documents_at(self, path: str) -> list[Document]:
        exact = list(self._store.catalog.documents(Select(path=path)))
        return exact or list(self._store.catalog.documents(Select(path_ending=path)))

    def superseded(self, document_id: str) -> list[Document]:
        return list(self._store.catalog.documents(Select(superseded_by=document_id)))

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> None:
        self._store.catalog.put_documents(documents)

    def put_document(self, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
        return self._store.catalog.put_documents([(document, pieces)])[0]

    def update_document(self, document: Document) -> None:
        self._store.catalog.update_documents([document])

    def generation(self) -> int:
        return self._store.catalog.snapshot().generation

    def sync_lock(self, source_id: str, *, wait_s: float) -> AbstractContextManager[None]:
        return self._store.lock(source_id, "syncing this source", wait_s=wait_s)


class OldWords:
    """The index of words by its old names."""

    def __init__(self, store: Store) -> None:
        self._words = store.words
        self.similar_words, self.search_names = store.words.similar_words, store.words.search_names
        self.name_frequencies = store.words.name_frequencies

    def search(
        self, match: Match, filter: Filter, limit: int, known: Mapping[str, int] | None = None
    ) -> list[Scored]:
        return self._words.search(match, filter, limit)

    def is_at_hand(self, match: Match, filter: Filter, known: Mapping[str, int]) -> bool:
        return False

    def frequencies(
        self, words: Sequence[str], sought_share: float | None = None
    ) -> tuple[int, dict[str, int]]:
        return self._words.frequencies(words)


class OldVectors:
    """The vectors of one model, or without one those of the active model."""

    def __init__(self, store: Store, bound: Identity | None = None) -> None:
        self._store = store
        self._bound = bound

    def identity(self) -> Identity | None:
        snapshot = self._store.catalog.snapshot()
        if self._bound is None:
            return snapshot.active.identity if snapshot.active else None
        return self._bound if self._bound in {model.identity for model in snapshot.models} else None

    def prepare(self, identity: Identity) -> None:
        if self._bound:
            check_identity(self._bound, identity)
        if self.identity() == identity:
            return
        snapshot, models = self._store.catalog.snapshot(), self._store.models
        active = snapshot.active
        if active is None or active.identity == identity:
            models.add(identity, {})
            return
        if self._store.catalog.count().vectors:
            check_identity(active.identity, identity)
        is_known = identity in {model.identity for model in snapshot.models}
        if not is_known:
            models.add(identity, {})
        models.activate(identity)
        if not is_known:
            models.drop(active.identity)

    def count_pending(self, source_id: str | None = None) -> int:
        return self._index().count_pending(source_id)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        return self._index().pending(after, limit, source_id)

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        batch = list(vectors)
        identity = self._bound or self.identity()
        if identity is None:
            raise unprepared()
        for _, vector in batch:
            check_vector(vector, identity.dimension)
        index = self._index(identity)
        return index.put(self._hashed(index, batch))

    def search(
        self,
        vector: Vector,
        filter: Filter,
        limit: int,
        *,
        ef_search: int | None = None,
        with_vectors: bool = False,
    ) -> list[Scored]:
        identity = self._bound or self.identity()
        return self._index(identity).search(vector, filter, limit, ef_search=ef_search) if identity else []

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        return self._index().fetch(chunk_ids)

    def delete_source(self, source_id: str) -> int:
        return self._index().delete_source(source_id)

    def _index(self, identity: Identity | None = None) -> SqlVectors:
        """Return the index that is meant; before the first model, one of a model that has no vectors."""
        meant = identity or self._bound or self.identity() or Identity("", "", 0)
        index = self._store.models.index(meant)
        assert isinstance(index, SqlVectors)
        return index

    def _hashed(
        self, index: SqlVectors, batch: Sequence[tuple[ChunkId, Vector]]
    ) -> Iterator[tuple[ChunkId, TextHash, Vector]]:
        """Yield vectors with the hashes of their chunks' texts.

        Who gives a chunk another vector than its text has would change those of its equals, too: such a
        vector is stored under a hash of its own.
        """
        read = self._store.catalog.read([chunk_id for chunk_id, _ in batch])
        keys = {chunk_id: _text_hash(*read[chunk_id]) for chunk_id in read}
        known = index.stored(list(set(keys.values())))
        for chunk_id, vector in batch:
            key = keys.get(chunk_id) or sha256(vector).digest()
            if known.setdefault(key, vector) != vector:
                key = sha256(key + chunk_id.to_bytes(8, "little")).digest()
            yield chunk_id, key, vector


def _text_hash(chunk: Chunk, document: Document) -> TextHash:
    text = embeddable_text(document.title, chunk.heading, chunk.text, embedded_tags(document))
    return sha256(text.encode("utf-8", "replace")).digest()


class OldSpaces:
    """The models by their old names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.activate, self.drop, self.add = store.models.activate, store.models.drop, store.models.add

    def all(self) -> list[Space]:
        return list(self._store.catalog.snapshot().models)

    def active(self) -> Space | None:
        return self._store.catalog.snapshot().active

    def of(self, identity: Identity) -> OldVectors:
        return OldVectors(self._store, identity)


class OldCache:
    """The cache by its old names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entries, self.usage, self.trim = store.cache.entries, store.cache.usage, store.cache.trim

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        return self._store.models.index(identity).cached(keys)

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        self._store.models.index(identity).remember(vectors)


class OldLedger:
    """The outbox by its old names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        new = store.outbox
        self.home, self.own, self.is_empty, self.move = new.home, new.own, new.is_empty, new.move
        self.left, self.forget, self.mark, self.unmark = new.left, new.forget, new.acknowledge, new.retract
        self.unsettled, self.settle, self.matching = new.changes, new.settle, store.catalog.matching

    def allowed(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> set[ChunkId]:
        return self._store.catalog.allowed(filter, chunk_ids)

    def exclusive(self, *, wait_s: float) -> AbstractContextManager[None]:
        return self._store.lock("vectors kept elsewhere", "changing the vectors", wait_s=wait_s)


class OldStore:
    """A store by its old names."""

    def __init__(self, store: Store) -> None:
        self.new = store
        self.path = store.place.path
        self.catalog, self.lexical = OldCatalog(store), OldWords(store)
        self.vectors, self.spaces, self.cache = OldVectors(store), OldSpaces(store), OldCache(store)
        self.ledger, self.journal = OldLedger(store), store.journal
        self.check, self.repair, self.tend = store.check, store.repair, store.maintain
        self.index_state, self.close = store.vector_index_state, store.close

    @property
    def is_begun(self) -> bool:
        return self.new.place.is_begun

    def others(self) -> list[str]:
        return list(self.new.place.others)

    def unique_id(self) -> str:
        return self.new.place.unique_id

    def glance(self) -> Glance:
        snapshot = self.new.catalog.snapshot()
        return Glance(
            snapshot.generation, snapshot.sources, snapshot.active, has_superseded=snapshot.has_superseded
        )


class OldSQLiteStore(OldStore):
    """What `sqlite://` URLs open."""

    path: str
    new: SQLiteStore

    def __init__(self, store: SQLiteStore) -> None:
        super().__init__(store)
        self.backup = store.backup  # the only store that is a file which can be copied in use

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> OldSQLiteStore:
        from concord.store.sqlite.store import SQLiteStore

        return cls(SQLiteStore.open(url, org, options))


class OldMemoryStore(OldStore):
    """What `memory://` opens."""

    def __init__(self, store: Store | None = None) -> None:
        from concord.store.memory import MemoryStore

        super().__init__(store or MemoryStore())

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> OldMemoryStore:
        return cls()


class OldJsonStore(OldStore):
    """What `json://` URLs open."""

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> OldJsonStore:
        from concord.store.json_file import JsonStore

        return cls(JsonStore.open(url, org, options))
