"""Giving vectors to chunks: in small batches, each committed by itself, from the cache where possible.

An interrupted run loses the batch it was at. A text that the provider refuses stays without a vector, found
by words alone, and keeps nobody else from getting theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import (
    Action,
    Hint,
    ModelMismatch,
    StoreError,
    TextsRefused,
    Unavailable,
    wrong_dimension,
)
from concord.core.protocols import Embedder, Progress
from concord.core.reports import SyncReport
from concord.store.contract import Store, VectorIndex
from concord.text.document import embeddable_text
from concord.types import FLOAT_BYTES, ChunkId, Identity, Pending, Vector

EMBED_WINDOW = 2048  # chunks sorted by length together, so that a batch wastes little on padding
EMBED_BATCH = 64  # chunks embedded and committed together: what an interruption loses at most


class EmbeddingReport(NamedTuple):
    """What embedding the pending chunks has done."""

    embedded: int = 0
    reused: int = 0
    pending: int = 0
    degraded: str | None = None
    refused: int = 0  # of the pending: texts that the provider will not have
    overflowed: int = 0  # texts longer than the model's window, which were embedded in parts

    def followed_by(self, then: EmbeddingReport) -> EmbeddingReport:
        """Return what embedding has done in two steps; what is left is what the second left."""
        return then._replace(
            embedded=self.embedded + then.embedded,
            reused=self.reused + then.reused,
            overflowed=self.overflowed + then.overflowed,
        )


class BatchVectors(NamedTuple):
    """The vectors of a batch of texts, and how many of them were not in the cache."""

    vectors: dict[bytes, Vector]  # by the key of the text
    made: int
    refused: str | None = None  # why some have none


def with_embedding(report: SyncReport, done: EmbeddingReport) -> SyncReport:
    """Add what embedding has done to the report of a sync."""
    counts = done._asdict()
    del counts["refused"]
    return replace(report, **counts)


def text_key(text: str) -> bytes:
    """Return the key under which the vector of a text is cached."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def embed_pending(
    store: Store, embedder: Embedder | None, progress: Progress, *, source_id: str | None = None
) -> EmbeddingReport:
    """Give a vector to every chunk that has none; after a fault, the rest waits for the next time.

    A fault is a provider or vector store that is down, or a store that refuses vectors. It is reported, not
    raised: the texts are stored already, and a caller who met an error would store them twice.
    """
    counts = store.catalog.count(source_id)  # the catalog knows even while a vector store is down
    pending = counts.chunks - counts.vectors
    if embedder is None or pending <= 0:
        return EmbeddingReport(pending=pending)
    try:
        return embed_by_model(store, embedder, progress, source_id=source_id, pending=pending)
    except ModelMismatch:
        raise
    except StoreError as fault:
        return EmbeddingReport(pending=pending, degraded=fault.message)


def embed_by_model(
    store: Store,
    embedder: Embedder,
    progress: Progress,
    *,
    source_id: str | None = None,
    pending: int | None = None,
) -> EmbeddingReport:
    """Give every chunk a vector of this embedder that has none yet, whichever model is active."""
    done, overflowed = EmbeddingReport(pending=pending or 0), embedder.overflowed
    try:
        index = ready_index(store, embedder.identity)
        done = done._replace(pending=index.count_pending(source_id))
        for batch in _batches(index, source_id):
            keys = {chunk_id: text_key(text) for chunk_id, text in batch}
            vectors, made, refused = vectors_for((text for _, text in batch), index, embedder)
            given = [(chunk_id, key, vectors[key]) for chunk_id, key in keys.items() if key in vectors]
            index.put(given)
            done = done._replace(
                embedded=done.embedded + made,
                reused=done.reused + len(given) - made,
                pending=max(0, done.pending - len(given)),
                degraded=refused or done.degraded,
                refused=done.refused + len(batch) - len(given),
            )
            finished = done.embedded + done.reused
            progress("embed", finished, finished + done.pending)
        if done.pending:  # unless another process has given them theirs meanwhile
            done = done._replace(pending=index.count_pending(source_id))
    except Unavailable as fault:
        done = done._replace(degraded=fault.message)
    return done._replace(overflowed=embedder.overflowed - overflowed)


def ready_index(store: Store, identity: Identity) -> VectorIndex:
    """Return the index of a model, which is added if it is the first or if the active one has no vectors."""
    snapshot = store.catalog.snapshot()
    active, added = snapshot.active, {model.identity: model.recipe for model in snapshot.models}
    if active and identity not in added and store.catalog.count().vectors:
        raise ModelMismatch(
            f"the index holds vectors of {_described(active.identity)}, not of {_described(identity)}",
            hint=Hint(
                Action.MODELS_ADD,
                "choose that model again, or build the new one's vectors beside them: {models_add}",
            ),
        )
    store.models.add(identity, added.get(identity, {}))  # also if it is known: a server may have lost it
    if active and identity not in added:
        store.models.activate(identity)
        store.models.drop(active.identity)
    return store.models.index(identity)


def _described(identity: Identity) -> str:
    return f"{identity.provider}/{identity.model} ({identity.dimension} dimensions)"


def vectors_for(texts: Iterable[str], index: VectorIndex, embedder: Embedder) -> BatchVectors:
    """Return the vectors of texts by their keys, making and caching those that are not known."""
    wanted = {text_key(text): text for text in texts}
    known = index.cached(list(wanted))
    fresh = {key: text for key, text in wanted.items() if key not in known}
    made, refused = _made(fresh, embedder) if fresh else ({}, None)
    index.remember(made)
    return BatchVectors({**known, **made}, len(made), refused)


def _batches(index: VectorIndex, source_id: str | None) -> Iterator[list[tuple[ChunkId, str]]]:
    """Yield the pending chunks with their embeddable texts, texts of like length together."""
    after = 0
    while window := index.pending(after, EMBED_WINDOW, source_id):
        after = window[-1].chunk_id
        texts = [(pending.chunk_id, embedded_text(pending)) for pending in window]
        yield from batched(sorted(texts, key=lambda given: len(given[1])), EMBED_BATCH)


def embedded_text(pending: Pending) -> str:
    """Return what is embedded for a chunk."""
    return embeddable_text(pending.title, pending.heading, pending.text, pending.tags)


def _made(texts: dict[bytes, str], embedder: Embedder) -> tuple[dict[bytes, Vector], str | None]:
    """Return the vectors of texts, and why some have none; one of another dimension reaches no cache."""
    try:
        made = embedder.embed_documents(list(texts.values()))
    except TextsRefused as fault:
        pairs = zip(texts, fault.vectors, strict=True)
        return {key: vector for key, vector in pairs if vector is not None}, fault.message
    for vector in made:
        if len(vector) != embedder.identity.dimension * FLOAT_BYTES:
            raise wrong_dimension(embedder.identity, len(vector) // FLOAT_BYTES)
    return dict(zip(texts, made, strict=True)), None
