"""Whether a text holds a word, a phrase or neighbours is what an index would say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.held import contains
from concord.text.terms import exclusion_match, phrase_match, word_match
from support.fts5 import finds

LETTERS = "abcy GETsed-ing.中文 é2_ß"


@pytest.mark.parametrize(
    ("text", "terms", "others"),
    [
        (
            "Installing git is easy",
            ["install", "installation", "is easy", "inst*"],
            ["stall", "easy git", "gitt*"],
        ),
        ("call getUserName", ["user", "getusername", "get_user_name"], ["username"]),
        ("only C here", ["C"], ["C++"]),
        ("eine alte Straße", ["strasse", "STRASSE", "straße"], ["stra"]),
        ("", [], ["word"]),
    ],
)
def test_a_text_contains_a_term_by_its_tokens_and_stems(text: str, terms: list[str], others: list[str]):
    assert [term for term in (*terms, *others) if contains(text, term)] == terms


@given(st.text(LETTERS, max_size=40), st.text(LETTERS, max_size=8), st.booleans())
@settings(max_examples=300)
def test_containing_a_term_is_being_found_by_it(text: str, term: str, is_prefix: bool):
    if is_prefix:
        assert contains(text, f"{term}*") == finds(word_match(term, prefix=True), text)
    else:
        assert contains(text, term) == finds((phrase_match if " " in term else exclusion_match)(term), text)
