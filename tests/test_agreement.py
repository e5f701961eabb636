"""Who found a hit, and the total table of confidence labels with its caps."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.ranking.agreement import (
    LABELS,
    PRELIMINARY,
    TABLE,
    Cuts,
    Evidence,
    Rung,
    agreement,
    answer_label,
    answerable,
    cap,
    label,
    row,
    rows_for,
)
from concord.ranking.explain import explain_label
from concord.ranking.plan import STRATEGIES, WEIGHTS
from concord.types import Candidate

CUTS = Cuts(strong=0.8, weak=0.6)
CAPPED = Cuts(
    hit={"very_high": 0.7, "high": 0.5, "medium_high": 0.4, "medium": 0.2},
    answer={"very_high": 0.9, "high": 0.6},
    answerable=0.4,
)
KINDS = sorted(WEIGHTS)
flags = st.booleans()
evidences = st.builds(
    Evidence,
    exact=flags,
    relaxed=flags,
    semantic=flags,
    entity=flags,
    verbatim=flags,
    cosine=st.none() | st.floats(),
    cuts=st.builds(Cuts, strong=st.floats(), weak=st.floats()),
    kind=st.sampled_from(KINDS),
    rung=st.sampled_from([None, "prefix", "partial"]),
    unread=flags,
)


def vote(strategy: str, rank: int) -> Candidate:
    return Candidate(1, strategy, "semantic" if strategy == "semantic" else "lexical", rank, 1.0)


@pytest.mark.promise("003.agreement.found-by", "003.agreement.best-rank", "003.agreement.score")
def test_a_chunk_found_three_times_is_agreed_on_by_all():
    found = agreement([vote("semantic", 5), vote("fts_exact", 1), vote("fts_relaxed", 3)])
    assert found.found_by == ("fts_exact", "fts_relaxed", "semantic")
    assert found.best_rank == 1
    assert found.agreement == 1.0


@pytest.mark.promise("003.agreement.score")
def test_a_chunk_found_once_is_agreed_on_by_a_third():
    found = agreement([vote("semantic", 2)])
    assert (found.found_by, found.best_rank) == (("semantic",), 2)
    assert found.agreement == pytest.approx(1 / 3)


def test_a_strategy_from_outside_is_named_last_and_agreement_stays_within_one():
    found = agreement([vote("alpha", 4), *(vote(name, 1) for name in STRATEGIES)])
    assert found.found_by == (*STRATEGIES, "alpha")
    assert found.agreement == 1.0


def test_nobody_found_what_has_no_votes():
    found = agreement([])
    assert (found.found_by, found.best_rank, found.agreement) == ((), 0, 0.0)


@pytest.mark.promise("000.confidence.matrix", "003.confidence.labels")
@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(exact=True, relaxed=True, semantic=True), "very_high"),
        (Evidence(exact=True, relaxed=True, semantic=True, kind="exact_quote", verbatim=True), "very_high"),
        (Evidence(exact=True, semantic=True), "high"),
        (Evidence(relaxed=True, semantic=True, cosine=0.1), "high"),
        (Evidence(semantic=True, entity=True, cosine=0.1, kind="entity"), "high"),
        (Evidence(semantic=True, cosine=0.9, kind="conceptual"), "high"),
        (Evidence(semantic=True, cosine=0.9, kind="exploratory"), "high"),
        (Evidence(semantic=True, cosine=0.9, kind="factual"), "medium_high"),
        (Evidence(semantic=True, cosine=0.9, kind="entity"), "medium_high"),
        (Evidence(semantic=True, cosine=0.9, kind="exact_quote"), "medium_high"),
        (Evidence(semantic=True, cosine=0.7, kind="conceptual"), "medium"),
        (Evidence(semantic=True, cosine=0.5, kind="conceptual"), "low"),
        (Evidence(semantic=True, cosine=None, kind="conceptual"), "low"),
        (Evidence(exact=True, kind="exact_quote", verbatim=True), "high"),
        (Evidence(exact=True, relaxed=True, kind="exact_quote", verbatim=True), "high"),
        (Evidence(exact=True, kind="exact_quote"), "medium"),
        (Evidence(exact=True, kind="factual", verbatim=True), "medium"),
        (Evidence(exact=True, relaxed=True), "medium"),
        (Evidence(relaxed=True), "low"),
        (Evidence(relaxed=True, entity=True), "low"),
        (Evidence(relaxed=True, unread=True), "high"),  # if its relevance is enough: the cap decides
        (Evidence(relaxed=True, semantic=True, unread=True), "high"),
        (Evidence(rung="partial", relaxed=True, unread=True), "speculative"),
        (Evidence(rung="prefix", relaxed=True), "low"),
        (Evidence(rung="prefix", semantic=True, cosine=0.99), "low"),
        (Evidence(rung="partial", relaxed=True), "speculative"),
        (Evidence(rung="partial"), "speculative"),
        (Evidence(), "no_results"),
        (Evidence(entity=True, verbatim=True), "no_results"),
    ],
)
def test_evidence_earns_its_label(evidence: Evidence, expected: str):
    assert label(replace(evidence, cuts=CUTS)) == expected


@pytest.mark.promise("B.confidence.total")
def test_every_combination_of_evidence_has_exactly_one_row():
    yes_no = (False, True)
    cosines = (None, math.nan, -1.0, 0.59, 0.6, 0.79, 0.8, 1.0)
    rungs: tuple[Rung | None, ...] = (None, "prefix", "partial")
    for exact, relaxed, semantic, entity, verbatim, unread in itertools.product(yes_no, repeat=6):
        for cosine, kind, rung in itertools.product(cosines, KINDS, rungs):
            evidence = Evidence(exact, relaxed, semantic, entity, verbatim, cosine, CUTS, kind, rung, unread)
            assert sum(one.applies(evidence) for one in rows_for(evidence)) == 1, evidence


@pytest.mark.promise("B.confidence.total")
@settings(max_examples=300)
@given(evidences)
def test_whatever_the_cosine_and_the_cuts_one_row_applies(evidence: Evidence):
    assert [one.applies(evidence) for one in rows_for(evidence)].count(True) == 1
    assert row(evidence).label in LABELS


def test_every_row_of_the_table_is_reached():
    reached = {
        row(Evidence(exact, relaxed, semantic, entity, verbatim, cosine, CUTS, kind, rung, unread)).name
        for exact, relaxed, semantic, entity, verbatim, unread in itertools.product((False, True), repeat=6)
        for cosine, kind in itertools.product((0.1, 0.7, 0.9), KINDS)
        for rung in (None, "prefix", "partial")
    }
    assert reached == {one.name for one in TABLE}


@pytest.mark.promise("design.confidence.cap")
def test_a_lone_neighbour_of_an_unfitted_model_never_reads_high():
    for kind in KINDS:
        assert label(Evidence(semantic=True, cosine=1.0, kind=kind)) == "medium"


@settings(max_examples=200)
@given(evidences, st.floats(0, 1))
def test_more_strategies_never_earn_less(evidence: Evidence, cosine: float):
    if evidence.rung is None:
        some = replace(evidence, cuts=CUTS, cosine=cosine)
        everyone = replace(some, exact=True, relaxed=True, semantic=True)
        assert LABELS.index(label(everyone)) <= LABELS.index(label(some))


@pytest.mark.promise("design.confidence.cap")
@pytest.mark.parametrize(
    ("given_label", "relevance", "expected"),
    [
        ("very_high", 0.9, "very_high"),
        ("very_high", 0.7, "very_high"),
        ("very_high", 0.6, "high"),
        ("very_high", 0.45, "medium_high"),
        ("very_high", 0.3, "medium"),
        ("very_high", 0.1, "low"),
        ("high", 0.9, "high"),
        ("medium", 0.9, "medium"),
        ("medium", 0.1, "low"),
        ("low", 0.0, "low"),
        ("speculative", 0.0, "speculative"),
        ("no_results", 0.0, "no_results"),
        (PRELIMINARY, 0.0, PRELIMINARY),
        ("very_high", None, "very_high"),
        ("very_high", math.nan, "low"),
    ],
)
def test_a_label_needs_its_relevance(given_label, relevance, expected):
    assert cap(given_label, relevance, CAPPED) == expected


@pytest.mark.promise("design.confidence.cap")
@given(st.sampled_from(LABELS), st.floats(0, 1), st.floats(0, 1))
def test_the_cap_never_raises_a_label_and_never_falls_as_relevance_rises(given_label, one, other):
    low, high = sorted((one, other))
    lower, higher = cap(given_label, low, CAPPED), cap(given_label, high, CAPPED)
    assert LABELS.index(lower) >= LABELS.index(higher) >= LABELS.index(given_label)


@pytest.mark.promise("003.confidence.answer")
def test_an_answer_is_as_good_as_its_best_hit_and_no_better_than_its_score():
    assert answer_label(["medium", "very_high", "low"], 0.95, CAPPED) == "very_high"
    assert answer_label(["medium", "very_high", "low"], 0.7, CAPPED) == "high"
    assert answer_label(["very_high"], 0.1, CAPPED) == "medium_high"
    assert answer_label(["speculative", "low"], 0.9, CAPPED) == "low"
    assert answer_label([], 0.9, CAPPED) == "no_results"
    assert answer_label([PRELIMINARY], 0.0, CAPPED) == PRELIMINARY


@pytest.mark.promise("design.confidence.cap")
def test_answerable_is_the_score_against_one_cut():
    assert answerable(0.4, CAPPED) is True
    assert answerable(0.39, CAPPED) is False
    assert answerable(0.39, Cuts()) is None
    assert answerable(None, CAPPED) is None


def test_a_label_is_explained_by_its_row_and_its_cap():
    evidence = Evidence(exact=True, relaxed=True, semantic=True)
    assert explain_label(evidence, "high") == {
        "row": "all three strategies",
        "earned": "very_high",
        "label": "high",
        "capped": True,
    }
