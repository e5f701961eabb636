"""Why a passage ranked where it did, or did not: as data, as a sentence, as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase, Note
from concord.search.explain import Explanation
from support.kb_command import Kb
from support.small_library import library


def crowded(count: int = 60) -> KnowledgeBase:
    """Return a knowledge base with many notes that mention a login and one that explains it."""
    kb = library()
    for i in range(count):
        kb.note(Note(f"Visitor {i} came to room {i} for the login of day {i}.", title=f"Visit {i}"))
    return kb


def explained(kb: KnowledgeBase, query: str, title: str, **options: Any) -> Explanation:
    document = next(document for document in kb.documents() if document.title == title)
    return kb.explain(query, document.id, **options)


@pytest.mark.promise("B.explain")
def test_a_passage_that_was_returned_is_explained_with_its_rank_and_its_arithmetic():
    told = explained(library(), "login token", "Login")
    assert (told.stage, told.rank) == ("returned", 1)
    assert told.why == f"It is result 1 of {told.returned}."
    assert [vote["strategy"] for vote in told.strategies] == ["fts_exact", "fts_relaxed", "semantic"]
    assert all(vote["rank"] == 1 and vote["candidate"] for vote in told.strategies)
    assert told.arithmetic["fused"] == told.fused["score"]
    assert {"relevance", "label"} <= told.arithmetic.keys()


@pytest.mark.promise("B.explain.why-not")
def test_a_passage_that_was_outranked_names_the_score_it_had_to_beat():
    told = explained(crowded(25), "visitor login day", "Login")
    fused = told.fused
    assert told.stage == "fusion"
    assert fused["rank"] is not None
    assert fused["rank"] > told.returned == 10
    assert fused["score"] is not None
    assert fused["last_score"] is not None
    assert fused["score"] < fused["last_score"]
    assert f"{fused['last_score']:.4f}" in told.why
    assert "It lacks: visitor, day." in told.why


@pytest.mark.promise("B.explain.why-not")
def test_a_threshold_is_named_with_the_score_that_missed_it():
    told = explained(library(), "login token", "Backup", threshold=0.03)
    assert told.stage == "threshold"
    assert told.why == f"Its score of {told.fused['rrf']:.4f} is under the threshold of 0.03."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "pdf"}, "its type is note"),
        ({"path": "docs/**"}, "its path does not fit docs/**"),
        ({"since": 4e9}, "its file is older than asked for"),
        ({"type": "pdf", "tags": ("x",)}, "its tags are ops; its type is note"),
    ],
    ids=str,
)
def test_each_condition_of_a_filter_that_leaves_it_out_is_named(options: dict[str, Any], said: str):
    told = explained(library(), "backups month", "Backup", **options)
    assert (told.stage, told.why.startswith(f"The filter leaves it out: {said}.")) == ("filter", True)
    assert "Without it, fts_exact ranks it 1" in told.why


def test_a_superseded_passage_is_said_to_be_superseded():
    kb = library()
    old = next(document for document in kb.documents() if document.title == "Backup")
    new = kb.note(Note("Backups are kept for a year.", title="Backups"), supersedes=old.id)
    told = kb.explain("backups", old.id)
    assert (told.stage, told.filtered) == ("filter", (f"it has been superseded by {new.id}",))
    assert kb.explain("backups", old.id, include_superseded=True).stage == "returned"


def test_an_excluded_word_is_named():
    told = explained(library(), "login -token", "Login")
    assert (told.stage, told.why) == ("excluded", "It holds what the query excludes: token.")


def test_a_duplicate_names_the_result_that_stands_for_it():
    kb = library()
    kb.note(Note("A  Kubernetes deployment rolls out containers one after the other.", title="Copy"))
    told = [explained(kb, "kubernetes deployment", title) for title in ("Kubernetes", "Copy")]
    assert sorted(explanation.stage for explanation in told) == ["duplicate", "returned"]
    (copy,) = [explanation for explanation in told if explanation.stage == "duplicate"]
    assert copy.overlap is not None
    assert copy.overlap["similarity"] == 1.0
    assert "which stands for both" in copy.why


def test_a_place_that_went_to_others_for_diversity_says_so():
    same = "the login token of the gateway expires after one hour unless it is renewed in time by"
    notes = {f"Like {i}": f"{same} client {i} {name}" for i, name in enumerate(["ann", "bob", "cid"])}
    others = {"Other": "a token for the login", "More": "a gateway to rent"}
    kb = library({**notes, **others}, search__diversity=0.1)
    told = [explained(kb, "login token gateway expires", title, top=3) for title in notes]
    passed = next(explanation for explanation in told if explanation.stage == "diversity")
    assert passed.fused["rank"] is not None
    assert passed.fused["rank"] <= 3
    assert passed.overlap is not None
    assert f"it shares {passed.overlap['similarity']:.0%} of its words with result" in passed.why


@pytest.fixture
def kb(kb: Kb, tmp_path: Path) -> Kb:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text("# Login\n\nA token is issued after login.\n", encoding="utf-8")
    (folder / "ops.md").write_text("# Backup\n\nBackups are kept for a month.\n", encoding="utf-8")

    assert kb("add", "docs").status == 0
    return kb


@pytest.mark.promise("B.explain")
def test_the_command_prints_the_reason_and_the_tables(kb: Kb):
    run = kb("explain", "login token", "docs/auth.md:1-3")
    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[0] == "docs/auth.md:1-3  Login"
    assert lines[1].startswith("It is result 1 of")
    assert any(line.split()[:2] == ["fts_exact", "1"] for line in lines)
    assert any(line.split()[:2] == ["token", "yes"] for line in lines)
    assert any(line.startswith("label ") for line in lines)


@pytest.mark.promise("B.explain.why-not")
def test_the_command_takes_the_flags_of_the_search_that_surprised(kb: Kb):
    asked = ("explain", "login", "docs/ops.md", "--top", "3")
    assert kb(*asked, "--fts-only").out == kb(*asked, "--mode", "fts5").out
    assert kb(*asked, "--vec-only").out == kb(*asked, "--mode", "semantic").out
    assert kb(*asked, "--deadline-ms", "60000", "--ef-search", "32", "--include-superseded").status == 0
    both = kb(*asked, "--fts-only", "--vec-only")
    assert (both.status, both.out) == (2, "")
    assert "exclude each other" in both.err


def test_what_nobody_fitted_is_explained_too(kb: Kb):
    run = kb("search", "login token", "--vec-only", "--explain")
    assert (run.status, "nothing was fitted" in run.out) == (0, True)


@pytest.mark.promise("B.explain")
def test_search_shows_the_arithmetic_of_each_result(kb: Kb):
    run = kb("search", "login token", "--explain")
    assert run.out.count("ranks: ") == run.out.count("leg  ") == run.out.count("docs/") == 2
    assert run.out.count("(calibrated for words)") == run.out.count("agreement ") == 2
    told = json.loads(kb("search", "login token", "--explain", "--json").out)["results"][0]["explanation"]
    assert {"fusion", "families", "fused", "relevance", "label"} <= told.keys()
    assert "explanation" not in json.loads(kb("search", "login token", "--json").out)["results"][0]
