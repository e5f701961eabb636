"""Fitting confidence: judged answers → a calibration that `ranking.calibrate` applies.

There are two logistic regressions, one over hits and one over answers. The output of the second is corrected
by an isotonic table. The table is fitted to predictions for sets that the regression had not seen (of one set
alone, for queries), so that it corrects promises that are too high on unknown ground. Hits did not gain by
such a table. Every set weighs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from concord.answering.judge import Judgement, Verdict, with_answer
from concord.quality.evaluate import Outcome
from concord.ranking import calibrate
from concord.ranking.agreement import Cuts, answer_label, answerable, cap, label
from concord.ranking.blend import POOL
from concord.ranking.calibrate import Calibration, Logistic
from concord.ranking.features import answer_features, hit_features

Array = npt.NDArray[np.float64]

# Chosen leave-one-set-out on the development sets from all of `ranking.features`: few, and such that mean the
# same from one collection to the next. The number of chunks helped on known sets and failed on strange ones,
# and so did BM25 as a share of what the query could score: short queries reach much of it anywhere.
FITTED_HIT_FEATURES = ("document_cosine", "document_standing", "bm25_ratio", "document_coverage")
FITTED_ANSWER_FEATURES = (
    "top_cosine",
    "first_cosine",
    "standing_margin",
    "bm25_fall",
    "coverage",
    "unknown",
    "overlap",
)
# A feature that speaks for a hit or an answer gets no negative weight, and one that speaks against gets no
# positive one. Fitted freely, a query whose words were all found once came out as less likely answered.
FOR = frozenset({*FITTED_HIT_FEATURES, *FITTED_ANSWER_FEATURES} - {"unknown"})
AGAINST = frozenset({"unknown"})
# What part of the weight queries of other collections have: among answers, enough to learn what cannot be
# answered; among hits, because with less they promised too much where one of ten is relevant; in the isotonic
# table hardly any, because a probability is meant for a corpus's own queries.
FOREIGN_SHARE = 0.25
FOREIGN_SHARE_OF_HITS = 0.4
FOREIGN_SHARE_OF_TABLE = 0.01
PENALTY = 1e-3  # on squared standardised coefficients: a tenth or ten times as much changes nothing
PRIOR_PENALTY = 0.02  # on deviating from the shipped fit: a few hundred judged queries outweigh it
FOLDS = 5
POINTS = 20  # in the isotonic table: bins of equal weight, so that each has enough cases
CASES_A_POINT = 25

# The least probability for each label: what even its weakest cases are to keep. Most of its cases are well
# above its cut, so its precision is higher; `kb eval` measures it.
HIT_CUTS = {"very_high": 0.85, "high": 0.60, "medium_high": 0.30, "medium": 0.15}
ANSWER_CUTS = {"very_high": 0.95, "high": 0.75, "medium_high": 0.55, "medium": 0.35}
OWN_REFUSED, FOREIGN_ANSWERED = 0.05, 0.10  # the shares of both errors that are allowed on any set
STRONG, WEAK = 0.99, 0.50  # shares of foreign queries whose nearest chunk is below the strong or weak cut


class JudgedSet(NamedTuple):
    """The answers to one collection's own queries, and to queries of others."""

    name: str
    own: Sequence[Outcome]
    foreign: Sequence[Outcome]


class Cases(Struct, frozen=True):
    """What a regression learns from: features, truth, weights, and groups to leave out together."""

    features: Array
    true: Array
    weight: Array
    group: npt.NDArray[np.int64]


def fit(sets: Sequence[JudgedSet], model: str, prior: Calibration | None = None) -> Calibration:
    """Fit a calibration for an embedding model to judged sets; a prior is what to stay near to."""
    hit = fit_logistic(hit_cases(sets), FITTED_HIT_FEATURES, prior.hit if prior else None)
    asked, told = answer_cases(sets, FOREIGN_SHARE), answer_cases(sets, FOREIGN_SHARE_OF_TABLE)
    answer = straightened(asked, FITTED_ANSWER_FEATURES, prior.answer if prior else None, told.weight)
    reads = prior.other_scripts if prior else 1.0
    return Calibration(
        model, hit, answer, fit_cuts(sets, answer), reads, usual(sets) or (prior.usual if prior else None)
    )


