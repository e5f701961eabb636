"""How good is a ranking, how long does it take, and does confidence hold? Figures of what was answered.

Rankings are measured by ir-measures, not by arithmetic of our own.
The expected calibration error is the mean distance between what is promised and what comes true, over ten
bins of equal width (Naeini et al. 2015). This error comes with
the one that chance alone would make: with few cases even true probabilities have an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median, quantiles
from typing import Any, NamedTuple

from msgspec import Struct

from concord.quality.collection import Qrels
from concord.search.judge import LABELS, Verdict
from concord.types import QueryType

MEASURES = ("nDCG@10", "R@5", "R@10", "R@100", "RR", "P@1")
BINS = 10
TOP = 3  # an answer's label is right if one of so many first hits is relevant: few readers look further

Run = dict[str, dict[str, float]]  # query → document → score
Latency = Mapping[str, float]  # p50 and p95, in milliseconds; nothing where nothing was measured


def measure(qrels: Qrels, run: Run, measures: Sequence[str] = MEASURES) -> dict[str, float]:
    """Return the mean of each measure over the queries of a run."""
    import ir_measures  # only evaluation pays for it

    wanted = {name: _measure_called(name) for name in measures}
    judged = {query: dict(qrels[query]) for query in run}
    values = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    return {name: float(values[wanted[name]]) for name in measures}


def measure_each(qrels: Qrels, run: Run, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return measure → query → value; a query that finds nothing has 0."""
    import ir_measures

    wanted = {name: _measure_called(name) for name in measures}
    values = {name: dict.fromkeys(run, 0.0) for name in measures}
    names = {str(measure): name for name, measure in wanted.items()}
    judged = {query: dict(qrels[query]) for query in run}
    for found in ir_measures.iter_calc(list(wanted.values()), judged, run):
        values[names[str(found.measure)]][found.query_id] = float(found.value)
    return values


def _measure_called(name: str) -> Any:
    """Return a measure by its name, as nDCG@10. The library's parser uses what Python 3.14 removes."""
    import ir_measures

    kind, _, depth = name.partition("@")
    measure = getattr(ir_measures, kind)
    return measure @ int(depth) if depth else measure


def percentiles(took_ms: Iterable[float]) -> Latency:
    """Return the median and the 95th percentile, neither beyond what was measured."""
    known = sorted(took_ms)
    if len(known) < 2:
        return dict.fromkeys(("p50", "p95"), known[0]) if known else {}
    return {"p50": median(known), "p95": quantiles(known, n=20, method="inclusive")[-1]}


class Outcome(NamedTuple):
    """One answered query, for judging confidence: what was said and why, and what was true."""

    query_id: str
    type: QueryType
    verdict: Verdict
    relevant: tuple[bool, ...]  # for each hit, whether its document is relevant
    took_ms: float
    cosines: tuple[float, float] | None = None  # mean and spread of the nearest candidates, if they are many


class Bin(NamedTuple):
    """The cases whose promised probability lies between two bounds."""

    low: float
    high: float
    n: int
    promised: float  # mean of the probabilities; 0 if there are none
    true: float  # share of the cases that came true


class Reliability(Struct, frozen=True):
    """How well a probability is kept."""

    n: int
    ece: float
    ece_by_chance: float  # what to expect by chance if every probability were exact and cases independent
    brier: float
    bins: tuple[Bin, ...]


class LabelPrecision(NamedTuple):
    """How often a label is right."""

    label: str
    n: int
    precision: float


class Promises(Struct, frozen=True):
    """Whether scores and labels hold, on the queries of a collection."""

    score: Reliability  # a hit's: is its document relevant?
    confidence_score: Reliability  # an answer's: is a relevant document among its hits?
    hit_labels: tuple[LabelPrecision, ...]
    answer_labels: tuple[LabelPrecision, ...]  # see TOP


class Answerability(Struct, frozen=True):
    """How well questions that the collection cannot answer are told apart from those it answered."""

    own: int  # queries of the collection with a relevant document among their hits
    foreign: int
    auroc: float  # how well confidence_score separates the two
    foreign_flagged: float  # share of foreign queries with `answerable` false, rightly
    own_flagged: float  # share of own queries with `answerable` false, wrongly


