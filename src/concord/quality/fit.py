"""Fitting confidence: judged answers → a calibration that `search/judge.py` applies.

Two logistic regressions for each kind of evidence, one over hits and one over answers. The output of the
second is corrected by an isotonic table, fitted to predictions for sets that the regression had not seen
(of one set alone, for queries), so that it corrects promises that are too high on unknown ground. Every set
weighs the same. `refit.py` does it for a user's own corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple, replace
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit

from concord.quality.metrics import Outcome
from concord.search.calibration import (
    READ,
    Calibration,
    Cuts,
    Evidence,
    Head,
    Heads,
    ReaderCuts,
    probability,
)
from concord.search.judge import head_for, rejudged

Array = npt.NDArray[np.float64]

# Features of the hit and answer heads, chosen leave-one-set-out on the development sets: few, and such that
# mean the same from one collection to the next. Tried, and no better on sets left out: the number of chunks;
# beside the reader how many of the words a passage has (who asks what is not answered uses the text's words),
# its log-odds of the first hit beside the best, and by how much its span beats that there is none.
FITTED: Mapping[Evidence, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "hybrid": (
        ("document_cosine", "document_z", "coverage", "name"),
        ("cosine", "coverage", "fall", "unknown", "name"),
    ),
    "words": (
        ("document_z", "document_coverage", "bm25_ratio", "name", "words", "rareness"),
        ("coverage", "fall", "unknown", "name", "words", "rareness"),
    ),
    "hybrid+reader": (
        ("document_cosine", "document_z", "name", "reader", "asked_reader"),
        ("cosine", "fall", "unknown", "name", "best_reader", "best_asked_reader"),
    ),
    "words+reader": (
        (
            "document_z",
            "document_coverage",
            "bm25_ratio",
            "name",
            "words",
            "rareness",
            "reader",
            "asked_reader",
        ),
        ("fall", "unknown", "name", "words", "best_reader", "best_asked_reader"),
    ),
}
# Every other feature speaks for a hit: neither gets a weight of the other sign.
AGAINST = frozenset({"unknown"})
# What part of a set's weight its kinds of queries have, `few` being those asked of a few of its documents.
# Among hits, half of what cannot be answered: most hits of own queries are wrong, too. In the isotonic table
# it has hardly any: a probability is meant for own queries.
SHARES = {"own": 0.5, "foreign": 0.125, "near": 0.125, "few own": 0.125, "few near": 0.25}
HIT_SHARES = {"own": 0.5, "foreign": 0.1, "near": 0.06, "few own": 0.125, "few near": 0.06}
TABLE_SHARES = {"own": 1.0, "foreign": 0.01, "near": 0.01, "few own": 1.0, "few near": 0.01}
PENALTY = 1e-3  # on squared standardised coefficients: a tenth or ten times as much changes nothing
PRIOR_PENALTY = 0.02  # on deviating from the shipped fit: a few hundred judged queries outweigh it
FOLDS = 5
POINTS = 20  # in the isotonic table: bins of equal weight, so that each has enough cases
CASES_A_POINT = 25
LEAST = 50  # judged queries: with fewer, what was measured could as well be chance
LEAST_OF_A_SET = 25  # judged by one kind of evidence, for a set to count as one

# The least probability for each label: what even its weakest cases are to keep. Most of its cases are well
# above its cut, so its precision is higher; `kb eval` measures it.
HIT_CUTS = {"very_high": 0.85, "high": 0.60, "medium_high": 0.30, "medium": 0.15}
ANSWER_CUTS = {"very_high": 0.95, "high": 0.75, "medium_high": 0.55, "medium": 0.35}
# What may be refused of any set's own queries (of sets not yet seen, one in twenty), and of those that few of
# its documents are asked.
REFUSED = {"own": 0.04, "few own": 0.16}
DEFAULT_CUT = 0.65  # for `answerable`, where nothing unanswerable was asked
STRONG, WEAK = 0.99, 0.50  # shares of foreign queries whose nearest chunk is below the strong or weak cut


class JudgedSet(NamedTuple):
    """The answers to one collection's own queries, to queries of others, and to near misses."""

    name: str
    own: Sequence[Outcome]
    foreign: Sequence[Outcome]
    near: Sequence[Outcome] = ()
    few: bool = False  # asked of a few documents of the collection: left out and weighed together with it

    def only(self, evidence: Evidence) -> JudgedSet:
        """Return the answers that there is one kind of evidence for; what was read can do without that."""

        def judged(outcomes: Sequence[Outcome]) -> list[Outcome]:
            found = [o for o in outcomes if READ not in evidence or "best_reader" in o.verdict.features]
            return [
                o for o in found if evidence in (o.verdict.kinds[0], o.verdict.kinds[0].removesuffix(READ))
            ]

        return self._replace(own=judged(self.own), foreign=judged(self.foreign), near=judged(self.near))

    def kinds(self) -> Iterable[tuple[str, Sequence[Outcome]]]:
        """Yield the answers by kind, as shares name them."""
        for kind in ("own", "foreign", "near"):
            yield f"few {kind}" if self.few else kind, getattr(self, kind)


