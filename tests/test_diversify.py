"""Diversity, near-duplicates and the floor."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.config import TABLE
from concord.ranking.diversify import (
    DUPLICATE,
    REPETITION,
    STRETCH,
    Likeness,
    above_floor,
    collapse,
    mmr,
    says_the_same,
    similarity,
    word_set,
)
from concord.types import Ranked
from small_library import library

TRADE, FLOOR = (float(TABLE[key].default) for key in ("search.diversity", "search.floor"))
FOX = "the quick brown fox jumps over the lazy dog near the river bank"
WHALE = "a blue whale sings slowly below cold arctic waters all winter long"


def ranked(*scores: float) -> list[Ranked]:
    return [Ranked(chunk_id, score, ()) for chunk_id, score in enumerate(scores, start=1)]


def sets(*texts: str) -> dict[int, frozenset[str]]:
    return {chunk_id: word_set(text) for chunk_id, text in enumerate(texts, start=1)}


def alike(*texts: str) -> Likeness:
    return Likeness(sets(*texts))


def ids(found: list[Ranked]) -> list[int]:
    return [one.chunk_id for one in found]


def spread(found: list[Ranked], likeness: Likeness, limit: int = 100) -> list[Ranked]:
    return mmr(found, likeness, limit, TRADE)


def kept(found: list[Ranked], scores: dict[int, float] | None = None) -> list[Ranked]:
    return above_floor(found, FLOOR, scores or {one.chunk_id: one.score for one in found})


def collapsed(*texts: str) -> list[tuple[int, tuple[int, ...]]]:
    scores = [1 - at / 100 for at in range(len(texts))]
    return [(one.ranked.chunk_id, one.duplicates) for one in collapse(ranked(*scores), alike(*texts))]


texts = st.lists(st.text(alphabet="ab cd,中文", max_size=20), min_size=1, max_size=8)


@pytest.mark.promise("000.mmr.near-duplicates")
def test_texts_that_differ_in_a_number_or_in_what_was_asked_for_are_not_the_same():
    fifteen, ninety = (f"{FOX} {WHALE} and waits {n} seconds" for n in (15, 90))
    assert not says_the_same(fifteen, ninety, frozenset())
    one, other = (f"{FOX} {WHALE} in {place}" for place in ("tokyo", "oregon"))
    assert says_the_same(one, other, frozenset({"whale"}))
    assert not says_the_same(one, other, frozenset({"oregon"}))


@pytest.mark.promise("000.mmr.near-duplicates")
@pytest.mark.parametrize(
    ("said", "turned"),
    [
        ("staff may grant a refund", "staff may not grant a refund"),
        ("staff may grant a refund", "staff must grant a refund"),
        ("staff can grant a refund", "staff can't grant a refund"),
        ("staff can grant a refund", "staff can’t grant a refund"),
        ("staff can grant a refund", "staff cannot grant a refund"),
        ("no, staff may not pay", "no, staff may not pay, and do not call"),
        ("with a manager and a reason", "with a manager or a reason"),
        ("refunds are paid before delivery", "refunds are paid after delivery"),
        ("refunds are granted with a receipt", "refunds are granted without a receipt"),
        ("staff are able to pay", "staff are unable to pay"),
        ("the token is valid", "the token is invalid"),
        ("this option is enabled", "this option is disabled"),
        ("the buyer pays the seller", "the seller pays the buyer"),
        ("Mitarbeiter dürfen erstatten", "Mitarbeiter dürfen nicht erstatten"),
        ("Erstattung ist ein Recht", "Erstattung ist kein Recht"),
        ("on peut rembourser", "on ne peut pas rembourser"),
        ("se puede devolver", "no se puede devolver"),
        ("можно вернуть деньги", "не можно вернуть деньги"),
        ("可以退款", "不可以退款"),
        ("返金できる", "返金できない"),
        ("पैसे मिलेंगे", "पैसे नहीं मिलेंगे"),
    ],
)
def test_texts_that_say_the_opposite_are_not_the_same(said: str, turned: str):
    one, other = (f"{FOX} {WHALE}. {text}. {FOX}" for text in (said, turned))
    assert not says_the_same(one, other, frozenset())
    assert not says_the_same(other, one, frozenset())


@pytest.mark.promise("000.mmr.near-duplicates")
@pytest.mark.parametrize(
    "copy",
    [
        f"{FOX}. {WHALE}.",
        f"{FOX.upper()}\n\n  {WHALE}  ",
        f"# {FOX}\n> *{WHALE}*!",
        f"{FOX} {WHALE}\nCopyright of the Example authors and friends",
        f"Home > Animals\n{FOX} {WHALE}",
        f"{FOX} quietly {WHALE}",
        f"{FOX} {WHALE}".replace("dog", "cat"),
        f"{FOX} {WHALE}".replace(" the lazy", " lazy"),
    ],
)
def test_white_space_case_signs_and_a_line_more_make_no_other_text(copy: str):
    text = f"{FOX} {WHALE}"
    assert says_the_same(text, copy, frozenset({"whale"}))
    assert says_the_same(copy, text, frozenset({"whale"}))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from("abcde"), min_size=1), st.data())
def test_words_left_out_of_a_text_leave_it_in_line_and_words_moved_do_not(
    words: list[str], data: st.DataObject
):
    fewer = [word for word in words if data.draw(st.booleans())]
    assert says_the_same(" ".join(["x", *words]), " ".join(["x", *words, *fewer]), frozenset())
    moved = data.draw(st.permutations(words))
    assert says_the_same(" ".join(words), " ".join(moved), frozenset()) == (moved == words)


@pytest.mark.promise("000.mmr.diversity")
def test_a_repetition_gives_way_to_something_new_and_says_from_where_it_moved():
    found = spread(ranked(1.0, 0.95, 0.8, 0.0), alike(FOX, FOX + " again", WHALE, "unrelated"))
    assert ids(found)[:3] == [1, 3, 2]
    assert [one.moved_from for one in found] == [None, 3, 2, None]


def test_what_is_clearly_more_relevant_stays_before_what_is_new():
    assert ids(spread(ranked(1.0, 0.95, 0.2, 0.0), alike(FOX, FOX + " again", WHALE, "x"))) == [1, 2, 3, 4]


@pytest.mark.promise("000.mmr.lambda")
def test_the_trade_off_is_the_seeds():
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


@settings(deadline=None, max_examples=100)
@given(texts, st.data())
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


@pytest.mark.promise("000.mmr.near-duplicates")
def test_the_same_text_twice_is_one_result_that_names_the_other():
    assert collapsed(FOX, WHALE, FOX.upper() + "  \n") == [(1, (3,)), (2, ())]


def test_texts_that_differ_in_one_word_of_many_are_one_result():
    long = " ".join(f"word{n}" for n in range(60))
    assert collapsed(long, long + " more") == [(1, (2,))]
    assert collapsed(long, " ".join(f"word{n}" for n in range(30, 90))) == [(1, ()), (2, ())]


def test_texts_without_words_are_duplicates_only_when_equal():
    assert collapsed("!!!", "???", "!!!") == [(1, (3,)), (2, ())]
    assert collapsed("", "") == [(1, (2,))]


def test_scripts_without_spaces_are_compared_by_pairs_of_characters():
    assert word_set("机器学习 test") == {"机器", "器学", "学习", "test"}
    one, two = sets("机器学习是人工智能的一个分支", "机器学习是人工智能的一个领域").values()
    assert 0.5 < similarity(one, two) < 1


def test_punctuation_and_case_do_not_make_words_differ():
    assert word_set("Hello, (World)!") == word_set("hello world")
    assert word_set("Größe, über!") == word_set("GRÖSSE über") == {"grösse", "über"}


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("aZ_0é½Δж’–·« \n\u00a0\u0301\u2028")).filter(str.strip))
def test_the_words_of_alphabets_are_what_a_regular_expression_finds(text: str):
    assert word_set(text) == set(re.findall(r"\w+", text.casefold())) or not re.search(r"\w", text)


@settings(deadline=None, max_examples=100)
@given(st.frozensets(st.sampled_from("abcdefgh")), st.frozensets(st.sampled_from("abcdefgh")))
def test_similarity_is_jaccards(one: frozenset[str], other: frozenset[str]):
    union = one | other
    assert similarity(one, other) == pytest.approx(len(one & other) / len(union) if union else 0.0)


SIZES = st.integers(0, 90)


@settings(deadline=None, max_examples=300)
@given(SIZES, SIZES, SIZES)
def test_near_duplicates_are_those_whose_similarity_reaches_the_bound(both: int, one: int, other: int):
    shared = {f"w{n}" for n in range(both)}
    words = {1: shared | {f"a{n}" for n in range(one // 9)}, 2: shared | {f"b{n}" for n in range(other // 9)}}
    is_one = len(collapse(ranked(1.0, 0.9), Likeness(words))) == 1
    assert is_one == (similarity(words[1], words[2]) >= DUPLICATE)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.frozensets(st.sampled_from("abcdefgh")), min_size=70, max_size=80))
def test_many_chunks_are_compared_as_few_are(many: list[frozenset[str]]):
    words = dict(enumerate(many))
    together = Likeness(words)
    for one, other in product(range(0, 70, 7), range(1, 70, 7)):
        apart = Likeness({one: words[one], other: words[other]})
        assert together.similarity(one, other) == apart.similarity(one, other)
        assert together.are_near_duplicates(one, other) == apart.are_near_duplicates(one, other)


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


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.2, 0.25, 0.8, 0.9, 1.0]), st.sets(st.sampled_from("abcd"), min_size=1)
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 30),
)
def test_diversity_picks_as_if_it_compared_everything(given: list[tuple[float, set[str]]], limit: int):
    given.sort(key=lambda one: -one[0])
    scores, words = [score for score, _ in given], {n: some for n, (_, some) in enumerate(given, 1)}
    assert ids(spread(ranked(*scores), Likeness(words), limit)) == picked_one_by_one(scores, words, limit)


@settings(deadline=None, max_examples=100)
@given(texts)
def test_collapsing_loses_no_chunk(some: list[str]):
    found = collapsed(*some)
    assert sorted(one for first, others in found for one in (first, *others)) == list(range(1, len(some) + 1))


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


@pytest.mark.promise("000.mmr.near-duplicates")
def test_a_rule_and_its_opposite_are_two_results():
    rule = f"After the trial has ended, support staff may grant a refund. {FOX}. {WHALE}."
    kb = library({"EU": rule, "US": rule.replace("may grant", "may not grant"), "Copy": rule.upper()})
    hits = kb.search("may staff grant a refund").hits
    assert {hit.document.title for hit in hits} in ({"EU", "US"}, {"Copy", "US"})
    assert [len(hit.also_at) for hit in hits if hit.document.title == "US"] == [0]
