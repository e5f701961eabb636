"""How good are the answers? Every mode over judged queries: rankings, latency, and whether confidence holds.

Each query is asked once as a caller would ask it, and once more, deeper; each fusion then orders the same
candidates. A document's score is its best chunk's. What `auto` is measured by begins with the very hits that
`kb search` returns. How long each mode takes is measured apart, on some of the queries, with the model loaded
and no query's vector remembered.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from concord.core.protocols import Progress
from concord.quality.collection import Collection
from concord.quality.metrics import (
    Answerability,
    Interval,
    Latency,
    Outcome,
    Promises,
    Run,
    answerability,
    interval,
    measure_each,
    percentiles,
    promises,
)
from concord.search.blend import POOL, moments
from concord.search.deadline import Deadline
from concord.search.fuse import FUSION_OF, fuse
from concord.search.legs import Tools
from concord.search.pipeline import Examined, examine, search
from concord.search.request import MAX_TOP, options_of
from concord.search.retrieve import retrieve
from concord.search.scores import complete_scores
from concord.search.understand import understand
from concord.store.contract import Catalog, document_by_id
from concord.types import ChunkId, Mode, Opinion, Request

DEPTH = 100  # documents a query in a run: as deep as Recall@100 looks
# Scores that keep an order: evaluators break ties between equal ones by document id, which is not ours.
BY_PLACE = tuple(float(DEPTH - place) for place in range(DEPTH))
ASKED = 0.5  # results to ask for a document that is wanted: each strategy proposes three times as many chunks
REVIEWED = 10  # results among which one that was called good is looked for
SAMPLE = 50  # queries that are timed in each mode
UNHURRIED_MS = 60_000.0  # quality is measured here: a strategy that is late on a busy machine still counts
WORST = 5
LEFT_OUT = 0.25  # of the documents, at most: a base with more taken out is another one
TWINS = "leave-out twins"

WAYS: Mapping[str, tuple[Mode, str | None]] = {  # how a caller asks for a mode: by search mode and fusion
    "bm25": ("fts5", None),
    "semantic": ("semantic", None),
    "rrf": ("hybrid", None),
    "adaptive": ("auto", "adaptive"),
    "dominant": ("auto", "dominant"),
    "auto": ("auto", None),
}
MODES = tuple(WAYS)
Figures = Mapping[str, Mapping[str, Interval]]  # mode → measure


class Worst(NamedTuple):
    """A query that search does badly on, to be looked at."""

    kind: str
    query: str
    wanted: str  # the path of a document that answers it
    rank: int | None  # of the first such document in `auto`
    first: str | None  # the path of what came first instead
    confidence: float


class Evaluation(Struct, frozen=True):
    """What was measured on judged queries: a collection's, or those of one's own documents."""

    name: str
    model: str | None  # the model whose vectors were searched
    documents: int
    chunks: int
    queries: int
    kinds: Mapping[str, int]  # query type, or kind of pair → how many
    missing: int  # relevant documents that are not there: figures count them as not found
    calibrated: bool
    runs: Mapping[str, Run]
    measures: Mapping[str, Mapping[str, float]]  # mode → measure → mean
    intervals: Figures
    by_kind: Mapping[str, Figures]
    best: str  # the mode to use: `auto`, unless another has a better nDCG@10 beyond chance
    behind: Mapping[str, Interval]  # other mode → by how much the best one is better, query by query
    latency_ms: Latency  # in mode auto, over all queries
    mode_latency_ms: Mapping[str, Latency]  # the same, over some of the queries, asked once more in each mode
    promises: Promises
    answerability: Mapping[str, Answerability]  # whose queries → whether they were refused
    worst: Sequence[Worst]
    outcomes: Sequence[Outcome]
    foreign: Mapping[str, Sequence[Outcome]]  # another collection → the outcomes of its queries


def evaluate(
    collection: Collection,
    tools: Tools,
    progress: Progress,
    others: Mapping[str, Sequence[str]] | None = None,
    *,
    kinds: Mapping[str, str] | None = None,
    leaves_out: bool = False,
) -> Evaluation:
    """Ask every judged query of what is indexed, and `others` by name, and measure what comes back.

    `kinds` say of what kind each query is, by default its type. With `leaves_out` some documents are then
    deleted and asked for again: the leave-out twin of a query is to be refused.
    """
    judged, catalog = collection.judged, tools.store.catalog
    _warm_up([*judged.values()], tools)
    runs, outcomes = ask_deeply(collection, tools, progress)
    kind_of = kinds or {outcome.query_id: outcome.type for outcome in outcomes}
    values = {mode: measure_each(collection.qrels, run) for mode, run in runs.items()}
    ndcg = {mode: measured["nDCG@10"] for mode, measured in values.items()}
    leader = max(ndcg, key=lambda mode: fmean(ndcg[mode].values()))
    best = leader if interval([ndcg[leader][id] - ndcg["auto"][id] for id in judged]).low > 0 else "auto"
    relevant = {id for query_id in judged for id in collection.relevant(query_id)}
    counts, active = catalog.count(), catalog.snapshot().active
    latencies = latency_by_mode([*judged.values()], tools, progress)
    worst = list(_worst(collection, kind_of, outcomes, runs["auto"], ndcg["auto"], catalog))
    missing = sum(document_by_id(catalog, id) is None for id in relevant)
    foreign = {name: ask(texts, tools, progress) for name, texts in (others or {}).items()}
    if leaves_out:  # last, as documents are deleted
        foreign[TWINS] = ask(_leave_out(collection, counts.documents, catalog), tools, progress)
    answered = [outcome.verdict for outcome in outcomes if any(outcome.relevant)]
    intervals = _figures(values, lambda id: True)
    return Evaluation(
        name=collection.folder.name,
        model=active.identity.name if active and tools.similarity else None,
        documents=counts.documents,
        chunks=counts.chunks,
        queries=len(outcomes),
        kinds=dict(Counter(kind_of[id] for id in judged).most_common()),
        missing=missing,
        calibrated=bool(tools.calibration.heads),
        runs=runs,
        measures={mode: {name: given.mean for name, given in intervals[mode].items()} for mode in runs},
        intervals=intervals,
        by_kind={
            kind: _figures(values, lambda id, kind=kind: kind_of[id] == kind)  # type: ignore[misc]
            for kind in dict.fromkeys(kind_of.values())
        },
        best=best,
        behind={
            mode: interval([ndcg[best][id] - ndcg[mode][id] for id in judged])
            for mode in runs
            if mode != best
        },
        latency_ms=percentiles(outcome.took_ms for outcome in outcomes),
        mode_latency_ms=latencies,
        promises=promises(outcomes),
        answerability={
            name: answerability(answered, [outcome.verdict for outcome in asked])
            for name, asked in foreign.items()
        },
        worst=worst,
        outcomes=outcomes,
        foreign=foreign,
    )


def _figures(values: Mapping[str, Mapping[str, Mapping[str, float]]], of: Callable[[str], bool]) -> Figures:
    return {
        mode: {m: interval([value for id, value in each.items() if of(id)]) for m, each in measured.items()}
        for mode, measured in values.items()
    }


def _leave_out(collection: Collection, documents: int, catalog: Catalog) -> list[str]:
    """Delete documents, and return the queries that nothing answers any more."""
    gone: set[str] = set()
    for id in collection.judged:
        more = gone.union(collection.relevant(id))
        gone = more if len(more) <= LEFT_OUT * documents else gone
    catalog.delete_documents(sorted(gone))
    return [text for id, text in collection.judged.items() if gone.issuperset(collection.relevant(id))]


def _worst(
    collection: Collection,
    kinds: Mapping[str, str],
    outcomes: Sequence[Outcome],
    run: Run,
    ndcg: Mapping[str, float],
    catalog: Catalog,
) -> Iterator[Worst]:
    """Yield the queries that `auto` does worst on; of equals, those that it is most sure of."""

    def path(document_id: str) -> str:
        document = document_by_id(catalog, document_id)
        return document.path if document else document_id

    sure = {outcome.query_id: outcome.verdict.confidence_score for outcome in outcomes}
    for id in sorted((id for id in sure if ndcg[id] < 1), key=lambda id: (ndcg[id], -sure[id]))[:WORST]:
        order, wanted = [*run[id]], collection.relevant(id)
        rank = next((at for at, document in enumerate(order, 1) if document in wanted), None)
        first = path(order[0]) if order else None
        yield Worst(kinds[id], collection.queries[id], path(wanted[0]), rank, first, sure[id])


def ask(texts: Sequence[str], tools: Tools, progress: Progress) -> list[Outcome]:
    """Ask queries to which nothing is relevant: those of another collection, or nonsense."""
    outcomes = []
    for done, text in enumerate(texts, 1):
        outcomes.append(outcome_of(text, ask_one(text, tools), {}))
        progress("asking what it cannot know", done, len(texts))
    return outcomes


def ask_own(collection: Collection, tools: Tools, progress: Progress) -> list[Outcome]:
    """Ask the judged queries of an indexed collection as a caller would, and nothing more."""
    judged = collection.judged
    outcomes = []
    for done, (query_id, text) in enumerate(judged.items(), 1):
        outcomes.append(outcome_of(query_id, ask_one(text, tools), collection.qrels.get(query_id, {})))
        progress("asking", done, len(judged))
    return outcomes


def write_runs(runs: Mapping[str, Run], folder: Path) -> None:
    """Write one TREC run file a mode, for any other tool to check the figures with."""

    def column(id: str) -> str:  # columns are parted by white space
        return re.sub(r"\s", lambda blank: quote(blank[0]), id)

    folder.mkdir(parents=True, exist_ok=True)
    for mode, run in runs.items():
        with (folder / f"{mode}.run").open("w", encoding="utf-8") as file:
            for query, documents in run.items():
                for rank, (document, score) in enumerate(documents.items(), 1):
                    file.write(f"{column(query)} Q0 {column(document)} {rank} {score:g} {mode}\n")


def ask_deeply(
    collection: Collection, tools: Tools, progress: Progress
) -> tuple[dict[str, Run], list[Outcome]]:
    """Ask the judged queries, and put what the strategies find into every mode's order."""
    runs: dict[str, Run] = {mode: {} for mode in MODES}
    outcomes: list[Outcome] = []
    judged = collection.judged
    counts = tools.store.catalog.count()
    # A document may fill as many places as it has chunks.
    depth = min(MAX_TOP, math.ceil(DEPTH * ASKED * counts.chunks / max(1, counts.documents)))
    owners = Owners(tools)
    for done, (query_id, text) in enumerate(judged.items(), 1):
        examined = ask_one(text, tools)
        outcomes.append(outcome_of(query_id, examined, collection.qrels.get(query_id, {})))
        deeper = Request(text, mode="auto", top=depth, deadline_ms=UNHURRIED_MS)
        for mode, order in _orders(deeper, examined, tools).items():
            runs[mode][query_id] = owners.documents(order)
        progress("asking", done, len(judged))
    return runs, outcomes


