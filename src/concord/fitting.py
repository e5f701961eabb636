"""Fitting confidence: judged answers → a calibration that `ranking.calibrate` applies.

Two logistic regressions, one over hits and one over answers, each straightened by an isotonic table. That is
fitted on predictions for sets (or, of a single set, queries) that the regression had not seen, so it also
takes back what a regression promises too much of on strange ground. Every set weighs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from concord.evaluate import Outcome
from concord.judge import Judgement, Verdict
from concord.ranking import calibrate
from concord.ranking.agreement import Cuts, answer_label, answerable, cap, label
from concord.ranking.calibrate import Calibration, Logistic
from concord.ranking.features import features_answer, features_hit
from concord.reliability import TOP

Array = npt.NDArray[np.float64]

# Chosen leave-one-set-out on the development sets from all of `ranking.features`: those that mean the same
# from one collection to the next. Query types and raw counts do not, and were left out.
HIT_FEATURES = ("cosine", "standing", "bm25_ratio", "coverage", "chunks", "terms")
ANSWER_FEATURES = (
    "top_cosine",
    "cosine_lead",
    "top_bm25_share",
    "bm25_margin_tenth",
    "coverage",
    "unknown",
    "overlap",
    "first_agreement",
    "chunks",
)
FOREIGN_SHARE_OF_ANSWERS = 0.3  # enough to be refused, and answers to own queries keep their probability
FOREIGN_SHARE_OF_HITS = 0.1  # hits of foreign queries are wrong, and shall look it, without ruling the fit
PENALTY = 1e-3  # on squared standardised coefficients: ten times less or more changes nothing
PRIOR_PENALTY = 0.02  # on leaving the shipped fit: some hundred judged queries outweigh it
FOLDS = 5
POINTS = 20  # of the isotonic table: bins of equal weight, so that each rests on enough cases
CASES_A_POINT = 25

# Precision that a label promises. A hit's is measured on hits, an answer's on its first three.
HIT_PROMISES = {"very_high": 0.90, "high": 0.65, "medium_high": 0.45, "medium": 0.25}
ANSWER_PROMISES = {"very_high": 0.92, "high": 0.80, "medium_high": 0.65, "medium": 0.45}
FLAGGED_OWN, FLAGGED_FOREIGN = 0.05, 0.90  # most of the answered refused; least of the foreign refused
STRONG, WEAK = 0.99, 0.50  # share of foreign queries whose nearest chunk is farther than a strong, a weak one


class JudgedSet(NamedTuple):
    """The answers to one collection's own queries, and to queries of others."""

    name: str
    own: Sequence[Outcome]
    foreign: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class Cases:
    """What a regression learns from: features, truth, weight, and which cases must be left out together."""

    features: Array
    true: Array
    weight: Array
    group: npt.NDArray[np.int64]


def fit(sets: Sequence[JudgedSet], model: str, prior: Calibration | None = None) -> Calibration:
    """Fit a calibration for an embedding model to judged sets; a prior is what to stay near to."""
    hit = fit_logistic(hit_cases(sets), HIT_FEATURES, prior.hit if prior else None)
    answer = fit_logistic(answer_cases(sets), ANSWER_FEATURES, prior.answer if prior else None)
    return fit_cuts(Calibration(model, hit, answer, cosine_cuts(sets)), sets)


