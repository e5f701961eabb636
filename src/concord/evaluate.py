"""How good are the answers? Every mode over one collection: rankings, latency, and whether confidence holds.

The strategies are asked once a query; each fusion then orders the same ballots. A document's score is its
best chunk's. The figures come from ir-measures, not from arithmetic of our own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from concord.collection import Collection, Qrels
from concord.protocols import Progress
from concord.ranking.fuse import FUSIONS, Ballots, Context, bm25_order, cosine_order
from concord.search import FUSION_OF, Tools, retrieve, search
from concord.types import Answer, ChunkId, QueryKind, Ranked, Request

DEPTH = 100  # documents a query in a run: as deep as Recall@100 looks
CHUNKS = 3  # chunks asked for to find each of them: a document may fill several places
TIMED = 200  # searches whose latency is measured, whole and one after another
MODES = ("bm25", "semantic", "rrf", "adaptive", "dominant", "auto")
MEASURES = ("nDCG@10", "R@5", "R@10", "R@100", "RR", "P@1")

Run = dict[str, dict[str, float]]  # query → document → score


class Outcome(NamedTuple):
    """One answered query, for judging confidence: what was said, and what was true."""

    query_id: str
    kind: QueryKind
    answer: Answer
    relevant: tuple[bool, ...]  # of each hit, whether its document is


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was measured on one collection."""

    name: str
    documents: int
    chunks: int
    queries: int
    runs: Mapping[str, Run]
    measures: Mapping[str, Mapping[str, float]]  # mode → measure → mean
    by_kind: Mapping[str, Mapping[str, Mapping[str, float]]]  # query type → mode → measure → mean
    kinds: Mapping[str, int]
    latency_ms: Mapping[str, float]  # p50, p95
    outcomes: Sequence[Outcome]


def evaluate(collection: Collection, tools: Tools, progress: Progress) -> Evaluation:
    """Ask every judged query of an indexed collection and measure what comes back."""
    runs: dict[str, Run] = {mode: {} for mode in MODES}
    outcomes: list[Outcome] = []
    judged = collection.judged
    owners = _Owners(tools)
    for done, (query_id, text) in enumerate(judged.items(), 1):
        for mode, ranked in rankings(text, tools).items():
            runs[mode][query_id] = owners.documents(ranked)
        outcomes.append(outcome(query_id, text, collection.qrels.get(query_id, {}), tools))
        progress("ask", done, len(judged))
    kinds = {one.query_id: one.kind for one in outcomes}
    counts = tools.store.catalog.counts()
    return Evaluation(
        name=collection.folder.name,
        documents=counts.documents,
        chunks=counts.chunks,
        queries=len(judged),
        runs=runs,
        measures={mode: measure(collection.qrels, run) for mode, run in runs.items()},
        by_kind=_by_kind(collection.qrels, runs, kinds),
        kinds={kind: list(kinds.values()).count(kind) for kind in sorted(set(kinds.values()))},
        latency_ms=latency([*judged.values()][:TIMED], tools),
        outcomes=outcomes,
    )


def rankings(text: str, tools: Tools) -> dict[str, list[Ranked]]:
    """Return each mode's order of the chunks that the strategies found."""
    request = Request(text, top=DEPTH * CHUNKS)
    found = retrieve(request, "auto", tools, tools.store.catalog.sources())
    orders: dict[str, Callable[[Ballots, Context], list[Ranked]]] = {
        "bm25": lambda given, _: bm25_order(given),
        "semantic": lambda given, _: cosine_order(given),
        "auto": FUSIONS[FUSION_OF["auto"]],
    }
    return {
        mode: orders.get(mode, FUSIONS.get(mode, FUSIONS["rrf"]))(found.ballots, found.context)
        for mode in MODES
    }


def outcome(query_id: str, text: str, judged: Mapping[str, int], tools: Tools) -> Outcome:
    """Answer a query as a caller would get it, and mark which hits are relevant."""
    answer = search(Request(text), tools)
    relevant = tuple(judged.get(hit.document.id, 0) > 0 for hit in answer.hits)
    return Outcome(query_id, answer.query_kind or "exploratory", answer, relevant)


def measure(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return the mean of every measure over the queries of a run."""
    import ir_measures  # pulls scipy: only evaluation pays for it

    wanted = {str(m): m for m in map(ir_measures.parse_measure, MEASURES)}
    judged = {query: dict(qrels[query]) for query in run}
    values = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    return {name: float(values[m]) for name, m in wanted.items()}


def latency(texts: Sequence[str], tools: Tools) -> dict[str, float]:
    """Return the time of whole searches, one after another, in milliseconds."""
    took = []
    for text in texts:
        started = time.perf_counter()
        search(Request(text), tools)
        took.append((time.perf_counter() - started) * 1000)
    if len(took) < 2:
        return {"p50": took[0], "p95": took[0]} if took else {}
    return {"p50": median(took), "p95": quantiles(took, n=20)[-1]}


def write_runs(runs: Mapping[str, Run], folder: Path) -> None:
    """Write one TREC run file a mode, for any other tool to check the figures with."""
    folder.mkdir(parents=True, exist_ok=True)
    for mode, run in runs.items():
        with (folder / f"{mode}.run").open("w", encoding="utf-8") as file:
            for query, documents in run.items():
                for rank, (document, score) in enumerate(_best_first(documents.items()), 1):
                    file.write(f"{query} Q0 {document} {rank} {score:.9f} {mode}\n")


def _by_kind(
    qrels: Qrels, runs: Mapping[str, Run], kinds: Mapping[str, str]
) -> dict[str, dict[str, dict[str, float]]]:
    return {
        kind: {
            mode: measure(qrels, {query: found for query, found in run.items() if kinds[query] == kind})
            for mode, run in runs.items()
        }
        for kind in sorted(set(kinds.values()))
    }


class _Owners:
    """Which document a chunk belongs to, remembered: the same few are found again and again."""

    def __init__(self, tools: Tools) -> None:
        self._catalog = tools.store.catalog
        self._known: dict[ChunkId, str] = {}

    def documents(self, ranked: Iterable[Ranked]) -> dict[str, float]:
        """Return the best documents of a ranking with descending scores that keep its order."""
        order = [one.chunk_id for one in ranked]
        unknown = [chunk_id for chunk_id in order if chunk_id not in self._known]
        self._known |= {i: document.id for i, (_, document) in self._catalog.read(unknown).items()}
        documents = dict.fromkeys(self._known[chunk_id] for chunk_id in order if chunk_id in self._known)
        # Ranks as scores: evaluators break ties between equal scores by document id, which is not our order.
        return {document: float(DEPTH - place) for place, document in enumerate([*documents][:DEPTH])}


def _best_first(scores: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(scores, key=lambda pair: -pair[1])
