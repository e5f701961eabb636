"""The floor: what scores too low is dropped, unless that were everything."""

from __future__ import annotations

import pytest
from support.ranked_texts import ids, ranked

from concord.ranking.floor import above_floor
from concord.settings import TABLE
from concord.types import Ranked

FLOOR = float(TABLE["search.floor"].default)


def kept(found: list[Ranked], scores: dict[int, float] | None = None) -> list[Ranked]:
    return above_floor(found, FLOOR, scores or {one.chunk_id: one.score for one in found})


@pytest.mark.promise("000.floor.similarity")
def test_the_floor_drops_what_scores_below_a_thousandth():
    assert ids(kept(ranked(0.0082, 0.001, 0.0009))) == [1, 2]


@pytest.mark.promise("000.floor.single-strategy")
def test_the_floor_keeps_a_single_strategys_vote_and_never_empties_an_answer():
    assert ids(kept(ranked(0.5 / 61))) == [1]
    assert ids(kept(ranked(0.0005, 0.0001))) == [1, 2]
    assert kept([]) == []


def test_the_floor_looks_at_the_rrf_score_when_another_fusion_made_the_order():
    assert ids(kept(ranked(-0.5, -0.9), scores={1: 0.0164, 2: 0.0002})) == [1]