class Cases(Struct, frozen=True):
    """What a regression learns from: features, truth, weights, and groups to leave out together."""

    features: Array
    true: Array
    weight: Array
    group: npt.NDArray[np.int64]


def fit(
    sets: Sequence[JudgedSet], model: str, reader: ReaderCuts, prior: Calibration | None = None
) -> Calibration:
    """Fit a calibration for an embedding model to judged sets; a prior is what to stay near to.

    `reader` is how far its reader is believed: that follows from the reader, not from the embedding model.
    """
    heads = dict(prior.heads) if prior else {}
    for evidence in FITTED:
        held = _large_enough([judged.only(evidence) for judged in sets])
        if sum(any(outcome.relevant) for judged in held for outcome in judged.own) >= LEAST:
            heads[evidence] = _fit_heads(held, evidence, prior.heads.get(evidence) if prior else None)
    whole = [judged for judged in sets if not judged.few]
    return Calibration(
        model,
        heads,
        _fit_cuts(whole),
        prior.other_scripts if prior else 1.0,
        usual(whole) or (prior.usual if prior else None),
        reader=reader,
    )


def _large_enough(sets: Sequence[JudgedSet]) -> list[JudgedSet]:
    """Leave out collections with so few own queries that each would weigh as much as ten of another."""
    names = {held.name for held in sets if not held.few and len(held.own) >= LEAST_OF_A_SET}
    return [held for held in sets if held.name in names]


def _fit_heads(sets: Sequence[JudgedSet], evidence: Evidence, prior: Heads | None) -> Heads:
    hit_names, answer_names = FITTED[evidence]
    hits = cases_of(sets, hit_names, HIT_SHARES, are_hits=True)
    hit = fit_head(hits, hit_names, prior.hit if prior else None)
    table = cases_of(sets, answer_names, TABLE_SHARES).weight
    asked = cases_of(sets, answer_names, SHARES)
    answer = corrected(asked, answer_names, prior.answer if prior else None, table)
    return Heads(hit, answer, answerable_cut(sets, answer))


def revised(outcomes: Iterable[Outcome], calibration: Calibration) -> list[Outcome]:
    """Return outcomes as they would be under another calibration; as they are, where it fits none of them."""
    return [
        outcome._replace(verdict=rejudged(outcome.verdict, calibration))
        if head_for(outcome.verdict.kinds, calibration)
        else outcome
        for outcome in outcomes
    ]


def cases_of(
    sets: Sequence[JudgedSet], names: Sequence[str], shares: Mapping[str, float], *, are_hits: bool = False
) -> Cases:
    """Return every answer of every set, true when one of its hits is relevant; or its hits themselves.

    Groups are collections, or fifths of one where they are few.
    """
    counts = Counter((held.name, kind) for held in sets for kind, asked in held.kinds() for _ in asked)
    places = [*dict.fromkeys(held.name for held in sets)]
    rows = []
    for kind, outcomes, name in ((*pair, held.name) for held in sets for pair in held.kinds()):
        place = places.index(name)
        for at, outcome in enumerate(outcomes):
            verdict, weight = outcome.verdict, shares[kind] / counts[name, kind]
            group = place if len(places) >= 3 else place * FOLDS + at % FOLDS
            hits = zip((row.features for row in verdict.judged), outcome.relevant, strict=True)
            for features, true in hits if are_hits else [(verdict.features, any(outcome.relevant))]:
                if "reader" not in names or "reader" in features:
                    rows.append(([features[name] for name in names], true, weight, group))
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    return Cases(columns[0], columns[1], columns[2] / columns[2].sum(), columns[3].astype(int))


def corrected(cases: Cases, names: Sequence[str], prior: Head | None, weight: Array) -> Head:
    """Fit a regression, and the table that corrects its predictions for cases it was not fitted to.

    In the table cases may weigh otherwise than in the regression.
    """
    model = fit_head(cases, names, prior)
    groups = np.unique(cases.group)
    if len(groups) < 3:
        return model
    unseen = np.empty(len(cases.true))
    for group in groups:
        out = cases.group == group
        rest = Cases(*(column[~out] for column in astuple(cases)))
        head = fit_head(rest, names, prior)
        x = (cases.features[out] - np.array(head.mean)) / np.array(head.scale)
        unseen[out] = expit(x @ np.array(head.coef) + head.intercept)
    return replace(model, isotonic=isotonic(unseen, cases.true, cases.weight, weight))


