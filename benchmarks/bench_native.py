"""What `postgres.words = native` costs: right documents, and time, beside the blocks of postings.

    KB_BENCH_DATA=../shared/data python -m benchmarks native

Only words are looked for, without vectors and without what search does after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.development import folder, present
from benchmarks.measure import Row, absent, milliseconds, sized
from benchmarks.postgres_lab import server
from concord.core.config import load_settings
from concord.embed.hashing import HashingEmbedder
from concord.quality.collection import Collection, index_collection, read_collection
from concord.quality.metrics import measure
from concord.store.postgres.store import PostgresStore
from concord.text.cuts import ChunkSize
from concord.text.query_language import parse
from concord.types import Filter, silent

SETS = ("scifact", "datatalks-faq")
QUERIES = sized(300, 3)  # of each set
DEPTH = 50
NDCG = "nDCG@10"


def run() -> Iterator[Row]:
    """Yield how well and how fast both find documents by all words of a question, and by any."""
    chosen = present(SETS)
    if not chosen:
        yield absent("words by PostgreSQL's own means", f"no set in {folder()}")
        return
    settings = load_settings({}, {})
    with server() as url:
        for name in chosen:
            collection = read_collection(folder() / name, None).sampled(QUERIES)
            stores = {
                words: PostgresStore.open(url, name, load_settings({"postgres.words": words}, {}))
                for words in ("blocks", "native")
            }
            index_collection(
                collection, stores["blocks"], HashingEmbedder(settings, settings.paths), ChunkSize(), silent
            )
            for kind in ("exact", "loose"):
                found = {words: _searched(collection, store, kind) for words, store in stores.items()}
                for at, (what, form) in enumerate(((NDCG, "{:.3f}".format), ("median", milliseconds))):
                    native, blocks = found["native"][at], found["blocks"][at]
                    yield Row(f"{name}, {kind}: {what}", form(native), form(blocks), native / blocks)
            for store in stores.values():
                store.close()


def _searched(collection: Collection, store: PostgresStore, kind: str) -> tuple[float, float]:
    """Return how good and how fast searches are."""
    owners = {
        chunk.id: document.id
        for document in store.catalog.documents()
        for chunk in store.catalog.chunks(document.id)
    }
    ranked: dict[str, dict[str, float]] = {}
    took: list[float] = []
    for query, text in collection.judged.items():
        match = getattr(parse(text), kind)
        began = time.perf_counter()
        hits = store.words.search(match, Filter(), DEPTH) if match else []
        took.append(1000 * (time.perf_counter() - began))
        best: dict[str, float] = {}
        for hit in hits:
            best.setdefault(owners[hit.chunk_id], hit.score)
        ranked[query] = best
    return measure(collection.qrels, ranked, [NDCG])[NDCG], median(took)