class Gibberish(Struct, frozen=True):
    """What nonsense scores, against the collection's own queries."""

    n: int
    highest: float  # the best score of any hit
    own_median: float  # median of the best scores of own queries


def promises(outcomes: Sequence[Outcome]) -> Promises:
    """Measure scores and labels of answered queries."""
    hits = [pair for o in outcomes for pair in zip(o.verdict.judged, o.relevant, strict=True)]
    said = [(outcome.verdict, outcome.relevant) for outcome in outcomes]
    return Promises(
        score=reliability((hit.score, relevant) for hit, relevant in hits),
        confidence_score=reliability((verdict.confidence_score, any(truths)) for verdict, truths in said),
        hit_labels=precisions((hit.label, relevant) for hit, relevant in hits),
        answer_labels=precisions((verdict.label, any(truths[:TOP])) for verdict, truths in said),
    )


def reliability(cases: Iterable[tuple[float, bool]]) -> Reliability:
    """Measure probabilities against what came true."""
    known = list(cases)
    filled: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for promised, true in known:
        filled[min(BINS - 1, int(promised * BINS))].append((promised, true))
    bins = tuple(_bin(at, inside) for at, inside in enumerate(filled))
    n = len(known)
    return Reliability(
        n=n,
        ece=math.fsum(b.n * abs(b.promised - b.true) for b in bins) / n if n else 0.0,
        ece_by_chance=math.fsum(map(_missed_by_chance, filled)) / n if n else 0.0,
        brier=math.fsum((promised - true) ** 2 for promised, true in known) / n if n else 0.0,
        bins=bins,
    )


def precisions(cases: Iterable[tuple[str, bool]]) -> tuple[LabelPrecision, ...]:
    """Return how often each label was right, best label first; labels that nobody got are left out."""
    found: dict[str, list[bool]] = {}
    for label, true in cases:
        found.setdefault(label, []).append(true)
    order = [*LABELS, *sorted(found.keys() - set(LABELS))]
    return tuple(
        LabelPrecision(label, len(found[label]), sum(found[label]) / len(found[label]))
        for label in order
        if label in found
    )


def answerability(answered: Sequence[Verdict], foreign: Sequence[Verdict]) -> Answerability:
    """Measure how well answered queries are told from foreign ones."""
    own_scores, foreign_scores = ([v.confidence_score for v in side] for side in (answered, foreign))
    return Answerability(
        own=len(answered),
        foreign=len(foreign),
        auroc=auroc(own_scores, foreign_scores),
        foreign_flagged=_share([verdict.answerable is False for verdict in foreign]),
        own_flagged=_share([verdict.answerable is False for verdict in answered]),
    )


def gibberish(own: Sequence[Verdict], nonsense: Sequence[Verdict]) -> Gibberish:
    """Compare the top hits of nonsense with those of real queries; an answer without a hit scores 0."""
    own_tops, tops = (
        [verdict.judged[0].score if verdict.judged else 0.0 for verdict in side] for side in (own, nonsense)
    )
    return Gibberish(
        n=len(tops), highest=max(tops, default=0.0), own_median=median(own_tops) if own_tops else 0.0
    )


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how likely a positive case scores above a negative one, ties counting half."""
    if not positive or not negative:
        return 0.5
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(positive, negative).statistic) / (len(positive) * len(negative))


def _bin(at: int, inside: Sequence[tuple[float, bool]]) -> Bin:
    promised = math.fsum(p for p, _ in inside) / len(inside) if inside else 0.0
    return Bin(at / BINS, (at + 1) / BINS, len(inside), promised, _share([true for _, true in inside]))


def _missed_by_chance(inside: Sequence[tuple[float, bool]]) -> float:
    """Return by how many cases a true probability is missed by chance, on average (normal distribution)."""
    return math.sqrt(2 / math.pi * math.fsum(promised * (1 - promised) for promised, _ in inside))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
