"""Filling one store as another is filled, vectors and all: what took long to embed is embedded once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import astuple, replace

from benchmarks.stored import active_model, keyed, vectors_of
from concord.store.contract import Store
from concord.types import Chunk, Document, Piece

DOCUMENTS = 500  # copied at once


def copy_store(origin: Store, target: Store, prefix: str = "") -> None:
    """Store what another store holds; a prefix keeps apart what several stores have under one name."""
    copy_documents(origin.catalog.documents(), origin, target, prefix)


def copy_documents(documents: Iterable[Document], origin: Store, target: Store, prefix: str = "") -> None:
    """Store documents that another store holds, in the order of their chunks: ties go to the first."""
    identity = active_model(origin)
    if identity is None:
        return
    for source in origin.catalog.snapshot().sources:
        target.catalog.put_source(replace(source, id=prefix + source.id))
    target.models.add(identity, {})
    stored = ((document, origin.catalog.chunks(document.id)) for document in documents)
    ordered = sorted(stored, key=lambda pair: pair[1][0].id if pair[1] else 0)
    for start in range(0, len(ordered), DOCUMENTS):
        _copy(ordered[start : start + DOCUMENTS], origin, target, prefix)


def _copy(
    group: Sequence[tuple[Document, Sequence[Chunk]]], origin: Store, target: Store, prefix: str
) -> None:
    target.catalog.put_documents(
        (
            replace(one, id=prefix + one.id, source_id=prefix + one.source_id),
            [Piece(*astuple(chunk)[3:]) for chunk in chunks],
        )
        for one, chunks in group
    )
    old = [chunk.id for _, chunks in group for chunk in chunks]
    new = [waiting.chunk_id for waiting in vectors_of(target).pending(0, len(old))]
    known = vectors_of(origin).fetch(old)
    vectors_of(target).put(keyed((chunk_id, known[was]) for chunk_id, was in zip(new, old, strict=True)))
