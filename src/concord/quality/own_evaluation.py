"""How good is search on one's own documents? Pairs that people wrote are asked in every mode.

Each is asked once more without the documents that answer it: its leave-out twin, which is to be refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from msgspec import DecodeError, Struct, json

from concord.core.errors import BadValue
from concord.core.protocols import Progress
from concord.quality.collection import Collection
from concord.quality.evaluate import ask, ask_deeply
from concord.quality.metrics import (
    Answerability,
    Outcome,
    Promises,
    Run,
    answerability,
    measure_each,
    promises,
)
from concord.quality.own_pairs import Pair
from concord.search.tools import Tools
from concord.store.contract import Catalog, Select, documents_at

MEASURES = ("nDCG@10", "R@5", "RR")
CERTAIN = 1.96  # standard errors on either side of a mean: 95 %
WORST = 5
LEFT_OUT = 0.25  # of the documents, at most: a base with more taken out is another one


class Interval(NamedTuple):
    """A mean, and where the true one is in 95 of 100 cases."""

    mean: float
    low: float
    high: float


Figures = Mapping[str, Mapping[str, Interval]]  # mode → measure


class Worst(NamedTuple):
    """A pair that search does badly on, to be looked at."""

    kind: str
    query: str
    wanted: str  # the path of a document that answers it
    rank: int | None  # of the first such document in `auto`
    first: str | None  # the path of what came first instead
    confidence: float


class OwnEvaluation(Struct, frozen=True):
    """What was measured on one's own documents."""

    name: str
    model: str | None
    documents: int
    kinds: Mapping[str, int]  # kind of pair → how many
    measures: Mapping[str, Mapping[str, float]]  # mode → measure → mean
    intervals: Figures
    by_kind: Mapping[str, Figures]
    best: str  # the mode to use: `auto`, unless another has a better nDCG@10 beyond chance
    behind: Mapping[str, Interval]  # other mode → by how much the best one is better, pair by pair
    promises: Promises
    twins: Answerability | None  # None where nothing was left out
    worst: Sequence[Worst]
    runs: Mapping[str, Run]


def evaluate_pairs(
    name: str, pairs: Sequence[Pair], tools: Tools, progress: Progress, *, twins: bool = True
) -> OwnEvaluation:
    """Ask pairs of a store; with `twins`, documents are then deleted from it, and asked for again.

    Raises:
        BadValue: there are no pairs.
    """
    if not pairs:
        raise BadValue(
            f"no words in {name} say what a document is about",
            hint="titles, headings and links of three words or more do, or results that were called good",
        )
    named = {f"q{at}": pair for at, pair in enumerate(pairs)}
    qrels = {id: dict.fromkeys(pair.targets, 1) for id, pair in named.items()}
    collection = Collection(Path(name), {id: pair.query for id, pair in named.items()}, qrels)
    runs, outcomes = ask_deeply(collection, tools, progress)
    values = {mode: measure_each(qrels, run, MEASURES) for mode, run in runs.items()}
    kinds = Counter(pair.kind for pair in pairs)
    ndcg = {mode: values[mode]["nDCG@10"] for mode in runs}
    best = _best(ndcg)
    catalog, active = tools.store.catalog, tools.store.catalog.snapshot().active
    figures = _figures(values, lambda id: True)
    worst = _worst(named, outcomes, runs["auto"], ndcg["auto"], catalog)  # before any document is deleted
    documents = catalog.count().documents
    return OwnEvaluation(
        name=name,
        model=active.identity.name if active and tools.similarity else None,
        documents=documents,
        kinds=dict(kinds.most_common()),
        measures={mode: {m: given.mean for m, given in figures[mode].items()} for mode in runs},
        intervals=figures,
        by_kind={kind: _figures(values, lambda id, kind=kind: named[id].kind == kind) for kind in kinds},  # type: ignore[misc]
        best=best,
        behind={
            mode: interval([ndcg[best][id] - ndcg[mode][id] for id in named]) for mode in runs if mode != best
        },
        promises=promises(outcomes),
        twins=_refusals(pairs, outcomes, documents, tools, progress) if twins else None,
        worst=worst,
        runs=runs,
    )


