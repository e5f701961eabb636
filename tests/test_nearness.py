"""Which words are near a typed one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.nearness import distance, nearest, shown, similar, typed, variants
from concord.text.tokens import stem

WORDS = st.text(alphabet="abcdeé", max_size=7)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("token", "token", 0),
        ("tokne", "token", 1),
        ("tken", "token", 1),
        ("tokken", "token", 1),
        ("taken", "token", 1),
        ("conection", "connection", 1),
        ("kubrenets", "kubernetes", 2),
        ("", "ab", 2),
        ("abc", "xyz", None),
        ("short", "a much longer text", None),
    ],
)
def test_edits_are_letters_added_left_out_changed_or_swapped(one: str, other: str, edits: int | None):
    assert distance(one, other, 2) == edits


@settings(max_examples=60)
@given(WORDS, WORDS)
def test_distance_is_symmetric_and_zero_only_for_equal_words(one: str, other: str):
    apart = distance(one, other, 20)
    assert apart == distance(other, one, 20)
    assert (apart == 0) == (one == other)
    assert distance(one, other, (apart or 1) - 1) is None or apart == 0


@settings(max_examples=40)
@given(st.text(alphabet="abcдя", min_size=1, max_size=6))
def test_every_variant_is_one_edit_away_or_the_word_itself(word: str):
    assert {distance(word, variant, 1) for variant in variants(word)} <= {0, 1}


def near(word: str, **vocabulary: int) -> list[str]:
    asked = typed(word)
    assert asked is not None
    return [one.token for one in nearest(asked, vocabulary.items())]


def test_short_words_allow_one_edit_and_longer_ones_two():
    assert near("tokn", token=1, tokxx=9) == ["token"]
    assert near("deploymnet", deployment=1) == ["deployment"]
    assert near("tkn", token=1) == []


def test_nearer_words_come_first_and_of_equally_near_ones_the_more_frequent():
    assert near("takens", taken=1, taker=2, takeoff=9, tokens=5) == ["taken", "tokens", "taker"]


def test_a_word_is_compared_by_its_stem_as_well():
    assert near("authenticatoin", authent=1) == ["authent"]  # one swap away from authentication
    assert near("conections", connect=1) == ["connect"]


def test_longer_words_that_begin_with_it_or_hold_it_come_last():
    assert near("base", bass=1, baseline=4, databas=9) == ["bass", "baseline", "databas"]
    assert near("kub", kubernet=1, cub=1) == ["kubernet"]


def test_numbers_are_never_near_each_other():
    assert near("error404", error403=1, error4=1) == []
    assert near("2024x", ab2024x=1) == ["ab2024x"]


@pytest.mark.parametrize("word", ["", "ab", "two words", "foo-bar", "机器学习", "x" * 33, "!!!"])
def test_what_is_no_single_word_of_sensible_length_has_no_neighbours(word: str):
    assert typed(word) is None


def test_a_word_two_edits_off_is_near_a_stem_when_a_text_holds_the_word():
    asked = typed("implmentaton")
    assert asked is not None
    words = {stem(word): [word] for word in ("implementation", "implantation", "implications")}
    vocabulary = [(token, 1) for token in words]
    assert similar(asked, vocabulary, lambda token: words[token], 5) == [("implementation", 1)]
    assert similar(asked, vocabulary, lambda token: [], 5) == []


def test_words_are_not_near_because_their_stems_are():
    asked = typed("capital")
    assert asked is not None
    assert near("capital", capath=3) == ["capath"]  # as stems: capit
    assert similar(asked, [("capath", 3)], lambda token: ["capath"], 5) == []
    assert similar(asked, [("capitol", 3)], lambda token: ["capitol"], 5) == [("capitol", 3)]


def test_a_token_is_shown_as_the_word_in_the_text_that_is_nearest():
    asked = typed("authenticatoin")
    assert asked is not None
    (found,) = nearest(asked, [(stem("authentication"), 3)])
    told = shown(asked, found, ["Authenticated", "authentication", "unrelated"])
    assert (told.token, told.edits, told.chunks) == ("authentication", 1, 3)
    assert shown(asked, found, ["unrelated"]) == found
