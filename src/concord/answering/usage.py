"""Counts which documents are read, and lifts those read often a little: only if `usage.enabled` says so."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from concord.errors import BackendDown, StoreBusy
from concord.ranking.usage import habit, lifted
from concord.types import Access, ChunkId, Json, Ranked, Survivor

if TYPE_CHECKING:
    from concord.storage import Journal, Store


class UsageLift(NamedTuple):
    """The order after the lift, and the arithmetic of the lift by chunk."""

    ranked: list[Ranked]
    reasons: Mapping[ChunkId, Json]


def lift_by_usage(survivors: Sequence[Survivor], store: Store) -> UsageLift:
    """Lift chunks of documents that were read lately and often."""
    ranked = [survivor.ranked for survivor in survivors]
    known = store.journal.accesses(list({survivor.document.id for survivor in survivors}))
    now = time.time()
    of_chunk = {s.chunk.id: known[s.document.id] for s in survivors if s.document.id in known}
    habits = {chunk_id: habit(access, now) for chunk_id, access in of_chunk.items()}
    after = lifted(ranked, habits)
    scores = {one.chunk_id: one.score for one in ranked}
    added = {one.chunk_id: one.score - scores[one.chunk_id] for one in after}
    return UsageLift(after, {i: _reason(of_chunk[i], habits[i], added[i]) for i in habits})


def record_reading(document_id: str, journal: Journal) -> None:
    """Count that a document was read."""
    with suppress(StoreBusy, BackendDown):  # reading must not fail because counting does
        journal.record_access([document_id], time.time())


def _reason(access: Access, strength: float, added: float) -> Json:
    return {"times": access.times, "last_at": access.last_at, "habit": strength, "added": added}
