"""A word is found in its other spelling: British or American, with an umlaut or with an e."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.search import search
from concord.text.held import contains, neighbours
from concord.text.snippet import excerpt
from concord.text.spellings import other_spellings
from concord.text.tokens import stem
from concord.types import Request
from support.postgres_server import fresh_org, server_url
from support.small_library import library, titles, tools

PAIRS = [
    ("licence", "license"),
    ("colour", "color"),
    ("colours", "colors"),
    ("behaviour", "behavior"),
    ("behavioural", "behavioral"),
    ("organise", "organize"),
    ("organisations", "organizations"),
    ("analyse", "analyze"),
    ("centre", "center"),
    ("centred", "centered"),
    ("fibreglass", "fiberglass"),
    ("defence", "defense"),
    ("catalogue", "catalog"),
    ("grey", "gray"),
    ("leukaemia", "leukemia"),
    ("haemoglobin", "hemoglobin"),
    ("sulphate", "sulfate"),
    ("Müller", "mueller"),
    ("Mueller", "muller"),
    ("Muenchen", "munchen"),
    ("Vergroesserung", "vergrosserung"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_word_has_another_spelling(one: str, other: str):
    assert other in other_spellings(one)
    if one.islower() and one.isascii():
        assert one in other_spellings(other)


OTHERS = """
    blue blues does goes value valued queue request quest fuel duel Michael Israel poet poets guest aerial
    neue prise prize rise size raise seize four tour your program programme check tyre C# foo_bar
"""


@pytest.mark.parametrize("word", OTHERS.split())
def test_words_that_would_be_others_have_none(word: str):
    assert other_spellings(word) == ()


@pytest.mark.parametrize("word", ["academic", "promise", "Colorado", "laboratory", "literature", "influence"])
def test_what_a_rule_makes_of_other_words_is_no_word(word: str):
    assert not {"academia", "prom", "color", "labor", "litr"}.intersection(map(stem, other_spellings(word)))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("licence", "The license is free."),
        ("license", "The licence is free."),
        ("Mueller", "Frau Müller rief an."),
        ("Müller", "Herr Mueller rief an."),
        ("organising", "We organize it."),
    ],
)
def test_a_text_with_the_other_spelling_holds_a_word(asked: str, text: str):
    assert contains(text, asked)
    assert excerpt(text, [asked], 200).at is not None


def test_neighbours_are_neighbours_in_any_spelling():
    assert neighbours("The color scheme is new.", [("colour", "scheme")])
    assert neighbours("Eine neue colour scheme.", [("color", "scheme")])
    assert not neighbours("The scheme has a color.", [("colour", "scheme")])


LETTERS = {
    "American": "The color of the license plate: whoever organizes it pays.",
    "German": "Frau Müller aus München hat angerufen.",
    **{f"Number {n}": f"The {n}. plate, which was free of charge." for n in range(30)},
}


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("colour of the licence plate", "American"),
        ("who organises the plate", "American"),
        ("Mueller Muenchen", "German"),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
def test_a_search_finds_the_other_spelling_and_knows_the_word(
    asked: str, title: str, engine: str, tmp_path: Path
):
    with library(LETTERS, **_store(engine, tmp_path)) as kb:
        answer = search(Request(asked, mode="fts5"), tools(kb))
        assert titles(answer)[0] == title
        assert not answer.suggestions


def _store(engine: str, folder: Path) -> dict[str, str]:
    if engine == "postgresql":
        return {"store__url": server_url(), "org": fresh_org()}
    return {"store__url": "memory://" if engine == "memory" else f"sqlite://{folder}/store"}


def test_all_spellings_of_a_word_count_as_one_and_the_rare_one_does_not_come_first():
    notes = {f"Page {n}": f"The color of page {n} is nice, as are its lines." for n in range(30)}
    notes["Best"] = "Color, color, color: which color?"
    notes["British"] = "The colour of another page is nice, as are its many, many lines."
    with library(notes) as kb:
        answer = search(Request("color", mode="fts5"), tools(kb))
        assert titles(answer)[0] == "Best"


def test_the_other_spelling_of_an_excluded_word_is_excluded():
    with library({"American": "nice color plate", "Plain": "nice plate"}) as kb:
        assert titles(search(Request("plate -colour", mode="fts5"), tools(kb))) == ["Plain"]
