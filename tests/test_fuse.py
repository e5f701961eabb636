"""Fusions: the seeds' worked examples, and what must hold of any candidates."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from concord.core.settings import TABLE
from concord.search.blend import WEIGHTS, Context, max_bm25
from concord.search.explain import _fused_arithmetic
from concord.search.fuse import (
    FUSIONS,
    Candidates,
    above_floor,
    agreement,
    fuse,
    multipliers,
)
from concord.search.scores import merge
from concord.text.tokens import idfs
from concord.types import Candidate, ChunkId, Leg, QueryType, Ranked, RankedList, Scored
from support.small_library import ranked

K = float(TABLE["search.rrf_k"].default)
FLOOR = float(TABLE["search.floor"].default)
LEGS: dict[str, Leg] = {"fts_exact": "lexical", "fts_relaxed": "lexical", "semantic": "semantic"}


def listed(strategy: str, *chunk_ids: ChunkId) -> RankedList:
    return scored(strategy, {chunk_id: 1 - rank / 10 for rank, chunk_id in enumerate(chunk_ids, 1)})


def scored(strategy: str, scores: dict[ChunkId, float]) -> RankedList:
    rows = [Scored(chunk_id, score) for chunk_id, score in scores.items()]
    return RankedList(strategy, LEGS.get(strategy, "lexical"), rows)


def found(
    chunk_id: ChunkId, lexical: int | None = None, semantic: int | None = None, **scores: float
) -> Candidate:
    """Return a chunk at these ranks, the lexical one among those that hold any word."""
    ranks = {"fts_relaxed": lexical, "semantic": semantic}
    known = {name: rank for name, rank in ranks.items() if rank}
    return Candidate(chunk_id, known, lexical, semantic, **scores)


def scores_of(fusion: str, rows: list[Candidate], **context: Any) -> dict[ChunkId, float]:
    """Return chunk → score, best first."""
    return {row.chunk_id: row.score for row in fuse(fusion, Candidates(rows, Context(**context)))}


def order(fusion: str, rows: list[Candidate], **context: Any) -> list[ChunkId]:
    return [*scores_of(fusion, rows, **context)]


@pytest.mark.promise("001.rrf.both-lists")
def test_ranks_two_and_five_score_0_0315_and_beat_any_single_list():
    scores = scores_of("rrf", [found(7, 2, 5), found(8, 1)])
    assert {chunk_id: round(score, 4) for chunk_id, score in scores.items()} == {7: 0.0315, 8: 0.0164}
    assert [*scores] == [7, 8]


@pytest.mark.promise("000.rrf.weighted")
def test_weights_of_a_half_give_the_seeds_numbers():
    scores = Candidates([found(1, 1, 3), found(2, 1), found(3, None, 1)], Context(k=K)).rrf
    halves = {chunk_id: round(score / 2, 4) for chunk_id, score in scores.items()}
    assert halves == {1: 0.0161, 2: 0.0082, 3: 0.0082}


@pytest.mark.promise("001.rrf.formula")
def test_a_rank_counts_one_part_in_k_plus_it_and_k_can_be_set():
    assert scores_of("rrf", [found(1, None, 1)], k=9.0)[1] == pytest.approx(0.1)


@pytest.mark.promise("003.weights.matrix")
def test_the_weight_matrix_is_the_seeds():
    assert {type: astuple(weights) for type, weights in WEIGHTS.items()} == {
        "exact_quote": (0.1, 0.9),
        "entity": (0.4, 0.6),
        "conceptual": (0.8, 0.2),
        "factual": (0.5, 0.5),
        "exploratory": (0.7, 0.3),
    }
    assert all(sum(astuple(multipliers(type))) == pytest.approx(2) for type in WEIGHTS)


@pytest.mark.promise("003.weights.rrf")
def test_weighted_rrf_follows_the_type_of_query():
    rows = [found(1, 1, 2), found(2, 2, 1)]
    assert order("weighted", rows, type="exact_quote") == [1, 2]
    assert order("weighted", rows, type="conceptual") == [2, 1]
    assert scores_of("weighted", rows, type="factual") == scores_of("rrf", rows)


@pytest.mark.promise("003.adaptive.worked-example")
def test_the_adaptive_score_gives_the_seeds_numbers():
    scores = scores_of("adaptive", [found(1, 8, 1), found(2, 1)], type="conceptual")
    assert {chunk_id: round(score, 3) for chunk_id, score in scores.items()} == {1: 0.935, 2: 0.213}


@pytest.mark.promise("003.adaptive.bonus")
def test_agreement_of_all_three_strategies_adds_a_fifth():
    everyone = Candidate(1, dict.fromkeys(LEGS, 1), 1, 1)
    assert scores_of("adaptive", [everyone], type="factual")[1] == pytest.approx((0.5 + 0.5) * 1.2)


@pytest.mark.promise("004.dominant.worked-example")
@pytest.mark.parametrize(("bm25", "cosine"), [(8.0, 0.25), (2.5, 0.80)])
def test_the_stronger_signal_leads_at_seventy_per_cent(bm25: float, cosine: float):
    rows = [found(1, 1, 9, bm25=bm25, cosine=cosine)]
    assert scores_of("dominant", rows, max_bm25=10.0)[1] == pytest.approx(0.635)


@pytest.mark.promise("004.dominant.signals")
def test_signals_of_the_dominant_fusion_are_clipped_to_the_unit_interval():
    rows = [found(1, 1, 1, bm25=99.0, cosine=1.0001), found(2, None, 2, cosine=-0.5)]
    assert scores_of("dominant", rows, max_bm25=10.0) == pytest.approx({1: 1.0, 2: 0.0})
    unbounded = [found(1, 1, bm25=4.0), found(2, 2, bm25=2.0)]  # the best stands in for the bound
    assert scores_of("dominant", unbounded) == pytest.approx({1: 0.7, 2: 0.35})


@pytest.mark.promise("004.dominant.signals")
def test_the_most_a_query_can_score_is_its_idfs_saturated():
    weights = idfs(1000, {"rare": 2, "common": 400, "absent": 0})
    assert max_bm25(weights.values()) == pytest.approx(2.2 * sum(weights.values()))
    assert weights["absent"] > weights["rare"] > weights["common"] > 0


@pytest.mark.promise("B.fusion.probabilistic")
def test_log_odds_trust_a_chunk_that_stands_out_of_both_lists():
    words = scored("fts_relaxed", {1: 9, 2: 3, 3: 2.9, 4: 2.8})
    meaning = scored("semantic", {5: 0.71, 1: 0.70, 6: 0.4, 7: 0.4})
    assert order("logodds", merge([words, meaning], 40))[:2] == [1, 5]


@pytest.mark.promise("design.one-lexical-rank")
def test_the_lexical_rank_is_the_better_of_exact_and_relaxed_with_ties_by_bm25():
    rows = merge([scored("fts_exact", {1: 5.0}), scored("fts_relaxed", {2: 7.0, 3: 6.0, 1: 5.0})], 40)
    assert {row.chunk_id: row.lexical_rank for row in rows} == {2: 1, 1: 2, 3: 3}
    assert {row.semantic_rank for row in rows} == {None}


@pytest.mark.promise("003.agreement.found-by", "003.agreement.best-rank", "003.agreement.score")
def test_a_candidate_knows_its_rank_in_each_strategy_and_how_many_agree():
    plugin = listed("zulu", 1)
    rows = merge([plugin, listed("semantic", 2, 1), listed("fts_relaxed", 1), listed("fts_exact", 1)], 40)
    assert [*rows[0].ranks.items()] == [("fts_exact", 1), ("fts_relaxed", 1), ("semantic", 2), ("zulu", 1)]
    assert [agreement(row.ranks) for row in rows] == [1.0, pytest.approx(1 / 3)]
    assert agreement({}) == 0


@pytest.mark.parametrize("name", sorted(FUSIONS))
def test_one_leg_alone_keeps_its_own_order_and_no_candidates_give_none(name: str):
    assert order(name, []) == []
    for strategy in LEGS:
        assert order(name, merge([listed(strategy, 5, 3, 9, 1)], 40)) == [5, 3, 9, 1]


@st.composite
def lists(draw: st.DrawFn) -> list[RankedList]:
    made = []
    for strategy in LEGS:
        chunk_ids = draw(st.lists(st.integers(1, 30), unique=True, max_size=12))
        scores = st.floats(-1, 40, allow_nan=False).map(lambda value: round(value, 3))
        falling = sorted(draw(st.lists(scores, min_size=len(chunk_ids), max_size=len(chunk_ids))))[::-1]
        made.append(scored(strategy, dict(zip(chunk_ids, falling, strict=True))))
    return made


@pytest.mark.promise("001.rrf.sorted", "B.fusion.pure")
@pytest.mark.parametrize("name", sorted(FUSIONS))
@settings(max_examples=40)
@given(lists=lists(), seed=st.integers(0, 99), type=st.sampled_from(sorted(WEIGHTS)))
def test_any_fusion_ranks_each_chunk_once_best_first_whatever_the_order_of_the_lists(
    name: str, lists: list[RankedList], seed: int, type: QueryType
):
    context = Context(type=type, max_bm25=20.0)
    result = fuse(name, Candidates(merge(lists, 40), context))
    assert sorted(row.chunk_id for row in result) == sorted({s.chunk_id for r in lists for s in r.found})
    assert all(math.isfinite(row.score) for row in result)
    assert [row.score for row in result] == sorted((row.score for row in result), reverse=True)
    shuffled = random.Random(seed).sample(lists, len(lists))
    assert fuse(name, Candidates(merge(shuffled, 40), context)) == result


@pytest.mark.promise("B.explain")
@pytest.mark.parametrize("name", sorted(FUSIONS))
@settings(max_examples=20)
@given(lists=lists())
def test_an_explanation_adds_up_to_the_fused_score(name: str, lists: list[RankedList]):
    candidates = Candidates(merge(lists, 40), Context(type="entity", max_bm25=20.0))
    for row in fuse(name, candidates):
        told: Any = _fused_arithmetic(row.chunk_id, candidates, name)
        added = sum(leg["added"] for leg in told["families"].values())
        assert (
            added * told["factor"] + told["gain"] == pytest.approx(told["fused"]) == pytest.approx(row.score)
        )
        assert [part["strategy"] for part in told["strategies"]] == [*row.candidate.ranks]


def words(scores: list[float]) -> list[Candidate]:
    """Return chunks that words found, with a cosine each."""
    return [found(at, at, bm25=score, cosine=0.5) for at, score in enumerate(scores, 1)]


def test_a_blend_puts_the_chunk_that_holds_a_quotation_or_defines_the_asked_name_first():
    near = [found(at, at, at, bm25=9 - at / 10, cosine=0.9 - at / 100) for at in range(1, 11)]
    near += [found(at, None, at, cosine=0.9 - at / 100) for at in range(11, 21)]
    whole = Candidate(30, {"fts_exact": 1, "fts_relaxed": 21}, 1, None, 7.0, 0.6)
    assert order("blend", [*near, whole], type="exact_quote", is_verbatim=True)[0] == 30
    assert order("blend", [*near, whole], type="exact_quote")[0] == 1
    assert order("blend", [*near, replace(whole, ranks={}, name_score=1.0)])[0] == 30


def kept(rows: list[Ranked], rrf: dict[ChunkId, float] | None = None) -> list[ChunkId]:
    scores = rrf or {row.chunk_id: row.score for row in rows}
    return [row.chunk_id for row in above_floor(rows, scores, FLOOR)]


@pytest.mark.promise("000.floor.similarity")
def test_the_floor_drops_what_scores_below_a_thousandth_whichever_fusion_made_the_order():
    assert kept(ranked(0.0082, 0.001, 0.0009)) == [1, 2]
    assert kept(ranked(-0.5, -0.9), {1: 0.0164, 2: 0.0002}) == [1]


@pytest.mark.promise("000.floor.single-strategy")
def test_the_floor_keeps_what_one_strategy_found_and_never_empties_an_answer():
    assert kept(ranked(0.5 / 61)) == [1]
    assert kept(ranked(0.0005, 0.0001)) == [1, 2]
    assert kept([]) == []
