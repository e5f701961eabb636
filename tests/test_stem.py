"""Our stems are FTS5's stems."""

from __future__ import annotations

import argparse
import doctest
import inspect
import itertools
import logging
import pydoc
import re
import subprocess
import typing
import unittest.mock
from time import process_time

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.held import contains
from concord.text.stem import beginning, candidates
from concord.text.tokens import stem

SUFFIXES = re.findall(
    r"\w+",
    """
    ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism iveness fulness
    ousness aliti iviti biliti ical ness icate iciti ful ative alize al ance ence er ic able ible ant ement
    ment ent ion ou ism ate iti ous ive ize ed ing eed s es ies sses ss y e ll at bl iz
    """,
)
ENDINGS = st.sampled_from(SUFFIXES)
REAL_TEXT = (argparse, doctest, inspect, logging, pydoc, subprocess, typing, unittest.mock)


@pytest.fixture(scope="module")
def fts5_stems():
    """A function from words that FTS5 would not split to the stems it gives them."""
    tokenizer = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
    plainly = {"include_offsets": False, "include_colocated": False}
    return lambda words: tokenizer(" ".join(words).encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, **plainly)


@pytest.mark.promise("001.fts.tokenizer")
@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("install", "instal"),
        ("installation", "instal"),
        ("running", "run"),
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("sensibility", "sensibl"),
        ("ideology", "ideolog"),
        ("adoption", "adopt"),
        ("controller", "control"),
        ("as", "as"),
        ("", ""),
        ("naïveté", "naïveté"),
    ],
)
def test_words_of_one_family_share_a_stem(word: str, expected: str):
    assert stem(word) == expected


def test_words_of_real_documentation_have_the_stems_that_fts5_gives_them(fts5_stems):
    sources = " ".join(map(inspect.getsource, REAL_TEXT))
    words = sorted(set(re.findall(r"[a-z]+", sources.lower())))
    assert len(words) > 3000
    assert [stem(word) for word in words] == fts5_stems(words)


def test_every_combination_of_suffixes_is_stemmed_as_fts5_does(fts5_stems):
    roots = ["a", "b", "y", "st", "ab", "tr", "oll", "hop", "yay", "gener", "cry", "sses", "bll", "oaten"]
    words = [
        root + first + second
        for root in roots
        for first, second in itertools.product(SUFFIXES, [*SUFFIXES, ""])
    ]
    assert [stem(word) for word in words] == fts5_stems(words)


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=70), min_size=1, max_size=40))
@settings(max_examples=100)
def test_any_word_is_stemmed_as_fts5_does(fts5_stems, words: list[str]):
    assert [stem(word) for word in words] == fts5_stems(words)


@given(
    st.lists(
        st.builds(str.__add__, st.text("aeiybcdlstzßłжя漢", min_size=1, max_size=24), ENDINGS),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=100)
def test_letters_beyond_ascii_count_by_their_bytes(fts5_stems, words: list[str]):
    assert [stem(word) for word in words] == fts5_stems(words)


@pytest.mark.parametrize("length", [62, 63, 64, 65, 200])
def test_tokens_over_sixty_four_bytes_are_left_as_they_are(fts5_stems, length: int):
    word = "b" * (length - 3) + "ing"
    vowelled = "ab" * (length // 2 - 2) + "ings"
    assert [stem(word), stem(vowelled)] == fts5_stems([word, vowelled])


@given(st.builds(lambda *parts: "".join(parts), st.text("aeiybcdlstz", max_size=8), ENDINGS, ENDINGS))
@settings(max_examples=300)
def test_a_word_begins_like_its_stem_but_for_a_letter(word: str):
    assert word.startswith(beginning(stem(word)))


def test_the_words_that_may_have_a_stem_are_found_where_they_stand():
    line = " running a runner ran the run "
    assert list(candidates(line, "run")) == [(0, "running"), (10, "runner"), (25, "run")]
    assert list(candidates(" outrun ", "run")) == []


@pytest.mark.parametrize("word", ["eyed", "eying", "eys", "oys"])
def test_a_short_word_whose_last_letter_stemming_changes_is_found_where_it_stands(word: str):
    assert stem(word).endswith("i")
    assert list(candidates(f" brown {word} girl ", stem(word))) == [(6, word)]
    assert contains(f"A brown {word} girl", word)


@pytest.mark.parametrize(("part", "term"), [("C++ ", "cplusx"), ("a ", "a b")])
def test_a_long_text_is_looked_through_in_one_pass(part: str, term: str):
    begun = process_time()
    assert not contains(part * 200_000, term)
    assert process_time() - begun < 1.5
