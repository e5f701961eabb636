"""Answers that confidence is fitted to: what a set knows, what it cannot know, and what it only nearly knows.

Each query is asked with meaning and by words alone. Beside the whole set it is asked of stores of a few
documents, and of the set without the documents that answer it: topics are there then, and answers are not.
"""

from __future__ import annotations

import math
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import mean
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from benchmarks.copying import copy_documents
from benchmarks.development import TRAIN, folder, rows, strangers, unshared
from benchmarks.stored import vectors_of
from benchmarks.synthetic import SEED
from concord.cli.output import table
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, foreign_queries, read_collection
from concord.quality.evaluate import UNHURRIED_MS, outcome_of
from concord.quality.fit import LEAST_OF_A_SET, JudgedSet, fit, revised
from concord.quality.metrics import Outcome, auroc, promises
from concord.search.calibration import Calibration, ReaderCuts
from concord.search.legs import Semantic, Tools
from concord.search.pipeline import examine
from concord.search.setup import Searching
from concord.types import Document, Mode, Request, silent

SETTLED = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)  # log-odds that are tried
LOST = 0.002  # of AUROC by reading no further

Kind = Literal["own", "foreign", "near"]

COLUMNS = ("set", "ECE", "of scores", "own refused", "foreign", "AUROC") + (
    "near misses",
    "AUROC",
    "few: own refused",
    "near misses",
)
QUERIES = int(os.environ.get("KB_BENCH_QUERIES", 300))  # own queries of a set; half as many others
LEFT_OUT = 0.25  # of a set's documents, at most, that are taken away to make near misses
SIZES = {6: 30, 30: 8, 300: 2}  # documents of a small store, and how many such stores of a set
ASKED_OF_A_STORE = {6: 1, 30: 4, 300: 20}  # queries that it answers, and as many that it does not
IN_MEMORY = 30  # documents, up to which a store is kept in memory
MODES: tuple[Mode, ...] = ("auto", "fts5")


class Case(NamedTuple):
    """One answer, and what was true."""

    kind: Kind
    documents: int | None  # how many there are in a small store; None: the whole set
    outcome: Outcome


class Asked(NamedTuple):
    """One query, and which documents answer it."""

    kind: Kind
    id: str
    text: str
    judged: Mapping[str, int] = {}


def judged_sets(
    knowledge: KnowledgeBase, name: str, names: Sequence[str], calibration: Calibration
) -> list[JudgedSet]:
    """Return the answers of a set, and those of stores of few of its documents, to fit to.

    The calibration says how the model reads scripts, and what cosines are usual; it judges nothing here.
    """
    sys.stderr.write(f"{name} …\n")
    parts: dict[int | None, dict[str, list[Outcome]]] = {}
    for case in cases(knowledge, name, names, calibration):
        of_kind = parts.setdefault(case.documents, {"own": [], "foreign": [], "near": []})
        of_kind[case.kind].append(case.outcome)
    return [JudgedSet(name, **kinds, few=size is not None) for size, kinds in parts.items()]


