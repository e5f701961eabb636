"""Every lexical index finds words whose letters have no accent to lose, spelt either way."""

from __future__ import annotations

import pytest

from concord.storage import Store
from concord.text.query_language import parse
from concord.types import Match
from contract.stored import EVERYTHING, put

PAIRS = [
    ("Straße", "Strasse"),
    ("GROẞ", "gross"),
    ("Łódź", "Lodz"),
    ("œufs", "oeufs"),
    ("Ægir", "Aegir"),
    ("Tromsø", "Tromso"),
    ("Đorđe", "Dorde"),
    ("Þór", "Thor"),
    ("ışık", "isik"),
]


@pytest.mark.parametrize(("letters", "spelt"), PAIRS)
def test_a_word_is_found_in_either_spelling_by_either(store: Store, letters: str, spelt: str):
    chunks = put(store, "docs/a.md", f"about {letters} here", f"about {spelt} there", "about others")
    for word in (letters, spelt, letters.upper(), f"{letters[:-1]}*"):
        parsed = parse(word)
        assert parsed.exact is not None
        assert sorted(ids(store, parsed.exact)) == chunks[:2]
    for parsed in map(parse, (letters, spelt)):
        assert parsed.loose is not None
        assert sorted(ids(store, parsed.loose)) == chunks[:2]
        assert set(store.lexical.frequencies(parsed.words)[1].values()) == {2}


def test_an_excluded_word_is_left_out_in_either_spelling(store: Store):
    chunks = put(store, "docs/a.md", "Haus Straße", "Haus Strasse", "Haus Garten")
    exact = parse("Haus -Strasse").exact
    assert exact is not None
    assert ids(store, exact) == chunks[2:]


def test_a_phrase_is_found_where_it_is_spelt_out(store: Store):
    chunks = put(store, "docs/a.md", "die alte Straße nach Ulm", "die alte Strasse nach Ulm")
    exact = parse('"Straße nach Ulm"').exact
    assert exact is not None
    assert sorted(ids(store, exact)) == chunks


def test_neither_spelling_weighs_more(store: Store):
    put(store, "docs/a.md", "die alte Straße nach Ulm", "die alte Strasse nach Ulm", "ein Garten in Ulm")
    loose = parse("strasse").loose
    assert loose is not None
    first, second = (one.score for one in store.lexical.search(loose, EVERYTHING, 100))
    assert second == pytest.approx(first, rel=0.25)


def ids(store: Store, match: Match) -> list[int]:
    return [scored.chunk_id for scored in store.lexical.search(match, EVERYTHING, 100)]