def rejudged(judgement: Judgement, calibration: Calibration | None) -> Judgement:
    """Return the judgement that another calibration makes of the same evidence."""
    cuts = calibrate.cuts(calibration)
    verdicts = tuple(_revised(verdict, judgement, calibration, cuts) for verdict in judgement.verdicts)
    relevances = [verdict.relevance for verdict in verdicts]
    score = calibrate.confidence_score(calibration, judgement.signals, relevances) if verdicts else 0.0
    is_answerable = answerable(score, calibrate.cuts_for(cuts, judgement.signals))
    verdicts = with_answer(verdicts, score, is_answerable, cuts)
    return replace(
        judgement,
        verdicts=verdicts,
        label=answer_label((verdict.label for verdict in verdicts), score, cuts),
        confidence_score=score,
        answerable=is_answerable,
    )


def revised(outcomes: Iterable[Outcome], calibration: Calibration | None) -> list[Outcome]:
    """Return outcomes as they would be under another calibration."""
    return [one._replace(judgement=rejudged(one.judgement, calibration)) for one in outcomes]


def hit_cases(sets: Sequence[JudgedSet]) -> Cases:
    """Return every hit of every set: true when its document is relevant."""
    rows = [
        (_hit_row(verdict, outcome.judgement), true, weight, group)
        for outcome, weight, group in _weighted(sets, FOREIGN_SHARE_OF_HITS)
        for verdict, true in zip(outcome.judgement.verdicts, outcome.relevant, strict=True)
    ]
    return _cases(rows)


def answer_cases(sets: Sequence[JudgedSet], foreign_share: float) -> Cases:
    """Return every answer of every set: true when one of its hits is relevant."""
    return _cases(
        (_answer_row(outcome.judgement), any(outcome.relevant), weight, group)
        for outcome, weight, group in _weighted(sets, foreign_share)
    )


def straightened(
    cases: Cases, names: Sequence[str], prior: Logistic | None = None, weight: Array | None = None
) -> Logistic:
    """Fit a regression, and the table that corrects its predictions for cases it was not fitted to.

    In the table cases may weigh otherwise than in the regression.
    """
    model = fit_logistic(cases, names, prior)
    groups = np.unique(cases.group)
    if len(groups) < 3:
        return model
    unseen = np.empty(len(cases.true))
    for group in groups:
        out = cases.group == group
        unseen[out] = _raw(fit_logistic(_only(cases, ~out), names, prior), cases.features[out])
    return replace(model, isotonic=isotonic(unseen, cases.true, cases.weight, weight))


def fit_logistic(cases: Cases, names: Sequence[str], prior: Logistic | None = None) -> Logistic:
    """Fit a regression, near to a prior one over the same features if that is given."""
    from scipy.optimize import minimize

    near = prior if prior is not None and prior.features == tuple(names) else None
    mean, scale = _standard(cases, near)
    x = np.column_stack([(cases.features - mean) / scale, np.ones(len(cases.true))])
    start = np.array([*near.coef, near.intercept]) if near else np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], PRIOR_PENALTY if near else PENALTY)
    penalty[-1] = PRIOR_PENALTY if near else 0.0  # without a prior the intercept is free
    bounds = [*map(_bounds, names), (None, None)]
    found = minimize(_loss(x, cases, start, penalty), start, jac=True, method="L-BFGS-B", bounds=bounds)
    coef = [round(float(value), 6) for value in found.x]
    return Logistic(tuple(names), tuple(coef[:-1]), coef[-1], _rounded(mean), _rounded(scale))


