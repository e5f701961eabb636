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
from benchmarks.postgres_lab import ORG, VECTORS, points, topic, widened
from benchmarks.synthetic import SEED, Floats, questions, unit_rows
from benchmarks.understood import understood
from concord.backends.postgres import lexical, vectors
from concord.backends.postgres.match import Relation
from concord.backends.postgres.store import PostgresStore
from concord.backends.postgres.vector_form import Embedding, register_vectors
from concord.embed.bundled import BundledEmbedder
from concord.knowledge import KnowledgeBase
from concord.search.understand import prune_limit
from concord.text.tokens import tokenize
from concord.types import Document, Filter, Identity, Piece, Source, Vector, silent

# Fewer than the library remembers the vectors of: both sides search with a vector that is there.
QUERIES = sized(40, 2)
RECALL_QUERIES = sized(200, 4)
LEAST_RECALL, MOST_SEARCH = 0.95, 1.5
CANDIDATES = 40

# Two topics far apart, one of them dense, and questions between: there a walk comes to the wrong one first.
BESIDE = sized(4_000, 100)  # vectors of each
WIDE, DENSE = 0.4, 0.1
NARROWER = 256  # dimensions: other vectors are in another table

# The keyword statement as PostgreSQL's own means have it, where no policy keeps it from its index, and the
# vector statement, with nothing around them.
_WORDS = """
CREATE TABLE bare_words AS SELECT id, words FROM kb_chunks;
CREATE INDEX ON bare_words USING gin (words);
ANALYZE bare_words"""
_RANKED = """
SELECT id, ts_rank_cd(words, %(query)s::tsquery) AS score FROM bare_words
WHERE words @@ %(query)s::tsquery ORDER BY score DESC LIMIT %(limit)s"""
_NEAREST = f"""
SELECT chunk, embedding <=> %(vector)s AS distance FROM {VECTORS}
WHERE org = %(org)s AND space = 1
ORDER BY embedding <=> %(vector)s LIMIT %(limit)s"""


def recall(store: PostgresStore, chunks: int) -> Row:
    """Compare what the vector index finds with what comparing all vectors does."""
    ids = np.arange(1, chunks + 1)
    stored = store.vectors.fetch(ids.tolist())
    matrix = np.frombuffer(b"".join(stored.values()), "<f4").reshape(chunks, -1)
    shares = [_share(store, matrix, query, 10) for query in points(RECALL_QUERIES, SEED + 1)]
    return _recall_row("against exact", chunks, mean(shares))


def _recall_row(how: str, chunks: int, share: float) -> Row:
    what = f"recall@10 of HNSW {how}, ef_search {vectors.EF_SEARCH}, {chunks:,} vectors"
    return Row(what, f"{share:.3f}", "", None, f"≥ {LEAST_RECALL:g}", share >= LEAST_RECALL)


def _share(store: PostgresStore, matrix: Floats, query: NDArray[np.float32], limit: int) -> float:
    """Return which share of the ten that are nearest is among so many that a search finds."""
    exact = set((np.argsort(-(matrix @ query))[:10] + 1).tolist())
    found = store.vectors.search(query.tobytes(), Filter(), limit, ef_search=vectors.EF_SEARCH)
    return len(exact & {scored.chunk_id for scored in found}) / 10


def recall_beside_others(url: str) -> Row:
    """Compare the same where another organisation has as many vectors about something else in the index."""
    own = topic(0, WIDE, BESIDE, 1)
    queries = _between(own, topic(1, DENSE, RECALL_QUERIES, 3))
    with closing(PostgresStore.open(url, "own")) as store, closing(PostgresStore.open(url, "other")) as other:
        _put(store, own)
        _put(other, topic(1, DENSE, BESIDE, 2))
        other.tend(silent)
        shares = [_share(store, widened(own, NARROWER), query, CANDIDATES) for query in queries]
    return _recall_row(f"beside {BESIDE:,} of another organisation", BESIDE, mean(shares))


