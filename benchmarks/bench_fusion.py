"""Which fusion should `auto` use? Every fusion on every development set, beside each leg alone.

    KB_BENCH_DATA=../shared/data python -m benchmarks fusion

The strategies are asked once a query; every fusion then orders the same candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from benchmarks.development import QUERIES, folder, opened, present
from benchmarks.measure import Row, absent, at_least
from concord.cli.output import table
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Qrels, read_collection
from concord.quality.evaluate import Owners, ask_one
from concord.quality.metrics import Run, measure
from concord.search.fuse import FUSIONS, Candidates, fuse
from concord.types import ChunkId, silent

LEAST, AVERAGE = 0.99, 1.06  # of the better single leg
LEGS = ("bm25", "semantic")
DEEP = 10  # documents that nDCG@10 looks at


class Asked(NamedTuple):
    """One query: what was found, and whose chunks they are."""

    candidates: Candidates
    owner: Mapping[ChunkId, str]


class Judged(NamedTuple):
    """The queries of one set with their judgements."""

    asked: Mapping[str, Asked]
    qrels: Qrels


def run() -> Iterator[Row]:
    """Print the table of fusions and yield how the default compares with the better leg."""
    chosen = present()
    if len(chosen) < 2:
        yield absent("fusion", f"fewer than two development sets in {folder()}")
        return
    with opened() as knowledge:
        sets = {name: _asked(knowledge, name) for name in chosen}
    figures = {name: {way: _quality(held, way) for way in (*LEGS, *FUSIONS)} for name, held in sets.items()}
    rows = [(name, *(f"{value:.4f}" for value in values.values())) for name, values in figures.items()]
    print(table(("nDCG@10 of", *LEGS, *FUSIONS), rows), flush=True)
    shares = []
    for name, values in figures.items():
        better = max(values[leg] for leg in LEGS)
        shares.append(values["blend"] / better)
        yield at_least(f"{name}: blend", f"{values['blend']:.4f}", f"{better:.4f}", shares[-1], LEAST)
    yield at_least("average of the sets", "blend", "better leg", mean(shares), AVERAGE)


def _asked(knowledge: KnowledgeBase, name: str) -> Judged:
    limit = int(os.environ.get("KB_BENCH_QUERIES", QUERIES))
    collection = read_collection(folder() / name).sampled(limit)
    asked: dict[str, Asked] = {}
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        owners = Owners(tools)
        for id, text in collection.judged.items():
            candidates = ask_one(text, tools).candidates
            asked[id] = Asked(candidates, owners.of([row.chunk_id for row in candidates.rows]))
    return Judged(asked, collection.qrels)


def _quality(judged: Judged, way: str) -> float:
    ranked: Run = {id: _documents(asked, _order(asked.candidates, way)) for id, asked in judged.asked.items()}
    return measure(judged.qrels, ranked, ("nDCG@10",))["nDCG@10"]


def _order(candidates: Candidates, way: str) -> Sequence[ChunkId]:
    if way == "bm25":
        words = [row for row in candidates.rows if row.lexical_rank]
        return [row.chunk_id for row in sorted(words, key=lambda row: (-(row.bm25 or 0.0), row.chunk_id))]
    if way == "semantic":
        near = [row for row in candidates.rows if row.semantic_rank]
        return [row.chunk_id for row in sorted(near, key=lambda row: row.semantic_rank or 0)]
    return [row.chunk_id for row in fuse(way, candidates)]


def _documents(asked: Asked, order: Sequence[ChunkId]) -> dict[str, float]:
    documents = list(dict.fromkeys(asked.owner[chunk_id] for chunk_id in order if chunk_id in asked.owner))
    return {document: float(DEEP - place) for place, document in enumerate(documents[:DEEP])}
