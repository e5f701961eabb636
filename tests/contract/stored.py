"""Things to store: sources, documents, pieces and vectors with sensible fields where a test does not care."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any

from concord.core.reports import Finding
from concord.store.contract import Store, TextHash, VectorIndex
from concord.types import ChunkId, Document, Filter, Identity, Piece, Source, Vector

EVERYTHING = Filter()
IDENTITY = Identity("test", "tiny", 4, "v1")


def source(id: str = "docs", **fields: Any) -> Source:
    """Return a folder whose id, name and prefix are the same."""
    return Source(**{"id": id, "name": id, "path": f"/{id}", "kind": "directory", "prefix": id} | fields)


def document(path: str = "docs/a.md", **fields: Any) -> Document:
    """Return a document whose id is its path, of the source that its path begins with."""
    known = {
        "id": path,
        "source_id": path.split("/")[0],
        "path": path,
        "type": "markdown",
        "title": "Untitled",
    }
    return Document(**known | fields)


def pieces(*texts: str | Piece) -> list[Piece]:
    """Return texts as pieces that follow each other, a line each."""
    found: list[Piece] = []
    start = 0
    for line, text in enumerate(texts, 1):
        if isinstance(text, str):
            text = Piece(text, start, start + len(text), line, line)
        found.append(text)
        start = text.end + 1
    return found


def put(store: Store, path: str, *texts: str | Piece, **fields: Any) -> list[ChunkId]:
    """Store a document made of these texts, and its source when there is none; return the chunk ids."""
    made = document(path, **fields)
    if made.source_id not in {known.id for known in store.catalog.snapshot().sources}:
        store.catalog.put_source(source(made.source_id))
    return store.catalog.put_documents([(made, pieces(*texts))])[0]


def faults(store: Store) -> list[Finding]:
    """Return what a store finds wrong with itself."""
    return store.check()


def unit(*numbers: float) -> Vector:
    """Return these numbers as a vector of length 1."""
    length = math.hypot(*numbers)
    return array("f", [number / length for number in numbers]).tobytes()


def active_model(store: Store) -> Identity | None:
    """Return which model searches use."""
    model = store.catalog.snapshot().active
    return model.identity if model else None


def file_of(store: Store) -> str:
    """Return the file that a store is kept in."""
    path = store.place.path
    assert path is not None
    return path


def vectors_of(store: Store) -> VectorIndex:
    """Return the index of the model that searches use; before the first, that of the tiny one."""
    return store.models.index(active_model(store) or IDENTITY)


def writing(store: Store, wait_s: float = 1) -> AbstractContextManager[None]:
    """Hold the right to change vectors that are kept outside."""
    return store.lock("vectors kept elsewhere", "changing the vectors", wait_s=wait_s)


def keyed(pairs: Iterable[tuple[ChunkId, Vector]]) -> Iterator[tuple[ChunkId, TextHash, Vector]]:
    """Give vectors keys of their own, as if each chunk had another text."""
    for chunk_id, vector in pairs:
        yield chunk_id, sha256(b"%d " % chunk_id + vector).digest(), vector


def embed(store: Store, pairs: Iterable[tuple[ChunkId, Vector]]) -> int:
    """Store vectors of the tiny model."""
    store.models.add(IDENTITY, {})
    return store.models.index(IDENTITY).put(keyed(pairs))
