"""Does confidence hold, and how long does it take? What was said against what was true."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord import KnowledgeBase
from support.judged import recipes, things

pytestmark = pytest.mark.slow


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
