"""The same answers from every backend: PostgreSQL, Qdrant, memory and JSON, each beside SQLite.

    KB_BENCH_DATA=../shared/data python -m benchmarks backends

Documents are embedded once, for SQLite, and the others get the same chunks and vectors. Where a server is
needed, it is the tests' own, or that of KB_BENCH_POSTGRES_URL (an empty database) or KB_TEST_QDRANT_URL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from secrets import token_hex
from statistics import mean
from tempfile import TemporaryDirectory

from benchmarks.copying import copy_store
from benchmarks.development import QUERIES, folder, opened
from benchmarks.measure import Row, absent
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import MODES, Evaluation, evaluate
from concord.search.setup import Searching
from concord.store.contract import Store
from concord.types import Request, silent

NAME = "scifact"
LEAST_OVERLAP, MOST_APART = 0.9, 0.01
Options = Mapping[str, str]


def run() -> Iterator[Row]:
    """Ask SQLite, then each of the others, and compare."""
    place = folder() / NAME
    if not (place / "corpus.jsonl").is_file():
        yield absent(f"the same answers as SQLite ({NAME})", f"no {NAME} in {folder()} (KB_BENCH_DATA)")
        return
    limit = int(os.environ.get("KB_BENCH_QUERIES", QUERIES))
    collection = read_collection(place, None).sampled(limit)
    with opened() as kb, kb.measuring.indexed_apart(collection, silent) as tools:
        expected = evaluate(collection, tools, silent)
        for name, lent in BACKENDS.items():
            yield from _compared(name, lent, collection, tools.store, expected)


@contextmanager
def _postgresql() -> Iterator[Options]:
    from benchmarks.postgres_lab import server

    with server() as url:
        yield {"store__url": url, "org": NAME}


@contextmanager
def _qdrant() -> Iterator[Options]:
    import qdrant_client  # noqa: F401

    from benchmarks.qdrant_lab import server

    with server() as url, TemporaryDirectory() as place:
        collection = f"bench_{token_hex(8)}"
        yield {"store__url": f"sqlite://{place}", "vectors__url": url, "vectors__collection": collection}


@contextmanager
def _memory() -> Iterator[Options]:
    yield {"store__url": "memory://"}


@contextmanager
def _json() -> Iterator[Options]:
    with TemporaryDirectory() as place:
        yield {"store__url": f"json://{place}"}


Lent = Callable[[], AbstractContextManager[Options]]
BACKENDS: Mapping[str, Lent] = {
    "PostgreSQL": _postgresql,
    "Qdrant": _qdrant,
    "memory": _memory,
    "JSON": _json,
}


def _compared(
    name: str, lent: Lent, collection: Collection, origin: Store, expected: Evaluation
) -> Iterator[Row]:
    """Fill a store as another is filled, ask it the same, and yield how far both agree."""
    try:
        with lent() as options, KnowledgeBase.open(**options) as kb:
            copy_store(origin, kb.store)
            kb.store.maintain(silent)
            tools = Searching(kb.parts).tools(Request("", mode="auto"), wait_for_model=True)
            found = evaluate(collection, tools, silent)
    except ImportError as fault:
        yield absent(f"{NAME}, {name}", str(fault))
        return
    for mode in MODES:
        yield from _agreement(f"{NAME}, {name}, {mode}", list(collection.judged), mode, expected, found)


def _agreement(
    what: str, queries: Sequence[str], mode: str, expected: Evaluation, found: Evaluation
) -> Iterator[Row]:
    shared = mean(
        _overlap(expected.runs[mode].get(query, {}), found.runs[mode].get(query, {})) for query in queries
    )
    target = f"≥ {LEAST_OVERLAP:g}"
    yield Row(
        f"{what}: top 10 shared with SQLite", f"{shared:.3f}", "", None, target, shared >= LEAST_OVERLAP
    )
    ours, theirs = (one.measures[mode]["nDCG@10"] for one in (found, expected))
    is_met = abs(ours - theirs) <= MOST_APART
    yield Row(f"{what}: nDCG@10", f"{ours:.4f}", f"{theirs:.4f}", None, f"± {MOST_APART:g}", is_met)


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    best = [set(sorted(run, key=run.__getitem__, reverse=True)[:10]) for run in (one, other)]
    return len(best[0] & best[1]) / max(1, *map(len, best))
