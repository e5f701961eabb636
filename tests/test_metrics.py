"""Does confidence hold, and how long does it take? What was said against what was true."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import mean

import pytest

from concord import KnowledgeBase
from concord.quality.metrics import auroc, precisions, reliability
from support.judged import recipes, things

pytestmark = pytest.mark.slow


def test_what_is_promised_as_often_as_it_comes_true_has_no_calibration_error():
    held = reliability([(0.25, True), (0.25, False), (0.25, False), (0.25, False), (1.0, True)])
    assert (held.n, held.ece) == (5, 0)
    assert held.brier == pytest.approx((0.75**2 + 3 * 0.25**2) / 5)
    broken = reliability([(0.9, False), (0.9, False), (0.1, False), (0.1, False)])
    assert broken.ece == pytest.approx((0.9 + 0.1) / 2)
    assert [part.n for part in broken.bins if part.n] == [2, 2]
    assert reliability([]).ece == reliability([]).ece_by_chance == 0


def test_the_error_by_chance_is_what_true_probabilities_show_when_cases_are_few():
    draw = random.Random(7)
    promised = [draw.random() ** 0.2 for _ in range(300)]
    drawn = [reliability((chance, draw.random() < chance) for chance in promised) for _ in range(200)]
    by_chance = drawn[0].ece_by_chance
    assert 0.01 < by_chance < 0.05
    assert mean(sample.ece for sample in drawn) == pytest.approx(by_chance, rel=0.15)
    assert reliability([(1.0, True), (0.0, False)]).ece_by_chance == 0


def test_labels_come_best_first_with_how_often_they_are_right():
    found = precisions([("low", False), ("very_high", True), ("low", True), ("fts_only", True)])
    assert found == (("very_high", 1, 1.0), ("low", 2, 0.5), ("fts_only", 1, 1.0))


def test_the_area_under_the_curve_counts_ties_half():
    assert auroc([0.9, 0.8], [0.1]) == 1
    assert auroc([0.5], [0.5]) == 0.5
    assert auroc([0.1], [0.9]) == 0
    assert auroc([], [0.9]) == 0.5


@pytest.mark.promise("B.eval.answerability")
def test_queries_of_another_collection_are_told_from_its_own(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(
        things(tmp_path / "set"), unanswerable=[recipes(tmp_path / "recipes")]
    )
    known = found.answerability["recipes"]
    assert (known.foreign, len(found.foreign["recipes"])) == (3, 3)
    assert 30 < known.own <= 60
    assert known.auroc > 0.9


@pytest.mark.promise("B.eval.answerability")
@pytest.mark.parametrize("command", ["eval", "calibrate"])
def test_a_collection_is_not_taken_for_one_that_it_cannot_answer(kb, tmp_path: Path, command: str):
    things(tmp_path / "set")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    status, out, err = kb(command, "set", "--unanswerable", "link")
    assert (status, out) == (2, "")
    assert "answered by its own documents" in err
    assert "another collection" in err
