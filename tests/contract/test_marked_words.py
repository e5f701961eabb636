"""Every lexical index finds words with vowel signs as a whole."""

from __future__ import annotations

import pytest

from concord.storage import Store
from concord.text.query_language import parse
from concord.types import Match
from contract.stored import EVERYTHING, put

TEXTS = ("मेरी बिल्ली सो रही है।", "बल से लाल बाल", "בְּרֵאשִׁית בָּרָא אֱלֹהִים", "بسم الله شكرًا جزيلا", "தமிழ் மொழி", "தமழ")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("बिल्ली", [0]),
        ("बल", [1]),
        ("बिल*", [0]),
        ('"मेरी बिल्ली"', [0]),
        ('"बिल्ली मेरी"', []),
        ("बाल OR बिल्ली", [0, 1]),
        ("בראשית", [2]),
        ("בָּרָא", [2]),
        ('"ברא אלהים"', [2]),
        ("شكرا", [3]),
        ('"شكرا جزيلا"', [3]),
        ("தமிழ்", [4]),
        ("தமழ", [5]),
    ],
)
def test_words_with_signs_are_found_as_a_whole(store: Store, query: str, found: list[int]):
    chunks = put(store, "docs/a.md", *TEXTS)
    exact = parse(query).exact
    assert exact is not None
    assert sorted(ids(store, exact)) == [chunks[at] for at in found]


def test_words_with_signs_are_counted_and_similar_ones_are_words(store: Store):
    put(store, "docs/a.md", *TEXTS)
    (form,) = parse("बिल्ली").words
    assert store.lexical.frequencies([form])[1] == {form: 1}
    (mistyped,) = parse("बिल्लि").words
    assert store.lexical.similar_words(mistyped, 5) == [(form, 1)]


def ids(store: Store, match: Match) -> list[int]:
    return [scored.chunk_id for scored in store.lexical.search(match, EVERYTHING, 100)]
