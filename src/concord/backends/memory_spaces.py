"""Vectors of a memory store: a dictionary for each model, one of which searches use; and those of texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul

from concord.backends.shelves import Held, Shelves, best
from concord.backends.store_errors import (
    kept_elsewhere,
    space_in_use,
    unknown_space,
    unprepared,
    vectors_gone,
)
from concord.backends.vector_checks import check_identity, check_vector
from concord.outcomes import CacheUsage
from concord.text.assemble import embedded_tags
from concord.types import Chunk, ChunkId, Document, Filter, Identity, Json, Pending, Scored, Space, Vector


class MemoryVectors:
    """Chunks by meaning: those of an identity, or without one those of the space that is active."""

    def __init__(self, shelves: Shelves, identity: Identity | None = None) -> None:
        self._shelves = shelves
        self._bound = identity

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        with self._shelves.reading():
            if self._bound is None:
                return self._shelves.active
            return self._bound if self._bound in self._shelves.spaces else None

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
        """
        if self._bound:
            check_identity(self._bound, identity)
        with self._shelves.changing():
            if self.identity() == identity:
                return
            active = self._shelves.active
            if active is not None:
                if self._shelves.spaces[active].vectors:
                    check_identity(active, identity)
                del self._shelves.spaces[active]
            self._shelves.spaces.setdefault(identity, Held())
            self._shelves.activate(identity)

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        with self._shelves.reading():
            return len(set(self._shelves.chunk_ids(source_id)) - self._vectors().keys())

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        with self._shelves.reading():
            vectors = self._vectors()
            ids = [i for i in self._shelves.chunk_ids(source_id) if i > after and i not in vectors]
            chunks = [self._shelves.chunks[chunk_id] for chunk_id in ids[: max(limit, 0)]]
            return [_pending(chunk, self._shelves.documents[chunk.document_id]) for chunk in chunks]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors, all or none, replacing any of the same chunk; return how many."""
        batch = list(vectors)
        with self._shelves.changing():
            self._claim()
            identity = self.identity()
            if identity is None:
                raise unprepared()
            for _, vector in batch:
                check_vector(vector, identity.dimension)
            alive = [(chunk_id, vector) for chunk_id, vector in batch if chunk_id in self._shelves.chunks]
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
        with self._shelves.reading():
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
                if self._shelves.allows(filter, chunk_id)
            )
            return best(found, limit)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        with self._shelves.reading():
            vectors = self._vectors()
            if vectors:
                self._check_here()
            return {i: vectors[i] for i in chunk_ids if i in vectors}

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._shelves.changing():
            vectors = self._vectors()
            doomed = vectors.keys() & set(self._shelves.chunk_ids(source_id))
            if doomed:
                self._check_here()
            for chunk_id in doomed:
                del vectors[chunk_id]
            return len(doomed)

    def _claim(self) -> None:
        """Keep vectors here, unless there are some elsewhere."""
        if self._shelves.home:
            if any(held.vectors for held in self._shelves.spaces.values()):
                self._check_here()
            self._shelves.move_home("")

    def _check_here(self) -> None:
        if self._shelves.home:
            raise kept_elsewhere(self._shelves.home, "")

    def _vectors(self) -> dict[ChunkId, Vector]:
        identity = self.identity()
        return {} if identity is None else self._shelves.spaces[identity].vectors


def _pending(chunk: Chunk, document: Document) -> Pending:
    return Pending(chunk.id, document.title, chunk.heading, chunk.text, embedded_tags(document))


class MemorySpaces:
    """The spaces of one store."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        with self._shelves.reading():
            active, spaces = self._shelves.active, self._shelves.spaces
            return [
                Space(who, dict(held.recipe), who == active, held.was_active) for who, held in spaces.items()
            ]

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder."""
        return next((space for space in self.all() if space.is_active), None)

    def of(self, identity: Identity) -> MemoryVectors:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        return MemoryVectors(self._shelves, identity)

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; of one that is there, only the recipe is written anew."""
        with self._shelves.changing():
            self._shelves.spaces.setdefault(identity, Held()).recipe = dict(recipe)
            self._shelves.activate(self._shelves.active or identity)

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on.

        Raises:
            NotFound: there is no such space.
        """
        with self._shelves.changing():
            self._known(identity)
            self._shelves.activate(identity)

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
        """
        with self._shelves.changing():
            held = self._known(identity)
            if identity == self._shelves.active:
                raise space_in_use(identity)
            del self._shelves.spaces[identity]
            return len(held.vectors)

    def _known(self, identity: Identity) -> Held:
        if identity not in self._shelves.spaces:
            raise unknown_space(identity)
        return self._shelves.spaces[identity]


class MemoryCache:
    """Vectors by text, the least recently used first."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity."""
        with self._shelves.reading() as shelves:
            known = shelves.cached
            found = {key: known[identity, key] for key in keys if (identity, key) in known}
        if found:
            with self._shelves.changing() as shelves:
                shelves.cache_hits += len(found)
                self._use(identity, found)
        return found

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors; each was missed by somebody who looked for it."""
        if not vectors:
            return
        with self._shelves.changing() as shelves:
            shelves.cache_misses += len(vectors)
            self._use(identity, vectors)

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, the least recently used first."""
        with self._shelves.reading() as shelves:
            known = list(shelves.cached.items())
        yield from ((identity, key, vector) for (identity, key), vector in known)

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""
        with self._shelves.reading() as shelves:
            size = sum(map(len, shelves.cached.values()))
            return CacheUsage(len(shelves.cached), size, shelves.cache_hits, shelves.cache_misses)

    def trim(self, max_bytes: int) -> int:
        """Forget the least recently used until the vectors fit; return how many were forgotten."""
        if self.usage().size_bytes <= max_bytes:
            return 0
        with self._shelves.changing() as shelves:
            before, size = len(shelves.cached), sum(map(len, shelves.cached.values()))
            while size > max_bytes:
                size -= len(shelves.cached.pop(next(iter(shelves.cached))))
            return before - len(shelves.cached)

    def _use(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        known = self._shelves.cached
        for key, vector in vectors.items():
            known.pop((identity, key), None)
            known[identity, key] = vector
