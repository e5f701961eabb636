"""A hit that is lifted because it is what was asked for is worth no less than what it was put before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.answering.judge import Verdict, with_lifted
from concord.cli.arithmetic import arithmetic
from concord.ranking.agreement import LABELS, Cuts, Evidence, Label
from concord.ranking.calibrate import Logistic
from concord.ranking.features import HitSignals
from concord.search import search
from concord.types import Answer, Request
from support.small_library import fitted, library, tools

# Believes in nothing but cosines, which tell no release and no definition from another.
NEAR = Logistic(("cosine",), (4.0,), 0.0, (0.4,), (0.2,))
SURE = replace(fitted(answerable=0.1), hit=NEAR)

THANKS = "Many thanks to all who have helped the anchor with this release and its bug fixes. "
SHELF = {
    "Anchor": "\n\n".join(
        f"## {number} (2026-01-02)\n\n{THANKS * (9 if number == '8.1.0' else 1)}\n\n"
        f"### Bug Fixes\n\n{'- A knot that came loose is tied again, and more of that kind. ' * 9}"
        for number in ("8.1.0", "8.0.1", "8.0.0", "7.9.2")
    ),
    "Thanks": THANKS,
    "Manual": "| wind_level | how hard it may blow before the ropes are doubled and the crew goes below |\n",
    "Storms": "What does wind_level do, what does wind_level do? Nobody knows what does wind_level do.",
    "winch": "WINCH(1)\n\n       --quick n\n              Turns it n times as fast as it turns otherwise.\n",
    "Ropes": "winch --quick, winch --quick and winch --quick: so we wind ropes with the winch.",
    **{f"Number {n}": f"The {n}. note on ropes and bug fixes that the night shift wrote." for n in range(30)},
}


@pytest.fixture(scope="module")
def shelf() -> Iterator[KnowledgeBase]:
    with library(SHELF, ingest__chunk_tokens=120) as kb:
        yield kb


def asked(kb: KnowledgeBase, query: str, top: int = 10) -> Answer:
    return search(Request(query, top=top, explain=True), tools(kb, SURE))


LIFTED = [("anchor 8.0.0 bug fixes", "release"), ("wind_level", "definition"), ("winch --quick", "option")]


@pytest.mark.parametrize(("query", "sign"), LIFTED)
def test_the_first_has_the_best_score_and_label(shelf: KnowledgeBase, query: str, sign: str):
    first, *others = asked(shelf, query).hits
    told = first.explanation["lifted"]
    assert told["for"] == sign
    assert first.score >= max(hit.score for hit in others)
    assert first.passage_score >= max(hit.passage_score for hit in others)
    assert LABELS.index(first.confidence) <= min(LABELS.index(hit.confidence) for hit in others)
    assert told["to"] == first.score
    assert told["from"] is None or told["from"] < first.score


def test_some_of_these_would_have_less_by_the_evidence_that_scores_were_fitted_to(shelf: KnowledgeBase):
    first, second, *_ = asked(shelf, LIFTED[0][0]).hits
    assert first.explanation["lifted"]["from"] == pytest.approx(first.explanation["relevance"]["relevance"])
    assert first.explanation["lifted"]["from"] < first.score


@pytest.mark.parametrize(("query", "sign"), LIFTED)
def test_its_score_is_the_same_however_many_are_asked_for(shelf: KnowledgeBase, query: str, sign: str):
    found = {
        (hit.score, hit.confidence) for top in (1, 3, 10, 25) for hit in asked(shelf, query, top).hits[:1]
    }
    assert len(found) == 1
    assert [len(asked(shelf, query, top).hits) for top in (1, 3)] == [1, 3]


def test_what_is_not_of_the_section_that_is_named_is_not_raised(shelf: KnowledgeBase):
    hits = asked(shelf, "anchor 8.1.0 bug fixes").hits
    lifted = [hit for hit in hits if hit.explanation["lifted"]]
    assert lifted[0] == hits[0]
    assert all("Bug Fixes" in hit.chunk.heading or "### Bug Fixes" in hit.chunk.text for hit in lifted)


@pytest.mark.parametrize("query", ["ropes of the night shift", "what is tied again", "thanks to all"])
def test_a_hit_that_was_not_lifted_has_the_score_of_its_evidence(shelf: KnowledgeBase, query: str):
    for hit in asked(shelf, query).hits:
        assert hit.explanation["lifted"] is None
        assert hit.score == hit.explanation["relevance"]["relevance"]
        assert not any(line.startswith("lifted") for line in arithmetic(hit.explanation))


def test_a_release_that_nothing_holds_raises_nothing(shelf: KnowledgeBase):
    answer = asked(shelf, "anchor 9.3.0 bug fixes")
    assert [hit for hit in answer.hits if hit.explanation["lifted"]] == []


def test_a_release_of_something_else_raises_nothing(shelf: KnowledgeBase):
    answer = asked(shelf, "hawser 8.0.0 bug fixes")
    assert "8.0.0 (2026-01-02)" in answer.hits[0].chunk.heading
    assert [hit for hit in answer.hits if hit.explanation["lifted"]] == []


def test_the_arithmetic_says_why_a_hit_was_lifted_and_where_its_score_is_from(shelf: KnowledgeBase):
    first = asked(shelf, LIFTED[0][0]).hits[0]
    (line,) = [one for one in arithmetic(first.explanation) if one.startswith("lifted")]
    assert line == (
        f"lifted: it is of the release that is asked for; score {first.score:.4f}, "
        "as the best that it was put before"
    )


ALL_THREE, SOME_WORDS = Evidence(exact=True, relaxed=True, semantic=True), Evidence(relaxed=True)
CUTS = Cuts(hit={"very_high": 0.8, "high": 0.6, "medium": 0.3})


def verdict(relevance: float, label: Label, evidence: Evidence = SOME_WORDS) -> Verdict:
    return Verdict(relevance, relevance, label, evidence, signals=HitSignals(rank=1))


@pytest.mark.parametrize(
    ("lifted", "below", "raised"),
    [
        # What one has as evidence and another as a score bears out no label.
        (verdict(0.2, "low"), [verdict(0.85, "medium"), verdict(0.1, "low", ALL_THREE)], (0.85, "medium")),
        (verdict(0.2, "low", ALL_THREE), [verdict(0.85, "medium")], (0.85, "very_high")),
        (verdict(0.2, "low", ALL_THREE), [verdict(0.65, "medium")], (0.65, "high")),
        (verdict(0.7, "low"), [verdict(0.65, "high")], (0.7, "high")),
        (verdict(0.7, "high", ALL_THREE), [verdict(0.65, "low")], (0.7, "high")),
        (verdict(0.2, "low"), [], (0.2, "low")),
    ],
)
def test_a_label_is_of_what_bears_it_out_and_none_below_is_better(
    lifted: Verdict, below: list[Verdict], raised: tuple[float, Label]
):
    first, *others = with_lifted((lifted, *below), [True, *(False for _ in below)], CUTS)
    assert (first.relevance, first.label) == raised
    assert first.raised_from == (None if first.relevance == lifted.relevance else lifted.relevance)
    assert others == below
