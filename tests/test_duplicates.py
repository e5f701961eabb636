"""Near-duplicates: which texts say the same, and are one result."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ranked_texts import FOX, TEXTS, WHALE, alike, ranked, sets

from concord.ranking.duplicates import DUPLICATE, Likeness, collapse, says_the_same, similarity, word_set
from support.small_library import library


def collapsed(*texts: str) -> list[tuple[int, tuple[int, ...]]]:
    scores = [1 - at / 100 for at in range(len(texts))]
    return [(one.ranked.chunk_id, one.duplicates) for one in collapse(ranked(*scores), alike(*texts))]


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


@settings(max_examples=200)
@given(st.lists(st.sampled_from("abcde"), min_size=1), st.data())
def test_words_left_out_of_a_text_leave_it_in_line_and_words_moved_do_not(
    words: list[str], data: st.DataObject
):
    fewer = [word for word in words if data.draw(st.booleans())]
    assert says_the_same(" ".join(["x", *words]), " ".join(["x", *words, *fewer]), frozenset())
    moved = data.draw(st.permutations(words))
    assert says_the_same(" ".join(words), " ".join(moved), frozenset()) == (moved == words)


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
    assert word_set("\x1b[1mhello\x00world") == {"1mhello", "world"}  # control characters are signs
    assert word_set("Größe, über!") == word_set("GRÖSSE über") == {"grösse", "über"}


@settings(max_examples=200)
@given(st.text(st.sampled_from("aZ_0é½Δж’–·« \n\u00a0\u0301\u2028")).filter(str.strip))
def test_the_words_of_alphabets_are_what_a_regular_expression_finds(text: str):
    assert word_set(text) == set(re.findall(r"\w+", text.casefold())) or not re.search(r"\w", text)


@settings(max_examples=100)
@given(st.frozensets(st.sampled_from("abcdefgh")), st.frozensets(st.sampled_from("abcdefgh")))
def test_similarity_is_jaccards(one: frozenset[str], other: frozenset[str]):
    union = one | other
    assert similarity(one, other) == pytest.approx(len(one & other) / len(union) if union else 0.0)


SIZES = st.integers(0, 90)


@settings(max_examples=300)
@given(SIZES, SIZES, SIZES)
def test_near_duplicates_are_those_whose_similarity_reaches_the_bound(both: int, one: int, other: int):
    shared = {f"w{n}" for n in range(both)}
    words = {1: shared | {f"a{n}" for n in range(one // 9)}, 2: shared | {f"b{n}" for n in range(other // 9)}}
    is_one = len(collapse(ranked(1.0, 0.9), Likeness(words))) == 1
    assert is_one == (similarity(words[1], words[2]) >= DUPLICATE)


@settings(max_examples=20)
@given(st.lists(st.frozensets(st.sampled_from("abcdefgh")), min_size=70, max_size=80))
def test_many_chunks_are_compared_as_few_are(many: list[frozenset[str]]):
    words = dict(enumerate(many))
    together = Likeness(words)
    for one, other in product(range(0, 70, 7), range(1, 70, 7)):
        apart = Likeness({one: words[one], other: words[other]})
        assert together.similarity(one, other) == apart.similarity(one, other)
        assert together.are_near_duplicates(one, other) == apart.are_near_duplicates(one, other)


@settings(max_examples=100)
@given(TEXTS)
def test_collapsing_loses_no_chunk(some: list[str]):
    found = collapsed(*some)
    assert sorted(one for first, others in found for one in (first, *others)) == list(range(1, len(some) + 1))


@pytest.mark.promise("000.mmr.near-duplicates")
def test_a_rule_and_its_opposite_are_two_results():
    rule = f"After the trial has ended, support staff may grant a refund. {FOX}. {WHALE}."
    kb = library({"EU": rule, "US": rule.replace("may grant", "may not grant"), "Copy": rule.upper()})
    hits = kb.search("may staff grant a refund").hits
    assert {hit.document.title for hit in hits} in ({"EU", "US"}, {"Copy", "US"})
    assert [len(hit.also_at) for hit in hits if hit.document.title == "US"] == [0]
