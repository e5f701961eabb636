"""Applying a calibration: features, probabilities, the stand-in without one, and its JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from concord.errors import BadValue
from concord.ranking.agreement import Cuts
from concord.ranking.ballots import merge_votes
from concord.ranking.calibrate import (
    UNFITTED,
    Calibration,
    Logistic,
    confidence_score,
    cuts,
    dump,
    load,
    model_key,
    probability,
    relevance,
    stand_in,
)
from concord.ranking.explain import explain_relevance
from concord.ranking.features import (
    ANSWER_FEATURES,
    HIT_FEATURES,
    TENTH,
    FamilyScores,
    HitSignals,
    SearchSignals,
    answer_features,
    family_scores,
    hit_features,
    hit_signals,
    search_signals,
    with_documents,
)
from concord.ranking.fuse import rrf
from concord.types import Candidate, Identity

DATA = {
    "version": 1,
    "model": "granite/384//cosine",
    "hit": {
        "features": ["cosine", "coverage"],
        "coef": [2.0, 1.0],
        "intercept": -0.5,
        "mean": [0.6, 0.5],
        "scale": [0.1, 0.25],
        "isotonic": None,
    },
    "answer": {
        "features": ["top_cosine"],
        "coef": [1.5],
        "intercept": 0.0,
        "mean": [0.7],
        "scale": [0.05],
        "isotonic": [[0.0, 0.0], [0.5, 0.2], [1.0, 0.9]],
    },
    "cuts": {
        "strong": 0.8,
        "weak": 0.65,
        "hit": {"very_high": 0.6, "high": 0.4},
        "answer": {"very_high": 0.85},
        "answerable": 0.35,
    },
}
VOTES = [
    Candidate(1, "fts_exact", "lexical", 1, 8.0),
    Candidate(1, "fts_relaxed", "lexical", 1, 8.0),
    Candidate(2, "fts_relaxed", "lexical", 2, 4.0),
    Candidate(1, "semantic", "semantic", 2, 0.75),
    Candidate(3, "semantic", "semantic", 1, 0.8),
]


def gathered():
    ballots = merge_votes(VOTES)
    ranked = rrf(ballots, 60)
    search = search_signals(
        ballots, ranked, kind="factual", terms=3, unknown=0.25, max_bm25=10.0, coverage=0.9
    )
    return ballots, ranked, search


def test_a_search_is_summed_up_from_its_ballots():
    _, _, search = gathered()
    expected = FamilyScores(count=2, top=0.8, tenth=0.75, median=0.75, mean=0.775, spread=0.025)
    assert asdict(search.semantic) == pytest.approx(asdict(expected))
    assert (search.lexical.top, search.lexical.count, search.exact) == (8.0, 2, 1)
    assert (search.overlap, search.shared_rank) == (0.1, 2)
    assert (search.first_cosine, search.first_bm25, search.first_agreement) == (0.75, 8.0, 1.0)


def test_features_have_the_values_their_names_promise():
    ballots, ranked, search = gathered()
    answer = answer_features(search)
    assert answer["top_cosine"] == 0.8
    assert answer["cosine_margin_tenth"] == pytest.approx(0.05)
    assert answer["top_cosine_z"] == pytest.approx(1.0)
    assert answer["top_bm25_share"] == pytest.approx(0.8)
    assert (answer["unknown"], answer["kind_factual"], answer["kind_entity"]) == (0.25, 1.0, 0.0)
    hit = hit_features(hit_signals(ballots, ranked[0], 1, coverage=0.9, entity=True), search)
    assert (hit["cosine"], hit["bm25_share"], hit["bm25_ratio"]) == pytest.approx((0.75, 0.8, 1.0))
    assert (hit["agreement"], hit["exact"], hit["entity"], hit["verbatim"]) == (1.0, 1.0, 1.0, 0.0)
    assert (hit["lexical_rank"], hit["semantic_rank"], hit["coverage"]) == (1.0, 0.5, 0.9)


def test_what_few_have_found_falls_to_nothing_by_the_tenth_place():
    assert family_scores([8.0, 6.0]).fall == 1.0
    assert family_scores([8.0, *[6.0] * 9]).fall == pytest.approx(0.25)
    assert family_scores([8.0] * 10).fall == 0.0
    assert family_scores([]).fall == family_scores([0.0]).fall == 0.0


def test_a_search_knows_how_far_its_first_candidate_stands_above_the_tenth():
    def margin(*standings: float) -> float:
        search = search_signals(
            merge_votes([]),
            [],
            kind="factual",
            terms=0,
            unknown=0.0,
            max_bm25=0.0,
            coverage=0.0,
            standings=standings,
        )
        return answer_features(search)["standing_margin"]

    assert margin(*range(20, 0, -1)) == 9
    assert margin(3.0, 1.0) == margin(3.0) == pytest.approx(3.0 - TENTH)  # where fewer are found
    assert margin() == 0


def test_a_hit_is_as_near_as_the_better_hits_of_its_document_and_no_worse_one_lifts_it():
    hits = [
        HitSignals(rank=1, cosine=0.6, standing=3.0, coverage=0.2),
        HitSignals(rank=2, cosine=0.9, standing=2.0, coverage=0.9),
        HitSignals(rank=3, cosine=0.7, standing=1.0, coverage=0.1),
        HitSignals(rank=4, cosine=None, standing=0.5, coverage=0.5),
    ]
    told = with_documents(hits, ["a", "b", "a", "a"])
    assert [_of_document(one) for one in told] == [
        (0.6, 3.0, 0.2),
        (0.9, 2.0, 0.9),
        (0.7, 3.0, 0.2),
        (0.7, 3.0, 0.5),
    ]
    assert with_documents(hits[:2], ["a", "b"]) == told[:2]
    turned = with_documents(hits[::-1], ["a", "a", "b", "a"])
    assert turned[::-1] == told


def _of_document(hit: HitSignals) -> tuple[float, float, float]:
    values = hit_features(hit, SearchSignals())
    return values["document_cosine"], values["document_standing"], values["document_coverage"]


def test_a_search_that_found_nothing_has_finite_features():
    search = search_signals(
        merge_votes([]), [], kind="exploratory", terms=0, unknown=0.0, max_bm25=0.0, coverage=0.0
    )
    everything = {**answer_features(search), **hit_features(HitSignals(rank=1), search)}
    assert all(math.isfinite(value) for value in everything.values())
    assert everything["semantic_voted"] == everything["lexical_voted"] == 0.0


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_the_scores_of_a_family_are_the_same_in_any_order(values: list[float]):
    one = family_scores(values)
    assert one == family_scores(reversed(values))
    assert math.isfinite(one.z(one.top))
    assert one.count == len(values)


def test_a_probability_is_the_logistic_of_standardised_features():
    model = load(DATA).hit
    assert probability(model, {"cosine": 0.7, "coverage": 0.75}) == pytest.approx(1 / (1 + math.exp(-2.5)))
    assert probability(model, {"cosine": -1e9, "coverage": 0.0}) == pytest.approx(0.0)
    assert probability(model, {"cosine": 1e9, "coverage": 0.0}) == pytest.approx(1.0)


def test_an_isotonic_table_straightens_the_probability_in_between_its_points():
    model = load(DATA).answer
    assert probability(model, {"top_cosine": 0.7}) == pytest.approx(0.2)
    three_quarters = 0.7 + 0.05 * math.log(3) / 1.5
    assert probability(model, {"top_cosine": three_quarters}) == pytest.approx(0.55)
    assert probability(model, {"top_cosine": 99.0}) == pytest.approx(0.9)
    narrow = replace(model, isotonic=((0.4, 0.1), (0.6, 0.3)))
    assert probability(narrow, {"top_cosine": -99.0}) == 0.1
    assert probability(narrow, {"top_cosine": 99.0}) == 0.3
    step = replace(model, isotonic=((0.0, 0.0), (0.5, 0.1), (0.5, 0.8), (1.0, 1.0)))
    assert probability(step, {"top_cosine": 0.7}) == pytest.approx(0.8)


@settings(max_examples=100)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_stand_in_rises_with_either_signal_and_stays_within_zero_and_one(
    one: float, other: float, share: float
):
    low, high = sorted((one, other))
    assert 0 <= stand_in(low, share) <= stand_in(high, share) <= 1
    assert stand_in(share, low) <= stand_in(share, high)


def test_without_a_calibration_relevance_is_the_stand_in_and_cuts_are_unfitted():
    ballots, ranked, search = gathered()
    hit = hit_signals(ballots, ranked[0], 1)
    assert relevance(None, hit, search) == pytest.approx(0.7 * 0.8 + 0.3 * 0.75)
    assert confidence_score(None, search) == pytest.approx(0.7 * 0.8 + 0.3 * 0.75)
    assert cuts(None) == UNFITTED
    assert relevance(None, HitSignals(rank=1), SearchSignals()) == 0.0


def test_with_a_calibration_relevance_and_confidence_are_its_probabilities():
    ballots, ranked, search = gathered()
    calibration = load(DATA)
    hit = hit_signals(ballots, ranked[0], 1, coverage=0.5)
    assert relevance(calibration, hit, search) == pytest.approx(1 / (1 + math.exp(-2.5)))
    assert 0.55 < confidence_score(calibration, search) < 0.9
    assert cuts(calibration).strong == 0.8


def test_an_answer_is_no_less_sure_than_its_surest_hit():
    _, _, search = gathered()
    calibration = load(DATA)
    alone = confidence_score(calibration, search)
    assert confidence_score(calibration, search, [alone / 2]) == alone
    assert confidence_score(calibration, search, [0.2, 0.99]) == 0.99


def test_an_answer_is_not_much_surer_than_its_hits_together_however_many_were_asked_for():
    _, _, search = gathered()
    calibration = load(DATA)
    assert confidence_score(calibration, search) > 0.5
    assert confidence_score(calibration, search, [0.005] * 10) == pytest.approx(0.3)
    assert confidence_score(calibration, search, [0.005]) == pytest.approx(0.3)
    assert confidence_score(calibration, search, [0.005] * 5) == pytest.approx(0.3)


def test_relevance_is_explained_feature_by_feature():
    ballots, ranked, search = gathered()
    hit = hit_signals(ballots, ranked[0], 1, coverage=0.5)
    told = explain_relevance(load(DATA), hit, search)
    added = {feature["name"]: feature["added"] for feature in told["features"]}
    assert added == {"cosine": pytest.approx(3.0), "coverage": 0.0}
    odds = told["intercept"] + sum(added.values())
    assert told["relevance"] == pytest.approx(1 / (1 + math.exp(-odds)))
    unfitted = explain_relevance(None, hit, search)
    assert unfitted["calibrated"] is False
    assert {feature["name"] for feature in unfitted["features"]} == set(HIT_FEATURES)


def test_a_calibration_survives_json():
    calibration = load(DATA)
    assert load(json.loads(json.dumps(dump(calibration)))) == calibration
    unbounded = replace(calibration, cuts=Cuts())
    assert load(json.loads(json.dumps(dump(unbounded), allow_nan=False))) == unbounded


def changed(path: str, value: object) -> dict[str, object]:
    data: dict[str, Any] = json.loads(json.dumps(DATA))
    *way, last = path.split(".")
    inner: Any = data
    for key in way:
        inner = inner[key]
    inner[last] = value
    return data


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        "text",
        changed("version", 2),
        changed("hit", None),
        changed("hit.features", ["cosine", "moon_phase"]),
        changed("hit.coef", [1.0]),
        changed("hit.coef", ["x", 1.0]),
        changed("hit.scale", [math.inf, 1.0]),
        changed("hit.intercept", math.nan),
        changed("answer.isotonic", [[0.5, 0.1], [0.2, 0.3]]),
        changed("answer.isotonic", [[0.1, 0.5], [0.2, 0.3]]),
        changed("answer.isotonic", [[0.1]]),
        changed("cuts", None),
        changed("cuts.hit", {"certain": 0.9}),
        changed("cuts.weak", None),
    ],
)
def test_a_malformed_calibration_is_refused_with_a_cure(data: object):
    with pytest.raises(BadValue) as refusal:
        load(data)
    assert "calibration" in refusal.value.message
    assert "kb calibrate" in (refusal.value.hint or "")


@pytest.mark.promise("B.calibration.fit")
def test_a_calibration_is_tied_to_its_model_and_not_to_who_runs_it():
    one = Identity(provider="bundled", model="granite", dimension=384)
    assert model_key(one) == model_key(replace(one, provider="onnx")) == load(DATA).model
    assert model_key(one) != model_key(replace(one, dimension=768))
    assert model_key(one) != model_key(replace(one, prefix_version="q1"))


def test_a_feature_without_spread_in_the_fit_is_not_divided_by_zero():
    flat = Logistic(features=("cosine",), coef=(1.0,), intercept=0.0, mean=(0.0,), scale=(0.0,))
    assert probability(flat, {"cosine": 0.0}) == 0.5
    assert isinstance(load(DATA), Calibration)


def test_hits_and_answers_share_the_features_of_the_search():
    assert {
        "top_cosine",
        "unknown",
        "overlap",
        "terms",
        "coverage",
    } <= HIT_FEATURES.keys() & ANSWER_FEATURES.keys()
