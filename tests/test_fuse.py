"""Fusions: the seeds' worked examples, and what must hold of any ballots."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.ranking.ballots import Ballots, merge_votes
from concord.ranking.blend import LITERAL_GAIN, blend, blend_weight
from concord.ranking.context import BLEND, BlendNumbers, Context
from concord.ranking.explain import explain
from concord.ranking.fuse import FUSIONS, fuse, rrf, shares
from concord.ranking.plan import WEIGHTS, Weights
from concord.ranking.rarity import ceiling, coverage, idf, idfs, unknown
from concord.settings import TABLE
from concord.types import Candidate, Family, Ranked

RRF_K = float(TABLE["search.rrf_k"].default)
FAMILY: dict[str, Family] = {"fts_exact": "lexical", "fts_relaxed": "lexical", "semantic": "semantic"}


def vote(chunk_id: int, strategy: str, rank: int, score: float = 1.0) -> Candidate:
    return Candidate(chunk_id, strategy, FAMILY.get(strategy, "lexical"), rank, score)


def listed(strategy: str, *chunk_ids: int) -> list[Candidate]:
    return [vote(chunk_id, strategy, rank, 1 - rank / 10) for rank, chunk_id in enumerate(chunk_ids, start=1)]


def score_of(ranked: list[Ranked], chunk_id: int) -> float:
    return next(one.score for one in ranked if one.chunk_id == chunk_id)


def context_of(**given: Any) -> Context:
    return Context(**{"kind": "exploratory", "k": RRF_K, **given})


def fused(fusion: str, ballots: Ballots, **context: Any) -> list[Ranked]:
    return FUSIONS[fusion](ballots, context_of(**context))


def order(ranked: list[Ranked]) -> list[int]:
    return [one.chunk_id for one in ranked]


@st.composite
def polls(draw: st.DrawFn) -> list[Candidate]:
    found: list[Candidate] = []
    for strategy in FAMILY:
        chunk_ids = draw(st.lists(st.integers(1, 30), unique=True, max_size=12))
        falling = sorted(
            draw(st.lists(scores, min_size=len(chunk_ids), max_size=len(chunk_ids))), reverse=True
        )
        found += [vote(one, strategy, at + 1, falling[at]) for at, one in enumerate(chunk_ids)]
    return found


scores = st.floats(-1, 40, allow_nan=False).map(lambda value: round(value, 3))


@pytest.mark.promise("001.rrf.both-lists")
def test_ranks_two_and_five_with_equal_weights_score_0_0315_and_beat_any_single_list():
    ballots = merge_votes([vote(7, "fts_exact", 2), vote(7, "semantic", 5), vote(8, "fts_exact", 1)])
    ranked = rrf(ballots, RRF_K)
    assert score_of(ranked, 7) == pytest.approx(1 / 62 + 1 / 65)
    assert round(score_of(ranked, 7), 4) == 0.0315
    assert round(score_of(ranked, 8), 4) == 0.0164
    assert order(ranked) == [7, 8]


@pytest.mark.promise("000.rrf.weighted")
def test_weights_of_a_half_give_the_seeds_numbers():
    ballots = merge_votes(
        [vote(1, "fts_exact", 1), vote(1, "semantic", 3), vote(2, "fts_exact", 1), vote(3, "semantic", 1)]
    )
    ranked = rrf(ballots, RRF_K, weights=Weights(0.5, 0.5))
    assert round(score_of(ranked, 1), 4) == 0.0161
    assert round(score_of(ranked, 3), 4) == 0.0082
    alone = rrf(merge_votes([vote(2, "fts_relaxed", 1)]), RRF_K, weights=Weights(0.5, 0.5))
    assert round(score_of(alone, 2), 4) == 0.0082


@pytest.mark.promise("001.rrf.formula")
def test_a_vote_counts_one_part_in_k_plus_its_rank():
    assert score_of(rrf(merge_votes([vote(1, "semantic", 1)]), k=9), 1) == pytest.approx(0.1)


@pytest.mark.promise("003.weights.rrf")
def test_weighted_rrf_follows_the_kind_of_query():
    ballots = merge_votes([*listed("fts_exact", 1, 2), *listed("semantic", 2, 1)])
    fuse = FUSIONS["weighted"]
    assert order(fuse(ballots, context_of(kind="exact_quote"))) == [1, 2]
    assert order(fuse(ballots, context_of(kind="conceptual"))) == [2, 1]
    equal = fuse(ballots, context_of(kind="factual"))
    assert [one.score for one in equal] == [one.score for one in rrf(ballots, RRF_K)]


@pytest.mark.promise("003.adaptive.worked-example")
def test_the_adaptive_score_gives_the_seeds_numbers():
    ballots = merge_votes([vote(1, "semantic", 1), vote(1, "fts_relaxed", 8), vote(2, "fts_relaxed", 1)])
    ranked = fused("adaptive", ballots, kind="conceptual")
    assert round(score_of(ranked, 1), 3) == 0.935
    assert round(score_of(ranked, 2), 3) == 0.213
    assert order(ranked) == [1, 2]


@pytest.mark.promise("003.adaptive.bonus")
def test_agreement_of_all_three_strategies_adds_a_fifth():
    one = fused("adaptive", merge_votes([vote(1, name, 1) for name in FAMILY]), kind="factual")
    assert score_of(one, 1) == pytest.approx((0.5 + 0.5) * 1.2)


@pytest.mark.promise("004.dominant.worked-example")
def test_the_stronger_signal_leads_at_seventy_per_cent():
    keyword_led = merge_votes([vote(1, "fts_exact", 1, 8.0), vote(1, "semantic", 9, 0.25)])
    assert score_of(fused("dominant", keyword_led, max_bm25=10.0), 1) == pytest.approx(0.635)
    meaning_led = merge_votes([vote(1, "fts_exact", 1, 2.5), vote(1, "semantic", 9, 0.80)])
    assert score_of(fused("dominant", meaning_led, max_bm25=10.0), 1) == pytest.approx(0.635)


@pytest.mark.promise("004.dominant.signals")
def test_signals_of_the_dominant_fusion_are_clipped_to_the_unit_interval():
    wild = merge_votes(
        [vote(1, "fts_exact", 1, 99.0), vote(1, "semantic", 1, 1.0001), vote(2, "semantic", 2, -0.5)]
    )
    ranked = fused("dominant", wild, max_bm25=10.0)
    assert score_of(ranked, 1) == pytest.approx(1.0)
    assert score_of(ranked, 2) == 0.0


def test_without_a_bound_the_best_bm25_stands_in_for_it():
    ballots = merge_votes([vote(1, "fts_exact", 1, 4.0), vote(2, "fts_exact", 2, 2.0)])
    assert [one.score for one in fused("dominant", ballots)] == pytest.approx([0.7, 0.35])


@pytest.mark.promise("004.dominant.signals")
def test_the_most_a_query_can_score_is_its_idfs_saturated():
    weights = idfs(1000, {"rare": 2, "common": 400, "absent": 0})
    assert ceiling(weights.values()) == pytest.approx(2.2 * sum(weights.values()))
    assert weights["absent"] > weights["rare"] > weights["common"] > 0
    assert idf(10, 9) == pytest.approx(1e-6)
    assert ceiling([]) == 0.0


def test_coverage_counts_the_querys_words_by_their_rarity():
    assert coverage({"rare"}, {"rare": 3.0, "common": 1.0}) == pytest.approx(0.75)
    assert coverage({"rare"}, {}) == 0.0
    assert unknown(100, {"a": 0, "b": 5}) == 0.5
    assert unknown(0, {"a": 0}) == unknown(10, {}) == 0.0


@pytest.mark.promise("B.fusion.probabilistic")
def test_log_odds_trust_a_chunk_that_stands_out_of_both_lists():
    words = [
        vote(one, "fts_relaxed", rank, score)
        for rank, (one, score) in enumerate([(1, 9), (2, 3), (3, 2.9), (4, 2.8)], 1)
    ]
    meaning = [
        vote(one, "semantic", rank, score)
        for rank, (one, score) in enumerate([(5, 0.71), (1, 0.70), (6, 0.4), (7, 0.4)], 1)
    ]
    assert order(fused("logodds", merge_votes([*words, *meaning])))[:2] == [1, 5]


@pytest.mark.promise("B.fusion.probabilistic")
def test_being_found_far_down_a_list_is_never_worse_than_not_being_found():
    lists = [*listed("fts_exact", 1, 2, 3, 4), *listed("semantic", 5, 6, 7, 8)]
    without = score_of(fused("logodds", merge_votes(lists)), 4)
    also_last = score_of(fused("logodds", merge_votes([*lists, vote(4, "semantic", 5, -5.0)])), 4)
    assert also_last > without


def test_z_scores_weigh_the_families_as_told():
    ballots = merge_votes([*listed("fts_exact", 1, 2, 3), *listed("semantic", 3, 2, 1)])
    assert order(fused("zscores", ballots, semantic_weight=0.9)) == [3, 2, 1]
    assert order(fused("zscores", ballots, semantic_weight=0.1)) == [1, 2, 3]


def test_a_chunk_missing_from_a_list_counts_as_its_last_unless_its_score_was_completed():
    candidates = [
        *[
            vote(one, "fts_exact", rank, score)
            for rank, (one, score) in enumerate([(1, 9.0), (2, 8.0), (3, 1.0)], 1)
        ],
        *[
            vote(one, "semantic", rank, score)
            for rank, (one, score) in enumerate([(2, 0.8), (3, 0.6), (4, 0.5)], 1)
        ],
    ]
    assert fused("zscores", merge_votes(candidates)) == fused(
        "zscores", merge_votes(candidates, bm25={4: 1.0}, cosine={1: 0.5})
    )
    completed = fused("zscores", merge_votes(candidates, bm25={4: 8.9}, cosine={1: 0.79}))
    assert score_of(completed, 4) > score_of(fused("zscores", merge_votes(candidates)), 4)
    assert order(completed)[:2] == [1, 2]


def test_completions_name_only_chunks_that_somebody_voted_for():
    ballots = merge_votes(listed("semantic", 1), bm25={1: 3.0, 99: 5.0})
    assert ballots.bm25 == {1: 3.0}
    assert order(fused("zscores", ballots)) == [1]


@pytest.mark.promise("design.two-ballots")
def test_the_lexical_rank_is_the_better_of_exact_and_relaxed_with_ties_by_bm25():
    ballots = merge_votes(
        [
            vote(1, "fts_exact", 1, 5.0),
            vote(1, "fts_relaxed", 4, 5.0),
            vote(2, "fts_relaxed", 1, 7.0),
            vote(3, "fts_relaxed", 2, 6.0),
        ]
    )
    assert ballots.lexical == {2: 1, 1: 2, 3: 3}
    assert ballots.semantic == {}


def test_a_rank_comes_through_unchanged_from_a_single_list():
    assert merge_votes([vote(1, "fts_exact", 2), vote(1, "fts_relaxed", 7)]).lexical == {1: 2}


def test_ties_go_to_more_votes_and_then_to_the_lower_id():
    same_score = merge_votes(
        [vote(9, "fts_exact", 1), vote(9, "fts_relaxed", 1), vote(3, "semantic", 1), vote(4, "semantic", 2)]
    )
    assert order(rrf(same_score, RRF_K)) == [9, 3, 4]
    twins = merge_votes([vote(2, "fts_exact", 1), vote(1, "semantic", 1)])
    assert order(rrf(twins, RRF_K)) == [1, 2]


def test_a_strategy_that_names_a_chunk_twice_votes_once_with_its_better_rank():
    ballots = merge_votes([vote(1, "semantic", 4, 0.4), vote(1, "semantic", 2, 0.6)])
    assert ballots.semantic == {1: 2}
    assert len(ballots.votes[1]) == 1


def test_votes_are_listed_in_the_order_of_the_strategies():
    reversed_votes = [
        vote(1, "semantic", 1),
        vote(1, "zulu", 1),
        vote(1, "fts_relaxed", 1),
        vote(1, "fts_exact", 1),
    ]
    assert [one.strategy for one in rrf(merge_votes(reversed_votes), RRF_K)[0].votes] == [
        "fts_exact",
        "fts_relaxed",
        "semantic",
        "zulu",
    ]


@pytest.mark.parametrize("name", sorted(FUSIONS))
def test_no_candidates_give_no_ranking(name: str):
    assert FUSIONS[name](merge_votes([]), context_of()) == []


@pytest.mark.parametrize("name", sorted(FUSIONS))
def test_one_family_alone_keeps_its_own_order(name: str):
    for strategy in FAMILY:
        assert order(FUSIONS[name](merge_votes(listed(strategy, 5, 3, 9, 1)), context_of())) == [5, 3, 9, 1]


@pytest.mark.promise("001.rrf.sorted", "B.fusion.pure")
@pytest.mark.parametrize("name", sorted(FUSIONS))
@settings(max_examples=40)
@given(candidates=polls(), seed=st.integers(0, 99), kind=st.sampled_from(sorted(WEIGHTS)))
def test_any_fusion_ranks_each_chunk_once_best_first_whatever_the_order_of_the_votes(
    name, candidates, seed, kind
):
    context = context_of(kind=kind, max_bm25=20.0)
    ranked = FUSIONS[name](merge_votes(candidates), context)
    assert sorted(order(ranked)) == sorted({one.chunk_id for one in candidates})
    assert all(math.isfinite(one.score) for one in ranked)
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    shuffled = random.Random(seed).sample(candidates, len(candidates))
    assert FUSIONS[name](merge_votes(shuffled), context) == ranked


@pytest.mark.promise("B.fusion.pure")
@pytest.mark.parametrize("name", ["rrf", "weighted", "adaptive"])
@settings(max_examples=60)
@given(candidates=polls().filter(bool), data=st.data())
def test_a_better_rank_never_lowers_the_score(name, candidates, data):
    better = data.draw(st.sampled_from(candidates))
    raised = [replace_rank(one, 1) if one is better else one for one in candidates]
    fuse = FUSIONS[name]
    before, after = fuse(merge_votes(candidates), context_of()), fuse(merge_votes(raised), context_of())
    assert score_of(after, better.chunk_id) >= score_of(before, better.chunk_id)


def replace_rank(one: Candidate, rank: int) -> Candidate:
    return replace(one, rank=rank)


@pytest.mark.promise("B.explain")
@pytest.mark.parametrize("name", sorted(FUSIONS))
@settings(max_examples=20)
@given(candidates=polls().filter(bool))
def test_an_explanation_adds_up_to_the_fused_score(name, candidates):
    ballots, context = merge_votes(candidates), context_of(kind="entity", max_bm25=20.0)
    for one in FUSIONS[name](ballots, context):
        told = explain(one.chunk_id, ballots, context, name)
        added = sum(family["added"] for family in told["families"].values())
        assert told["fused"] == pytest.approx(one.score)
        assert added * told["factor"] == pytest.approx(one.score)
        assert [row["strategy"] for row in told["strategies"]] == [vote.strategy for vote in one.votes]


def test_an_explanation_names_ranks_scores_and_weights():
    ballots = merge_votes([vote(1, "fts_exact", 2, 4.5), vote(1, "semantic", 5, 0.7)])
    told = explain(1, ballots, context_of(), "rrf")
    assert told["families"]["lexical"] == {"rank": 2, "score": 4.5, "added": pytest.approx(1 / 62)}
    assert told["weights"] == {"semantic": 1.0, "lexical": 1.0}
    assert (told["agreement"], told["best_rank"], told["found"]) == (pytest.approx(2 / 3), 2, True)
    assert explain(1, ballots, context_of(), "dominant")["weights"] is None
    assert explain(1, ballots, context_of(), "zscores")["weights"] == {"semantic": 0.6, "lexical": 0.4}


def test_a_chunk_that_nobody_found_is_explained_as_such():
    told = explain(9, merge_votes([vote(1, "semantic", 1)]), context_of(), "rrf")
    assert (told["found"], told["fused"], told["strategies"], told["best_rank"]) == (False, 0.0, [], None)


def test_shares_and_ballots_are_values():
    ballots = merge_votes(listed("semantic", 1, 2))
    assert isinstance(ballots, Ballots)
    assert replace(context_of(), k=10) == context_of(k=10)
    assert shares("rrf", ballots, context_of())[1].score == pytest.approx(1 / 61)


def test_a_blend_trusts_words_more_the_further_their_first_stands_out():
    flat = merge_votes([vote(i, "fts_relaxed", i, 5.0) for i in range(1, 11)])
    peaked = merge_votes([vote(i, "fts_relaxed", i, 10.0 / i) for i in range(1, 11)])
    assert blend_weight(peaked, context_of()) < blend_weight(flat, context_of())


def test_a_blend_trusts_meaning_more_the_further_its_first_stands_out():
    words = [vote(i, "fts_relaxed", i, 5.0) for i in range(1, 11)]
    flat = merge_votes([*words, *(vote(i, "semantic", i, 0.8 - i / 1000) for i in range(1, 41))])
    peaked = merge_votes([*words, *(vote(i, "semantic", i, 0.6 + 0.3 / i) for i in range(1, 41))])
    assert blend_weight(flat, context_of()) < blend_weight(peaked, context_of())
    few = merge_votes([*words, *(vote(i, "semantic", i, 0.6 + 0.3 / i) for i in range(1, 10))])
    assert blend_weight(few, context_of()) == pytest.approx(0.9 * BLEND.flat)  # nine of ten were compared


def test_a_blend_leaves_source_code_to_meaning_and_other_scripts_to_words():
    given = merge_votes([vote(i, "fts_relaxed", i, 10.0 / i) for i in range(1, 11)])
    assert blend_weight(given, context_of(code_share=1.0)) == pytest.approx(0.9)
    assert blend_weight(given, context_of(model_reads=0.2)) < blend_weight(given, context_of()) / 2


def test_a_blend_trusts_rare_words_more_and_in_source_code_only_where_some_chunk_holds_them_all():
    votes = [*listed("fts_relaxed", *range(1, 13)), *listed("semantic", *range(20, 32))]
    compared = dict.fromkeys(range(1, 13), 0.1)
    loose = merge_votes(votes, cosine=compared)
    held = merge_votes([*listed("fts_exact", 5), *votes], cosine=compared)
    rare, common = context_of(rareness=0.9), context_of(rareness=0.0)
    assert blend_weight(loose, rare) < blend_weight(loose, common)
    code, plain = context_of(rareness=0.9, code_share=1.0), context_of(code_share=1.0)
    assert blend_weight(held, code) < blend_weight(loose, code) == blend_weight(loose, plain)
    assert blend_weight(held, context_of(rareness=1.0, blend=BlendNumbers(flat=0.3))) == pytest.approx(0.1)


def test_asking_a_blend_for_more_candidates_moves_none_of_the_first():
    few = [vote(i, "fts_relaxed", i, 20.0 / i) for i in range(1, 41)]
    few += [vote(100 - i, "semantic", i, 0.9 - i / 100) for i in range(1, 41)]
    more = [vote(i, "fts_relaxed", i, 20.0 / i) for i in range(41, 60)]
    first = [one.chunk_id for one in blend(merge_votes(few), context_of())]
    assert [one.chunk_id for one in blend(merge_votes([*few, *more]), context_of())][:20] == first[:20]


@pytest.mark.parametrize("kind", ["exact_quote", "entity"])
@pytest.mark.parametrize("code_share", [0.0, 1.0])
def test_a_blend_puts_the_chunk_that_holds_a_whole_identifier_or_quotation_first(kind, code_share):
    near = [
        vote(chunk_id, "semantic", rank, 0.9 - rank / 100) for rank, chunk_id in enumerate(range(1, 21), 1)
    ]
    loose = [vote(chunk_id, "fts_relaxed", chunk_id, 9 - chunk_id / 10) for chunk_id in range(1, 11)]
    whole = [vote(30, "fts_exact", 1, 7.0), vote(30, "fts_relaxed", 11, 7.0)]
    given = merge_votes([*near, *loose, *whole], cosine={30: 0.6})
    literal = context_of(kind=kind, code_share=code_share, is_literal=True)
    assert blend(given, literal)[0].chunk_id == 30
    assert blend(given, replace(literal, is_literal=False))[0].chunk_id == 1


def test_chunks_that_all_hold_a_quotation_share_as_evidence_what_each_gains_in_the_order():
    def quoted(holders: int) -> tuple[dict[int, float], dict[int, float]]:
        votes = [vote(at, "fts_relaxed", at, 9.0 - at / 10) for at in range(1, 41)]
        given = merge_votes(
            [*votes, *(vote(at, "fts_exact", at, 9.0 - at / 10) for at in range(1, holders + 1))]
        )
        context = context_of(kind="exact_quote", is_literal=True)
        fused = fuse("blend", given, context)
        return {one.chunk_id: one.score for one in fused.ranked}, fused.standing

    for holders in (1, 4, 40):
        order, standing = quoted(holders)
        shared = min(LITERAL_GAIN, math.log(holders))
        assert standing[1] == pytest.approx(order[1] - shared)
        assert holders == 40 or standing[40] == order[40]
        assert [*standing.values()] == sorted(standing.values(), reverse=True)


def test_a_chunk_without_a_vector_is_not_taken_for_far_in_meaning():
    near = [vote(chunk_id, "semantic", chunk_id, 0.9 - chunk_id / 100) for chunk_id in range(1, 41)]
    waiting = [vote(99, "fts_exact", 1, 12.0), vote(99, "fts_relaxed", 1, 12.0)]
    given = merge_votes([*waiting, *near])
    assert 99 not in given.cosine
    assert order(blend(given, context_of()))[0] == 99
    assert shares("blend", given, context_of())[99].semantic == 0


def test_what_has_vectors_is_not_put_before_what_words_have_found_and_is_yet_to_be_embedded():
    waiting = [vote(chunk_id, "fts_relaxed", chunk_id, 12.0 / chunk_id) for chunk_id in range(1, 41)]
    embedded = [vote(100 + rank, "semantic", rank, 0.6 + 0.3 / rank) for rank in range(1, 41)]
    given = merge_votes([*waiting, *embedded])
    assert order(blend(given, context_of()))[:3] == [1, 2, 3]
    compared = merge_votes([*waiting, *embedded], cosine=dict.fromkeys(range(1, 41), 0.5))
    assert order(blend(compared, context_of()))[0] == 101
    half = merge_votes([*waiting, *embedded], cosine=dict.fromkeys(range(1, 21), 0.5))
    assert blend_weight(given, context_of()) < blend_weight(half, context_of())
    assert blend_weight(half, context_of()) < blend_weight(compared, context_of())


def test_a_word_that_few_chunks_hold_makes_the_lexical_ballot_stand_out():
    few = [vote(chunk_id, "fts_relaxed", chunk_id, 5.0 - chunk_id / 100) for chunk_id in range(1, 4)]
    many = [vote(chunk_id, "fts_relaxed", chunk_id, 5.0 - chunk_id / 100) for chunk_id in range(1, 21)]
    assert blend_weight(merge_votes(few), context_of()) < blend_weight(merge_votes(many), context_of())
