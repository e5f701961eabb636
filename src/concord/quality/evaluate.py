"""How good are the answers? Every mode over one collection: rankings, latency, and whether confidence holds.

Each query is asked once as a caller would ask it, and once more, deeper; each fusion then orders the same
candidates. A document's score is its best chunk's. What `auto` is measured by begins with the very hits that
`kb search` returns. How long each mode takes is measured apart, on some of the queries, with the model loaded
and no query's vector remembered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from concord.core.protocols import Progress
from concord.quality.collection import Collection
from concord.quality.metrics import (
    Answerability,
    Gibberish,
    Latency,
    Outcome,
    Promises,
    Run,
    answerability,
    gibberish,
    measure,
    percentiles,
    promises,
)
from concord.search.blend import POOL, moments
from concord.search.deadline import Deadline
from concord.search.fuse import FUSION_OF, fuse
from concord.search.judge import Verdict
from concord.search.pipeline import Examined, examine, search
from concord.search.request import MAX_TOP, options_of
from concord.search.retrieve import retrieve
from concord.search.scores import complete_scores
from concord.search.tools import Tools
from concord.search.understand import understand
from concord.store.contract import document_by_id
from concord.types import ChunkId, Feedback, Mode, Opinion, Request

DEPTH = 100  # documents a query in a run: as deep as Recall@100 looks
# Scores that keep an order: evaluators break ties between equal ones by document id, which is not ours.
BY_PLACE = tuple(float(DEPTH - place) for place in range(DEPTH))
ASKED = 0.5  # results to ask for a document that is wanted: each strategy proposes three times as many chunks
REVIEWED = 10  # results among which one that was called good is looked for
SAMPLE = 50  # queries that are timed in each mode
UNHURRIED_MS = 60_000.0  # quality is measured here: a strategy that is late on a busy machine still counts
NONSENSE = ("asdf qwer zxcv", "xkcvb wqpfg zzyzx", "qwertzuiop asdfghjkl", "lkjh mnbv poiu trewq")

WAYS: Mapping[str, tuple[Mode, str | None]] = {  # how a caller asks for a mode: by search mode and fusion
    "bm25": ("fts5", None),
    "semantic": ("semantic", None),
    "rrf": ("hybrid", None),
    "adaptive": ("auto", "adaptive"),
    "dominant": ("auto", "dominant"),
    "auto": ("auto", None),
}
MODES = tuple(WAYS)
FUSED = ("rrf", "adaptive", "dominant", "auto")


class OfType(NamedTuple):
    """What was measured on the queries of one type."""

    queries: int
    measures: Mapping[str, Mapping[str, float]]  # mode → measure → mean
    latency_ms: Latency  # in mode auto


class Evaluation(Struct, frozen=True):
    """What was measured on one collection."""

    name: str
    model: str | None  # the model whose vectors were searched
    documents: int
    chunks: int
    queries: int
    missing: int  # relevant documents that the collection does not hold: figures count them as not found
    calibrated: bool
    runs: Mapping[str, Run]
    measures: Mapping[str, Mapping[str, float]]  # mode → measure → mean
    query_types: Mapping[str, OfType]
    latency_ms: Latency  # in mode auto, over all queries
    mode_latency_ms: Mapping[str, Latency]  # the same, over some of the queries, asked once more in each mode
    promises: Promises
    gibberish: Gibberish
    answerability: Mapping[str, Answerability]  # another collection → whether its queries were refused
    outcomes: Sequence[Outcome]
    foreign: Mapping[str, Sequence[Outcome]]  # another collection → the outcomes of its queries


def evaluate(
    collection: Collection,
    tools: Tools,
    progress: Progress,
    others: Mapping[str, Sequence[str]] | None = None,
) -> Evaluation:
    """Ask every judged query of an indexed collection, and `others` by name, and measure what comes back."""
    texts = [*collection.judged.values()]
    _warm_up(texts, tools)
    runs, outcomes = ask_deeply(collection, tools, progress)
    foreign = {name: ask(texts, tools, progress) for name, texts in (others or {}).items()}
    answered = [outcome.verdict for outcome in outcomes if any(outcome.relevant)]
    types = sorted({outcome.type for outcome in outcomes})
    relevant = {id for query_id in collection.judged for id in collection.relevant(query_id)}
    counts = tools.store.catalog.count()
    active = tools.store.catalog.snapshot().active if tools.similarity else None
    return Evaluation(
        name=collection.folder.name,
        model=active.identity.name if active else None,
        documents=counts.documents,
        chunks=counts.chunks,
        queries=len(outcomes),
        missing=sum(document_by_id(tools.store.catalog, id) is None for id in relevant),
        calibrated=bool(tools.calibration.heads),
        runs=runs,
        measures={mode: measure(collection.qrels, run) for mode, run in runs.items()},
        query_types={
            type: _of_type([outcome for outcome in outcomes if outcome.type == type], runs, collection)
            for type in types
        },
        latency_ms=percentiles(outcome.took_ms for outcome in outcomes),
        mode_latency_ms=latency_by_mode(texts, tools, progress),
        promises=promises(outcomes),
        gibberish=gibberish(_verdicts(outcomes), _verdicts(ask(NONSENSE, tools, progress))),
        answerability={name: answerability(answered, _verdicts(asked)) for name, asked in foreign.items()},
        outcomes=outcomes,
        foreign=foreign,
    )


def _of_type(outcomes: Sequence[Outcome], runs: Mapping[str, Run], collection: Collection) -> OfType:
    asked = [outcome.query_id for outcome in outcomes]
    measures = {
        mode: measure(collection.qrels, {query_id: run[query_id] for query_id in asked})
        for mode, run in runs.items()
    }
    return OfType(len(asked), measures, percentiles(outcome.took_ms for outcome in outcomes))


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
    folder.mkdir(parents=True, exist_ok=True)
    for mode, run in runs.items():
        with (folder / f"{mode}.run").open("w", encoding="utf-8") as file:
            for query, documents in run.items():
                best_first = sorted(documents.items(), key=lambda pair: -pair[1])
                for rank, (document, score) in enumerate(best_first, 1):
                    file.write(f"{_column(query)} Q0 {_column(document)} {rank} {score:g} {mode}\n")


def _column(id: str) -> str:
    """Return an id for a file whose columns are parted by white space, as an address would write it."""
    return "".join(quote(character) if character.isspace() else character for character in id)


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
    """Return each mode's order of the chunks that the strategies find if they are asked for many."""
    options, deadline = options_of(request, tools.settings), Deadline(UNHURRIED_MS)
    query = understand(request, options, tools, tools.store.catalog.snapshot().sources)
    candidates = complete_scores(retrieve(query, options.mode, tools, deadline), query, tools, deadline)
    lexical = [row for row in candidates.rows if row.lexical_rank]
    semantic = [row for row in candidates.rows if row.semantic_rank]
    orders = {
        "bm25": [row.chunk_id for row in sorted(lexical, key=lambda row: (-(row.bm25 or 0.0), row.chunk_id))],
        "semantic": [row.chunk_id for row in sorted(semantic, key=lambda row: row.semantic_rank or 0)],
    }
    for mode in FUSED:
        fusion = FUSION_OF["auto"] if mode == "auto" else mode
        orders[mode] = [row.chunk_id for row in fuse(fusion, candidates)]
    orders["auto"] = [*(hit.chunk.id for hit in examined.answer.hits), *orders["auto"]]
    return orders