def ask_one(text: str, tools: Tools) -> Examined:
    """Ask one query as a caller would, without a caller's hurry."""
    return examine(Request(text, mode="auto", deadline_ms=UNHURRIED_MS), tools)


def outcome_of(query_id: str, examined: Examined, judged: Mapping[str, int]) -> Outcome:
    """Return an answer with what was true of it."""
    answer, shown = examined.answer, examined.shown
    relevant = tuple(judged.get(hit.document.id, 0) > 0 for hit in answer.hits)
    nearest = [row.cosine or 0.0 for row in examined.candidates.rows if row.semantic_rank]
    cosines = moments(nearest) if len(nearest) >= POOL else None
    return Outcome(query_id, examined.query.type, shown, relevant, answer.search_time_ms, cosines)


def _orders(request: Request, examined: Examined, tools: Tools) -> dict[str, list[ChunkId]]:
    options, deadline = options_of(request, tools.settings), Deadline(UNHURRIED_MS)
    query = understand(request, options, tools, tools.store.catalog.snapshot().sources)
    candidates = complete_scores(retrieve(query, options.mode, tools, deadline), query, tools, deadline)
    lexical = [row for row in candidates.rows if row.lexical_rank]
    semantic = [row for row in candidates.rows if row.semantic_rank]
    orders = {
        "bm25": [row.chunk_id for row in sorted(lexical, key=lambda row: (-(row.bm25 or 0.0), row.chunk_id))],
        "semantic": [row.chunk_id for row in sorted(semantic, key=lambda row: row.semantic_rank or 0)],
    }
    for mode in ("rrf", "adaptive", "dominant", "auto"):
        fusion = FUSION_OF["auto"] if mode == "auto" else mode
        orders[mode] = [row.chunk_id for row in fuse(fusion, candidates)]
    orders["auto"] = [*(hit.chunk.id for hit in examined.answer.hits), *orders["auto"]]
    return orders


