"""Does another model find as much? Both search for known passages, with queries that should find them.

The queries are sentences from the passages themselves, or recorded queries with the path that answered them.
Only vectors are searched: words find the same whatever the model.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from concord.core.errors import BadValue
from concord.core.protocols import Embedder, Progress
from concord.store.contract import Catalog, VectorIndex, documents_at
from concord.text.cuts import sentence_starts
from concord.types import Chunk, ChunkId, Filter, Identity

QUERIES = 100  # so many tell a difference of 0.05 in mean reciprocal rank from chance, and take seconds
DEPTH = 10
_ONE_SIDED_95 = 1.645  # standard errors
_LEAST_WORDS, _MOST_WORDS = 5, 16  # a query as somebody who remembers the passage might type it


class KnownItem(NamedTuple):
    """A query, and the chunks any of which answers it."""

    query: str
    chunks: frozenset[ChunkId]


class ModelResult(NamedTuple):
    """What one model found."""

    identity: Identity
    mrr: float  # mean reciprocal rank among the first ten
    found: float  # share of queries whose passage is among them
    query_ms: float
    ranks: tuple[float, ...]  # the reciprocal rank of each query


class ModelComparison(NamedTuple):
    """Two models on the same queries."""

    before: ModelResult
    after: ModelResult

    @property
    def difference(self) -> float:
        """By how much the second finds more."""
        return self.after.mrr - self.before.mrr

    @property
    def is_worse(self) -> bool:
        """Whether the second finds less, by more than chance explains (paired, one-sided, 95 %)."""
        pairs = [b - a for a, b in zip(self.before.ranks, self.after.ranks, strict=True)]
        if not pairs:
            return False
        error = stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else 0.0
        return fmean(pairs) + _ONE_SIDED_95 * error < 0


class Contender(NamedTuple):
    """A model and its vectors."""

    embedder: Embedder
    vectors: VectorIndex


def compare(
    before: Contender, after: Contender, items: Sequence[KnownItem], progress: Progress
) -> ModelComparison:
    """Let two models look for the same passages."""
    total = 2 * len(items)
    return ModelComparison(
        _try(before, items, progress, 0, total), _try(after, items, progress, len(items), total)
    )


def known_items(catalog: Catalog) -> list[KnownItem]:
    """Return queries made from the corpus, always the same ones: from passages spread over all documents."""
    documents = [document.id for document in catalog.documents() if document.superseded_by is None]
    each = -(-QUERIES // max(1, len(documents)))  # of a few documents, several passages each
    step = max(1, len(documents) // QUERIES)
    items = [item for key in documents[::step] for item in _of_document(catalog.chunks(key), each)]
    return items[:QUERIES]


def recorded_items(path: Path, catalog: Catalog) -> list[KnownItem]:
    """Read queries from a file: a line each, `{"query": …, "path": …}`; paths that are gone are left out."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        pairs = [(str(row["query"]), str(row["path"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise BadValue(
            f"{path} cannot be read: {fault}", hint='a line each: {"query": "…", "path": "docs/auth.md"}'
        ) from fault
    found = ((query, _chunks_at(catalog, place)) for query, place in pairs)
    return [KnownItem(query, chunks) for query, chunks in found if chunks]


def _chunks_at(catalog: Catalog, path: str) -> frozenset[ChunkId]:
    documents = documents_at(catalog, path)
    return frozenset(chunk.id for document in documents for chunk in catalog.chunks(document.id))


def _of_document(chunks: Sequence[Chunk], wanted: int) -> Iterator[KnownItem]:
    step = max(1, len(chunks) // wanted)
    for at in range(step // 2, len(chunks), step):
        if query := _query(chunks[at].text):
            # Chunks overlap, so that a sentence may also stand in the one before or after.
            near = chunks[max(0, at - 1) : at + 2]
            yield KnownItem(query, frozenset(chunk.id for chunk in near))


def _query(text: str) -> str | None:
    """Return a sentence from the middle of a text, not too long; None where there is none."""
    edges = [0, *sentence_starts(text, 0, len(text)), len(text)]
    sentences = [text[start:end].split() for start, end in zip(edges, edges[1:], strict=False)]
    fit = [words for words in sentences if len(words) >= _LEAST_WORDS]
    return " ".join(fit[len(fit) // 2][:_MOST_WORDS]) if fit else None


def _try(
    contender: Contender, items: Sequence[KnownItem], progress: Progress, done: int, total: int
) -> ModelResult:
    ranks: list[float] = []
    started = time.perf_counter()
    for at, item in enumerate(items, 1):
        vector = contender.embedder.embed_query(item.query)
        ranks.append(_reciprocal_rank(contender.vectors, vector, item))
        progress("replay", done + at, total)
    count = max(1, len(items))
    return ModelResult(
        contender.embedder.identity,
        mrr=sum(ranks) / count,
        found=sum(rank > 0 for rank in ranks) / count,
        query_ms=(time.perf_counter() - started) * 1000 / count,
        ranks=tuple(ranks),
    )


def _reciprocal_rank(vectors: VectorIndex, vector: bytes, item: KnownItem) -> float:
    hits = vectors.search(vector, Filter(include_superseded=True), DEPTH)
    return next((1 / rank for rank, hit in enumerate(hits, 1) if hit.chunk_id in item.chunks), 0.0)
