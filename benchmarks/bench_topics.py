"""Several collections in one vector index: does a walk through its graph find the topic that was asked about?

    KB_BENCH_DATA=../shared/data python -m benchmarks topics

A graph is walked from one place, and where topics lie far apart, the walk may end in the wrong one; what
words find tells that it has, and then it is walked again with more effort (`search/scores.py`). Measured are
the ten nearest: by a walk alone, and by a search. Each time the graph is built, chance has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

import numpy as np

from benchmarks.copying import copy_store
from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent
from benchmarks.stored import vectors_of
from benchmarks.synthetic import Floats
from concord.knowledge import KnowledgeBase
from concord.quality.collection import read_collection
from concord.quality.evaluate import ask_one
from concord.search.setup import Searching
from concord.types import ChunkId, Filter, Request, silent

SETS = ("scifact", "cosqa-dev", "datatalks-faq", "cranfield")
QUERIES = 100  # of each set
BUILDS = 3
EXACT = 10
CANDIDATES = 40
LEAST = 0.95


def run() -> Iterator[Row]:
    """Fill a store with all sets, build its index several times, and compare what is found."""
    chosen = present(SETS)
    try:
        from benchmarks.postgres_lab import server
    except ImportError as fault:
        yield absent("topics in one index", str(fault))
        return
    if not chosen:
        yield absent("topics in one index", f"no set in {folder()}")
        return
    with server() as url, KnowledgeBase.open(store__url=url, org="topics") as kb:
        queries = _fill(kb, chosen)
        matrix = _Matrix(kb)
        for build in range(1, BUILDS + 1):
            _build_anew(url, kb)
            for name, texts in queries.items():
                yield from _rows(f"{name}, build {build}", texts, kb, matrix)


def _fill(kb: KnowledgeBase, names: Sequence[str]) -> dict[str, list[str]]:
    """Store one collection after the other, as folders are added, and return their queries."""
    queries = {}
    with opened() as knowledge:
        for name in names:
            collection = read_collection(folder() / name, None).sampled(QUERIES)
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                copy_store(tools.store, kb.store, prefix=f"{name}-")
            queries[name] = list(collection.judged.values())
    return queries


def _build_anew(url: str, kb: KnowledgeBase) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'kb\\_vectors%hnsw'")
        for (name,) in found.fetchall():
            connection.execute(f"DROP INDEX {name}")
    kb.store.maintain(silent)


class _Matrix:
    """Every vector of a store."""

    def __init__(self, kb: KnowledgeBase) -> None:
        documents = kb.store.catalog.documents()
        ids = [chunk.id for document in documents for chunk in kb.store.catalog.chunks(document.id)]
        stored = vectors_of(kb.store).fetch(ids)
        self._ids = list(stored)
        self._rows: Floats = np.frombuffer(b"".join(stored.values()), "<f4").reshape(len(stored), -1)

    def nearest(self, vector: bytes) -> set[ChunkId]:
        """Return the chunks that are nearest, each of them compared."""
        near = self._rows @ np.frombuffer(vector, "<f4")
        return {self._ids[at] for at in np.argsort(-near)[:EXACT]}


def _rows(what: str, texts: Sequence[str], kb: KnowledgeBase, matrix: _Matrix) -> Iterator[Row]:
    assert kb.embedder is not None
    tools = Searching(kb.parts).tools(Request("", mode="auto"), wait_for_model=True)
    walked, searched = list[float](), list[float]()
    for text in texts:
        vector = kb.embedder.embed_query(text)
        nearest = matrix.nearest(vector)
        walk = {hit.chunk_id for hit in vectors_of(kb.store).search(vector, Filter(), CANDIDATES)}
        rows = ask_one(text, tools).candidates.rows
        near = {row.chunk_id for row in rows if row.semantic_rank}
        walked.append(len(walk & nearest) / EXACT)
        searched.append(len(near & nearest) / EXACT)
    ours, alone = mean(searched), mean(walked)
    yield Row(
        f"{what}: recall@{EXACT} of a search, beside a walk alone",
        f"{ours:.3f}",
        f"{alone:.3f}",
        None,
        f"≥ {LEAST:g}",
        ours >= LEAST,
    )
