"""Answers in two parts, and a model that is still cold."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord import KnowledgeBase, Note
from support.small_library import UNHURRIED, library, titles

PENDING_NOTE = "found by words alone; meaning is searched next, for the final answer"


@pytest.mark.promise("003.progressive")
@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_words_come_first_and_the_full_answer_after_them(mode: str):
    kb = library()
    first, last = kb.search_progressive("login token", mode=mode, top=3)
    assert (first.stage, last.stage) == ("preliminary", "final")
    assert (first.answer.confidence, first.answer.answerable) == ("fts_only", None)
    assert first.answer.note == PENDING_NOTE
    assert [part.strategy for part in first.answer.degraded] == ["semantic"]
    assert titles(first.answer) == ["Login"]
    assert {name for hit in first.answer.hits for name in hit.found_by} == {"fts_exact", "fts_relaxed"}
    assert last.answer.hits == kb.search("login token", mode=mode, top=3).hits
    assert last.answer.confidence not in ("fts_only", None)
    assert last.answer.degraded == ()
    assert {one.answer.request.mode for one in (first, last)} == {mode}
    assert {one.answer.mode for one in (first, last)} == {mode}


@pytest.mark.promise("003.progressive")
def test_nothing_is_embedded_before_the_second_part_is_asked_for(tmp_path: Path):
    with stored(tmp_path) as kb:
        parts = kb.search_progressive("token")
        assert next(parts).stage == "preliminary"
        warm = [kb.is_warm]
        assert next(parts).stage == "final"
        warm.append(kb.is_warm)
        assert warm == [False, True]
        assert next(parts, None) is None


def stored(tmp_path: Path) -> KnowledgeBase:
    """Return a knowledge base opened anew, with vectors and a model that nothing has loaded yet."""
    given = {"store__url": f"sqlite://{tmp_path}", "embed__provider": "hashing", **UNHURRIED}
    with KnowledgeBase.open(**given) as first:
        first.note(Note("a token is issued after login", title="Login"))
        first.note(Note("backups are kept for a month", title="Backup"))
    return KnowledgeBase.open(**given)


@pytest.mark.promise("003.coldstart", "003.coldstart.warm-up")
def test_a_cold_model_leaves_the_answer_to_words_and_says_so(tmp_path: Path):
    with stored(tmp_path) as kb:
        cold = kb.search("token", wait_for_model=False)
        assert (titles(cold), cold.confidence, cold.answerable) == (["Login"], "fts_only", None)
        assert [part.strategy for part in cold.degraded] == ["semantic"]
        assert "loading" in cold.degraded[0].reason
        assert not kb.is_warm
        kb.warm()
        warm = kb.search("token", wait_for_model=False)
        assert (warm.degraded, "semantic" in warm.strategies_matched) == ((), True)
        assert warm.confidence != "fts_only"


@pytest.mark.promise("003.coldstart")
def test_a_cold_model_does_not_stop_the_cascade(tmp_path: Path):
    with stored(tmp_path) as kb:
        cold = kb.search("xbackups", wait_for_model=False)
        assert titles(cold) == ["Backup"]
        assert cold.hits[0].confidence == "speculative"
        assert cold.suggestions[0] == "backups"


def test_a_one_shot_search_waits_for_the_model(tmp_path: Path):
    with stored(tmp_path) as kb:
        answer = kb.search("token")
        assert (answer.degraded, "semantic" in answer.strategies_matched) == ((), True)
