"""Finding chunks of a memory store by meaning: each model has its vectors, and all of them are compared."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import mul

from concord.backends.memory.contents import Contents, Held, best
from concord.store.store_errors import kept_elsewhere, unprepared, vectors_gone
from concord.store.vector_checks import check_identity, check_vector
from concord.text.document import embedded_tags
from concord.types import Chunk, ChunkId, Document, Filter, Identity, Pending, Scored, Vector


class MemoryVectors:
    """Chunks by meaning: in the space of an identity, or, without one, in the active space."""

    def __init__(self, contents: Contents, identity: Identity | None = None) -> None:
        self._contents = contents
        self._bound = identity

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        with self._contents.reading():
            if self._bound is None:
                return self._contents.active
            return self._bound if self._bound in self._contents.spaces else None

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
        """
        if self._bound:
            check_identity(self._bound, identity)
        with self._contents.changing():
            if self.identity() == identity:
                return
            active = self._contents.active
            if active is not None:
                if self._contents.spaces[active].vectors:
                    check_identity(active, identity)
                del self._contents.spaces[active]
            self._contents.spaces.setdefault(identity, Held())
            self._contents.activate(identity)

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        with self._contents.reading():
            return len(set(self._contents.chunk_ids(source_id)) - self._vectors().keys())

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        with self._contents.reading():
            vectors = self._vectors()
            ids = [i for i in self._contents.chunk_ids(source_id) if i > after and i not in vectors]
            chunks = [self._contents.chunks[chunk_id] for chunk_id in ids[: max(limit, 0)]]
            return [_pending(chunk, self._contents.documents[chunk.document_id]) for chunk in chunks]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors, all or none, replacing any of the same chunk; return how many."""
        batch = list(vectors)
        with self._contents.changing():
            self._claim()
            identity = self.identity()
            if identity is None:
                raise unprepared()
            for _, vector in batch:
                check_vector(vector, identity.dimension)
            alive = [(chunk_id, vector) for chunk_id, vector in batch if chunk_id in self._contents.chunks]
            self._vectors().update(alive)
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
        """
        with self._contents.reading():
            identity = self.identity()
            if identity is None and self._bound:
                raise vectors_gone(self._bound)
            if identity is None:
                return []
            check_vector(vector, identity.dimension)
            self._check_here()
            query = array("f", vector)
            found = (
                Scored(chunk_id, min(1.0, sum(map(mul, query, array("f", stored)))))
                for chunk_id, stored in self._vectors().items()
                if self._contents.allows(filter, chunk_id)
            )
            return best(found, limit)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        with self._contents.reading():
            vectors = self._vectors()
            if vectors:
                self._check_here()
            return {i: vectors[i] for i in chunk_ids if i in vectors}

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._contents.changing():
            vectors = self._vectors()
            doomed = vectors.keys() & set(self._contents.chunk_ids(source_id))
            if doomed:
                self._check_here()
            for chunk_id in doomed:
                del vectors[chunk_id]
            return len(doomed)

    def _claim(self) -> None:
        """Keep vectors here, unless there are some elsewhere."""
        if self._contents.home:
            if any(held.vectors for held in self._contents.spaces.values()):
                self._check_here()
            self._contents.move_home("")

    def _check_here(self) -> None:
        if self._contents.home:
            raise kept_elsewhere(self._contents.home, "")

    def _vectors(self) -> dict[ChunkId, Vector]:
        identity = self.identity()
        return {} if identity is None else self._contents.spaces[identity].vectors


def _pending(chunk: Chunk, document: Document) -> Pending:
    return Pending(chunk.id, document.title, chunk.heading, chunk.text, embedded_tags(document))
