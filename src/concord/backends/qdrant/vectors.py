"""Finding chunks by meaning in Qdrant, in one space of a store that keeps everything else.

A chunk counts as embedded once Qdrant has acknowledged its point and the ledger has marked it: a crash
between the two sends it again, under the same id. What a search finds is checked against the catalog, so
nothing that is gone or superseded is returned, whatever Qdrant has not been told yet.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import BackendDown, StoreBusy
from concord.store.store_errors import none_anywhere, unprepared
from concord.store.vector_checks import check_vector
from concord.types import (
    FLOAT_BYTES,
    Chunk,
    ChunkId,
    Document,
    Filter,
    Home,
    Identity,
    Pending,
    Scored,
    Vector,
)

if TYPE_CHECKING:
    from qdrant_client import models

    from concord.backends.qdrant.outside import QdrantOutsideVectors
    from concord.core.vector_storage import VectorIndex

BATCH = 256  # points in a request: 1 MB of numbers at 384 dimensions, far below the server's limit of 32
WRITE_WAIT_S = 60.0  # for another process that writes: a batch takes it milliseconds
FEW_DOCUMENTS = 1000  # at a path: so many are named one by one
MOST = 16_384  # points looked at for one search, where ties or a wide glob make it look further

_EVERYTHING = Filter(include_superseded=True)


class QdrantVectors:
    """The vectors of one space: the one that the store's own index, `known`, is of."""

    def __init__(self, outside: QdrantOutsideVectors, known: VectorIndex) -> None:
        self._outside = outside
        self._known = known  # it knows who made the vectors and what is pending, wherever they are
        self._connection = outside.connection
        self._catalog = outside.store.catalog
        self._ledger = outside.store.ledger

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        return self._known.identity()

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        return self._known.count_pending(source_id)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        return self._known.pending(after, limit, source_id)

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
            VectorsElsewhere: this store's vectors are kept in another home.
            BackendDown: Qdrant does not answer.
        """
        home = self._outside.claim()
        self._known.prepare(identity)
        if self._outside.collections.make(identity.dimension) and not self._ledger.is_empty():
            self._ledger.move(home.url)  # somebody dropped it: all are sent again

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors, replacing any of the same chunk; return how many."""
        batch, identity = dict(vectors), self.identity()
        if identity is None:
            raise unprepared()
        for vector in batch.values():
            check_vector(vector, identity.dimension)
        home = self._outside.claim()
        self._outside.collections.ensure(identity.dimension)
        self._outside.tell(home)
        # Exclusively: else one process could read a document and write it after another has changed it.
        with self._ledger.exclusive(wait_s=WRITE_WAIT_S):
            alive = self._catalog.read(list(batch))
            for part in batched(alive.values(), BATCH):
                self._upsert(home, identity, [(chunk, document, batch[chunk.id]) for chunk, document in part])
        return len(alive)

    def search(
        self,
        vector: Vector,
        filter: Filter,
        limit: int,
        *,
        ef_search: int | None = None,
        with_vectors: bool = False,
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id.

        Raises:
            ModelMismatch: the vectors of the model that this index is bound to are gone.
            VectorsElsewhere: they are to be kept in another home than this.
            BackendDown: Qdrant does not answer.
        """
        if limit < 1:
            return []
        identity = self.identity()
        if identity is None:
            return self._known.search(vector, filter, limit)  # which knows whether that is an error
        check_vector(vector, identity.dimension)
        home = self._outside.found_home()
        if home is None:
            raise none_anywhere(self._outside.home)
        condition = self._condition(home, identity, self._tell_and_widen(home, filter))
        query = partial(self._query, array("f", vector).tolist(), condition, ef_search, with_vectors)
        return self._nearest(query, filter, limit)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        identity = self.identity()
        home = self._outside.found_home() if identity else None
        if identity is None or home is None:
            return {}
        alive = self._ledger.allowed(chunk_ids, _EVERYTHING)
        owner, found = self._outside.owner(home, identity), dict[ChunkId, Vector]()
        for part in batched((i for i in dict.fromkeys(chunk_ids) if i in alive), BATCH):
            found.update(self._retrieve([owner.point_id(i) for i in part], identity.dimension))
        return found

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were.

        Raises:
            BackendDown: Qdrant does not answer; nothing has been deleted, and it can be tried again.
        """
        identity = self.identity()
        self._ledger.own()  # of a copy, nothing is there
        if identity is None or self._known.count_pending(source_id) == self._catalog.counts(source_id).chunks:
            return 0
        home = self._outside.claim()
        ours = Filter(source_id=source_id, include_superseded=True)
        with self._ledger.exclusive(wait_s=WRITE_WAIT_S):
            self._delete(self._outside.owner(home, identity).condition(ours, None), identity)
            return self._ledger.unmark(identity, source_id)

    def delete_everything(self) -> None:
        """Delete all points of this space; the store still counts them.

        Raises:
            BackendDown: Qdrant does not answer.
        """
        self._ledger.own()  # of a copy, nothing is there
        identity, home = self.identity(), self._outside.found_home()
        if identity and home and self._known.count_pending() < self._catalog.counts().chunks:
            self._delete(self._outside.owner(home, identity).mine(), identity)

    def _delete(self, condition: models.Filter, identity: Identity) -> None:
        """Delete points; those of a collection that somebody dropped are gone already."""
        try:
            with self._outside.collections.asking(identity.dimension) as (client, name):
                client.delete(name, condition, wait=True)
        except BackendDown:
            if self._outside.collections.has(identity.dimension):
                raise

    def _upsert(
        self, home: Home, identity: Identity, batch: Sequence[tuple[Chunk, Document, Vector]]
    ) -> None:
        """Send vectors, and mark their chunks once Qdrant has them."""
        from qdrant_client import models

        owner = self._outside.owner(home, identity)
        points = [
            models.PointStruct(
                id=owner.point_id(chunk.id),
                vector=array("f", vector).tolist(),
                payload=owner.payload(chunk, document),
            )
            for chunk, document, vector in batch
        ]
        with self._outside.collections.asking(identity.dimension) as (client, name):
            client.upsert(name, points, wait=True)
        self._ledger.mark(identity, [chunk.id for chunk, _, _ in batch])

    def _tell_and_widen(self, home: Home, filter: Filter) -> Filter:
        """Send pending changes to Qdrant; return the filter to ask with, wider where some could not be sent.

        Documents that come back from being superseded are few: all are asked for, and the catalog takes the
        others out. What tags, paths and dates let through may be anything, so all is told before.

        Raises:
            BackendDown: that cannot be done now.
        """
        if self._outside.tell(home):
            return filter
        if filter.is_open:
            return replace(filter, include_superseded=True)
        try:
            self._outside.settle(home)
        except StoreBusy as fault:
            raise BackendDown(
                "changes of tags, paths or dates are still being told to Qdrant", hint=fault.hint
            ) from fault
        return filter

    def _nearest(self, query: Callable[[int], list[Scored]], filter: Filter, limit: int) -> list[Scored]:
        """Return the nearest that the catalog knows, looking further while the list could be another."""
        k = limit + 1
        while True:
            found = query(k)
            allowed = self._ledger.allowed([each.chunk_id for each in found], filter)
            kept = [each for each in found if each.chunk_id in allowed]
            # Equals at the end of the list may have others behind them.
            is_settled = len(kept) >= limit and kept[limit - 1].score > found[-1].score
            if is_settled or len(found) < k or k >= max(MOST, limit + 1):
                return kept[:limit]
            k *= 4

    def _condition(self, home: Home, identity: Identity, filter: Filter) -> models.Filter:
        from concord.backends.qdrant.points import is_whole_folder

        documents = None
        if filter.path is not None and not is_whole_folder(filter.path):
            documents = self._ledger.matching(filter, FEW_DOCUMENTS)
        return self._outside.owner(home, identity).condition(filter, documents)

    def _query(
        self,
        vector: list[float],
        condition: models.Filter,
        ef_search: int | None,
        with_vectors: bool,
        k: int,
    ) -> list[Scored]:
        from qdrant_client import models

        from concord.backends.qdrant.points import chunk_of

        is_exact = self._connection.is_local  # local mode compares everything, and warns about an effort
        params = models.SearchParams(hnsw_ef=max(ef_search, k)) if ef_search and not is_exact else None
        with self._outside.collections.asking(len(vector)) as (client, name):
            points = client.query_points(
                name,
                query=vector,
                query_filter=condition,
                search_params=params,
                limit=k,
                with_payload=False,
                with_vectors=with_vectors,
            ).points
        sent = [self._received(point.vector, len(vector)) if point.vector else b"" for point in points]
        found = [
            Scored(chunk_of(point.id), min(1.0, point.score), one)
            for point, one in zip(points, sent, strict=True)
        ]
        return sorted(found, key=lambda each: (-each.score, each.chunk_id))

    def _retrieve(self, point_ids: Sequence[str], dimension: int) -> Iterator[tuple[ChunkId, Vector]]:
        from concord.backends.qdrant.points import chunk_of

        with self._outside.collections.asking(dimension) as (client, name):
            records = client.retrieve(name, point_ids, with_payload=False, with_vectors=True)
        for record in records:
            yield chunk_of(record.id), self._received(record.vector, dimension)

    def _received(self, sent: object, dimension: int) -> Vector:
        """Return a vector as Qdrant has sent it.

        Raises:
            BackendDown: it is of another dimension.
        """
        vector = array("f", cast(list[float], sent or [])).tobytes()
        if len(vector) != dimension * FLOAT_BYTES:
            raise BackendDown(
                f"{self._outside.home} answers with vectors of {len(vector) // FLOAT_BYTES} dimensions"
                f" where the index has {dimension}",
                hint="see what else writes to the collection, or choose another with vectors.collection",
            )
        return vector
