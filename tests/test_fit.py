"""Fitting: does what was fitted say what is true, also of what it has not seen? And `kb calibrate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec import to_builtins

from concord import KnowledgeBase
from concord.quality.fit import (
    LEAST,
    Cases,
    JudgedSet,
    fit,
    revised,
)
from concord.quality.metrics import reliability
from concord.quality.refit import off_topic
from concord.search.calibration import Head, ReaderCuts, parsed, probability
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


@pytest.mark.promise("B.calibration.fit")
def test_a_fit_is_loaded_as_it_was_and_tells_the_foreign_from_its_own(judged: JudgedSet):
    fitted = fit([judged], "some/model", ReaderCuts())
    assert parsed(json.loads(json.dumps(to_builtins(fitted)))) == fitted
    own = revised([outcome for outcome in judged.own if any(outcome.relevant)], fitted)
    foreign = revised(judged.foreign, fitted)
    assert all(outcome.verdict.answerable is False for outcome in foreign)
    assert sum(outcome.verdict.answerable is False for outcome in own) <= 0.05 * len(own)


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