def fit_head(cases: Cases, names: Sequence[str], prior: Head | None = None) -> Head:
    """Fit a regression, near to a prior one over the same features if that is given."""
    near = prior if prior is not None and prior.features == tuple(names) else None
    weight = cases.weight / cases.weight.sum()
    if near:
        mean, scale = np.array(near.mean), np.array([scale or 1.0 for scale in near.scale])
    else:
        mean = np.round(np.average(cases.features, axis=0, weights=weight), 6)
        spread = np.sqrt(np.average((cases.features - mean) ** 2, axis=0, weights=weight))
        scale = np.round(np.where(spread > 1e-6, spread, 1.0), 6)
    x = np.column_stack([(cases.features - mean) / scale, np.ones(len(cases.true))])
    start = np.array([*near.coef, near.intercept]) if near else np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], PRIOR_PENALTY if near else PENALTY)
    penalty[-1] = PRIOR_PENALTY if near else 0.0  # without a prior the intercept is free

    def loss(at: Array) -> tuple[float, Array]:
        odds, moved = x @ at, at - start
        value = weight @ (np.logaddexp(0, odds) - cases.true * odds) + penalty @ moved**2
        return float(value), x.T @ (weight * (expit(odds) - cases.true)) + 2 * penalty * moved

    bounds = [*((None, 0.0) if name in AGAINST else (0.0, None) for name in names), (None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    *coef, intercept = (round(float(value), 6) for value in found.x)
    return Head(tuple(names), tuple(coef), intercept, tuple(mean.tolist()), tuple(scale.tolist()))


def isotonic(
    promised: Array, true: Array, weight: Array, inside: Array | None = None
) -> tuple[tuple[float, float], ...]:
    """Return points (promised, came true), both rising, over bins of equal weight.

    Bins in which the same share came true are one point, in their middle: were they a level, all answers on
    it would be equally sure, and no cut could part them. The first point is (0, 0), so that below the first
    bin less is promised for less. `weight` forms the bins; `inside`, if given, weighs the cases within a bin:
    so a rare kind of query can fill bins of its own, and count for little in those that it shares.
    """
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
    levels, block = np.unique(isotonic_regression(y, weights=held[filled]).x, return_inverse=True)
    middle = np.bincount(block, held[filled] * x) / np.bincount(block, held[filled])
    rising = np.flatnonzero(np.diff(middle, prepend=0.0) > 1e-6)  # equal promises cannot have two meanings
    return ((0.0, 0.0), *((round(float(middle[i]), 6), round(float(levels[i]), 6)) for i in rising))


def usual(sets: Sequence[JudgedSet]) -> tuple[float, float] | None:
    """Return the mean cosine of what own and foreign queries find, and the spread of what own ones find.

    Only where enough is found; every set weighs the same.
    """

    def means(side: Iterable[Sequence[Outcome]]) -> list[Array]:
        known = ([outcome.cosines for outcome in outcomes if outcome.cosines] for outcomes in side)
        return [np.mean(cosines, axis=0) for cosines in known if cosines]

    own, foreign = means(held.own for held in sets), means(held.foreign for held in sets)
    if not own:
        return None
    (own_mean, spread), (foreign_mean, _) = np.mean(own, axis=0), np.mean(foreign or own, axis=0)
    return round(float(own_mean + foreign_mean) / 2, 4), round(float(spread), 4)


def _fit_cuts(sets: Sequence[JudgedSet]) -> Cuts:
    """Return from which cosine on a hit is strong or weak, beside the fixed cuts of labels."""
    nearest = [outcome.verdict.features["top_cosine"] for held in sets for outcome in held.foreign]
    nearest = [cosine for cosine in nearest if cosine]
    if not nearest:
        return Cuts(hit=HIT_CUTS, answer=ANSWER_CUTS)
    weak, strong = (round(float(np.quantile(nearest, share)), 4) for share in (WEAK, STRONG))
    return Cuts(strong, weak, HIT_CUTS, ANSWER_CUTS)


def answerable_cut(sets: Sequence[JudgedSet], answer: Head) -> float:
    """Return the least score of what is called answerable.

    Of no set may more own queries be refused than is allowed. Among the scores that keep to that, the one by
    which most of the others are refused, each set and kind weighing the same: near misses of a set whose
    documents are all alike cannot be told apart, and must not decide alone.
    """
    scores: dict[tuple[str, str], list[float]] = {}
    for held in sets:
        for kind, outcomes in held.kinds():
            wanted = [o.verdict.features for o in outcomes if kind not in REFUSED or any(o.relevant)]
            scores.setdefault((kind, held.name), []).extend(probability(answer, row) for row in wanted)
    made = {key: np.array(given) for key, given in scores.items() if given}
    own = [(given, REFUSED[kind]) for (kind, _), given in made.items() if kind in REFUSED]
    others = [given for (kind, _), given in made.items() if kind not in REFUSED]
    if not own or not others:
        return DEFAULT_CUT
    steps = np.linspace(0.01, 0.99, 99)
    refused = np.array([max(np.mean(given < cut) / most for given, most in own) for cut in steps])
    steps = steps[refused <= max(1.0, refused.min())]
    answered = np.array([sum(np.mean(given >= cut) for given in others) for cut in steps])
    return round(float(steps[np.isclose(answered, answered.min())].mean()), 4)  # the middle of a gap
