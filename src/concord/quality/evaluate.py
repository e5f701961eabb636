"""How good are the answers? Every mode over one collection: rankings, latency, and whether confidence holds.

Each query is asked once as a caller would ask it, and the strategies once more, deeper; each fusion then
orders the same ballots. A document's score is its best chunk's. What `auto` is measured by begins with the
very hits that `kb search` returns. How long each mode takes is measured apart, on some of the queries
(`latency.py`). The figures come from ir-measures, not from arithmetic of our own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec import Struct

from concord.answering.judge import Judgement
from concord.answering.request_checks import MAX_TOP, search_options
from concord.answering.retrieve import retrieve
from concord.answering.tools import SearchTools
from concord.protocols import Progress
from concord.quality.collection import Collection, Qrels
from concord.quality.latency import by_mode, warm_up
from concord.quality.percentiles import Latency, percentiles
from concord.quality.reliability import Answerability, Gibberish, Promises, answerability, gibberish, promises
from concord.ranking.fuse import FUSION_OF, FUSIONS
from concord.search import Examined, examine
from concord.types import ChunkId, QueryKind, Request

DEPTH = 100  # documents a query in a run: as deep as Recall@100 looks
# Scores that keep an order: evaluators break ties between equal ones by document id, which is not ours.
BY_PLACE = tuple(float(DEPTH - place) for place in range(DEPTH))
ASKED = 0.5  # results to ask for a document that is wanted: each strategy proposes three times as many chunks
FUSED = ("rrf", "adaptive", "dominant", "auto")
MODES = ("bm25", "semantic", *FUSED)
MEASURES = ("nDCG@10", "R@5", "R@10", "R@100", "RR", "P@1")
NONSENSE = ("asdf qwer zxcv", "xkcvb wqpfg zzyzx", "qwertzuiop asdfghjkl", "lkjh mnbv poiu trewq")

# Quality is measured here: a strategy that is late on a busy machine shall still vote.
UNHURRIED_MS = 60_000.0

Run = dict[str, dict[str, float]]  # query → document → score


class Outcome(NamedTuple):
    """One answered query, for judging confidence: what was said and why, and what was true."""

    query_id: str
    judgement: Judgement
    relevant: tuple[bool, ...]  # for each hit, whether its document is relevant
    took_ms: float

    @property
    def kind(self) -> QueryKind:
        """The query's type."""
        return self.judgement.signals.kind


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
    by_kind: Mapping[str, Mapping[str, Mapping[str, float]]]  # query type → mode → measure → mean
    kinds: Mapping[str, int]  # query type → how many
    latency_ms: Latency  # in mode auto, over all queries
    latency_by_kind: Mapping[str, Latency]  # query type → the same
    latency_by_mode: Mapping[str, Latency]  # mode → the same, over some of the queries, asked once more
    promises: Promises
    gibberish: Gibberish
    answerability: Mapping[str, Answerability]  # another collection → whether its queries were refused
    outcomes: Sequence[Outcome]
    foreign: Mapping[str, Sequence[Outcome]]  # another collection → the outcomes of its queries


def evaluate(
    collection: Collection,
    tools: SearchTools,
    progress: Progress,
    others: Mapping[str, Sequence[str]] | None = None,
) -> Evaluation:
    """Ask every judged query of an indexed collection, and `others` by name, and measure what comes back."""
    texts = [*collection.judged.values()]
    warm_up(texts, tools, UNHURRIED_MS)
    runs, outcomes = _ask_deeply(collection, tools, progress)
    foreign = {name: ask(texts, tools, progress) for name, texts in (others or {}).items()}
    kinds = {one.query_id: one.kind for one in outcomes}
    counts = tools.store.catalog.counts()
    identity = tools.store.vectors.identity() if tools.similarity else None
    return Evaluation(
        name=collection.folder.name,
        model=identity.name if identity else None,
        documents=counts.documents,
        chunks=counts.chunks,
        queries=len(outcomes),
        missing=_missing(collection, tools),
        calibrated=tools.calibration is not None,
        runs=runs,
        measures={mode: measure(collection.qrels, run) for mode, run in runs.items()},
        by_kind=_by_kind(collection.qrels, runs, kinds),
        kinds=dict(sorted(Counter(kinds.values()).items())),
        latency_ms=percentiles(one.took_ms for one in outcomes),
        latency_by_kind={
            kind: percentiles(one.took_ms for one in outcomes if one.kind == kind)
            for kind in sorted(set(kinds.values()))
        },
        latency_by_mode=by_mode(texts, tools, progress, UNHURRIED_MS),
        promises=promises([(one.judgement, one.relevant) for one in outcomes]),
        gibberish=_gibberish(outcomes, tools, progress),
        answerability={name: _answerability(outcomes, some) for name, some in foreign.items()},
        outcomes=outcomes,
        foreign=foreign,
    )


def ask(texts: Sequence[str], tools: SearchTools, progress: Progress) -> list[Outcome]:
    """Ask queries to which nothing is relevant: those of another collection, or nonsense."""
    found = []
    for done, text in enumerate(texts, 1):
        found.append(_outcome(text, ask_one(text, tools), {}))
        progress("asking what it cannot know", done, len(texts))
    return found


