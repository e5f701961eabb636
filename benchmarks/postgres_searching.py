"""How well and how quickly PostgreSQL is searched, beside exact vectors and bare SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from statistics import mean
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.measure import Cost, Row, at_most, cost_of, elapsed_ms, in_turn, milliseconds, sized
from benchmarks.postgres_lab import ORG, VECTORS, points
from benchmarks.stored import vectors_of
from benchmarks.synthetic import SEED, Floats, questions
from benchmarks.understood import understood
from concord.embed.bundled import BundledEmbedder
from concord.knowledge import KnowledgeBase
from concord.search.understand import prune_limit
from concord.store.postgres import vectors
from concord.store.postgres.connections import schema_of
from concord.store.postgres.store import PostgresStore
from concord.store.postgres.vectors import Embedding
from concord.text.tokens import tokenize
from concord.types import Filter, Vector

# Fewer than the library remembers the vectors of: both sides search with a vector that is there.
QUERIES = sized(40, 2)
RECALL_QUERIES = sized(200, 4)
LEAST_RECALL, MOST_SEARCH = 0.95, 1.5
CANDIDATES = 40

# The keyword statement as PostgreSQL's own means have it, and the vector statement, with nothing around them.
_RANKED = """
SELECT chunk, ts_rank_cd(words, %(query)s::tsquery) AS score FROM kb_chunk_words
WHERE words @@ %(query)s::tsquery ORDER BY score DESC LIMIT %(limit)s"""
_NEAREST = f"""
SELECT id, embedding <=> %(vector)s::vector AS distance FROM {VECTORS}
ORDER BY embedding <=> %(vector)s::vector LIMIT %(limit)s"""


def recall(store: PostgresStore, chunks: int) -> Row:
    """Compare what the vector index finds with what comparing all vectors does."""
    ids = np.arange(1, chunks + 1)
    stored = vectors_of(store).fetch(ids.tolist())
    matrix = np.frombuffer(b"".join(stored.values()), "<f4").reshape(chunks, -1)
    shares = [_share(store, matrix, query, 10) for query in points(RECALL_QUERIES, SEED + 1)]
    return _recall_row("against exact", chunks, mean(shares))


def _recall_row(how: str, chunks: int, share: float) -> Row:
    what = f"recall@10 of HNSW {how}, ef_search {vectors.EF_SEARCH}, {chunks:,} vectors"
    return Row(what, f"{share:.3f}", "", None, f"≥ {LEAST_RECALL:g}", share >= LEAST_RECALL)


def _share(store: PostgresStore, matrix: Floats, query: NDArray[np.float32], limit: int) -> float:
    """Return which share of the ten that are nearest is among so many that a search finds."""
    exact = set((np.argsort(-(matrix @ query))[:10] + 1).tolist())
    found = vectors_of(store).search(query.tobytes(), Filter(), limit, ef_search=vectors.EF_SEARCH)
    return len(exact & {scored.chunk_id for scored in found}) / 10


class BareStatements:
    """Two statements by hand on one connection: words, then vectors."""

    def __init__(self, url: str, kb: KnowledgeBase) -> None:
        self._kb = kb
        # A store of its own: to those who share connections, a search's deadline is told to the server anew
        # after every search without one.
        self._store = PostgresStore.open(url, ORG, kb.settings)
        self._embedder = BundledEmbedder({}, kb.settings.paths)
        self._vectors: dict[str, Vector] = {}
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(f'SET search_path = "{schema_of(ORG)}", public')
        self._connection.execute("SET jit = off; SET hnsw.ef_search = 64")

    def ranked(self, text: str) -> None:
        """Run the keyword statement with PostgreSQL's own ranking, and the vector statement."""
        words = " | ".join(f"'{token}'" for word in _words(text, self._kb) for token in tokenize(word))
        self._connection.execute(_RANKED, {"query": words, "limit": CANDIDATES}).fetchall()
        self._nearest(text)

    def stored(self, text: str) -> None:
        """Have the store do the same, with its own ranking."""
        query = understood(self._kb, text)
        assert query.loose
        self._store.words.search(query.loose, Filter(), CANDIDATES)
        vectors_of(self._store).search(self._vector(text), Filter(), CANDIDATES)

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._store.close()

    def _nearest(self, text: str) -> None:
        vector = Embedding(self._vector(text))
        self._connection.execute(_NEAREST, {"vector": vector, "limit": CANDIDATES}).fetchall()

    def _vector(self, text: str) -> Vector:
        if text not in self._vectors:  # once, before anything is measured, as the library does
            self._vectors[text] = self._embedder.embed_query(text)
        return self._vectors[text]


def _words(text: str, kb: KnowledgeBase) -> list[str]:
    query = understood(kb, text)
    most = prune_limit(query.chunks, kb.settings["search.prune_share"])
    return [word for word in query.words if query.frequencies[word] <= most]


def searching(url: str, chunks: int) -> Iterator[Row]:
    """Ask the library, its store and bare statements the same questions, in turn."""
    asked = questions(QUERIES)
    with KnowledgeBase.open(store__url=url, org=ORG) as kb, closing(BareStatements(url, kb)) as bare:
        for text in asked * 6:  # every connection of the pool prepares its statements
            kb.search(text)
            bare.ranked(text)
            bare.stored(text)
        turns = {name: count() for name in ("ours", "stored", "ranked")}

        def cost(name: str, work: Any) -> Cost:
            return cost_of(lambda: work(asked[next(turns[name]) % QUERIES]))

        costs = in_turn(
            QUERIES * 2,
            {
                "ours": lambda: cost("ours", kb.search),
                "stored": lambda: cost("stored", bare.stored),
                "ranked": lambda: cost("ranked", bare.ranked),
            },
        )
    ours, stored, theirs = (elapsed_ms(costs[name]) for name in ("ours", "stored", "ranked"))
    row = f"search, {chunks:,} chunks, beside ts_rank_cd and HNSW by hand"
    yield at_most(row, milliseconds(ours), milliseconds(theirs), ours / theirs, MOST_SEARCH)
    row = f"the store's two searches, {chunks:,} chunks, beside the same"
    yield Row(row, milliseconds(stored), milliseconds(theirs), stored / theirs)