def _bounds(name: str) -> tuple[float | None, float | None]:
    return (0.0 if name in FOR else None, 0.0 if name in AGAINST else None)


def isotonic(
    promised: Array, true: Array, weight: Array, inside: Array | None = None
) -> tuple[tuple[float, float], ...]:
    """Return points (promised, came true), both rising, over bins of equal weight.

    The first point is (0, 0), so that below the first bin less is promised for less. `weight` forms the bins;
    `inside`, if given, weighs the cases within a bin: so a rare kind of query can fill bins of its own, and
    count for little in those that it shares.
    """
    from scipy.optimize import isotonic_regression

    points = min(POINTS, len(true) // CASES_A_POINT)
    if points < 2:
        return ()
    order = np.argsort(promised, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    at = np.minimum((share * points).astype(int), points - 1)
    shared = weight if inside is None else inside
    held = np.bincount(at, shared[order], points)
    filled = held > 0
    x = np.bincount(at, (shared * promised)[order], points)[filled] / held[filled]
    y = np.bincount(at, (shared * true)[order], points)[filled] / held[filled]
    level = isotonic_regression(y, weights=held[filled]).x
    rising = np.flatnonzero(np.diff(x, prepend=-1.0) > 1e-9)  # equal promises cannot have two meanings
    found = [(round(float(x[i]), 6), round(float(level[i]), 6)) for i in rising]
    return tuple(found if found[0][0] == 0 else [(0.0, 0.0), *found])


def usual(sets: Sequence[JudgedSet]) -> tuple[float, float] | None:
    """Return the mean cosine of what own and foreign queries find, and the spread of what own ones find.

    Only where enough is found; every set weighs the same.
    """
    own = [*filter(None, (_mean_and_spread(held.own) for held in sets))]
    foreign = [*filter(None, (_mean_and_spread(held.foreign) for held in sets))]
    if not own:
        return None
    mean = np.mean([np.mean([mean for mean, _ in side]) for side in (own, foreign or own)])
    return round(float(mean), 4), round(float(np.mean([spread for _, spread in own])), 4)


def _mean_and_spread(outcomes: Sequence[Outcome]) -> tuple[float, float] | None:
    scores = [one.judgement.signals.semantic for one in outcomes]
    found = [(one.mean, one.spread) for one in scores if one.count >= POOL]
    if not found:
        return None
    mean, spread = np.mean(found, axis=0)
    return float(mean), float(spread)


def fit_cuts(sets: Sequence[JudgedSet], answer: Logistic) -> Cuts:
    """Return from which cosine on a hit is strong or weak, and from which score on there is an answer."""
    nearest = [one.judgement.signals.semantic.top for held in sets for one in held.foreign]
    if not nearest:
        return Cuts(hit=HIT_CUTS, answer=ANSWER_CUTS)
    weak, strong = (round(float(np.quantile(nearest, share)), 4) for share in (WEAK, STRONG))
    return Cuts(strong, weak, HIT_CUTS, ANSWER_CUTS, answerable_cut(sets, answer))


def answerable_cut(sets: Sequence[JudgedSet], answer: Logistic) -> float | None:
    """Return the confidence score that best separates answered from foreign queries on the hardest set."""

    def scores(outcomes: Iterable[Outcome]) -> Array:
        found = [one.judgement.signals for one in outcomes]
        return np.array([one.discount * calibrate.probability(answer, answer_features(one)) for one in found])

    pairs = [(scores(one for one in held.own if any(one.relevant)), scores(held.foreign)) for held in sets]
    usable = [(own, foreign) for own, foreign in pairs if len(own) and len(foreign)]
    if not usable:
        return None
    steps = np.linspace(0.01, 0.99, 99)
    cost = [max(_misjudged(own, foreign, cut) for own, foreign in usable) for cut in steps]
    best = np.flatnonzero(np.isclose(cost, min(cost)))
    return round(float(steps[best].mean()), 4)  # the middle of a gap, where there is one


def _misjudged(own: Array, foreign: Array, cut: float) -> float:
    """Return the worse of both kinds of error, each as a share of what is allowed."""
    wrongly_refused, wrongly_answered = float(np.mean(own < cut)), float(np.mean(foreign >= cut))
    return max(wrongly_refused / OWN_REFUSED, wrongly_answered / FOREIGN_ANSWERED)


def _revised(verdict: Verdict, judgement: Judgement, calibration: Calibration | None, cuts: Cuts) -> Verdict:
    evidence = replace(verdict.evidence, cuts=cuts)
    relevance = calibrate.relevance(calibration, verdict.signals, judgement.signals)
    return replace(
        verdict,
        relevance=relevance,
        passage=calibrate.relevance_alone(calibration, verdict.signals, judgement.signals, relevance),
        label=cap(label(evidence), relevance, cuts),
        evidence=evidence,
    )


def _hit_row(verdict: Verdict, judgement: Judgement) -> list[float]:
    values = hit_features(verdict.signals, judgement.signals)
    return [values[name] for name in FITTED_HIT_FEATURES]


def _answer_row(judgement: Judgement) -> list[float]:
    values = answer_features(judgement.signals)
    return [values[name] for name in FITTED_ANSWER_FEATURES]


def _weighted(sets: Sequence[JudgedSet], foreign_share: float) -> Iterable[tuple[Outcome, float, int]]:
    """Yield outcomes with their weights and groups: a set is a group, or of few sets a fifth."""
    for at, held in enumerate(sets):
        shares = (
            (held.own, 1 - foreign_share if held.foreign else 1.0),
            (held.foreign, foreign_share),
        )
        for outcomes, share in shares:
            for place, outcome in enumerate(outcomes):
                group = at if len(sets) >= 3 else at * FOLDS + place % FOLDS
                yield outcome, share / len(outcomes), group


def _cases(rows: Iterable[tuple[list[float], bool, float, int]]) -> Cases:
    features, true, weight, group = zip(*rows, strict=True)
    weights = np.array(weight)
    return Cases(np.array(features), np.array(true, dtype=float), weights / weights.sum(), np.array(group))


def _only(cases: Cases, chosen: npt.NDArray[np.bool_]) -> Cases:
    return Cases(cases.features[chosen], cases.true[chosen], cases.weight[chosen], cases.group[chosen])


def _loss(x: Array, cases: Cases, start: Array, penalty: Array) -> Callable[[Array], tuple[float, Array]]:
    weight = cases.weight / cases.weight.sum()

    def loss(at: Array) -> tuple[float, Array]:
        odds, moved = x @ at, at - start
        value = weight @ (np.logaddexp(0, odds) - cases.true * odds) + penalty @ moved**2
        slope = x.T @ (weight * (_sigmoid(odds) - cases.true)) + 2 * penalty * moved
        return float(value), slope

    return loss


def _standard(cases: Cases, prior: Logistic | None) -> tuple[Array, Array]:
    if prior is not None:
        return np.array(prior.mean), np.array([scale or 1.0 for scale in prior.scale])
    mean = np.average(cases.features, axis=0, weights=cases.weight)
    spread = np.sqrt(np.average((cases.features - mean) ** 2, axis=0, weights=cases.weight))
    scale: Array = np.where(spread > 1e-6, spread, 1.0).astype(np.float64)
    return np.round(mean, 6), np.round(scale, 6)


def _raw(model: Logistic, features: Array) -> Array:
    odds = ((features - np.array(model.mean)) / np.array(model.scale)) @ np.array(
        model.coef
    ) + model.intercept
    return _sigmoid(odds)


def _sigmoid(odds: Array) -> Array:
    return 0.5 * (1 + np.tanh(odds / 2))


def _rounded(values: Array) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)
