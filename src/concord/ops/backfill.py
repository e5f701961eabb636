"""Indexing anew what is stored, without reading a file: words as extracted now, vectors from the cache.

For after an upgrade that changes what is indexed of a document, or a rename that changed a title. Everything
is compared first and only what differs is written, in small transactions, so searches go on, and a run that
was interrupted has less to do the next time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from concord.core.batches import batched
from concord.core.errors import Unavailable
from concord.core.protocols import Embedder, Progress
from concord.index.documents import WHOLE_DOCUMENTS
from concord.index.embedding import EMBED_BATCH, ready_index, text_key, vectors_for
from concord.index.links import find_mentions
from concord.index.notes import NoteTools, kept_notes, store_notes
from concord.store.contract import Catalog, Store, VectorIndex
from concord.text.document import embeddable_text, embedded_tags
from concord.types import ChunkId, Document, silent


class _Labels(NamedTuple):
    title: str
    tags: tuple[str, ...]  # only a note's


class Backfill(NamedTuple):
    """What indexing anew has changed, in chunks."""

    documents: int = 0
    notes: int = 0  # notes whose text came out different
    chunks: int = 0
    reworded: int = 0  # chunks whose words are indexed differently now
    unchanged: int = 0  # chunks whose vector was right
    reused: int = 0  # chunks whose vector came from the cache
    embedded: int = 0  # chunks whose vector had to be made
    pending: int = 0  # chunks that have no vector still
    degraded: str | None = None
    took_s: float = 0.0


def backfill(tools: NoteTools, embedder: Embedder | None, progress: Progress) -> Backfill:
    """Index anew what today's version would index differently.

    If the provider is down, vectors that are not in the cache are left for the next time.
    """
    started = time.monotonic()
    notes = _renewed_notes(tools)
    store, labels = (
        tools.store,
        {document.id: _labels(document) for document in tools.store.catalog.documents()},
    )
    done = Backfill(documents=len(labels), notes=notes, chunks=store.catalog.count().chunks)
    done = done._replace(reworded=_reindex_words(store.catalog, list(labels), progress))
    store.links.await_all()
    find_mentions(store, progress)
    if embedder is None:
        done = done._replace(degraded="no embedding provider is configured")
    else:
        done = _reindex_vectors(store, embedder, labels, done, progress)
    counts = store.catalog.count()
    return done._replace(pending=counts.chunks - counts.vectors, took_s=time.monotonic() - started)


def renew(tools: NoteTools) -> None:
    """Make notes from their fields again, and words and names of all chunks from their text."""
    _renewed_notes(tools)
    _reindex_words(tools.store.catalog, [document.id for document in tools.store.catalog.documents()], silent)


def _renewed_notes(tools: NoteTools) -> int:
    """Make the text of every note from its fields again; return how many notes have changed by that."""
    return sum(store_notes([kept], tools).changed for kept in list(kept_notes(tools.store.catalog)))


def _labels(document: Document) -> _Labels:
    return _Labels(document.title, embedded_tags(document))


def _reindex_words(catalog: Catalog, document_ids: list[str], progress: Progress) -> int:
    changed = done = 0
    for group in batched(document_ids, WHOLE_DOCUMENTS):
        changed += catalog.reindex_words(group)
        done += len(group)
        progress("words", done, len(document_ids))
    return changed


def _reindex_vectors(
    store: Store, embedder: Embedder, labels: Mapping[str, _Labels], done: Backfill, progress: Progress
) -> Backfill:
    seen = 0
    try:
        index = ready_index(store, embedder.identity)
        for texts in batched(_texts(store.catalog, labels), EMBED_BATCH):
            done = _revector(dict(texts), index, embedder, done)
            seen += len(texts)
            progress("vectors", seen, done.chunks)
    except Unavailable as fault:
        done = done._replace(degraded=fault.message)
    return done


def _texts(catalog: Catalog, labels: Mapping[str, _Labels]) -> Iterator[tuple[ChunkId, str]]:
    for document_id, (title, tags) in labels.items():
        for chunk in catalog.chunks(document_id):
            yield chunk.id, embeddable_text(title, chunk.heading, chunk.text, tags)


def _revector(
    texts: Mapping[ChunkId, str], index: VectorIndex, embedder: Embedder, done: Backfill
) -> Backfill:
    stored = index.fetch(list(texts))
    result = vectors_for(texts.values(), index, embedder)
    keys = ((chunk_id, text_key(text)) for chunk_id, text in texts.items())
    wanted = [(chunk_id, key, result.vectors[key]) for chunk_id, key in keys if key in result.vectors]
    differing = [row for row in wanted if stored.get(row[0]) != row[2]]
    if differing:
        index.put(differing)
    return done._replace(
        unchanged=done.unchanged + len(wanted) - len(differing),
        reused=done.reused + max(0, len(differing) - result.made),
        embedded=done.embedded + result.made,
        degraded=result.refused or done.degraded,
    )
