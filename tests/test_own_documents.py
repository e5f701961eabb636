"""`kb eval --auto`: pairs that people wrote in their own documents, and what is measured by them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concord import KnowledgeBase
from concord.quality.apart import copied
from concord.quality.own_pairs import Pair, own_pairs

FILLER = (
    "It is told here in as many words as a page of a manual has, so that there is a text to find it by. " * 3
)


def pairs_of(knowledge: KnowledgeBase, n: int = 100) -> list[Pair]:
    return own_pairs(knowledge.store, n)


def asked(knowledge: KnowledgeBase) -> dict[str, str]:
    """Index a folder that has been written, and return what is asked, by kind."""
    return {pair.query: pair.kind for pair in pairs_of(knowledge)}


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def manual(knowledge: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    """A small manual that has a pair of each kind."""
    written(
        tmp_path / "manual",
        pump_md=f"# Changing the bilge pump\n\n{FILLER}\n\n## Overview\n\n{FILLER}\n\n"
        f"## Where do spare impellers lie?\n\nIn the locker. {FILLER}",
        sails_md=f"# Sails\n\n{FILLER}\n\n## Reefing a mainsail underway\n\nPoint up. {FILLER}\n\n"
        "See [how the old pump is changed](pump.md#overview) and [here](pump.md).",
        tide_py='def height(port):\n    """Compute tide heights for one port.\n\n    In metres.\n    """\n'
        f"    return table[port]\n\n\n# {FILLER}\n",
        letter_eml=f"From: a@example.org\nSubject: Moorings for next winter\n\nDear all, {FILLER}\n",
    )
    knowledge.add(tmp_path / "manual")
    return knowledge


@pytest.mark.promise("design.eval.auto")
def test_what_people_wrote_is_asked_and_what_says_nothing_is_not(manual: KnowledgeBase):
    assert asked(manual) == {
        "Changing the bilge pump": "title",
        "Where do spare impellers lie?": "question",
        "Reefing a mainsail underway": "heading",
        "how the old pump is changed": "link",
        "Compute tide heights for one port": "docstring",
        "Moorings for next winter": "subject",
    }


def test_a_link_stands_for_the_document_that_it_leads_to(manual: KnowledgeBase):
    (link,) = (pair for pair in pairs_of(manual) if pair.kind == "link")
    assert link.targets == (manual.document_named("manual/pump.md").id,)


def test_words_that_are_asked_are_nowhere_in_the_copy_that_is_asked(manual: KnowledgeBase):
    pairs = pairs_of(manual)
    copies = {copy.original.id: copy for copy in copied(pairs, manual.store)}
    for pair in pairs:
        for id, _ in pair.hidden:
            pieces = copies[id].pieces
            said = [
                copies[id].document.title,
                *(words for piece in pieces for words in (piece.text, *piece.heading)),
            ]
            assert not any(pair.query in words for words in said), pair


def test_notes_are_asked_by_their_aliases_and_results_by_the_queries_they_are_good_for(
    knowledge: KnowledgeBase,
):
    from concord.index.notes import Note

    note = knowledge.note(Note(FILLER, title="Winter", aliases=("laying up the boat ashore",)))
    knowledge.feedback(note.id, "good", query="frost")
    assert asked(knowledge) == {"laying up the boat ashore": "alias", "frost": "feedback"}


@pytest.mark.slow
@pytest.mark.promise("design.eval.auto.figures")
def test_kb_eval_auto_prints_intervals_keeps_the_pairs_and_leaves_the_base_as_it_was(kb, tmp_path: Path):
    words = ["anchor", "barrel", "candle", "drum", "engine", "feather", "glove", "hammer"]
    pages = {
        f"{word}_md": f"# How to mend a broken {word}\n\nTake the {word} apart. {FILLER}" for word in words
    }
    written(tmp_path / "docs", **pages)
    kb("add", "docs")
    before = kb("stats", "--json").out
    status, out, _ = kb("eval", "--auto", "--save", "kept", "--report", "page.html", "--run", "runs")
    assert status == 0
    assert "your own documents: 8 documents, 8 chunks, 8 queries (8 title)" in out
    assert "best mode: " in out
    assert "leave-out twins" in out
    assert (tmp_path / "page.html").read_text().count("<svg") == 2
    told = json.loads(kb("eval", "--auto", "--n", "5", "--json").out)
    assert told["kinds"] == {"title": 5}
    assert told["intervals"]["auto"]["nDCG@10"]["mean"] == told["measures"]["auto"]["nDCG@10"]
    assert told["answerability"]["leave-out twins"]["foreign"] == 2  # a quarter of the documents is left out
    assert json.loads(kb("stats", "--json").out)["documents"] == json.loads(before)["documents"]
    # What was kept is a collection like any other.
    again = json.loads(kb("eval", "kept", "--json").out)
    assert (again["documents"], again["queries"], again["missing"]) == (8, 8, 0)


@pytest.mark.slow
@pytest.mark.promise("design.eval.fixture")
def test_kb_eval_takes_questions_and_the_files_that_are_expected(kb, tmp_path: Path):
    written(
        tmp_path / "docs", pump_md=f"# Pump\n\nImpellers wear out. {FILLER}", sub__jib_md=f"# Jib\n\n{FILLER}"
    )
    kb("add", "docs")
    queries = [
        {
            "id": "1",
            "query": "impellers",
            "type": "exact",
            "expected_files": ["pump.md"],
            "expected_in_top_k": 1,
        },
        {"id": "2", "query": "jib", "type": "alias", "expected_files": ["qmd://docs/sub/jib.md"]},
        {"id": "3", "query": "gone", "type": "alias", "expected_files": ["gone.md"]},
    ]
    (tmp_path / "asked.json").write_text(json.dumps({"description": "", "version": 1, "queries": queries}))
    told = json.loads(kb("eval", "asked.json", "--json").out)
    assert told["kinds"] == {"exact": 1, "alias": 1}
    assert told["measures"]["bm25"]["RR"] == 1
    assert told["answerability"] == {}
    (tmp_path / "asked.json").write_text("[]")
    status, _, err = kb("eval", "asked.json")
    assert (status, "cannot read" in err) == (2, True)


def test_flags_of_auto_go_with_it_alone(kb):
    for wrong in (["eval"], ["eval", "--auto", "DIR"], ["eval", "DIR", "--n", "3"]):
        assert kb(*wrong).status == 2
