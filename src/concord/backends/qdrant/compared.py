"""Does Qdrant hold what a store has sent there, and nothing else? Ids are compared, not totals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from concord.core.batches import batched
from concord.types import ChunkId, Filter, Home, Identity

if TYPE_CHECKING:
    from concord.backends.qdrant.outside import QdrantOutsideVectors
    from concord.core.storage import Store

PAGE = 10_000  # ids in an answer: 400 kB
_EVERYTHING = Filter(include_superseded=True)


class Compared(Struct, frozen=True):
    """What the points of one space are like."""

    marked: int  # chunks whose vector Qdrant has acknowledged
    found: int  # of these
    strays: list[ChunkId]  # points of chunks that are not in the store, and that nobody waits to delete


def compare(outside: QdrantOutsideVectors, home: Home, identity: Identity) -> Compared:
    """Compare the points of a space with what the store knows of them.

    Raises:
        BackendDown: Qdrant does not answer.
    """
    store = outside.store
    marked = store.catalog.counts().chunks - store.spaces.of(identity).count_pending()
    there = set(_point_chunks(outside, home, identity))
    alive = {i for part in batched(there, PAGE) for i in store.ledger.allowed(part, _EVERYTHING)}
    doomed = {chunk_id for _, chunk_id in store.ledger.unsettled(sys.maxsize)}
    found = len(alive - _waiting(store, identity))
    return Compared(marked, min(found, marked), sorted(there - alive - doomed))


def _point_chunks(outside: QdrantOutsideVectors, home: Home, identity: Identity) -> Iterator[ChunkId]:
    from concord.backends.qdrant.points import chunk_of

    mine, offset = outside.owner(home, identity).mine(), None
    while True:
        with outside.collections.asking(identity.dimension) as (client, name):
            records, offset = client.scroll(
                name, mine, limit=PAGE, offset=offset, with_payload=False, with_vectors=False
            )
        yield from (chunk_of(record.id) for record in records)
        if offset is None:
            return


def _waiting(store: Store, identity: Identity) -> set[ChunkId]:
    """Return the chunks whose vector is still to come: what is there of them may be from before a crash."""
    space, after, found = store.spaces.of(identity), 0, set[ChunkId]()
    while window := space.pending(after, PAGE):
        after = window[-1].chunk_id
        found |= {waiting.chunk_id for waiting in window}
    return found
