"""Fitting: does what was fitted say what is true, also of what it has not seen? And `kb calibrate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.quality.collection import read_collection
from concord.quality.fit import (
    FITTED,
    LEAST,
    Cases,
    JudgedSet,
    corrected,
    fit,
    fit_head,
    isotonic,
    revised,
)
from concord.quality.metrics import Outcome, reliability
from concord.quality.refit import off_topic
from concord.search.calibration import Head, ReaderCuts, parsed, probability
from concord.search.judge import rejudged
from concord.search.pipeline import Examined, examine
from concord.types import Request
from support.judged import judged_things, recipes, things

pytestmark = pytest.mark.slow

TRUE_COEF, TRUE_INTERCEPT = np.array([1.5, -0.7]), -0.4


def cases(n: int = 4000, seed: int = 1, groups: int = 5) -> Cases:
    """Return cases drawn from a known logistic model; the features are on odd scales."""
    draw = np.random.default_rng(seed)
    z = draw.normal(size=(n, 2))
    chance = 1 / (1 + np.exp(-(z @ TRUE_COEF + TRUE_INTERCEPT)))
    true = (draw.random(n) < chance).astype(float)
    return Cases(z * [0.01, 30] + [5, -100], true, np.full(n, 1 / n), np.arange(n) % groups)


def said(model: Head, given: Cases) -> list[float]:
    return [probability(model, dict(zip(model.features, row, strict=True))) for row in given.features]


def ece(model: Head, given: Cases) -> float:
    return reliability(zip(said(model, given), map(bool, given.true), strict=True)).ece


@pytest.fixture
def judged(knowledge: KnowledgeBase, tmp_path: Path) -> JudgedSet:
    return judged_things(knowledge, tmp_path)


def test_a_known_model_is_found_again_whatever_the_scales():
    model = fit_head(cases(), ("a", "unknown"))
    assert model.coef == pytest.approx(tuple(TRUE_COEF), abs=0.15)
    assert model.intercept == pytest.approx(TRUE_INTERCEPT, abs=0.15)
    assert ece(model, cases(seed=2)) < 0.03


def test_a_feature_that_never_changes_is_no_trouble():
    given_cases = cases()
    flat = np.column_stack([given_cases.features, np.ones(len(given_cases.true))])
    model = fit_head(replace(given_cases, features=flat), ("a", "unknown", "flat"))
    assert model.coef[2] == 0
    assert all(np.isfinite(said(model, replace(given_cases, features=flat))))


def test_few_cases_stay_near_to_what_was_known_and_many_do_not():
    prior = Head(("a", "unknown"), (0.0, 0.0), 2.0, (5.0, -100.0), (0.01, 30.0))
    few = fit_head(cases(20), ("a", "unknown"), prior)
    many = fit_head(cases(4000), ("a", "unknown"), prior)
    assert few.mean == many.mean == prior.mean
    assert many.coef[0] > 1
    assert abs(many.intercept - TRUE_INTERCEPT) < abs(prior.intercept - TRUE_INTERCEPT) / 2


def test_a_prior_over_other_features_is_passed_over():
    prior = Head(("other",), (3.0,), 2.0, (0.0,), (1.0,))
    assert fit_head(cases(), ("a", "unknown"), prior) == fit_head(cases(), ("a", "unknown"))


def test_what_speaks_for_an_answer_never_counts_against_it():
    turned = replace(cases(), true=1 - cases().true)
    assert fit_head(turned, ("coverage", "unknown")).coef == (0, 0)


def test_the_table_takes_back_what_a_regression_promises_too_much_of():
    bent = cases()
    promised = np.asarray(said(fit_head(bent, ("a", "unknown")), bent))
    draw = np.random.default_rng(3)
    true = (draw.random(len(promised)) < promised**2).astype(float)  # a truth that no logistic curve follows
    given_cases = replace(bent, true=true)
    crooked = fit_head(given_cases, ("a", "unknown"))
    straight = corrected(given_cases, ("a", "unknown"), None, given_cases.weight)
    assert straight.isotonic
    assert ece(straight, given_cases) <= ece(crooked, given_cases)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.floats(0.01, 1)), max_size=300))
@settings(max_examples=60)
def test_a_table_rises_on_both_sides_whatever_it_is_fitted_to(drawn):
    columns = [np.array(column, dtype=float) for column in zip(*drawn, strict=True)] or [np.empty(0)] * 3
    points = isotonic(*columns)
    assert [x for x, _ in points] == sorted({x for x, _ in points})
    assert [y for _, y in points] == sorted(y for _, y in points)
    assert all(0 <= value <= 1 for point in points for value in point)


def test_who_weighs_little_in_the_table_has_places_in_it_and_hardly_moves_those_of_others():
    promised = np.linspace(0.01, 0.99, 400)
    foreign = np.arange(400) < 100
    true = np.where(foreign, 0.0, 1.0)
    true[100:200:2] = 0.0
    even = np.full(400, 1 / 400)
    rare = np.where(foreign, 1e-4, 1 / 300)
    points = dict(isotonic(promised, true, even, rare))
    assert [after for before, after in points.items() if before < 0.24] == [0.0, 0.0]  # and not above
    assert max(points.values()) == 1.0


def test_a_table_has_no_level_on_which_all_answers_would_be_equally_sure():
    promised = np.linspace(0.0, 1.0, 400)
    true = (np.random.default_rng(1).random(400) < 0.5).astype(float)
    points = isotonic(promised, true, np.ones(400))
    afters = [after for _, after in points]
    assert len(afters) > 2
    assert sorted({*afters}) == afters


def test_below_its_first_bin_a_table_still_promises_less_for_less():
    points = isotonic(np.full(100, 0.5) + np.arange(100) / 1000, np.ones(100), np.ones(100))
    assert points[0] == (0.0, 0.0)
    model = Head(("a",), (1.0,), 0.0, (0.0,), (1.0,), points)
    assert probability(model, {"a": -3.0}) < probability(model, {"a": -1.0}) < 1


def test_a_hit_is_thought_of_alike_however_many_are_asked_for_and_whatever_orders_them(
    knowledge: KnowledgeBase, tmp_path: Path
):
    collection = read_collection(things(tmp_path / "set"))
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        for text in [*collection.judged.values()][:5]:
            asked = [Request(text), Request(text, top=25), Request(text, fusion="rrf")]
            first, *others = [_scores(examine(request, tools)) for request in asked]
            for other in others:
                shared = first.keys() & other.keys()
                assert len(shared) > 3
                assert all(first[word] == pytest.approx(other[word]) for word in shared)


def _scores(examined: Examined) -> dict[int, tuple[float, ...]]:
    return {
        row.passage.chunk.id: tuple(row.features[name] for name in FITTED["hybrid"][0])
        for row in examined.verdict.judged
    }


@pytest.mark.promise("B.calibration.fit")
def test_a_fit_is_loaded_as_it_was_and_tells_the_foreign_from_its_own(judged: JudgedSet):
    fitted = fit([judged], "some/model", ReaderCuts())
    assert parsed(json.loads(json.dumps(to_builtins(fitted)))) == fitted
    own = revised([outcome for outcome in judged.own if any(outcome.relevant)], fitted)
    foreign = revised(judged.foreign, fitted)
    assert all(outcome.verdict.answerable is False for outcome in foreign)
    assert sum(outcome.verdict.answerable is False for outcome in own) <= 0.05 * len(own)


def test_judging_again_by_the_same_calibration_changes_nothing(judged: JudgedSet):
    fitted = fit([judged], "some/model", ReaderCuts())
    once = [rejudged(outcome.verdict, fitted) for outcome in judged.own]
    assert [rejudged(verdict, fitted) for verdict in once] == once


def test_several_sets_weigh_the_same_however_long_they_are(judged: JudgedSet):
    twice = judged._replace(own=[*judged.own, *judged.own], foreign=[*judged.foreign, *judged.foreign])
    other = judged._replace(name="other", own=[_turned(outcome) for outcome in judged.own])
    once_fitted, twice_fitted = (
        fit([judged, other], "m", ReaderCuts()),
        fit([twice, other], "m", ReaderCuts()),
    )
    for evidence, heads in once_fitted.heads.items():
        assert twice_fitted.heads[evidence].hit.coef == pytest.approx(heads.hit.coef, abs=1e-3)


def test_few_documents_of_a_set_are_asked_no_foreign_queries(judged: JudgedSet):
    few = judged._replace(foreign=(), near=judged.foreign, few=True)
    assert fit([judged, few], "m", ReaderCuts()).heads.keys() == fit([judged], "m", ReaderCuts()).heads.keys()


def _turned(outcome: Outcome) -> Outcome:
    return outcome._replace(relevant=tuple(not relevant for relevant in outcome.relevant))


@pytest.mark.promise("B.calibration.refit")
def test_kb_calibrate_makes_scores_probabilities_and_says_how_much_better_they_hold(kb, tmp_path: Path):
    things(tmp_path / "set", queries=90)
    status, out, _ = kb("calibrate", "set", "--json")
    told = json.loads(out)
    assert (status, told["queries"], told["foreign"]) == (0, 90, len(off_topic()))
    assert told["after"]["score"]["ece"] < told["before"]["score"]["ece"]
    assert Path(told["file"]).is_file()
    again = json.loads(kb("eval", "set", "--json").out)
    assert again["calibrated"]
    assert again["calibration"]["score"]["ece"] < 0.1


def test_kb_calibrate_prints_before_and_after_for_people(kb, tmp_path: Path):
    things(tmp_path / "set")
    recipes(tmp_path / "recipes")
    status, out, err = kb("calibrate", "set", "--unanswerable", "recipes")
    assert (status, "ECE before" in out, "confidence_score" in out) == (0, True, True)
    assert "calibration-" in err


def test_too_few_judged_queries_or_no_model_are_refused(kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipes(tmp_path / "recipes")
    status, _, err = kb("calibrate", "recipes")
    assert (status, "too few" in err, str(LEAST) in err) == (2, True, True)
    monkeypatch.setenv("KB_EMBED_PROVIDER", "none")
    things(tmp_path / "set")
    status, _, err = kb("calibrate", "set")
    assert (status, "embedding model" in err) == (2, True)


def test_judgements_of_documents_that_are_not_there_are_nothing_to_calibrate_by(kb, tmp_path: Path):
    folder = things(tmp_path / "set")
    judgements = (folder / "qrels/test.tsv").read_text()
    (folder / "qrels/test.tsv").write_text(judgements.replace("\td", "\tanother-"))
    status, _, err = kb("calibrate", "set")
    assert (status, "none of 60 judged queries" in err) == (2, True)
