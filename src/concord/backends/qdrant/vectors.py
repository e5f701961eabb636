"""Vectors in Qdrant, beside a store that keeps everything else. The store's catalog stays the truth.

A chunk counts as embedded once Qdrant has acknowledged its point and the ledger has marked it: a crash
between the two sends it again, under the same id. Chunks that the catalog dropped, and documents whose fields
changed, wait in the ledger until Qdrant has been told; every write and every search tells it first. What a
search finds is checked against the catalog, so nothing that is gone or superseded is returned meanwhile.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from concord.backends.embeddings import check_identity, check_vector, refuse_elsewhere
from concord.backends.qdrant.connection import Connection
from concord.errors import BackendDown, BadValue, MissingExtra, StoreBusy
from concord.types import (
    FLOAT_BYTES,
    Chunk,
    ChunkId,
    Document,
    Filter,
    Finding,
    Home,
    Identity,
    Pending,
    Scored,
    Vector,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

    from concord.backends.qdrant.points import Owner
    from concord.protocols import Store

T = TypeVar("T")

BATCH = 256  # points in a request: 1 MB of numbers at 384 dimensions, far below the server's limit of 32
TOLD_BATCHES = 4  # requests that one call may spend on telling Qdrant what changed; the rest can wait
WRITE_WAIT_S = 60.0  # for another process that writes: a batch takes it milliseconds
SEARCH_WAIT_S = 0.2  # a search goes on without: what it finds is checked anyway
FEW_DOCUMENTS = 1000  # at a path: so many are named one by one
MOST = 16_384  # points looked at for one search, where ties or a wide glob make it look further

_EVERYTHING = Filter(include_superseded=True)


class QdrantVectors:
    """The vector index of one store, in a collection that other stores and organisations may share."""

    def __init__(self, store: Store, url: str, org: str, options: Mapping[str, Any]) -> None:
        self._catalog = store.catalog
        self._local = store.vectors  # it knows what is pending and who made the vectors, wherever they are
        self._ledger = store.ledger
        self._org = org
        self._options = options
        self._collection: str = options["vectors.collection"]
        self._connection = Connection(url, options)
        self.home = f"{self._connection.url}/{self._collection}"

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def warm(self) -> None:
        """Import the client, which takes a second."""
        with suppress(MissingExtra, BackendDown):  # told by the first call that needs it
            self._connection.opened()

    def check(self) -> list[Finding]:
        """Compare how many vectors Qdrant has with how many it has acknowledged."""
        home, marked = self._ledger.home(), self._catalog.counts().vectors
        if home.url != self.home or not marked:
            return []
        try:
            with self._connection.client() as client:
                condition = self._owner(home).condition(_EVERYTHING, None)
                there = client.count(self._collection, count_filter=condition, exact=True).count
        except BackendDown as fault:
            return [Finding("outside", fault.message, fault.hint or "")]
        if there >= marked:  # more may wait to be deleted
            return []
        said = f"{self.home} holds {there:,} vectors of the {marked:,} that were sent there"
        return [Finding("outside", said, "`kb migrate` sends all of them again")]

    def reach(self, identity: Identity) -> None:
        """See that vectors of this identity could be kept there.

        Raises:
            BackendDown: Qdrant does not answer.
            BadValue: vectors of another dimension are there.
        """
        self._make_collection(identity.dimension)

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        return self._local.identity()

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        return self._local.pending(after, limit, source_id)

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
            VectorsElsewhere: this store's vectors are kept in another place.
            BackendDown: Qdrant does not answer.
        """
        home = self._ledger.home()
        has_vectors = self._catalog.counts().vectors > 0
        if has_vectors:
            self._check_home(home)
            check_identity(home.identity, identity)
        is_new = self._make_collection(identity.dimension)
        if home.url != self.home or (is_new and has_vectors):  # somebody dropped it: all are sent again
            self._ledger.move(self.home)
        if home.identity != identity:
            self._ledger.remember(identity)

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors, replacing any of the same chunk; return how many."""
        batch = dict(vectors)
        home = self._ledger.home()
        if home.identity is None or not home.url:
            raise BadValue("no embedder has been prepared for", hint="call prepare() with its identity first")
        self._check_home(home)
        for vector in batch.values():
            check_vector(vector, home.identity.dimension)
        self._tell(home, TOLD_BATCHES)
        # Alone, so that nobody reads a document, waits, and then overwrites what became of it meanwhile.
        with self._ledger.exclusive(wait_s=WRITE_WAIT_S):
            alive = self._catalog.read(list(batch))
            for part in _parts(list(alive.values())):
                self._upsert(home, [(chunk, document, batch[chunk.id]) for chunk, document in part])
        return len(alive)

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id."""
        home = self._ledger.home()
        if home.identity is None or limit < 1:
            return []
        check_vector(vector, home.identity.dimension)
        if not self._is_home(home):
            return []
        self._tell(home, TOLD_BATCHES)
        return self._nearest(home, array("f", vector).tolist(), filter, limit, ef_search)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        home = self._ledger.home()
        alive = self._ledger.allowed(chunk_ids, _EVERYTHING) if self._is_home(home) else set()
        if not alive or home.identity is None:
            return {}
        found: dict[ChunkId, Vector] = {}
        owner = self._owner(home)
        for part in _parts([i for i in dict.fromkeys(chunk_ids) if i in alive]):
            found.update(self._retrieve([owner.point_id(i) for i in part], home.identity.dimension))
        return found

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were.

        Raises:
            BackendDown: Qdrant does not answer; nothing has been deleted, and it can be tried again.
        """
        home = self._ledger.home()
        if not self._catalog.counts(source_id).vectors:
            return 0
        self._check_home(home)
        condition = self._owner(home).condition(Filter(source_id=source_id, include_superseded=True), None)
        with self._ledger.exclusive(wait_s=WRITE_WAIT_S):
            with self._connection.client() as client:
                client.delete(self._collection, condition, wait=True)
            return self._ledger.unmark(source_id)

    def _owner(self, home: Home) -> Owner:
        from concord.backends.qdrant.points import Owner  # with the client's models: a second to import

        return Owner(self._org, home.key)

    def _check_home(self, home: Home) -> None:
        if home.url != self.home:
            refuse_elsewhere(home.url, self.home)

    def _is_home(self, home: Home) -> bool:
        """Whether there is anything to find; vectors in another place are an error, not nothing."""
        if home.url != self.home and self._catalog.counts().vectors:
            self._check_home(home)
        return home.url == self.home

    def _make_collection(self, dimension: int) -> bool:
        """Make the collection, unless there is one that takes vectors of this dimension; say whether."""
        with self._connection.client() as client:
            if client.collection_exists(self._collection):
                size = _dimension(client.get_collection(self._collection))
                if size == dimension:
                    return False
                if client.count(self._collection).count:
                    raise BadValue(
                        f"the collection {self._collection} holds vectors of {size} dimensions,"
                        f" not of {dimension}",
                        hint="choose another name with vectors.collection",
                    )
                client.delete_collection(self._collection)
            self._create(client, dimension)
            return True

    def _create(self, client: QdrantClient, dimension: int) -> None:
        from qdrant_client import models

        from concord.backends.qdrant.points import INDEXES

        client.create_collection(
            self._collection,
            models.VectorParams(size=dimension, distance=models.Distance.COSINE),
            shard_number=self._options["vectors.shards"] or None,
            replication_factor=self._options["vectors.replicas"] or None,
        )
        if not self._connection.is_local:  # which would warn that indexes are not for it
            for field, schema in INDEXES.items():
                client.create_payload_index(self._collection, field, schema, wait=True)

    def _upsert(self, home: Home, batch: Sequence[tuple[Chunk, Document, Vector]]) -> None:
        """Send vectors, and mark their chunks once Qdrant has them."""
        from qdrant_client import models

        owner = self._owner(home)
        points = [
            models.PointStruct(
                id=owner.point_id(chunk.id),
                vector=array("f", vector).tolist(),
                payload=owner.payload(chunk, document),
            )
            for chunk, document, vector in batch
        ]
        with self._connection.client() as client:
            client.upsert(self._collection, points, wait=True)
        self._ledger.mark([chunk.id for chunk, _, _ in batch])

    def _tell(self, home: Home, batches: int) -> None:
        """Tell Qdrant what has changed in the catalog, unless another process is at it."""
        if not self._ledger.unsettled(1):
            return
        with suppress(StoreBusy), self._ledger.exclusive(wait_s=SEARCH_WAIT_S):
            for _ in range(batches):
                if not (changes := self._ledger.unsettled(BATCH)):
                    return
                self._tell_of(home, list({chunk_id for _, chunk_id in changes}))
                self._ledger.settle([turn for turn, _ in changes])

    def _tell_of(self, home: Home, chunk_ids: Sequence[ChunkId]) -> None:
        """Delete the points of chunks that are gone, and label the others as their documents are now."""
        from qdrant_client import models

        owner, alive = self._owner(home), self._catalog.read(chunk_ids)
        gone = [owner.point_id(i) for i in chunk_ids if i not in alive]
        # By a filter, because naming a point that is not there yet would be an error.
        operations: list[Any] = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(
                    payload=owner.labels(chunk, document),
                    filter=models.Filter(must=[models.HasIdCondition(has_id=[owner.point_id(chunk.id)])]),
                )
            )
            for chunk, document in alive.values()
        ]
        if gone:
            operations.append(models.DeleteOperation(delete=models.PointIdsList(points=[*gone])))
        with self._connection.client() as client:
            client.batch_update_points(self._collection, operations, wait=True)

    def _nearest(
        self, home: Home, vector: list[float], filter: Filter, limit: int, ef_search: int | None
    ) -> list[Scored]:
        """Return the nearest that the catalog knows, looking further while the list could be another."""
        condition = self._condition(home, filter)
        k = limit + 1
        while True:
            found = self._query(vector, condition, k, ef_search)
            allowed = self._ledger.allowed([each.chunk_id for each in found], filter)
            kept = [each for each in found if each.chunk_id in allowed]
            # Equals at the end of the list may have others behind them.
            is_settled = len(kept) >= limit and kept[limit - 1].score > found[-1].score
            if is_settled or len(found) < k or k >= max(MOST, limit + 1):
                return kept[:limit]
            k *= 4

    def _condition(self, home: Home, filter: Filter) -> models.Filter:
        from concord.backends.qdrant.points import is_whole_folder

        documents = None
        if filter.path is not None and not is_whole_folder(filter.path):
            documents = self._ledger.matching(filter, FEW_DOCUMENTS)
        return self._owner(home).condition(filter, documents)

    def _query(
        self, vector: list[float], condition: models.Filter, k: int, ef_search: int | None
    ) -> list[Scored]:
        from qdrant_client import models

        from concord.backends.qdrant.points import chunk_of

        params = models.SearchParams(hnsw_ef=max(ef_search, k)) if ef_search else None
        with self._connection.client() as client:
            points = client.query_points(
                self._collection,
                query=vector,
                query_filter=condition,
                search_params=params,
                limit=k,
                with_payload=False,
            ).points
        found = [Scored(chunk_of(point.id), min(1.0, point.score)) for point in points]
        return sorted(found, key=lambda each: (-each.score, each.chunk_id))

    def _retrieve(self, point_ids: Sequence[str], dimension: int) -> Iterator[tuple[ChunkId, Vector]]:
        from concord.backends.qdrant.points import chunk_of

        with self._connection.client() as client:
            records = client.retrieve(self._collection, point_ids, with_payload=False, with_vectors=True)
        for record in records:
            vector = array("f", cast(list[float], record.vector or [])).tobytes()
            if len(vector) != dimension * FLOAT_BYTES:
                raise BackendDown(
                    f"Qdrant at {self.home} answers with vectors of {len(vector) // FLOAT_BYTES} dimensions"
                    f" where the index has {dimension}",
                    hint="see what else writes to the collection, or choose another with vectors.collection",
                )
            yield chunk_of(record.id), vector


def _dimension(info: models.CollectionInfo) -> int | None:
    """Return the size of a collection's one vector; None when it is not one of ours."""
    return getattr(info.config.params.vectors, "size", None)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
