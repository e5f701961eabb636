"""`kb calibrate` with near misses, and from feedback alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concord.quality.fit import LEAST
from concord.quality.refit import off_topic
from support.judged import things

pytestmark = pytest.mark.slow


def test_near_misses_are_asked_beside_what_the_collection_cannot_answer(kb, tmp_path: Path):
    things(tmp_path / "set")
    (tmp_path / "plain.txt").write_text("who sold the amber anchor\n\nwho painted the blue barrel\n")
    (tmp_path / "rows.jsonl").write_text('{"_id": "1", "text": "when was the crimson candle lost"}\n')
    status, out, _ = kb("calibrate", "set", "--near-miss", "plain.txt", "--near-miss", "rows.jsonl", "--json")
    assert status == 0
    assert json.loads(out)["foreign"] == len(off_topic()) + 3


def test_a_line_that_holds_no_query_is_named(kb, tmp_path: Path):
    things(tmp_path / "set")
    (tmp_path / "rows.jsonl").write_text('{"text": "when"}\n{"question": "why"}\n')
    status, _, err = kb("calibrate", "set", "--near-miss", "rows.jsonl")
    assert status == 2
    assert "line 2" in err


def test_without_a_folder_feedback_has_to_be_enough(kb):
    status, _, err = kb("calibrate")
    assert status == 2
    assert "0 judged queries are too few" in err
    assert str(LEAST) in err
    assert "kb feedback" in err