def _best(ndcg: Mapping[str, Mapping[str, float]]) -> str:
    leader = max(ndcg, key=lambda mode: fmean(ndcg[mode].values()))
    ahead = interval([value - ndcg["auto"][id] for id, value in ndcg[leader].items()])
    return leader if ahead.low > 0 else "auto"


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of some values with its 95 % confidence interval."""
    mean = fmean(values)
    off = CERTAIN * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Interval(mean, max(-1.0, mean - off), min(1.0, mean + off))


def _figures(values: Mapping[str, Mapping[str, Mapping[str, float]]], of: Callable[[str], bool]) -> Figures:
    return {
        mode: {m: interval([value for id, value in each.items() if of(id)]) for m, each in measured.items()}
        for mode, measured in values.items()
    }


def _refusals(
    pairs: Sequence[Pair], outcomes: Sequence[Outcome], documents: int, tools: Tools, progress: Progress
) -> Answerability:
    """Take documents away, and ask for them: told apart from what is there, such questions are refused."""
    gone: set[str] = set()
    for pair in pairs:
        gone |= {*pair.targets} if len(gone.union(pair.targets)) <= LEFT_OUT * documents else set()
    twins = [pair.query for pair in pairs if gone.issuperset(pair.targets)]
    tools.store.catalog.delete_documents(sorted(gone))
    asked = [outcome.verdict for outcome in ask(twins, tools, progress)]
    return answerability([o.verdict for o in outcomes if any(o.relevant)], asked)


def _worst(
    named: Mapping[str, Pair],
    outcomes: Iterable[Outcome],
    run: Run,
    ndcg: Mapping[str, float],
    catalog: Catalog,
) -> list[Worst]:
    """Return the pairs that `auto` does worst on; of equals, those that it is most sure of."""
    sure = {outcome.query_id: outcome.verdict.confidence_score for outcome in outcomes}
    last = sorted(named, key=lambda id: (ndcg[id], -sure[id]))[:WORST]
    found = []
    for id in (id for id in last if ndcg[id] < 1):
        pair, order = named[id], sorted(run[id], key=lambda document: -run[id][document])
        rank = next((at for at, document in enumerate(order, 1) if document in pair.targets), None)
        wanted, first = _path(pair.targets[0], catalog), _path(order[0], catalog) if order else None
        found.append(Worst(pair.kind, pair.query, wanted or "", rank, first, sure[id]))
    return found


def _path(document_id: str, catalog: Catalog) -> str | None:
    return next((document.path for document in catalog.documents(Select(ids=[document_id]))), None)


class _Judged(Struct):
    """A question of a fixture, and the files that answer it."""

    query: str
    expected_files: list[str]
    type: str = "query"


class _Fixture(Struct):
    queries: list[_Judged]
    description: str = ""


def read_fixture(path: Path, catalog: Catalog) -> list[Pair]:
    """Return the questions of a fixture as qmd writes them, with those of their files that are indexed.

    Raises:
        BadValue: the file is no fixture, or none of its files is indexed.
    """
    try:
        fixture = json.decode(path.read_bytes(), type=_Fixture)
    except (OSError, DecodeError) as fault:
        raise BadValue(
            f"cannot read {path}: {fault}",
            hint='a folder as BEIR has them, or JSON with "queries" of a "query" and "expected_files" each',
        ) from fault
    pairs = []
    for judged in fixture.queries:
        found = [
            document for name in judged.expected_files for document in documents_at(catalog, _bare(name))
        ]
        if found and judged.query.strip():
            targets = tuple(dict.fromkeys(document.id for document in found))
            pairs.append(Pair(judged.type, judged.query, targets))
    if not pairs:
        raise BadValue(
            f"no file that {path} expects is indexed", hint="index the folder that they are in first"
        )
    return pairs


def _bare(name: str) -> str:
    """Return a path without the scheme and the collection that qmd may put before it."""
    scheme, _, rest = name.partition("://")
    return (rest.partition("/")[2] if rest and scheme == "qmd" else name).strip("/")
