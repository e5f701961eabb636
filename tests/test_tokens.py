"""Tokens are FTS5's tokens, and each is known by its place in the text."""

from __future__ import annotations

import argparse
import inspect
import logging
import subprocess
import typing
from itertools import pairwise

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.tokens import (
    beyond_ascii,
    folded,
    has_undivided,
    latin_share,
    separated,
    spelt_out,
    stem,
    tokenize,
    tokens_at,
)

WILD = st.text(st.characters(codec="utf-8") | st.sampled_from("aéß ıΣжאا北ที🤖²\u0301\u200d_-'0"), max_size=60)
REAL_TEXT = "\n".join(map(inspect.getsource, (argparse, logging, subprocess, typing)))


def index_of(text: str) -> list[str]:
    """Return the tokens that a real index has of a text, in order."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(text, tokenize='porter unicode61')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, instance)")
    connection.execute("INSERT INTO f VALUES (?)", (text,))
    return [term for (term,) in connection.execute('SELECT term FROM v ORDER BY "offset"')]


@pytest.mark.promise("001.fts.tokenizer")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Installation, installing: installs", ["instal", "instal", "instal"]),
        ("Café d'Été — naïve", ["cafe", "d", "et", "naiv"]),
        ("snake_case kebab-case v2.1", ["snake", "case", "kebab", "case", "v2", "1"]),
        ("北京大学 👍 Straße", ["北京大学", "straß"]),
        ("half \ud800 a character", ["half", "a", "charact"]),
        ("", []),
    ],
)
def test_words_of_one_family_share_a_token(text: str, tokens: list[str]):
    assert tokenize(text) == tokens


@pytest.mark.promise("001.fts.tokenizer")
@settings(max_examples=150)
@given(WILD)
def test_any_text_has_the_tokens_that_an_index_has_of_it(text: str):
    text = text.replace("\0", " ")
    assert tokenize(text) == index_of(text)


def test_real_texts_have_the_tokens_that_an_index_has_of_them():
    assert tokenize(REAL_TEXT) == index_of(REAL_TEXT)


@settings(max_examples=150)
@given(WILD)
def test_every_token_is_known_by_its_place(text: str):
    found = tokens_at(text)
    assert [token for _, _, token in found] == tokenize(text)
    assert all(tokenize(text[start:end]) == [token] for start, end, token in found)
    assert separated(text) == [text[start:end] for start, end, _ in found]
    assert all(before[1] <= after[0] for before, after in pairwise(found))


def test_places_are_counted_in_characters():
    assert tokens_at("ü 👍-Über-ﬁx") == [(0, 1, "u"), (4, 8, "uber"), (9, 11, "ﬁx")]


@settings(max_examples=100)
@given(st.text("abcdefgilnostyß", min_size=1, max_size=70))
def test_a_folded_word_has_the_stem_that_the_index_gives_it(word: str):
    assert [stem(form) for form in folded(word)] == tokenize(word)


@pytest.mark.parametrize(
    ("text", "spelt"), [("Straße", "Strasse"), ("GROẞ", "GROSS"), ("Łódź", "Lódź"), ("Œufs", "Oeufs")]
)
def test_letters_that_lose_no_accent_are_spelt_out(text: str, spelt: str):
    assert has_undivided(text)
    assert spelt_out(text) == spelt
    assert not has_undivided(spelt)


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_beyond_ascii_is_found_in_order_even_half_a_character(text: str):
    assert beyond_ascii(text) == "".join(character for character in text if not character.isascii())


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 1.0), ("naïve café", 1.0), ("404 !?", 1.0), ("кот", 0.0), ("Qt кот", 2 / 5), ("GIT ツリー", 0.5)],
)
def test_the_latin_share_counts_letters_alone(text: str, share: float):
    assert latin_share(text) == pytest.approx(share)