def _between(own: Floats, others: Floats) -> Floats:
    """Return queries about some vectors that lie half way to others."""
    meant = own[np.random.default_rng(SEED).choice(len(own), len(others))]
    return widened(unit_rows((meant + 0.5 * others).astype("f8")), NARROWER)


def _put(store: PostgresStore, rows: Floats) -> None:
    """Store a chunk for each of these vectors."""
    source = Source("synthetic", "synthetic", None, "notes", "synthetic")
    store.catalog.put_source(source)
    store.vectors.prepare(Identity("bench", "narrower", NARROWER))
    pieces = [Piece(f"chunk {at}", at, at + 1, at + 1, at + 1) for at in range(len(rows))]
    ids = store.catalog.put_document(Document("d", "synthetic", "synthetic/d.md", "text", "Page"), pieces)
    store.vectors.put(
        (chunk_id, row.tobytes()) for chunk_id, row in zip(ids, widened(rows, NARROWER), strict=True)
    )


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
        register_vectors(self._connection)
        self._connection.execute("SELECT set_config('concord.org', %s, false)", (ORG,))
        self._connection.execute("SET jit = off; SET hnsw.ef_search = 64")
        (self._org,) = self._connection.execute("SELECT key FROM kb_orgs").fetchone() or (0,)
        self._connection.execute("DROP TABLE IF EXISTS bare_words")
        self._connection.execute(_WORDS)

    def ranked(self, text: str) -> None:
        """Run the keyword statement with PostgreSQL's own ranking, and the vector statement."""
        words = " | ".join(f"'{token}'" for word in _words(text, self._kb) for token in tokenize(word))
        self._connection.execute(_RANKED, {"query": words, "limit": CANDIDATES}).fetchall()
        self._nearest(text)

    def scored(self, text: str) -> None:
        """Run our own BM25 statement by hand, and the vector statement."""
        query = understood(self._kb, text)
        assert query.loose
        statement, values = lexical.best_of(Relation(query.loose), self._org, Filter(), CANDIDATES)
        self._connection.execute(statement, values).fetchall()
        self._nearest(text)

    def stored(self, text: str) -> None:
        """Have the store do the same as `scored`: what its pool, its policies and its checks add."""
        query = understood(self._kb, text)
        assert query.loose
        self._store.lexical.search(query.loose, Filter(), CANDIDATES)
        self._store.vectors.search(self._vector(text), Filter(), CANDIDATES)

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._store.close()

    def _nearest(self, text: str) -> None:
        vector = Embedding(self._vector(text))
        self._connection.execute(
            _NEAREST, {"vector": vector, "org": self._org, "limit": CANDIDATES}
        ).fetchall()

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
            bare.scored(text)
            bare.stored(text)
        turns = {name: count() for name in ("ours", "stored", "ranked", "scored")}

        def cost(name: str, work: Any) -> Cost:
            return cost_of(lambda: work(asked[next(turns[name]) % QUERIES]))

        costs = in_turn(
            QUERIES * 2,
            {
                "ours": lambda: cost("ours", kb.search),
                "stored": lambda: cost("stored", bare.stored),
                "ranked": lambda: cost("ranked", bare.ranked),
                "scored": lambda: cost("scored", bare.scored),
            },
        )
    ours = elapsed_ms(costs["ours"])
    for name, what in (("ranked", "ts_rank_cd and HNSW by hand"), ("scored", "our BM25 and HNSW by hand")):
        theirs = elapsed_ms(costs[name])
        row = f"search, {chunks:,} chunks, beside {what}"
        yield at_most(row, milliseconds(ours), milliseconds(theirs), ours / theirs, MOST_SEARCH)
    stored, theirs = elapsed_ms(costs["stored"]), elapsed_ms(costs["scored"])
    row = f"the store's two searches, {chunks:,} chunks, beside the same by hand"
    yield Row(row, milliseconds(stored), milliseconds(theirs), stored / theirs)
