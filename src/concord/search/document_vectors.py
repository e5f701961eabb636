"""Which documents are near? A document's vector is the mean of its chunks' vectors.

It is made from vectors that are stored anyway when it is asked for, so nothing has to be kept current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from concord.types import ChunkId, Filter, Vector

if TYPE_CHECKING:
    from concord.core.protocols import Similarity
    from concord.store.contract import Catalog, VectorIndex

MOST_CHUNKS = 64  # of a document, spread evenly: the mean of so many is that of all, near enough
NEAREST_CHUNKS = 60  # are looked at for near documents: a long one fills many places


def document_vectors(
    chunk_ids: Sequence[ChunkId], catalog: Catalog, index: VectorIndex | Similarity
) -> dict[str, Vector]:
    """Return the vectors of the documents that chunks are part of; none for one whose chunks have none."""
    import numpy as np

    chunks: dict[str, list[ChunkId]] = {}
    for chunk_id, document_id in catalog.siblings(chunk_ids).items():
        chunks.setdefault(document_id, []).append(chunk_id)
    some = {document_id: _spread(held) for document_id, held in chunks.items()}
    known = index.fetch([chunk_id for held in some.values() for chunk_id in held])
    found = {}
    for document_id, held in some.items():
        vectors = [np.frombuffer(known[chunk_id], dtype="<f4") for chunk_id in held if chunk_id in known]
        if vectors and (length := float(np.linalg.norm(mean := np.mean(vectors, axis=0)))):
            found[document_id] = (mean / length).astype("<f4").tobytes()
    return found


def nearest_documents(
    document_id: str, others: Sequence[str], catalog: Catalog, index: VectorIndex
) -> dict[str, float]:
    """Return the cosines of a document with others, and with those whose chunks are nearest to it."""
    first = _first_chunks([document_id, *others], catalog)
    own = document_vectors(first[:1], catalog, index).get(document_id)
    if own is None:
        return {}
    near = [row.chunk_id for row in index.search(own, Filter(), NEAREST_CHUNKS)]
    found = cosines(own, document_vectors([*near, *first[1:]], catalog, index))
    return {name: cosine for name, cosine in found.items() if name != document_id}


def cosines(query: Vector, vectors: Mapping[str, Vector]) -> dict[str, float]:
    """Return the cosines of a vector with others."""
    import numpy as np

    asked = np.frombuffer(query, dtype="<f4")
    return {name: float(asked @ np.frombuffer(vector, dtype="<f4")) for name, vector in vectors.items()}


def _first_chunks(document_ids: Sequence[str], catalog: Catalog) -> list[ChunkId]:
    return [chunk.id for document_id in document_ids for chunk in catalog.chunks(document_id)[:1]]


def _spread(chunk_ids: Sequence[ChunkId]) -> Sequence[ChunkId]:
    return chunk_ids[:: -(-len(chunk_ids) // MOST_CHUNKS)]
