"""Diversity: what is repeated gives way to what is new."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ranked_texts import FOX, TEXTS, WHALE, alike, ids, ranked

from concord.ranking.diversify import REPETITION, STRETCH, mmr
from concord.ranking.duplicates import Likeness, similarity
from concord.settings import TABLE
from concord.types import Ranked

TRADE = float(TABLE["search.diversity"].default)


def spread(found: list[Ranked], likeness: Likeness, limit: int = 100) -> list[Ranked]:
    return mmr(found, likeness, limit, TRADE)


@pytest.mark.promise("000.mmr.diversity")
def test_a_repetition_gives_way_to_something_new_and_says_from_where_it_moved():
    found = spread(ranked(1.0, 0.95, 0.8, 0.0), alike(FOX, FOX + " again", WHALE, "unrelated"))
    assert ids(found)[:3] == [1, 3, 2]
    assert [one.moved_from for one in found] == [None, 3, 2, None]


def test_what_is_clearly_more_relevant_stays_before_what_is_new():
    assert ids(spread(ranked(1.0, 0.95, 0.2, 0.0), alike(FOX, FOX + " again", WHALE, "x"))) == [1, 2, 3, 4]


@pytest.mark.promise("000.mmr.lambda")
def test_relevance_counts_seven_tenths_and_novelty_three():
    # 0.7 · 0.5 − 0.3 · 1 = 0.05 for the repetition against 0.7 · 0.1 = 0.07 for what is new
    assert ids(spread(ranked(1.0, 0.5, 0.1, 0.0), alike(FOX, FOX, WHALE, "x"))) == [1, 3, 2, 4]
    assert ids(spread(ranked(1.0, 0.5, 0.07, 0.0), alike(FOX, FOX, WHALE, FOX))) == [1, 2, 3, 4]


def test_the_scale_of_scores_does_not_matter_to_diversity():
    words = alike(FOX, FOX + " again", WHALE, "unrelated")
    small = spread(ranked(0.0164, 0.0163, 0.0160, 0.0144), words)
    large = spread(ranked(164.0, 163.0, 160.0, 144.0), words)
    negative = spread(ranked(-0.36, -0.37, -0.40, -0.56), words)
    assert ids(small) == ids(large) == ids(negative)


def test_a_limit_stops_the_choice_early():
    assert ids(spread(ranked(1.0, 0.9, 0.8), alike(FOX, WHALE, "x"), limit=2)) == [1, 2]
    assert spread([], Likeness({})) == []
    assert spread(ranked(1.0), alike(FOX), limit=0) == []


@settings(max_examples=100)
@given(TEXTS, st.data())
def test_diversity_only_reorders_and_keeps_the_best_first(some: list[str], data: st.DataObject):
    scores = sorted(
        data.draw(st.lists(st.floats(-5, 5), min_size=len(some), max_size=len(some))), reverse=True
    )
    before = ranked(*scores)
    after = spread(before, alike(*some))
    assert sorted(ids(after)) == ids(before)
    assert after[0].chunk_id == before[0].chunk_id
    for place, one in enumerate(after, start=1):
        assert one.moved_from == (None if one.chunk_id == place else one.chunk_id)


SCORES = st.sampled_from([0.0, 0.2, 0.25, 0.8, 0.9, 1.0])
SETS = st.sets(st.sampled_from("abcd"), min_size=1)


def picked_one_by_one(scores: list[float], words: dict[int, set[str]], limit: int) -> list[int]:
    """Maximal marginal relevance as it is defined: everything compared with all that is picked."""
    low, high = min(scores[:STRETCH]), max(scores)
    relevance = [(score - low) / (high - low) if high > low else 1.0 for score in scores]
    found: list[int] = []
    while len(found) < min(limit, len(scores)):

        def worth(chunk_id: int) -> float:
            alike = [similarity(words[chunk_id], words[other]) for other in found]
            nearest = max((one for one in alike if one >= REPETITION), default=0.0)
            return TRADE * relevance[chunk_id - 1] - (1 - TRADE) * nearest

        found.append(max((one for one in words if one not in found), key=worth))
    return found


@settings(max_examples=300)
@given(st.lists(st.tuples(SCORES, SETS), min_size=1, max_size=30), st.integers(1, 30))
def test_diversity_picks_as_if_it_compared_everything(given: list[tuple[float, set[str]]], limit: int):
    given.sort(key=lambda one: -one[0])
    scores, words = [score for score, _ in given], {n: some for n, (_, some) in enumerate(given, 1)}
    assert ids(spread(ranked(*scores), Likeness(words), limit)) == picked_one_by_one(scores, words, limit)
