"""What benchmarks do with a store past the knowledge base: its active model's vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from concord.store.contract import Store, TextHash, VectorIndex
from concord.types import ChunkId, Identity, Vector


def active_model(store: Store) -> Identity | None:
    """Return which model searches use."""
    model = store.catalog.snapshot().active
    return model.identity if model else None


def vectors_of(store: Store) -> VectorIndex:
    """Return the index of the model that searches use."""
    identity = active_model(store)
    assert identity is not None
    return store.models.index(identity)


def keyed(pairs: Iterable[tuple[ChunkId, Vector]]) -> Iterator[tuple[ChunkId, TextHash, Vector]]:
    """Give vectors keys of their own, as if each chunk had another text."""
    for chunk_id, vector in pairs:
        yield chunk_id, sha256(b"%d " % chunk_id + vector).digest(), vector
