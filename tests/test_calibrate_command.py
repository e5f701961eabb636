"""`kb calibrate`: what it prints, and when it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concord.quality.refit import LEAST, off_topic
from support.judged import recipes, things

pytestmark = pytest.mark.slow


@pytest.mark.promise("B.calibration.refit")
def test_kb_calibrate_makes_scores_probabilities_and_says_how_much_better_they_hold(kb, tmp_path: Path):
    things(tmp_path / "set", queries=90)
    status, out, _ = kb("calibrate", "set", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["queries"] == 90
    assert told["foreign"] == len(off_topic())
    assert told["after"]["score"]["ece"] < told["before"]["score"]["ece"]
    assert Path(told["file"]).is_file()
    status, out, _ = kb("eval", "set", "--json")
    again = json.loads(out)
    assert again["calibrated"]
    assert again["calibration"]["score"]["ece"] < 0.1


def test_kb_calibrate_prints_before_and_after_for_people(kb, tmp_path: Path):
    things(tmp_path / "set")
    recipes(tmp_path / "recipes")
    status, out, err = kb("calibrate", "set", "--unanswerable", "recipes")
    assert status == 0
    assert "ECE before" in out
    assert "confidence_score" in out
    assert "calibration-" in err


def test_too_few_judged_queries_are_refused_with_the_number_that_is_needed(kb, tmp_path: Path):
    recipes(tmp_path / "recipes")
    status, _, err = kb("calibrate", "recipes")
    assert status == 2
    assert "too few" in err
    assert str(LEAST) in err


def test_without_a_model_there_is_nothing_to_calibrate(kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KB_EMBED_PROVIDER", "none")
    things(tmp_path / "set")
    status, _, err = kb("calibrate", "set")
    assert status == 2
    assert "embedding model" in err


def test_judgements_of_documents_that_are_not_there_are_nothing_to_calibrate_by(kb, tmp_path: Path):
    folder = things(tmp_path / "set")
    judgements = (folder / "qrels/test.tsv").read_text()
    (folder / "qrels/test.tsv").write_text(judgements.replace("\td", "\tanother-"))
    status, _, err = kb("calibrate", "set")
    assert status == 2
    assert "none of 60 judged queries" in err
    assert not json.loads(kb("eval", "set", "--limit", "1", "--json").out)["calibrated"]
