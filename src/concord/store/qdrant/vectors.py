"""Chunks by meaning in Qdrant: the vectors of one model, of a store that keeps everything else.

A chunk counts as embedded once Qdrant has acknowledged its point and the outbox has noted that: a crash
between the two sends it again, under the same id. What a search finds is checked against the catalog, so
nothing that is gone or superseded is returned, whatever Qdrant does not know yet.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import UUID

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import Action, BackendDown, Hint, StoreBusy, VectorsElsewhere
from concord.store.embeddings import check_vector, not_added, vectors_gone
from concord.text.globs import is_prefix, literal_prefix
from concord.types import Chunk, ChunkId, Document, Filter, Home, Identity, Scored, Vector

if TYPE_CHECKING:
    from qdrant_client import models

    from concord.store.contract import TextHash
    from concord.store.qdrant.store import QdrantStore

BATCH = 256  # points in a request: 1 MB of numbers at 384 dimensions, far below the server's limit of 32
FEW_DOCUMENTS = 1000  # at a path: so many are named in a condition
MOST = 16_384  # points looked at for one search, where ties or a wide glob make it look further
CHUNK_BITS = 64  # of the id of a point: the last ones are the id of its chunk
EVERYTHING = Filter(include_superseded=True)


class QdrantVectors:
    """The vectors of one model."""

    def __init__(self, outside: QdrantStore, identity: Identity) -> None:
        self._outside = outside
        self._identity = identity
        self._catalog, self._outbox = outside.catalog, outside.outbox
        known = outside.inner.models.index(identity)  # it knows what is pending, wherever vectors are
        self.count_pending, self.pending = known.count_pending, known.pending
        self.cached, self.remember = known.cached, known.remember

    def put(self, vectors: Iterable[tuple[ChunkId, TextHash, Vector]]) -> int:
        """Send the vectors of chunks; return how many chunks got one."""
        batch = {chunk_id: vector for chunk_id, _, vector in vectors}
        if not self._is_added():
            raise not_added()
        for vector in batch.values():
            check_vector(vector, self._identity.dimension)
        home = self._outside.claim()
        self._outside.collections.ensure(self._identity.dimension)
        # Alone: else one process could read a document and write it after another has changed it.
        with self._outside.writing():
            alive = self._catalog.read(list(batch))
            for part in batched(alive.values(), BATCH):
                self._upsert(home, [(chunk, document, batch[chunk.id]) for chunk, document in part])
        return len(alive)

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id."""
        if limit < 1:
            return []
        if not self._is_added():
            raise vectors_gone(self._identity)
        check_vector(vector, self._identity.dimension)
        home = self._outside.own_home()
        if home is None:
            raise VectorsElsewhere(
                Hint(Action.SYNC, f"no vector has been sent to {self._outside.home} yet: {{sync}}"),
                hint="or set vectors.url to where they are",
            )
        condition = self._condition(home, self._widened(home, filter))
        query = partial(self._query, array("f", vector).tolist(), condition, ef_search)
        return self._nearest(query, filter, limit)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        home = self._outside.own_home() if self._is_added() else None
        if home is None:
            return {}
        alive = self._catalog.allowed(EVERYTHING, chunk_ids)
        owner, fetched = self._outside.owner(home, self._identity), dict[ChunkId, Vector]()
        for part in batched((i for i in dict.fromkeys(chunk_ids) if i in alive), BATCH):
            fetched.update(self._retrieve([owner.point_id(chunk_id) for chunk_id in part]))
        return fetched

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many chunks had one."""
        if self.count_pending(source_id) == self._catalog.count(source_id).chunks:
            return 0
        home = self._outside.claim()
        of_source = Filter(source_id=source_id, include_superseded=True)
        with self._outside.writing():
            self._delete(self._outside.owner(home, self._identity).condition(of_source, None))
            return self._outbox.retract(self._identity, source_id)

    def delete_everything(self) -> None:
        """Delete all points of this model; the store still counts them."""
        home = self._outside.own_home()
        if home and self.count_pending() < self._catalog.count().chunks:
            self._delete(self._outside.owner(home, self._identity).mine())

    def _is_added(self) -> bool:
        return any(model.identity == self._identity for model in self._catalog.snapshot().models)

    def _delete(self, condition: models.Filter) -> None:
        """Delete points; those of a collection that somebody dropped are gone already."""
        try:
            with self._outside.collections.asking(self._identity.dimension) as (client, name):
                client.delete(name, condition, wait=True)
        except BackendDown:
            if self._outside.collections.has(self._identity.dimension):
                raise

    def _upsert(self, home: Home, batch: Sequence[tuple[Chunk, Document, Vector]]) -> None:
        from qdrant_client import models

        owner = self._outside.owner(home, self._identity)
        points = [
            models.PointStruct(
                id=owner.point_id(chunk.id),
                vector=array("f", vector).tolist(),
                payload=owner.payload(chunk, document),
            )
            for chunk, document, vector in batch
        ]
        with self._outside.collections.asking(self._identity.dimension) as (client, name):
            client.upsert(name, points, wait=True)
        self._outbox.acknowledge(self._identity, [chunk.id for chunk, _, _ in batch])

    def _widened(self, home: Home, filter: Filter) -> Filter:
        """Return the filter to ask with while Qdrant does not know of all changes.

        Documents that come back from being superseded are few: all are asked for, and the catalog takes the
        others out. What tags, paths and dates let through may be anything, so all changes are sent before.
        """
        if not self._outbox.changes(1):
            return filter
        if filter.is_open:
            return replace(filter, include_superseded=True)
        try:
            self._outside.send_changes(home)
        except StoreBusy as fault:
            raise BackendDown(
                "changes of tags, paths or dates are still being told to Qdrant", hint=fault.hint
            ) from fault
        return filter

    def _nearest(self, query: Callable[[int], list[Scored]], filter: Filter, limit: int) -> list[Scored]:
        """Return the nearest that the catalog knows, looking further while the list could be another."""
        k = limit + 1
        while True:
            nearest = query(k)
            allowed = self._catalog.allowed(filter, [scored.chunk_id for scored in nearest])
            kept = [scored for scored in nearest if scored.chunk_id in allowed]
            # Equals at the end of the list may have others behind them.
            is_settled = len(kept) >= limit and kept[limit - 1].score > nearest[-1].score
            if is_settled or len(nearest) < k or k >= max(MOST, limit + 1):
                return kept[:limit]
            k *= 4

    def _condition(self, home: Home, filter: Filter) -> models.Filter:
        documents = None
        if filter.path is not None and not is_whole_folder(filter.path):
            documents = self._catalog.matching(filter, FEW_DOCUMENTS)
        return self._outside.owner(home, self._identity).condition(filter, documents)

    def _query(
        self, vector: list[float], condition: models.Filter, ef_search: int | None, k: int
    ) -> list[Scored]:
        from qdrant_client import models

        is_exact = self._outside.connection.is_local  # it compares everything, and warns about an effort
        params = models.SearchParams(hnsw_ef=max(ef_search, k)) if ef_search and not is_exact else None
        with self._outside.collections.asking(len(vector)) as (client, name):
            points = client.query_points(
                name,
                query=vector,
                query_filter=condition,
                search_params=params,
                limit=k,
                with_payload=False,
            ).points
        nearest = [Scored(chunk_of(point.id), min(1.0, point.score)) for point in points]
        return sorted(nearest, key=lambda scored: (-scored.score, scored.chunk_id))

    def _retrieve(self, point_ids: Sequence[str]) -> Iterator[tuple[ChunkId, Vector]]:
        with self._outside.collections.asking(self._identity.dimension) as (client, name):
            records = client.retrieve(name, point_ids, with_payload=False, with_vectors=True)
        for record in records:
            yield chunk_of(record.id), array("f", cast(list[float], record.vector)).tobytes()


def chunk_of(point_id: str | int | UUID) -> ChunkId:
    """Return the chunk whose point this is."""
    return UUID(str(point_id)).int & ((1 << CHUNK_BITS) - 1)


def is_whole_folder(glob: str) -> bool:
    """Whether a glob asks for exactly what lies under a folder, which needs no list of documents."""
    return is_prefix(glob) and literal_prefix(glob).endswith("/")
