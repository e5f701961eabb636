"""What the pipelines need of vectors: an index of them, one space a model, and those kept outside the store.

Structural, as `protocols` is: having the methods is implementing the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from concord.core.reports import Finding
from concord.types import ChunkId, Filter, Home, Identity, Json, Pending, Scored, Space, Vector


class VectorIndex(Protocol):
    """Finds chunks by meaning, in one space. Derived: everything here can be rebuilt from the catalog.

    There are two kinds. `Store.vectors` is the active space, whichever that is at each call.
    `VectorSpaces.of` returns an index that is bound to one identity, whatever becomes active meanwhile: use
    this kind to store or search vectors of a given embedder.
    """

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first, or when the space is not there."""
        ...

    def prepare(self, identity: Identity) -> None:
        """Make the index ready for vectors of this identity; the first space becomes the active one.

        A space made by `VectorSpaces.add` is ready already. An active space without a single vector is given
        to the new identity.

        Raises:
            ModelMismatch: vectors of another identity are stored, or the index is bound to another.
        """
        ...

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        ...

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id.

        Those of documents of type note come with their tags, which are embedded with a note's text.
        """
        ...

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many.

        Chunks that were deleted meanwhile are skipped. Vectors that are not finite, not of length 1 or not of
        the prepared dimension are refused with BadValue.
        """
        ...

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

        The space is chosen in the transaction or snapshot that searches it. With `with_vectors` the vectors
        of the chunks may come along, where that spares a request.

        Raises:
            ModelMismatch: the index is bound to a space that does not exist, or no longer.
        """
        ...

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        ...

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        ...


class VectorSpaces(Protocol):
    """The spaces of a store: one for each model whose vectors are kept. At most one is active.

    Deleting chunks deletes their vectors in every space, and new chunks wait for a vector in every space.
    Switching is one transaction; no vector moves, so going back is as quick.
    """

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        ...

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder. Asked at every search."""
        ...

    def of(self, identity: Identity) -> VectorIndex:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        ...

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; if it is there already, only its recipe is replaced.

        The first one becomes active.
        """
        ...

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on, in every process.

        Raises:
            NotFound: there is no such space.
        """
        ...

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
        """
        ...


class OutsideVectors(Protocol):
    """The vectors of a store that keeps them outside, in all its spaces. The store knows which these are."""

    @property
    def home(self) -> str:
        """Where they are: the URL that a ledger keeps."""
        ...

    @property
    def vectors(self) -> VectorIndex:
        """Chunks by meaning, in the active space."""
        ...

    @property
    def spaces(self) -> VectorSpaces:
        """The spaces of vectors, one a model."""
        ...

    def warm(self) -> None:
        """Load the client, which takes long; the server is not asked for anything."""
        ...

    def reach(self, dimension: int) -> None:
        """Check that vectors of this dimension could be kept there.

        Raises:
            BackendDown: the server does not answer.
        """
        ...

    def tend(self) -> None:
        """Tell the vector store outside what has changed in the catalog; if it is down, do so next time."""
        ...

    def sweep(self) -> None:
        """Delete vectors of chunks that the store no longer knows, as after an older backup was restored.

        Raises:
            BackendDown: the server does not answer.
        """
        ...

    def clear(self, key: str) -> None:
        """Delete all vectors that were sent there under a key, in every space.

        Raises:
            BackendDown: the server does not answer.
        """
        ...

    def check(self) -> list[Finding]:
        """Look for faults that only show outside; that the server does not answer is a finding, too."""
        ...

    def close(self) -> None:
        """Free connections."""
        ...


class Ledger(Protocol):
    """What a store writes down about its vectors outside, so that none is lost or left behind.

    A chunk that is not marked here counts as one without a vector, in `VectorIndex.pending` and
    `Catalog.counts`.
    """

    def home(self) -> Home:
        """Return where the vectors are kept."""
        ...

    def is_empty(self) -> bool:
        """Whether no chunk has a vector in any space, wherever they are kept."""
        ...

    def move(self, url: str) -> None:
        """Keep vectors at this URL from now on: all chunks are pending in all spaces, no change is unsettled.

        The home until now is written down as left. The new home gets a new key, so that old vectors are never
        taken for new ones, even if both homes are the same place. So does a copy of a store: the vectors sent
        so far belong to its original.
        """
        ...

    def own(self) -> Home:
        """Return where the vectors are kept, making sure that the key is this store's own.

        A copy of a store gets a new key, as by `move` to the same home. A key from before keys had owners
        becomes this store's own.
        """
        ...

    def left(self) -> list[Home]:
        """Return the homes that were moved away from and still hold vectors, the oldest first.

        Those that a copied store has taken over from its original are marked as another's.
        """
        ...

    def forget(self, home: Home) -> None:
        """Take note that no vector of this store is left there."""
        ...

    def mark(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Take note that the vectors of chunks are stored outside; chunks that are gone are skipped."""
        ...

    def unmark(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again in one space; return how many were marked."""
        ...

    def unsettled(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes since `move` that the vector store outside has not been told of.

        A change is a chunk that was deleted, or whose place or document has changed. Each has a number; a
        chunk that changes again gets a new one.
        """
        ...

    def settle(self, turns: Sequence[int]) -> None:
        """Take note that the vector store outside has been told of the changes with these numbers."""
        ...

    def allowed(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> set[ChunkId]:
        """Return those of the chunks that exist and that a filter lets through."""
        ...

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the ids of the documents that a filter lets through; None when they are more than `most`."""
        ...

    def exclusive(self, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to change what is kept outside, across processes; it is freed when the holder dies.

        Raises:
            StoreBusy: another process holds it for longer than `wait_s`.
        """
        ...
