"""Words that nothing holds and that are made of two others: these are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.text.compounds import LONGEST, likeliest, splits
from support.small_library import library, titles

KNOWN = {
    "kundigung",
    "frist",
    "kundigungs",
    "punkt",
    "punkte",
    "stand",
    "check",
    "button",
    "but",
    "ton",
    "iing",
    "test",
    "runs",
    "form",
    "check2",
    "检查按钮",
    *("c" * (LONGEST - 5), "c" * (LONGEST - 4)),
}


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("checkbutton", ("check", "button")),
        ("Kündigungsfrist", ("kundigungs", "frist")),  # more of the word than without its s
        ("Punktestand", ("punkte", "stand")),
        ("testruns", ("test", "runs")),  # the shortest parts, and the shortest stem, that count
        ("formbut", None),
        ("checker", None),
        ("checkout", None),  # half of it is not known
        ("checkiing", None),  # mistyped: its end has the stem of i
        ("check-button", None),  # two words are looked for as such
        ("check2button", None),
        ("--", None),
        ("c" * (LONGEST - 5) + "check", ("c" * (LONGEST - 5), "check")),
        ("c" * (LONGEST - 4) + "check", None),
        ("检查按钮检查按钮", None),
    ],
)
def test_a_word_is_made_of_two_that_are_known(word: str, parts: tuple[str, str] | None):
    assert likeliest(splits(word), KNOWN) == parts


def test_what_joins_two_words_belongs_to_neither():
    assert likeliest(splits("Kündigungsfrist"), {"kundigung", "frist"}) == ("kundigung", "frist")


NOTES = {
    "Vertrag": "Die Kündigung braucht Textform, die Frist sind drei Monate.",
    "Lager": "Der Schlüssel vom Lager liegt beim Empfang im Vertrag.",
    "Frost": "Im Lager herrscht Frost.",
}


@pytest.mark.parametrize("store", ["memory://", "sqlite"])
def test_a_search_for_a_compound_that_nothing_holds_finds_its_parts(store: str, tmp_path: Path):
    url = store if ":" in store else f"sqlite:///{tmp_path}"
    kb = library(NOTES, store__url=url)
    answer = kb.search("Kündigungsfrist im Vertrag", mode="fts5")
    assert titles(answer)[0] == "Vertrag"
    assert "no text has the word Kündigungsfrist" in (answer.note or "")
    assert titles(kb.search("Lagerschlüssel beim Empfang -Frost", mode="fts5")) == ["Lager"]


def test_a_compound_that_a_text_holds_is_looked_for_alone():
    kb = library({**NOTES, "Gesetz": "Die Kündigungsfrist steht hier."})
    assert titles(kb.search("Kündigungsfrist", mode="fts5")) == ["Gesetz"]


def test_a_compound_in_quotes_is_not_taken_apart():
    assert titles(library(NOTES).search('"Kündigungsfrist" Empfang', mode="fts5")) == ["Lager"]