def rejudged(judgement: Judgement, calibration: Calibration | None) -> Judgement:
    """Return what another calibration would have said of the same evidence."""
    cuts = calibrate.cuts(calibration)
    verdicts = tuple(_revised(verdict, judgement, calibration, cuts) for verdict in judgement.verdicts)
    score = calibrate.confidence_score(calibration, judgement.search) if verdicts else 0.0
    return replace(
        judgement,
        verdicts=verdicts,
        label=answer_label((verdict.label for verdict in verdicts), score, cuts),
        confidence_score=score,
        answerable=answerable(score, cuts),
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


def answer_cases(sets: Sequence[JudgedSet]) -> Cases:
    """Return every answer of every set: true when one of its hits is relevant."""
    return _cases(
        (_answer_row(outcome.judgement), any(outcome.relevant), weight, group)
        for outcome, weight, group in _weighted(sets, FOREIGN_SHARE_OF_ANSWERS)
    )


def fit_logistic(cases: Cases, names: Sequence[str], prior: Logistic | None = None) -> Logistic:
    """Fit a regression, and the table that straightens what it says of cases left out."""
    if prior is not None and prior.features != tuple(names):
        prior = None
    model = _regression(cases, names, prior)
    unseen = np.empty(len(cases.true))
    groups = np.unique(cases.group)
    if len(groups) < 3:
        return model
    for group in groups:
        out = cases.group == group
        unseen[out] = _raw(_regression(_only(cases, ~out), names, prior), cases.features[out])
    return replace(model, isotonic=isotonic(unseen, cases.true, cases.weight))


def isotonic(promised: Array, true: Array, weight: Array) -> tuple[tuple[float, float], ...]:
    """Return points (promised, came true), both rising, over bins of equal weight."""
    from scipy.optimize import isotonic_regression

    points = min(POINTS, len(true) // CASES_A_POINT)
    if points < 2:
        return ()
    order = np.argsort(promised, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    at = np.minimum((share * points).astype(int), points - 1)
    held = np.bincount(at, weight[order], points)
    filled = held > 0
    x = np.bincount(at, (weight * promised)[order], points)[filled] / held[filled]
    y = np.bincount(at, (weight * true)[order], points)[filled] / held[filled]
    level = isotonic_regression(y, weights=held[filled]).x
    rising = np.flatnonzero(np.diff(x, prepend=-1.0) > 1e-9)  # equal promises cannot have two meanings
    return tuple((round(float(x[i]), 6), round(float(level[i]), 6)) for i in rising)


def cosine_cuts(sets: Sequence[JudgedSet]) -> Cuts:
    """Return where cosine is strong and weak: against what queries reach that have no answer here."""
    nearest = [one.judgement.search.semantic.top for held in sets for one in held.foreign]
    if not nearest:
        return Cuts()
    weak, strong = (round(float(np.quantile(nearest, share)), 4) for share in (WEAK, STRONG))
    return Cuts(strong=strong, weak=weak)


def fit_cuts(calibration: Calibration, sets: Sequence[JudgedSet]) -> Calibration:
    """Add the least relevance and confidence for each label, and the least confidence to be answerable."""
    bare = replace(calibration, cuts=replace(calibration.cuts, hit={}, answer={}, answerable=None))
    judged = [(held, revised(held.own, bare), revised(held.foreign, bare)) for held in sets]
    hits = [
        (verdict.label, verdict.relevance, true, 1 / max(1, len(own)))
        for _, own, _ in judged
        for outcome in own
        for verdict, true in zip(outcome.judgement.verdicts, outcome.relevant, strict=True)
    ]
    answers = [
        (outcome.judgement.label, outcome.judgement.confidence_score, any(outcome.relevant[:TOP]), weight)
        for _, own, foreign in judged
        for some, weight in ((own, 0.5 / max(1, len(own))), (foreign, 0.5 / max(1, len(foreign))))
        for outcome in some
    ]
    cuts = replace(
        bare.cuts,
        hit=label_cuts(hits, HIT_PROMISES),
        answer=label_cuts(answers, ANSWER_PROMISES),
        answerable=answerable_cut([(own, foreign) for _, own, foreign in judged]),
    )
    return replace(calibration, cuts=cuts)


def label_cuts(
    cases: Sequence[tuple[str, float, bool, float]], promises: Mapping[str, float]
) -> dict[str, float]:
    """Return for each label the least probability with which its cases keep the promise.

    Cases are (label earned, probability, true, weight). What falls short of a label comes under the next one.
    """
    cuts: dict[str, float] = {}
    waiting: list[tuple[float, bool, float]] = []
    ceiling = 1.0
    for name, promise in promises.items():
        waiting += [(p, true, weight) for earned, p, true, weight in cases if earned == name]
        cut = min(ceiling, _least(waiting, promise))
        cuts[name] = round(cut, 4)
        waiting = [case for case in waiting if case[0] < cuts[name]]
        ceiling = cut
    return cuts


def answerable_cut(sets: Sequence[tuple[Sequence[Outcome], Sequence[Outcome]]]) -> float | None:
    """Return the confidence score that tells answered queries from foreign ones best, over all sets alike."""
    pairs = [
        (
            np.array([one.judgement.confidence_score for one in own if any(one.relevant)]),
            np.array([one.judgement.confidence_score for one in foreign]),
        )
        for own, foreign in sets
    ]
    usable = [(own, foreign) for own, foreign in pairs if len(own) and len(foreign)]
    if not usable:
        return None
    steps = np.linspace(0.01, 0.99, 99)
    cost = [
        sum(
            float(np.mean(own < cut)) / FLAGGED_OWN + float(np.mean(foreign >= cut)) / (1 - FLAGGED_FOREIGN)
            for own, foreign in usable
        )
        for cut in steps
    ]
    best = np.flatnonzero(np.isclose(cost, min(cost)))
    return round(float(steps[best].mean()), 4)  # the middle of a gap, where there is one


def _least(cases: Sequence[tuple[float, bool, float]], promise: float) -> float:
    """Return the least probability from which on the cases keep a promise; 1 where they never do."""
    falling = sorted(cases, reverse=True)
    weight = np.array([case[2] for case in falling])
    kept = np.cumsum(weight * np.array([case[1] for case in falling], dtype=float))
    good = np.flatnonzero(kept >= promise * np.cumsum(weight)) if len(falling) else np.array([])
    return float(falling[int(good[-1])][0]) if len(good) else 1.0


def _revised(verdict: Verdict, judgement: Judgement, calibration: Calibration | None, cuts: Cuts) -> Verdict:
    evidence = replace(verdict.evidence, cuts=cuts)
    relevance = calibrate.relevance(calibration, verdict.features, judgement.search)
    return verdict._replace(
        relevance=relevance, label=cap(label(evidence), relevance, cuts), evidence=evidence
    )


def _hit_row(verdict: Verdict, judgement: Judgement) -> list[float]:
    values = features_hit(verdict.features, judgement.search)
    return [values[name] for name in HIT_FEATURES]


def _answer_row(judgement: Judgement) -> list[float]:
    values = features_answer(judgement.search)
    return [values[name] for name in ANSWER_FEATURES]


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


def _regression(cases: Cases, names: Sequence[str], prior: Logistic | None) -> Logistic:
    from scipy.optimize import minimize

    mean, scale = _standard(cases, prior)
    x = np.column_stack([(cases.features - mean) / scale, np.ones(len(cases.true))])
    start = np.array([*prior.coef, prior.intercept]) if prior else np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], PRIOR_PENALTY if prior else PENALTY)
    if prior is None:
        penalty[-1] = 0.0
    found = minimize(_loss(x, cases, start, penalty), start, jac=True, method="L-BFGS-B")
    coef = [round(float(value), 6) for value in found.x]
    return Logistic(tuple(names), tuple(coef[:-1]), coef[-1], _rounded(mean), _rounded(scale))


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
