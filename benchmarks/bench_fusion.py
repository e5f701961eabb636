"""Which fusion should `auto` use? Every fusion on every development set, and the gate: each set is ranked by
a blend whose numbers were chosen on the other sets alone.

    KB_BENCH_DATA=../shared/data python -m benchmarks fusion

The strategies are asked once a query; every fusion then orders the same ballots. The query is moved towards
its first hits as shipped, whichever numbers order them. The last row tells how much there is to win by
weighing the two families: each query has the weight that suits it best, which only its judgements tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import mean
from typing import NamedTuple

from msgspec.structs import astuple, replace

from benchmarks.development import QUERIES, TRAIN, folder, opened, present
from benchmarks.measure import Row, absent, at_least
from concord.answering.request_checks import search_options
from concord.answering.retrieve import retrieve
from concord.cli.output import table
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Qrels, read_collection
from concord.quality.evaluate import UNHURRIED_MS, Owners, Run, measure
from concord.ranking.ballots import Ballots
from concord.ranking.blend import blend
from concord.ranking.context import BLEND, BlendNumbers, Context
from concord.ranking.fuse import FUSIONS
from concord.types import ChunkId, Request, silent

GRID = [
    BlendNumbers(flat, margin, code, lead=lead)
    for flat, margin, code, lead in product(
        (0.65, 0.7, 0.75, 0.8, 0.85), (0.2, 0.3, 0.4), (0.8, 0.9), (0.0, 0.1, 0.15)
    )
]
LEAST, AVERAGE = 0.99, 1.06  # of the better single leg
ONE_WEIGHT = [BlendNumbers(step / 20, margin=0, code=step / 20, rare=0, lead=0) for step in range(21)]
LEGS = ("bm25", "semantic")
DEEP = 10  # documents that nDCG@10 looks at


class Asked(NamedTuple):
    """One query: what was found, and whose chunks they are."""

    ballots: Ballots
    context: Context
    owner: Mapping[ChunkId, str]


class Judged(NamedTuple):
    """The queries of one set with their judgements."""

    asked: Mapping[str, Asked]
    qrels: Qrels


def run() -> Iterator[Row]:
    """Print both tables and yield what the gate is held to."""
    chosen = present()
    if len(chosen) < 2:
        yield absent("fusion", f"fewer than two development sets in {folder()}")
        return
    with opened() as knowledge:
        tested = {name: _asked(knowledge, name) for name in chosen}
        tuned = {n: _asked(knowledge, n, TRAIN[n]) if n in TRAIN else tested[n] for n in chosen}
    _print_fusions(tested)
    yield from _gate(tested, {name: _grid(one) for name, one in tuned.items()})


def _asked(knowledge: KnowledgeBase, name: str, split: str | None = None) -> Judged:
    limit = int(os.environ.get("KB_BENCH_QUERIES", QUERIES))
    collection = read_collection(folder() / name, split).sampled(limit)
    found: dict[str, Asked] = {}
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        sources, owners = tools.store.catalog.sources(), Owners(tools)
        for id, text in collection.judged.items():
            request = Request(text, mode="auto", deadline_ms=UNHURRIED_MS)
            one = retrieve(request, search_options(request, tools.settings), tools, sources)
            found[id] = Asked(one.ballots, one.context, owners.of(list(one.ballots.votes)))
    return Judged(found, collection.qrels)


def _print_fusions(tested: Mapping[str, Judged]) -> None:
    names = (*LEGS, *FUSIONS)
    rows = [(name, *(f"{_quality(one, fusion):.4f}" for fusion in names)) for name, one in tested.items()]
    print(table(("nDCG@10 of", *names), rows), flush=True)


def _gate(tested: Mapping[str, Judged], tuned: Mapping[str, Mapping[BlendNumbers, float]]) -> Iterator[Row]:
    rows, shares, possible = [], [], []
    for name, one in tested.items():
        numbers = _best([scores for other, scores in tuned.items() if _kin(other) != _kin(name)])
        better = max(_quality(one, leg) for leg in LEGS)
        left_out, shipped = _quality(one, numbers), _quality(one, BLEND)
        figures = (better, left_out, shipped, _suited(one))
        rows.append((name, *(f"{n:.4f}" for n in figures), *(f"{n:g}" for n in astuple(numbers))))
        shares.append(left_out / better)
        possible.append(figures[-1] / better)
        row = f"{name}: numbers of the others"
        yield at_least(row, f"{left_out:.4f}", f"{better:.4f}", shares[-1], LEAST)
    columns = ("better leg", "numbers of the others", "shipped numbers", "weight to suit each query")
    print(table(("left out", *columns, *BlendNumbers.__struct_fields__), rows), flush=True)
    yield at_least("average of the sets", "left out", "better leg", mean(shares), AVERAGE)
    yield Row("average of the sets", "weight to suit each query", "better leg", mean(possible))


def _kin(name: str) -> str:
    """Return what a set shares with its translations: tuning on those would be no leaving out."""
    return name.partition("-")[0]


def _grid(one: Judged) -> dict[BlendNumbers, float]:
    return {numbers: _quality(one, numbers) for numbers in GRID}


def _best(others: Sequence[Mapping[BlendNumbers, float]]) -> BlendNumbers:
    """Return the numbers with the best mean; each set counts by how far it is from the best it could be."""
    tops = [max(scores.values()) for scores in others]
    return max(GRID, key=lambda r: mean(s[r] / top for s, top in zip(others, tops, strict=True)))


def _suited(one: Judged) -> float:
    """Return the quality where every query has the weight that its own judgements like best."""
    return mean(
        max(_quality(Judged({id: asked}, one.qrels), weight) for weight in ONE_WEIGHT)
        for id, asked in one.asked.items()
    )


def _quality(one: Judged, way: str | BlendNumbers) -> float:
    ranked: Run = {id: _documents(asked, _order(asked, way)) for id, asked in one.asked.items()}
    return measure(one.qrels, ranked, ("nDCG@10",))["nDCG@10"]


def _order(asked: Asked, way: str | BlendNumbers) -> Sequence[ChunkId]:
    ballots, context = asked.ballots, asked.context
    if isinstance(way, BlendNumbers):
        return [found.chunk_id for found in blend(ballots, replace(context, blend=way))]
    if way == "bm25":
        return sorted(ballots.lexical, key=lambda chunk_id: (-ballots.bm25[chunk_id], chunk_id))
    if way == "semantic":
        return sorted(ballots.semantic, key=ballots.semantic.__getitem__)
    return [found.chunk_id for found in FUSIONS[way](ballots, context)]


def _documents(asked: Asked, order: Sequence[ChunkId]) -> dict[str, float]:
    documents = list(dict.fromkeys(asked.owner[chunk_id] for chunk_id in order if chunk_id in asked.owner))
    return {document: float(DEEP - place) for place, document in enumerate(documents[:DEEP])}
