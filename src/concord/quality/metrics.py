"""How good is a ranking, how long does it take, and does confidence hold? Figures of what was answered.

Rankings are measured by ir-measures, not by arithmetic of our own. The expected calibration error is the mean
distance between what is promised and what comes true, over ten bins of equal width (Naeini et al. 2015); it
comes with the one that chance alone would make: with few cases even true probabilities have an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, quantiles, stdev
from typing import NamedTuple

from msgspec import Struct

from concord.quality.collection import Qrels
from concord.search.judge import LABELS, Verdict
from concord.types import QueryType

MEASURES = ("nDCG@10", "R@5", "R@10", "R@100", "RR", "P@1")
BINS = 10
TOP = 3  # an answer's label is right if one of so many first hits is relevant: few readers look further
CERTAIN = 1.96  # standard errors on either side of a mean: 95 %

Run = dict[str, dict[str, float]]  # query → document → score
Latency = Mapping[str, float]  # p50 and p95, in milliseconds; nothing where nothing was measured


def measure(qrels: Qrels, run: Run, measures: Sequence[str] = MEASURES) -> dict[str, float]:
    """Return the mean of each measure over the queries of a run."""
    return {name: fmean(values.values()) for name, values in measure_each(qrels, run, measures).items()}


def measure_each(qrels: Qrels, run: Run, measures: Sequence[str] = MEASURES) -> dict[str, dict[str, float]]:
    """Return measure → query → value; a query that finds nothing has 0."""
    import ir_measures  # only evaluation pays for it

    wanted = {}  # by attribute: the library's parser of names uses what Python 3.14 removes
    for name in measures:
        kind, _, depth = name.partition("@")
        wanted[getattr(ir_measures, kind) @ int(depth) if depth else getattr(ir_measures, kind)] = name
    values = {name: dict.fromkeys(run, 0.0) for name in measures}
    judged = {query: dict(qrels[query]) for query in run}
    for found in ir_measures.iter_calc([*wanted], judged, run):
        values[wanted[found.measure]][found.query_id] = float(found.value)
    return values


class Interval(NamedTuple):
    """A mean, and where the true one is in 95 of 100 cases."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of some values with its 95 % confidence interval."""
    mean = fmean(values)
    off = CERTAIN * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Interval(mean, max(-1.0, mean - off), min(1.0, mean + off))


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
    bins, by_chance, n = [], 0.0, max(1, len(known))
    for at, inside in enumerate(filled):
        spread = math.fsum(promised * (1 - promised) for promised, _ in inside)
        by_chance += math.sqrt(2 / math.pi * spread)  # the mean distance of a normal distribution
        promised = math.fsum(p for p, _ in inside) / max(1, len(inside))
        bins.append(Bin(at / BINS, (at + 1) / BINS, len(inside), promised, _share([t for _, t in inside])))
    return Reliability(
        n=len(known),
        ece=math.fsum(part.n * abs(part.promised - part.true) for part in bins) / n,
        ece_by_chance=by_chance / n,
        brier=math.fsum((promised - true) ** 2 for promised, true in known) / n,
        bins=tuple(bins),
    )


def precisions(cases: Iterable[tuple[str, bool]]) -> tuple[LabelPrecision, ...]:
    """Return how often each label was right, best label first; labels that nobody got are left out."""
    found: dict[str, list[bool]] = {}
    for label, true in cases:
        found.setdefault(label, []).append(true)
    order = [*LABELS, *sorted(found.keys() - set(LABELS))]
    return tuple(
        LabelPrecision(name, len(found[name]), _share(found[name])) for name in order if name in found
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


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how likely a positive case scores above a negative one, ties counting half."""
    if not positive or not negative:
        return 0.5
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(positive, negative).statistic) / (len(positive) * len(negative))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
