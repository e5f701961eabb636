"""Tokens are FTS5's tokens, and each is known by its place in the text."""

from __future__ import annotations

import argparse
import inspect
import logging
import subprocess
import typing

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.tokens import (
    beyond_ascii,
    tokenize,
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


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_beyond_ascii_is_found_in_order_even_half_a_character(text: str):
    assert beyond_ascii(text) == "".join(character for character in text if not character.isascii())
