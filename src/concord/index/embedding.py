"""Giving vectors to chunks: in small batches, each committed by itself, from the cache where possible.

An interrupted run loses the batch it was at. A text that the provider refuses stays without a vector, found
by words alone, and keeps nobody else from getting theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
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


def added(first: EmbeddingReport, then: EmbeddingReport) -> EmbeddingReport:
    """Return what embedding has done in two steps; what is left is what the second left."""
    return then._replace(
        embedded=first.embedded + then.embedded,
        reused=first.reused + then.reused,
        overflowed=first.overflowed + then.overflowed,
    )


class BatchVectors(NamedTuple):
    """The vectors of a batch of texts, and how many of them were not in the cache."""

    vectors: dict[bytes, Vector]  # by the key of the text
    made: int
    refused: str | None = None  # why some have none


def with_embedding(report: SyncReport, done: EmbeddingReport) -> SyncReport:
    """Add what embedding has done to the report of a sync."""
    return replace(
        report,
        embedded=done.embedded,
        reused=done.reused,
        pending=done.pending,
        degraded=done.degraded,
        overflowed=done.overflowed,
    )


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
            done = _count(done, len(batch), *_embed(batch, index, embedder))
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
        texts = sorted(((pending.chunk_id, embedded_text(pending)) for pending in window), key=_length)
        yield from batched(texts, EMBED_BATCH)


def embedded_text(pending: Pending) -> str:
    """Return what is embedded for a chunk."""
    return embeddable_text(pending.title, pending.heading, pending.text, pending.tags)


def _length(text: tuple[ChunkId, str]) -> int:
    return len(text[1])


def _embed(
    batch: Sequence[tuple[ChunkId, str]], index: VectorIndex, embedder: Embedder
) -> tuple[int, BatchVectors]:
    """Store a vector for each chunk of a batch; return how many were stored, and the vectors."""
    result = vectors_for((text for _, text in batch), index, embedder)
    keys = {chunk_id: text_key(text) for chunk_id, text in batch}
    made = result.vectors
    index.put((chunk_id, key, made[key]) for chunk_id, key in keys.items() if key in made)
    return sum(key in result.vectors for key in keys.values()), result


def _made(texts: dict[bytes, str], embedder: Embedder) -> tuple[dict[bytes, Vector], str | None]:
    try:
        made = embedder.embed_documents(list(texts.values()))
        _check_dimension(made, embedder)
        return dict(zip(texts, made, strict=True)), None
    except TextsRefused as fault:
        pairs = zip(texts, fault.vectors, strict=True)
        return {key: vector for key, vector in pairs if vector is not None}, fault.message


def _count(done: EmbeddingReport, size: int, having: int, batch: BatchVectors) -> EmbeddingReport:
    return done._replace(
        embedded=done.embedded + batch.made,
        reused=done.reused + having - batch.made,
        pending=max(0, done.pending - having),
        degraded=batch.refused or done.degraded,
        refused=done.refused + size - having,
    )


def _check_dimension(vectors: Iterable[Vector], embedder: Embedder) -> None:
    """Refuse vectors of another dimension before they reach the cache, which would keep them."""
    identity = embedder.identity
    for vector in vectors:
        if len(vector) != identity.dimension * FLOAT_BYTES:
            raise wrong_dimension(identity, len(vector) // FLOAT_BYTES)