def cases(
    knowledge: KnowledgeBase, name: str, names: Sequence[str], calibration: Calibration
) -> Iterator[Case]:
    """Yield the answers to all that is asked of a set and of parts of it."""
    collection = to_fit(read_collection(folder() / name, TRAIN.get(name))).sampled(QUERIES)
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        tools = replace(tools, calibration=calibration)
        own = [Asked("own", id, text, collection.qrels[id]) for id, text in collection.judged.items()]
        others = foreign_queries(strangers(name, names), QUERIES // 2)
        foreign = [Asked("foreign", text, text) for texts in others.values() for text in texts]
        yield from _answers(None, [*own, *foreign, *_by_hand(name)], tools)
        documents = {document.id: document for document in tools.store.catalog.documents()}
        left_out, missed = _left_out(own, documents)
        kept = [document for id, document in documents.items() if id not in left_out]
        with _part(kept, knowledge, tools) as part:
            yield from _answers(None, missed[: QUERIES // 2], part)
        for size, stores in SIZES.items():
            for number in range(stores if len(documents) > 2 * size else 0):
                yield from _of_few(own, documents, size, number, knowledge, tools)


def to_fit(collection: Collection) -> Collection:
    """Return a collection without what the reader is judged on, and without what it has learned from."""
    kept = {row["_id"] for row in rows(collection.folder.name, "queries.jsonl") if _is_kept(row)}
    queries = {id: text for id, text in collection.queries.items() if id not in kept}
    return unshared(replace(collection, queries=queries))


def _is_kept(row: Mapping[str, Any]) -> bool:
    return bool(row.get("kept_from_training"))


def _by_hand(name: str) -> list[Asked]:
    """Return questions that people wrote about passages which do not answer them, where a set has some."""
    texts = [row["text"] for row in rows(name, "unanswerable.jsonl") if not _is_kept(row)]
    return [Asked("near", text, text) for text in random.Random(SEED).sample(texts, min(QUERIES, len(texts)))]


def _left_out(own: Sequence[Asked], documents: Mapping[str, Document]) -> tuple[set[str], list[Asked]]:
    """Return documents to take away, and the queries that nothing answers then."""
    gone: set[str] = set()
    for query in own:
        wanted = gone | _relevant(query)
        if len(wanted) <= LEFT_OUT * len(documents):
            gone = wanted
    missed = [query._replace(kind="near", judged={}) for query in own if _relevant(query) <= gone]
    return gone, missed


def _relevant(query: Asked) -> set[str]:
    return {id for id, grade in query.judged.items() if grade > 0}


def _of_few(
    own: Sequence[Asked],
    documents: Mapping[str, Document],
    size: int,
    number: int,
    knowledge: KnowledgeBase,
    tools: Tools,
) -> Iterator[Case]:
    """Yield the answers of a store of few documents to some queries it answers, and to others of the set."""
    chance = random.Random(f"{SEED} {size} {number}")
    asked = ASKED_OF_A_STORE[size]
    held = chance.sample(own, min(asked, len(own)))
    ids = {chance.choice(sorted(_relevant(query) & documents.keys())) for query in held}
    rest = sorted(documents.keys() - ids)
    ids |= {*chance.sample(rest, max(0, size - len(ids)))}
    lacking = [query for query in own if not _relevant(query) & ids]
    missed = [
        query._replace(kind="near", judged={}) for query in chance.sample(lacking, min(asked, len(lacking)))
    ]
    with _part([documents[id] for id in ids], knowledge, tools) as part:
        yield from _answers(size, [*held, *missed], part)


@contextmanager
def _part(documents: Sequence[Document], knowledge: KnowledgeBase, tools: Tools) -> Iterator[Tools]:
    """Yield what a store of some of the documents is searched with; vectors are those of the whole set."""
    assert knowledge.embedder is not None
    with tempfile.TemporaryDirectory() as place:
        url = "memory://" if len(documents) <= IN_MEMORY else f"sqlite:///{place}"
        with KnowledgeBase.open(store__url=url) as part:
            copy_documents(documents, tools.store, part.store)
            words = Searching(part.parts).tools(Request("", mode="fts5"), wait_for_model=False).strategies
            meaning = Semantic(vectors_of(part.store), knowledge.embedder)
            yield replace(
                tools, store=part.store, strategies=[*words, meaning], similarity=meaning, snapshot=None
            )


def _answers(documents: int | None, asked: Iterable[Asked], tools: Tools) -> Iterator[Case]:
    by_words = replace(
        tools,
        strategies=[strategy for strategy in tools.strategies if strategy.leg == "lexical"],
        similarity=None,
        reranker=None,
    )
    for query in asked:
        for mode in MODES:
            request = Request(query.text, mode=mode, deadline_ms=UNHURRIED_MS)
            examined = examine(request, by_words if mode == "fts5" else tools)
            yield Case(query.kind, documents, _light(outcome_of(query.id, examined, query.judged)))


def _light(outcome: Outcome) -> Outcome:
    """Return an outcome without the texts of its passages: thousands are kept until the fit."""
    rows = [
        replace(
            row,
            passage=replace(row.passage, chunk=replace(row.passage.chunk, text="")),
        )
        for row in outcome.verdict.judged
    ]
    return outcome._replace(verdict=replace(outcome.verdict, judged=tuple(rows)))


def left_out_table(sets: Sequence[JudgedSet], model: str, reader: ReaderCuts) -> str:
    """Return how well confidence holds on each set, judged by a fit to the others.

    Of answers in `auto`: errors of calibration, shares of own, foreign and nearly answered queries that are
    refused, how well own ones are told from both, and what of few documents' own and other queries is
    called answerable and refused.
    """
    names = [*dict.fromkeys(held.name for held in sets)]
    rows, answers = [], []
    for name in names:
        others = [held for held in sets if held.name != name]
        calibration = fit(others, model, reader)
        kinds: dict[str, list[Outcome]] = {}
        for held in sets:
            if held.name == name:
                for kind, outcomes in held.kinds():
                    kinds.setdefault(kind, []).extend(_in_auto(revised(outcomes, calibration)))
        answers += kinds["own"]
        rows.append((name, *_figures(kinds)))
    rows.append(("all", *_errors(answers), *[""] * (len(COLUMNS) - 3)))
    return table(COLUMNS, rows)


def _in_auto(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.verdict.falls]


def _figures(kinds: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    answered = [outcome for outcome in kinds["own"] if any(outcome.relevant)]
    few = [outcome for outcome in kinds.get("few own", ()) if any(outcome.relevant)]
    foreign, near, lacking = kinds["foreign"], kinds["near"], kinds.get("few near", ())
    yield from _errors(kinds["own"])
    yield from (_refused(answered), _refused(foreign), _auroc(answered, foreign))
    yield from (_refused(near), _auroc(answered, near), _refused(few), _refused(lacking))


def _errors(own: Sequence[Outcome]) -> tuple[str, str]:
    kept = promises(own)
    return f"{kept.confidence_score.ece:.3f}", f"{kept.score.ece:.3f}"


def _refused(outcomes: Sequence[Outcome]) -> str:
    return f"{mean(not outcome.verdict.answerable for outcome in outcomes):.3f}" if outcomes else ""


def _auroc(answered: Sequence[Outcome], others: Sequence[Outcome]) -> str:
    scores = ([outcome.verdict.confidence_score for outcome in side] for side in (answered, others))
    return f"{auroc(*scores):.3f}"


def reader_cuts(sets: Sequence[JudgedSet]) -> ReaderCuts:
    """Return from which log-odds on no further passage is read: the least that costs next to nothing.

    What it costs is measured in AUROC between own queries that have an answer and near misses, in the mean
    of the sets: the reader is believed no further than that.
    """
    sides = [
        (
            _best_read(outcome for outcome in held.own if any(outcome.relevant)),
            _best_read(held.near),
        )
        for held in sets
        if not held.few
    ]
    sides = [(own, near) for own, near in sides if len(own) >= LEAST_OF_A_SET <= len(near)]
    if not sides:
        return ReaderCuts()

    def told(most: float) -> float:
        clipped = (([min(x, most) for x in own], [min(x, most) for x in near]) for own, near in sides)
        return mean(auroc(*pair) for pair in clipped)

    enough = told(math.inf) - LOST
    return ReaderCuts(settled=next((cut for cut in SETTLED if told(cut) >= enough), None))


def believing(sets: Iterable[JudgedSet], cuts: ReaderCuts) -> list[JudgedSet]:
    """Return sets that were asked with all read, as if the reader read no further than what settles it."""
    most = math.inf if cuts.settled is None else cuts.settled

    def believed(features: Mapping[str, float]) -> Mapping[str, float]:
        return {name: min(value, most) if "reader" in name else value for name, value in features.items()}

    def clipped(outcome: Outcome) -> Outcome:
        verdict = outcome.verdict
        judged = tuple(replace(row, features=believed(row.features)) for row in verdict.judged)
        return outcome._replace(verdict=replace(verdict, judged=judged, features=believed(verdict.features)))

    return [
        JudgedSet(
            held.name,
            [*map(clipped, held.own)],
            [*map(clipped, held.foreign)],
            [*map(clipped, held.near)],
            held.few,
        )
        for held in sets
    ]


def _best_read(outcomes: Iterable[Outcome]) -> list[float]:
    known = (outcome.verdict.features for outcome in outcomes)
    return [features["best_reader"] for features in known if "best_reader" in features]
