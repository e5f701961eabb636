"""How far an answer is trusted: the total table of labels, its caps, and what words and meaning vouch for."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord import KnowledgeBase, Note
from concord.search.blend import WEIGHTS
from concord.search.calibration import Cuts, Head, Heads
from concord.search.judge import (
    LABELS,
    TABLE,
    Clues,
    best_label,
    cap,
    row_of,
)
from concord.search.pipeline import search
from concord.types import Request
from support.recorders import write
from support.small_library import fitted, library, titles, tools

CUTS = Cuts(strong=0.8, weak=0.6)
CAPPED = {"very_high": 0.7, "high": 0.5, "medium_high": 0.4, "medium": 0.2}
TYPES = sorted(WEIGHTS)
flags = st.booleans()
clues = st.builds(
    Clues,
    exact=flags,
    relaxed=flags,
    semantic=flags,
    entity=flags,
    verbatim=flags,
    cosine=st.none() | st.floats(),
    cuts=st.builds(Cuts, strong=st.floats(), weak=st.floats()),
    type=st.sampled_from(TYPES),
    step=st.sampled_from([None, "prefix", "partial"]),
    unread=flags,
)


@pytest.mark.promise("000.confidence.matrix", "003.confidence.labels")
@pytest.mark.parametrize(
    ("clues", "expected"),
    [
        (Clues(exact=True, relaxed=True, semantic=True), "very_high"),
        (Clues(exact=True, semantic=True), "high"),
        (Clues(relaxed=True, semantic=True, cosine=0.1), "high"),
        (Clues(semantic=True, entity=True, cosine=0.1, type="entity"), "high"),
        (Clues(semantic=True, cosine=0.9, type="conceptual"), "high"),
        (Clues(semantic=True, cosine=0.9, type="exploratory"), "high"),
        (Clues(semantic=True, cosine=0.9, type="factual"), "medium_high"),
        (Clues(semantic=True, cosine=0.9, type="exact_quote"), "medium_high"),
        (Clues(semantic=True, cosine=0.7, type="conceptual"), "medium"),
        (Clues(semantic=True, cosine=0.5, type="conceptual"), "low"),
        (Clues(semantic=True, cosine=None, type="conceptual"), "low"),
        (Clues(exact=True, type="exact_quote", verbatim=True), "high"),
        (Clues(exact=True, type="exact_quote"), "medium"),
        (Clues(exact=True, relaxed=True), "medium"),
        (Clues(relaxed=True, entity=True), "low"),
        (Clues(relaxed=True, unread=True), "high"),  # if its score is enough: the cap decides
        (Clues(step="prefix", semantic=True, cosine=0.99), "low"),
        (Clues(step="partial", relaxed=True, unread=True), "speculative"),
        (Clues(entity=True, verbatim=True), "no_results"),
    ],
)
def test_evidence_earns_its_label(clues: Clues, expected: str):
    assert TABLE[row_of(replace(clues, cuts=CUTS))] == expected


@pytest.mark.promise("B.confidence.total")
@settings(max_examples=500)
@given(clues)
def test_whatever_the_evidence_it_earns_a_label(clues: Clues):
    assert TABLE[row_of(clues)] in LABELS


@pytest.mark.promise("B.confidence.total")
def test_every_row_of_the_table_is_reached():
    reached = {
        row_of(Clues(exact, relaxed, semantic, entity, verbatim, cosine, CUTS, type, step, unread))
        for exact, relaxed, semantic, entity, verbatim, unread in itertools.product((False, True), repeat=6)
        for cosine, type in itertools.product((0.1, 0.7, 0.9), TYPES)
        for step in (None, "prefix", "partial")
    }
    assert reached == TABLE.keys()


@pytest.mark.promise("design.confidence.cap")
def test_a_lone_neighbour_of_an_unfitted_model_never_reads_high():
    assert {TABLE[row_of(Clues(semantic=True, cosine=1.0, type=type))] for type in TYPES} == {"medium"}


@pytest.mark.promise("design.confidence.cap")
@pytest.mark.parametrize(
    ("earned", "score", "expected"),
    [
        ("very_high", 0.7, "very_high"),
        ("very_high", 0.45, "medium_high"),
        ("very_high", 0.1, "low"),
        ("medium", 0.1, "low"),
        ("no_results", 0.0, "no_results"),
        ("very_high", math.nan, "low"),
    ],
)
def test_a_label_needs_its_score(earned, score: float, expected: str):
    assert cap(earned, score, CAPPED) == expected


@pytest.mark.promise("003.confidence.answer")
def test_an_answer_is_as_good_as_its_best_hit_and_no_better_than_its_score():
    assert best_label(["medium", "very_high", "low"]) == "very_high"
    assert best_label([]) == "no_results"
    sure = with_heads(
        hit=SURE, cuts=replace(CUTS, answer={"very_high": 0.9, "high": 0.6, "medium_high": 0.55})
    )
    answer = search(Request("login token"), tools(library(), sure))
    assert answer.hits[0].confidence == "very_high"
    assert (answer.confidence_score, answer.confidence) == (0.5, "medium")


NEVER = Head(("cosine",), (0.0,), -9.0, (0.0,), (1.0,))
SURE = replace(NEVER, intercept=3.0)


def with_heads(*, hit: Head = NEVER, answerable: float = 0.4, cuts: Cuts = CUTS, **heads: Heads):
    """Return a calibration with this chance for every hit that has a vector, and one half for answers."""
    given = fitted(answerable)
    hybrid = replace(given.heads["hybrid"], hit=hit)
    return replace(given, heads={"hybrid": hybrid, **heads}, cuts=cuts)


UNLIKELY = with_heads()


@pytest.mark.promise("design.confidence.cap")
def test_answerable_is_the_confidence_score_against_one_cut():
    asked = [search(Request("login token"), tools(library(), fitted(cut))) for cut in (0.4, 0.5, 0.6)]
    assert [(answer.confidence_score, answer.answerable) for answer in asked] == [
        (0.5, True),
        (0.5, True),
        (0.5, False),
    ]


@pytest.mark.promise("B.calibration.labelled")
def test_scores_of_a_model_that_nothing_was_fitted_for_are_called_uncalibrated():
    answer = search(Request("login token"), tools(library()))
    assert (answer.calibrated, answer.answerable) == (False, None)
    assert 0 < answer.hits[0].score < 1


@pytest.mark.promise("B.calibration.labelled")
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_words_are_calibrated_whatever_the_model(mode: str):
    answer = library().search("login token", mode=mode)
    assert (titles(answer)[0], answer.calibrated, answer.answerable) == ("Login", True, True)
    strange = library(INCIDENTS).search(
        "which sourdough wants flour, salt and a night of patience", mode=mode
    )
    assert (strange.calibrated, strange.answerable) == (True, False)


def with_a_waiting_note() -> KnowledgeBase:
    kb = library()
    kb.note(Note("The zanquota of every tenant is thirty.", title="Quota"), embed=False)
    return kb


def test_a_hit_without_a_vector_is_first_judged_by_its_words_and_named():
    answer = search(Request("zanquota"), tools(with_a_waiting_note(), UNLIKELY))
    assert titles(answer)[0] == "Quota"
    assert answer.hits[0].scores["cosine"] is None
    assert answer.hits[0].score > 0.3
    assert [(part.strategy, part.reason) for part in answer.degraded] == [
        ("vectors", "1 passage found has no vector yet: `kb sync` makes them")
    ]
    assert search(Request("kubernetes"), tools(library(), UNLIKELY)).degraded == ()


# A probability that grows with the best cosine, whoever has it.
GROWING = Head(("top_cosine",), (20.0,), -8.0, (0.0,), (1.0,))
LEAVE = "Everybody has sixteen weeks of paid parental leave."


def test_what_is_left_out_of_an_answer_speaks_for_nothing(tmp_path: Path):
    by_cosine = replace(UNLIKELY, heads={"hybrid": Heads(NEVER, GROWING, 0.5)})
    folder = tmp_path / "docs"
    for n in range(12):
        write(folder / f"{n}.md", f"Bread number {n} wants flour, water, salt and patience.\n")
    write(folder / "leave.md", LEAVE + "\n")
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(folder)
        assert search(Request(LEAVE), tools(kb, by_cosine)).answerable is True
        assert search(Request(LEAVE + " -everybody"), tools(kb, by_cosine)).answerable is False
        (folder / "leave.md").unlink()
        answer = search(Request(LEAVE), tools(kb, by_cosine))
        assert (answer.answerable, answer.omitted["deleted"]) == (False, 1)


# Enough of them for a word in few to be rare.
INCIDENTS = {
    **{f"INC-{n}": f"The gateway failed with E_GATEWAY_{n}: a full disk." for n in (4711, 4713, 4720)},
    **{f"INC-{n}": f"Number {n} of the slow answers that the night shift saw." for n in range(100, 160)},
}


@pytest.mark.parametrize("query", ["E_GATEWAY_4712", "what about E_GATEWAY_4712"])
def test_a_name_that_nothing_has_is_said_and_makes_what_is_like_it_less_likely(query: str):
    kb = library(INCIDENTS)
    absent, held = kb.search(query), kb.search(query.replace("4712", "4711"))
    assert "nothing is called" in (absent.note or "")
    assert held.note is None
    assert (absent.confidence_score or 0) < (held.confidence_score or 0)


@pytest.mark.model
@pytest.mark.parametrize("notes", [1, 3])
def test_the_only_text_of_a_store_is_judged_as_one_of_many_would_be(notes: int):
    texts = {
        "Login": "A token is issued after login and expires in an hour.",
        "Bread": "Bread wants flour, water, salt and patience.",
        "Tide": "The harbour falls dry at low tide.",
    }
    with library(dict([*texts.items()][:notes]), embed__provider="bundled") as kb:
        right = kb.search("when does the token expire")
        wrong = kb.search("who won the chess tournament")
    assert (right.hits[0].document.title, right.answerable) == ("Login", True)
    assert right.hits[0].score > 0.5
    assert (wrong.answerable, all(hit.score < 0.2 for hit in wrong.hits)) == (False, True)