def _verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    return [outcome.verdict for outcome in outcomes]


class Owners:
    """Which document a chunk belongs to, remembered: the same few are found again and again."""

    def __init__(self, tools: Tools) -> None:
        self._catalog = tools.store.catalog
        self._known: dict[ChunkId, str] = {}

    def documents(self, order: Sequence[ChunkId]) -> dict[str, float]:
        """Return the best documents of an order of chunks, with falling scores."""
        documents = dict.fromkeys(self.of(order).values())
        return dict(zip(documents, BY_PLACE, strict=False))

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
        tools.similarity.forget()


def _time(text: str, tools: Tools, way: tuple[Mode, str | None]) -> float:
    """Return how long a query takes whose vector is not cached."""
    if tools.similarity:
        tools.similarity.forget()
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
    judged = _by_query(tools.store.journal.feedback())
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
    feedback = tools.store.journal.feedback()
    places = []
    for query, opinions in _by_query(feedback).items():
        wanted = {
            i
            for i, opinion in opinions.items()
            if opinion == "good" and document_by_id(tools.store.catalog, i)
        }
        if wanted:
            hits = ask_one(query, tools).answer.hits
            places.append(next((hit.rank for hit in hits[:REVIEWED] if hit.document.id in wanted), None))
    good = sum(given.opinion == "good" for given in feedback)
    found = [place for place in places if place is not None]
    return Review(good, len(feedback) - good, len(places), len(found), found.count(1))


def _by_query(feedback: Sequence[Feedback]) -> Mapping[str, Mapping[str, Opinion]]:
    """Return query → document → opinion; what nobody named a query for says nothing about searching."""
    judged: dict[str, dict[str, Opinion]] = {}
    for given in feedback:
        if given.query:
            judged.setdefault(given.query, {})[given.document_id] = given.opinion
    return judged