def ask_own(collection: Collection, tools: SearchTools, progress: Progress) -> list[Outcome]:
    """Ask the judged queries of an indexed collection as a caller would, and nothing more."""
    judged = collection.judged
    found = []
    for done, (query_id, text) in enumerate(judged.items(), 1):
        found.append(_outcome(query_id, ask_one(text, tools), collection.qrels.get(query_id, {})))
        progress("asking", done, len(judged))
    return found


def measure(qrels: Qrels, run: Run, measures: Sequence[str] = MEASURES) -> dict[str, float]:
    """Return the mean of each measure over the queries of a run."""
    import ir_measures  # only evaluation pays for it

    wanted = {name: _measure_called(name) for name in measures}
    judged = {query: dict(qrels[query]) for query in run}
    values = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    return {name: float(values[m]) for name, m in wanted.items()}


def _measure_called(name: str) -> Any:
    """Return a measure by its name, as nDCG@10. The library's parser uses what Python 3.14 removes."""
    import ir_measures

    kind, _, depth = name.partition("@")
    measure = getattr(ir_measures, kind)
    return measure @ int(depth) if depth else measure


def write_runs(runs: Mapping[str, Run], folder: Path) -> None:
    """Write one TREC run file a mode, for any other tool to check the figures with."""
    folder.mkdir(parents=True, exist_ok=True)
    for mode, run in runs.items():
        with (folder / f"{mode}.run").open("w", encoding="utf-8") as file:
            for query, documents in run.items():
                for rank, (document, score) in enumerate(_best_first(documents), 1):
                    file.write(f"{_column(query)} Q0 {_column(document)} {rank} {score:g} {mode}\n")


def _column(id: str) -> str:
    """Return an id for a file whose columns are parted by white space, as an address would write it."""
    return "".join(quote(one) if one.isspace() else one for one in id)


def _missing(collection: Collection, tools: SearchTools) -> int:
    relevant = {id for query_id in collection.judged for id in collection.relevant(query_id)}
    return sum(tools.store.catalog.document(id) is None for id in relevant)


def _ask_deeply(
    collection: Collection, tools: SearchTools, progress: Progress
) -> tuple[dict[str, Run], list[Outcome]]:
    """Ask the judged queries, and put what the strategies find into every mode's order."""
    runs: dict[str, Run] = {mode: {} for mode in MODES}
    outcomes: list[Outcome] = []
    judged = collection.judged
    owners, depth = Owners(tools), _depth(tools)
    for done, (query_id, text) in enumerate(judged.items(), 1):
        examined = ask_one(text, tools)
        outcomes.append(_outcome(query_id, examined, collection.qrels.get(query_id, {})))
        deeper = Request(text, mode="auto", top=depth, deadline_ms=UNHURRIED_MS)
        for mode, order in _orders(deeper, examined, tools).items():
            runs[mode][query_id] = owners.documents(order)
        progress("asking", done, len(judged))
    return runs, outcomes


def ask_one(text: str, tools: SearchTools) -> Examined:
    """Ask one query as a caller would, without a caller's hurry."""
    return examine(Request(text, mode="auto", deadline_ms=UNHURRIED_MS), tools)


def _outcome(query_id: str, examined: Examined, judged: Mapping[str, int]) -> Outcome:
    hits = examined.answer.hits
    relevant = tuple(judged.get(hit.document.id, 0) > 0 for hit in hits)
    return Outcome(query_id, examined.judgement, relevant, examined.answer.search_time_ms)


def _depth(tools: SearchTools) -> int:
    """Return how many results to ask for: a document may fill as many places as it has chunks."""
    counts = tools.store.catalog.counts()
    return min(MAX_TOP, math.ceil(DEPTH * ASKED * counts.chunks / max(1, counts.documents)))


def _orders(request: Request, examined: Examined, tools: SearchTools) -> dict[str, list[ChunkId]]:
    """Return each mode's order of the chunks that the strategies found."""
    found = retrieve(request, search_options(request, tools.settings), tools, tools.store.catalog.sources())
    given = found.ballots
    fused = {
        mode: [
            one.chunk_id
            for one in FUSIONS[FUSION_OF["auto"] if mode == "auto" else mode](given, found.context)
        ]
        for mode in FUSED
    }
    fused["auto"] = [*(hit.chunk.id for hit in examined.answer.hits), *fused["auto"]]
    return {
        "bm25": sorted(given.lexical, key=lambda chunk_id: (-given.bm25[chunk_id], chunk_id)),
        "semantic": sorted(given.semantic, key=given.semantic.__getitem__),
        **fused,
    }


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


def _gibberish(outcomes: Sequence[Outcome], tools: SearchTools, progress: Progress) -> Gibberish:
    nonsense = ask(NONSENSE, tools, progress)
    return gibberish([one.judgement for one in outcomes], [one.judgement for one in nonsense])


def _answerability(own: Sequence[Outcome], foreign: Sequence[Outcome]) -> Answerability:
    answered = [one.judgement for one in own if any(one.relevant)]
    return answerability(answered, [one.judgement for one in foreign])


class Owners:
    """Which document a chunk belongs to, remembered: the same few are found again and again."""

    def __init__(self, tools: SearchTools) -> None:
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


def _best_first(scores: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    return sorted(scores.items(), key=lambda pair: -pair[1])