class Owners:
    """Which document a chunk belongs to, remembered: the same few are found again and again."""

    def __init__(self, tools: Tools) -> None:
        self._catalog = tools.store.catalog
        self._known: dict[ChunkId, str] = {}

    def documents(self, order: Sequence[ChunkId]) -> dict[str, float]:
        """Return the best documents of an order of chunks, with falling scores."""
        return dict(zip(dict.fromkeys(self.of(order).values()), BY_PLACE, strict=False))

    def of(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, str]:
        """Return the document of each chunk that still exists, in the same order."""
        unknown = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._known]
        self._known |= {i: document.id for i, (_, document) in self._catalog.read(unknown).items()}
        return {chunk_id: self._known[chunk_id] for chunk_id in chunk_ids if chunk_id in self._known}


def latency_by_mode(texts: Sequence[str], tools: Tools, progress: Progress) -> dict[str, Latency]:
    """Ask some of the queries in every mode that there are strategies for, and return how long each takes.

    Each query is asked in all modes, one after the other, so that a busy machine slows all modes alike.
    """
    some = texts[:: -(-len(texts) // SAMPLE)] if texts else texts  # spread evenly: neighbours are often alike
    ways = {name: way for name, way in WAYS.items() if way[0] != "semantic" or tools.similarity}
    took_ms: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        _warm_up(some, tools, way)
    for done, text in enumerate(some, 1):
        for name, way in ways.items():
            took_ms[name].append(_time(text, tools, way))
        progress("timing", done, len(some))
    return {name: percentiles(took) for name, took in took_ms.items()}


def _warm_up(texts: Sequence[str], tools: Tools, way: tuple[Mode, str | None] = WAYS["auto"]) -> None:
    """Load everything that the first search would load, and forget the vectors of queries."""
    for text in texts[:1]:
        _time(text, tools, way)
    if tools.similarity:
        tools.similarity.vectors.forget()


def _time(text: str, tools: Tools, way: tuple[Mode, str | None]) -> float:
    if tools.similarity:
        tools.similarity.vectors.forget()
    mode, fusion = way
    if mode == "fts5":
        words = [strategy for strategy in tools.strategies if strategy.leg == "lexical"]
        tools = replace(tools, strategies=words, similarity=None, reranker=None)
    return search(Request(text, mode=mode, fusion=fusion, deadline_ms=UNHURRIED_MS), tools).search_time_ms


class Review(NamedTuple):
    """How search does on results that people judged."""

    good: int
    bad: int
    queries: int  # queries with a good result that is still indexed
    found: int  # … whose good result is among the first ten
    first: int  # … whose good result is the first


def feedback_outcomes(tools: Tools, progress: Progress) -> list[Outcome]:
    """Ask the queries that people gave feedback on, and keep the judged hits of each answer.

    A query with bad opinions alone counts as not answered.
    """
    judged = _opinions(tools)
    outcomes = []
    for done, (query, opinions) in enumerate(judged.items(), 1):
        outcome = outcome_of(query, examined := ask_one(query, tools), {})
        hits = examined.answer.hits
        known = [at for at, hit in enumerate(hits) if hit.document.id in opinions]
        if known:
            kept = replace(outcome.verdict, judged=tuple(outcome.verdict.judged[at] for at in known))
            relevant = tuple(opinions[hits[at].document.id] == "good" for at in known)
            outcomes.append(outcome._replace(verdict=kept, relevant=relevant))
        progress("asking what was judged", done, len(judged))
    return outcomes


def review(tools: Tools) -> Review:
    """Return how search does on the feedback that was given."""
    places = []
    for query, opinions in _opinions(tools).items():
        good = {id for id, opinion in opinions.items() if opinion == "good"}
        if any(document_by_id(tools.store.catalog, id) for id in good):
            hits = ask_one(query, tools).answer.hits[:REVIEWED]
            places.append(next((hit.rank for hit in hits if hit.document.id in good), None))
    given = Counter(feedback.opinion for feedback in tools.store.journal.feedback())
    found = [place for place in places if place is not None]
    return Review(given["good"], given["bad"], len(places), len(found), found.count(1))


def _opinions(tools: Tools) -> Mapping[str, Mapping[str, Opinion]]:
    """Return query → document → opinion; what nobody named a query for says nothing about searching."""
    judged: dict[str, dict[str, Opinion]] = {}
    for given in tools.store.journal.feedback():
        if given.query:
            judged.setdefault(given.query, {})[given.document_id] = given.opinion
    return judged
