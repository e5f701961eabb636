"""What is asked of vectors, in the store or outside it, and what texts are known by.

A comment stands above what it is about, or behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from concord.types import ChunkId, Filter, Identity, Json, Pending, Scored, Vector

TextHash = bytes  # SHA-256 of an embeddable text


class VectorIndex(Protocol):
    """Finds chunks by meaning. It is bound to one model, whichever is active."""

    def count_pending(self, source_id: str | None = None) -> int: ...  # chunks that have no vector

    # Returns chunks without a vector whose id is greater than `after`, in order of id.
    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]: ...
    def cached(self, keys: Sequence[TextHash]) -> dict[TextHash, Vector]: ...  # which count as hits
    def remember(self, vectors: Mapping[TextHash, Vector]) -> None: ...  # of texts that count as misses

    # Gives chunks their vectors; returns how many got one: chunks that are gone are skipped. Raises BadValue,
    # and stores nothing, if the model has not been added or a vector is not finite, not of length 1 or not of
    # the model's dimension; VectorsElsewhere if they are kept outside.
    def put(self, vectors: Iterable[tuple[ChunkId, TextHash, Vector]]) -> int: ...

    # Returns the nearest chunks by cosine similarity, nearest first; ties by chunk id. SQLite skips a
    # vector that a disk has changed. Raises ModelMismatch if the model has not been added, or no longer is.
    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]: ...
    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]: ...  # those that are intact

    # Takes the vectors of a source's chunks away, and deletes those that no other chunk uses; returns how
    # many chunks had one.
    def delete_source(self, source_id: str) -> int: ...


class Models(Protocol):
    """The models that vectors are kept of. At most one is active: searches use it, in every process."""

    def index(self, identity: Identity) -> VectorIndex: ...  # whether or not the model has been added yet

    # Adds a model without vectors, or replaces the recipe of one. The first becomes active.
    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None: ...
    def activate(self, identity: Identity) -> None: ...  # raises NotFound if it has not been added

    # Takes a model away; returns how many chunks had a vector of it. Its vectors stay as cache. Raises
    # NotFound if it has not been added, BadValue if it is the active one.
    def drop(self, identity: Identity) -> int: ...
